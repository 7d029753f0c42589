//! Crates of streams: hop by hop, they make the bytes of the runner, also long after the start, and after a reset.

use std::fmt::Write;

use csdfc_input::app::resolve::RowsChoice;
use csdfc_network::Network;
use csdfc_network::stream::of_hops;
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_runtime::run::{Data, Runner, Value};
use csdfc_tests::crates::{run, write_with_harness};
use csdfc_tests::{generate, plan, random};

use crate::run::stream::network;

/// Streams that are emitted.
const STREAMS: usize = 6;

/// Hops of each: rings come back to their first slots several times.
const HOPS: usize = 60;

/// An image as rows of pixels of channels.
fn by_rows(value: &Value) -> Vec<f32> {
    let [_, channels, rows, columns] = value.dims[..] else { panic!("an image") };
    let Data::F32(values) = &value.data else { panic!("floats") };
    let pixel = |at: usize| (0..channels).map(move |c| values[c * rows * columns + at]);
    (0..rows * columns).flat_map(pixel).collect()
}

/// A stream of one output, with rows that stay from hop to hop.
fn stream(number: u64, times: usize) -> Option<Network> {
    let network = network(&mut random(number));
    let smallest = of_hops(network.clone(), None, Some(32)).ok()?.layers[0].rows();
    let hop = of_hops(network, Some(times * smallest), Some(32)).ok()?;
    (hop.outputs.len() == 1).then_some(hop)
}

/// Input of a hop.
fn input(network: &Network, hop: usize) -> Value {
    let shape = &network.layers[0].shape;
    let values = generate::sixteenths(hop as u64).take(shape.elements());
    Value { dims: shape.dims.clone(), data: Data::F32(values.collect()) }
}

/// Outputs of hops from the start of a stream.
fn expected(network: &Network, plan: &Plan) -> Vec<Vec<f32>> {
    let parameters = |_: usize, layer: usize, parameter: usize| network.parameter(layer, parameter);
    let mut runner = Runner::poisoned(plan, &parameters).expect("a runner");
    let hop = |hop| by_rows(&runner.infer(0, &[input(network, hop)]).expect("a hop")[0]);
    (0..HOPS).map(hop).collect()
}

/// A program that runs all hops of `signal.bin`, then resets the model and runs the first again. It prints what is
/// written of each output; NaN stands for rows that are not.
fn program(network: &Network) -> String {
    let (input, output) = (&network.layers[0], &network.outputs[0]);
    let [taken, made] = [input.shape.elements(), network.layer(output.operand.layer).shape.elements()];
    let mut text = String::from("use emitted::{Arena, Inputs, Model, Outputs};\n\nfn main() {\n");
    let body = format!(
        "    let bytes = std::fs::read(\"signal.bin\").unwrap();
    let signal: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|x| f32::from_le_bytes(*x)).collect();
    let mut arena = Box::new(Arena::new());
    let mut model = Model::new(&mut arena);
    let hops = signal.as_chunks::<{taken}>().0;
    for (number, input) in hops.iter().chain(&hops[..1]).enumerate() {{
        if number == hops.len() {{
            model.reset();
        }}
        let mut output = [f32::NAN; {made}];
        model.infer(Inputs {{ {}: input }}, Outputs {{ {}: &mut output }});
        let bits: Vec<String> = output.iter().filter(|x| !x.is_nan()).map(|x| x.to_bits().to_string()).collect();
        println!(\"{{}}\", bits.join(\" \"));
    }}
}}
",
        input.name, output.name
    );
    text.push_str(&body);
    text
}

#[test]
fn crates_make_the_bytes_of_run() {
    let mut found = 0;
    for number in 0.. {
        let Some(network) = stream(number, 1 + found % 3) else { continue };
        let choice = [RowsChoice::All, RowsChoice::None, RowsChoice::Default][found % 3].clone();
        let application = generate::of_one(network.clone(), StorageModel::Tensors, choice);
        let plan = plan(&application);
        if plan.tensors.iter().all(|tensor| tensor.history() == 0) {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        write_with_harness(folder.path(), &application, &plan, &program(&network));
        let signal = (0..HOPS).flat_map(|hop| by_rows(&input(&network, hop)));
        let bytes: Vec<u8> = signal.flat_map(f32::to_le_bytes).collect();
        std::fs::write(folder.path().join("harness/signal.bin"), bytes).expect("a signal");
        let made = run(&folder.path().join("harness"), env!("CARGO"), &["run", "--quiet", "--offline"], &[]);
        let expected = expected(&network, &plan);
        let mut lines = String::new();
        for hop in expected.iter().chain(&expected[..1]) {
            let bits: Vec<String> = hop.iter().map(|x| x.to_bits().to_string()).collect();
            writeln!(lines, "{}", bits.join(" ")).expect("a line");
        }
        assert_eq!(made, lines, "network {number}");
        found += 1;
        if found == STREAMS {
            break;
        }
    }
}
