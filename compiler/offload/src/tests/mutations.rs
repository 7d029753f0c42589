//! Computations with one thing wrong: each is refused, and the step named.

use super::*;
use crate::simulate::{Rules, Violation, simulate};
use crate::steps::Computation;

/// A valid computation, and the data with which it is mutated.
struct Case {
    problem: Problem,
    rules: Rules,
    computation: Computation,
    /// A step, counted from 0.
    at: usize,
}

/// Where the fault must be found: in a step counted from 1, or after the last.
type Place = Option<usize>;

fn case(draw: &mut Draw) -> Case {
    let convolution = draw.layer(30);
    let filters_at_once = Some(draw.number(1, convolution.spec().filters));
    let group = Some(draw.number(1, 5));
    let options = Options { group, filters_at_once, ..Options::default() };
    let problem = Problem::new(convolution, Accelerator::default(), &options).unwrap();
    let groups = draw.groups(problem.convolution.patches(), problem.group);
    let computation = Computation::new(&problem, &groups);
    let at = draw.number(0, computation.steps.len() - 1);
    Case { rules: Rules::new(&problem), problem, computation, at }
}

impl Case {
    /// Pixels in memory while the step computes.
    fn held(&self, at: usize) -> Vec<u32> {
        let groups = &self.computation.steps[at].compute.patches;
        let mut held: Vec<u32> =
            groups.iter().flat_map(|patch| self.problem.convolution.pixels_of(*patch)).collect();
        held.sort_unstable();
        held.dedup();
        held
    }

    fn absent(&self, at: usize) -> Vec<u32> {
        let held = self.held(at);
        (0..self.problem.convolution.pixels() as u32)
            .filter(|pixel| held.binary_search(pixel).is_err())
            .collect()
    }

    /// Makes the mutation of this number; where it is to be found, or nothing if it cannot be made here.
    fn mutate(&mut self, number: usize, draw: &mut Draw) -> Option<Place> {
        let (at, last) = (self.at, self.computation.steps.len() - 1);
        let (held, absent) = (self.held(at), self.absent(at));
        let before = if at > 0 { self.held(at - 1) } else { Vec::new() };
        let here = Some(Some(at + 1));
        let next = Some((at < last).then_some(at + 2));
        let step = &mut self.computation.steps[at];
        let drop = |list: &mut Vec<u32>, draw: &mut Draw| {
            let place = draw.number(0, list.len().checked_sub(1)?);
            Some(list.remove(place))
        };
        match number {
            // A pixel of the slice is missing, superfluous, or there already.
            0 => drop(&mut step.load_pixels, draw).and(here),
            1 => {
                let superfluous = absent.iter().filter(|pixel| before.binary_search(pixel).is_err());
                step.load_pixels.push(*draw.pick(&superfluous.copied().collect::<Vec<_>>())?);
                here
            }
            2 => {
                step.load_pixels.push(*draw.pick(&held)?);
                here
            }
            // A needed pixel is freed, a pixel that is not there is freed, or a pixel that is not needed stays.
            3 => {
                let kept = held.iter().filter(|pixel| before.binary_search(pixel).is_ok());
                step.free_pixels.push(*draw.pick(&kept.copied().collect::<Vec<_>>())?);
                here
            }
            4 => {
                let never = absent.iter().filter(|pixel| before.binary_search(pixel).is_err());
                step.free_pixels.push(*draw.pick(&never.copied().collect::<Vec<_>>())?);
                here
            }
            5 => drop(&mut step.free_pixels, draw).and(here),
            // A result is not written, written before it is there, or twice.
            6 => drop(&mut step.write.patches, draw).and(Some(None)),
            7 => {
                step.write.patches.push(*draw.pick(&step.compute.patches.clone())?);
                step.write.filters = step.compute.filters.clone();
                here
            }
            8 => {
                let again = *draw.pick(&step.write.patches)?;
                step.write.patches.push(again);
                here
            }
            // A patch computed twice in a step; groups that are too large are refused before.
            9 => {
                let again = *draw.pick(&step.compute.patches)?;
                step.compute.patches.push(again);
                here
            }
            // A step is left out, or made twice.
            10 => {
                let removed = self.computation.steps.remove(at);
                (removed.write.patches.is_empty() && last > 0 || at < last || last == 0).then_some(())?;
                if at < last { here } else { Some(None) }
            }
            11 => {
                let twice = self.computation.steps[at].clone();
                self.computation.steps.insert(at + 1, twice);
                Some(Some(at + 2))
            }
            12 => {
                step.compute.patches.clear();
                here
            }
            13 => {
                step.load_pixels.push(self.problem.convolution.pixels() as u32);
                here
            }
            14 => {
                step.compute.patches[0] = self.problem.convolution.patches() as u32;
                here
            }
            // Filters.
            15 => {
                let first = step.load_filters.clone().next()?;
                step.load_filters.start = first + 1;
                here
            }
            16 => {
                (!step.free_filters.is_empty()).then_some(())?;
                step.free_filters = 0..0;
                here
            }
            17 => {
                step.load_filters.is_empty().then_some(())?;
                step.load_filters = step.compute.filters.clone();
                here
            }
            18 => {
                (step.compute.filters.len() > 1).then_some(())?;
                step.compute.filters.end -= 1;
                here
            }
            // A patch is not computed: its pixels are of no use, or its result is missed when it is to be written.
            19 => {
                (step.compute.patches.len() > 1).then_some(())?;
                let left = drop(&mut step.compute.patches, draw)?;
                let rest = covered(&self.problem.convolution, &self.computation.steps[at].compute.patches);
                let alone = pixels(&self.problem.convolution, left).is_subset(&rest);
                if alone { next } else { here }
            }
            // Bounds one too small.
            20 => {
                let memory = self.problem.cost(&self.one_pass()).memory;
                self.rules.mem = Some(memory - 1);
                Some(Some(self.first(|case, at| case.elements(at) == memory)?))
            }
            21 => {
                let sizes = |case: &Case, at: usize| case.computation.steps[at].compute.patches.len();
                let largest = (0..=last).map(|at| sizes(self, at)).max()?;
                self.rules.group = largest - 1;
                Some(Some(self.first(|case, at| sizes(case, at) == largest)?))
            }
            22 => {
                let macs = |case: &Case, at: usize| {
                    let compute = &case.computation.steps[at].compute;
                    case.problem.convolution.macs_per_patch(compute.filters.len())
                        * compute.patches.len() as u64
                };
                let most = (0..=last).map(|at| macs(self, at)).max()?;
                self.rules.pe = Some(most - 1);
                Some(Some(self.first(|case, at| macs(case, at) == most)?))
            }
            23 => {
                let mut loads = vec![0; self.problem.convolution.pixels()];
                let mut reached = (0, 0);
                for (at, step) in self.computation.steps.iter().enumerate() {
                    for pixel in &step.load_pixels {
                        loads[*pixel as usize] += 1;
                        if loads[*pixel as usize] > reached.0 {
                            reached = (loads[*pixel as usize], at + 1);
                        }
                    }
                }
                self.rules.reload = Some(reached.0 - 1);
                Some(Some(reached.1))
            }
            // The transfers after the last step.
            24 => drop(&mut self.computation.closing.free_pixels, draw).and(Some(None)),
            25 => drop(&mut self.computation.closing.write.patches, draw).and(Some(None)),
            _ => {
                self.computation.closing.free_filters.start += 1;
                Some(None)
            }
        }
    }

    fn first(&self, is: impl Fn(&Case, usize) -> bool) -> Option<usize> {
        (0..self.computation.steps.len()).find(|at| is(self, *at)).map(|at| at + 1)
    }

    fn one_pass(&self) -> Groups {
        let pass = self.computation.steps.iter().take_while(|step| step.compute.filters.start == 0);
        pass.map(|step| step.compute.patches.clone()).collect()
    }

    /// Elements in memory while a step computes.
    fn elements(&self, at: usize) -> u64 {
        let (spec, compute) = (self.problem.convolution.spec(), &self.computation.steps[at].compute);
        let filters = compute.filters.len() as u64;
        (self.held(at).len() * spec.channels) as u64
            + filters * (self.problem.convolution.filter_elements() + compute.patches.len() as u64)
    }
}

#[test]
fn every_mutation_is_refused_with_its_step() {
    const HEURISTICS: usize = 27;
    let mut made = [0; HEURISTICS];
    for seed in 0..60 {
        for (kind, made) in made.iter_mut().enumerate() {
            let mut draw = Draw::new(seed * HEURISTICS as u64 + kind as u64);
            let mut case = case(&mut draw);
            let convolution = case.problem.convolution.clone();
            assert!(simulate(&convolution, &case.rules, &case.computation, None).is_ok());
            let Some(place) = case.mutate(kind, &mut draw) else { continue };
            let refused = simulate(&convolution, &case.rules, &case.computation, None);
            let Err(Violation { step, fault }) = refused else {
                panic!("seed {seed}, mutation {kind} passed")
            };
            assert_eq!(step, place, "seed {seed}, mutation {kind}: {fault}");
            *made += 1;
        }
    }
    println!("{made:?}: {} in all", made.iter().sum::<usize>());
    assert!(made.iter().all(|made| *made >= 5) && made.iter().sum::<usize>() >= 200, "{made:?}");
}
