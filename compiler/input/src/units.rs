//! Sizes and times as text: `8MB` is 8 000 000 bytes, `8MiB` is 8 × 2^20, a plain number is bytes; `40ms` is 40 000 000
//! nanoseconds.
//!
//! ```
//! use csdfc_input::units::{self, MemoryGoal, Nanoseconds};
//!
//! assert_eq!("64kB".parse(), Ok(MemoryGoal::Bytes(64_000)));
//! assert_eq!("min".parse(), Ok(MemoryGoal::Min));
//! assert_eq!("40ms".parse(), Ok(Nanoseconds(40_000_000)));
//! assert_eq!(units::bytes(64_000), "64.00 kB (64 000 bytes)");
//! assert_eq!(units::time(40_000_000), "40.00 ms");
//! ```

use std::str::FromStr;

use bytesize::ByteSize;
use serde::Deserialize;

/// Every size must be below this many bytes, 2^60, so that sums of a few sizes fit 64 bits.
const LIMIT: u64 = 1 << 60;

/// How much memory a plan may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "MemoryText")]
pub enum MemoryGoal {
    /// At most this many bytes, at least 1.
    Bytes(u64),
    /// As little as there is.
    Min,
}

/// A number of bytes, at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "MemoryText")]
pub struct Size(pub u64);

/// A time in whole nanoseconds, at least 1 and below 2^60.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nanoseconds(pub u64);

/// A text that is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time: give a number above 0 and a unit, ns, us, ms or s: `40ms`")]
pub struct TimeError(String);

/// Why a text is no size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeError {
    /// Neither a number nor a number with a known unit.
    #[error(
        "`{0}` is not a size: give bytes (8000000), or a number and a unit: 8MB is 8 000 000 bytes, \
         8MiB is 8 x 2^20; kB, GB, KiB, GiB likewise"
    )]
    NotASize(String),
    /// 2^60 bytes or more.
    #[error("`{0}` is too large: sizes must be below 2^60 bytes")]
    TooLarge(String),
    /// A goal of no bytes at all.
    #[error("no plan fits 0 bytes; give `min` for the smallest plan that is found")]
    Zero,
    /// A size of no bytes, where there is no `min`.
    #[error("0 bytes hold nothing")]
    Nothing,
}

/// The bytes that a text stands for.
///
/// ```
/// use csdfc_input::units;
///
/// assert_eq!(units::parse("8MB")?, 8_000_000);
/// assert_eq!(units::parse("8MiB")?, 8 << 20);
/// assert_eq!(units::bytes(8_000_000), "8.00 MB (8 000 000 bytes)");
/// # Ok::<(), units::SizeError>(())
/// ```
///
/// # Errors
/// When it is no size, negative, or 2^60 bytes or more.
pub fn parse(text: &str) -> Result<u64, SizeError> {
    let shown = || csdfc_network::suggest::clip(text);
    // bytesize saturates instead of failing. The value to which it saturates is over the limit.
    match ByteSize::from_str(text.trim()) {
        Ok(size) if size.as_u64() < LIMIT => Ok(size.as_u64()),
        Ok(_) => Err(SizeError::TooLarge(shown())),
        Err(_) => Err(SizeError::NotASize(shown())),
    }
}

/// A number of bytes for people: `6.02 MB (6 021 120 bytes)`, or `480 bytes`.
pub fn bytes(count: u64) -> String {
    match count {
        1 => "1 byte".into(),
        0..1000 => format!("{count} bytes"),
        _ => format!("{:.2} ({} bytes)", ByteSize(count).display().si(), grouped(count)),
    }
}

/// A number with its digits in groups of three: `6 021 120`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

impl FromStr for Nanoseconds {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        // `s` is the end of all the others.
        let units = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
        let of = |(unit, nanoseconds): &(&str, f64)| Some((text.trim().strip_suffix(unit)?, *nanoseconds));
        let time = units.iter().find_map(of).and_then(|(number, unit)| {
            let time = (number.trim_end().parse::<f64>().ok()? * unit).round();
            (time >= 1.0 && time < LIMIT as f64).then_some(time as u64)
        });
        time.map(Nanoseconds).ok_or_else(|| TimeError(csdfc_network::suggest::clip(text)))
    }
}

/// A time for people: `40.12 ms`, `85.62 µs`, `500 ns`.
pub fn time(nanoseconds: u64) -> String {
    match nanoseconds {
        0..1000 => format!("{nanoseconds} ns"),
        1000..1_000_000 => format!("{:.2} µs", nanoseconds as f64 / 1e3),
        _ => format!("{:.2} ms", nanoseconds as f64 / 1e6),
    }
}

impl FromStr for MemoryGoal {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        if text.trim().eq_ignore_ascii_case("min") {
            return Ok(MemoryGoal::Min);
        }
        match parse(text)? {
            0 => Err(SizeError::Zero),
            bytes => Ok(MemoryGoal::Bytes(bytes)),
        }
    }
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        match parse(text)? {
            0 => Err(SizeError::Nothing),
            bytes => Ok(Size(bytes)),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a size as text (\"8MB\", \"8MiB\"), bytes as a number, or `min`")]
enum MemoryText {
    Bytes(u64),
    Text(String),
}

impl MemoryText {
    fn parse<T: FromStr>(self) -> Result<T, T::Err> {
        match self {
            MemoryText::Bytes(bytes) => bytes.to_string().parse(),
            MemoryText::Text(text) => text.parse(),
        }
    }
}

impl TryFrom<MemoryText> for MemoryGoal {
    type Error = SizeError;

    fn try_from(value: MemoryText) -> Result<Self, SizeError> {
        value.parse()
    }
}

impl TryFrom<MemoryText> for Size {
    type Error = SizeError;

    fn try_from(value: MemoryText) -> Result<Self, SizeError> {
        value.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decimal_or_binary() {
        for (text, expected) in [
            ("0", 0),
            ("8MB", 8_000_000),
            ("8 MB", 8_000_000),
            ("8mb", 8_000_000),
            ("8MiB", 8 << 20),
            ("16 kB", 16_000),
            ("16KiB", 16_384),
            ("1.5MB", 1_500_000),
            ("2GB", 2_000_000_000),
            ("480", 480),
            (" 480 B ", 480),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "banana",
            "-8MB",
            "-1",
            "NaN",
            "inf",
            "MB",
            "8MBs",
            "8 bananas",
            "1e3",
            "1.2.3MB",
            "é8",
            "٣MB",
        ] {
            assert_eq!(parse(text), Err(SizeError::NotASize(text.into())), "{text}");
        }
        for text in ["99999999999999999999B", "99EB", "18446744073709551615", "1152921504606846976"] {
            assert_eq!(parse(text), Err(SizeError::TooLarge(text.into())), "{text}");
        }
        assert_eq!(parse("1152921504606846975"), Ok(LIMIT - 1));
        assert!(parse("99999999999999999999").is_err());
    }

    #[test]
    fn times_have_units() {
        for (text, expected) in [
            ("1ns", 1),
            ("40ms", 40_000_000),
            (" 1.5 us ", 1_500),
            ("1.5µs", 1_500),
            ("0.001s", 1_000_000),
            ("1e3ms", 1_000_000_000),
            ("123456789ns", 123_456_789),
        ] {
            assert_eq!(text.parse(), Ok(Nanoseconds(expected)), "{text}");
        }
        for text in
            ["", "40", "ms", "s", "0ms", "-1ms", "0.4ns", "NaNms", "infs", "1e300s", "40 m", "4 0ms", "40min"]
        {
            assert_eq!(text.parse::<Nanoseconds>(), Err(TimeError(text.into())), "{text}");
        }
        assert_eq!([500, 85_616, 40_120_000].map(time), ["500 ns", "85.62 µs", "40.12 ms"]);
    }

    #[test]
    fn a_goal_is_positive_or_min() {
        assert_eq!("min".parse(), Ok(MemoryGoal::Min));
        assert_eq!("8MB".parse(), Ok(MemoryGoal::Bytes(8_000_000)));
        for zero in ["0", "0MB", "0.1B"] {
            assert_eq!(zero.parse::<MemoryGoal>(), Err(SizeError::Zero), "{zero}");
        }
        assert!(SizeError::Zero.to_string().contains("min"));
    }

    #[test]
    fn sizes_print_with_unit_and_bytes() {
        for (count, expected) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (999, "999 bytes"),
            (1000, "1.00 kB (1 000 bytes)"),
            (6_021_120, "6.02 MB (6 021 120 bytes)"),
            (102_228_128, "102.23 MB (102 228 128 bytes)"),
        ] {
            assert_eq!(bytes(count), expected);
        }
    }
}
