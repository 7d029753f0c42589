//! Plans that state that no placement of their rings is smaller, packed once more. The inputs are the rings and the
//! schedule that the plan states, and the rows that operators read. The search shares no code with the planner. Every
//! layer may make its rows one by one. A smaller placement would have to pass the checker.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

use std::cmp::Reverse;

use csdfc::app::resolve::{Application, RowsChoice};
use csdfc::builtin::{Builder, ConvOptions, Padding, PoolWindow};
use csdfc::network::{LayerId, Network, Operand};
use csdfc::open;
use csdfc::units::MemoryGoal;
use csdfc_plan::plan::{Plan, Step, StorageModel};
use csdfc_tests::moments::{Moment, Ring, moments};
use csdfc_tests::{generate, plan};
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// Orders in which the rings of one plan are placed.
const ORDERS: usize = 300;

/// A plan's rings, and how far apart they must lie.
struct Problem {
    /// Their places among the plan's tensors.
    tensors: Vec<usize>,
    bytes: Vec<u64>,
    first: Vec<usize>,
    /// By pair of rings: if the second lies above the first, at least how much higher it lies. `None` if they are never
    /// in use at the same time.
    above: Vec<Vec<Option<i64>>>,
    /// The most bytes in use at one moment.
    bound: u64,
}

fn firings(steps: &[Step], layer: &dyn Fn(&str) -> LayerId, order: &mut Vec<LayerId>) {
    for step in steps {
        match step {
            Step::Fire { fire } => order.push(layer(fire)),
            Step::Repeat { repeat, body } => (0..*repeat).for_each(|_| firings(body, layer, order)),
        }
    }
}

/// The rings of the only CNN of a plan.
fn problem(plan: &Plan, network: &Network) -> Problem {
    let cnn = &plan.cnns[0];
    let layer = |name: &str| LayerId(cnn.layers.iter().position(|layer| layer.name == name).unwrap());
    let mut order = Vec::new();
    plan.partitions.iter().for_each(|partition| firings(&partition.schedule, &layer, &mut order));
    let rows: Vec<u64> = cnn.layers.iter().map(|layer| layer.rows_per_firing).collect();
    let mut rings = Vec::new();
    let mut tensors = Vec::new();
    for (index, tensor) in plan.tensors.iter().enumerate() {
        let Some(ring) = tensor.ring.filter(|ring| ring.bytes > 0) else { continue };
        let producer = layer(&tensor.producer);
        let uses =
            |id: &LayerId| *id == producer || tensor.consumers.iter().any(|consumer| layer(consumer) == *id);
        rings.push(Ring {
            tensor: producer,
            bytes: ring.bytes,
            live: (
                order.iter().position(|id| *id == producer).unwrap(),
                order.iter().rposition(uses).unwrap(),
            ),
            is_exclusive: ring.ring_rows < tensor.shape.rows() as u64,
        });
        tensors.push(index);
    }
    let moments = moments(network, &order, &rows, &rings);
    let mut above: Vec<Vec<Option<i64>>> = vec![vec![None; rings.len()]; rings.len()];
    let mut bound = 0;
    for Moment { in_use, .. } in &moments {
        bound = bound.max(in_use.iter().map(|(_, bytes)| bytes.end - bytes.start).sum());
        for (lower, below) in in_use {
            for (upper, bytes) in in_use.iter().filter(|(upper, _)| upper != lower) {
                let least = below.end as i64 - bytes.start as i64;
                let place = &mut above[*lower][*upper];
                *place = Some(place.map_or(least, |before| before.max(least)));
            }
        }
    }
    let first = rings.iter().map(|ring| ring.live.0).collect();
    Problem { tensors, bytes: rings.iter().map(|ring| ring.bytes).collect(), first, above, bound }
}

impl Problem {
    /// Each ring in this order as low as it can be.
    fn place(&self, order: &[usize]) -> (u64, Vec<u64>) {
        let mut at: Vec<Option<i64>> = vec![None; self.bytes.len()];
        for &ring in order {
            // Between these two offsets, both excluded, the ring would overlap another ring.
            let mut taken: Vec<(i64, i64)> = (0..at.len())
                .filter_map(|other| {
                    let (there, lower, upper) =
                        (at[other]?, self.above[ring][other]?, self.above[other][ring]?);
                    Some((there - lower, there + upper))
                })
                .collect();
            taken.sort_unstable();
            let mut low = 0;
            for (from, to) in taken {
                if from < low && low < to {
                    low = to;
                } else if from >= low {
                    break;
                }
            }
            at[ring] = Some(low);
        }
        let at: Vec<u64> = at.into_iter().map(|at| at.unwrap().unsigned_abs()).collect();
        (at.iter().zip(&self.bytes).map(|(at, bytes)| at + bytes).max().unwrap_or(0), at)
    }

    /// The lowest of many placements: by size, by time, and then by orders in which two rings change places, kept where
    /// that is no worse.
    fn lowest(&self, random: &mut ChaCha8Rng) -> (u64, Vec<u64>) {
        let all = || (0..self.bytes.len()).collect::<Vec<usize>>();
        let mut best: (u64, Vec<u64>) = (u64::MAX, Vec::new());
        type Key<'k> = dyn Fn(&usize) -> (Reverse<u64>, usize) + 'k;
        let keys: [&Key<'_>; 3] =
            [&|i| (Reverse(self.bytes[*i]), *i), &|i| (Reverse(0), self.first[*i]), &|i| {
                (Reverse(0), usize::MAX - self.first[*i])
            }];
        let mut starts: Vec<Vec<usize>> = Vec::new();
        for key in keys {
            let mut order = all();
            order.sort_by_key(key);
            starts.push(order);
        }
        let mut shuffled = all();
        shuffled.shuffle(random);
        starts.push(shuffled);
        for mut order in starts {
            let mut here = self.place(&order);
            for _ in 0..ORDERS / 4 {
                if here.0 < best.0 {
                    best.clone_from(&here);
                }
                if order.len() < 2 || best.0 <= self.bound {
                    break;
                }
                let [from, to] = [0, 0].map(|_| random.random_range(0..order.len()));
                order.swap(from, to);
                let there = self.place(&order);
                if there.0 <= here.0 {
                    here = there;
                } else {
                    order.swap(from, to);
                }
            }
        }
        best
    }
}

/// The plan with its rings at these offsets, as the checker would have it.
fn moved(plan: &Plan, problem: &Problem, (bytes, offsets): &(u64, Vec<u64>)) -> Plan {
    let mut plan = plan.clone();
    for (tensor, offset) in problem.tensors.iter().zip(offsets) {
        plan.tensors[*tensor].ring.as_mut().unwrap().offset = *offset;
    }
    let memory = &mut plan.memory;
    memory.total = memory.total - memory.arena + bytes;
    (memory.buffers, memory.arena) = (*bytes, *bytes);
    memory.proven = memory.arena == memory.bound;
    plan.certificate.claimed = None;
    plan.constraints.met = plan.constraints.memory.is_none_or(|limit| memory.total <= limit);
    plan
}

#[derive(Default)]
struct Count {
    /// Numbers of plans that state that they are the smallest: equal to the bound, or as claimed.
    proven: usize,
    claimed: usize,
    /// Plans that do not state it, and how many of these have a smaller placement, which this search found.
    others: usize,
    smaller: usize,
    /// Plans in which a layer of more filters than the nearest cache holds writes where it reads.
    one_by_one: usize,
}

impl Count {
    /// Packs a plan once more.
    fn repack(&mut self, name: &str, application: &Application, random: &mut ChaCha8Rng) {
        let plan = plan(application);
        let problem = problem(&plan, &application.cnns[0].network);
        let memory = &plan.memory;
        assert_eq!(problem.bound, memory.bound, "{name}");
        let found = problem.lowest(random);
        // The checker confirms the placements of this search.
        if let Err(violations) = csdfc_plan::check(&moved(&plan, &problem, &found)) {
            panic!("{name}: {:?}", violations.first());
        }
        let least = if memory.proven { Some(memory.bound) } else { plan.certificate.claimed };
        assert!(least.is_none_or(|least| found.0 >= least), "{name}: {} is below {least:?}", found.0);
        self.one_by_one +=
            usize::from(plan.search.choices.values().any(|choice| choice.contains("one by one")));
        match least {
            Some(least) if memory.proven && least == memory.buffers => self.proven += 1,
            Some(least) if least == memory.buffers => self.claimed += 1,
            _ => {
                self.others += 1;
                self.smaller += usize::from(found.0 < memory.buffers);
            }
        }
    }
}

/// A network of convolutions with more filters than the nearest cache holds, and pools, sums and concats between.
fn wide(random: &mut ChaCha8Rng) -> Network {
    let mut builder = Builder::new(0);
    let size = random.random_range(6..24);
    let mut open: Vec<Operand> = vec![builder.input("input", [1, 48, size, size]).unwrap()];
    for _ in 0..random.random_range(3..9) {
        let x = open[random.random_range(0..open.len())].clone();
        let height = x.shape.rows();
        let next = match random.random_range(0..6) {
            0 if height > 3 => builder.max_pool(&x, PoolWindow::new(2, 2)).unwrap(),
            1 => match open.iter().find(|other| other.shape == x.shape && other.layer != x.layer) {
                Some(other) => builder.add(&x, other).unwrap(),
                None => continue,
            },
            2 => match open.iter().find(|other| other.shape.rows() == height && other.layer != x.layer) {
                Some(other) => builder.concat(&[&x, other]).unwrap(),
                None => continue,
            },
            kind => {
                let kernel = if kind == 3 { [1, 1] } else { [3, 3] };
                let filters = 16 * random.random_range(2..12);
                let options = ConvOptions { pads: Padding::Same, ..ConvOptions::default() };
                builder.conv(&x, filters, kernel, options).unwrap()
            }
        };
        if random.random_range(0..3) > 0 {
            open.retain(|other| other.layer != x.layer);
        }
        open.push(next);
    }
    for (i, x) in open.iter().enumerate() {
        let end = builder.global_average_pool(x).unwrap();
        builder.output(&format!("output{i}"), &end).unwrap();
    }
    builder.finish()
}

#[test]
fn no_plan_that_says_it_is_the_least_can_be_packed_lower() {
    let mut random = ChaCha8Rng::seed_from_u64(13);
    let mut count = Count::default();
    let goals = [None, Some(MemoryGoal::Min)];
    let all_rows = [RowsChoice::Default, RowsChoice::None, RowsChoice::All];
    for seed in 0..200 {
        let bytes: Vec<u8> =
            (0..random.random_range(20..200)).map(|_| random.random_range(0..=255)).collect();
        let application = generate::application(&bytes, StorageModel::Tensors);
        let is_alone = application.parallel.iter().all(|element| element.len() == 1);
        if application.cnns.len() == 1 && is_alone {
            count.repack(&format!("random {seed}"), &application, &mut random);
        }
    }
    println!(
        "of random networks {} proven, {} claimed, {} others",
        count.proven, count.claimed, count.others
    );
    let template = open::open("builtin:lenet5").unwrap().resolve().unwrap();
    for seed in 0..60 {
        let network = wide(&mut random);
        for (goal, rows) in goals.iter().flat_map(|goal| all_rows.iter().map(move |rows| (goal, rows))) {
            let mut application = template.clone();
            application.cnns[0].network = network.clone();
            application.cnns[0].partitions[0].layers = network.ids().collect();
            (application.constraints.memory, application.rows) = (*goal, rows.clone());
            count.repack(&format!("wide {seed}, {goal:?}, {rows:?}"), &application, &mut random);
        }
    }
    for name in ["lenet5", "resnet8", "resnet18", "mobilenet_v1_0.25", "squeezenet1_0", "mobilenet_v2"] {
        for (goal, rows) in goals.iter().flat_map(|goal| all_rows.iter().map(move |rows| (goal, rows))) {
            let mut application = open::open(&format!("builtin:{name}")).unwrap().resolve().unwrap();
            (application.constraints.memory, application.rows) = (*goal, rows.clone());
            count.repack(&format!("{name}, {goal:?}, {rows:?}"), &application, &mut random);
        }
    }
    let Count { proven, claimed, others, smaller, one_by_one } = count;
    println!(
        "{proven} proven, {claimed} claimed, {others} others, {smaller} of them smaller; {one_by_one} one by one"
    );
    assert!(proven + claimed >= 300 && claimed >= 1 && smaller >= 1 && one_by_one >= 20);
}
