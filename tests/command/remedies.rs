//! Where constraints are not met, the command says what it would take: each line is a plan, and its command makes it.

use std::path::PathBuf;

use csdfc_input::builtin;
use csdfc_plan::plan::Plan;
use csdfc_plan::remedy::Remedy;

use super::{Ended, folder, run};

/// Runs `csdfc plan` with these words, and prints the plan as JSON.
fn planned(words: &[&str]) -> (Ended, Plan) {
    made(&[&["plan", "--format", "json"], words].concat())
}

/// Runs a command that prints a plan as JSON.
fn made(words: &[&str]) -> (Ended, Plan) {
    let folder = folder();
    let ended = run(folder.path(), words);
    let plan = Plan::from_json(&ended.stdout).unwrap();
    assert_eq!(ended.code, if plan.constraints.met { 0 } else { 2 }, "{words:?}");
    (ended, plan)
}

/// The commands in the table of an error.
fn commands(error: &str) -> Vec<&str> {
    error.lines().filter_map(|line| line.find("csdfc plan ").map(|at| &line[at..])).collect()
}

#[test]
fn every_command_makes_the_plan_of_its_line() {
    tried(&["builtin:lenet5", "builtin:paper_pair"], &[2, 20, 80]);
    tried(&["builtin:resnet8"], &[5, 40]);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn every_command_makes_the_plan_of_its_line_at_more_budgets() {
    tried(&["builtin:lenet5", "builtin:paper_pair"], &[5, 35, 65, 95]);
    tried(&["builtin:resnet8"], &[15]);
    tried(&["builtin:wake_word"], &[5]);
}

#[test]
#[ignore = "takes half an hour: run it by hand, in release"]
fn every_command_makes_the_plan_of_its_line_of_all_networks() {
    let names = [builtin::NAMES, builtin::VIDEO_NAMES, builtin::STATE_NAMES, builtin::PAPER_NAMES].concat();
    tried_at_twenty_budgets(names.into_iter().map(|name| format!("builtin:{name}")).collect());
}

#[test]
#[ignore = "takes more than an hour: run it by hand, in release"]
fn every_command_makes_the_plan_of_its_line_of_trained_networks() {
    let models = [csdfc_tests::models(), csdfc_tests::tiny_models()].concat();
    if models.is_empty() {
        csdfc_tests::skipped("what trained networks would take: there is no ../shared/models");
    }
    let path = |model: PathBuf| model.canonicalize().unwrap().display().to_string();
    tried_at_twenty_budgets(models.into_iter().map(path).collect());
}

/// Plans networks in 5 % to 100 % of the memory that they take without a limit.
#[expect(clippy::print_stdout, reason = "says how far it is")]
fn tried_at_twenty_budgets(models: Vec<String>) {
    let unlimited: Vec<u64> = models.iter().map(|model| planned(&[model]).1.memory.total).collect();
    // Each network in turn, so that a run that is cut off has seen all of them.
    for percent in (0..20).map(|step| 5 * (1 + step * 7 % 20)) {
        for (model, unlimited) in models.iter().zip(&unlimited) {
            let began = std::time::Instant::now();
            let met = if is_missed(model, unlimited * percent / 100) { "not met" } else { "met" };
            println!("{model}, {percent} %: {met}, {:.0?}", began.elapsed());
        }
    }
}

/// Plans networks in shares of the memory that they take without a limit.
fn tried(models: &[&str], percents: &[u64]) {
    for model in models {
        let unlimited = planned(&[model]).1.memory.total;
        let missed = percents.iter().filter(|percent| is_missed(model, unlimited * **percent / 100)).count();
        assert!(missed > 0, "{model}: no limit of {percents:?} % is missed");
    }
}

/// Whether no plan of a network keeps to this limit. If so, each line of the answer is a plan that its command makes, and there
/// is no smaller one.
fn is_missed(model: &str, limit: u64) -> bool {
    let words = [model, "--mem", &limit.to_string()];
    let (ended, nearest) = planned(&words);
    let remedies = &nearest.constraints.remedies;
    if nearest.constraints.met {
        assert_eq!(*remedies, []);
        return false;
    }
    let printed = commands(&ended.stderr);
    assert!(!remedies.is_empty() && printed.len() == remedies.len(), "{words:?}: {}", ended.stderr);
    for (remedy, command) in remedies.iter().zip(printed) {
        let words: Vec<&str> = command.split(' ').collect();
        let (_, plan) = made(&words[1..]);
        let fps = plan.cnns.iter().map(|cnn| (cnn.name.clone(), cnn.fps)).collect();
        assert!(plan.constraints.met, "{command}");
        assert_eq!((plan.memory.total, &fps), (remedy.total, &remedy.fps), "{command}");
        assert!(!remedy.met || remedy.total <= limit, "{command}");
    }
    the_smallest_is_the_smallest(&words, remedies, &nearest);
    true
}

/// With the precision that was asked for, no other options make a plan below the smallest of the remedies, and the nearest
/// plan takes no more.
fn the_smallest_is_the_smallest(words: &[&str; 3], remedies: &[Remedy], nearest: &Plan) {
    let is_asked = |remedy: &&Remedy| !remedy.options.iter().any(|option| option == "--precision");
    let least = remedies.iter().filter(is_asked).map(|remedy| remedy.total).min().unwrap();
    assert!(nearest.memory.total <= least, "{words:?}: {} {least}", nearest.memory.total);
    let [below, at] = [least - 1, least].map(|bytes| bytes.to_string());
    assert!(planned(&[words[0], "--mem", &at]).1.constraints.met, "{words:?}: {least}");
    let others: [&[&str]; 4] = [
        &[],
        &["--weights", "streamed"],
        &["--weights", "streamed", "--prefer", "memory"],
        &["--method", "simple"],
    ];
    for other in others {
        let (_, plan) = planned(&[&[words[0], "--mem", &below], other].concat());
        assert!(!plan.constraints.met, "{words:?} {other:?}: {} is below {least}", plan.memory.total);
    }
}

#[test]
fn what_lacks_only_speed_is_slower() {
    let words = ["builtin:lenet5", "--mem", "262kB", "--fps", "1000000", "--latency", "1us"];
    let (ended, nearest) = planned(&words);
    let [slower] = nearest.constraints.remedies.as_slice() else {
        panic!("{:?}", nearest.constraints.remedies)
    };
    assert_eq!((slower.means.as_str(), slower.total), ("slower", nearest.memory.total));
    let command: Vec<&str> = commands(&ended.stderr)[0].split(' ').collect();
    let (_, plan) = made(&command[1..]);
    assert!(plan.constraints.met && plan.cnns[0].fps >= slower.fps["lenet5"]);
}

/// What is only a matter of another option is said to meet everything, and does.
#[test]
fn another_option_may_do() {
    for (words, means) in [
        (&["builtin:resnet8", "--fps", "1000"][..], "4 workers"),
        (&["builtin:resnet8", "--mem", "300kB", "--weights", "resident"], "weights streamed"),
    ] {
        let (ended, nearest) = planned(words);
        let remedies = &nearest.constraints.remedies;
        let at = remedies.iter().position(|remedy| remedy.means == means).unwrap();
        let command: Vec<&str> = commands(&ended.stderr)[at].split(' ').collect();
        let (_, plan) = made(&command[1..]);
        assert!(remedies[at].met && plan.constraints.met, "{words:?}: {}", ended.stderr);
        assert_eq!(plan.memory.total, remedies[at].total, "{words:?}");
    }
}

#[test]
fn the_smallest_plan_says_what_it_leaves_out() {
    let folder = folder();
    let text = |words: &[&str]| {
        run(folder.path(), &[&["plan", "builtin:resnet8", "--mem", "min"], words].concat()).stdout
    };
    let left_out = "all weights are in memory: --weights streamed takes less of it, and more time";
    assert!(text(&[]).contains(left_out));
    assert!(!text(&["--weights", "resident"]).contains(left_out));
    assert!(!text(&["--weights", "streamed"]).contains(left_out));
}
