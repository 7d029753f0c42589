//! The simple plans, without a search: no parts, all parts, and for every prefix of the layers "prefix by rows, rest
//! layer by layer".

use rayon::prelude::*;

use crate::cost::Processor;
use crate::couple::couple;
use crate::execution::{self, CnnTask, Execution, Rings};
use crate::lower::RateTable;
use crate::network::{LayerId, Network};
use crate::search::Variant;
pub use crate::search::choice::Choice;
use crate::storage::{self, Effort, Storage};
use csdfc_codegen::plan::StorageModel;

/// The simple choices.
pub fn choices(network: &Network) -> Vec<Choice> {
    let height = |layer: usize| network.layers[layer].shape.rows();
    let prefixes = (1..network.layers.len()).filter(|length| height(length - 1) > 1);
    let mut choices = vec![Choice::none(network)];
    choices.extend(prefixes.map(|length| Choice::prefix(network, length)));
    choices.push(Choice::all(network));
    choices
}

/// The same choice with the inputs delivered whole, if it has them by rows: the caller's frame then costs no ring.
fn inputs_whole(network: &Network, choice: &Choice) -> Option<Choice> {
    let mut rows = choice.rows.clone();
    for (id, layer) in network.layers.iter().enumerate().filter(|(_, layer)| layer.is_input()) {
        rows[id] = layer.shape.rows() as u64;
    }
    let name = format!("{}, inputs whole", choice.name);
    (rows != choice.rows).then(|| Choice { name, rows, barriers: choice.barriers.clone() })
}

/// The variants of a CNN that are worth choosing.
#[derive(Debug)]
pub struct Front {
    /// Those that no faster choice beats in memory, the fastest first.
    pub variants: Vec<Variant>,
    /// Choices that were evaluated.
    pub evaluations: u64,
}

/// Evaluates the simple choices for one CNN, each of its partitions on the processor given; in storage model `tensors`
/// the best of them with whole inputs too (in `edges` a whole input is a whole buffer, which no plan gains from).
///
/// # Errors
/// Those of the dataflow analyses.
pub fn front(
    task: &CnnTask<'_>,
    processors: &[&Processor],
    storage: StorageModel,
) -> Result<Front, csdf::Error> {
    let choices = choices(task.network);
    let mut front = evaluate(task, processors, &choices, storage)?;
    if storage == StorageModel::Tensors {
        let best = |choice: &&Choice| front.variants.iter().any(|variant| variant.name == choice.name);
        let best: Vec<&Choice> = choices.iter().filter(best).collect();
        let whole: Vec<Choice> =
            best.iter().filter_map(|choice| inputs_whole(task.network, choice)).collect();
        let more = evaluate(task, processors, &whole, storage)?;
        front.evaluations += more.evaluations;
        front.variants.extend(more.variants);
        front.variants = undominated(front.variants);
    }
    Ok(front)
}

/// Evaluates choices for one CNN, in parallel and in order. Only those whose liveness bound leaves hope are placed, and
/// of those only the undominated get the smallest rings (in storage model `edges` they keep those of the execution on
/// demand, which is the paper's).
///
/// # Errors
/// Those of the dataflow analyses.
pub fn evaluate(
    task: &CnnTask<'_>,
    processors: &[&Processor],
    choices: &[Choice],
    storage: StorageModel,
) -> Result<Front, csdf::Error> {
    let rates = RateTable::new(task.network);
    let elements = own_elements(task);
    let executed = |choice: &Choice, rings: Rings| -> Result<Execution, csdf::Error> {
        let mut execution = execution::execute(task, &rates, choice, storage, rings)?;
        let cost = |p: usize, id: LayerId| processors[p].layer_ns(task.network, id, choice.rows[id.0]);
        couple(task, &rates, &mut execution, &cost)?;
        Ok(execution)
    };
    let execute = |choice: &Choice| -> Result<(Variant, u64), csdf::Error> {
        let execution = executed(choice, Rings::OnDemand)?;
        let alone = Storage { executions: vec![&execution], elements: &elements };
        let bound = alone.bound(&alone.items()).bytes;
        let stages = stage_times(task, processors, choice);
        let variant = Variant {
            name: choice.name.clone(),
            buffers: 0,
            period_ns: period(task, &stages),
            latency_ns: stages.iter().sum(),
            execution,
        };
        Ok((variant, bound))
    };
    let mut variants: Vec<(Variant, u64)> = choices.par_iter().map(execute).collect::<Result<_, _>>()?;
    variants.sort_by(|(a, _), (b, _)| a.period_ns.total_cmp(&b.period_ns));
    let mut least = u64::MAX;
    let mut placed = Vec::new();
    // With every layer by rows a search has most to gain: the smallest rings may yet make it the smallest of all.
    let mut by_rows = None;
    for (mut variant, bound) in variants {
        if variant.execution.rows.iter().all(|rows| *rows == 1) {
            by_rows = Some(Variant { buffers: u64::MAX, ..variant.clone() });
        }
        if bound < least {
            let alone = Storage { executions: vec![&variant.execution], elements: &elements };
            variant.buffers = storage::arrange(&alone, storage, Effort::Candidate).bytes;
            least = least.min(variant.buffers);
            placed.push(variant);
        }
    }
    let mut variants = undominated(placed);
    if storage == StorageModel::Tensors {
        variants.extend(by_rows);
        let tightened = variants.into_par_iter().map(|variant| {
            let execution = executed(&variant.choice(), Rings::Smallest)?;
            let alone = Storage { executions: vec![&execution], elements: &elements };
            let buffers = storage::arrange(&alone, storage, Effort::Front).bytes;
            let better = buffers <= variant.buffers;
            Ok(if better { Variant { execution, buffers, ..variant } } else { variant })
        });
        variants = undominated(tightened.collect::<Result<_, csdf::Error>>()?);
    }
    Ok(Front { variants, evaluations: choices.len() as u64 })
}

/// The variants that no faster one beats or equals in memory, the fastest first.
fn undominated(mut variants: Vec<Variant>) -> Vec<Variant> {
    variants.sort_by(|a, b| a.period_ns.total_cmp(&b.period_ns));
    let mut least = u64::MAX;
    variants.retain(|variant| {
        let better = variant.buffers < least;
        least = least.min(variant.buffers);
        better
    });
    variants
}

/// Modelled nanoseconds of one frame in each partition.
fn stage_times(task: &CnnTask<'_>, processors: &[&Processor], choice: &Choice) -> Vec<f64> {
    let stage = |(partition, processor): (&execution::PartitionTask, &&Processor)| {
        partition.layers.iter().map(|id| processor.layer_ns(task.network, *id, choice.rows[id.0])).sum()
    };
    task.partitions.iter().zip(processors).map(stage).collect()
}

/// Which partitions of this CNN run at the same time, pair by pair, as elements of J for the CNN alone.
fn own_elements(task: &CnnTask<'_>) -> Vec<Vec<(usize, usize)>> {
    let count = task.partitions.len();
    let pairs = (0..count).flat_map(|p| (p + 1..count).map(move |q| (p, q)));
    let mut elements: Vec<Vec<(usize, usize)>> =
        pairs.filter(|(p, q)| task.together[*p][*q]).map(|(p, q)| vec![(0, p), (0, q)]).collect();
    elements.extend((0..count).map(|p| vec![(0, p)]));
    elements
}

/// Time between frames: partitions that run at the same time overlap, the slowest counts; others add up.
fn period(task: &CnnTask<'_>, stages: &[f64]) -> f64 {
    let mut total = 0.0;
    let mut slowest = 0.0f64;
    for (p, stage) in stages.iter().enumerate() {
        if p > 0 && !task.together[p - 1][p] {
            total += slowest;
            slowest = 0.0;
        }
        slowest = slowest.max(*stage);
    }
    // A network of inputs alone takes no time; a nanosecond keeps its frame rate finite.
    (total + slowest).max(1.0)
}
