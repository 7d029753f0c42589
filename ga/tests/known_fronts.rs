//! Problems whose fronts are known: the search comes near all of each.

#![expect(clippy::print_stdout, reason = "the figures are for the reader of --nocapture")]

use csdfc_ga::{Evaluation, Outcome, Problem, Section, Settings, Space, hypervolume, search, spacing};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

/// Steps into which the range of a real number is divided.
const STEPS: i64 = 1 << 30;

/// A test problem on real numbers.
struct Real {
    space: Space,
    ranges: Vec<(f64, f64)>,
    objectives: fn(&[f64]) -> Vec<f64>,
}

impl Real {
    fn new(ranges: Vec<(f64, f64)>, objectives: fn(&[f64]) -> Vec<f64>) -> Self {
        let space = Space::new(vec![Section::Integers(vec![0..=STEPS; ranges.len()])]);
        Real { space, ranges, objectives }
    }

    fn unit(count: usize, objectives: fn(&[f64]) -> Vec<f64>) -> Self {
        Real::new(vec![(0.0, 1.0); count], objectives)
    }
}

impl Problem for Real {
    fn space(&self) -> &Space {
        &self.space
    }

    fn evaluate(&self, genome: &[i64]) -> Evaluation {
        let value =
            |(gene, (low, high)): (&i64, &(f64, f64))| low + (high - low) * *gene as f64 / STEPS as f64;
        let values: Vec<f64> = genome.iter().zip(&self.ranges).map(value).collect();
        Evaluation::new((self.objectives)(&values))
    }
}

/// Simulated binary crossover (Deb and Agrawal 1995), distribution index 15.
fn simulated_binary(_: &Space, parents: [&[i64]; 2], random: &mut ChaCha8Rng) -> [Vec<i64>; 2] {
    let mut children = parents.map(<[i64]>::to_vec);
    for gene in 0..parents[0].len() {
        if random.random_range(0..2) == 0 {
            continue;
        }
        let u = random.random_range(0.0..1.0f64);
        let power = 1.0 / 16.0;
        let spread = if u <= 0.5 { (2.0 * u).powf(power) } else { (0.5 / (1.0 - u)).powf(power) };
        let (a, b) = (parents[0][gene] as f64, parents[1][gene] as f64);
        let values = [0.5 * ((a + b) - spread * (b - a)), 0.5 * ((a + b) + spread * (b - a))];
        let swap = random.random_range(0..2usize);
        for (child, value) in [swap, 1 - swap].into_iter().zip(values) {
            children[child][gene] = (value.round() as i64).clamp(0, STEPS);
        }
    }
    children
}

/// Polynomial mutation (Deb and Goyal 1996), distribution index 20, of one gene in `len` on average.
fn polynomial(_: &Space, genome: &mut [i64], random: &mut ChaCha8Rng) {
    let rate = 1.0 / genome.len() as f64;
    for gene in genome {
        if random.random_range(0.0..1.0) < rate {
            let u = random.random_range(0.0..1.0f64);
            let power = 1.0 / 21.0;
            let step =
                if u < 0.5 { (2.0 * u).powf(power) - 1.0 } else { 1.0 - (2.0 * (1.0 - u)).powf(power) };
            *gene = (*gene + (step * STEPS as f64) as i64).clamp(0, STEPS);
        }
    }
}

fn solve(problem: &Real, generations: u64) -> Outcome {
    let settings = Settings {
        generations: Some(generations),
        crossover: &simulated_binary,
        mutation: &polynomial,
        mutation_rate: 1.0,
        ..Settings::default()
    };
    search(problem, &settings)
}

fn points(outcome: &Outcome) -> Vec<Vec<f64>> {
    outcome.front.iter().map(|individual| individual.evaluation.objectives.clone()).collect()
}

/// Mean distance of points to the nearest of a known front.
fn distance(points: &[Vec<f64>], front: &[Vec<f64>]) -> f64 {
    let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    let nearest =
        |point: &Vec<f64>| front.iter().map(|other| apart(point, other)).fold(f64::INFINITY, f64::min);
    points.iter().map(nearest).sum::<f64>() / points.len() as f64
}

/// Zitzler, Deb and Thiele 2000: g of the variables but the first, as most of the problems have it.
fn g(x: &[f64]) -> f64 {
    1.0 + 9.0 * x[1..].iter().sum::<f64>() / (x.len() - 1) as f64
}

fn zdt3_shape(f: f64, g: f64) -> f64 {
    1.0 - (f / g).sqrt() - f / g * (10.0 * std::f64::consts::PI * f).sin()
}

fn zdt6_first(x: f64) -> f64 {
    1.0 - (-4.0 * x).exp() * (6.0 * std::f64::consts::PI * x).sin().powi(6)
}

/// Checks that a search comes near the front `second(first)`, and that its front dominates nearly as much.
fn check(name: &str, problem: &Real, generations: u64, firsts: &[f64], second: fn(f64) -> f64) {
    let found = points(&solve(problem, generations));
    let front: Vec<Vec<f64>> = firsts.iter().map(|first| vec![*first, second(*first)]).collect();
    let reference = [1.1, 1.1];
    let (volume, most) = (hypervolume(&found, &reference), hypervolume(&front, &reference));
    let (distance, spacing) = (distance(&found, &front), spacing(&found));
    println!("{name}: volume {volume:.4} of {most:.4}, distance {distance:.5}, spacing {spacing:.5}");
    assert!(volume > 0.97 * most && volume < 1.001 * most, "{name}: {volume} of {most}");
    assert!(distance < 0.02 && spacing < 0.05, "{name}: distance {distance}, spacing {spacing}");
}

fn grid() -> Vec<f64> {
    (0..=1000).map(|i| f64::from(i) / 1000.0).collect()
}

#[test]
fn zdt1() {
    let problem = Real::unit(30, |x| vec![x[0], g(x) * (1.0 - (x[0] / g(x)).sqrt())]);
    check("ZDT1", &problem, 150, &grid(), |f| 1.0 - f.sqrt());
}

#[test]
fn zdt2() {
    let problem = Real::unit(30, |x| vec![x[0], g(x) * (1.0 - (x[0] / g(x)).powi(2))]);
    check("ZDT2", &problem, 150, &grid(), |f| 1.0 - f * f);
}

#[test]
fn zdt3() {
    let problem = Real::unit(30, |x| vec![x[0], g(x) * zdt3_shape(x[0], g(x))]);
    check("ZDT3", &problem, 150, &grid(), |f| zdt3_shape(f, 1.0));
}

#[test]
fn zdt4() {
    let mut ranges = vec![(-5.0, 5.0); 10];
    ranges[0] = (0.0, 1.0);
    let problem = Real::new(ranges, |x| {
        let wave = |x: &f64| x * x - 10.0 * (4.0 * std::f64::consts::PI * x).cos();
        let g = 1.0 + 10.0 * 9.0 + x[1..].iter().map(wave).sum::<f64>();
        vec![x[0], g * (1.0 - (x[0] / g).sqrt())]
    });
    check("ZDT4", &problem, 300, &grid(), |f| 1.0 - f.sqrt());
}

#[test]
fn zdt6() {
    let problem = Real::unit(10, |x| {
        let g = 1.0 + 9.0 * (x[1..].iter().sum::<f64>() / 9.0).powf(0.25);
        vec![zdt6_first(x[0]), g * (1.0 - (zdt6_first(x[0]) / g).powi(2))]
    });
    // The first objective has its least, 0.2807753191, at the greatest of its waves.
    let firsts: Vec<f64> =
        grid().into_iter().map(|at| 0.280_775_319_1 + (1.0 - 0.280_775_319_1) * at).collect();
    check("ZDT6", &problem, 250, &firsts, |f| 1.0 - f * f);
}

/// Deb, Thiele, Laumanns and Zitzler 2002: an eighth of a sphere.
#[test]
fn dtlz2() {
    let problem = Real::unit(12, |x| {
        let g: f64 = x[2..].iter().map(|x| (x - 0.5).powi(2)).sum();
        let [a, b] = [x[0], x[1]].map(|x| x * std::f64::consts::FRAC_PI_2);
        [a.cos() * b.cos(), a.cos() * b.sin(), a.sin()].map(|value| (1.0 + g) * value).to_vec()
    });
    let outcome = solve(&problem, 100);
    let found: Vec<Vec<f64>> =
        outcome.population.iter().map(|individual| individual.evaluation.objectives.clone()).collect();
    let off = |point: &Vec<f64>| (point.iter().map(|value| value * value).sum::<f64>().sqrt() - 1.0).abs();
    let distance = found.iter().map(off).sum::<f64>() / found.len() as f64;
    let volume = hypervolume(&found, &[1.1; 3]);
    let most = 1.1f64.powi(3) - std::f64::consts::PI / 6.0;
    println!("DTLZ2: volume {volume:.4} of {most:.4}, distance {distance:.5}");
    assert!(volume > 0.85 * most && volume < most && distance < 0.03, "{volume} of {most}, {distance}");
}

/// A 0/1 knapsack of two objectives, weight and worth.
struct Knapsack {
    space: Space,
    things: Vec<(u64, u64)>,
}

impl Problem for Knapsack {
    fn space(&self) -> &Space {
        &self.space
    }

    fn evaluate(&self, genome: &[i64]) -> Evaluation {
        let taken = || self.things.iter().zip(genome).filter(|(_, gene)| **gene == 1).map(|(thing, _)| thing);
        let worth: u64 = taken().map(|(_, worth)| worth).sum();
        Evaluation::new([taken().map(|(weight, _)| weight).sum::<u64>() as f64, -(worth as f64)])
    }
}

/// Weight and worth of all selections that none dominates, by dynamic programming over weights.
fn knapsack_front(things: &[(u64, u64)]) -> Vec<Vec<f64>> {
    let all: u64 = things.iter().map(|(weight, _)| weight).sum();
    let mut worth: Vec<Option<u64>> = vec![None; all as usize + 1];
    worth[0] = Some(0);
    for (weight, value) in things {
        for to in (*weight as usize..worth.len()).rev() {
            worth[to] = worth[to].max(worth[to - *weight as usize].map(|worth| worth + value));
        }
    }
    let mut best = None;
    let mut front = Vec::new();
    for (weight, worth) in worth.iter().enumerate() {
        if let Some(worth) = worth.filter(|worth| Some(*worth) > best) {
            best = Some(worth);
            front.push(vec![weight as f64, -(worth as f64)]);
        }
    }
    front
}

#[test]
fn a_knapsack_has_the_front_of_dynamic_programming() {
    use rand::SeedableRng;
    let random = &mut ChaCha8Rng::seed_from_u64(3);
    let things: Vec<(u64, u64)> =
        (0..14).map(|_| (random.random_range(1..30), random.random_range(1..30))).collect();
    let front = knapsack_front(&things);
    let problem = Knapsack { space: Space::new(vec![Section::Bits(things.len())]), things };
    let settings = Settings { mutation_rate: 0.5, generations: Some(120), ..Settings::default() };
    let outcome = search(&problem, &settings);
    assert!(outcome.evaluations < 1 << 14);
    assert_eq!(points(&outcome), front);
}
