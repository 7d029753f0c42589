//! The offers for all CNNs together, and the plans of the most promising.

use csdfc_input::app::resolve::Application;
use csdfc_network::LayerId;
use csdfc_runtime::bind::Primitive;

use super::with_primitives;
use crate::cost::timing::Timing;
use crate::driver::Context;
use crate::driver::candidate::Candidate;
use crate::error::Error;
use crate::frame::choice::Choice;
use crate::frame::task;
use crate::objective::{Figures, Objective};
use crate::search::joint::{self, Offer};
use crate::search::watch::Watch;

/// Maximum number of offers that are planned.
const TRIES: usize = 6;
/// Prices of a stored byte for several CNNs: 0, and powers of 2. The unit is the time of a frame for all stored bytes.
const PRICES: std::ops::RangeInclusive<i32> = -8..=8;

/// An offer for each CNN.
struct OfferCombination<'o> {
    /// The source that they belong to.
    source: usize,
    offers: Vec<&'o Offer>,
    /// The figures of the plan; its bytes are approximate.
    figures: Figures,
}

/// Plans of the few offers that promise to be the best within the budget. `sources` are the application as it is, and
/// the application legalised for other layouts.
pub(super) fn planned(
    sources: &[Application],
    context: &Context<'_>,
    objective: &Objective,
    watch: &Watch<'_>,
) -> Result<Option<Candidate>, Error> {
    let is_over = || watch.is_over();
    let mut each: Vec<Vec<Vec<Offer>>> = Vec::new();
    for source in sources {
        let tasks = task::tasks(source);
        let timings = Timing::new(source, &tasks, &task::elements(source), context.device)?;
        let of_cnn = |(task, timing)| {
            joint::offers(task, timing, source.storage, source.max_primitive_error, &is_over)
        };
        each.push(tasks.iter().zip(&timings).map(of_cnn).collect::<Result<_, _>>()?);
    }
    let mut all: Vec<OfferCombination<'_>> = Vec::new();
    for (source, offers) in each.iter().enumerate() {
        all.extend(together(source, offers, &sources[source]));
    }
    all.sort_by(|a, b| objective.least.compare(&a.figures, &b.figures));
    let limit = objective.most_bytes();
    // The factor by which the last plan was larger than its offer said.
    let mut factor = 1.0;
    let mut best: Option<Candidate> = None;
    for _ in 0..TRIES {
        let fits = |offer: &&OfferCombination<'_>| offer.figures.memory as f64 * factor <= limit as f64;
        let Some(at) = all.iter().position(|offer| fits(&offer)) else { break };
        let offer = all.remove(at);
        let source = &sources[offer.source];
        let changes: Vec<(usize, LayerId, Primitive)> = offer
            .offers
            .iter()
            .enumerate()
            .flat_map(|(c, offer)| offer.primitives.iter().map(move |(id, primitive)| (c, *id, *primitive)))
            .collect();
        let with = with_primitives(source, &changes).unwrap_or_else(|| source.clone());
        let choices: Vec<Choice> = offer.offers.iter().map(|offer| offer.choice.clone()).collect();
        let planned = context.plan_picked(choices, &with)?;
        factor = planned.plan.memory.total as f64 / offer.figures.memory as f64;
        if best.as_ref().is_none_or(|best| planned.is_better(&best.planned, objective)) {
            best = Some(Candidate { application: with, planned });
        }
    }
    Ok(best)
}

/// Offers for all CNNs. A single CNN has its own offers. Several CNNs have, for each size of the arena and each price
/// of a stored byte, the best offer of each.
fn together<'o>(
    source: usize,
    each: &'o [Vec<Offer>],
    application: &Application,
) -> Vec<OfferCombination<'o>> {
    let of = |offers: Vec<&'o Offer>| {
        let arenas = offers.iter().map(|offer| offer.arena);
        let arena: u64 = if runs_together(application) { arenas.sum() } else { arenas.max().unwrap_or(0) };
        let stored: u64 = offers.iter().map(|offer| offer.stored).sum();
        let time = Figures::time(offers.iter().map(|offer| offer.period_ns.max(1.0)));
        OfferCombination { source, offers, figures: Figures { memory: stored + arena, time } }
    };
    if let [offers] = each {
        return offers.iter().map(|offer| of(vec![offer])).collect();
    }
    let stored: u64 = each.iter().filter_map(|offers| offers.first()).map(|offer| offer.stored).sum();
    let prices = PRICES.map(|power| 2f64.powi(power) / stored.max(1) as f64);
    let prices: Vec<f64> = std::iter::once(0.0).chain(prices).collect();
    let mut arenas: Vec<u64> = each.iter().flatten().map(|offer| offer.arena).collect();
    arenas.sort_unstable();
    arenas.dedup();
    let mut found = Vec::new();
    for (arena, price) in arenas.iter().flat_map(|arena| prices.iter().map(move |price| (*arena, *price))) {
        let worth = |offer: &&Offer| offer.period_ns.max(1.0).ln() + price * offer.stored as f64;
        let best = |offers: &'o Vec<Offer>| {
            let fits = offers.iter().filter(|offer| offer.arena <= arena);
            fits.min_by(|a, b| worth(a).total_cmp(&worth(b)))
        };
        found.extend(each.iter().map(best).collect::<Option<Vec<_>>>().map(of));
    }
    found
}

/// Whether partitions of several CNNs run at the same time.
fn runs_together(application: &Application) -> bool {
    task::elements(application).iter().any(|element| element.windows(2).any(|pair| pair[0].0 != pair[1].0))
}
