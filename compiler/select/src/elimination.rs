//! The least sum of tables, by elimination of one variable after another.
//!
//! The tables of a variable are added up, and the sum is minimised over the variable. The result is a table over the
//! neighbouring variables, the *message*. With degree 1 and 2 these are the reductions RI and RII of PBQP solvers
//! (Hames and Scholz, *Nearly Optimal Register Allocation with PBQP*, 2006); with a higher degree the message has more
//! variables. Variables with small messages are eliminated first. On chains a message has one variable, on inception
//! modules and residual blocks two or three. So elimination is exact for such networks, and takes time in the number of
//! layers.
//!
//! If a message would have too many cells, the tables of the variable are divided among several sums, and each sum is
//! minimised by itself (*mini-buckets*: Dechter and Rish, *Mini-Buckets: A General Scheme for Bounded Inference*,
//! Journal of the ACM 50(2), 2003). The least sum is then a lower bound. A depth-first search goes on from there (Kask
//! and Dechter 2001). It gives the variables their values in the reverse order. Each value loses something against the
//! messages, and these losses add up to the difference from the bound. If no tables were divided, some value of each
//! variable loses nothing, and the first descent is optimal.
//!
//! A layer that writes one of two layouts, and one that reads one of them:
//!
//! ```
//! use csdfc_select::elimination::Tree;
//! use csdfc_select::stop::Stop;
//!
//! // The times of the first layer, of the second, and of the conversion from one layout to another.
//! let tables = [vec![90, 40], vec![70, 80], vec![0, 5, 50, 0]];
//! let tree = Tree::new(vec![2, 2], &[&[0], &[1], &[0, 1]], 1 << 18);
//! let messages = tree.messages(&tables);
//! assert_eq!(messages.bound, 40 + 80);
//! let found = tree.search(&tables, &messages, 1000, Stop::never()).ok_or("nothing is possible")?;
//! assert_eq!((found.values, found.optimal), (vec![1, 1], true));
//! # Ok::<(), &str>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::stop::Stop;

/// Variables with more tables than this are eliminated last.
const MANY_TABLES: usize = 64;

/// How variables are eliminated. Tables are numbered as they were given.
#[derive(Debug)]
pub struct Tree {
    /// Values of each variable.
    pub sizes: Vec<usize>,
    /// Sums, each minimised over one variable, in the order in which they are computed.
    pub buckets: Vec<Bucket>,
    /// Variables in the order in which they are eliminated.
    order: Vec<usize>,
    /// The buckets of each variable.
    of_variable: Vec<Vec<usize>>,
}

/// A sum of tables and messages that is minimised over one variable.
#[derive(Debug)]
pub struct Bucket {
    /// The variables of its message, then the variable that is eliminated. The last one varies fastest.
    pub scope: Vec<usize>,
    /// The parts that are added up.
    pub parts: Vec<Part>,
}

/// A table or message as part of a bucket.
#[derive(Debug)]
pub struct Part {
    /// The table or message.
    pub source: Source,
    /// The distance of its cells, for each variable of the bucket's scope.
    strides: Vec<usize>,
}

/// A part of the sum of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A table that was given.
    Table(usize),
    /// The message of an earlier bucket.
    Message(usize),
}

/// The messages of all buckets.
#[derive(Debug)]
pub struct Messages {
    /// Cells of each message; `u128::MAX` is impossible.
    pub cells: Vec<Vec<u128>>,
    /// No sum is below this; it is the least sum if the tree is exact. `u128::MAX` if nothing is possible.
    pub bound: u128,
}

/// What a search found.
#[derive(Debug)]
pub struct Found {
    /// A value of each variable.
    pub values: Vec<usize>,
    /// Whether no sum is less.
    pub optimal: bool,
}

impl Tree {
    /// Orders the variables for tables with these scopes. A sum that would have more than `most_cells` cells is
    /// divided.
    pub fn new(sizes: Vec<usize>, scopes: &[&[usize]], most_cells: usize) -> Tree {
        let count = sizes.len();
        let mut live: BTreeMap<usize, (Vec<usize>, Source)> = BTreeMap::new();
        let mut of: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); count];
        for (table, scope) in scopes.iter().enumerate() {
            let mut scope = scope.to_vec();
            scope.sort_unstable();
            scope.dedup();
            for variable in &scope {
                of[*variable].insert(table);
            }
            live.insert(table, (scope, Source::Table(table)));
        }
        let joined =
            |variable: usize, of: &[BTreeSet<usize>], live: &BTreeMap<usize, (Vec<usize>, Source)>| {
                let scope: BTreeSet<usize> =
                    of[variable].iter().flat_map(|id| live[id].0.iter().copied()).collect();
                scope
            };
        let cells = |scope: &BTreeSet<usize>| {
            scope.iter().fold(1_usize, |cells, at| cells.saturating_mul(sizes[*at]))
        };
        // A variable with many tables waits, since counting its cells again and again would take long.
        let cost =
            |variable: usize, of: &[BTreeSet<usize>], live: &BTreeMap<usize, (Vec<usize>, Source)>| match of
                [variable]
                .len()
                > MANY_TABLES
            {
                true => usize::MAX,
                false => cells(&joined(variable, of, live)),
            };
        let mut costs: Vec<usize> = (0..count).map(|variable| cost(variable, &of, &live)).collect();
        let mut queue: BTreeSet<(usize, usize)> =
            costs.iter().enumerate().map(|(variable, cost)| (*cost, variable)).collect();
        let (mut buckets, mut order) = (Vec::new(), Vec::new());
        let mut of_variable = vec![Vec::new(); count];
        let mut next = scopes.len();
        while let Some((_, variable)) = queue.pop_first() {
            order.push(variable);
            let neighbours = joined(variable, &of, &live);
            let mut ids: Vec<usize> = of[variable].iter().copied().collect();
            ids.sort_by_key(|id| std::cmp::Reverse(live[id].0.len()));
            // The widest tables come first. Each goes to the latest sum if it fits there.
            let mut groups: Vec<(BTreeSet<usize>, Vec<usize>)> = Vec::new();
            for id in ids {
                let own = &live[&id].0;
                if let Some((scope, members)) = groups.last_mut() {
                    let with: BTreeSet<usize> = scope.iter().chain(own).copied().collect();
                    if cells(&with) <= most_cells {
                        *scope = with;
                        members.push(id);
                        continue;
                    }
                }
                groups.push((own.iter().copied().collect(), vec![id]));
            }
            for (scope, mut members) in groups {
                members.sort_unstable();
                let mut scope: Vec<usize> = scope.into_iter().filter(|other| *other != variable).collect();
                let message = scope.clone();
                scope.push(variable);
                let mut parts = Vec::new();
                for id in members {
                    let Some((of_part, source)) = live.remove(&id) else { continue };
                    let layout = match source {
                        Source::Table(table) => scopes[table].to_vec(),
                        Source::Message(_) => of_part.clone(),
                    };
                    parts.push(Part { source, strides: strides(&scope, &layout, &sizes) });
                    for other in of_part {
                        of[other].remove(&id);
                    }
                }
                for other in &message {
                    of[*other].insert(next);
                }
                if !message.is_empty() {
                    live.insert(next, (message, Source::Message(buckets.len())));
                }
                next += 1;
                of_variable[variable].push(buckets.len());
                buckets.push(Bucket { scope, parts });
            }
            for other in neighbours.into_iter().filter(|other| *other != variable) {
                queue.remove(&(costs[other], other));
                costs[other] = cost(other, &of, &live);
                queue.insert((costs[other], other));
            }
        }
        Tree { sizes, buckets, order, of_variable }
    }

    /// Whether no sum was divided, so that the bound is the least sum.
    pub fn is_exact(&self) -> bool {
        self.of_variable.iter().all(|buckets| buckets.len() <= 1)
    }

    /// Cells of all sums.
    pub fn cells(&self) -> usize {
        self.buckets.iter().map(|bucket| self.scope_cells(&bucket.scope)).sum()
    }

    /// The place in a table over `scope` of these values of all variables.
    pub fn place(&self, scope: &[usize], values: &[usize]) -> usize {
        scope.iter().fold(0, |place, variable| place * self.sizes[*variable] + values[*variable])
    }

    /// Calls `visit` for every combination of values of a bucket's variables, in order: with its place, and with the place
    /// of the cell of each part.
    pub fn visit(&self, bucket: &Bucket, mut visit: impl FnMut(usize, &[usize])) {
        let mut values = vec![0; bucket.scope.len()];
        let mut places = vec![0; bucket.parts.len()];
        for place in 0..self.scope_cells(&bucket.scope) {
            visit(place, &places);
            for digit in (0..values.len()).rev() {
                values[digit] += 1;
                let size = self.sizes[bucket.scope[digit]];
                let carries = values[digit] == size;
                for (place, part) in places.iter_mut().zip(&bucket.parts) {
                    match carries {
                        true => *place -= part.strides[digit] * (size - 1),
                        false => *place += part.strides[digit],
                    }
                }
                if !carries {
                    break;
                }
                values[digit] = 0;
            }
        }
    }

    /// All messages for tables of these cells, in which `u128::MAX` is impossible.
    pub fn messages(&self, tables: &[Vec<u128>]) -> Messages {
        let mut messages = self.no_messages();
        self.buckets.iter().for_each(|bucket| self.add_message(bucket, tables, &mut messages));
        messages
    }

    /// [`Tree::messages`], or `None` if somebody has asked for the end before they were known.
    pub fn messages_until(&self, tables: &[Vec<u128>], stop: Stop<'_>) -> Option<Messages> {
        let mut messages = self.no_messages();
        for bucket in &self.buckets {
            if stop.is_asked() {
                return None;
            }
            self.add_message(bucket, tables, &mut messages);
        }
        Some(messages)
    }

    fn no_messages(&self) -> Messages {
        Messages { cells: Vec::with_capacity(self.buckets.len()), bound: 0 }
    }

    /// Adds the message of a bucket to those of all buckets before it.
    fn add_message(&self, bucket: &Bucket, tables: &[Vec<u128>], messages: &mut Messages) {
        let values = self.eliminated(bucket);
        let mut cells = vec![u128::MAX; self.message_cells(bucket)];
        self.visit(bucket, |place, parts| {
            let sum = messages.sum(tables, bucket, parts);
            let cell = &mut cells[place / values];
            *cell = sum.min(*cell);
        });
        if bucket.scope.len() == 1 {
            messages.bound = messages.bound.saturating_add(cells.first().copied().unwrap_or(u128::MAX));
        }
        messages.cells.push(cells);
    }

    /// Values that give the least sum, or a small sum after `most_steps` steps, or once somebody asks for the end. `None` if
    /// the messages say that nothing is possible, or nothing possible was found.
    pub fn search(
        &self,
        tables: &[Vec<u128>],
        messages: &Messages,
        most_steps: usize,
        stop: Stop<'_>,
    ) -> Option<Found> {
        if messages.bound == u128::MAX {
            return None;
        }
        /// A variable whose values are tried.
        struct Level {
            /// Values with their losses, the best last.
            values: Vec<(u128, usize)>,
            /// The losses of the variables before it.
            lost: u128,
        }
        let mut values = vec![0; self.sizes.len()];
        let mut best: Option<(u128, Vec<usize>)> = None;
        let mut levels: Vec<Level> = Vec::new();
        let mut lost = 0;
        let mut steps = 0;
        loop {
            let depth = levels.len();
            if depth == self.order.len() {
                best = Some((lost, values.clone()));
                if lost == 0 {
                    break;
                }
            } else {
                let variable = self.order[self.order.len() - 1 - depth];
                levels.push(Level { values: self.losses(variable, &mut values, tables, messages), lost });
            }
            // The next value that may still lead to a smaller sum than the best.
            let bar = best.as_ref().map_or(u128::MAX, |(lost, _)| *lost);
            let next = loop {
                let Some(level) = levels.last_mut() else { break None };
                match level.values.pop() {
                    Some((loss, value)) if level.lost.saturating_add(loss) < bar => {
                        break Some((level.lost + loss, value));
                    }
                    _ => drop(levels.pop()),
                }
            };
            let Some((sum, value)) = next else { break };
            steps += 1;
            // Even then it has the steps of a first descent.
            let most_steps = if stop.is_asked() { 0 } else { most_steps };
            if steps > most_steps.max(2 * self.order.len()) {
                return best.map(|(_, values)| Found { values, optimal: false });
            }
            lost = sum;
            values[self.order[self.order.len() - levels.len()]] = value;
        }
        best.map(|(_, values)| Found { values, optimal: true })
    }

    /// The loss of each value of a variable, given the values of all variables that are eliminated later, from most to
    /// least.
    fn losses(
        &self,
        variable: usize,
        values: &mut [usize],
        tables: &[Vec<u128>],
        messages: &Messages,
    ) -> Vec<(u128, usize)> {
        let mut losses = Vec::new();
        for value in (0..self.sizes[variable]).rev() {
            values[variable] = value;
            let mut lost: u128 = 0;
            for &at in &self.of_variable[variable] {
                let bucket = &self.buckets[at];
                let places: Vec<usize> =
                    bucket.parts.iter().map(|part| part.at(&bucket.scope, values)).collect();
                let least = messages.cells[at][self.place(&bucket.scope[..bucket.scope.len() - 1], values)];
                lost = lost.saturating_add(messages.sum(tables, bucket, &places).saturating_sub(least));
            }
            // If a value is impossible, its difference to a sum is not exact, but far above all sums.
            if lost < u128::MAX / 2 {
                losses.push((lost, value));
            }
        }
        // The sort is stable: of equal values, the first is best.
        losses.sort_by_key(|(lost, _)| std::cmp::Reverse(*lost));
        losses
    }

    /// For each bucket and combination of values, the least sum of all tables with these values; `u128::MAX` where there is
    /// none. The tree must be exact. `None` if somebody has asked for the end before they were known.
    pub fn least_with(
        &self,
        tables: &[Vec<u128>],
        messages: &Messages,
        stop: Stop<'_>,
    ) -> Option<Vec<Vec<u128>>> {
        // For each cell of a bucket's message, the least sum of all tables that are not below the bucket.
        let mut outside: Vec<Vec<u128>> =
            messages.cells.iter().map(|cells| vec![u128::MAX; cells.len()]).collect();
        let mut least: Vec<Vec<u128>> = vec![Vec::new(); self.buckets.len()];
        for (at, bucket) in self.buckets.iter().enumerate().rev() {
            if stop.is_asked() {
                return None;
            }
            let own = match bucket.scope.len() {
                // There are only other components besides it.
                1 => vec![messages.bound.saturating_sub(messages.cells[at][0])],
                _ => std::mem::take(&mut outside[at]),
            };
            let values = self.eliminated(bucket);
            let mut all = vec![u128::MAX; self.scope_cells(&bucket.scope)];
            self.visit(bucket, |place, parts| {
                let sum = messages.sum(tables, bucket, parts).saturating_add(own[place / values]);
                all[place] = sum;
                if sum == u128::MAX {
                    return;
                }
                for (part, cell) in bucket.parts.iter().zip(parts) {
                    if let Source::Message(child) = part.source {
                        let rest = sum - messages.cells[child][*cell];
                        outside[child][*cell] = outside[child][*cell].min(rest);
                    }
                }
            });
            least[at] = all;
        }
        Some(least)
    }

    /// Values of the variable that a bucket eliminates.
    pub fn eliminated(&self, bucket: &Bucket) -> usize {
        bucket.scope.last().map_or(1, |variable| self.sizes[*variable])
    }

    /// Cells of the message of a bucket.
    pub fn message_cells(&self, bucket: &Bucket) -> usize {
        self.scope_cells(&bucket.scope[..bucket.scope.len() - 1])
    }

    fn scope_cells(&self, scope: &[usize]) -> usize {
        scope.iter().map(|variable| self.sizes[*variable]).product()
    }
}

impl Messages {
    /// The sum of a bucket's parts.
    fn sum(&self, tables: &[Vec<u128>], bucket: &Bucket, places: &[usize]) -> u128 {
        bucket.parts.iter().zip(places).fold(0, |sum: u128, (part, place)| {
            sum.saturating_add(match part.source {
                Source::Table(table) => tables[table][*place],
                Source::Message(child) => self.cells[child][*place],
            })
        })
    }
}

impl Part {
    /// The place of its cell for these values of all variables.
    fn at(&self, scope: &[usize], values: &[usize]) -> usize {
        scope.iter().zip(&self.strides).map(|(variable, stride)| values[*variable] * stride).sum()
    }
}

/// The distance of a table's cells for each variable of a scope that contains all variables of the table.
fn strides(scope: &[usize], table: &[usize], sizes: &[usize]) -> Vec<usize> {
    let mut strides = vec![0; scope.len()];
    let mut stride = 1;
    for variable in table.iter().rev() {
        if let Some(at) = scope.iter().position(|other| other == variable) {
            strides[at] += stride;
        }
        stride *= sizes[*variable];
    }
    strides
}
