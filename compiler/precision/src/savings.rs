//! The memory or time that a layer saves at a lower precision, counting only what is short.

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::app::spec::Primitives;
use csdfc_input::device::DeviceProfile;
use csdfc_network::Network;
use csdfc_network::pass::Precision;
use csdfc_plan::plan::Plan;
use csdfc_planner::driver;
use csdfc_planner::objective::{Least, Objective};

use super::Models;
use super::accuracy::OpenCnn;
use crate::error::Error;

/// What layers take at each precision.
pub(super) struct Savings {
    /// The application at 32-bit floats, half and mixed precision, and its plan without parts.
    at: [(Application, Plan); 3],
    /// The weight of a tensor's byte, relative to a byte of parameters. It is mostly below 1, because tensors share the
    /// arena.
    share: f64,
    /// What saving a byte and saving a nanosecond is worth: 0 for the one that the constraints do not limit.
    prices: [f64; 2],
}

impl Savings {
    /// Plans the application at each precision, without a search.
    pub fn new(
        models: &Models<'_>,
        open: &[OpenCnn],
        base: &Application,
        device: &DeviceProfile,
    ) -> Result<Self, Error> {
        let at = |precision: Precision| -> Result<_, Error> {
            let of = |open| (open, all_at(open, precision));
            let application = models.with_precisions(&open.iter().map(of).collect::<Vec<_>>())?;
            let plan = plan_without_search(&application, device)?;
            Ok((application, plan))
        };
        let at = [at(Precision::Fp32)?, at(Precision::Half)?, at(Precision::Mixed)?];
        let (_, plan) = &at[0];
        let tensors: u64 =
            base.cnns.iter().flat_map(|cnn| &cnn.network.layers).map(|layer| layer.tensor_bytes()).sum();
        let share = plan.memory.arena as f64 / tensors.max(1) as f64;
        let bytes = plan.memory.parameters_stored + plan.memory.arena;
        let times = plan.cnns.iter().flat_map(|cnn| &cnn.layers).filter_map(|layer| layer.time);
        let time: f64 = times.map(|time| time.ns).sum();
        let objective = Objective::new(base);
        let is_short = objective.limit.is_some() || objective.least == Least::Memory;
        // A plan without parts is the fastest.
        let is_slow = !plan
            .cnns
            .iter()
            .all(|cnn| base.constraints.demand_of(&cnn.name).is_met(cnn.fps, cnn.latency_ns));
        let price = |counts: bool, all: f64| if counts && all > 0.0 { 1.0 / all } else { 0.0 };
        Ok(Savings { at, share, prices: [price(is_short, bytes as f64), price(is_slow, time)] })
    }

    /// What a layer saves at a precision.
    pub fn saving(&self, open: &OpenCnn, layer: usize, precision: Precision) -> f64 {
        let name = &open.network.layers[layer].name;
        let takes = |(application, plan): &(Application, Plan)| {
            let network: &Network = &application.cnns[open.cnn].network;
            let bytes = network.find(name).map_or(0.0, |id| {
                let layer = network.layer(id);
                layer.parameter_bytes() as f64 + self.share * layer.tensor_bytes() as f64
            });
            let planned = plan.cnns[open.cnn].layers.iter().find(|planned| planned.name == *name);
            let time = planned.and_then(|planned| planned.time).map_or(0.0, |time| time.ns);
            self.prices[0] * bytes + self.prices[1] * time
        };
        let [fp32, half, mixed] = &self.at;
        takes(fp32) - takes(if precision == Precision::Half { half } else { mixed })
    }
}

/// The precisions of a CNN's layers if all open ones were this precision.
fn all_at(open: &OpenCnn, precision: Precision) -> Vec<Precision> {
    open.stated.iter().map(|stated| if *stated == Precision::Auto { precision } else { *stated }).collect()
}

/// A plan without a search, to read off what layers take.
fn plan_without_search(application: &Application, device: &DeviceProfile) -> Result<Plan, Error> {
    let mut application = application.clone();
    application.rows = RowsChoice::None;
    application.primitives = Primitives::Fixed;
    application.constraints = Default::default();
    application.may_be_streamed = None;
    let paths = vec![String::new(); application.cnns.len()];
    Ok(driver::plan(&application, device, paths)?.plan)
}
