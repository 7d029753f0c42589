//! A choice as one line of text. Plans and saved fronts state it, and it can be read back.
//!
//! First come rows per firing in the order of the plan's layers, each run of equal ones once. `13*1,4*2,49*h` says: the first 13
//! layers fire once per row, the next 4 once per two rows, and 49 make their whole tensor (`h`, its height) in one firing. Then
//! come segment barriers. `66*1; barriers 5,12,20-31` ends a segment after the 5th layer, after the 12th, and after each from the
//! 20th to the 31st. `; barriers none` says that all layers of a partition are one segment. Last come the layers that may make
//! the rows of a firing one by one at a cost in time, if there are any: `56*h; one by one 40,43-45`.
//!
//! ```
//! use csdfc_planner::search::code;
//!
//! // An input of 32 rows and a 5×5 convolution.
//! let network = csdfc_input::builtin::network("paper_pair")?;
//! let choice = code::read("1,h; barriers none", &network)?;
//! assert_eq!(choice.rows, [1, 32]);
//! assert_eq!(code::write(&choice, &network), "1,h; barriers none");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt::Write;
use std::ops::RangeInclusive;

use csdfc_network::suggest::clip;
use csdfc_network::{LayerId, Network};

use crate::frame::choice::Choice;

/// Why a text is no choice for a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// An item that does not state rows per firing.
    #[error(
        "`{0}` does not say rows per firing: give `h`, a number, or `24*1` for 24 layers with the same number"
    )]
    Rows(String),
    /// Rows for another number of layers.
    #[error("it lists {stated} layers, but there are {layers}")]
    Layers {
        /// Number of layers in the text.
        stated: u64,
        /// Layers of the network.
        layers: usize,
    },
    /// The text after the rows is not `barriers` and a list.
    #[error(
        "`{0}` lists no barriers: give `barriers none`, or layers in ascending order as in `barriers 5,12,20-31`"
    )]
    Barriers(String),
    /// The text after `one by one` is no list.
    #[error("`{0}` does not list layers in ascending order, as in `one by one 5,12,20-31`")]
    OneByOne(String),
}

/// The text before the layers that make rows one by one.
const ONE_BY_ONE: &str = "one by one ";

/// Writes a choice for a network.
pub fn write(choice: &Choice, network: &Network) -> String {
    // Runs of layers, with their rows per firing or `None` for the whole height.
    let mut runs: Vec<(u64, Option<u64>)> = Vec::new();
    for (layer, &rows) in network.layers.iter().zip(&choice.rows) {
        let height = layer.rows() as u64;
        let rows = (rows < height).then_some(rows);
        match runs.last_mut() {
            // A tensor of one row is always made in one firing, so it joins the run before it.
            Some((times, before)) if *before == rows || height == 1 => *times += 1,
            _ => runs.push((1, rows)),
        }
    }
    let run = |(times, rows): &(u64, Option<u64>)| {
        let rows = rows.map_or("h".into(), |rows| rows.to_string());
        if *times == 1 { rows } else { format!("{times}*{rows}") }
    };
    let mut text = runs.iter().map(run).collect::<Vec<_>>().join(",");
    if let Some(barriers) = &choice.barriers {
        let list = if barriers.is_empty() { "none".into() } else { written(barriers) };
        let _ = write!(text, "; barriers {list}");
    }
    if let Some(layers) = choice.one_by_one.as_ref().filter(|layers| !layers.is_empty()) {
        let _ = write!(text, "; {ONE_BY_ONE}{}", written(layers));
    }
    text
}

/// Layers by their numbers, counted from 1, each run of them as a range.
fn written(layers: &[LayerId]) -> String {
    let numbers: Vec<usize> = layers.iter().map(|layer| layer.0 + 1).collect();
    let range = |run: &[usize]| match run {
        [only] => only.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    };
    let ranges: Vec<String> = numbers.chunk_by(|a, b| a + 1 == *b).map(range).collect();
    ranges.join(",")
}

/// Reads a choice for a network. A number above the height of a tensor stands for the whole tensor.
///
/// # Errors
/// If the text is not of the form above, or has another number of layers.
pub fn read(text: &str, network: &Network) -> Result<Choice, CodeError> {
    let (rows, mut rest) = match text.split_once(';') {
        Some((rows, rest)) => (rows, Some(rest.trim())),
        None => (text, None),
    };
    let mut one_by_one = None;
    if let Some(behind) = rest {
        let (before, list) = match behind.rsplit_once(';') {
            Some((before, list)) => (Some(before.trim()), list.trim()),
            None => (None, behind),
        };
        if list.starts_with(ONE_BY_ONE.trim_end()) {
            (one_by_one, rest) = (Some(list), before);
        }
    }
    let layers = network.layers.len();
    let heights = || network.layers.iter().map(|layer| layer.rows() as u64);
    let mut runs = Vec::new();
    for item in rows.split(',').map(str::trim) {
        runs.push(run(item).ok_or_else(|| CodeError::Rows(clip(item)))?);
    }
    let stated = runs.iter().fold(0u64, |sum, (times, _)| sum.saturating_add(*times));
    if stated != layers as u64 {
        return Err(CodeError::Layers { stated, layers });
    }
    let stated = runs.iter().flat_map(|(times, rows)| std::iter::repeat_n(rows, *times as usize));
    let rows = stated.zip(heights()).map(|(rows, height)| rows.unwrap_or(height).min(height)).collect();
    let barriers = rest
        .map(|text| barrier_list(text, layers).ok_or_else(|| CodeError::Barriers(clip(text))))
        .transpose()?;
    let one_by_one = one_by_one
        .map(|text| {
            let list = text.strip_prefix(ONE_BY_ONE).and_then(|list| layer_list(list.trim(), layers));
            list.ok_or_else(|| CodeError::OneByOne(clip(text)))
        })
        .transpose()?;
    let one_by_one = Some(one_by_one.unwrap_or_default());
    Ok(Choice { name: "given".into(), rows, barriers, one_by_one })
}

/// The number of layers of an item, and their rows per firing, `None` for all rows.
fn run(item: &str) -> Option<(u64, Option<u64>)> {
    let (times, rows) = item.split_once('*').unwrap_or(("1", item));
    let positive = |text: &str| text.trim().parse().ok().filter(|number| *number > 0);
    let rows = if rows.trim() == "h" { None } else { Some(positive(rows)?) };
    Some((positive(times)?, rows))
}

fn barrier_list(text: &str, layers: usize) -> Option<Vec<LayerId>> {
    let list = text.strip_prefix("barriers ")?.trim();
    if list == "none" { Some(Vec::new()) } else { layer_list(list, layers) }
}

/// Layers by their numbers, ascending.
fn layer_list(list: &str, layers: usize) -> Option<Vec<LayerId>> {
    let mut listed: Vec<LayerId> = Vec::new();
    for item in list.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let range: RangeInclusive<usize> = first.trim().parse().ok()?..=last.trim().parse().ok()?;
        let after = listed.last().map_or(0, |layer| layer.0 + 1);
        if range.is_empty() || *range.start() <= after || *range.end() > layers {
            return None;
        }
        listed.extend(range.map(|number| LayerId(number - 1)));
    }
    Some(listed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Some layers of several rows, then some of one.
    fn network() -> Network {
        csdfc_input::builtin::network("lenet5").unwrap()
    }

    #[test]
    fn choices_have_short_codes() {
        let network = network();
        let layers = network.layers.len();
        let barriers = |list: &[usize]| Some(list.iter().map(|layer| LayerId(*layer)).collect());
        for (choice, expected) in [
            (Choice::none(&network), format!("{layers}*h")),
            (Choice::all(&network), format!("{layers}*1")),
            (Choice::prefix(&network, 1), format!("1,{}*h", layers - 1)),
            (
                Choice { barriers: barriers(&[]), ..Choice::all(&network) },
                format!("{layers}*1; barriers none"),
            ),
            (
                Choice { barriers: barriers(&[0, 2, 3, 4]), ..Choice::all(&network) },
                format!("{layers}*1; barriers 1,3-5"),
            ),
            (
                Choice { one_by_one: barriers(&[1, 3, 4]), ..Choice::none(&network) },
                format!("{layers}*h; one by one 2,4-5"),
            ),
            (
                Choice { barriers: barriers(&[]), one_by_one: barriers(&[2]), ..Choice::none(&network) },
                format!("{layers}*h; barriers none; one by one 3"),
            ),
        ] {
            let text = write(&choice, &network);
            assert_eq!(text, expected);
            let again = read(&text, &network).unwrap();
            let one_by_one = Some(choice.one_by_one.unwrap_or_default());
            let expected = (choice.rows, choice.barriers, one_by_one);
            assert_eq!((again.rows, again.barriers, again.one_by_one), expected, "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let network = network();
        let layers = network.layers.len();
        for (text, expected) in [
            ("", "`` does not say rows per firing"),
            ("3*", "`3*` does not say rows per firing"),
            ("0*1", "`0*1` does not say rows per firing"),
            ("0", "`0` does not say rows per firing"),
            ("-1", "`-1` does not say rows per firing"),
            ("1,,1", "`` does not say rows per firing"),
            ("prefix 3", "`prefix 3` does not say rows per firing"),
            ("3*1", "it lists 3 layers"),
            ("18446744073709551615*1,2*h", "it lists 18446744073709551615 layers"),
            ("all; barriers none", "`all` does not say rows per firing"),
        ] {
            let error = read(text, &network).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        for list in [
            "",
            "barriers",
            "barriers ",
            "barriers 0",
            "barriers 3,3",
            "barriers 4-2",
            "barriers 2,1-3",
            "barriers 99",
            "barriers 1-18446744073709551615",
            "barriers none,1",
            "walls 1",
        ] {
            let error = read(&format!("{layers}*1;{list}"), &network);
            assert_eq!(error, Err(CodeError::Barriers(list.trim().into())), "{list}");
        }
        for list in ["one by one", "one by one 0", "one by one none", "one by one 99", "one by one 3,2"] {
            for before in ["", "barriers none; "] {
                let error = read(&format!("{layers}*1; {before}{list}"), &network);
                assert_eq!(error, Err(CodeError::OneByOne(list.into())), "{before}{list}");
            }
        }
        let error = read(&format!("{layers}*1; one by one 2; barriers none"), &network);
        assert_eq!(error, Err(CodeError::Barriers("one by one 2; barriers none".into())));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            rows in prop::collection::vec(1u64..40, 20),
            bars in prop::option::of(prop::collection::vec(any::<bool>(), 20)),
            singly in prop::collection::vec(any::<bool>(), 20),
        ) {
            let network = network();
            let heights = network.layers.iter().map(|layer| layer.rows() as u64);
            let rows: Vec<u64> = heights.zip(rows).map(|(height, rows)| rows.min(height)).collect();
            let barriers = bars.map(|bars| network.ids().filter(|id| bars[id.0]).collect());
            let one_by_one = Some(network.ids().filter(|id| singly[id.0]).collect());
            let choice = Choice { name: "given".into(), rows, barriers, one_by_one };
            prop_assert_eq!(read(&write(&choice, &network), &network), Ok(choice));
        }
    }
}
