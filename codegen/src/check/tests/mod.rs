//! Right plans are accepted, wrong ones refused for the right reason, and nothing makes the checker panic or hang.

mod hostile;
pub(crate) mod plans;
mod refused;

use super::check;

#[test]
fn right_plans_are_accepted() {
    for (name, plan) in plans::all() {
        let report = check(&plan).unwrap_or_else(|violations| panic!("{name}: {violations:#?}"));
        assert!(report.firings > 0 && report.rows_read > 0 && report.rows_written > 0, "{name}");
        assert_eq!(report.peak_bytes, plan.memory.bound, "{name}");
    }
}

#[test]
fn everything_is_replayed() {
    let report = check(&plans::pair()).unwrap();
    // Two frames of 3 · 32 firings, a row each; a window holds 3, 4, 5, …, 5, 4, 3 rows.
    assert_eq!((report.replays, report.firings, report.rows_written), (1, 192, 192));
    assert_eq!(report.rows_read, 2 * 2 * (3 + 4 + 28 * 5 + 4 + 3));
    let report = check(&plans::pipelined()).unwrap();
    assert_eq!((report.replays, report.firings), (6, 6 * 3 * 96));
}
