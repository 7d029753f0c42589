//! Section 7, regions: the division of the arena among memories.

use std::collections::BTreeSet;

use super::model::{Kind, Plan};
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
    let (mut all_holds, mut stacks) = (Vec::new(), 0);
    for region in regions {
        let name = text(region, "name")?;
        let [offset, bytes, limit] = ["offset", "bytes", "limit"].map(|field| number(region, field));
        let (offset, bytes, limit) = (offset?, bytes?, limit?);
        let mut letters = name.chars();
        let is_name = letters.next().is_some_and(|first| first.is_ascii_lowercase())
            && letters.all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
        if !is_name || !names.insert(name) {
            return Err(format!("`{name}` is no name of a region, or the name of two"));
        }
        let before = places.last().map_or(0, |(_, end)| *end);
        same(&format!("offset of region {name}"), offset, before.div_ceil(8) * 8)?;
        places.push((offset, offset.checked_add(bytes).ok_or("a region beyond 64 bits")?));
        let holds = match region.get("holds") {
            None => vec!["buffers", "weights"],
            Some(holds) => {
                let words = holds.as_array().ok_or("`holds` is no list")?.iter();
                words.map(|word| word.as_str().ok_or("no word of `holds`")).collect::<Result<_, _>>()?
            }
        };
        if let Some(word) = holds.iter().find(|word| !["buffers", "weights", "stack"].contains(word)) {
            return Err(format!("`{word}` lies in no memory"));
        }
        let stack = region.get("stack").map_or(Ok(0), |_| number(region, "stack"))?;
        if holds.contains(&"stack") {
            stacks += 1;
        } else if stack > 0 {
            return Err(format!("region {name} has a stack, and does not hold it"));
        }
        all_holds.push(holds);
        within &= bytes.checked_add(stack).is_some_and(|taken| taken <= limit);
        if region.get("ns_per_byte").is_some_and(|ns| !ns.as_f64().is_some_and(|ns| ns >= 0.0)) {
            return Err(format!("region {name} has bytes of no time"));
        }
    }
    if stacks > 1 {
        return Err("several regions hold the stack".into());
    }
    let mut ends = vec![None; places.len()];
    for ring in plan.cnns.iter().flat_map(|cnn| &cnn.rings) {
        for base in &ring.bases {
            let end = base + ring.bytes();
            let of = places.iter().position(|(start, stop)| start <= base && end <= *stop);
            if let Some(of) = of {
                ends[of] = ends[of].max(Some(end));
                let content = if matches!(ring.kind, Kind::Block(_)) { "weights" } else { "buffers" };
                if end > *base && !all_holds[of].contains(&content) {
                    return Err(format!("bytes {base} to {end} lie in a region that holds no {content}"));
                }
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
