//! Plans, executed: the outputs are those of the textbook, and have the same bytes however the network is planned.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod attention;
mod dealt;
mod halves;
mod integers;
mod layouts;
mod lines;
mod narrow;
mod operators;
mod recurrent;
mod rows;
pub mod shared;
pub mod state;
pub mod stream;
mod sums;
mod textbook;
mod tiles;
mod together;
mod weight_tiles;
mod written;

use csdfc_input::app::resolve::{Application, RowsChoice, Streamed};
use csdfc_input::app::spec::{RowsSpec, WeightsPlace};
use csdfc_input::builtin::{Builder, ConvOptions, Padding};
use csdfc_network::{LayerId, Network};
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_planner::open;
use csdfc_runtime::run::{Data, RunError, Runner, Value};
use csdfc_tests::generate;
use csdfc_tests::plan;
use proptest::prelude::*;

/// Frames of each run: enough for rings that run on, and for both halves of double buffers.
const FRAMES: u64 = 3;

/// Inputs of a network for one frame.
fn inputs(network: &Network, frame: u64) -> Vec<Value> {
    let mut values = generate::sixteenths(frame + 2);
    let inputs = network.layers.iter().filter(|layer| layer.is_input());
    inputs
        .map(|layer| {
            let values = values.by_ref().take(layer.shape.elements()).collect();
            Value { dims: layer.shape.dims.clone(), data: Data::F32(values) }
        })
        .collect()
}

fn floats(value: &Value) -> &[f32] {
    match &value.data {
        Data::F32(values) => values,
        other => unreachable!("no test network has {} outputs", other.element()),
    }
}

/// The outputs of every CNN of an application for each frame, CNNs taking turns.
fn run(application: &Application) -> Result<Vec<Vec<Value>>, RunError> {
    run_plan(application, &plan(application))
}

/// As [`run`], by this plan.
fn run_plan(application: &Application, plan: &Plan) -> Result<Vec<Vec<Value>>, RunError> {
    let parameters = |cnn: usize, layer: usize, parameter: usize| {
        application.cnns[cnn].network.parameter(layer, parameter)
    };
    let mut runner = Runner::poisoned(plan, &parameters)?;
    let resident = plan.memory.parameters_resident.unwrap_or(plan.memory.parameters_stored);
    assert_eq!(runner.weight_bytes(), resident);
    let mut outputs = Vec::new();
    for frame in 0..FRAMES {
        for (c, cnn) in application.cnns.iter().enumerate() {
            outputs.push(runner.infer(c, &inputs(&cnn.network, frame))?);
        }
    }
    let read: u64 = plan.cnns.iter().filter_map(|cnn| cnn.bytes_read).sum();
    assert_eq!(runner.bytes_read(), FRAMES * read);
    Ok(outputs)
}

/// The bits of every output.
fn bits(outputs: &[Vec<Value>]) -> Vec<Vec<u32>> {
    outputs.iter().flatten().map(|value| floats(value).iter().map(|x| x.to_bits()).collect()).collect()
}

/// Checks that the outputs of the first frame are those of the textbook.
fn compare(application: &Application, outputs: &[Vec<Value>]) -> Result<(), TestCaseError> {
    for (cnn, outputs) in application.cnns.iter().zip(outputs) {
        let inputs = inputs(&cnn.network, 0);
        let inputs: Vec<Vec<f64>> =
            inputs.iter().map(|input| floats(input).iter().copied().map(f64::from).collect()).collect();
        let tensors = textbook::evaluate(&cnn.network, &inputs);
        for (output, value) in cnn.network.outputs.iter().zip(outputs) {
            let expected = &tensors[output.operand.layer.0];
            prop_assert_eq!(&value.dims, &output.operand.shape.dims);
            let finite = expected.iter().filter(|x| x.is_finite());
            let largest = finite.fold(1e-3f64, |largest, x| largest.max(x.abs()));
            for (i, (&got, want)) in floats(value).iter().zip(expected).enumerate() {
                // A window that lies in the padding alone has no largest element, and no mean.
                let same = f64::from(got) == *want || (got.is_nan() && want.is_nan());
                let near = same || (f64::from(got) - want).abs() <= 1e-4 * largest;
                prop_assert!(near, "{} [{i}]: {got}, expected {want}", output.name);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_computes_the_same(bytes in prop::collection::vec(any::<u8>(), 20..300)) {
        let mut first: Option<Vec<Vec<Value>>> = None;
        for storage in [StorageModel::Tensors, StorageModel::Edges] {
            let drawn = generate::application(&bytes, storage);
            for (threads, rows) in (1..).zip([drawn.rows.clone(), RowsChoice::None, RowsChoice::All]) {
                let application = Application { rows, threads, ..drawn.clone() };
                let outputs = run(&application).unwrap();
                match &first {
                    None => compare(&application, &outputs)?,
                    Some(first) => {
                        prop_assert_eq!(bits(first), bits(&outputs), "{:?} {}", application.rows, storage);
                    }
                }
                if storage == StorageModel::Tensors {
                    let streamed = Application { streamed: Some(Streamed::default()), ..application };
                    prop_assert_eq!(bits(&outputs), bits(&run(&streamed).unwrap()), "{:?}, streamed", streamed.rows);
                }
                first.get_or_insert(outputs);
            }
        }
    }
}

/// An input that is an output as it is, and that no layer reads, is delivered whole, whatever rows are asked for.
#[test]
fn inputs_that_only_go_out() {
    let mut b = Builder::new(1);
    let passed = b.input("passed", [1, 2, 5, 3]).unwrap();
    let read = b.input("read", [1, 2, 5, 3]).unwrap();
    let y = b.conv(&read, 2, [3, 3], ConvOptions { pads: Padding::Same, ..ConvOptions::default() }).unwrap();
    b.output("same", &passed).unwrap();
    b.output("y", &y).unwrap();
    let network = b.finish();
    let given = RowsChoice::Layers([((0, LayerId(0)), 2), ((0, LayerId(1)), 1)].into());
    for rows in [RowsChoice::None, RowsChoice::All, RowsChoice::Default, given] {
        let application = Application::of_network("passed", network.clone(), rows);
        let outputs = run(&application).unwrap();
        for (frame, outputs) in (0..).zip(&outputs) {
            assert_eq!(floats(&outputs[0]), floats(&inputs(&network, frame)[0]), "{:?}", application.rows);
        }
    }
}

/// Built-in networks that run fast, by rows and not, in both storage models, with one, two and three workers.
#[test]
fn small_built_in_networks_run() {
    for name in ["lenet5", "resnet8", "mobilenet_v1_0.25"] {
        let mut first: Option<Vec<Vec<Value>>> = None;
        for storage in [StorageModel::Tensors, StorageModel::Edges] {
            for (threads, rows) in [(1, RowsSpec::None), (2, RowsSpec::None), (3, RowsSpec::All)] {
                let mut opened = open::open(&format!("builtin:{name}")).unwrap();
                (opened.spec.storage, opened.spec.rows, opened.spec.threads) = (Some(storage), rows, threads);
                let outputs = run(&opened.resolve().unwrap()).unwrap();
                assert_eq!(first.get_or_insert_with(|| outputs.clone()), &outputs, "{name}");
                if storage == StorageModel::Tensors {
                    opened.spec.weights = WeightsPlace::Streamed;
                    let streamed = run(&opened.resolve().unwrap()).unwrap();
                    assert_eq!(bits(&streamed), bits(&outputs), "{name}, streamed");
                }
            }
        }
    }
}
