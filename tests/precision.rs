//! The choice of precisions: csdfc lowers as few layers as the constraints need, and the error is within the allowance.
//! The tests compute the error once more.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

use std::path::Path;

use csdfc_input::app::MemoryGoal;
use csdfc_input::app::resolve::Application;
use csdfc_input::device::DeviceProfile;
use csdfc_network::Network;
use csdfc_plan::plan::Plan;
use csdfc_planner::driver;
use csdfc_planner::open::Opened;
use csdfc_planner::saved::reload;
use csdfc_planner::search::start::Start;
use csdfc_planner::search::watch::Watch;
use csdfc_precision::error::Error;
use csdfc_precision::{self as precision, Calibration, Chosen};
use csdfc_runtime::run::{Data, Runner, Value};
use csdfc_tests::{application, opened, outcome, random};
use rand::RngExt;

/// Frames of floats.
fn frames(network: &Network, count: usize) -> Vec<Vec<Value>> {
    let mut random = random(17);
    let inputs = network.layers.iter().filter(|layer| layer.is_input());
    let mut value = |dims: &Vec<usize>| {
        let values = (0..dims.iter().product()).map(|_| random.random_range(-1.0f32..1.0)).collect();
        Value { dims: dims.clone(), data: Data::F32(values) }
    };
    let inputs: Vec<Vec<usize>> = inputs.map(|layer| layer.shape.dims.clone()).collect();
    (0..count).map(|_| inputs.iter().map(&mut value).collect()).collect()
}

/// The choice, on the frames that this function makes.
fn choose(app: &Opened, frames: &dyn Fn(&Network) -> Vec<Vec<Value>>) -> Result<Chosen, Error> {
    let frames = |_: usize, network: &Network| Ok(Calibration { frames: frames(network), is_random: true });
    let plan = |application: &Application, device: &DeviceProfile| {
        let paths = application.cnns.iter().map(|cnn| cnn.model.name.clone()).collect();
        driver::plan_from(
            &Start::default(),
            application,
            device,
            paths,
            &Watch::unwatched(),
            &driver::validate,
        )
    };
    precision::plan(app, &frames, &plan, &Watch::unwatched(), &|_| ())
}

fn chosen(app: &Opened) -> Chosen {
    choose(app, &|network| frames(network, 2)).unwrap()
}

/// An application of ResNet-8 whose precisions are open, within so many bytes.
fn resnet8(max_error: f64, memory: MemoryGoal) -> Opened {
    let mut app = opened(&format!(
        "(cnns: [(model: \"builtin:resnet8\", precision: auto, accuracy: (max_error: {max_error:?}))], \
          search: (method: simple), weights: resident)"
    ));
    app.spec.constraints.memory = Some(memory);
    app
}

/// The smallest plan of ResNet-8 with 32-bit floats.
fn of_floats() -> Plan {
    let app = "(cnns: [(model: \"builtin:resnet8\")], search: (method: simple), constraints: (memory: min))";
    outcome(&application(app)).plan
}

/// The outputs of all frames, by the plan alone.
fn run(plan: &Plan, frames: &[Vec<Value>]) -> Vec<Vec<f32>> {
    let networks = reload::reload(plan, Path::new("")).unwrap();
    let parameters = |cnn, layer, parameter| networks.parameter(cnn, layer, parameter);
    let mut runner = Runner::poisoned(plan, &parameters).unwrap();
    let mut outputs = Vec::new();
    for frame in frames {
        for output in runner.infer(0, frame).unwrap() {
            let Data::F32(values) = output.data else { panic!("not floats") };
            outputs.push(values);
        }
    }
    outputs
}

/// The largest relative error of any output.
fn error(plan: &Plan, exact: &Plan, frames: &[Vec<Value>]) -> f64 {
    let (exact, got) = (run(exact, frames), run(plan, frames));
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    let of = |(exact, got): (&Vec<f32>, &Vec<f32>)| {
        let change = norm(&mut exact.iter().zip(got).map(|(a, b)| f64::from(*a) - f64::from(*b)));
        change / norm(&mut exact.iter().map(|value| f64::from(*value)))
    };
    exact.iter().zip(&got).map(of).fold(0.0, f64::max)
}

/// Layers of a plan that read or make 16-bit floats, without conversions.
fn lowered(plan: &Plan) -> usize {
    let layers = plan.cnns.iter().flat_map(|cnn| &cnn.layers);
    layers.filter(|layer| layer.primitive.contains("-half-") || layer.primitive.contains("-mixed")).count()
}

#[test]
fn floats_of_32_bits_stay_where_they_meet_the_constraints() {
    let plan = of_floats();
    let Chosen { planned, accuracies, .. } = chosen(&resnet8(1e-1, MemoryGoal::Bytes(plan.memory.total)));
    assert!(planned.plan.constraints.met);
    assert_eq!((lowered(&planned.plan), accuracies[0].error), (0, 0.0));
    assert_eq!(accuracies[0].layers.keys().collect::<Vec<_>>(), [&"fp32"]);
}

#[test]
fn as_few_layers_as_are_needed_and_the_error_is_the_plans() {
    let exact = of_floats();
    let mut before = 0;
    for percent in [90, 75, 45] {
        let limit = exact.memory.total / 100 * percent;
        let Chosen { application, planned, accuracies, .. } = chosen(&resnet8(0.5, MemoryGoal::Bytes(limit)));
        let plan = planned.plan;
        assert!(plan.constraints.met && plan.memory.total <= limit, "{percent}");
        csdfc_plan::check(&plan).unwrap();
        let [accuracy] = &accuracies[..] else { panic!("{accuracies:?}") };
        let stated = error(&plan, &exact, &frames(&application.cnns[0].network, 2));
        assert!((stated - accuracy.error).abs() <= 1e-9 * stated, "{percent}: {stated} {accuracy:?}");
        assert!(0.0 < stated && accuracy.is_within() && accuracy.frames == 2, "{percent}: {accuracy:?}");
        // A tighter limit lowers more layers. Some stay at 32 bits, and in the end some have weights of integers.
        let counted: usize =
            accuracy.layers.iter().filter(|(of, _)| **of != "fp32").map(|(_, count)| count).sum();
        assert_eq!(counted, lowered(&plan), "{percent}");
        assert!(before <= lowered(&plan), "{percent}: {accuracy:?}");
        let (is_tight, has) = (percent < 50, |of: &str| accuracy.layers.contains_key(of));
        assert_eq!((has("fp32"), has("mixed")), (!is_tight, is_tight), "{percent}: {accuracy:?}");
        before = lowered(&plan);
        let again = chosen(&resnet8(0.5, MemoryGoal::Bytes(limit))).planned.plan;
        assert_eq!(plan.to_json(), again.to_json(), "{percent}");
    }
}

#[test]
fn without_an_allowance_nothing_changes_and_what_would_do_does() {
    let limit = MemoryGoal::Bytes(of_floats().memory.total / 4 * 3);
    let Chosen { planned, accuracies, sufficient, .. } = chosen(&resnet8(0.0, limit));
    assert!(!planned.plan.constraints.met && planned.shortfall.is_some());
    assert_eq!((lowered(&planned.plan), accuracies[0].error), (0, 0.0));
    let sufficient = sufficient.unwrap().remove(0);
    assert!(0.0 < sufficient.error && sufficient.is_within(), "{sufficient:?}");
    let met = chosen(&resnet8(sufficient.allowance, limit));
    assert!(
        met.planned.plan.constraints.met && met.accuracies[0].is_within(),
        "{sufficient:?} {:?}",
        met.accuracies
    );
    // No precision is low enough.
    let Chosen { planned, sufficient, .. } = chosen(&resnet8(1.0, MemoryGoal::Bytes(1000)));
    assert!(!planned.plan.constraints.met && sufficient.is_none());
}

#[test]
fn a_larger_allowance_never_makes_the_smallest_plan_larger() {
    let mut before = u64::MAX;
    let mut totals = Vec::new();
    for max_error in [0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 1e-1, 1.0] {
        let Chosen { planned, accuracies, .. } = chosen(&resnet8(max_error, MemoryGoal::Min));
        let total = planned.plan.memory.total;
        assert!(planned.plan.constraints.met && accuracies[0].is_within(), "{max_error}: {accuracies:?}");
        assert!(total <= before, "{max_error}: {total} > {before}");
        before = total;
        totals.push(total);
    }
    assert!(totals[7] < totals[0] / 3, "{totals:?}");
    totals.dedup();
    assert!(totals.len() > 3, "{totals:?}");
}

#[test]
fn each_cnn_has_an_allowance_of_its_own() {
    let two = |cnn: &str| {
        let mut app = opened(&format!(
            "(cnns: [(name: \"a\", model: \"builtin:resnet8\", precision: auto, accuracy: (max_error: 1)), \
                     (name: \"b\", model: \"builtin:resnet8\", {cnn})], search: (method: simple))"
        ));
        app.spec.constraints.memory = Some(MemoryGoal::Min);
        chosen(&app)
    };
    let of = |chosen: &Chosen, cnn: usize| {
        let cnns = vec![chosen.planned.plan.cnns[cnn].clone()];
        lowered(&Plan { cnns, ..chosen.planned.plan.clone() })
    };
    // One CNN's precisions are stated, one may have no error, and one has a layer with a stated precision.
    let closed = two("");
    assert!(of(&closed, 0) > 0 && of(&closed, 1) == 0 && closed.accuracies.len() == 1);
    let nothing = two("precision: auto, accuracy: (max_error: 0)");
    assert!(of(&nothing, 0) > 0 && of(&nothing, 1) == 0);
    assert_eq!(nothing.accuracies.iter().map(|of| of.cnn.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(nothing.accuracies[1].error, 0.0);
    let stated = two("precision: auto, precisions: {\"stack1_conv1\": fp32}, accuracy: (max_error: 1)");
    let layers = |cnn: usize| {
        let layers = &stated.planned.plan.cnns[cnn].layers;
        layers.iter().find(|layer| layer.name == "stack1_conv1").unwrap().primitive.clone()
    };
    assert!(layers(0).contains("-mixed") && !layers(1).contains("-mixed") && !layers(1).contains("-half"));
}

#[test]
fn what_is_stated_counts_and_must_be_within_the_allowance() {
    let app = |max_error: f64| {
        opened(&format!(
            "(cnns: [(model: \"builtin:resnet8\", precisions: {{\"stack1_conv1\": mixed, \"stack1_conv2\": auto}}, \
              accuracy: (max_error: {max_error:?}))])"
        ))
    };
    let met = chosen(&app(1.0));
    assert_eq!(lowered(&met.planned.plan), 1);
    assert!(met.accuracies[0].error > 0.0);
    let refused = choose(&app(1e-9), &|network| frames(network, 1)).unwrap_err().to_string();
    assert!(refused.contains("err by") && refused.contains("1.0e-9 allowed"), "{refused}");
}

#[test]
fn frames_that_do_not_fit_are_refused() {
    let app = resnet8(1e-2, MemoryGoal::Min);
    let refused = |change: &dyn Fn(&mut Vec<Vec<Value>>)| {
        let made = |network: &Network| {
            let mut frames = frames(network, 2);
            change(&mut frames);
            frames
        };
        choose(&app, &made).unwrap_err().to_string()
    };
    assert!(refused(&Vec::clear).contains("no frame"));
    assert!(refused(&|frames| frames[1].clear()).contains("frame 2 has 0 tensors"));
    assert!(refused(&|frames| frames[1][0].dims[2] = 31).contains("frame 2: input"));
    assert!(
        refused(&|frames| frames[1][0].data = Data::U8(vec![0; 3 * 32 * 32]))
            .contains("takes float32, not uint8")
    );
    let odd = refused(&|frames| {
        let Data::F32(values) = &mut frames[0][0].data else { panic!("not floats") };
        values[5] = f32::NAN;
    });
    assert!(odd.contains("frame 1") && odd.contains("NaN"), "{odd}");
    let huge = refused(&|frames| {
        let Data::F32(values) = &mut frames[0][0].data else { panic!("not floats") };
        values.fill(f32::MAX);
    });
    assert!(huge.contains("output") && huge.contains("frame 1"), "{huge}");
}

/// Bytes of a camera are measured as such.
#[test]
fn frames_of_a_camera() {
    let mut app = opened(
        "(cnns: [(model: \"builtin:resnet8\", precision: auto, inputs: {\"input\": (type: u8, scale: 0.01)}, \
          accuracy: (max_error: 1))], search: (method: simple))",
    );
    app.spec.constraints.memory = Some(MemoryGoal::Min);
    let bytes = |_: &Network| {
        let data = Data::U8((0..3 * 32 * 32).map(|at| (at % 251) as u8).collect());
        vec![vec![Value { dims: vec![32, 32, 3], data }]]
    };
    let chosen = choose(&app, &bytes).unwrap();
    assert!(lowered(&chosen.planned.plan) > 0 && chosen.accuracies[0].error > 0.0);
}
