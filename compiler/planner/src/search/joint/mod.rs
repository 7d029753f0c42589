//! Primitives, rows per firing and segments of one CNN, chosen together.
//!
//! A fast primitive may need workspace, and keep larger filters. Workspace competes with the rings that live at the
//! same time, and filters compete with everything. So three quantities are weighed: time, bytes of the arena, and bytes
//! stored.
//!
//! Segments and their rings are those of the extended search ([`extended`]). They do not depend on the primitives, as
//! long as these keep the layouts. A chain of segments takes the arena of its largest segment, the sum of all times,
//! and the sum of all stored bytes. Given a *price* of a stored byte, in time, and a *cap* on the arena, the best chain
//! is a shortest path from cut to cut (`priced`). Several caps and prices are tried. The chains that no other chain
//! beats are the *offers*. Offers are exact for their prices, with two limits: there may be plans that no price finds,
//! and a segment whose layers are streamed counts the workspaces of all its layers at once.
//!
//! Layouts are given by the network: it is legalised already.

mod priced;

use csdfc_network::LayerId;
use csdfc_plan::plan::StorageModel;
use csdfc_runtime::bind::Primitive;

use self::priced::{Layered, PathOffer};
use crate::cost::measured::{self, Alternative};
use crate::cost::timing::Timing;
use crate::frame::choice::Choice;
use crate::frame::task::PartitionedCnn;
use crate::search::evaluate::Evaluator;
use crate::search::extended::{self, design_space::DesignSpace, segment};

/// A way to run a CNN.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The primitives of layers that have several.
    pub primitives: Vec<(LayerId, Primitive)>,
    /// Rows and segments.
    pub choice: Choice,
    /// Modelled nanoseconds between frames.
    pub period_ns: f64,
    /// Bytes that these layers store, about as many as a plan has.
    pub stored: u64,
    /// Bytes of rings and workspaces, about as many as a plan has.
    pub arena: u64,
}

/// The offers for a CNN, the fastest first.
///
/// # Errors
/// Those of the dataflow analyses.
pub fn offers(
    task: &PartitionedCnn<'_>,
    timing: &Timing<'_>,
    storage: StorageModel,
    max_error: f64,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Offer>, csdf::Error> {
    let evaluator = Evaluator::new(task, timing, storage);
    let design_space = DesignSpace::new(task);
    let mut each = Vec::new();
    for partition in 0..task.partitions.len() {
        each.push(partition_offers(&evaluator, &design_space, partition, max_error, is_over)?);
    }
    let mut offers: Vec<Offer> = Vec::new();
    for parts in together(task, &each) {
        let mut firings = vec![1; task.network.layers.len()];
        let (mut barriers, mut primitives) = (Vec::new(), Vec::new());
        for part in &parts {
            part.firings.iter().for_each(|(id, often)| firings[id.0] = *often);
            barriers.extend(&part.barriers);
            primitives.extend(&part.primitives);
        }
        let cost = Cost::new(task, &parts);
        offers.push(Offer {
            primitives,
            choice: design_space.choice(&design_space.genome(&firings, &barriers)),
            period_ns: cost.time_ns,
            stored: cost.stored,
            arena: cost.arena,
        });
    }
    offers.sort_by(|a, b| {
        a.period_ns.total_cmp(&b.period_ns).then((a.stored + a.arena).cmp(&(b.stored + b.arena)))
    });
    Ok(offers)
}

/// How one partition is executed.
#[derive(Debug, Clone)]
struct Part {
    cost: Cost,
    primitives: Vec<(LayerId, Primitive)>,
    /// How often each of its layers fires.
    firings: Vec<(LayerId, u64)>,
    /// The layers after which segments end.
    barriers: Vec<LayerId>,
}

/// The quantities that are weighed.
#[derive(Debug, Clone, Copy)]
struct Cost {
    time_ns: f64,
    stored: u64,
    arena: u64,
}

impl Cost {
    /// The cost of partitions that run at the same time, as the stages of a pipeline, or one after another.
    fn new(task: &PartitionedCnn<'_>, parts: &[&Part]) -> Cost {
        let is_pipeline = task.together.iter().flatten().any(|together| *together);
        let mut cost = Cost { time_ns: 0.0, stored: 0, arena: 0 };
        for part in parts {
            cost.stored += part.cost.stored;
            if is_pipeline {
                cost.time_ns = cost.time_ns.max(part.cost.time_ns);
                cost.arena += part.cost.arena;
            } else {
                cost.time_ns += part.cost.time_ns;
                cost.arena = cost.arena.max(part.cost.arena);
            }
        }
        cost
    }
}

/// The offers of partitions, combined. In a pipeline, only the slowest stage counts. So for each time, every stage has
/// its smallest offer that takes no longer. Partitions that follow each other share the arena. So for each size of the
/// arena, and each number of stored bytes that one of them takes, every partition has its fastest offer that fits.
fn together<'p>(task: &PartitionedCnn<'_>, each: &'p [Vec<Part>]) -> Vec<Vec<&'p Part>> {
    let is_pipeline = task.together.iter().flatten().any(|together| *together);
    let all = || each.iter().flatten();
    let bytes = |part: &&Part| part.cost.stored + part.cost.arena;
    let mut found: Vec<Vec<&Part>> = Vec::new();
    for limit in all() {
        let of = |parts: &'p Vec<Part>| -> Option<&'p Part> {
            if is_pipeline {
                let in_time = parts.iter().filter(|part| part.cost.time_ns <= limit.cost.time_ns);
                return in_time.min_by_key(bytes);
            }
            let fits = parts.iter().filter(|part| part.cost.arena <= limit.cost.arena);
            let price = limit.price();
            fits.min_by(|a, b| a.priced(price).total_cmp(&b.priced(price)))
        };
        found.extend(each.iter().map(of).collect::<Option<Vec<_>>>());
    }
    found
}

impl Part {
    /// Time per stored byte, on average.
    fn price(&self) -> f64 {
        self.cost.time_ns / self.cost.stored.max(1) as f64
    }

    fn priced(&self, price: f64) -> f64 {
        self.cost.time_ns + price * self.cost.stored as f64
    }
}

/// The ways to compute a layer, with its times by the step on the ladder of numbers of firings.
fn options(
    evaluator: &Evaluator<'_>,
    ladder: &[u64],
    partition: usize,
    id: LayerId,
    max_error: f64,
) -> Vec<Layered> {
    let (task, timing) = (evaluator.task, &evaluator.timing);
    let layer = task.network.layer(id);
    let rows = |firings: &u64| segment::rows(layer.rows() as u64, *firings);
    let processor_share = &timing.processor_shares[partition];
    let known = measured::alternatives(processor_share.processor, layer, processor_share.workers, max_error);
    let first = layer.primitive();
    // If a layer's own primitive was not measured, no other one is comparable with it.
    if known.iter().all(|known| known.primitive != first) {
        let inputs: Vec<_> = layer.inputs.iter().map(|operand| &operand.shape).collect();
        return vec![Layered {
            primitive: None,
            stored: first.stored_bytes(&layer.operator, &inputs, layer.parameter_elements()),
            workspace: layer.workspace_bytes() * task.workers,
            times: ladder.iter().map(|firings| evaluator.layer_ns(partition, id, rows(firings))).collect(),
        }];
    }
    let option = |known: &Alternative<'_>| {
        let time = |firings| timing.layer_ns_by(known.samples, task, partition, id, rows(firings));
        Layered {
            primitive: Some(known.primitive),
            stored: known.stored,
            workspace: known.workspace * task.workers,
            times: ladder.iter().map(time).collect(),
        }
    };
    priced::undominated(known.iter().map(option).collect())
}

/// The offers of one partition. None if the application gives its schedule.
fn partition_offers(
    evaluator: &Evaluator<'_>,
    design_space: &DesignSpace<'_>,
    partition: usize,
    max_error: f64,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Part>, csdf::Error> {
    let source = &evaluator.task.partitions[partition];
    if source.steps.is_some() {
        return Ok(Vec::new());
    }
    let (cuts, segments) = extended::segments(evaluator, design_space, partition, is_over)?;
    let options = |id: &LayerId| options(evaluator, &design_space.ladder, partition, *id, max_error);
    let options: Vec<Vec<Layered>> = source.layers.iter().map(options).collect();
    let part = |path: PathOffer| {
        let (mut firings, mut barriers, mut primitives) = (Vec::new(), Vec::new(), Vec::new());
        for (segment, chosen) in path.segments.iter().map(|(index, chosen)| (&segments[*index], chosen)) {
            let end = cuts[segment.to - 1];
            let layers = &source.layers[firings.len()..=end];
            for ((id, option), at) in layers.iter().zip(chosen).zip(firings.len()..) {
                primitives.extend(options[at][*option].primitive.map(|primitive| (*id, primitive)));
            }
            firings.extend(layers.iter().map(|id| (*id, segment.firings)));
            barriers.push(source.layers[end]);
        }
        barriers.pop();
        let cost = Cost { time_ns: path.time_ns, stored: path.stored, arena: path.arena };
        Part { cost, primitives, firings, barriers }
    };
    let paths = priced::paths(&segments, &cuts, &design_space.ladder, &options);
    Ok(paths.into_iter().map(part).collect())
}
