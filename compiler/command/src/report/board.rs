//! What a plan takes on a microcontroller beside its arena.

use std::collections::BTreeSet;
use std::path::Path;

use csdfc_emit::EmitError;
use csdfc_emit::footprint::Footprint;
use csdfc_input::device::DeviceProfile;
use csdfc_input::units::{self, grouped};
use csdfc_plan::plan::Plan;
use csdfc_planner::explain::table::table;
use serde::Serialize;

/// The code and the stack of a plan on a device, if tables have its target.
///
/// # Errors
/// When the checker refuses the plan, or a layer cannot be computed.
pub fn footprint(plan: &Plan, device: &DeviceProfile) -> Result<Option<Footprint>, EmitError> {
    device.target.as_deref().map_or(Ok(None), |target| Footprint::of(plan, target))
}

/// The flash and the stack that a plan takes, each with its limit if there is one.
pub fn text(plan: &Plan, footprint: &Footprint) -> String {
    let Footprint { target, processors, code, small_code, stack, uncounted } = footprint;
    let weights = plan.memory.parameters_stored;
    let line = |name: &str, bytes: u64, note: String| vec![format!("  {name}"), grouped(bytes), note];
    let small = format!("estimated, for speed; {} for size (opt-level = \"s\")", grouped(*small_code));
    let holding = plan.regions.iter().find(|region| region.stack > 0);
    let place = holding.map_or("not in the total".into(), |region| format!("in `{}`", region.name));
    let mut rows = vec![
        vec![format!("on {target}"), "bytes".into(), (*processors).to_owned()],
        line("code", *code, small),
        line("parameters", weights, String::new()),
        line("flash", code + weights, units::bytes(code + weights)),
        line("stack", *stack, format!("estimated, for one frame at a time; {place}")),
    ];
    if !uncounted.is_empty() {
        let all: Vec<&str> = uncounted.iter().map(String::as_str).collect();
        let more = format!(
            "{}: so the code and the flash are larger than that, and the stack may be",
            all.join(", ")
        );
        rows.push(vec!["  not counted".into(), String::new(), more]);
    }
    table(&rows, &[1])
}

/// The flash and the stack that a plan takes, as data.
#[derive(Debug, Serialize)]
pub struct Board {
    /// The compiler's name of the target.
    pub target: &'static str,
    /// Bytes of code with optimisation for speed: an estimate.
    pub code: u64,
    /// The same with `opt-level = "s"`, for size.
    pub small_code: u64,
    /// Bytes of the parameters.
    pub parameters: u64,
    /// Bytes of stack of a frame: an estimate.
    pub stack: u64,
    /// What was not measured, so that more is needed than that.
    pub not_counted: BTreeSet<String>,
}

/// The same as data, for the device that the plan names, if csdfc knows it and the code for it.
pub fn of_its_device(plan: &Plan) -> Option<Board> {
    let Footprint { target, code, small_code, stack, uncounted, .. } = on_its_device(plan)?;
    let parameters = plan.memory.parameters_stored;
    Some(Board { target, code, small_code, parameters, stack, not_counted: uncounted })
}

fn on_its_device(plan: &Plan) -> Option<Footprint> {
    let device = DeviceProfile::find(&plan.device.name, Path::new("")).ok()?;
    footprint(plan, &device).ok()?
}

/// The same as text, for the device that the plan names, if csdfc knows it and the code for it.
pub fn text_on_its_device(plan: &Plan) -> Option<String> {
    Some(text(plan, &on_its_device(plan)?))
}

/// What the plan lacks of flash with its code, if csdfc knows its device and the code for it.
pub fn lacks_on_its_device(plan: &Plan) -> Option<String> {
    lacks(plan, &on_its_device(plan)?)
}

/// What a plan lacks of flash, however it is compiled, in words.
pub fn lacks(plan: &Plan, footprint: &Footprint) -> Option<String> {
    let (parameters, code) = (plan.memory.parameters_stored, footprint.code.min(footprint.small_code));
    let limit = plan.constraints.flash?;
    (parameters + code > limit).then(|| {
        format!(
            "flash of {}: the parameters and the smaller code take {} + {} = {}",
            units::bytes(limit),
            grouped(parameters),
            grouped(code),
            grouped(parameters + code)
        )
    })
}
