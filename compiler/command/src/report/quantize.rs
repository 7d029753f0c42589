//! `csdfc quantize` as text.

use std::fmt::Write;

use csdfc_planner::explain::table;
use csdfc_precision::quantize::Report;

/// The report for people.
pub fn text(report: &Report) -> String {
    let on_integers = report.layers.iter().filter(|layer| layer.error.is_some()).count();
    let mut text = format!(
        "{on_integers} layers on 8-bit integers, {} left with floats; calibrated with {} frames\n\n",
        report.layers.len() - on_integers,
        report.frames
    );
    let mut rows =
        vec![["layer", "operator", "own error", "with all layers before"].map(String::from).to_vec()];
    for layer in &report.layers {
        let error = layer.error.map_or_else(|| "floats".into(), share);
        rows.push(vec![layer.layer.clone(), layer.operator.into(), share(layer.own), error]);
    }
    text += &table::table(&rows, &[2, 3]);
    for output in &report.outputs {
        // A String takes whatever is written.
        let _ = write!(text, "\noutput {}: error {}", output.output, share(output.error));
        if let Some(agreement) = output.agreement {
            let _ = write!(text, ", same greatest element in {:.1} % of rows", 100.0 * agreement);
        }
    }
    text + "\n"
}

fn share(error: f64) -> String {
    format!("{error:.2e}")
}
