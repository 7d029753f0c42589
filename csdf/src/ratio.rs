//! Exact fractions, and throughputs, which are fractions or unbounded.

use std::fmt;
use std::str::FromStr;

use num_rational::Ratio as Fraction;
use num_traits::CheckedMul;

/// A reduced fraction that is not negative, such as iterations per unit of time.
///
/// ```
/// use csdf::Ratio;
/// let ratio = Ratio::new(2, 60).unwrap();
/// assert_eq!(ratio.to_string(), "1/30");
/// assert_eq!("0.25".parse(), Ok(Ratio::new(1, 4).unwrap()));
/// assert!(ratio < Ratio::new(1, 29).unwrap());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratio(Fraction<u128>);

/// A text is no ratio.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no ratio such as `1/30`, `2` or `0.05`")]
#[non_exhaustive]
pub struct ParseRatioError {
    /// The text.
    pub text: String,
}

impl Ratio {
    /// Nothing at all.
    pub const ZERO: Ratio = Ratio(Fraction::new_raw(0, 1));

    /// The fraction, reduced; none if the denominator is 0.
    pub fn new(numerator: u128, denominator: u128) -> Option<Ratio> {
        (denominator > 0).then(|| Ratio(Fraction::new(numerator, denominator)))
    }

    /// The numerator, in lowest terms.
    pub fn numerator(self) -> u128 {
        *self.0.numer()
    }

    /// The denominator, in lowest terms; at least 1.
    pub fn denominator(self) -> u128 {
        *self.0.denom()
    }

    /// One over it; none for 0.
    ///
    /// ```
    /// use csdf::Ratio;
    ///
    /// // A throughput of 3 iterations in 2 units of time: an iteration takes 2/3.
    /// assert_eq!(Ratio::new(3, 2).and_then(Ratio::inverse), Ratio::new(2, 3));
    /// assert_eq!(Ratio::ZERO.inverse(), None);
    /// ```
    pub fn inverse(self) -> Option<Ratio> {
        Ratio::new(self.denominator(), self.numerator())
    }

    /// Its product with a whole number; none if that is too large.
    pub fn times(self, factor: u128) -> Option<Ratio> {
        self.0.checked_mul(&Fraction::from_integer(factor)).map(Ratio)
    }

    /// The nearest floating-point number, for display.
    pub fn to_f64(self) -> f64 {
        self.numerator() as f64 / self.denominator() as f64
    }
}

impl fmt::Display for Ratio {
    /// `1/30`; a whole number without its denominator.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Ratio {
    type Err = ParseRatioError;

    /// Reads `1/30`, `2`, or a decimal fraction such as `0.05`.
    fn from_str(text: &str) -> Result<Ratio, ParseRatioError> {
        read(text.trim()).ok_or_else(|| ParseRatioError { text: text.to_owned() })
    }
}

fn read(text: &str) -> Option<Ratio> {
    if let Some((numerator, denominator)) = text.split_once('/') {
        return Ratio::new(digits(numerator.trim())?, digits(denominator.trim())?);
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let scale = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let fraction = if fraction.is_empty() { 0 } else { digits(fraction)? };
    Ratio::new(digits(whole)?.checked_mul(scale)?.checked_add(fraction)?, scale)
}

/// A number without a sign, which `parse` alone would accept.
fn digits(text: &str) -> Option<u128> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// Iterations of the reduced [repetition vector](crate::repetition_vector) per unit of time, in the long run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Throughput {
    /// This many; 0 if the graph deadlocks.
    Finite(Ratio),
    /// Infinitely many, since the firings that limit the graph take no time.
    Unbounded,
}

impl Throughput {
    /// The throughput of a graph whose iterations take `period`.
    pub(crate) fn of_period(period: Ratio) -> Throughput {
        period.inverse().map_or(Throughput::Unbounded, Throughput::Finite)
    }
}

impl fmt::Display for Throughput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Throughput::Finite(ratio) => write!(f, "{ratio}"),
            Throughput::Unbounded => write!(f, "unbounded"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text() {
        fn check(text: &str, expected: Option<&str>) {
            let found = text.parse::<Ratio>().ok().map(|ratio| ratio.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        check("2/60", Some("1/30"));
        check(" 6 / 3 ", Some("2"));
        check("0.05", Some("1/20"));
        check("3.", Some("3"));
        check("0", Some("0"));
        check("", None);
        check("1/0", None);
        check("+1/2", None);
        check("-1", None);
        check("1.5.2", None);
        check("999999999999999999999999999999999999999999", None);
    }

    #[test]
    fn extremes_compare() {
        let max = u128::MAX;
        let ratio = |numerator, denominator| Ratio::new(numerator, denominator).unwrap();
        assert!(ratio(max, max - 1) > ratio(max - 1, max));
        assert!(ratio(max - 1, max) > ratio(max - 2, max - 1));
        assert!(ratio(1, max) > Ratio::ZERO);
        assert_eq!(ratio(max, max).cmp(&ratio(1, 1)), Ordering::Equal);
        assert_eq!(ratio(max, 2).times(4), None);
        assert_eq!(ratio(3, 4).times(6), Some(ratio(9, 2)));
    }

    proptest! {
        #[test]
        fn order_is_that_of_cross_products(a in any::<u64>(), b in 1..u64::MAX, c in any::<u64>(), d in 1..u64::MAX) {
            let wide = u128::from;
            let (left, right) = (Ratio::new(wide(a), wide(b)).unwrap(), Ratio::new(wide(c), wide(d)).unwrap());
            prop_assert_eq!(left.cmp(&right), (wide(a) * wide(d)).cmp(&(wide(c) * wide(b))));
        }
    }
}
