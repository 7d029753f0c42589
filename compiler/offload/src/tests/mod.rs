//! Tests of strategies against definitions written down another way: sets of pixels, and every strategy there is.

mod figures;
mod mutations;
mod optima;
mod random;
mod stopped;

use std::collections::BTreeSet;

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

use super::accelerator::Accelerator;
use super::convolution::{Convolution, Spec};
use super::problem::{Options, Problem};
use super::strategy::Groups;

/// A layer of one channel and one filter, without padding, under the default accelerator.
fn problem(input: [usize; 2], filter: [usize; 2], group: usize, reload: Option<u32>) -> Problem {
    let convolution = Convolution::new(Spec::new(input, 1, filter, 1)).unwrap();
    let options = Options { group: Some(group), reload, ..Options::default() };
    Problem::new(convolution, Accelerator::default(), &options).unwrap()
}

/// Random choices from a seed.
struct Draw(ChaCha8Rng);

impl Draw {
    fn new(seed: u64) -> Self {
        Draw(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number from `low` to `high`.
    fn number(&mut self, low: usize, high: usize) -> usize {
        low + self.0.next_u32() as usize % (high - low + 1)
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        (!items.is_empty()).then(|| &items[self.number(0, items.len() - 1)])
    }

    /// A layer with strides, padding, dilation and groups of channels, of at most so many patches.
    fn layer(&mut self, most_patches: usize) -> Convolution {
        loop {
            let channel_groups = self.number(1, 2);
            let spec = Spec {
                pads: [0; 4].map(|_| self.number(0, 2)),
                stride: [0; 2].map(|_| self.number(1, 3)),
                dilation: [0; 2].map(|_| self.number(1, 2)),
                channel_groups,
                ..Spec::new(
                    [0; 2].map(|_| self.number(1, 9)),
                    channel_groups * self.number(1, 2),
                    [0; 2].map(|_| self.number(1, 4)),
                    channel_groups * self.number(1, 3),
                )
            };
            let convolution = Convolution::new(spec).ok();
            if let Some(convolution) = convolution.filter(|layer| layer.patches() <= most_patches) {
                return convolution;
            }
        }
    }

    /// The patches in any order, cut into groups of any size up to the largest.
    fn groups(&mut self, patches: usize, largest: usize) -> Groups {
        let mut order: Vec<u32> = (0..patches as u32).collect();
        for place in (1..patches).rev() {
            order.swap(place, self.number(0, place));
        }
        let mut groups = Groups::new();
        while !order.is_empty() {
            let size = self.number(1, largest.min(order.len()));
            groups.push(order.split_off(order.len() - size));
        }
        groups
    }
}

/// The pixels of a patch, from Definition 10.
fn pixels(convolution: &Convolution, patch: u32) -> BTreeSet<(usize, usize)> {
    let spec = convolution.spec();
    let [_, columns] = convolution.output();
    let (i, j) = (patch as usize / columns, patch as usize % columns);
    let mut set = BTreeSet::new();
    for y in 0..spec.filter[0] {
        for x in 0..spec.filter[1] {
            set.insert((
                i * spec.stride[0] + y * spec.dilation[0],
                j * spec.stride[1] + x * spec.dilation[1],
            ));
        }
    }
    set
}

fn covered(convolution: &Convolution, group: &[u32]) -> BTreeSet<(usize, usize)> {
    group.iter().flat_map(|patch| pixels(convolution, *patch)).collect()
}

/// The duration of one pass by sets; none where a bound is broken.
fn plain_duration(problem: &Problem, groups: &[Vec<u32>]) -> Option<u64> {
    let mut loads = std::collections::BTreeMap::new();
    let mut before = BTreeSet::new();
    let mut duration = 0;
    for group in groups {
        let now = covered(&problem.convolution, group);
        for pixel in now.difference(&before) {
            *loads.entry(*pixel).or_insert(0) += 1;
            duration += problem.load_cycles();
        }
        duration += problem.accelerator.tacc;
        let spec = problem.convolution.spec();
        let elements = now.len() * spec.channels
            + spec.filters * spec.channels / spec.channel_groups * spec.filter[0] * spec.filter[1]
            + group.len() * spec.filters;
        if problem.accelerator.mem.is_some_and(|mem| elements as u64 > mem) {
            return None;
        }
        before = now;
    }
    let most = loads.into_values().max().unwrap_or(0);
    problem.reload.is_none_or(|reload| most <= reload).then_some(duration)
}
