//! Sections 4 to 6: shapes, rates, and the rows of a tensor that a layer holds.

use serde_json::Value;

use super::{Refusal, text};

/// A shape: its dimensions, and whether it is channels last.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    pub dims: Vec<u64>,
    pub last: bool,
}

impl Shape {
    pub fn read(value: &Value) -> Result<Shape, Refusal> {
        let (dims, last) = match value {
            Value::Array(dims) => (dims, false),
            other => (
                other["dims"].as_array().ok_or("a shape without `dims`")?,
                match text(other, "order")? {
                    "channels_last" => true,
                    "channels_first" => false,
                    order => return Err(format!("no order `{order}`")),
                },
            ),
        };
        let dims = dims.iter().map(|dim| dim.as_u64().ok_or("a dimension that is no number"));
        Ok(Shape { dims: dims.collect::<Result<_, _>>()?, last })
    }

    pub fn elements(&self) -> u64 {
        self.dims.iter().product()
    }

    pub fn is_image(&self) -> bool {
        self.dims.len() == 4 && self.dims[0] == 1
    }

    /// The row axis of an image or of lines.
    pub fn row_axis(&self) -> Option<usize> {
        match self.dims[..] {
            [1, _, _, _] => Some(if self.last { 1 } else { 2 }),
            [1, lines, _] if (2..=4096).contains(&lines) => Some(1),
            [lines, _] if (2..=4096).contains(&lines) => Some(0),
            _ => None,
        }
    }

    /// Whether the elements lie in memory in the row-major order of the dimensions.
    pub fn is_in_order(&self) -> bool {
        !self.is_image() || self.last || self.channels() == 1
    }

    pub fn rows(&self) -> u64 {
        self.row_axis().map_or(1, |axis| self.dims[axis])
    }

    /// Elements of a row.
    pub fn row_elements(&self) -> u64 {
        self.elements() / self.rows()
    }

    /// The size of the dimension that counts channels.
    pub fn channels(&self) -> u64 {
        match self.dims.len() {
            0 | 1 => 1,
            4 if self.last => self.dims[3],
            _ => self.dims[1],
        }
    }
}

/// Rates as text, written out.
pub fn rates(text: &str) -> Result<Vec<u64>, Refusal> {
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| is_number).ok_or_else(|| format!("no rates: `{text}`"))
    };
    let mut all = Vec::new();
    let mut rest = text;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (times, body) = match rest[digits..].strip_prefix('*') {
            Some(body) => (number(&rest[..digits])?, body),
            None => (1, rest),
        };
        let (pattern, after) = match body.strip_prefix('(') {
            Some(body) => body.split_once(')').ok_or_else(|| format!("no rates: `{text}`"))?,
            None => body.split_at(body.find(',').unwrap_or(body.len())),
        };
        let pattern: Vec<u64> = pattern.split(',').map(number).collect::<Result<_, _>>()?;
        if times == 0 || times > 1 << 24 {
            return Err(format!("no rates: `{text}`"));
        }
        (0..times).for_each(|_| all.extend_from_slice(&pattern));
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(all),
            None => return Err(format!("no rates: `{text}`")),
        }
    }
}

/// The rows of a tensor that a layer holds.
#[derive(Debug, Clone)]
pub struct Held {
    /// The layer that writes the tensor.
    pub tensor: usize,
    /// Rows of hops before, from the first of which on rows are counted.
    pub history: u64,
    /// By firing.
    pub need: Vec<u64>,
    /// By firing, and one more.
    pub keep: Vec<u64>,
    /// By output row; `None` where the tensor is needed whole.
    pub keep_1: Option<Vec<u64>>,
}

impl Held {
    pub fn new(
        tensor: usize,
        [rows, history]: [u64; 2],
        spans: Option<&[Span]>,
        r: u64,
        firings: u64,
    ) -> Held {
        let end = history + rows;
        let Some(spans) = spans else {
            let mut keep = vec![0; firings as usize];
            keep.push(rows);
            return Held { tensor, history, need: vec![end; firings as usize], keep, keep_1: None };
        };
        let keep = |row: u64, is_end: bool| match row {
            _ if is_end => rows,
            0 => 0,
            row => spans[row as usize..]
                .iter()
                .flatten()
                .map(|span| span[0])
                .min()
                .map_or(rows, |first| first.clamp(0, rows as i64) as u64),
        };
        let keeps: Vec<u64> = (0..=firings).map(|p| keep(p * r, p == firings)).collect();
        let need = |p: u64| {
            if p + 1 == firings {
                return end;
            }
            let ends = spans[..((p + 1) * r) as usize].iter().flatten().map(|span| span[1]);
            let last = ends.max().unwrap_or(0).clamp(history as i64, end as i64) as u64;
            last.max(history + keeps[p as usize + 1])
        };
        let height = spans.len() as u64;
        Held {
            tensor,
            history,
            need: (0..firings).map(need).collect(),
            keep_1: Some((0..height).map(|o| keep(o, o == height)).collect()),
            keep: keeps,
        }
    }

    /// The same rows after others of hops before, which are held along with them.
    pub fn after(mut self, history: u64) -> Held {
        self.need.iter_mut().for_each(|need| *need += history);
        self.history += history;
        self
    }

    /// The same tensor held for two operands.
    pub fn joined(&mut self, other: &Held) {
        self.need.iter_mut().zip(&other.need).for_each(|(a, b)| *a = (*a).max(*b));
        self.keep.iter_mut().zip(&other.keep).for_each(|(a, b)| *a = (*a).min(*b));
        self.keep_1 = match (self.keep_1.take(), &other.keep_1) {
            (Some(mut a), Some(b)) => {
                a.iter_mut().zip(b).for_each(|(a, b)| *a = (*a).min(*b));
                Some(a)
            }
            _ => None,
        };
    }

    pub fn acquire(&self) -> Vec<u64> {
        let before = [self.history].into_iter().chain(self.need.iter().copied());
        before.zip(&self.need).map(|(before, need)| need - before).collect()
    }

    pub fn release(&self) -> Vec<u64> {
        self.keep.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

/// The first row and the one after the last that an output row is made from; `None` if there is none.
pub type Span = Option<[i64; 2]>;
