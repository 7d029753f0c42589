//! A plan that is refused gives way to the next best. Refusals are injected: no plan is known that the checker refuses.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::sync::Mutex;

use csdfc_input::app::{Application, MemoryGoal};
use csdfc_input::device::DeviceProfile;
use csdfc_plan::plan::Plan;
use csdfc_planner::driver::{self, Planned, Refused};
use csdfc_planner::frame::choice::Choice;
use csdfc_planner::search::start::Start;
use csdfc_planner::search::watch::Watch;
use csdfc_tests::application;

/// Plans for least memory, and refuses the first `count` plans. Returns the planned result and all plans that were
/// offered.
fn refuse(application: &Application, count: usize) -> (Planned, Vec<Plan>) {
    refuse_from(&Start::default(), application, count)
}

fn refuse_from(start: &Start, application: &Application, count: usize) -> (Planned, Vec<Plan>) {
    let offered = Mutex::new(Vec::new());
    let validate = |plan: &Plan| {
        let mut offered = offered.lock().unwrap();
        offered.push(plan.clone());
        if offered.len() <= count { Err(Refused(format!("refusal {}", offered.len()))) } else { Ok(()) }
    };
    let device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let paths = application.cnns.iter().map(|cnn| cnn.model.name.clone()).collect();
    let outcome =
        driver::plan_from(start, application, &device, paths, &Watch::unwatched(), &validate).unwrap();
    (outcome, offered.into_inner().unwrap())
}

fn smallest(text: &str) -> Application {
    let mut application = application(text);
    application.constraints.memory = Some(MemoryGoal::Min);
    application
}

#[test]
fn the_next_best_is_taken() {
    let application = smallest(r#"(name: "a", cnns: [(name: "a", model: "builtin:lenet5")])"#);
    let (all, _) = refuse(&application, 0);
    let front = all.plan.pareto;
    assert!(front.len() > 2, "{front:?}");
    for count in 0..3 {
        let (outcome, offered) = refuse(&application, count);
        assert_eq!((outcome.refused, offered.len()), (None, count + 1));
        let last = offered.last().unwrap();
        assert_eq!(outcome.plan.to_json(), last.to_json());
        for pair in offered.windows(2) {
            assert!(pair[0].memory.total <= pair[1].memory.total, "each is the smallest of those left");
            assert_ne!(pair[0].search.choices, pair[1].search.choices, "none is offered again");
        }
        // A refused plan is not on the front either.
        let refused = &offered[..count];
        assert!(
            last.pareto.iter().all(|point| refused.iter().all(|plan| plan.search.choices != point.choices))
        );
    }
}

#[test]
fn what_is_refused_to_the_last_is_said() {
    for text in [
        r#"(name: "a", cnns: [(name: "a", model: "builtin:lenet5")])"#,
        r#"(name: "ab", cnns: [(name: "a", model: "builtin:lenet5"), (name: "b", model: "builtin:resnet8")],
            parallel: [["a", "b"]], search: (method: simple))"#,
    ] {
        let (outcome, offered) = refuse(&smallest(text), usize::MAX);
        assert!(offered.len() > 3, "{}", offered.len());
        assert_eq!(outcome.refused, Some(Refused(format!("refusal {}", offered.len()))));
        assert_eq!(outcome.plan.to_json(), offered.last().unwrap().to_json());
    }
    // One choice of rows leaves nothing to fall back on.
    let given = application(r#"(name: "a", cnns: [(name: "a", model: "builtin:lenet5")], rows: all)"#);
    let (outcome, offered) = refuse(&given, usize::MAX);
    assert_eq!((outcome.refused, offered.len()), (Some(Refused("refusal 1".into())), 1));
}

/// Old plans are left while others are refused. If each two of three CNNs run at the same time, design points are chosen by
/// the bytes that two CNNs take together. So an old plan may be better.
#[test]
fn old_plans_are_left() {
    let application = smallest(
        r#"(name: "abc", search: (method: simple), cnns: [(name: "a", model: "builtin:resnet8"),
                (name: "b", model: "builtin:resnet8"), (name: "c", model: "builtin:lenet5")],
            parallel: [["a", "b"], ["b", "c"], ["a", "c"]])"#,
    );
    // The last layers make a single row, so that all of these take the same memory.
    let prefix = |without: usize| {
        let networks = application.cnns.iter().map(|cnn| &cnn.network);
        networks.map(|network| Some(Choice::prefix(network, network.layers.len() - without))).collect()
    };
    let (found, _) = refuse(&application, 0);
    for old in [vec![prefix(0)], vec![prefix(1), prefix(0)], vec![prefix(2), prefix(1), prefix(0)]] {
        let count = old.len();
        let start = Start::Search(old);
        let (outcome, offered) = refuse_from(&start, &application, usize::MAX);
        assert_eq!(outcome.refused, Some(Refused(format!("refusal {}", offered.len()))));
        let better = offered.iter().take_while(|plan| plan.memory.total < found.plan.memory.total).count();
        assert_eq!(better, count);
    }
}
