//! Rule 4, memory regions: each part of the arena lies in one region, and so does all that is placed in it.

use std::collections::BTreeSet;

use crate::plan::{Content, Plan, Region, StorageModel};

use super::violation::Addresses;
use super::{Findings, Violation};

/// Maximum number of memory regions.
const MAX_REGIONS: usize = 64;

/// Checks that the regions divide the arena from its start to its end, in their order, and that the stack lies in one of
/// them at most.
pub(super) fn check(plan: &Plan, findings: &mut Findings) {
    let count = plan.regions.len();
    findings.limit("the number of memory regions", Some(count as u64), MAX_REGIONS as u64);
    let mut names = BTreeSet::new();
    let mut end = 0u64;
    for region in plan.regions.iter().take(MAX_REGIONS) {
        let mut wrong = |why: String| findings.push(Violation::Region { region: region.name.clone(), why });
        if plan.storage_model != StorageModel::Tensors {
            wrong("regions divide the arena in storage model `tensors` only".into());
        }
        if !names.insert(&region.name) {
            wrong("two regions have this name".into());
        }
        if !is_name(&region.name) {
            wrong("a name is a small letter, then small letters, digits and `_`".into());
        }
        if region.ns_per_byte.is_some_and(|ns| !(ns.is_finite() && ns >= 0.0)) {
            wrong("`ns_per_byte` is no time".into());
        }
        if region.stack > 0 && !region.holds.contains(&Content::Stack) {
            wrong(format!("the stack takes {} bytes, but it does not lie here", region.stack));
        }
        let begin = end.checked_next_multiple_of(Region::ALIGNMENT);
        if begin != Some(region.offset) {
            let begin = begin.map_or("beyond 64 bits".into(), |begin| format!("at {begin}"));
            wrong(format!("it begins at {}, but its part of the arena begins {begin}", region.offset));
        }
        end = region.offset.saturating_add(region.bytes);
    }
    if plan.regions.iter().filter(|region| region.holds.contains(&Content::Stack)).count() > 1 {
        let why = "the stack lies in one region, but several hold it".into();
        findings.push(Violation::Structure { place: "regions".into(), why });
    }
    if count > 0 && plan.constraints.memory.is_some() {
        let why = "each region has its limit, so the plan has none on all its memory".into();
        findings.push(Violation::Structure { place: "constraints".into(), why });
    }
}

/// Whether a name can be that of a constant, a section and a macro.
fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Whether a region has any of these addresses.
pub(super) fn overlaps(region: &Region, addresses: &Addresses) -> bool {
    addresses.start < region.offset.saturating_add(region.bytes) && region.offset < addresses.end
}

/// Whether bytes from an offset on are within the arena and, if there are regions, within one that may hold such content.
///
/// # Errors
/// Why not, in words.
pub(super) fn hold(plan: &Plan, content: Content, offset: u64, bytes: u64) -> Result<(), String> {
    let arena = plan.memory.arena;
    let end = offset.checked_add(bytes).filter(|end| *end <= arena);
    let Some(end) = end else {
        return Err(format!("{bytes} bytes from {offset} are beyond the arena of {arena}"));
    };
    let is_within =
        |region: &Region| region.offset <= offset && end <= region.offset.saturating_add(region.bytes);
    if bytes == 0 || plan.regions.is_empty() {
        return Ok(());
    }
    match plan.regions.iter().find(|region| is_within(region)) {
        None => Err(format!("{bytes} bytes from {offset} are in no memory region as a whole")),
        Some(region) if !region.holds.contains(&content) => {
            let what = match content {
                Content::Buffers => "a buffer",
                Content::Weights => "a block of weights",
                Content::Stack => "a stack",
            };
            Err(format!("{what} must not lie in memory region `{}`", region.name))
        }
        Some(_) => Ok(()),
    }
}
