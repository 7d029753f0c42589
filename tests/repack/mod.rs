//! Plans packed once more, by searches that share no code with the planner. All that they know of a plan is its text and
//! the page of its format. No plan that states that it is the least has a lower placement that the checker accepts, and
//! other plans leave little.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]
#![expect(clippy::print_stdout, reason = "the counts are what the test is for")]

mod draw;
mod rings;
mod search;

use std::collections::BTreeMap;

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::units::MemoryGoal;
use csdfc_network::Network;
use csdfc_network::pass::{Precision, in_precisions};
use csdfc_plan::plan::StorageModel;
use csdfc_planner::open;
use csdfc_tests::{generate, plan};

use self::rings::Problem;
use self::search::{Effort, lowest};

/// What became of plans of one kind.
#[derive(Default)]
struct Count {
    /// Plans that state that they are the smallest: equal to the bound, or as claimed.
    proven: usize,
    claimed: usize,
    /// Other plans of least memory: the share of their bytes that the searches save.
    saved: Vec<f64>,
    /// Other plans. For speed, their layers may make rows at once, which takes more.
    others: usize,
    /// Plans of which the searches found the least placement.
    solved: usize,
    /// Plans in which a layer of more filters than the nearest cache holds writes where it reads.
    one_by_one: usize,
}

impl Count {
    /// Packs the plan of an application once more.
    fn repack(&mut self, name: &str, application: &Application, effort: Effort) {
        let plan = plan(application);
        let (problem, memory) = (Problem::of(&plan), &plan.memory);
        let found = lowest(&problem, effort);
        // The checker confirms the placements of these searches.
        let moved = problem.moved(&plan, &found.lowest.offsets);
        if let Err(violations) = csdfc_plan::check(&moved) {
            panic!("{name}: {:?}\n{}", violations.first(), moved.to_ron());
        }
        let bytes = found.lowest.bytes.min(memory.arena);
        let least = if memory.proven { memory.bound } else { plan.certificate.claimed.unwrap_or(0) };
        assert!(bytes >= least, "{name}: {bytes} is below {least}\n{}", moved.to_ron());
        self.solved += usize::from(found.is_least);
        self.one_by_one +=
            usize::from(plan.search.choices.values().any(|choice| choice.contains("one by one")));
        match memory.proven {
            true => self.proven += 1,
            false if least == memory.arena => self.claimed += 1,
            false if application.constraints.memory == Some(MemoryGoal::Min) => {
                self.saved.push(1.0 - bytes as f64 / memory.arena as f64);
            }
            false => self.others += 1,
        }
    }
}

/// Packs the plans of the applications that these seeds draw, and counts them by kind.
fn repacked(seeds: std::ops::Range<u64>, effort: Effort) -> BTreeMap<&'static str, Count> {
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for seed in seeds {
        for (kind, application) in draw::applications(seed) {
            counts.entry(kind).or_default().repack(&format!("{kind} {seed}"), &application, effort);
        }
    }
    for (kind, Count { proven, claimed, saved, others, solved, one_by_one }) in &counts {
        println!(
            "{kind}: {proven} proven, {claimed} claimed, {} not, {others} others; {solved} solved, {one_by_one} one by one",
            saved.len()
        );
    }
    counts
}

/// Asserts that so many plans at least state that they are the least, some of each kind, and that the others leave less
/// than a hundredth in the median.
fn assert_little_is_left(counts: &BTreeMap<&str, Count>, least: usize) {
    let stated = |count: &Count| count.proven + count.claimed;
    assert!(counts.len() == 10 && counts.values().all(|count| stated(count) > 0));
    assert!(counts.values().map(stated).sum::<usize>() >= least);
    assert!(counts.values().any(|count| count.one_by_one > 0));
    let mut saved: Vec<f64> = counts.values().flat_map(|count| &count.saved).copied().collect();
    saved.sort_by(f64::total_cmp);
    let middle = [saved.len().saturating_sub(1) / 2, saved.len() / 2];
    let median = middle.map(|at| saved.get(at).copied().unwrap_or(0.0)).iter().sum::<f64>() / 2.0;
    println!("in the median of {}, {median} of the bytes are left", saved.len());
    assert!(median < 0.01, "{saved:?}");
}

#[test]
fn no_plan_that_says_it_is_the_least_can_be_packed_lower() {
    assert_little_is_left(&repacked(0..40, Effort { orders: 300, decisions: 300 }), 300);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn none_of_hundreds_of_plans_can_be_packed_lower() {
    assert_little_is_left(&repacked(1000..1060, Effort { orders: 1000, decisions: 20_000 }), 461);
}

/// Networks that the searches solve only in part.
#[test]
fn no_larger_network_can_be_packed_lower() {
    let mut count = Count::default();
    for name in ["lenet5", "resnet8", "resnet18", "mobilenet_v1_0.25", "squeezenet1_0", "mobilenet_v2"] {
        for goal in [None, Some(MemoryGoal::Min)] {
            for rows in [RowsChoice::Default, RowsChoice::None, RowsChoice::All] {
                let mut application = open::open(&format!("builtin:{name}")).unwrap().resolve().unwrap();
                let name = format!("{name}, {goal:?}, {rows:?}");
                (application.constraints.memory, application.rows) = (goal, rows);
                count.repack(&name, &application, Effort { orders: 300, decisions: 100 });
            }
        }
    }
    let Count { proven, claimed, saved, others, one_by_one, .. } = count;
    println!("{proven} proven, {claimed} claimed, {saved:?}, {others} others; {one_by_one} one by one");
    assert!(proven + claimed >= 25 && saved.is_empty());
}

/// Bytes of the buffers of a network without parts.
fn buffers(network: Network) -> u64 {
    plan(&generate::of_one(network, StorageModel::Tensors, RowsChoice::None)).memory.buffers
}

/// The first operand of a concat along rows is released, and rows of the second are written where it was.
#[test]
fn a_concat_along_rows_writes_where_it_reads() {
    let network = draw::joined();
    let row = network.layers[0].row_bytes();
    // Four rows of each operand, and one that is begun before one is released.
    assert_eq!(buffers(network), 9 * row);
}

/// Offsets of 16-bit floats are multiples of 2.
#[test]
fn halves_lie_at_even_addresses() {
    let network = draw::narrow();
    let layers = network.layers.len();
    // Three rings of six rows of 6 bytes, each one row above the next.
    assert_eq!(buffers(in_precisions(network, &vec![Precision::Half; layers])), 48);
}
