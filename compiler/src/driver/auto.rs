//! Weights that are paged only because memory has too little room for them.
//!
//! With all weights paged, the smallest plan says how much room is left. As many weights stay in it as fit: small ones first, each
//! of which saves the latency of a read, and then the largest.

use std::collections::BTreeSet;

use tracing::info;

use super::Planned;
use super::primitives::Plan;
use crate::app::resolve::{Application, Paged};
use crate::error::Error;
use crate::frame::task;
use crate::search::known::Start;
use crate::units::MemoryGoal;

/// Weights of no more bytes than this are small.
const SMALL: u64 = 64 * 1024;

/// Percent of the room that is left for which weights are taken, one after another until the plan fits.
const SHARES: [u64; 5] = [100, 90, 75, 50, 0];

/// Searches, at most: for the smallest plan, and with what stays in the room.
pub(super) const SEARCHES: usize = 1 + SHARES.len();

/// A plan that meets the constraints with some weights paged, if one is found.
pub(super) fn paged(
    application: &Application,
    may_be_paged: &Paged,
    limit: u64,
    plan: Plan<'_>,
) -> Result<Option<Planned>, Error> {
    let with = |resident: BTreeSet<(usize, String)>| Application {
        paged: Some(Paged { resident }),
        may_be_paged: None,
        ..application.clone()
    };
    let all = with(may_be_paged.resident.clone());
    let mut least = all.clone();
    least.constraints.memory = Some(MemoryGoal::Min);
    let least = plan(&Start::default(), &least)?.plan.memory.total;
    let Some(room) = limit.checked_sub(least) else { return Ok(None) };
    let mut layers = Vec::new();
    for (c, task) in task::tasks(&all).iter().enumerate() {
        for id in task.network.ids() {
            layers.extend(
                task.paging(id).map(|paging| (paging.stored, c, task.network.layer(id).name.clone())),
            );
        }
    }
    layers.sort_by_key(|(bytes, ..)| if *bytes <= SMALL { (0, *bytes) } else { (1, u64::MAX - *bytes) });
    for share in SHARES {
        let mut left = room / 100 * share;
        let mut resident = may_be_paged.resident.clone();
        for (bytes, c, name) in &layers {
            if *bytes <= left {
                left -= bytes;
                resident.insert((*c, name.clone()));
            }
        }
        info!(resident = resident.len(), layers = layers.len(), "pages weights");
        let planned = plan(&Start::default(), &with(resident))?;
        if planned.plan.constraints.met {
            return Ok(Some(planned));
        }
    }
    Ok(None)
}
