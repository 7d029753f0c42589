//! The capacities to choose from, and the least total that breaks all conflicts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::budget::Meter;
use crate::{Conflict, Error, Graph, StorageOptions, Unit};

/// By channel, the possible capacities.
pub(super) struct Grid {
    channels: Vec<CapacityChoice>,
}

struct CapacityChoice {
    /// The least, or the only one.
    least: u64,
    /// The capacity is a multiple of this; none if there is no choice.
    step: Option<u64>,
    /// The cost of one more token; 0 if the channel does not count.
    cost: u64,
}

/// Channels with capacities. At least one channel has to reach its capacity.
pub(super) type Escapes = Vec<(usize, u64)>;

impl Grid {
    pub(super) fn new(graph: &Graph, options: &StorageOptions) -> Result<Grid, Error> {
        let channels = graph.channels();
        let choices = channels.iter().enumerate().map(|(index, channel)| {
            let own = channel.readers.iter().all(|reader| reader.actor == channel.producer);
            let cost = match options.unit {
                Unit::Tokens => 1,
                Unit::Bytes => channel.token_bytes,
            };
            let step = match options.granularity.get(index) {
                Some(0) => None,
                Some(&step) => Some(step),
                None if options.granularity.is_empty() => Some(1),
                None => None,
            };
            let step = step.ok_or(Error::Granularity { channels: channels.len() })?;
            let rounded = channel.initial_tokens.checked_next_multiple_of(step);
            let least = channel.capacity.or(rounded);
            let overflow = || Error::Overflow { what: "storage", of: channel.name.clone() };
            Ok(CapacityChoice {
                least: least.ok_or_else(overflow)?,
                step: (channel.capacity.is_none() && !own).then_some(step),
                cost: if own { 0 } else { cost },
            })
        });
        Ok(Grid { channels: choices.collect::<Result<_, _>>()? })
    }

    /// Whether capacities are choices, and add up to the total.
    pub(super) fn check_capacities(&self, capacities: &[u64], total: u64) -> Result<(), Error> {
        let mut sum = 0u128;
        for (index, (choice, &capacity)) in self.channels.iter().zip(capacities).enumerate() {
            let allowed = match choice.step {
                Some(step) => capacity >= choice.least && capacity.is_multiple_of(step),
                None => capacity == choice.least || choice.cost == 0,
            };
            if !allowed {
                return Error::bad_certificate(format!(
                    "channel number {index} may not have a capacity of {capacity}"
                ));
            }
            sum += u128::from(capacity) * u128::from(choice.cost);
        }
        if sum != u128::from(total) {
            return Error::bad_certificate(format!("the capacities add up to {sum}, not {total}"));
        }
        Ok(())
    }

    /// The least capacities above each limit of a conflict.
    pub(super) fn escapes(&self, conflict: &Conflict) -> Result<Escapes, Error> {
        let mut ways = Vec::new();
        for &(channel, limit) in &conflict.limits {
            let choice = self.channels.get(channel.index());
            let Some((choice, step)) = choice.and_then(|choice| Some((choice, choice.step?))) else {
                return Error::bad_certificate(format!(
                    "channel number {} is not to be sized",
                    channel.index()
                ));
            };
            let above = (limit - limit % step).checked_add(step);
            ways.extend(above.map(|above| (channel.index(), above.max(choice.least))));
        }
        Ok(ways)
    }

    /// The least total with which every conflict is resolved, each by raising the capacity of one of its channels.
    /// Conflicts that share no channel are independent. For conflicts that share channels, combinations are tried, the
    /// most promising first.
    pub(super) fn least_total(&self, conflicts: &[Escapes], meter: &mut Meter) -> Result<u128, Error> {
        let mut values: Vec<u64> = self.channels.iter().map(|choice| choice.least).collect();
        for way in conflicts.iter().filter(|ways| ways.len() == 1).flatten() {
            values[way.0] = values[way.0].max(way.1);
        }
        let mut total: u128 = values
            .iter()
            .zip(&self.channels)
            .map(|(&value, of)| u128::from(value) * u128::from(of.cost))
            .sum();
        let open = |ways: &&Escapes| ways.iter().all(|&(channel, above)| values[channel] < above);
        let mut groups: Vec<(BTreeSet<usize>, Vec<&Escapes>)> = Vec::new();
        for ways in conflicts.iter().filter(open) {
            let mut channels: BTreeSet<usize> = ways.iter().map(|way| way.0).collect();
            let mut members = vec![ways];
            groups.retain_mut(|group| {
                let apart = group.0.is_disjoint(&channels);
                if !apart {
                    channels.append(&mut group.0);
                    members.append(&mut group.1);
                }
                apart
            });
            groups.push((channels, members));
        }
        for (channels, conflicts) in &groups {
            let start: BTreeMap<usize, u64> =
                channels.iter().map(|&channel| (channel, values[channel])).collect();
            total += self.cheapest(&start, conflicts, meter)?;
        }
        Ok(total)
    }

    /// The least cost, beyond that of `start`, of capacities that resolve every conflict.
    fn cheapest(
        &self,
        start: &BTreeMap<usize, u64>,
        conflicts: &[&Escapes],
        meter: &mut Meter,
    ) -> Result<u128, Error> {
        let mut seen = BTreeSet::new();
        let mut open = BinaryHeap::from([Reverse((0, Reverse(0), start.clone()))]);
        while let Some(Reverse((_, Reverse(cost), values))) = open.pop() {
            meter.spend(conflicts.len() as u64)?;
            let unbroken = conflicts.iter().filter(|ways| is_unbroken(&values, ways));
            let Some(ways) = unbroken.min_by_key(|ways| ways.len()) else { return Ok(cost) };
            for &(channel, above) in ways.iter() {
                let mut next = values.clone();
                next.insert(channel, above);
                if !seen.contains(&next) {
                    meter.spend(conflicts.len() as u64)?;
                    let cost = cost + self.price(&values, (channel, above));
                    let least = cost + self.still_to_pay(&next, conflicts);
                    seen.insert(next.clone());
                    open.push(Reverse((least, Reverse(cost), next)));
                }
            }
        }
        Error::bad_certificate("a conflict without a way out")
    }

    fn price(&self, values: &BTreeMap<usize, u64>, (channel, above): (usize, u64)) -> u128 {
        u128::from(above.saturating_sub(values[&channel])) * u128::from(self.channels[channel].cost)
    }

    /// A lower bound on the cost of the unbroken conflicts: each pays for the cheapest of its ways, less the amount
    /// that other conflicts have already paid for that channel.
    fn still_to_pay(&self, values: &BTreeMap<usize, u64>, conflicts: &[&Escapes]) -> u128 {
        let mut paid: BTreeMap<usize, u128> = BTreeMap::new();
        let mut sum = 0;
        for ways in conflicts.iter().filter(|ways| is_unbroken(values, ways)) {
            let left = ways
                .iter()
                .map(|&way| self.price(values, way).saturating_sub(paid.get(&way.0).copied().unwrap_or(0)));
            let pays = left.min().unwrap_or(0);
            sum += pays;
            if pays > 0 {
                ways.iter().for_each(|way| *paid.entry(way.0).or_default() += pays);
            }
        }
        sum
    }
}

fn is_unbroken(values: &BTreeMap<usize, u64>, ways: &Escapes) -> bool {
    ways.iter().all(|(channel, above)| values[channel] < *above)
}
