//! An instance in whole numbers: the candidates of each layer, the costs of edges, and the cost of a selection.
//!
//! ```
//! use csdfc_select::{Instance, Problem};
//!
//! let instance = Instance::parse(
//!     r#"{"layers": [
//!             {"name": "conv1", "kind": "conv", "options": [
//!                 {"primitive": "im2row", "in": "CHW", "out": "HWC", "time": 40, "memory": 80}]},
//!             {"name": "conv2", "kind": "conv", "options": [
//!                 {"primitive": "sum2d", "in": "CHW", "out": "CHW", "time": 70, "memory": 10}]}],
//!         "edges": [{"from": "conv1", "to": "conv2", "conversions": [{"in": "HWC", "out": "CHW", "time": 5.5}]}]}"#,
//! )?;
//! let problem = Problem::new(&instance, false)?;
//! let cost = problem.cost(&vec![0, 0]).ok_or("no path")?;
//! assert_eq!(problem.times.value(cost.time), 40.0 + 5.5 + 70.0);
//! assert_eq!(problem.memories.value(cost.memory), 90.0);
//! assert_eq!(problem.memories.value(cost.workspace), 80.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::conversions::Paths;
use crate::instance::{Instance, InstanceError, LayerKind, Layout};
use crate::scale::Scale;
use crate::stop::Stop;

/// An instance, ready to be solved.
#[derive(Debug)]
pub struct Problem<'a> {
    /// The instance.
    pub instance: &'a Instance,
    /// How times become whole numbers.
    pub times: Scale,
    /// How memories become whole numbers.
    pub memories: Scale,
    /// The candidates of each layer, in the order of its options.
    pub candidates: Vec<Vec<Candidate>>,
    /// Chains of conversions for each edge.
    pub paths: Vec<Paths>,
    /// When searches for a selection end with the best so far.
    pub stop: Stop<'a>,
}

/// A way to compute a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The option of the layer.
    pub option: usize,
    /// The layout that it reads.
    pub input: Layout,
    /// The layout that it writes.
    pub output: Layout,
    /// In whole numbers of the problem's scale.
    pub time: u64,
    /// In whole numbers of the problem's scale.
    pub memory: u64,
}

/// The candidates of each layer that may be chosen, by their places.
pub type Allowed = Vec<Vec<usize>>;

/// A candidate for each layer.
pub type Selection = Vec<usize>;

/// The cost of a selection, in whole numbers of the problem's scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Time of all layers and conversions (TASO paper, Eq. 12).
    pub time: u64,
    /// Memory summed over layers (Eq. 9).
    pub memory: u64,
    /// Memory of the layer that takes most (Eq. 15).
    pub workspace: u64,
}

impl<'a> Problem<'a> {
    /// Binds an instance. If `pass_converts`, a layer that is not a convolution may write any of its layouts, whichever
    /// it reads. It costs as much as its option that reads the same layout. These are the PBQP paper's dummy nodes
    /// (section 5.2). Otherwise such a layer keeps its layout.
    ///
    /// # Errors
    /// When a layer that is not a convolution has an option that changes the layout but must keep it, or sums are too
    /// large to be exact.
    pub fn new(instance: &'a Instance, pass_converts: bool) -> Result<Problem<'a>, InstanceError> {
        let largest = |of: fn(&crate::instance::PrimitiveOption) -> f64| -> f64 {
            let largest =
                instance.layers.iter().map(|layer| layer.options.iter().map(of).fold(0.0, f64::max));
            largest.sum()
        };
        let conversions: f64 =
            instance.edges.iter().flat_map(|edge| &edge.conversions).map(|conversion| conversion.time).sum();
        let times = Scale::for_sums(largest(|option| option.time) + conversions)
            .ok_or(InstanceError::TooLarge("times"))?;
        let memories =
            Scale::for_sums(largest(|option| option.memory)).ok_or(InstanceError::TooLarge("memories"))?;
        let mut candidates = Vec::new();
        for layer in &instance.layers {
            let mut of_layer: Vec<Candidate> = Vec::new();
            for (option, given) in layer.options.iter().enumerate() {
                let candidate = Candidate {
                    option,
                    input: given.input,
                    output: given.output,
                    time: times.whole(given.time),
                    memory: memories.whole(given.memory),
                };
                if layer.kind == LayerKind::Pass && !pass_converts && given.input != given.output {
                    return Err(InstanceError::PassConverts {
                        layer: layer.name.clone(),
                        option: option + 1,
                        input: instance.layout(given.input).into(),
                        output: instance.layout(given.output).into(),
                    });
                }
                of_layer.push(candidate);
            }
            if layer.kind == LayerKind::Pass && pass_converts {
                let mut outputs: Vec<Layout> = Vec::new();
                for layout in of_layer.iter().flat_map(|candidate| [candidate.input, candidate.output]) {
                    if !outputs.contains(&layout) {
                        outputs.push(layout);
                    }
                }
                let each = |candidate: &Candidate| {
                    let candidate = *candidate;
                    outputs.clone().into_iter().map(move |output| Candidate { output, ..candidate })
                };
                of_layer = of_layer.iter().flat_map(each).collect();
            }
            candidates.push(of_layer);
        }
        let paths = instance.edges.iter().map(|edge| {
            let routines = edge.conversions.iter();
            let routines = routines.map(|routine| (routine.input, routine.output, times.whole(routine.time)));
            Paths::new(&routines.collect::<Vec<_>>())
        });
        let paths = paths.collect();
        Ok(Problem { instance, times, memories, candidates, paths, stop: Stop::never() })
    }

    /// The same, but searches end with the best so far once somebody asks.
    pub fn stopped_by(self, stop: Stop<'a>) -> Self {
        Problem { stop, ..self }
    }

    /// All candidates of all layers.
    pub fn all(&self) -> Allowed {
        self.candidates.iter().map(|candidates| (0..candidates.len()).collect()).collect()
    }

    /// The candidates that take no more memory than this.
    pub fn within_workspace(&self, allowed: &Allowed, workspace: u64) -> Allowed {
        self.filtered(allowed, |_, candidate| candidate.memory <= workspace)
    }

    /// The candidates that this function of layer and candidate accepts.
    pub fn filtered(&self, allowed: &Allowed, accepts: impl Fn(usize, &Candidate) -> bool) -> Allowed {
        let of_layer = |(layer, places): (usize, &Vec<usize>)| -> Vec<usize> {
            let accepted = places.iter().filter(|place| accepts(layer, &self.candidates[layer][**place]));
            accepted.copied().collect()
        };
        allowed.iter().enumerate().map(of_layer).collect()
    }

    /// The candidate that a selection takes for a layer.
    pub fn taken(&self, selection: &Selection, layer: usize) -> &Candidate {
        &self.candidates[layer][selection[layer]]
    }

    /// The cost of the layers of a selection, without conversions.
    pub fn cost_of_layers(&self, selection: &Selection) -> Cost {
        let mut cost = Cost { time: 0, memory: 0, workspace: 0 };
        for layer in 0..selection.len() {
            let taken = self.taken(selection, layer);
            cost.time += taken.time;
            cost.memory += taken.memory;
            cost.workspace = cost.workspace.max(taken.memory);
        }
        cost
    }

    /// The cost of a selection. `None` if an edge has no path between its layouts.
    pub fn cost(&self, selection: &Selection) -> Option<Cost> {
        let mut cost = self.cost_of_layers(selection);
        for (edge, paths) in self.instance.edges.iter().zip(&self.paths) {
            let (from, to) = (self.taken(selection, edge.from), self.taken(selection, edge.to));
            cost.time += paths.time(from.output, to.input)?;
        }
        Some(cost)
    }
}
