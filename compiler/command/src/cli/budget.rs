//! How much is searched: `--budget`.

use std::str::FromStr;
use std::time::Duration;

use csdfc_planner::search::budget::Budget;

/// `10s`, or a number of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchBudget {
    /// Wall time, above 0.
    Time(Duration),
    /// Steps, at least 1: what comes out is the same on every machine.
    Steps(u64),
}

impl FromStr for SearchBudget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let time = |number: &str, unit: f64| {
            let seconds = number.trim().parse::<f64>().ok().map(|number| number * unit)?;
            Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero()).map(SearchBudget::Time)
        };
        let budget = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
            (Some(number), _) => time(number, 1e-3),
            (None, Some(number)) => time(number, 1.0),
            (None, None) => text.parse().ok().filter(|&steps| steps > 0).map(SearchBudget::Steps),
        };
        budget.ok_or_else(|| "give a time above 0, `10s` or `500ms`, or a number of steps, `1000000`".into())
    }
}

impl From<SearchBudget> for csdfc_offload::Budget {
    fn from(budget: SearchBudget) -> Self {
        match budget {
            SearchBudget::Time(time) => csdfc_offload::Budget::Time(time),
            SearchBudget::Steps(steps) => csdfc_offload::Budget::Work(steps),
        }
    }
}

impl From<SearchBudget> for Budget {
    fn from(budget: SearchBudget) -> Self {
        match budget {
            SearchBudget::Time(time) => Budget::Time(time),
            SearchBudget::Steps(steps) => Budget::Evaluations(steps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_read() {
        let milliseconds = |number| Ok(SearchBudget::Time(Duration::from_millis(number)));
        assert_eq!("500".parse(), Ok(SearchBudget::Steps(500)));
        assert_eq!("1.5s".parse(), milliseconds(1500));
        assert_eq!(" 20 ms".parse(), milliseconds(20));
        for text in ["", "s", "ms", "-1", "0", "0s", "0ms", "-1s", "NaNs", "infs", "1e300s", "ten"] {
            assert!(text.parse::<SearchBudget>().is_err(), "{text}");
        }
    }
}
