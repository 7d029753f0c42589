//! Rule 3: firings, and the rates at which each operand's rows are acquired and released.

use std::ops::Range;

use crate::format::Layout;

use super::index::{CnnIndex, Index};
use super::rows;
use super::span::Span;
use super::{Findings, MAX_TABLE, Violation, stream};

/// Rows of one tensor that a layer holds, by firing; operands of the same tensor together.
pub struct Held {
    /// The layer that produces the tensor.
    pub tensor: usize,
    /// `need[p]`: the number of leading rows that firings 0..=p read. In a stream, rows of the hops before that are still
    /// there when the hop begins are its first rows, here and in the other counts. Rows that no firing reads count with the firing
    /// before them.
    pub need: Vec<u32>,
    /// `keep[p]`: the first row that firing p or a later one reads. There is one entry more than there are firings, and
    /// the last one is the number of rows.
    pub keep: Vec<u32>,
    /// By row of the output, the rows `keep..need` that a firing of this row alone would hold. Empty if the layer needs
    /// an operand of this tensor whole.
    pub rows: Vec<Range<u32>>,
}

/// Of each CNN and layer, the tensors held.
pub type Rates = Vec<Vec<Vec<Held>>>;

/// Recomputes all firings and rates and compares them with those stated.
pub(super) fn check(index: &Index<'_>) -> Result<Rates, Vec<Violation>> {
    let mut findings = Findings::default();
    let (mut operand_rows, mut firings) = (0u64, 0u64);
    for cnn in &index.cnns {
        for entry in &cnn.layers {
            let (layer, height) = (entry.layer, entry.rows());
            let expected = match layer.rows_per_firing {
                0 => 0,
                r => height.div_ceil(r),
            };
            if layer.firings != expected || expected == 0 {
                let (name, layer) = (cnn.cnn.name.clone(), layer.name.clone());
                findings.push(Violation::Firings { cnn: name, layer, stated: entry.layer.firings, expected });
            }
            if layer.rows_per_firing > height {
                let why = format!("it makes {} rows a firing of {height}", layer.rows_per_firing);
                findings.push(Violation::Operator {
                    cnn: cnn.cnn.name.clone(),
                    layer: layer.name.clone(),
                    why,
                });
            }
            operand_rows = operand_rows.saturating_add(height.saturating_mul(entry.inputs.len() as u64));
            firings = firings.saturating_add(expected.saturating_mul(1 + entry.inputs.len() as u64));
        }
    }
    findings.limit("the number of rows of all operands", Some(operand_rows), MAX_TABLE);
    findings.limit("the number of firings", Some(firings), MAX_TABLE);
    findings.or(())?;

    let mut findings = Findings::default();
    let rates = index
        .cnns
        .iter()
        .map(|cnn| (0..cnn.layers.len()).map(|l| layer_rates(cnn, l, &mut findings)).collect())
        .collect();
    findings.or(rates)
}

fn layer_rates(cnn: &CnnIndex<'_>, l: usize, findings: &mut Findings) -> Vec<Held> {
    let entry = &cnn.layers[l];
    let inputs = cnn.seen_all(l);
    let mut all: Vec<Held> = Vec::new();
    for (operand, input) in entry.layer.inputs.iter().enumerate() {
        let producer = &cnn.layers[entry.inputs[operand]];
        let output = &entry.layer.output_shape;
        // An image in CHW is one row.
        let in_planes = [producer, entry].iter().any(|entry| entry.tensor.format.layout == Layout::Chw);
        let by_rows = || rows::spans(&entry.layer.operator, &producer.tensor.shape, &inputs, operand, output);
        let (r, firings) = (entry.layer.rows_per_firing, entry.layer.firings);
        let (rows, history) = (producer.rows(), producer.tensor.history());
        let over_time = if cnn.is_over_time(l) { stream::spans(cnn, l, operand) } else { None };
        let mut held = match over_time {
            Some(spans) => held_in_time(entry.inputs[operand], rows, &spans, r as usize),
            None => {
                let spans = if in_planes { None } else { by_rows() };
                held_rows(entry.inputs[operand], rows, spans.as_deref(), r, firings)
            }
        };
        // Rows that only other readers need are held along with the first.
        held.need.iter_mut().for_each(|need| *need += history as u32);
        let before = |p: usize| p.checked_sub(1).map_or(history as u32, |before| held.need[before]);
        let acquire = (0..firings as usize).map(|p| held.need[p] - before(p));
        let release = (0..firings as usize).map(|p| held.keep[p + 1] - held.keep[p]);
        let mut compare = |rate: &str, stated: &str, expected: &mut dyn Iterator<Item = u32>| {
            if let Err(error) = compare(stated, expected) {
                findings.push(Violation::Rate {
                    cnn: cnn.cnn.name.clone(),
                    layer: entry.layer.name.clone(),
                    operand,
                    tensor: input.tensor.clone(),
                    rate: rate.into(),
                    stated: stated.chars().take(200).collect(),
                    why: error.to_string(),
                });
            }
        };
        compare("acquire", &input.acquire, &mut acquire.into_iter());
        compare("release", &input.release, &mut release.into_iter());
        if entry.is_tiled() {
            // Tile by tile, some channels of all rows are made, from all rows that are held.
            held.rows.clear();
        }
        match all.iter_mut().find(|other| other.tensor == held.tensor) {
            None => all.push(held),
            Some(other) => {
                other.need.iter_mut().zip(held.need).for_each(|(a, b)| *a = b.max(*a));
                other.keep.iter_mut().zip(held.keep).for_each(|(a, b)| *a = b.min(*a));
                // Empty if one of them is.
                let both = other.rows.iter().zip(&held.rows);
                other.rows = both.map(|(a, b)| a.start.min(b.start)..a.end.max(b.end)).collect();
            }
        }
    }
    all
}

/// The rows that `firings` firings of `r` output rows hold of a tensor of `rows` rows.
fn held_rows(tensor: usize, rows: u64, spans: Option<&[Span]>, r: u64, firings: u64) -> Held {
    let firings = firings as usize;
    let Some(spans) = spans else {
        let mut keep = vec![0; firings + 1];
        keep[firings] = rows as u32;
        return Held { tensor, need: vec![rows as u32; firings], keep, rows: Vec::new() };
    };
    let (need, keep) = windows(rows, spans, r as usize);
    let (need_1, keep_1) = windows(rows, spans, 1);
    let rows = keep_1.into_iter().zip(need_1).map(|(keep, need)| keep..need).collect();
    Held { tensor, need, keep, rows }
}

/// The rows that firings of `r` output rows hold of a tensor of `rows` rows a hop. The first window may read rows of the
/// hops before, which are negative: `keep` counts from the first of these, `need` from row 0. At the end of the hop, as
/// many rows of it are still held. So each firing counts what it releases as read.
fn held_in_time(tensor: usize, rows: u64, spans: &[Span], r: usize) -> Held {
    let own = spans.first().map_or(0, |first| first.0.saturating_neg()).max(0);
    let windows = |r: usize| {
        let chunks: Vec<&[Span]> = spans.chunks(r.max(1)).collect();
        let mut keep = vec![rows as u32; chunks.len() + 1];
        let mut lowest = i64::MAX;
        for (p, chunk) in chunks.iter().enumerate().skip(1).rev() {
            lowest = chunk.iter().map(|span| span.0).fold(lowest, i64::min);
            keep[p] = lowest.saturating_add(own).clamp(0, rows as i64) as u32;
        }
        keep[0] = 0;
        let mut highest = 0;
        let need = chunks.iter().enumerate().map(|(p, chunk)| {
            highest = chunk.iter().map(|span| span.1).fold(highest, i64::max);
            let new = (highest.clamp(0, rows as i64) as u32).max(keep[p + 1]);
            if p + 1 == chunks.len() { rows as u32 } else { new }
        });
        (need.collect::<Vec<u32>>(), keep)
    };
    let (need, keep) = windows(r);
    let (need_1, keep_1) = windows(1);
    let rows = keep_1.into_iter().zip(need_1).map(|(keep, need)| keep..need).collect();
    Held { tensor, need, keep, rows }
}

/// `need` and `keep` by firings of `r` output rows.
fn windows(rows: u64, spans: &[Span], r: usize) -> (Vec<u32>, Vec<u32>) {
    let firings = spans.len().div_ceil(r);
    let mut need = vec![rows as u32; firings];
    let mut keep = vec![rows as u32; firings + 1];
    let chunks: Vec<&[Span]> = spans.chunks(r).collect();
    let mut lowest = i64::MAX;
    for (p, chunk) in chunks.iter().enumerate().skip(1).rev() {
        lowest = chunk.iter().map(|span| span.0).fold(lowest, i64::min);
        keep[p] = lowest.clamp(0, rows as i64) as u32;
    }
    let mut highest = 0;
    for (p, chunk) in chunks.iter().enumerate() {
        highest = chunk.iter().map(|span| span.1).fold(highest, i64::max);
        // Rows between this window and the next, which nothing reads, pass through this firing.
        need[p] = (highest.clamp(0, rows as i64) as u32).max(keep[p + 1]);
    }
    keep[0] = 0;
    (need, keep)
}

/// How rates that a plan states differ from those that follow from its operators. The message goes on where "rates `1,2`"
/// ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RatesError {
    #[error("go on after firing {last}, the last")]
    TooLong { last: u64 },
    #[error("end before firing {next}")]
    TooShort { next: u64 },
    #[error("should be {expected} in firing {firing}, not {stated}")]
    Differs { firing: u64, stated: u64, expected: u64 },
    #[error("cannot be read at `{rest}`")]
    Unreadable { rest: String },
    #[error("repeat a run 0 times")]
    NoRepetition,
    #[error("open a pattern and do not close it")]
    Unclosed,
}

/// Compares rates written as runs of short patterns, `30*1,2*0`, `56*(1,0)`, with a sequence.
pub(super) fn compare<T: Copy + Into<u64>>(
    stated: &str,
    expected: &mut dyn Iterator<Item = T>,
) -> Result<(), RatesError> {
    let mut position = 0u64;
    let mut take = |value: u64| {
        let want = expected.next().map(T::into);
        let want = want.ok_or(RatesError::TooLong { last: position })?;
        if value != want {
            return Err(RatesError::Differs { firing: position, stated: value, expected: want });
        }
        position += 1;
        Ok(())
    };
    for (times, pattern) in parse(stated)? {
        for _ in 0..times {
            for &value in &pattern {
                take(value)?;
            }
        }
    }
    match expected.next() {
        Some(_) => Err(RatesError::TooShort { next: position }),
        None => Ok(()),
    }
}

/// `runs := run ("," run)*`, `run := [number "*"] (number | "(" number ("," number)* ")")`.
fn parse(text: &str) -> Result<Vec<(u64, Vec<u64>)>, RatesError> {
    let unreadable = |rest: &str| RatesError::Unreadable { rest: rest.into() };
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| digits).ok_or_else(|| unreadable(text))
    };
    let mut runs = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.find([',', '(', '*']).unwrap_or(rest.len());
        let (times, body) = match rest[end..].strip_prefix('*') {
            Some(body) => (number(&rest[..end])?, body),
            None => (1, rest),
        };
        if times == 0 {
            return Err(RatesError::NoRepetition);
        }
        let (pattern, after) = match body.strip_prefix('(') {
            Some(inner) => {
                let (inner, after) = inner.split_once(')').ok_or(RatesError::Unclosed)?;
                (inner.split(',').map(number).collect::<Result<_, _>>()?, after)
            }
            None => {
                let end = body.find(',').unwrap_or(body.len());
                (vec![number(&body[..end])?], &body[end..])
            }
        };
        runs.push((times, pattern));
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(runs),
            None => return Err(unreadable(after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_read() {
        let check = |text: &str, expected: &[u32]| {
            assert_eq!(compare(text, &mut expected.iter().copied()), Ok(()), "{text}");
        };
        check("3,29*1", &[&[3][..], &[1; 29]].concat());
        check("30*1,2*0", &[&[1; 30][..], &[0, 0]].concat());
        check("3*(1,0),7", &[1, 0, 1, 0, 1, 0, 7]);
        for bad in [
            "", ",", "1,", "x", "-1", "+1", "2*", "*1", "(1", "1)", "()", "2*(1,,0)", "0*1,1", "2*2*1", "1 ",
            "(1)2",
        ] {
            assert!(compare(bad, &mut [1u32].into_iter()).is_err(), "{bad}");
        }
        let wrong = |text: &str| compare(text, &mut [1u32, 2, 3].into_iter()).unwrap_err();
        assert_eq!(wrong("1,2,4").to_string(), "should be 3 in firing 2, not 4");
        assert_eq!(wrong("1,2").to_string(), "end before firing 2");
        assert_eq!(wrong("1,2,3,3").to_string(), "go on after firing 3, the last");
        assert!(compare("18446744073709551615*1", &mut [1u32, 1].into_iter()).is_err());
        assert!(compare("18446744073709551616*1", &mut [1u32, 1].into_iter()).is_err());
    }

    /// Need and keep by the definition: the rows of all windows, listed.
    #[test]
    fn windows_hold_what_their_definition_says() {
        for (k, s, t, d, rows) in
            [(5, 1, 2, 1, 32), (3, 2, 1, 1, 33), (3, 1, 2, 2, 20), (1, 3, 0, 1, 32), (2, 3, 0, 1, 30)]
        {
            for r in [1, 2, 7] {
                let height = (rows + 2 * t - (k - 1) * d - 1) / s + 1;
                let spans: Vec<Span> =
                    (0..height).map(|y| (y * s - t, y * s - t + (k - 1) * d + 1)).collect();
                let firings = (height as u64).div_ceil(r);
                let held = held_rows(0, rows as u64, Some(&spans), r, firings);
                for p in 0..firings as i64 - 1 {
                    let end = ((p + 1) * r as i64).min(height);
                    let need = rows.min((end - 1) * s - t + (k - 1) * d + 1).max(0);
                    let keep = ((p + 1) * r as i64 * s - t).clamp(0, rows);
                    let need = need.max(keep);
                    assert_eq!(
                        (held.need[p as usize], held.keep[p as usize + 1]),
                        (need as u32, keep as u32)
                    );
                }
                assert_eq!(held.need.last(), Some(&(rows as u32)));
                assert_eq!(held.keep.last(), Some(&(rows as u32)));
            }
        }
    }
}
