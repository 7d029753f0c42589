use rand::RngExt;

use super::instances::{check_lawful, life, random};
use crate::packing::banks::{Bank, share};
use crate::packing::lives::problem;
use crate::packing::{Budget, Life, Limit, pack};

const STEPS: u64 = 10_000_000;

fn bank(name: &str, capacity: Option<u64>, bytes_per_second: f64) -> Bank {
    Bank { name: name.into(), capacity, bytes_per_second }
}

/// The least time of all choices of banks, each packed by itself.
fn least(lives: &[Life], traffic: &[u64], banks: &[Bank]) -> Option<f64> {
    let choices = banks.len().pow(lives.len() as u32);
    let time = |choice: usize| {
        let of = |i: usize| choice / banks.len().pow(i as u32) % banks.len();
        let fits = banks.iter().enumerate().all(|(b, bank)| {
            let here: Vec<Life> =
                (0..lives.len()).filter(|i| of(*i) == b).map(|i| lives[i].clone()).collect();
            let height = pack(&problem(&here).unwrap(), &mut Budget::new(Limit::Work(STEPS))).packing.bytes;
            bank.capacity.is_none_or(|capacity| height <= capacity)
        });
        fits.then(|| (0..lives.len()).map(|i| traffic[i] as f64 / banks[of(i)].bytes_per_second).sum::<f64>())
    };
    (0..choices).filter_map(time).min_by(f64::total_cmp)
}

#[test]
fn no_other_choice_of_banks_takes_less_time() {
    let mut split = 0;
    for seed in 0..60 {
        let random = &mut random(seed);
        let lives: Vec<Life> = (0..random.random_range(1..=6))
            .map(|_| {
                let lower = random.random_range(0..6);
                life(lower, lower + random.random_range(1..5), random.random_range(1..10))
            })
            .collect();
        let traffic: Vec<u64> =
            lives.iter().map(|life| life.block.bytes * random.random_range(1..5)).collect();
        let mut banks = vec![
            bank("dram", (seed % 3 == 0).then_some(12), 1.0),
            bank("sram", Some(random.random_range(0..12)), 4.0),
        ];
        if seed % 2 == 0 {
            banks.push(bank("tcm", Some(5), 8.0));
        }
        let shares = share(&problem(&lives).unwrap(), &traffic, &banks, &mut Budget::new(Limit::Work(STEPS)));
        let expected = least(&lives, &traffic, &banks);
        assert_eq!(shares.as_ref().map(|shares| shares.seconds), expected, "seed {seed}: {lives:?}");
        let Some(shares) = shares else { continue };
        assert!(shares.proven);
        for (b, bank) in banks.iter().enumerate() {
            let here: Vec<usize> = (0..lives.len()).filter(|i| shares.bank[*i] == b).collect();
            let some: Vec<Life> = here.iter().map(|i| lives[*i].clone()).collect();
            let offsets: Vec<u64> = here.iter().map(|i| shares.offsets[*i]).collect();
            let ends = some.iter().zip(&offsets).map(|(life, at)| life.block.bytes + at);
            let height = ends.max().unwrap_or(0);
            check_lawful(&some, &offsets, height);
            assert!(bank.capacity.is_none_or(|capacity| height <= capacity));
        }
        split += u64::from(shares.bank.iter().any(|bank| *bank != shares.bank[0]));
    }
    assert!(split > 20, "{split}");
}

#[test]
fn a_budget_ends_the_proof_not_the_answer() {
    let lives: Vec<Life> = (0..30).map(|i| life(i, i + 4, 3 + (i as u64 * 7) % 11)).collect();
    let traffic: Vec<u64> = (0..30).map(|i| 10 + (i * 13) % 17).collect();
    let banks = [bank("dram", None, 1.0), bank("sram", Some(20), 3.0)];
    let problem = problem(&lives).unwrap();
    let shares = share(&problem, &traffic, &banks, &mut Budget::new(Limit::Work(1000))).unwrap();
    assert!(!shares.proven && shares.seconds > traffic.iter().sum::<u64>() as f64 / 3.0);
    assert_eq!(share(&problem, &traffic, &[], &mut Budget::new(Limit::Work(1000))), None);
}
