//! Layouts by the table of costs: the optimum if stored bytes have a price.

use csdfc_input::app::resolve::Application;
use csdfc_input::device::{DeviceError, DeviceProfile};

use crate::objective::Objective;
use crate::selection::{self, CostTable};

/// Prices of a stored byte that are tried, as powers of 2. The unit is the time of a frame for all stored bytes.
const POWERS: std::ops::Range<i32> = -10..6;

/// The table of each CNN.
pub(super) fn tables(
    application: &Application,
    device: &DeviceProfile,
) -> Result<Vec<CostTable>, DeviceError> {
    application.cnns.iter().map(|cnn| selection::cost_table(application, cnn, device)).collect()
}

/// The application with the optimum of each table, and bytes stored. The price of a stored byte is in shares of the time of
/// the CNN's first options. `None` if nothing changes.
pub(super) fn optimum(
    application: &Application,
    tables: &[CostTable],
    price: f64,
) -> Option<(Application, u64)> {
    let mut changed = application.clone();
    let (mut stored, mut is_other) = (0, false);
    for (cnn, table) in changed.cnns.iter_mut().zip(tables) {
        let first = table.instance.layers.iter().filter_map(|layer| layer.options.first());
        let frame_ns: f64 = first.map(|option| option.time * 1e3).sum();
        let selected = table.optimum(cnn, price * frame_ns)?;
        stored += selected.stored;
        is_other |= selected.is_other;
        *cnn = selected.cnn;
    }
    is_other.then_some((changed, stored))
}

/// The application with the layouts of two optima: one at the least price at which the stored bytes fit in addition to
/// an arena of this size, and one at a higher price. None if everything fits, or nothing does.
pub(super) fn layouts_within(
    application: &Application,
    device: &DeviceProfile,
    objective: &Objective,
    arena: u64,
) -> Result<Vec<Application>, DeviceError> {
    let Some(left) = objective.limit.map(|limit| limit.saturating_sub(arena)) else { return Ok(Vec::new()) };
    let tables = tables(application, device)?;
    let all = application.cnns.iter().map(|cnn| cnn.network.parameter_bytes()).sum::<u64>().max(1);
    let at = |power: i32| optimum(application, &tables, 2f64.powi(power) / all as f64);
    let fits = |found: &Option<(Application, u64)>| found.as_ref().is_none_or(|(_, stored)| *stored <= left);
    if fits(&optimum(application, &tables, 0.0)) {
        return Ok(Vec::new());
    }
    let (mut low, mut high) = (POWERS.start - 1, POWERS.end);
    while low + 1 < high {
        let power = low.midpoint(high);
        if fits(&at(power)) { high = power } else { low = power }
    }
    Ok([high, high + 2].into_iter().filter_map(|power| at(power).map(|(found, _)| found)).collect())
}
