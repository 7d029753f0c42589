//! The simple plans, without a search: no parts, all parts, and for every prefix of the layers "prefix by rows, rest
//! layer by layer".

use rayon::prelude::*;

use crate::cost::Processor;
use crate::execution::{CnnTask, Execution, Rings};
use crate::network::Network;
use crate::search::Variant;
use crate::search::choice::Choice;
use crate::search::evaluate::Evaluator;
use crate::search::watch::Stopped;
use crate::search::ways::{self, Way};
use crate::storage::Effort;
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
    (rows != choice.rows).then(|| Choice { name, rows, ..choice.clone() })
}

/// The variants of a CNN that are worth choosing.
#[derive(Debug)]
pub struct Front {
    /// Those that no faster choice beats in memory, the fastest first.
    pub variants: Vec<Variant>,
    /// Choices that were evaluated.
    pub evaluations: u64,
    /// Why no more were.
    pub stopped: Stopped,
}

impl Front {
    /// Takes in what else was evaluated.
    pub fn join(&mut self, more: Front) {
        self.evaluations += more.evaluations;
        self.variants.extend(more.variants);
        self.variants = undominated(std::mem::take(&mut self.variants));
    }
}

/// Evaluates the simple choices for one CNN, each of its partitions on the processor given.
///
/// # Errors
/// Those of the dataflow analyses.
pub fn front(
    task: &CnnTask<'_>,
    processors: &[&Processor],
    storage: StorageModel,
) -> Result<Front, csdf::Error> {
    front_of(task, processors, storage, &choices(task.network))
}

/// Evaluates choices; in storage model `tensors` the best of them with whole inputs too (in `edges` a whole input is a
/// whole buffer, which no plan gains from).
///
/// # Errors
/// Those of the dataflow analyses.
pub fn front_of(
    task: &CnnTask<'_>,
    processors: &[&Processor],
    storage: StorageModel,
    choices: &[Choice],
) -> Result<Front, csdf::Error> {
    let mut front = evaluate(task, processors, choices, storage)?;
    if storage == StorageModel::Tensors {
        let whole: Vec<Choice> =
            front.variants.iter().filter_map(|best| inputs_whole(task.network, &best.choice())).collect();
        front.join(evaluate(task, processors, &whole, storage)?);
    }
    Ok(front)
}

/// Evaluates choices for one CNN, each in the ways that it leaves open, in parallel and in order. Only those whose
/// liveness bound leaves hope are placed, and of those only the undominated get the smallest rings (in storage model
/// `edges` they keep those of the execution on demand, which is the paper's).
///
/// # Errors
/// Those of the dataflow analyses.
pub fn evaluate(
    task: &CnnTask<'_>,
    processors: &[&Processor],
    choices: &[Choice],
    storage: StorageModel,
) -> Result<Front, csdf::Error> {
    let evaluator = Evaluator::new(task, processors, storage);
    let execute = |choice: &Choice| -> Result<(Execution, Vec<Way>), csdf::Error> {
        let mut execution = evaluator.execute(choice, Rings::OnDemand)?;
        let ways = ways::ways(&evaluator, choice, &mut execution);
        Ok((execution, ways))
    };
    let executed: Vec<(Execution, Vec<Way>)> = choices.par_iter().map(execute).collect::<Result<_, _>>()?;
    let mut all: Vec<(&Choice, &Execution, &Way)> = Vec::new();
    for (choice, (execution, ways)) in choices.iter().zip(&executed) {
        all.extend(ways.iter().map(|way| (choice, execution, way)));
    }
    all.sort_by(|(.., a), (.., b)| a.period_ns.total_cmp(&b.period_ns));
    let mut least = u64::MAX;
    let mut placed = Vec::new();
    // With every layer by rows a search has most to gain: the smallest rings may yet make it the smallest of all.
    let mut by_rows = None;
    for (choice, execution, way) in all {
        if execution.rows.iter().all(|rows| *rows == 1) {
            by_rows = Some(evaluator.variant(choice, execution.clone(), u64::MAX));
        }
        if way.bound < least {
            let (rings, effort) = (Rings::OnDemand, Effort::Candidate);
            let variant = ways::placed(&evaluator, choice, execution, &way.one_by_one, rings, effort)?;
            least = least.min(variant.buffers);
            placed.push(variant);
        }
    }
    let mut variants = undominated(placed);
    if storage == StorageModel::Tensors {
        variants.extend(by_rows);
        let tightened = variants.into_par_iter().map(|variant| {
            let choice = variant.choice();
            let execution = evaluator.execute(&choice, Rings::Smallest)?;
            let buffers = evaluator.buffers(&execution, Effort::Front);
            let better = buffers <= variant.buffers;
            Ok(if better { evaluator.variant(&choice, execution, buffers) } else { variant })
        });
        variants = undominated(tightened.collect::<Result<_, csdf::Error>>()?);
    }
    Ok(Front { variants, evaluations: choices.len() as u64, stopped: Stopped::Complete })
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
