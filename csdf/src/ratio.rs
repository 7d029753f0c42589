//! Exact fractions.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::Error;

/// A reduced fraction that is not negative, such as iterations per unit of time.
///
/// ```
/// use csdf::Ratio;
/// let ratio = Ratio::new(2, 60).unwrap();
/// assert_eq!(ratio.to_string(), "1/30");
/// assert_eq!("0.25".parse(), Ok(Ratio::new(1, 4).unwrap()));
/// assert!(ratio < Ratio::new(1, 29).unwrap());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ratio {
    numerator: u128,
    denominator: u128,
}

impl Ratio {
    /// Nothing at all.
    pub const ZERO: Ratio = Ratio { numerator: 0, denominator: 1 };

    /// The fraction, reduced; none if the denominator is 0.
    pub fn new(numerator: u128, denominator: u128) -> Option<Ratio> {
        let divisor = gcd(numerator, denominator);
        (denominator > 0)
            .then(|| Ratio { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    /// The numerator, in lowest terms.
    pub fn numerator(self) -> u128 {
        self.numerator
    }

    /// The denominator, in lowest terms; at least 1.
    pub fn denominator(self) -> u128 {
        self.denominator
    }

    /// One over it; none for 0.
    pub fn inverse(self) -> Option<Ratio> {
        (self.numerator > 0).then_some(Ratio { numerator: self.denominator, denominator: self.numerator })
    }

    /// Its product with a whole number; none if that is too large.
    pub fn times(self, factor: u128) -> Option<Ratio> {
        let divisor = gcd(factor, self.denominator);
        let numerator = self.numerator.checked_mul(factor / divisor)?;
        Ratio::new(numerator, self.denominator / divisor)
    }

    /// The nearest floating-point number, for display.
    pub fn to_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl Ord for Ratio {
    /// By the continued fractions of both, so that nothing overflows.
    fn cmp(&self, other: &Ratio) -> Ordering {
        let (mut left, mut right) =
            ((self.numerator, self.denominator), (other.numerator, other.denominator));
        let mut turned = false;
        let order = loop {
            let whole = (left.0 / left.1).cmp(&(right.0 / right.1));
            if whole != Ordering::Equal {
                break whole;
            }
            // Remainders are compared by their inverses.
            (left, right) = ((left.1, left.0 % left.1), (right.1, right.0 % right.1));
            turned = !turned;
            match (left.1, right.1) {
                (0, 0) => return Ordering::Equal,
                (0, _) => break Ordering::Greater,
                (_, 0) => break Ordering::Less,
                _ => {}
            }
        };
        if turned { order.reverse() } else { order }
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Ratio) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Ratio {
    /// `1/30`; a whole number without its denominator.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            denominator => write!(f, "{}/{denominator}", self.numerator),
        }
    }
}

impl FromStr for Ratio {
    type Err = Error;

    /// Reads `1/30`, `2`, or a decimal fraction such as `0.05`.
    fn from_str(text: &str) -> Result<Ratio, Error> {
        let number = |digits: &str| -> Option<u128> {
            if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
        };
        let read = || {
            let text = text.trim();
            if let Some((numerator, denominator)) = text.split_once('/') {
                return Ratio::new(number(numerator.trim())?, number(denominator.trim())?);
            }
            let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
            let scale = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
            let fraction = if fraction.is_empty() { 0 } else { number(fraction)? };
            Ratio::new(number(whole)?.checked_mul(scale)?.checked_add(fraction)?, scale)
        };
        read().ok_or_else(|| Error::BadRatio { text: text.to_owned() })
    }
}

pub(crate) fn gcd(mut left: u128, mut right: u128) -> u128 {
    while right != 0 {
        // Processors divide numbers of 64 bits, and a function divides longer ones.
        let rest = match (u64::try_from(left), u64::try_from(right)) {
            (Ok(left), Ok(right)) => u128::from(left % right),
            _ => left % right,
        };
        (left, right) = (right, rest);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn divisors_of_long_and_short_numbers() {
        let long = u128::from(u64::MAX) + 1;
        for (left, right, divisor) in [
            (12, 18, 6),
            (0, 7, 7),
            (7, 0, 7),
            (3 * long, 5 * long, long),
            (6 * long, 9, 3),
            (9, 6 * long, 3),
            (u128::MAX, u128::from(u64::MAX), u128::from(u64::MAX)),
        ] {
            assert_eq!(gcd(left, right), divisor, "{left}, {right}");
        }
    }

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
