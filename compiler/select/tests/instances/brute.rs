//! All selections of an instance, read from its text and added up in floats. Nothing of the crate is used.

use std::collections::BTreeMap;

use serde_json::Value;

/// Quantities, as places in a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    Time,
    Memory,
    Workspace,
}

/// The data of an option that brute force needs.
struct Candidate {
    input: String,
    output: String,
    time: f64,
    memory: f64,
}

/// All selections that have a path on every edge, with time, memory and workspace.
pub struct All {
    pub selections: Vec<(Vec<usize>, [f64; 3])>,
    candidates: Vec<Vec<Candidate>>,
    edges: Vec<Edge>,
}

/// An edge, with the times between any two candidates.
struct Edge {
    from: usize,
    to: usize,
    times: Vec<Vec<Option<f64>>>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

impl All {
    pub fn of(instance: &str, pass_converts: bool) -> All {
        let instance: Value = serde_json::from_str(instance).unwrap();
        let layers = instance["layers"].as_array().unwrap();
        let index: BTreeMap<String, usize> =
            layers.iter().enumerate().map(|(at, layer)| (text(&layer["name"]), at)).collect();
        let candidates: Vec<Vec<Candidate>> =
            layers.iter().map(|layer| candidates(layer, pass_converts)).collect();
        let edges = instance["edges"].as_array().unwrap().iter().map(|edge| {
            let (from, to) = (index[&text(&edge["from"])], index[&text(&edge["to"])]);
            let times = distances(&edge["conversions"]);
            let time = |from: &Candidate, to: &Candidate| match from.output == to.input {
                true => Some(0.0),
                false => times.get(&(from.output.clone(), to.input.clone())).copied(),
            };
            let row = |from| candidates[to].iter().map(|to| time(from, to)).collect();
            Edge { from, to, times: candidates[from].iter().map(row).collect() }
        });
        let edges = edges.collect();
        let mut all = All { selections: vec![], candidates, edges };
        let mut selection = vec![0; all.candidates.len()];
        'next: loop {
            if let Some(cost) = all.cost(&selection) {
                all.selections.push((selection.clone(), cost));
            }
            for (taken, candidates) in selection.iter_mut().zip(&all.candidates) {
                *taken += 1;
                if *taken < candidates.len() {
                    continue 'next;
                }
                *taken = 0;
            }
            return all;
        }
    }

    /// Time, memory and workspace of a selection, if every edge has a path.
    pub fn cost(&self, selection: &[usize]) -> Option<[f64; 3]> {
        let taken = |layer: usize| &self.candidates[layer][selection[layer]];
        let mut cost = [0.0, 0.0, 0.0_f64];
        for layer in 0..selection.len() {
            cost[0] += taken(layer).time;
            cost[1] += taken(layer).memory;
            cost[2] = cost[2].max(taken(layer).memory);
        }
        for Edge { from, to, times } in &self.edges {
            cost[0] += times[selection[*from]][selection[*to]]?;
        }
        Some(cost)
    }

    /// The least of one quantity, and then of another, within the limits.
    pub fn best(&self, first: Quantity, second: Quantity, limits: &[Option<f64>; 3]) -> Option<(f64, f64)> {
        let within = |cost: &&[f64; 3]| {
            cost.iter().zip(limits).all(|(value, limit)| limit.is_none_or(|limit| *value <= limit))
        };
        let costs = self.selections.iter().map(|(_, cost)| cost).filter(within);
        let pairs = costs.map(|cost| (cost[first as usize], cost[second as usize]));
        pairs.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)))
    }
}

fn candidates(layer: &Value, pass_converts: bool) -> Vec<Candidate> {
    let options = layer["options"].as_array().unwrap();
    let mut outputs: Vec<String> = options.iter().map(|option| text(&option["out"])).collect();
    // The crate numbers layouts as they appear, which for these layers is the order of their options.
    outputs.dedup();
    let converts = pass_converts && layer["kind"] == "pass";
    let mut all = Vec::new();
    for option in options {
        for output in if converts { outputs.clone() } else { vec![text(&option["out"])] } {
            all.push(Candidate {
                input: text(&option["in"]),
                output,
                time: option["time"].as_f64().unwrap(),
                memory: option["memory"].as_f64().unwrap(),
            });
        }
    }
    all
}

/// Shortest times between layouts, by repeating each conversion until nothing gets shorter.
fn distances(conversions: &Value) -> BTreeMap<(String, String), f64> {
    let mut times: BTreeMap<(String, String), f64> = BTreeMap::new();
    let routines: Vec<(String, String, f64)> = conversions
        .as_array()
        .unwrap()
        .iter()
        .map(|routine| (text(&routine["in"]), text(&routine["out"]), routine["time"].as_f64().unwrap()))
        .collect();
    for (from, to, time) in &routines {
        times.insert((from.clone(), to.clone()), *time);
    }
    loop {
        let mut shorter = times.clone();
        for ((start, end), time) in &times {
            for (from, to, more) in &routines {
                if end == from && start != to {
                    let known = shorter.entry((start.clone(), to.clone())).or_insert(f64::INFINITY);
                    *known = known.min(time + more);
                }
            }
        }
        if shorter == times {
            return times;
        }
        times = shorter;
    }
}
