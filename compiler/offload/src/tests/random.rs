//! Random layers and strategies, executed.

use super::*;
use crate::problem::Unit;
use crate::shapes::{self, HEURISTICS};
use crate::simulate::{Data, Rules, convolve, simulate};
use crate::steps::Computation;

/// Every kind of strategy over random layers computes the convolution, and has the counted cost.
#[test]
fn strategies_compute_the_convolution() {
    for seed in 0..600 {
        let mut draw = Draw::new(seed);
        let convolution = draw.layer(40);
        let filters = convolution.spec().filters;
        let options = Options {
            group: Some(draw.number(1, 6)),
            filters_at_once: Some(draw.number(1, filters)),
            unit: [Unit::Pixels, Unit::Elements][draw.number(0, 1)],
            count_writes: draw.number(0, 1) == 1,
            ..Options::default()
        };
        let accelerator = Accelerator {
            tl: draw.number(0, 3) as u64,
            tw: draw.number(0, 3) as u64,
            tacc: draw.number(0, 9) as u64,
            ..Accelerator::default()
        };
        let problem = Problem::new(convolution.clone(), accelerator, &options).unwrap();
        let data = Data::random(&convolution, seed);
        let expected = convolve(&convolution, &data);
        let named = HEURISTICS.iter().map(|(_, kind)| shapes::unbounded(&problem, *kind).groups);
        let mut all: Vec<Groups> = named.collect();
        all.push(draw.groups(convolution.patches(), problem.group));
        for groups in all {
            let computation = Computation::new(&problem, &groups);
            let (trace, results) =
                simulate(&convolution, &Rules::new(&problem), &computation, Some(&data)).unwrap();
            assert_eq!(results, expected, "seed {seed}");
            let cost = problem.cost(&groups);
            let counted = (trace.steps.len() as u64, trace.pixels_loaded, trace.memory);
            assert_eq!(counted, (cost.steps, cost.pixels_loaded, cost.memory), "seed {seed}");
            assert_eq!(cost.duration, by_definition_3(&problem, &computation), "seed {seed}");
        }
    }
}

/// The duration of Definition 3, or of Eq. 15, summed over the steps. Filters count where they are not preloaded.
fn by_definition_3(problem: &Problem, computation: &Computation) -> u64 {
    let spec = problem.convolution.spec();
    let per_filter = spec.filter[0] * spec.filter[1];
    let [pixel, filter, output] = match problem.unit {
        Unit::Pixels => [1, per_filter, 1],
        Unit::Elements => [spec.channels, spec.channels / spec.channel_groups * per_filter, 0],
    };
    let written = |outputs: &crate::steps::Outputs| match output {
        0 => outputs.patches.len() * outputs.filters.len(),
        _ => outputs.patches.len(),
    };
    let Accelerator { tl, tw, tacc, .. } = problem.accelerator;
    let mut duration = 0;
    for step in &computation.steps {
        duration += tl * (step.load_pixels.len() * pixel) as u64 + tacc;
        if problem.passes() > 1 {
            duration += tl * (step.load_filters.len() * filter) as u64;
        }
        if problem.count_writes {
            duration += tw * written(&step.write) as u64;
        }
    }
    if problem.count_writes {
        duration += tw * written(&computation.closing.write) as u64;
    }
    duration
}
