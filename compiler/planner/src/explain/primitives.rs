//! A table of the primitives that could compute a layer of a plan, with reasons.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::driver;
//! use csdfc_planner::explain::primitives;
//! use csdfc_planner::open::open;
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let plan = driver::plan(&application, &device, vec!["builtin:lenet5".into()])?.plan;
//! let explanation = driver::explain(&plan, &application, &device, "lenet5", "C1")?.ok_or("no such layer")?;
//!
//! // Nobody has measured this device, so no primitive is known to be faster than the first.
//! let text = primitives::text(&explanation);
//! assert!(text.contains("indirect-gemm-hwc-hwc"), "{text}");
//! assert!(text.contains("more primitives compute this layer and were not measured"), "{text}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::table::table;
use crate::driver::{Alternative, Explanation};
use csdfc_input::units::grouped;
use csdfc_plan::plan::TimeBasis;

/// The alternatives of a layer, and why they were not chosen.
pub fn text(explanation: &Explanation) -> String {
    let Explanation { cnn, layer, rows_per_firing, bytes_left, alternatives, not_measured } = explanation;
    let rows_text = if *rows_per_firing == 1 { "1 row" } else { &format!("{rows_per_firing} rows") };
    let left = match bytes_left {
        Some(bytes) => format!("; the plan leaves {} bytes of the budget", grouped(*bytes)),
        None => String::new(),
    };
    let header = ["primitive", "layouts", "time", "from", "conversions", "workspace", "stored", "why"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(alternatives.iter().map(row));
    let mut text = format!("{cnn}/{layer}: {rows_text} per firing{left}\n\n{}", table(&rows, &[2, 4, 5, 6]));
    if !not_measured.is_empty() {
        text.push_str(&format!(
            "\n{} more primitives compute this layer and were not measured; --format json names them\n",
            not_measured.len()
        ));
    }
    text
}

fn row(alternative: &Alternative) -> Vec<String> {
    let Alternative { primitive, layouts: [reads, writes], ns, basis, .. } = alternative;
    let basis = match basis {
        TimeBasis::Measured => "measured",
        TimeBasis::Interpolated => "interpolated",
        TimeBasis::Modelled => "modelled",
    };
    let conversions = match alternative.conversions_ns {
        None => "impossible".into(),
        Some(0.0) => String::new(),
        Some(ns) => format!("{:+.1} µs", ns / 1e3),
    };
    vec![
        primitive.clone(),
        format!("{reads} → {writes}"),
        format!("{:.1} µs", ns / 1e3),
        basis.into(),
        conversions,
        grouped(alternative.workspace),
        grouped(alternative.stored),
        alternative.verdict.clone(),
    ]
}
