//! Prices of bytes, and the lower bound that follows from them.
//!
//! The bytes of a region at the moment of a clique have a price. A block then costs its cost and the price of its bytes
//! in use, and goes where that is least. All these, less the price of all bytes within the limits, are no more than the
//! least cost of any packing: whatever fits pays for no more bytes than there are. This is the Lagrangian relaxation of
//! the limits. At the best prices it is as high as the linear relaxation. Prices rise where too many bytes are in use,
//! and fall where some are left (subgradients: Held, Wolfe and Crowder, Validation of subgradient optimization, 1974).

use super::task::Task;
use crate::assignment::LOOKS_A_STEP;
use crate::budget::Meter;

/// Bits behind the point of prices and priced costs. All bounds are sums of integers, and so are exact.
const FRACTION: u32 = 32;

/// The highest price of a byte, so that sums fit 128 bits.
const DEAREST: u64 = 1 << 56;

/// What blocks cost at some prices.
pub struct Prices {
    /// By block and region: its cost and the price of its bytes, in 2^-32 units of cost.
    pub priced: Vec<Vec<i128>>,
    /// By region and clique: the price of a byte.
    of_byte: Vec<Vec<u64>>,
    /// The price of all bytes within the limits.
    given: i128,
}

/// Maximum number of rounds, and the share of the budget that they may take.
const ROUNDS: usize = 300;
const SHARE: u64 = 4;

/// After so many rounds without a higher bound, steps are halved.
const PATIENCE: usize = 8;

/// The least size of a step.
const FINEST: f64 = 1e-3;

impl Prices {
    /// Bytes cost nothing.
    pub fn none(task: &Task) -> Self {
        let regions = 0..task.limits.len();
        let exact = |block| {
            regions.clone().map(|region| i128::from(task.cost_of(block, region)) << FRACTION).collect()
        };
        let of_byte = vec![vec![0; task.cliques.len()]; task.limits.len()];
        Prices { priced: (0..task.count()).map(exact).collect(), of_byte, given: 0 }
    }

    /// Prices with a high bound, if no packing is known that costs less than `cost`.
    pub fn found(task: &Task, cost: u64, budget: &mut Meter) -> Self {
        // By region and clique.
        let regions = task.limits.len();
        let mut prices = vec![vec![0f64; task.cliques.len()]; regions];
        let (mut best, mut highest) = (prices.clone(), f64::MIN);
        let (mut size, mut waited) = (1.0, 0);
        let end = budget.spent() + budget.left() / SHARE;
        for _ in 0..ROUNDS {
            if budget.spent() >= end || budget.exhausted() || size < FINEST {
                break;
            }
            let mut bound = 0.0;
            let mut over: Vec<Vec<f64>> = prices
                .iter()
                .zip(task.limits)
                .map(|(prices, limit)| vec![-(*limit as f64); prices.len()])
                .collect();
            for (over, prices) in over.iter().zip(&prices) {
                bound += over.iter().zip(prices).map(|(over, price)| over * price).sum::<f64>();
            }
            for (block, uses) in task.uses.iter().enumerate() {
                budget.spend((uses.len() * regions) as u64 / LOOKS_A_STEP + 1);
                let priced = |region: usize| {
                    let bytes = uses.iter().map(|(c, bytes)| prices[region][*c] * *bytes as f64);
                    task.cost_of(block, region) as f64 + bytes.sum::<f64>()
                };
                let least = task.allowed(block).map(|region| (priced(region), region));
                let Some((cost, region)) = least.min_by(|one, other| one.0.total_cmp(&other.0)) else {
                    continue;
                };
                bound += cost;
                uses.iter().for_each(|(c, bytes)| over[region][*c] += *bytes as f64);
            }
            waited += 1;
            if bound > highest {
                (highest, waited) = (bound, 0);
                best.clone_from(&prices);
            } else if waited >= PATIENCE {
                (size, waited) = (size / 2.0, 0);
                prices.clone_from(&best);
            }
            // Where nothing is paid and bytes are left, nothing changes.
            let pairs = || over.iter().flatten().zip(prices.iter().flatten());
            let norm: f64 = pairs()
                .filter(|(over, price)| **over > 0.0 || **price > 0.0)
                .map(|(over, _)| over * over)
                .sum();
            let gap = cost as f64 - bound;
            if norm == 0.0 || gap <= 0.0 {
                break;
            }
            for (over, price) in over.iter().flatten().zip(prices.iter_mut().flatten()) {
                *price = (*price + size * gap / norm * over).max(0.0);
            }
        }
        Prices::of(task, &best)
    }

    fn of(task: &Task, prices: &[Vec<f64>]) -> Self {
        let exact = |price: &f64| ((price * (1u64 << FRACTION) as f64) as u64).min(DEAREST);
        let prices: Vec<Vec<u64>> = prices.iter().map(|prices| prices.iter().map(exact).collect()).collect();
        let mut all = Prices::none(task);
        for (region, prices) in prices.iter().enumerate() {
            all.given +=
                prices.iter().map(|price| i128::from(*price) * i128::from(task.limits[region])).sum::<i128>();
            for (priced, uses) in all.priced.iter_mut().zip(&task.uses) {
                priced[region] +=
                    uses.iter().map(|(c, bytes)| i128::from(prices[*c]) * i128::from(*bytes)).sum::<i128>();
            }
        }
        all.of_byte = prices;
        all
    }

    /// The price of some bytes of a region at the moment of a clique.
    pub fn price(&self, region: usize, clique: usize, bytes: u64) -> i128 {
        i128::from(self.of_byte[region][clique]) * i128::from(bytes)
    }

    /// What every packing that fits costs at least.
    pub fn bound(&self, task: &Task) -> u64 {
        let least = |block: usize| task.allowed(block).map(|region| self.priced[block][region]).min();
        self.cost((0..task.count()).filter_map(least).sum())
    }

    /// The least cost, in whole units, that is no lower than this sum of priced costs less what is given.
    pub fn cost(&self, priced: i128) -> u64 {
        let units = (priced - self.given + ((1 << FRACTION) - 1)) >> FRACTION;
        u64::try_from(units.max(0)).unwrap_or(u64::MAX)
    }
}
