//! What chosen precisions cost, in words.
//!
//! ```
//! use csdfc_precision::{Accuracy, explain};
//!
//! let layers = [("fp32", 1), ("half", 20)].into();
//! let of = Accuracy { cnn: "a".into(), allowance: 1e-2, error: 3e-3, frames: 4, is_random: true, layers };
//! let expected = "a error ≤ 1e-2: met, 3.00e-3 on 4 random frames; layers: 1 at fp32, 20 at half\n";
//! assert_eq!(explain::errors(&[of]), expected);
//! ```

use std::fmt::Write;

use crate::Accuracy;

/// The error of each CNN, and its precisions: one line per CNN.
pub fn errors(accuracies: &[Accuracy]) -> String {
    let mut text = String::new();
    for of in accuracies {
        let verdict = if of.is_within() { "met" } else { "NOT met" };
        // A String takes whatever is written.
        let _ = writeln!(
            text,
            "{} error ≤ {:e}: {verdict}, {:.2e} on {}; {}",
            of.cnn,
            of.allowance,
            of.error,
            frames(of),
            layers(of)
        );
    }
    text
}

/// The allowances with which the constraints would be met; empty if there are none.
pub fn sufficient(allowances: Option<&[Accuracy]>) -> String {
    let Some(allowances) = allowances else {
        return "no choice of precisions that csdfc tried meets the constraints, however large its error"
            .into();
    };
    let each =
        allowances.iter().map(|of| format!("{} may err by {:e} ({})", of.cnn, of.allowance, layers(of)));
    format!("all constraints are met if {}", each.collect::<Vec<_>>().join(" and "))
}

fn frames(of: &Accuracy) -> String {
    let random = if of.is_random { "random " } else { "" };
    format!("{} {random}frame{}", of.frames, if of.frames == 1 { "" } else { "s" })
}

fn layers(of: &Accuracy) -> String {
    let each = of.layers.iter().map(|(precision, count)| format!("{count} at {precision}"));
    format!("layers: {}", each.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_what_would_do() {
        let of = |cnn: &str, error| Accuracy {
            cnn: cnn.into(),
            allowance: 1e-2,
            error,
            frames: 1,
            is_random: true,
            layers: [("fp32", 1), ("half", 20)].into(),
        };
        assert_eq!(
            sufficient(Some(&[Accuracy { allowance: 1.3e-2, ..of("a", 1.2345e-2) }])),
            "all constraints are met if a may err by 1.3e-2 (layers: 1 at fp32, 20 at half)"
        );
        assert_eq!(
            errors(&[of("a", 1.2345e-2), of("b", 1e-3)]),
            "a error ≤ 1e-2: NOT met, 1.23e-2 on 1 random frame; layers: 1 at fp32, 20 at half\n\
             b error ≤ 1e-2: met, 1.00e-3 on 1 random frame; layers: 1 at fp32, 20 at half\n"
        );
    }
}
