//! The plans from which the tables are made. The checker accepts each of them.

use std::path::{Path, PathBuf};

use csdfc_command::error::Error;
use csdfc_input::app::Origin;
use csdfc_input::app::spec::{self, Method};
use csdfc_input::device::DeviceProfile;
use csdfc_input::units::MemoryGoal;
use csdfc_plan::plan::Plan;
use csdfc_planner::driver;
use csdfc_planner::open::Opened;
use csdfc_planner::search::start::Start;
use csdfc_planner::search::watch::Watch;

/// Bytes of an element.
pub(super) const ELEMENT_BYTES: u64 = 4;

/// The baselines in the table's order.
pub(super) const BASELINES: [Method; 3] = [Method::None, Method::Reuse, Method::Parts];

/// The plan of an application under a method, in the words of its file.
pub fn plan(
    file: &str,
    seed: u64,
    method: Method,
    memory: Option<MemoryGoal>,
    watch: &Watch<'_>,
) -> Result<Plan, Error> {
    let mut opened = opened(file)?;
    opened.spec.search.seed = seed;
    opened.spec.search.method = Some(method);
    opened.spec.constraints.memory = memory;
    checked(&opened, watch)
}

/// An application as its file states it.
pub fn opened(file: &str) -> Result<Opened, Error> {
    let origin = Origin { name: "app.ron".into(), text: Some(file.into()), replaced: Vec::new() };
    Ok(Opened { spec: spec::parse(&origin)?, origin, folder: PathBuf::new() })
}

/// The plan of an application, which the checker accepts.
pub fn checked(opened: &Opened, watch: &Watch<'_>) -> Result<Plan, Error> {
    let application = opened.resolve()?;
    let device = DeviceProfile::find(&application.device, Path::new(""))?;
    let paths = application.cnns.iter().map(|cnn| cnn.model.name.clone()).collect();
    let plan = driver::plan_from(&Start::default(), &application, &device, paths, watch, &|_| Ok(()))?.plan;
    match csdfc_plan::check(&plan) {
        Ok(_) => Ok(plan),
        Err(violations) => {
            let first = violations.first().map(ToString::to_string).unwrap_or_default();
            Err(Error::Bug(format!("check refuses the plan of {}: {first}", application.name)))
        }
    }
}

/// Megabytes of parameters and buffers, as the paper counts them.
pub(super) fn size(plan: &Plan) -> f64 {
    (plan.memory.parameters + plan.memory.buffers) as f64 / 1e6
}
