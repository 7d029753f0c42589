//! The method of Pisarchyk and Lee (2020, the paper's \[23\]) as published: greedy by size for offset calculation,
//! within one CNN. The layers of the CNN run one after another, and each makes its whole tensor.

use csdfc_command::error::Error;
use csdfc_input::app::resolve::Application;
use csdfc_plan::plan::StorageModel;
use csdfc_planner::frame::choice::Choice;
use csdfc_planner::frame::execution::{self, Rings};
use csdfc_planner::frame::lower::RateTable;
use csdfc_planner::frame::task;
use csdfc_planner::search::baseline;
use csdfc_planner::storage::Storage;

/// Bytes of all CNNs' arenas together: a place for every edge (model `edges`) or every tensor (`tensors`).
///
/// # Errors
/// Those of the dataflow analyses.
pub fn arenas(application: &Application, model: StorageModel) -> Result<u64, Error> {
    let application = baseline::without_pipelines(application);
    let mut bytes = 0;
    for task in task::tasks(&application) {
        let choice = Choice::none(task.network);
        let rates = RateTable::new(task.network);
        let execution = execution::execute(&task, &rates, &choice, model, Rings::OnDemand)?;
        let alone = Storage { executions: vec![&execution], elements: &[] };
        let items = alone.items();
        let sizes: Vec<u64> = items.iter().map(|item| item.request.bytes).collect();
        bytes += by_size(&sizes, &alone.conflicts(&items));
    }
    Ok(bytes)
}

/// The end of the highest block. Blocks are placed by falling size. Each takes the smallest gap in which it fits, among
/// the blocks that are in use at the same time; of equal gaps, it takes the lowest. If it fits in no gap, it lies above
/// all these blocks.
fn by_size(sizes: &[u64], conflicts: &[Vec<usize>]) -> u64 {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|block| std::cmp::Reverse(sizes[*block]));
    let mut placed: Vec<Option<u64>> = vec![None; sizes.len()];
    let mut highest = 0;
    for block in order {
        let met = conflicts[block].iter().filter_map(|&other| Some((placed[other]?, sizes[other])));
        let mut met: Vec<(u64, u64)> = met.collect();
        met.sort_unstable();
        let (mut end, mut best) = (0, None);
        for (offset, size) in met {
            let gap = offset.saturating_sub(end);
            if gap >= sizes[block] && best.is_none_or(|(smallest, _)| gap < smallest) {
                best = Some((gap, end));
            }
            end = end.max(offset + size);
        }
        let offset = best.map_or(end, |(_, offset)| offset);
        placed[block] = Some(offset);
        highest = highest.max(offset + sizes[block]);
    }
    highest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five blocks lie one above the other; then the second, of 8, and the fourth, of 5, make room for blocks of 5, 4 and 4.
    /// Had the first of these taken the lowest gap, the last would lie above all.
    #[test]
    fn the_smallest_gap_is_taken() {
        let sizes = [10, 8, 7, 5, 5, 5, 4, 4];
        let meet = |a: usize, b: usize| {
            let is_early = |block: usize| block < 5;
            let stays = |block: usize| [0, 2, 4].contains(&block);
            match (is_early(a), is_early(b)) {
                (true, true) | (false, false) => a != b,
                (true, false) => stays(a),
                (false, true) => stays(b),
            }
        };
        let conflicts: Vec<Vec<usize>> = (0..8).map(|a| (0..8).filter(|&b| meet(a, b)).collect()).collect();
        assert_eq!(by_size(&sizes, &conflicts), 35);
    }
}
