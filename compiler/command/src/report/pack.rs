//! The result of `csdfc pack`, for people and for machines.

use std::collections::BTreeMap;

use csdfc_input::units::{self, grouped};
use csdfc_packing::infeasible::InfeasibleCore;
use csdfc_packing::{Solution, Stopped};
use csdfc_planner::explain::table::table;
use csdfc_planner::minimalloc::BufferRow;
use serde::Serialize;

/// A packing as data.
#[derive(Debug, Serialize)]
pub struct PackReport {
    /// End of the highest buffer.
    pub bytes: u64,
    /// No packing takes fewer bytes.
    pub bound: u64,
    /// Bytes above the bound.
    pub gap: u64,
    /// Whether no packing is smaller.
    pub proven: bool,
    /// The capacity asked for.
    pub capacity: Option<u64>,
    /// Whether the packing fits it.
    pub fits: Option<bool>,
    /// Steps of the search.
    pub work: u64,
    /// Why the search ended.
    pub stopped: Stopped,
    /// Buffers that already do not fit the capacity, where that is proven.
    pub core: Option<CoreResult>,
    /// Offset of each buffer, by its name.
    pub offsets: BTreeMap<String, u64>,
}

/// Buffers that do not fit.
#[derive(Debug, Serialize)]
pub struct CoreResult {
    /// Their names.
    pub buffers: Vec<String>,
    /// Whether they fit as soon as one is left out.
    pub irreducible: bool,
}

/// The result as data.
pub fn result(
    rows: &[BufferRow],
    solution: &Solution,
    capacity: Option<u64>,
    core: Option<&InfeasibleCore>,
) -> PackReport {
    let bytes = solution.packing.bytes;
    let names = |core: &InfeasibleCore| core.blocks.iter().map(|i| rows[*i].id.clone()).collect();
    PackReport {
        bytes,
        bound: solution.bound,
        gap: bytes - solution.bound,
        proven: solution.proven(),
        capacity,
        fits: capacity.map(|capacity| bytes <= capacity),
        work: solution.work,
        stopped: solution.stopped,
        core: core.map(|core| CoreResult { buffers: names(core), irreducible: core.irreducible }),
        offsets: rows
            .iter()
            .map(|row| row.id.clone())
            .zip(solution.packing.offsets.iter().copied())
            .collect(),
    }
}

/// The result as text.
pub fn text(rows: &[BufferRow], result: &PackReport) -> String {
    let proof = match (result.proven, result.stopped) {
        (true, _) => "the smallest possible (proven)".to_owned(),
        (false, stopped) => {
            let why = match stopped {
                Stopped::Complete => "",
                Stopped::Work => "; the search ran out of steps (--budget gives it more)",
                Stopped::Time => "; the search ran out of time (--budget gives it more)",
                Stopped::Asked => "; the search was interrupted",
            };
            format!("they need at least {}{why}", units::bytes(result.bound))
        }
    };
    let mut text = format!("{} buffers in {}: {proof}\n", rows.len(), units::bytes(result.bytes));
    if let (Some(capacity), Some(fits)) = (result.capacity, result.fits) {
        let capacity_text = units::bytes(capacity);
        text.push_str(&match fits {
            true => format!("capacity {capacity_text}: fits\n"),
            false if result.bound > capacity => format!("capacity {capacity_text}: they CANNOT fit\n"),
            false => {
                format!("capacity {capacity_text}: this packing does NOT fit; another may\n")
            }
        });
    }
    if let Some(core) = &result.core {
        let least = if core.irreducible { ", though they do without any one of them" } else { "" };
        text.push_str(&format!(
            "these {} buffers alone do not fit{least}: {}\n",
            core.buffers.len(),
            core.buffers.join(", ")
        ));
    }
    let mut lines = vec![["buffer", "offset", "end", "lower", "upper"].map(str::to_owned).to_vec()];
    for row in rows {
        let at = result.offsets[&row.id];
        let life = &row.life;
        let numbers =
            [grouped(at), grouped(at + life.block.bytes), life.lower.to_string(), life.upper.to_string()];
        lines.push([vec![row.id.clone()], numbers.to_vec()].concat());
    }
    text.push('\n');
    text.push_str(&table(&lines, &[1, 2, 3, 4]));
    text
}
