//! Section 7, regions: the division of the arena among memories.

use std::collections::BTreeSet;

use super::model::Plan;
use super::{Refusal, number, same, text};

/// Checks the regions, if there are any. Returns whether there are, and whether each is within its limit.
pub fn check(plan: &Plan<'_>) -> Result<(bool, bool), Refusal> {
    let Some(regions) = plan.value.get("regions") else { return Ok((false, true)) };
    let regions = regions.as_array().ok_or("`regions` is no list")?;
    if plan.is_edges && !regions.is_empty() {
        return Err("regions in model `edges`".into());
    }
    let mut places: Vec<(u64, u64)> = Vec::new();
    let (mut names, mut within) = (BTreeSet::new(), true);
    for region in regions {
        let (name, offset, bytes) =
            (text(region, "name")?, number(region, "offset")?, number(region, "bytes")?);
        let mut letters = name.chars();
        let is_name = letters.next().is_some_and(|first| first.is_ascii_lowercase())
            && letters.all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
        if !is_name || !names.insert(name) {
            return Err(format!("`{name}` is no name of a region, or the name of two"));
        }
        let before = places.last().map_or(0, |(_, end)| *end);
        same(&format!("offset of region {name}"), offset, before.div_ceil(8) * 8)?;
        places.push((offset, offset.checked_add(bytes).ok_or("a region beyond 64 bits")?));
        within &= bytes <= number(region, "limit")?;
        if region.get("ns_per_byte").is_some_and(|ns| !ns.as_f64().is_some_and(|ns| ns >= 0.0)) {
            return Err(format!("region {name} has bytes of no time"));
        }
    }
    let mut ends = vec![None; places.len()];
    for ring in plan.cnns.iter().flat_map(|cnn| &cnn.rings) {
        for base in &ring.bases {
            let end = base + ring.bytes();
            let of = places.iter().position(|(start, stop)| start <= base && end <= *stop);
            if let Some(of) = of {
                ends[of] = ends[of].max(Some(end));
            } else if !places.is_empty() {
                return Err(format!("bytes {base} to {end} are in no region as a whole"));
            }
        }
    }
    for (region, ((start, stop), end)) in regions.iter().zip(places.iter().zip(ends)) {
        let what = format!("bytes of region {}", text(region, "name")?);
        same(&what, stop - start, end.unwrap_or(*start) - start)?;
    }
    Ok((!regions.is_empty(), within))
}
