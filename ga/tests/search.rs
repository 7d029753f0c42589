//! Properties of every search, and the tools compared with their definitions.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use csdfc_ga::{
    Archive, Evaluation, Problem, Section, Settings, Space, StopReason, crowding, fronts, hypervolume,
    mutate_one_gene, one_point, search, search_with, spacing,
};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// Bits, integers and an order: how many bits are set, how large the integers are against it, how ordered the order is.
struct Mixed {
    space: Space,
    asked: AtomicU64,
}

impl Mixed {
    fn new() -> Self {
        let integers = Section::Integers(vec![-3..=3, 0..=100, 5..=5]);
        let space = Space::new(vec![Section::Bits(8), integers, Section::Permutation(6)]);
        Mixed { space, asked: AtomicU64::new(0) }
    }
}

impl Problem for Mixed {
    fn space(&self) -> &Space {
        &self.space
    }

    fn evaluate(&self, genome: &[i64]) -> Evaluation {
        self.asked.fetch_add(1, Ordering::Relaxed);
        assert!(self.space.accepts(genome), "{genome:?}");
        let bits: i64 = genome[..8].iter().sum();
        let integers: i64 = genome[8..11].iter().sum();
        let unordered = genome[11..].windows(2).filter(|pair| pair[0] > pair[1]).count();
        let violation = if bits == 3 { 1.0 } else { 0.0 };
        Evaluation {
            objectives: vec![bits as f64, (integers - 4 * bits) as f64, unordered as f64],
            violation,
        }
    }
}

/// Fewer genomes than most limits: the bits that are set against those that are not.
struct Small(Space);

impl Problem for Small {
    fn space(&self) -> &Space {
        &self.0
    }

    fn evaluate(&self, genome: &[i64]) -> Evaluation {
        let bits: i64 = genome.iter().sum();
        Evaluation::new([bits as f64, (genome.len() as i64 - bits) as f64])
    }
}

fn on_threads<T: Send>(threads: usize, job: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(job)
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let run = |threads, seed| {
        let settings = Settings { seed, population: 30, generations: Some(15), ..Settings::default() };
        on_threads(threads, || search(&Mixed::new(), &settings))
    };
    for seed in 0..4 {
        assert_eq!(run(1, seed), run(2, seed), "seed {seed}");
    }
    assert_ne!(run(1, 0), run(1, 1));
}

#[test]
fn each_genome_is_asked_for_once() {
    let problem = Mixed::new();
    let outcome =
        search(&problem, &Settings { population: 40, generations: Some(30), ..Settings::default() });
    assert_eq!(outcome.evaluations, problem.asked.load(Ordering::Relaxed));
    assert!(outcome.evaluations < 40 * 31);
    assert!(outcome.front.iter().all(|individual| individual.evaluation.is_feasible()));
    assert!(outcome.front.iter().all(|individual| individual.evaluation.objectives[0] != 3.0));
}

#[test]
fn limits_end_a_search() {
    let base = || Settings { population: 20, ..Settings::default() };
    let run = |settings| search(&Mixed::new(), &settings);
    let default = run(base());
    assert_eq!((default.generations, default.stopped), (200, StopReason::Generations));
    let evaluated = run(Settings { evaluations: Some(55), ..base() });
    assert_eq!((evaluated.evaluations, evaluated.stopped), (55, StopReason::Evaluations));
    let small = Small(Space::new(vec![Section::Bits(3)]));
    let all = search(&small, &Settings { evaluations: Some(100), mutation_rate: 1.0, ..base() });
    assert_eq!((all.evaluations, all.stopped), (8, StopReason::Stale));
    let one = run(Settings { evaluations: Some(0), ..base() });
    assert_eq!((one.evaluations, one.population.len()), (1, 1));
    let late = run(Settings { time: Some(Duration::ZERO), ..base() });
    assert_eq!((late.generations, late.stopped), (0, StopReason::Time));
    assert_eq!((late.evaluations, late.population.len()), (20, 20));
    let mut told = Vec::new();
    let asked = search_with(&Mixed::new(), &base(), &mut |progress| {
        told.push((progress.generation, progress.evaluations, progress.front.len()));
        progress.generation < 3
    });
    assert_eq!((asked.generations, asked.stopped), (3, StopReason::Asked));
    assert_eq!(told.iter().map(|(generation, ..)| *generation).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(told.windows(2).all(|pair| pair[0].1 <= pair[1].1) && told[3].2 == asked.front.len());
}

#[test]
fn warm_starts_are_not_lost() {
    let best = vec![1, 1, 1, 1, 1, 1, 1, 1, -3, 0, 5, 0, 1, 2, 3, 4, 5];
    let wrong = vec![2; 17];
    let settings =
        |warm_starts| Settings { population: 10, generations: Some(0), warm_starts, ..Settings::default() };
    let outcome = search(&Mixed::new(), &settings(vec![wrong, best.clone()]));
    assert!(outcome.front.iter().any(|individual| individual.genome == best));
    assert!(
        !search(&Mixed::new(), &settings(vec![])).front.iter().any(|individual| individual.genome == best)
    );
}

#[test]
fn a_space_of_nothing_has_one_genome() {
    struct Nothing(Space);
    impl Problem for Nothing {
        fn space(&self) -> &Space {
            &self.0
        }
        fn evaluate(&self, genome: &[i64]) -> Evaluation {
            Evaluation::new([genome.len() as f64])
        }
    }
    let settings = Settings { population: 4, generations: Some(2), ..Settings::default() };
    let outcome = search(&Nothing(Space::new(vec![])), &settings);
    assert_eq!((outcome.evaluations, outcome.front.len()), (1, 1));
}

#[test]
fn volumes_and_spacings_are_those_of_the_definition() {
    let points = |points: &[&[f64]]| points.iter().map(|point| point.to_vec()).collect::<Vec<_>>();
    for (found, reference, expected) in [
        (points(&[]), &[1.0, 1.0][..], 0.0),
        (points(&[&[0.25]]), &[1.0], 0.75),
        (points(&[&[0.0, 0.5], &[0.5, 0.0], &[0.6, 0.6], &[2.0, 0.0]]), &[1.0, 1.0], 0.75),
        (points(&[&[0.0, 0.0, 0.0]]), &[1.0, 2.0, 3.0], 6.0),
        (points(&[&[0.0, 0.5, 0.5], &[0.5, 0.0, 0.5], &[0.5, 0.5, 0.0]]), &[1.0, 1.0, 1.0], 0.5),
        (points(&[&[0.5, 0.5, 0.5, 0.5], &[0.5, 0.5, 0.5, 0.0]]), &[1.0; 4], 0.125),
    ] {
        let volume = hypervolume(&found, reference);
        assert!((volume - expected).abs() < 1e-12, "{found:?}: {volume}");
    }
    for (found, expected) in [
        (points(&[&[0.0, 0.0]]), 0.0),
        (points(&[&[0.0, 2.0], &[1.0, 1.0], &[2.0, 0.0]]), 0.0),
        (points(&[&[0.0, 4.0], &[1.0, 3.0], &[4.0, 0.0]]), (16.0f64 * 2.0 / 3.0 / 2.0).sqrt()),
    ] {
        assert!((spacing(&found) - expected).abs() < 1e-12, "{found:?}: {}", spacing(&found));
    }
}

fn evaluations() -> impl Strategy<Value = Vec<Evaluation>> {
    // Half of them meet the constraints, the others violate them more or less.
    let one = (prop::collection::vec(0u8..6, 3), 0u8..6).prop_map(|(objectives, violation)| Evaluation {
        objectives: objectives.into_iter().map(|o| if o == 5 { f64::NAN } else { f64::from(o) }).collect(),
        violation: f64::from(violation.saturating_sub(2)),
    });
    prop::collection::vec(one, 0..30)
}

/// Better by the definition: NaN is worse than any number.
fn better(a: &Evaluation, b: &Evaluation) -> bool {
    let number = |value: &f64| if value.is_nan() { 1e9 } else { *value };
    let pairs: Vec<(f64, f64)> =
        a.objectives.iter().map(number).zip(b.objectives.iter().map(number)).collect();
    match (a.violation > 0.0, b.violation > 0.0) {
        (false, false) => pairs.iter().all(|(a, b)| a <= b) && pairs.iter().any(|(a, b)| a < b),
        (true, true) => a.violation < b.violation,
        (a, b) => !a && b,
    }
}

proptest! {
    #[test]
    fn fronts_are_those_of_the_definition(population in evaluations()) {
        let mut left: Vec<usize> = (0..population.len()).collect();
        for front in fronts(&population) {
            let free = |i: &usize| !left.iter().any(|j| better(&population[*j], &population[*i]));
            let expected: Vec<usize> = left.iter().copied().filter(free).collect();
            prop_assert_eq!(&front, &expected);
            left.retain(|i| !expected.contains(i));
        }
        prop_assert!(left.is_empty());
    }

    #[test]
    fn an_archive_holds_what_none_dominates(population in evaluations()) {
        let mut forwards = Archive::default();
        let mut backwards = Archive::default();
        let numbered = || population.iter().enumerate().map(|(i, evaluation)| ([i as i64], evaluation));
        for (genome, evaluation) in numbered() {
            forwards.insert(&genome, evaluation);
        }
        for (genome, evaluation) in numbered().rev() {
            backwards.insert(&genome, evaluation);
        }
        let genomes = |archive: &Archive| archive.members().iter().map(|m| m.genome[0] as usize).collect::<Vec<_>>();
        prop_assert_eq!(genomes(&forwards), genomes(&backwards));
        let same = |a: usize, b: usize| !(0..3).any(|m| {
            let (a, b) = (population[a].objectives[m], population[b].objectives[m]);
            a != b && !(a.is_nan() && b.is_nan())
        });
        for (i, evaluation) in population.iter().enumerate() {
            let beaten = population.iter().any(|other| better(other, evaluation));
            let before = (0..i).any(|j| same(i, j) && population[j].is_feasible());
            prop_assert_eq!(genomes(&forwards).contains(&i), evaluation.is_feasible() && !beaten && !before);
        }
    }

    #[test]
    fn the_ends_of_a_front_are_lonely(values in prop::collection::btree_set(0u32..1000, 3..20)) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let population: Vec<Evaluation> = values.iter().map(|x| Evaluation::new([*x, -x])).collect();
        let distance = crowding(&population, &(0..values.len()).collect::<Vec<_>>());
        let range = values[values.len() - 1] - values[0];
        for (i, distance) in distance.iter().enumerate() {
            let expected = match i {
                0 => f64::INFINITY,
                i if i + 1 == values.len() => f64::INFINITY,
                i => 2.0 * (values[i + 1] - values[i - 1]) / range,
            };
            prop_assert!((distance - expected).abs() < 1e-9 || *distance == expected);
        }
    }

    #[test]
    fn children_are_genomes(seed in 0u64..1000) {
        let problem = Mixed::new();
        let space = problem.space();
        let random = &mut ChaCha8Rng::seed_from_u64(seed);
        let parents = [space.random(random), space.random(random)];
        for child in one_point(space, [&parents[0], &parents[1]], random) {
            prop_assert!(space.accepts(&child));
            for (gene, value) in child[..11].iter().enumerate() {
                prop_assert!(parents.iter().any(|parent| parent[gene] == *value));
            }
            let mut mutant = child.clone();
            mutate_one_gene(space, &mut mutant, random);
            prop_assert!(space.accepts(&mutant));
            let changed = child.iter().zip(&mutant).filter(|(a, b)| a != b).count();
            prop_assert!(changed <= 1 || changed == 2 && child[..11] == mutant[..11]);
        }
    }
}
