//! A replay of plans, written from `docs/plan-format.md` alone: it reads a plan's text and knows nothing of csdfc. Sections
//! are those of the page.

mod arena;
mod bound;
mod families;
pub mod model;
mod parameters;
mod read;
mod regions;
pub mod rows;
mod schedule;
mod shared;
mod spans;
mod state;
mod stream;
mod sums;

use serde_json::Value;

use self::model::Plan;
pub use self::rows::rates;
pub use self::schedule::notation;

/// Why a plan is refused, or is none.
pub type Refusal = String;

/// What a replay saw.
#[derive(Debug, Default)]
pub struct Replayed {
    /// Firings, over all frames and orders of turns.
    pub firings: u64,
    /// Rows read.
    pub rows_read: u64,
}

/// Replays a plan.
///
/// # Errors
/// What is wrong with it.
pub fn replay(plan: &Value) -> Result<Replayed, Refusal> {
    let plan = Plan::read(plan)?;
    sums::check(&plan)?;
    let mut replayed = Replayed::default();
    for cnn in 0..plan.cnns.len() {
        arena::replay(&plan, cnn, &mut replayed)?;
    }
    Ok(replayed)
}

/// A text in a field.
fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str, Refusal> {
    value[field].as_str().ok_or_else(|| format!("no text `{field}`"))
}

/// A number that is not negative.
fn number(value: &Value, field: &str) -> Result<u64, Refusal> {
    value[field].as_u64().ok_or_else(|| format!("no number `{field}`"))
}

fn list<'a>(value: &'a Value, field: &str) -> Result<&'a [Value], Refusal> {
    value[field].as_array().map(Vec::as_slice).ok_or_else(|| format!("no list `{field}`"))
}

/// The names in a list.
fn names<'a>(value: &'a Value, field: &str) -> Result<Vec<&'a str>, Refusal> {
    list(value, field)?
        .iter()
        .map(|name| name.as_str().ok_or_else(|| format!("no name in `{field}`")))
        .collect()
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, stated: T, expected: T) -> Result<(), Refusal> {
    if stated == expected { Ok(()) } else { Err(format!("{what} is {stated:?}, not {expected:?}")) }
}
