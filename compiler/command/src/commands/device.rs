//! Warns if a plan's frame rates are not what will be seen.

use csdfc_input::device::DeviceProfile;
use csdfc_plan::plan::{Device, Plan};
use csdfc_planner::profile::machine;

/// Warns if the plan's device profile was not measured at all.
pub(super) fn warn_if_modelled(plan: &Plan) {
    if DeviceProfile::measured_on(&plan.device.basis).is_none() {
        tracing::warn!(
            "the plan's frame rates are modelled, by device {} ({}): `csdfc profile` measures a device",
            plan.device.name,
            plan.device.basis
        );
    }
}

/// Warns if the plan's device profile was not measured on this processor.
pub(super) fn warn_if_other(plan: &Plan) {
    let here = machine::processor_name();
    if !is_of(&plan.device, here.as_deref()) {
        tracing::warn!(
            "the plan's frame rates are those of device {} ({}), not of this processor{}",
            plan.device.name,
            plan.device.basis,
            here.map(|name| format!(", {name}")).unwrap_or_default()
        );
    }
}

/// Whether a profile was measured on this processor.
fn is_of(device: &Device, here: Option<&str>) -> bool {
    DeviceProfile::measured_on(&device.basis).is_some_and(|of| here == Some(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_known_by_their_names() {
        let pc = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2.00GHz\nflags\t\t: fpu\n";
        let board = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd07\n\nHardware\t: quill\n";
        for (info, name) in
            [(pc, Some("Some CPU @ 2.00GHz")), (board, Some("quill")), ("", None), ("model name\t:\n", None)]
        {
            assert_eq!(machine::named(info), name);
        }
        let device = |basis: &str| Device { name: "x".into(), basis: basis.into(), ..Device::default() };
        for (basis, here, same) in [
            ("measured on quill", Some("quill"), true),
            ("measured on quill", Some("other"), false),
            ("measured on quill", None, false),
            ("analytic", Some("quill"), false),
            ("published, TensorRT", Some("quill"), false),
        ] {
            assert_eq!(is_of(&device(basis), here), same, "{basis}");
        }
    }
}
