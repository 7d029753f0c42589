//! In which order layers go to lower precisions.
//!
//! All layers go to half precision before any goes to mixed precision. Half precision saves half of a layer's bytes.
//! Mixed precision saves at most a quarter more, and rounds weights eight times as coarsely. Moreover, a layer needs no
//! conversions if all layers around it have 16-bit floats.

use csdfc_network::pass::Precision;

/// What a layer saves and costs at a precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Alternative {
    /// The memory and time that it saves, compared with 32-bit floats.
    pub saves: f64,
    /// The error of the CNN if only this layer has it.
    pub error: f64,
}

/// The precisions of a layer other than 32-bit floats. There is no mixed precision if it is the same as half precision.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Alternatives {
    pub half: Option<Alternative>,
    pub mixed: Option<Alternative>,
}

/// A layer goes to a lower precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    /// Place of the CNN among the open ones.
    pub open: usize,
    pub layer: usize,
    pub precision: Precision,
    /// The error of the CNN if only this layer has that precision.
    pub error: f64,
    /// Its saving divided by the square of the error that it adds.
    worth: f64,
}

/// The steps of a CNN, in order.
pub(super) fn steps(open: usize, layers: &[Alternatives]) -> Vec<Step> {
    let mut steps = Vec::new();
    for (layer, Alternatives { half, mixed }) in layers.iter().enumerate() {
        let (mut saved, mut square) = (0.0, 0.0);
        for (precision, alternative) in [(Precision::Half, half), (Precision::Mixed, mixed)] {
            let Some(Alternative { saves, error }) = *alternative else { continue };
            // Half precision is worth it even if the layer itself saves nothing: neighbouring layers then need no
            // conversion.
            if precision == Precision::Mixed && saves <= saved {
                continue;
            }
            let added = error * error - square;
            let worth = if added > 0.0 { (saves - saved) / added } else { f64::INFINITY };
            steps.push(Step { open, layer, precision, error, worth });
            (saved, square) = (saves, error * error);
        }
    }
    sort(&mut steps);
    steps
}

/// Half precision first, then by falling worth. The sort is stable.
pub(super) fn sort(steps: &mut [Step]) {
    let is_mixed = |step: &Step| step.precision == Precision::Mixed;
    steps.sort_by(|a, b| is_mixed(a).cmp(&is_mixed(b)).then(b.worth.total_cmp(&a.worth)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_saves_most_for_its_error_comes_first() {
        let one = |saves, error| Some(Alternative { saves, error });
        let order = |layers: &[Alternatives]| -> Vec<(usize, Precision)> {
            steps(0, layers).iter().map(|step| (step.layer, step.precision)).collect()
        };
        use Precision::{Half, Mixed};
        let small = Alternatives { half: one(2.0, 1e-3), mixed: one(3.0, 1e-1) };
        let large = Alternatives { half: one(20.0, 1e-3), mixed: one(30.0, 1e-1) };
        assert_eq!(order(&[small, large]), [(1, Half), (0, Half), (1, Mixed), (0, Mixed)]);
        // Mixed precision that saves no more than half precision is no step. A step without error comes first.
        let no_more = Alternatives { half: one(0.0, 1e-9), mixed: one(0.0, 1e-9) };
        let exact = Alternatives { half: one(1.0, 0.0), mixed: None };
        assert_eq!(order(&[no_more, exact, Alternatives::default()]), [(1, Half), (0, Half)]);
    }
}
