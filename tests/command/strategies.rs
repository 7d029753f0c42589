//! `csdfc plan --without NAME`.

use csdfc_plan::plan::Plan;
use csdfc_planner::strategy::Strategy;

use super::{folder, run};

/// Whatever is left out, the plan is valid and meets what it says. Nothing that is left out makes it smaller.
#[test]
fn a_plan_without_a_strategy_is_valid_and_no_smaller() {
    let folder = folder();
    let plan = |without: &[&str]| {
        let arguments =
            ["plan", "builtin:resnet8", "--mem", "min", "--weights", "streamed", "--format", "json"];
        let ended = run(folder.path(), &[&arguments[..], without].concat());
        assert_eq!(ended.code, 0, "{without:?}: {}", ended.stderr);
        Plan::from_json(&ended.stdout).unwrap()
    };
    let with_all = plan(&[]).memory.total;
    let totals: Vec<u64> =
        Strategy::all().map(|strategy| plan(&["--without", strategy.name()]).memory.total).collect();
    assert!(totals.iter().all(|total| *total >= with_all), "{totals:?}, not {with_all}");
    let all: Vec<&str> = Strategy::all().map(Strategy::name).collect();
    let without_all = plan(&["--without", &all.join(",")]).memory.total;
    assert!(without_all > with_all, "{without_all}");
}

#[test]
fn a_strategy_that_is_unknown_is_an_error_with_the_known_ones() {
    let ended = run(folder().path(), &["plan", "builtin:lenet5", "--without", "chain"]);
    assert_eq!(ended.code, 1);
    assert!(
        ended.stderr.contains("invalid value 'chain'") && ended.stderr.contains("'chains'"),
        "{}",
        ended.stderr
    );
}
