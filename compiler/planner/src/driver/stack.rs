//! Room for the stack of a frame in one of a board's memories.
//!
//! How much stack a plan takes depends on its kernels, so it is known when the plan is made. If the memory that holds the
//! stack has no room for it then, the application is planned again with so much less of that memory.
//!
//! ```
//! use std::path::Path;
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::{driver, open::open};
//!
//! let device = DeviceProfile::find("stm32f4", Path::new(""))?;
//! let mut opened = open("builtin:lenet5")?;
//! opened.spec.device = Some(device.name.clone());
//! opened.spec.constraints.ram = Some("32kB@ccm=buffers+stack,64kB@sram".parse()?);
//! let plan = |application: &_| driver::plan(application, &device, vec!["builtin:lenet5".into()]);
//! let ccm = &driver::with_stack(&opened.resolve()?, &|_| 2000, plan)?.plan.regions[0];
//! assert!(ccm.stack == 2000 && ccm.bytes + ccm.stack <= ccm.limit);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use csdfc_input::app::resolve::Application;
use csdfc_plan::plan::{Content, Plan};

use super::Planned;

/// Plans an application such that the memory that holds the stack has room for it. If no memory holds it, this is `plan`.
/// `stack` says how many bytes of stack a plan takes.
///
/// # Errors
/// Those of `plan`.
pub fn with_stack<E>(
    application: &Application,
    stack: &dyn Fn(&Plan) -> u64,
    plan: impl Fn(&Application) -> Result<Planned, E>,
) -> Result<Planned, E> {
    let mut planned = plan(application)?;
    let memories = &application.constraints.memories;
    let Some(at) = memories.iter().position(|memory| memory.holds.contains(&Content::Stack)) else {
        return Ok(planned);
    };
    let mut smaller = application.clone();
    // Each turn leaves more room than the one before, and no more than the kernel that takes most.
    while planned.refused.is_none() {
        let stack = stack(&planned.plan);
        let region = &mut planned.plan.regions[at];
        if stack <= region.stack {
            break;
        }
        if region.bytes.saturating_add(stack) <= region.limit {
            region.stack = stack;
            break;
        }
        smaller.constraints.memories[at].stack = stack;
        planned = plan(&smaller)?;
    }
    Ok(planned)
}
