//! Assignments: pairs of rows and columns with the largest total worth.

use super::budget::Meter;

/// Looks at a pair that are worth one step.
pub(super) const LOOKS_A_STEP: u64 = 4;

/// The largest total worth of pairs of a row and a column, where each row and each column is in at most one pair.
/// `worth` has the worth of each pair by row and column. It is at least 0, and all rows have the same length. `None` if
/// the budget ends, or if it has spent `end` steps before the answer is known. It takes O(r² · (r + c)) time for r rows
/// and c columns.
///
/// Rows come one by one, each on the cheapest way past those before it (Kuhn, The Hungarian method for the assignment
/// problem, 1955; as shortest paths: Jonker and Volgenant, A shortest augmenting path algorithm for dense and sparse
/// linear assignment problems, 1987).
pub(super) fn max_worth(worth: &[Vec<i64>], end: u64, budget: &mut Meter) -> Option<i64> {
    let rows = worth.len();
    let real = worth.first().map_or(0, Vec::len);
    // A row may go with a column that is worth nothing. A row that comes in starts at the last column.
    let columns = real + rows;
    let cost = |row: usize, column: usize| worth[row].get(column).map_or(0, |worth| -worth);
    let mut row_of: Vec<Option<usize>> = vec![None; columns + 1];
    let mut row_prices = vec![0; rows];
    let mut prices = vec![0; columns + 1];
    for row in 0..rows {
        if budget.spent() >= end || budget.exhausted() {
            return None;
        }
        row_of[columns] = Some(row);
        let mut at = columns;
        let mut way = vec![columns; columns];
        let mut dearer = vec![i64::MAX; columns];
        let mut seen = vec![false; columns + 1];
        while let Some(from) = row_of[at] {
            seen[at] = true;
            budget.spend(columns as u64 / LOOKS_A_STEP);
            let open: Vec<usize> = (0..columns).filter(|column| !seen[*column]).collect();
            for &column in &open {
                let more = cost(from, column) - row_prices[from] - prices[column];
                if more < dearer[column] {
                    (dearer[column], way[column]) = (more, at);
                }
            }
            let next = open.iter().copied().min_by_key(|column| dearer[*column])?;
            let more = dearer[next];
            for column in (0..=columns).filter(|column| seen[*column]) {
                prices[column] -= more;
                if let Some(row) = row_of[column] {
                    row_prices[row] += more;
                }
            }
            open.iter().for_each(|column| dearer[*column] -= more);
            at = next;
        }
        while at < columns {
            row_of[at] = row_of[way[at]];
            at = way[at];
        }
    }
    let pairs = row_of[..real].iter().enumerate();
    Some(pairs.filter_map(|(column, row)| Some(worth[(*row)?][column])).sum())
}
