//! Smaller choices near the smallest one, for streamed weights.
//!
//! A segment by parts has the weights of all its layers in memory. So it may pay to end a segment within a block of the
//! network, where several tensors are kept. Chains of segments end at cut tensors only. This search changes the segment
//! that takes the most bytes in each of the ways listed below. It takes the best change, and repeats this as long as a
//! change helps.

use std::ops::Range;

use csdfc_network::{LayerId, Network};
use rayon::prelude::*;

use crate::frame::choice::Choice;
use crate::frame::execution::{Execution, Rings};
use crate::frame::request::FiringOrder;
use crate::search::evaluate::Evaluator;
use crate::search::watch::Watch;
use crate::search::{DesignPoint, execution_variants};
use crate::storage::Effort;

/// Maximum number of changes, one after another.
const CHANGES: usize = 64;

/// If a segment can be cut in three in at most so many ways, they are tried at once with all other changes.
const AT_ONCE: usize = 1000;

/// A choice that takes fewer bytes than `smallest`, if changes of it lead there.
///
/// # Errors
/// Those of the dataflow analyses.
pub(super) fn refined(
    evaluator: &Evaluator<'_>,
    smallest: &DesignPoint,
    watch: &Watch<'_>,
) -> Result<Option<DesignPoint>, csdf::Error> {
    let start = Choice { one_by_one: None, ..smallest.choice() };
    if start.barriers.is_none() || evaluator.task.partitions.len() > 1 {
        return Ok(None);
    }
    // Layers that run ahead never take more memory. But running ahead may move the peak, and so change where the walk
    // ends.
    let mut walked: Vec<(u64, Choice)> = Vec::new();
    for rings in [Rings::OnDemand, Rings::Ahead] {
        for choice in walk(evaluator, start.clone(), rings, watch)? {
            if walked.iter().all(|(_, before)| *before != choice) {
                walked.push((evaluator.bound(&evaluator.execute(&choice, Rings::Ahead)?), choice));
            }
        }
    }
    walked.sort_by_key(|(bound, _)| *bound);
    // Where the bound is lowest, there may be no way to place the rings in so few bytes.
    let mut best: Option<DesignPoint> = None;
    for (bound, choice) in walked {
        let least = best.as_ref().unwrap_or(smallest).buffers;
        if bound >= least || watch.is_over() {
            break;
        }
        let execution = evaluator.execute(&choice, Rings::Smallest)?;
        let all = execution.costly();
        let design_point =
            execution_variants::placed(evaluator, &choice, &execution, &all, Rings::Smallest, Effort::Final)?;
        if design_point.buffers < least {
            best = Some(design_point);
        }
    }
    Ok(best)
}

/// Changes a choice as long as the best change takes fewer bytes. Returns the choice after each change. A long segment can
/// be cut in three in thousands of ways, which are tried only if no other change helps.
fn walk(
    evaluator: &Evaluator<'_>,
    start: Choice,
    rings: Rings,
    watch: &Watch<'_>,
) -> Result<Vec<Choice>, csdf::Error> {
    let mut execution = evaluator.execute(&start, rings)?;
    let mut choice = start;
    let mut seen = Vec::new();
    for _ in 0..CHANGES {
        let (bytes, layer) = peak(evaluator, &execution);
        let Some(layer) = layer else { break };
        let segment = ChangedSegment::new(evaluator, &choice, layer);
        let (mut changes, mut others) = (segment.changes(), segment.cut_twice());
        if others.len() <= AT_ONCE {
            changes.append(&mut others);
        }
        let best = match smallest(evaluator, changes, rings, bytes, watch)? {
            None => smallest(evaluator, others, rings, bytes, watch)?,
            best => best,
        };
        let Some(best) = best else { break };
        (choice, execution) = best;
        seen.push(choice.clone());
    }
    Ok(seen)
}

/// The choice that takes the fewest bytes, and its execution; `None` if it takes no fewer than `most`. If several take as
/// few, it is the first. Once the search is over, no more are tried.
fn smallest(
    evaluator: &Evaluator<'_>,
    choices: Vec<Choice>,
    rings: Rings,
    most: u64,
    watch: &Watch<'_>,
) -> Result<Option<(Choice, Execution)>, csdf::Error> {
    let tried = choices.into_par_iter().filter(|_| !watch.is_over()).map(|choice| {
        let execution = evaluator.execute(&choice, rings)?;
        Ok((evaluator.bound(&execution), choice, execution))
    });
    let tried: Vec<(u64, Choice, Execution)> = tried.collect::<Result<_, csdf::Error>>()?;
    let best = tried.into_iter().min_by_key(|(bytes, ..)| *bytes).filter(|best| best.0 < most);
    Ok(best.map(|(_, choice, execution)| (choice, execution)))
}

/// The most bytes of an execution that are in use at once, and the layer that fires then.
fn peak(evaluator: &Evaluator<'_>, execution: &Execution) -> (u64, Option<LayerId>) {
    let peak = evaluator.peak(execution);
    let firing = peak.firings.first().map(|(_, firing)| *firing);
    let layer = firing.and_then(|firing| execution.orders.iter().flat_map(FiringOrder::order).nth(firing));
    (peak.bytes, layer)
}

/// The segment of a choice that is changed, by places in the order of layers.
struct ChangedSegment<'a> {
    network: &'a Network,
    layers: &'a [LayerId],
    choice: &'a Choice,
    /// Its first and its last place.
    own: (usize, usize),
    /// Where the segment before it starts, and where the one after it ends.
    neighbours: (Option<usize>, Option<usize>),
}

impl<'a> ChangedSegment<'a> {
    /// The segment in which a layer is.
    fn new(evaluator: &'a Evaluator<'_>, choice: &'a Choice, layer: LayerId) -> Self {
        let layers = &evaluator.task.partitions[0].layers;
        let barriers = choice.barriers.as_deref().unwrap_or_default();
        let ends = |at: &usize| barriers.binary_search(&layers[*at]).is_ok();
        let start_of = |at: usize| (0..at).rev().find(ends).map_or(0, |before| before + 1);
        let end_of = |at: usize| (at..layers.len()).find(ends).unwrap_or(layers.len() - 1);
        let place = layers.iter().position(|id| *id == layer).unwrap_or(0);
        let (start, end) = (start_of(place), end_of(place));
        let before = start.checked_sub(1).map(start_of);
        let after = (end + 1 < layers.len()).then(|| end_of(end + 1));
        let network = evaluator.task.network;
        ChangedSegment { network, layers, choice, own: (start, end), neighbours: (before, after) }
    }

    /// The choice in which segments end after the `toggled` places if they do not yet, and the other way round. The layers
    /// of `whole` make all rows at once, and those of `single` one row at a time.
    fn changed(&self, toggled: &[usize], whole: Range<usize>, single: Range<usize>) -> Choice {
        let mut choice = Choice { name: "refined".into(), ..self.choice.clone() };
        let ends = choice.barriers.get_or_insert_default();
        for at in toggled {
            match ends.binary_search(&self.layers[*at]) {
                Ok(found) => drop(ends.remove(found)),
                Err(missing) => ends.insert(missing, self.layers[*at]),
            }
        }
        for id in &self.layers[whole] {
            choice.rows[id.0] = self.network.layer(*id).rows() as u64;
        }
        self.layers[single].iter().for_each(|id| choice.rows[id.0] = 1);
        choice
    }

    /// The segment ends earlier or later; it is cut in two, and one of the two may go whole; or one of its layers, or all
    /// of them, go whole, or row by row.
    fn changes(&self) -> Vec<Choice> {
        let (start, end) = self.own;
        let mut all = Vec::new();
        for cut in start..end {
            all.push(self.changed(&[cut], 0..0, 0..0));
            all.push(self.changed(&[cut], start..cut + 1, 0..0));
            all.push(self.changed(&[cut], cut + 1..end + 1, 0..0));
            all.push(self.changed(&[cut], 0..0, start..end + 1));
        }
        for at in start..=end {
            all.push(self.changed(&[], at..at + 1, 0..0));
            all.push(self.changed(&[], 0..0, at..at + 1));
        }
        all.push(self.changed(&[], 0..0, start..end + 1));
        all.push(self.changed(&[], start..end + 1, 0..0));
        // With the neighbouring segments, or a part of them.
        if let Some(before) = self.neighbours.0 {
            all.push(self.changed(&[start - 1], 0..0, before..end + 1));
            all.extend(
                (before..start - 1).map(|cut| self.changed(&[cut, start - 1], 0..0, cut + 1..end + 1)),
            );
        }
        if let Some(after) = self.neighbours.1 {
            all.push(self.changed(&[end], 0..0, start..after + 1));
            all.extend((end + 1..after).map(|cut| self.changed(&[cut, end], 0..0, start..cut + 1)));
        }
        all
    }

    /// The segment is cut in three, and the one in the middle may go whole.
    fn cut_twice(&self) -> Vec<Choice> {
        let (start, end) = self.own;
        let pairs = (start..end).flat_map(|cut| (cut + 1..end).map(move |second| (cut, second)));
        let both = pairs.flat_map(|(cut, second)| {
            [0..0, cut + 1..second + 1].map(|whole| self.changed(&[cut, second], whole, 0..0))
        });
        both.collect()
    }
}
