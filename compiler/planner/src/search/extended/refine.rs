//! Smaller choices near the smallest one, for streamed weights.
//!
//! A segment by parts has the weights of all its layers in memory. So it may pay to end a segment within a block of the
//! network, where several tensors are kept. Chains of segments end at cut tensors only. This search changes the segment
//! that takes the most bytes in each of the ways listed below. It takes the best change, and repeats this as long as a
//! change helps.

use csdfc_network::LayerId;
use rayon::prelude::*;

use crate::frame::choice::Choice;
use crate::frame::execution::{Execution, Rings};
use crate::frame::request::FiringOrder;
use crate::search::evaluate::Evaluator;
use crate::search::{DesignPoint, execution_variants};
use crate::storage::Effort;

/// Maximum number of changes, one after another.
const CHANGES: usize = 64;

/// A choice that takes fewer bytes than `smallest`, if changes of it lead there.
///
/// # Errors
/// Those of the dataflow analyses.
pub(super) fn refined(
    evaluator: &Evaluator<'_>,
    smallest: &DesignPoint,
) -> Result<Option<DesignPoint>, csdf::Error> {
    let start = Choice { one_by_one: None, ..smallest.choice() };
    if start.barriers.is_none() || evaluator.task.partitions.len() > 1 {
        return Ok(None);
    }
    // Layers that run ahead never take more memory. But running ahead may move the peak, and so change where the walk
    // ends.
    let mut best: Option<(u64, Choice)> = None;
    for rings in [Rings::OnDemand, Rings::Ahead] {
        let choice = walk(evaluator, start.clone(), rings)?;
        let bytes = evaluator.bound(&evaluator.execute(&choice, Rings::Ahead)?);
        if best.as_ref().is_none_or(|(least, _)| bytes < *least) {
            best = Some((bytes, choice));
        }
    }
    let Some((_, choice)) = best.filter(|(bytes, _)| *bytes < smallest.buffers) else { return Ok(None) };
    let execution = evaluator.execute(&choice, Rings::Smallest)?;
    let all = execution.costly();
    let design_point =
        execution_variants::placed(evaluator, &choice, &execution, &all, Rings::Smallest, Effort::Final)?;
    Ok((design_point.buffers < smallest.buffers).then_some(design_point))
}

/// Changes a choice as long as the best change takes fewer bytes.
fn walk(evaluator: &Evaluator<'_>, mut choice: Choice, rings: Rings) -> Result<Choice, csdf::Error> {
    let mut execution = evaluator.execute(&choice, rings)?;
    for _ in 0..CHANGES {
        let (bytes, layer) = peak(evaluator, &execution);
        let Some(layer) = layer else { break };
        let changed = changes(evaluator, &choice, layer);
        let tried = changed.into_par_iter().map(|choice| {
            let execution = evaluator.execute(&choice, rings)?;
            Ok((evaluator.bound(&execution), choice, execution))
        });
        let tried: Vec<(u64, Choice, Execution)> = tried.collect::<Result<_, csdf::Error>>()?;
        // If several are equal, it is the first.
        let Some(best) = tried.into_iter().min_by_key(|(bytes, ..)| *bytes).filter(|best| best.0 < bytes)
        else {
            break;
        };
        (_, choice, execution) = best;
    }
    Ok(choice)
}

/// The most bytes of an execution that are in use at once, and the layer that fires then.
fn peak(evaluator: &Evaluator<'_>, execution: &Execution) -> (u64, Option<LayerId>) {
    let peak = evaluator.peak(execution);
    let firing = peak.firings.first().map(|(_, firing)| *firing);
    let layer = firing.and_then(|firing| execution.orders.iter().flat_map(FiringOrder::order).nth(firing));
    (peak.bytes, layer)
}

/// Choices that differ from this one in the segment of a layer: the segment ends earlier or later; it is cut in two,
/// and one of the two may go whole; or one of its layers goes whole, or row by row.
fn changes(evaluator: &Evaluator<'_>, choice: &Choice, layer: LayerId) -> Vec<Choice> {
    let network = evaluator.task.network;
    let layers = &evaluator.task.partitions[0].layers;
    let barriers = choice.barriers.clone().unwrap_or_default();
    let place = layers.iter().position(|id| *id == layer).unwrap_or(0);
    let ends = |at: &usize| barriers.binary_search(&layers[*at]).is_ok();
    let start = (0..place).rev().find(ends).map_or(0, |before| before + 1);
    let end = (place..layers.len()).find(ends).unwrap_or(layers.len() - 1);
    let mut all = Vec::new();
    let height = |at: usize| network.layer(layers[at]).rows() as u64;
    let mut push = |toggled: &[usize], whole: std::ops::Range<usize>, single: std::ops::Range<usize>| {
        let mut choice = Choice { name: "refined".into(), ..choice.clone() };
        let ends = choice.barriers.get_or_insert_default();
        for at in toggled {
            match ends.binary_search(&layers[*at]) {
                Ok(found) => drop(ends.remove(found)),
                Err(missing) => ends.insert(missing, layers[*at]),
            }
        }
        whole.for_each(|at| choice.rows[layers[at].0] = height(at));
        single.for_each(|at| choice.rows[layers[at].0] = 1);
        all.push(choice);
    };
    for cut in start..end {
        push(&[cut], 0..0, 0..0);
        push(&[cut], start..cut + 1, 0..0);
        push(&[cut], cut + 1..end + 1, 0..0);
        push(&[cut], 0..0, start..end + 1);
        for second in cut + 1..end {
            push(&[cut, second], 0..0, 0..0);
            push(&[cut, second], cut + 1..second + 1, 0..0);
        }
    }
    for at in start..=end {
        push(&[], at..at + 1, 0..0);
        push(&[], 0..0, at..at + 1);
    }
    push(&[], 0..0, start..end + 1);
    push(&[], start..end + 1, 0..0);
    // With the neighbouring segments, or a part of them.
    if start > 0 {
        let before = (0..start - 1).rev().find(ends).map_or(0, |before| before + 1);
        push(&[start - 1], 0..0, before..end + 1);
        for cut in before..start - 1 {
            push(&[cut, start - 1], 0..0, cut + 1..end + 1);
        }
    }
    if end + 1 < layers.len() {
        let after = (end + 1..layers.len()).find(ends).unwrap_or(layers.len() - 1);
        push(&[end], 0..0, start..after + 1);
        for cut in end + 1..after {
            push(&[cut, end], 0..0, start..cut + 1);
        }
    }
    all
}
