//! Packings into regions, compared with every assignment and every offset, and with greedy placements by hand.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Instant;

use rand::RngExt;

use super::instances::{check_lawful, in_use, life, random};
use crate::budget::{Budget, Meter, Stopped};
use crate::lives::{Gap, Life, problem};
use crate::problem::Block;
use crate::regions::{RegionSolution, pack_regions};

/// Buffers, the limits of regions, and what each buffer costs in each that it may lie in.
struct Instance {
    lives: Vec<Life>,
    limits: Vec<u64>,
    costs: Vec<Vec<Option<u64>>>,
}

/// Packs with this many steps, and checks that the packing is valid and what is said of it is true.
fn solve(instance: &Instance, steps: u64) -> RegionSolution {
    let Instance { lives, limits, costs } = instance;
    let mut meter = Meter::new(Budget::Work(steps));
    let solution = pack_regions(&problem(lives).unwrap(), limits, costs, &mut meter);
    assert_eq!(solution.work, meter.spent());
    let packing = &solution.packing;
    let mut excess = 0;
    for (region, limit) in limits.iter().enumerate() {
        let here: Vec<usize> = (0..lives.len()).filter(|i| packing.regions[*i] == region).collect();
        let some: Vec<Life> = here.iter().map(|i| lives[*i].clone()).collect();
        let offsets: Vec<u64> = here.iter().map(|i| packing.offsets[*i]).collect();
        check_lawful(&some, &offsets, packing.bytes[region]);
        excess += packing.bytes[region].saturating_sub(*limit);
    }
    assert_eq!(solution.excess, excess);
    let cost = |(i, region): (usize, &usize)| costs[i][*region].expect("a region that it may lie in");
    assert_eq!(packing.cost, packing.regions.iter().enumerate().map(cost).sum());
    if solution.excess == 0 {
        assert!(solution.bound <= packing.cost);
        assert_eq!(solution.stopped == Stopped::Complete, solution.bound == packing.cost);
    }
    solution
}

/// A few small buffers, some with gaps or in use in part, and two or three regions. Some must not lie in each of them.
fn small(seed: u64) -> Instance {
    let random = &mut random(seed);
    let mut one = |_| {
        let bytes = random.random_range(1..=6);
        let lower = random.random_range(0..6);
        let mut life = life(lower, lower + random.random_range(1..6), bytes);
        if !seed.is_multiple_of(3) && life.upper - lower > 2 && random.random_range(0..2) == 0 {
            let window = match seed % 3 {
                1 => None,
                _ => Some((random.random_range(0..bytes), bytes)),
            };
            life.gaps = vec![Gap { lower: lower + 1, upper: life.upper - 1, window }];
        }
        if seed.is_multiple_of(5) {
            life.block.alignment = [1, 1, 2][random.random_range(0..3)];
        }
        life
    };
    let count = 3 + seed as usize % 5;
    let lives: Vec<Life> = (0..count).map(&mut one).collect();
    let regions = random.random_range(2..=3);
    let most = if seed.is_multiple_of(4) { 8 } else { 14 };
    let limits = (0..regions).map(|_| random.random_range(2..=most)).collect();
    let is_monotone = random.random_range(0..2) == 0;
    let costs = lives.iter().map(|_| {
        let mut costs: Vec<u64> = (0..regions).map(|_| random.random_range(0..20)).collect();
        if is_monotone {
            costs.sort_unstable();
        }
        let mut costs: Vec<Option<u64>> = costs.into_iter().map(Some).collect();
        if seed % 7 < 3 && random.random_range(0..3) == 0 {
            costs[random.random_range(0..regions)] = None;
        }
        costs
    });
    Instance { costs: costs.collect(), lives, limits }
}

/// Whether one buffer lies above the other, or the other above the one, at all moments.
fn is_clear(one: &Life, at: u64, other: &Life, other_at: u64) -> bool {
    let used = |moment| {
        let is_some = |(low, high): &(u64, u64)| low < high;
        in_use(one, moment).filter(is_some).zip(in_use(other, moment).filter(is_some))
    };
    let moments: Vec<_> = (one.lower..one.upper).filter_map(used).collect();
    moments.iter().all(|((_, high), (low, _))| at + high <= other_at + low)
        || moments.iter().all(|((low, _), (_, high))| other_at + high <= at + low)
}

/// Whether buffers fit a limit: every offset is tried.
fn fit(lives: &[&Life], limit: u64, offsets: &mut Vec<u64>) -> bool {
    let Some(next) = lives.get(offsets.len()) else { return true };
    let Block { bytes, alignment, .. } = next.block;
    (0..=limit).step_by(alignment as usize).take_while(|at| at + bytes <= limit).any(|at| {
        if !lives.iter().zip(&*offsets).all(|(other, other_at)| is_clear(next, at, other, *other_at)) {
            return false;
        }
        offsets.push(at);
        let fits = fit(lives, limit, offsets);
        offsets.pop();
        fits
    })
}

/// The least cost over all assignments that fit.
fn least(instance: &Instance) -> Option<u64> {
    let Instance { lives, limits, costs } = instance;
    let mut known: BTreeMap<(usize, u64), bool> = BTreeMap::new();
    for region in 0..limits.len() {
        for set in 0..1u64 << lives.len() {
            let here = || (0..lives.len()).filter(|i| set >> i & 1 == 1);
            // What is too much remains so with one more.
            let may = here().all(|i| known[&(region, set & !(1 << i))]);
            let some: Vec<&Life> = here().map(|i| &lives[i]).collect();
            known.insert((region, set), may && fit(&some, limits[region], &mut Vec::new()));
        }
    }
    let mut best = None;
    for way in 0..limits.len().pow(lives.len() as u32) {
        let region = |i: usize| way / limits.len().pow(i as u32) % limits.len();
        let set = |r: usize| (0..lives.len()).filter(|i| region(*i) == r).map(|i| 1u64 << i).sum();
        if (0..limits.len()).all(|r| known[&(r, set(r))]) {
            let cost = costs.iter().enumerate().map(|(i, costs)| costs[region(i)]).sum::<Option<u64>>();
            best = best.into_iter().chain(cost).min();
        }
    }
    best
}

#[test]
fn small_ones_cost_as_little_as_any_assignment() {
    let (mut several, mut unfit, mut incomplete) = (0, 0, 0);
    for seed in 0..2000 {
        let instance = small(seed);
        let solution = solve(&instance, 1_000_000);
        let expected = least(&instance);
        let found = (solution.excess == 0).then_some(solution.packing.cost);
        assert_eq!(found, expected, "seed {seed}: {:?} {solution:?}", instance.lives);
        // With few steps, what is said is true as well.
        let hasty = solve(&instance, 500);
        assert!(hasty.bound <= expected.unwrap_or(u64::MAX), "seed {seed}: {hasty:?}");
        assert!(hasty.excess > 0 || Some(hasty.packing.cost) >= expected, "seed {seed}: {hasty:?}");
        incomplete += u64::from(solution.stopped != Stopped::Complete);
        unfit += u64::from(expected.is_none());
        several += u64::from(
            expected.is_some() && solution.packing.regions.iter().any(|r| *r != solution.packing.regions[0]),
        );
    }
    assert!(several > 800 && unfit > 300, "{several} in several, {unfit} unfit");
    assert!(incomplete < 20, "{incomplete} incomplete");
}

/// Buffers of layers one after another, some read much later, and three memories: a fast one, one of a third of the
/// speed, and a slow one that holds all.
fn layers(seed: u64) -> Instance {
    let random = &mut random(seed);
    let count = random.random_range(30..=60);
    let lives: Vec<Life> = (0..count)
        .map(|at| {
            let bytes = 16 * (1 << random.random_range(0..8)) + 16 * random.random_range(0..64);
            let span = if random.random_range(0..4) == 0 { random.random_range(3..20) } else { 2 };
            let mut life = life(at, at + span, bytes);
            if span > 3 && random.random_range(0..3) == 0 {
                let window = (random.random_range(0..2) == 0).then_some((bytes / 2, bytes));
                life.gaps = vec![Gap { lower: at + 1, upper: at + span - 1, window }];
            }
            life
        })
        .collect();
    let most = crate::bound::liveness(&problem(&lives).unwrap());
    let costs = lives.iter().map(|life| {
        let traffic = life.block.bytes * random.random_range(1..40);
        [1, 3, 10].map(|slower| Some(traffic * slower)).to_vec()
    });
    let costs = costs.collect();
    let limits =
        vec![most * random.random_range(10..40) / 100, most * random.random_range(20..60) / 100, 3 * most];
    Instance { lives, limits, costs }
}

/// Puts buffers in an order each into the first region, in the order of its costs, in which it fits at the lowest offset.
fn by_hand(instance: &Instance, compare: &dyn Fn(usize, usize) -> Ordering) -> u64 {
    let Instance { lives, limits, costs } = instance;
    let mut order: Vec<usize> = (0..lives.len()).collect();
    order.sort_by(|i, j| compare(*i, *j));
    let mut placed: Vec<(usize, usize, u64)> = Vec::new();
    for i in order {
        let bytes = lives[i].block.bytes;
        let mut regions: Vec<usize> = (0..limits.len()).collect();
        regions.sort_by_key(|region| costs[i][*region]);
        let place = regions.into_iter().find_map(|region| {
            let has_room = |at: &u64| {
                let here = placed.iter().filter(|(_, other, _)| *other == region);
                here.into_iter().all(|(j, _, other)| is_clear(&lives[i], *at, &lives[*j], *other))
            };
            // All sizes are multiples of 8.
            let at =
                (0..=limits[region]).step_by(8).take_while(|at| at + bytes <= limits[region]).find(has_room);
            at.map(|at| (region, at))
        });
        let (region, at) = place.unwrap();
        placed.push((i, region, at));
    }
    placed.iter().filter_map(|(i, region, _)| costs[*i][*region]).sum()
}

#[test]
fn none_is_dearer_than_greedy_by_hand() {
    let (mut saved, mut complete) = (0.0, 0);
    let count = 200;
    for seed in 0..count {
        let instance = layers(seed);
        let bytes = |i: usize| instance.lives[i].block.bytes;
        let spread = |i: usize| instance.costs[i][2].unwrap() - instance.costs[i][0].unwrap();
        let traffic = by_hand(&instance, &|i, j| spread(j).cmp(&spread(i)));
        let each_byte = by_hand(&instance, &|i, j| (spread(j) * bytes(i)).cmp(&(spread(i) * bytes(j))));
        let size = by_hand(&instance, &|i, j| bytes(j).cmp(&bytes(i)));
        let best = traffic.min(each_byte).min(size);
        let solution = solve(&instance, 300_000);
        assert_eq!(solution.excess, 0, "seed {seed}");
        assert!(solution.packing.cost <= best, "seed {seed}: {} of {best}", solution.packing.cost);
        assert!(solution.work < 600_000, "seed {seed}: {} steps", solution.work);
        saved += 1.0 - solution.packing.cost as f64 / best as f64;
        complete += u64::from(solution.stopped == Stopped::Complete);
    }
    println!("{:.2} % saved on average, {complete} of {count} proven", 100.0 * saved / count as f64);
    assert!(saved > 0.01 * count as f64);
}

/// The steps that greedy orders may take beyond a budget, and one round of a search.
const BEYOND: u64 = 100_000;

#[test]
fn the_same_steps_give_the_same_packing() {
    for seed in 0..12 {
        let instance = layers(seed);
        let cost = solve(&instance, 3_000_000).packing.cost;
        for steps in [0, 1, 1_000, 30_000, 1_000_000] {
            let solution = solve(&instance, steps);
            assert!(solution.bound <= cost, "seed {seed}: {} of {cost}", solution.bound);
            assert_eq!(solution, solve(&instance, steps), "seed {seed}");
            assert!(solution.work <= steps + BEYOND, "seed {seed}: {} of {steps} steps", solution.work);
        }
    }
}

#[test]
fn with_many_steps_most_are_proven() {
    let proven = |seed: u64| solve(&layers(seed), 3_000_000).stopped == Stopped::Complete;
    let count = (0..40).filter(|seed| proven(*seed)).count();
    println!("{count} of 40 proven");
    assert!(count > 30, "{count}");
}

#[test]
fn no_time_is_left_but_for_a_greedy_packing() {
    let Instance { lives, limits, costs } = layers(0);
    let mut meter = Meter::new(Budget::Until(Instant::now()));
    let solution = pack_regions(&problem(&lives).unwrap(), &limits, &costs, &mut meter);
    assert_eq!((solution.excess, solution.stopped), (0, Stopped::Time));
}

/// One region is packed as low as by itself, whatever the limit.
#[test]
fn one_region_is_packed_as_low_as_ever() {
    let (mut fit, mut unfit) = (0, 0);
    for seed in 0..100 {
        let lives = small(seed).lives;
        let expected = super::solve(&lives, 100_000).packing.bytes;
        let limit = expected - seed % 2;
        let costs = vec![vec![Some(3)]; lives.len()];
        let solution = solve(&Instance { lives, limits: vec![limit], costs }, 100_000);
        assert_eq!(solution.packing.bytes, [expected], "seed {seed}");
        assert_eq!(solution.excess, expected - limit, "seed {seed}");
        fit += u64::from(solution.excess == 0);
        unfit += u64::from(solution.excess > 0 && solution.stopped == Stopped::Complete);
    }
    assert!(fit > 40 && unfit > 40, "{fit} fit, {unfit} are known not to");
}

/// Where all regions cost the same, nothing matters but that all blocks fit.
#[test]
fn equal_costs_ask_only_for_room() {
    for seed in 0..150 {
        let instance = small(seed);
        let instance =
            Instance { costs: vec![vec![Some(7); instance.limits.len()]; instance.lives.len()], ..instance };
        let solution = solve(&instance, 1_000_000);
        assert_eq!(solution.excess == 0, least(&instance).is_some(), "seed {seed}");
        assert_eq!(solution.stopped, Stopped::Complete, "seed {seed}");
    }
}

#[test]
fn given_offsets_are_ignored_and_nothing_needs_no_room() {
    let mut lives = vec![life(0, 2, 4)];
    lives[0].block.offset = Some(8);
    let instance = Instance { lives, limits: vec![4, 20], costs: vec![vec![Some(1), Some(2)]] };
    let problem = problem(&instance.lives).unwrap();
    let solution =
        pack_regions(&problem, &instance.limits, &instance.costs, &mut Meter::new(Budget::Work(100)));
    assert_eq!((solution.packing.regions, solution.packing.offsets), (vec![0], vec![0]));
    let none = solve(&Instance { lives: Vec::new(), limits: vec![0, 5], costs: Vec::new() }, 100);
    assert_eq!((none.packing.bytes, none.stopped), (vec![0, 0], Stopped::Complete));
}
