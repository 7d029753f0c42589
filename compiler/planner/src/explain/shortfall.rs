//! What can be reached if constraints cannot be met, in words.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::driver;
//! use csdfc_planner::explain::shortfall;
//! use csdfc_planner::open::open;
//!
//! let mut opened = open("builtin:lenet5")?;
//! opened.spec.constraints.fps.every = Some(1e9);
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let planned = driver::plan(&opened.resolve()?, &device, vec!["builtin:lenet5".into()])?;
//! let nearest = planned.shortfall.ok_or("a billion frames per second")?;
//! let text = shortfall::text(&planned.plan, &nearest);
//! assert!(text.contains("the best frame rates in any memory with 1 worker: lenet5 "), "{text}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

use csdfc_input::units;
use csdfc_plan::format::Element;
use csdfc_plan::plan::{Content, Plan, Region, Tensor};

use crate::search::{Rate, Shortfall};

/// What can be reached if a plan's constraints cannot be met.
pub fn text(plan: &Plan, nearest: &Shortfall) -> String {
    let mut lines = vec!["no plan meets all constraints; this is the nearest".to_owned()];
    let asked = &plan.constraints;
    // Print latencies if there are limits on them. Print frame rates if there are limits on these, or if there are no
    // limits at all.
    let with_fps = !asked.fps.is_empty() || asked.latency_ns.is_empty();
    let rates = |rates: &BTreeMap<String, Rate>| {
        let rate = |(name, rate): (&String, &Rate)| {
            let fps = with_fps.then(|| format!("{:.1} fps", rate.fps));
            let latency = (!asked.latency_ns.is_empty()).then(|| units::time(rate.latency_ns));
            format!("{name} {}", fps.into_iter().chain(latency).collect::<Vec<_>>().join(" in "))
        };
        rates.iter().map(rate).collect::<Vec<_>>().join(", ")
    };
    if let Some(limit) = asked.memory {
        match &nearest.rates_in_memory {
            Some(found) => lines.push(format!("within {}: {}", units::bytes(limit), rates(found))),
            None if plan.store.is_none() && plan.memory.parameters_stored > limit => lines.push(format!(
                "nothing fits {} with all parameters in memory: they alone take {}",
                units::bytes(limit),
                units::bytes(plan.memory.parameters_stored)
            )),
            None => lines.extend(nearest.least_memory.map(|least| {
                format!(
                    "no plan found fits {}: the least total found is {}",
                    units::bytes(limit),
                    units::bytes(least.min(plan.memory.total))
                )
            })),
        }
    }
    let lacking: Vec<String> = plan.regions.iter().filter_map(lack).collect();
    if !lacking.is_empty() {
        lines.extend(lacking);
        lines.push(stack(plan).or_else(|| largest(plan)).unwrap_or_else(|| {
            let lower =
                if has_floats(plan) { "half precision or 8-bit integers make tensors smaller; " } else { "" };
            format!("{lower}the line `buffers` of --mem min says how much one memory must have")
        }));
    }
    lines.extend(asked.flash.and_then(|limit| flash(plan, limit)));
    let what = match (asked.fps.is_empty(), asked.latency_ns.is_empty()) {
        (true, true) => return lines.join("\n  "),
        (false, true) => "frame rates",
        (true, false) => "latencies",
        (false, false) => "frame rates and latencies",
    };
    lines.push(match nearest.memory_at_rates {
        Some(bytes) => format!("the {what} asked for take {} in total", units::bytes(bytes)),
        None => {
            let memory = if plan.regions.is_empty() { "any memory" } else { "these memories" };
            let workers = match plan.threads {
                1 => "1 worker".to_owned(),
                threads => format!("{threads} workers"),
            };
            format!("the best {what} in {memory} with {workers}: {}", rates(&nearest.best_rates))
        }
    });
    lines.join("\n  ")
}

/// Whether tensors in the arena have floats. If none has, no lower precision makes the network smaller.
pub(crate) fn has_floats(plan: &Plan) -> bool {
    let in_arena = plan.tensors.iter().filter(|tensor| !tensor.external);
    in_arena.map(|tensor| tensor.format.element).any(|element| matches!(element, Element::F32 | Element::F16))
}

/// What a memory lacks.
fn lack(region: &Region) -> Option<String> {
    let lacking = region.taken().checked_sub(region.limit).filter(|bytes| *bytes > 0)?;
    let stack = match region.stack {
        0 => String::new(),
        bytes => format!(", and the stack takes {}", units::bytes(bytes)),
    };
    Some(format!(
        "memory `{}` lacks {}: it has {}{stack}",
        region.name,
        units::bytes(lacking),
        units::bytes(region.limit)
    ))
}

/// Where the stack would have room, if it is larger than its memory.
fn stack(plan: &Plan) -> Option<String> {
    let stack = plan.regions.iter().find(|region| region.stack > region.limit)?.stack;
    let other = plan.regions.iter().find(|region| region.taken().saturating_add(stack) <= region.limit)?;
    Some(format!("memory `{}` has room for the stack: name `stack` among what it holds", other.name))
}

/// A ring that no memory can hold, if there is one.
fn largest(plan: &Plan) -> Option<String> {
    let holding = plan.regions.iter().filter(|region| region.holds.contains(&Content::Buffers));
    let most = holding.map(|region| region.limit.saturating_sub(region.stack)).max()?;
    let ring = |tensor: &Tensor| tensor.ring.map_or(0, |ring| ring.bytes);
    let tensor =
        plan.tensors.iter().max_by_key(|tensor| ring(tensor)).filter(|tensor| ring(tensor) > most)?;
    Some(format!(
        "`{}/{}` alone takes {}, more than any memory has for it{}",
        tensor.cnn,
        tensor.producer,
        units::bytes(ring(tensor)),
        if has_floats(plan) { "; half precision or 8-bit integers make it smaller" } else { "" }
    ))
}

/// What the flash lacks for the parameters.
fn flash(plan: &Plan, limit: u64) -> Option<String> {
    let stored = plan.memory.parameters_stored;
    let lacking = stored.checked_sub(limit).filter(|bytes| *bytes > 0)?;
    Some(format!(
        "flash lacks {}: the parameters take {}{}",
        units::bytes(lacking),
        units::bytes(stored),
        match has_floats(plan) {
            true => "; --precision half or mixed, or 8-bit integers (csdfc quantize), make them smaller",
            false => "",
        }
    ))
}
