//! In which order layers go to lower precisions.

use crate::app::spec::Precision;

/// A precision that a layer may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Alternative {
    pub precision: Precision,
    /// What it saves of memory and time, compared with 32-bit floats.
    pub saves: f64,
    /// What the CNN errs by if this layer alone has it.
    pub error: f64,
}

/// A layer goes to a lower precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    /// Place of the CNN among the open ones.
    pub open: usize,
    pub layer: usize,
    pub precision: Precision,
    /// What it saves for the square of the error that it adds.
    pub worth: f64,
}

/// The steps of a CNN, the most worthy first. A layer's own steps are worth less and less: they are the corners of the
/// upper hull of its alternatives.
pub(super) fn steps(open: usize, layers: &[Vec<Alternative>]) -> Vec<Step> {
    let mut steps = Vec::new();
    for (layer, alternatives) in layers.iter().enumerate() {
        let (mut saved, mut square) = (0.0, 0.0);
        loop {
            let worth = |one: &Alternative| {
                let added = one.error * one.error - square;
                if added > 0.0 { (one.saves - saved) / added } else { f64::INFINITY }
            };
            let better = alternatives.iter().filter(|one| one.saves > saved);
            let by_worth = |a: &&Alternative, b: &&Alternative| {
                worth(a).total_cmp(&worth(b)).then(a.saves.total_cmp(&b.saves))
            };
            let Some(best) = better.max_by(by_worth) else { break };
            steps.push(Step { open, layer, precision: best.precision, worth: worth(best) });
            (saved, square) = (best.saves, best.error * best.error);
        }
    }
    sort(&mut steps);
    steps
}

/// The most worthy first; of equals, the first stays first.
pub(super) fn sort(steps: &mut [Step]) {
    steps.sort_by(|a, b| b.worth.total_cmp(&a.worth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_goes_along_its_hull() {
        let one = |precision, saves, error| Alternative { precision, saves, error };
        let order = |layers: &[Vec<Alternative>]| -> Vec<(usize, Precision)> {
            steps(0, layers).iter().map(|step| (step.layer, step.precision)).collect()
        };
        use Precision::{Half, Mixed};
        // Half precision saves less, for much less of an error: it comes first, and mixed precision of the other layer last.
        let careful = vec![one(Half, 2.0, 1e-3), one(Mixed, 3.0, 1e-1)];
        let large = vec![one(Half, 20.0, 1e-3), one(Mixed, 30.0, 1e-1)];
        assert_eq!(order(&[careful, large]), [(1, Half), (0, Half), (1, Mixed), (0, Mixed)]);
        // Mixed precision errs hardly more and saves much more: half precision is left out.
        assert_eq!(order(&[vec![one(Half, 1.0, 1e-3), one(Mixed, 3.0, 1.1e-3)]]), [(0, Mixed)]);
        // What saves nothing is no step; what errs by nothing comes first.
        let none = vec![one(Half, 0.0, 0.0), one(Mixed, -1.0, 0.0)];
        assert_eq!(
            order(&[none, vec![one(Half, 9.0, 1e-9)], vec![one(Half, 1.0, 0.0)]]),
            [(2, Half), (1, Half)]
        );
    }
}
