//! Cyclic sequences of rates, run-length coded.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::Error;
use crate::runs::stretches;

/// A short pattern of rates, repeated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Run {
    /// How often the pattern is repeated; at least 1.
    pub times: u64,
    /// The pattern; at least one rate.
    pub pattern: Vec<u64>,
}

/// A cyclic sequence of rates, one per phase of an actor, coded as runs of short patterns.
///
/// A layer of a CNN has a handful of runs, however high it is. [`Display`](fmt::Display) and [`FromStr`] use this
/// notation: `3,29*1,2*0` is 3, then 29 times 1, then twice 0, and `56*(1,0)` is 1, 0, 1, 0, … over 112 phases. `==`
/// compares codings: two codings of one sequence may differ, unless both come from [`Rates::from_sequence`]. Clones share
/// the coding.
///
/// ```
/// use csdf::Rates;
/// let rates: Rates = "3,29*1,2*0".parse()?;
/// assert_eq!((rates.len(), rates.total()), (32, 32));
/// assert_eq!(Rates::from_sequence(&[1, 0, 1, 0, 1, 0]).to_string(), "3*(1,0)");
/// # Ok::<(), csdf::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rates {
    runs: Arc<[Run]>,
    length: u64,
}

impl Rates {
    /// The sequence of `runs`.
    ///
    /// # Errors
    /// [`Error::BadRates`], at the number of the offending run, if a run is empty or the length exceeds `u64`.
    pub fn new(runs: Vec<Run>) -> Result<Rates, Error> {
        let mut length = 0u64;
        for (at, run) in runs.iter().enumerate() {
            if run.times == 0 || run.pattern.is_empty() {
                return Err(Error::BadRates { reason: "an empty run", at });
            }
            length = (run.pattern.len() as u64)
                .checked_mul(run.times)
                .and_then(|phases| length.checked_add(phases))
                .ok_or(Error::BadRates { reason: "more phases than 64 bits can count", at })?;
        }
        Ok(Rates { runs: runs.into(), length })
    }

    /// `value` in each of `times` phases.
    pub fn constant(times: u64, value: u64) -> Rates {
        let runs = (times > 0).then(|| Run { times, pattern: vec![value] });
        Rates { runs: runs.into_iter().collect(), length: times }
    }

    /// `total` tokens: `portion` in each phase, and what is left in the last one. [`Rates::from_sequence`] codes this
    /// sequence alike.
    ///
    /// ```
    /// assert_eq!(csdf::Rates::portions(14, 4).to_string(), "3*4,2");
    /// ```
    ///
    /// # Panics
    /// If `portion` is 0.
    pub fn portions(total: u64, portion: u64) -> Rates {
        let (times, rest) = (total / portion, total % portion);
        let run = |times, rate| Run { times, pattern: vec![rate] };
        let whole = (times > 0).then(|| run(times, portion));
        let last = (rest > 0).then(|| run(1, rest));
        Rates { runs: whole.into_iter().chain(last).collect(), length: total.div_ceil(portion) }
    }

    /// Codes a sequence in few runs. It takes O(length) time.
    pub fn from_sequence(sequence: &[u64]) -> Rates {
        let runs = stretches(sequence)
            .into_iter()
            .map(|stretch| Run {
                times: stretch.times as u64,
                pattern: sequence[stretch.start..stretch.start + stretch.period].to_vec(),
            })
            .collect();
        Rates { runs, length: sequence.len() as u64 }
    }

    /// Phases that the sequence covers.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether it covers no phase; a graph accepts no such sequence.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Sum over one cycle. It cannot overflow: at most 2^64 − 1 phases of at most 2^64 − 1 tokens.
    pub fn total(&self) -> u128 {
        self.runs
            .iter()
            .map(|run| u128::from(run.times) * run.pattern.iter().map(|&rate| u128::from(rate)).sum::<u128>())
            .sum()
    }

    /// The coding.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The rates of one cycle, phase by phase.
    pub fn iter(&self) -> impl Iterator<Item = u64> + Clone + '_ {
        self.runs.iter().flat_map(|run| (0..run.times).flat_map(move |_| run.pattern.iter().copied()))
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, run) in self.runs.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            if run.times > 1 {
                write!(f, "{}*", run.times)?;
            }
            let parentheses = run.times > 1 && run.pattern.len() > 1;
            f.write_str(if parentheses { "(" } else { "" })?;
            for (index, rate) in run.pattern.iter().enumerate() {
                f.write_str(if index > 0 { "," } else { "" })?;
                write!(f, "{rate}")?;
            }
            f.write_str(if parentheses { ")" } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for Rates {
    type Err = Error;

    /// Reads the notation. Blanks between its parts are ignored, the empty text is refused.
    fn from_str(text: &str) -> Result<Rates, Error> {
        let mut reader = Reader { text: text.as_bytes(), at: 0 };
        let mut runs = Vec::new();
        loop {
            let number = reader.number()?;
            let run = if !reader.take(b'*') {
                Run { times: 1, pattern: vec![number] }
            } else if reader.take(b'(') {
                let mut pattern = vec![reader.number()?];
                while reader.take(b',') {
                    pattern.push(reader.number()?);
                }
                if !reader.take(b')') {
                    return Err(reader.error("`,` or `)` expected"));
                }
                Run { times: number, pattern }
            } else {
                Run { times: number, pattern: vec![reader.number()?] }
            };
            if run.times == 0 {
                return Err(reader.error("a pattern repeated 0 times"));
            }
            runs.push(run);
            if !reader.take(b',') {
                break;
            }
        }
        if reader.at < reader.text.len() {
            return Err(reader.error("`,` or `*` expected"));
        }
        Rates::new(runs).map_err(|error| match error {
            Error::BadRates { reason, .. } => reader.error(reason),
            other => other,
        })
    }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn error(&self, reason: &'static str) -> Error {
        Error::BadRates { reason, at: self.at }
    }

    fn skip_blanks(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let found = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn number(&mut self) -> Result<u64, Error> {
        self.skip_blanks();
        let start = self.at;
        let mut number = 0u64;
        while let Some(digit) = self.text.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            number = number
                .checked_mul(10)
                .and_then(|number| number.checked_add(u64::from(digit - b'0')))
                .ok_or_else(|| self.error("a number above 64 bits"))?;
            self.at += 1;
        }
        if self.at == start { Err(self.error("a number expected")) } else { Ok(number) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn portions_are_coded_as_their_sequence() {
        for (total, portion) in (0..40).flat_map(|total| (1..45).map(move |portion| (total, portion))) {
            let sequence: Vec<u64> =
                (0..total).step_by(portion).map(|made| portion.min(total - made) as u64).collect();
            let portions = Rates::portions(total as u64, portion as u64);
            assert_eq!(portions, Rates::from_sequence(&sequence), "{total} in {portion}");
        }
    }

    #[test]
    fn compressed() {
        fn check(text: &str, length: u64, total: u128) {
            let rates: Rates = text.parse().unwrap();
            assert_eq!((rates.len(), rates.total()), (length, total), "{text}");
            let sequence: Vec<u64> = rates.iter().collect();
            assert_eq!(sequence.len() as u64, length, "{text}");
            assert_eq!(Rates::from_sequence(&sequence).to_string(), text);
            assert_eq!(rates.to_string(), text);
        }
        check("30*1,2*0", 32, 30);
        check("3,29*1,2*0", 32, 32);
        check("56*(1,0)", 112, 56);
        check("2*0,29*1,3", 32, 32);
        check("2*1,55*(0,1)", 112, 57);
        check("1,55*2,1", 57, 112);
        check("4", 1, 4);
        check("6,2*1", 3, 8);
    }

    #[test]
    fn constants() {
        assert_eq!(Rates::constant(5, 2).to_string(), "5*2");
        assert_eq!(Rates::constant(1, 2).to_string(), "2");
        assert!(Rates::constant(0, 2).is_empty());
        assert_eq!(Rates::constant(u64::MAX, u64::MAX).total(), u128::from(u64::MAX) * u128::from(u64::MAX));
    }

    #[test]
    fn malformed() {
        fn check(text: &str, reason: &str, at: usize) {
            match text.parse::<Rates>() {
                Err(Error::BadRates { reason: found, at: place }) => {
                    assert_eq!((found, place), (reason, at), "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        check("", "a number expected", 0);
        check("1,", "a number expected", 2);
        check("x", "a number expected", 0);
        check("-1", "a number expected", 0);
        check("1 2", "`,` or `*` expected", 2);
        check("3*(1,2", "`,` or `)` expected", 6);
        check("3*((1))", "a number expected", 3);
        check("0*7", "a pattern repeated 0 times", 3);
        check("18446744073709551616", "a number above 64 bits", 19);
        check("18446744073709551615*1,1", "more phases than 64 bits can count", 24);
        check("9223372036854775808*(1,2)", "more phases than 64 bits can count", 25);
        assert_eq!(" 3 , 2 * ( 1 , 0 ) ".parse::<Rates>().unwrap().to_string(), "3,2*(1,0)");
    }

    proptest! {
        #[test]
        fn round_trip(sequence in prop::collection::vec(0u64..3, 1..200)) {
            let rates = Rates::from_sequence(&sequence);
            prop_assert_eq!(rates.iter().collect::<Vec<_>>(), sequence.clone());
            prop_assert_eq!(rates.len(), sequence.len() as u64);
            let again: Rates = rates.to_string().parse().unwrap();
            prop_assert_eq!(again.iter().collect::<Vec<_>>(), sequence.clone());
            prop_assert_eq!(again.total(), sequence.iter().map(|&rate| u128::from(rate)).sum::<u128>());
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9*(), ]{0,30}") {
            if let Ok(rates) = text.parse::<Rates>() {
                let again: Rates = rates.to_string().parse().unwrap();
                prop_assert_eq!((again.len(), again.total()), (rates.len(), rates.total()));
            }
        }
    }
}
