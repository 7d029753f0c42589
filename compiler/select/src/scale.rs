//! Times and memories as whole numbers.
//!
//! Sums of floats depend on their order, so two selections of the same cost might differ in the last bit, and a budget of
//! exactly that cost might be missed. So a number becomes a whole multiple of 10^-k, with the largest k up to 12 for
//! which no sum exceeds 2^53. Numbers of up to k decimals are then exact, and so are all sums.
//!
//! ```
//! use csdfc_select::scale::Scale;
//!
//! let scale = Scale::for_sums(1000.0).ok_or("too large")?;
//! assert_ne!(0.1 + 0.2, 0.3);
//! assert_eq!(scale.whole(0.1) + scale.whole(0.2), scale.whole(0.3));
//! assert_eq!(scale.value(scale.whole(115.5)), 115.5);
//! # Ok::<(), &str>(())
//! ```

/// Maximum number of decimals that are kept.
const MAX_DECIMALS: i32 = 12;

/// Sums stay below this, so that each is a whole `f64`.
const MAX_SUM: f64 = 9_007_199_254_740_992.0;

/// The relative error that sums of floats may have. So if a caller adds up numbers
/// of an instance to a budget, what was added fits it.
const ROUNDING: f64 = 1e-12;

/// How numbers of one quantity become whole numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    per_unit: f64,
}

impl Scale {
    /// The finest scale for sums up to `most`. `None` if they are too large for any.
    pub fn for_sums(most: f64) -> Option<Scale> {
        let scales = (0..=MAX_DECIMALS).rev().map(|decimals| 10f64.powi(decimals));
        scales.map(|per_unit| Scale { per_unit }).find(|scale| most * scale.per_unit < MAX_SUM)
    }

    /// The whole number nearest to a value of at least 0.
    pub fn whole(&self, value: f64) -> u64 {
        (value * self.per_unit).round() as u64
    }

    /// The largest sum that keeps to a budget.
    pub fn budget(&self, budget: f64) -> u64 {
        let sum = budget * self.per_unit;
        (sum + sum * ROUNDING + 1e-6).floor() as u64
    }

    /// The value that a whole number stands for.
    pub fn value(&self, whole: u64) -> f64 {
        whole as f64 / self.per_unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        let scale = Scale::for_sums(1.0).unwrap();
        assert_eq!(scale.whole(0.1) + scale.whole(0.2), scale.whole(0.3));
        assert_eq!(scale.value(scale.whole(0.1) + scale.whole(0.2)), 0.3);
        // The budget may have been added up in floats.
        assert_eq!(scale.budget(0.1 + 0.2), scale.whole(0.3));
        assert_eq!(scale.budget(0.3), scale.whole(0.3));
        assert!(scale.budget(0.299_999_999) < scale.whole(0.3));
    }

    #[test]
    fn sums_stay_whole_floats() {
        let scale = Scale::for_sums(9e6).unwrap();
        assert_eq!(scale, Scale { per_unit: 1e9 });
        assert_eq!(Scale::for_sums(9e15), Some(Scale { per_unit: 1.0 }));
        assert_eq!(Scale::for_sums(1e16), None);
        assert_eq!(Scale::for_sums(f64::INFINITY), None);
        assert_eq!(Scale::for_sums(0.0).unwrap().budget(f64::MAX), u64::MAX);
    }
}
