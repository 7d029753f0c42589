//! The file format of MiniMalloc. Each line is a buffer. Lives are half-open intervals.
//!
//! ```text
//! id,lower,upper,size,alignment,gaps,offset
//! b1,0,9,4,1,2-4 6-8@0:2,
//! ```
//!
//! Columns may come in any order, and their names say which they are. `begin` and `start` are other names for `lower`.
//! `end` stands for `upper`, but includes the last moment, in gaps too. In a gap, the buffer is not in use, or only its
//! bytes `low` to `high` are (`@low:high`). `offset`, `alignment` and `gaps` may be missing or empty. A buffer with an
//! offset is fixed there. `hint`, where MiniMalloc's search tries a buffer first, may be there and is not used.
//!
//! ```
//! use csdfc_planner::minimalloc::parse;
//!
//! let buffers = parse("id,lower,upper,size\nb1,0,9,4\nb2,9,12,8\n")?;
//! assert_eq!(buffers[1].life.block.bytes, 8);
//! // The second begins when the first has ended, so they can share addresses.
//! assert!(buffers[0].life.upper <= buffers[1].life.lower);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeSet;
use std::fmt::Write;

use csdfc_network::suggest::clip;
use csdfc_packing::{Block, Gap, Life};

#[cfg(test)]
mod tests;

/// Maximum number of buffers of a file.
pub const MAX_ROWS: usize = 100_000;

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferRow {
    /// Name of the buffer.
    pub id: String,
    /// The buffer and when it is in use.
    pub life: Life,
}

/// Why a file is not in this format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CsvError {
    /// There is no line with the names of the columns.
    #[error("the file is empty; its first line names the columns: id,lower,upper,size")]
    Empty,
    /// A column is unknown.
    #[error(
        "line 1 names the columns, and there is no column `{0}`; known are id, lower, upper, size, alignment, gaps, offset \
         and hint"
    )]
    UnknownColumn(String),
    /// A column is there twice.
    #[error("line 1: column `{0}` is there twice")]
    DoubledColumn(&'static str),
    /// A column is missing.
    #[error("line 1: column `{0}` is missing; the first line names the columns: id,lower,upper,size")]
    MissingColumn(&'static str),
    /// A line has too many or too few values.
    #[error("line {line}: {found} values for {expected} columns")]
    Count {
        /// The line, from 1.
        line: usize,
        /// Its values.
        found: usize,
        /// The columns.
        expected: usize,
    },
    /// A value is wrong.
    #[error("line {line}: {column} `{value}` {why}")]
    Value {
        /// The line, from 1.
        line: usize,
        /// The column.
        column: &'static str,
        /// The value.
        value: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There are too many buffers.
    #[error("more than {MAX_ROWS} buffers")]
    TooMany,
}

const ID: &str = "id";
const LOWER: &str = "lower";
const UPPER: &str = "upper";
const SIZE: &str = "size";
const ALIGNMENT: &str = "alignment";
const GAPS: &str = "gaps";
const OFFSET: &str = "offset";
const HINT: &str = "hint";

/// Names of columns, and the column that each means.
const NAMES: [(&str, &str); 13] = [
    (ID, ID),
    ("buffer", ID),
    ("buffer_id", ID),
    (LOWER, LOWER),
    ("begin", LOWER),
    ("start", LOWER),
    (UPPER, UPPER),
    ("end", UPPER),
    (SIZE, SIZE),
    (ALIGNMENT, ALIGNMENT),
    (GAPS, GAPS),
    (OFFSET, OFFSET),
    (HINT, HINT),
];

/// Reads a file.
///
/// # Errors
/// When it is not in this format. The error names the line.
pub fn parse(text: &str) -> Result<Vec<BufferRow>, CsvError> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, header) = lines.next().ok_or(CsvError::Empty)?;
    let columns = columns(header)?;
    let inclusive = header.split(',').any(|name| name.trim() == "end");
    let mut rows = Vec::new();
    let mut ids = BTreeSet::new();
    for (at, line) in lines {
        let values: Vec<&str> = line.split(',').map(str::trim).collect();
        let reader = Record { line: at + 1, columns: &columns, values: &values };
        let row = reader.row(inclusive)?;
        if !ids.insert(row.id.clone()) {
            return Err(reader.wrong(ID, &row.id, "is there twice"));
        }
        rows.push(row);
        if rows.len() > MAX_ROWS {
            return Err(CsvError::TooMany);
        }
    }
    Ok(rows)
}

fn columns(header: &str) -> Result<Vec<&'static str>, CsvError> {
    let mut columns: Vec<&'static str> = Vec::new();
    for name in header.trim_start_matches('\u{feff}').split(',').map(str::trim) {
        let known = NAMES.iter().find(|(known, _)| *known == name);
        let (_, column) = known.ok_or_else(|| CsvError::UnknownColumn(clip(name)))?;
        if columns.contains(column) {
            return Err(CsvError::DoubledColumn(column));
        }
        columns.push(column);
    }
    match [ID, LOWER, UPPER, SIZE].iter().find(|name| !columns.contains(name)) {
        Some(missing) => Err(CsvError::MissingColumn(missing)),
        None => Ok(columns),
    }
}

struct Record<'a> {
    line: usize,
    columns: &'a [&'static str],
    values: &'a [&'a str],
}

impl Record<'_> {
    fn row(&self, inclusive: bool) -> Result<BufferRow, CsvError> {
        if self.values.len() != self.columns.len() {
            let (found, expected) = (self.values.len(), self.columns.len());
            return Err(CsvError::Count { line: self.line, found, expected });
        }
        let id = self.value(ID).unwrap_or_default();
        if id.is_empty() {
            return Err(self.wrong(ID, id, "is empty"));
        }
        let block = Block {
            bytes: self.number(SIZE, "is no number of bytes")?.unwrap_or(0),
            alignment: self.number(ALIGNMENT, "is no number of bytes")?.unwrap_or(1),
            offset: self.number(OFFSET, "is no number of bytes")?,
        };
        if block.alignment == 0 {
            return Err(self.wrong(ALIGNMENT, "0", "is no alignment; give 1 for any offset"));
        }
        let (lower, upper) = (self.time(LOWER, false)?, self.time(UPPER, inclusive)?);
        if upper < lower {
            return Err(self.wrong(UPPER, self.value(UPPER).unwrap_or_default(), "comes before lower"));
        }
        let mut gaps = Vec::new();
        for text in self.value(GAPS).unwrap_or_default().split_whitespace() {
            let gap = gap(text, inclusive).ok_or_else(|| {
                self.wrong(
                    GAPS,
                    text,
                    "is no gap; give 8-10, or 8-10@0:512 if those bytes are in use even then",
                )
            })?;
            if gap.lower < lower || upper < gap.upper || gap.upper < gap.lower {
                return Err(self.wrong(GAPS, text, "does not lie within the life"));
            }
            if gap.window.is_some_and(|(low, high)| high < low || block.bytes < high) {
                return Err(self.wrong(GAPS, text, "has bytes beyond the buffer's size"));
            }
            gaps.push(gap);
        }
        gaps.sort_by_key(|gap| (gap.lower, gap.upper));
        if gaps.windows(2).any(|pair| pair[1].lower < pair[0].upper) {
            return Err(self.wrong(GAPS, self.value(GAPS).unwrap_or_default(), "overlap"));
        }
        Ok(BufferRow { id: id.to_owned(), life: Life { block, lower, upper, gaps } })
    }

    fn value(&self, column: &str) -> Option<&str> {
        self.columns.iter().position(|name| *name == column).map(|at| self.values[at])
    }

    fn number(&self, column: &'static str, why: &'static str) -> Result<Option<u64>, CsvError> {
        match self.value(column) {
            Some("") if column != SIZE => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| self.wrong(column, text, why)),
            None => Ok(None),
        }
    }

    fn time(&self, column: &'static str, inclusive: bool) -> Result<i64, CsvError> {
        let text = self.value(column).unwrap_or_default();
        let time: Option<i64> = text.parse().ok();
        let end = time.and_then(|time| time.checked_add(i64::from(inclusive)));
        end.ok_or_else(|| self.wrong(column, text, "is no whole number that fits 64 bits"))
    }

    fn wrong(&self, column: &'static str, value: &str, why: &'static str) -> CsvError {
        CsvError::Value { line: self.line, column, value: clip(value), why }
    }
}

fn gap(text: &str, inclusive: bool) -> Option<Gap> {
    let (times, window) = match text.split_once('@') {
        Some((times, window)) => (times, Some(window)),
        None => (text, None),
    };
    let (lower, upper) = times.split_once('-')?;
    let window = match window {
        Some(window) => {
            let (low, high) = window.split_once(':')?;
            Some((low.parse().ok()?, high.parse().ok()?))
        }
        None => None,
    };
    let upper: i64 = upper.parse().ok()?;
    Some(Gap { lower: lower.parse().ok()?, upper: upper.checked_add(i64::from(inclusive))?, window })
}

/// Writes a file: these buffers, each at its offset. Alignments and gaps are columns only if there are any.
pub fn write(rows: &[BufferRow], offsets: &[u64]) -> String {
    let aligned = rows.iter().any(|row| row.life.block.alignment != 1);
    let with_gaps = rows.iter().any(|row| !row.life.gaps.is_empty());
    let mut text = String::from("id,lower,upper,size");
    text.push_str(if aligned { ",alignment" } else { "" });
    text.push_str(if with_gaps { ",gaps" } else { "" });
    text.push_str(",offset\n");
    for (row, offset) in rows.iter().zip(offsets) {
        let Life { block, lower, upper, gaps } = &row.life;
        // Writing to a string cannot fail.
        let _ = write!(text, "{},{lower},{upper},{}", row.id, block.bytes);
        if aligned {
            let _ = write!(text, ",{}", block.alignment);
        }
        if with_gaps {
            let gaps: Vec<String> = gaps.iter().map(gap_text).collect();
            let _ = write!(text, ",{}", gaps.join(" "));
        }
        let _ = writeln!(text, ",{offset}");
    }
    text
}

fn gap_text(gap: &Gap) -> String {
    match gap.window {
        Some((low, high)) => format!("{}-{}@{low}:{high}", gap.lower, gap.upper),
        None => format!("{}-{}", gap.lower, gap.upper),
    }
}
