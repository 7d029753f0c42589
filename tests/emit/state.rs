//! Crates that keep something from frame to frame: they make the bytes of the runner, begin anew, and go on from what they
//! saved.

use std::fmt::Write;

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_network::stream::of_hops;
use csdfc_network::{Network, state};
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_plan::shape::Shape;
use csdfc_runtime::run::{Data, Runner, Value};
use csdfc_tests::crates::{COUNTING, run, write_with_harness};
use csdfc_tests::{generate, plan, random};

/// Frames before a crate saves what it keeps, and after it.
const FRAMES: [usize; 2] = [5, 4];

/// A drawn network that keeps states, by rows.
pub fn application(number: u64) -> Application {
    let (network, pairs) = crate::run::state::network(&mut random(number));
    let network = state::bind(network, &pairs).expect("states");
    generate::of_one(network, StorageModel::Tensors, RowsChoice::All)
}

/// A drawn stream.
fn stream(number: u64) -> Application {
    let network = crate::run::stream::network(&mut random(number));
    let hop = of_hops(network, None, Some(32)).expect("a stream");
    generate::of_one(hop, StorageModel::Tensors, RowsChoice::All)
}

/// The shapes of the inputs that the caller hands over.
fn inputs(network: &Network) -> Vec<&Shape> {
    let is_callers =
        |layer: &&csdfc_network::Layer| layer.is_input() && network.state_of_input(&layer.name).is_none();
    network.layers.iter().filter(is_callers).map(|layer| &layer.shape).collect()
}

/// An input of a frame. All elements are the same, so that their order does not matter.
fn element(frame: usize, input: usize) -> f32 {
    (frame * 7 + input * 3) as f32 / 8.0 - 2.0
}

/// Outputs of frames from the start.
fn expected(application: &Application, plan: &Plan) -> Vec<Vec<u32>> {
    let network = &application.cnns[0].network;
    let parameters = |_: usize, layer: usize, parameter: usize| network.parameter(layer, parameter);
    let mut runner = Runner::poisoned(plan, &parameters).expect("a runner");
    let frame = |frame| {
        let input = |(i, shape): (usize, &&Shape)| Value {
            dims: shape.dims.clone(),
            data: Data::F32(vec![element(frame, i); shape.elements()]),
        };
        let inputs: Vec<Value> = inputs(network).iter().enumerate().map(input).collect();
        let sum = |value: &Value| match &value.data {
            Data::F32(values) => values.iter().fold(0u32, |sum, x| sum.wrapping_add(x.to_bits())),
            _ => panic!("floats"),
        };
        runner.infer(0, &inputs).expect("a frame").iter().map(sum).collect()
    };
    (0..FRAMES.iter().sum()).map(frame).collect()
}

/// A program that runs some frames, saves, runs the others, restores and runs these again, resets and runs all again. It
/// prints a sum of the bits of each output. No frame allocates.
fn program(application: &Application, plan: &Plan) -> String {
    let network = &application.cnns[0].network;
    let (mut fields, mut made, mut rooms) = (String::new(), String::new(), String::new());
    for (i, (name, shape)) in plan.cnns[0].inputs.iter().zip(inputs(network)).enumerate() {
        write!(fields, "{name}: &[{:?} + frame * 0.875; {}], ", element(0, i), shape.elements())
            .expect("text");
    }
    let mut sums = String::new();
    for output in network.callers_outputs() {
        let (name, elements) = (&output.name, output.operand.shape.elements());
        writeln!(rooms, "        let mut {name} = [0.0; {elements}];").expect("text");
        write!(made, "{name}: &mut {name}, ").expect("text");
        write!(sums, "sum(&{name}), ").expect("text");
    }
    let [before, after] = FRAMES;
    format!(
        "use emitted::{{Arena, Inputs, Model, Outputs}};

{COUNTING}

fn sum(values: &[f32]) -> u32 {{
    values.iter().fold(0, |sum, x| sum.wrapping_add(x.to_bits()))
}}

fn run(model: &mut Model<'_>, frames: std::ops::Range<usize>) {{
    for frame in frames {{
        let frame = frame as f32;
{rooms}
        let allocated = counting::allocations();
        model.infer(Inputs {{ {fields}}}, Outputs {{ {made}}});
        assert_eq!(counting::allocations(), allocated);
        println!(\"{{:?}}\", [{sums}]);
    }}
}}

fn main() {{
    let mut arena = Box::new(Arena::new());
    let mut model = Model::new(&mut arena);
    run(&mut model, 0..{before});
    let mut state = [0; emitted::STATE_BYTES];
    model.save(&mut state);
    run(&mut model, {before}..{before} + {after});
    model.restore(&state);
    run(&mut model, {before}..{before} + {after});
    model.reset();
    run(&mut model, 0..{before} + {after});
}}
"
    )
}

#[test]
fn crates_go_on_from_what_they_saved() {
    for application in [application(1), application(2), application(5), stream(3), stream(4)] {
        let plan = plan(&application);
        let folder = tempfile::tempdir().expect("a folder");
        write_with_harness(folder.path(), &application, &plan, &program(&application, &plan));
        let made = run(&folder.path().join("harness"), env!("CARGO"), &["run", "--quiet", "--offline"], &[]);
        let sums = expected(&application, &plan);
        let (before, after) = sums.split_at(FRAMES[0]);
        let all = [before, after, after, &sums].concat();
        let lines: Vec<String> = all.iter().map(|sums| format!("{sums:?}")).collect();
        assert_eq!(made.lines().collect::<Vec<_>>(), lines, "{:?}", plan.cnns[0].states);
    }
}
