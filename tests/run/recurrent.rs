//! Recurrent networks by rows of time.

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_network::Network;
use csdfc_network::pass::{Fusion, normalise};
use csdfc_network::stream::of_hops;
use csdfc_plan::check::{Violation, check};
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::{Layer, Ring, StorageModel};
use csdfc_runtime::run::{Data, Runner, Value};
use csdfc_tests::{generate, plan};

use super::floats;
use super::operators::{Model, inputs, int, ints, outputs, text, weights};

/// A convolution over 300 rows of time, an LSTM of six channels in both directions or forward, and a product for each row.
fn network(direction: &str) -> Network {
    let directions = if direction == "bidirectional" { 2 } else { 1 };
    let channels = 6 * directions;
    Model::of(17, &[1, 1, 300, 5], &["y"])
        .floats("filters", &[4, 1, 3, 3], &weights(36, 2, 5))
        .ints("rows", &[3], &[300, 1, 20])
        .floats("w", &[directions, 24, 20], &weights(480 * directions as usize, 0, 7))
        .floats("r", &[directions, 24, 6], &weights(144 * directions as usize, 1, 5))
        .ints("states", &[3], &[300, 1, channels])
        .floats("dense", &[channels, 3], &weights(3 * channels as usize, 3, 5))
        .node("Conv", &["x", "filters"], &["c"], vec![ints("pads", &[1, 1, 1, 1])])
        .node("Transpose", &["c"], &["t"], vec![ints("perm", &[2, 0, 1, 3])])
        .node("Reshape", &["t", "rows"], &["f"], vec![])
        .node("LSTM", &["f", "w", "r"], &["s"], vec![int("hidden_size", 6), text("direction", direction)])
        .node("Transpose", &["s"], &["u"], vec![ints("perm", &[0, 2, 1, 3])])
        .node("Reshape", &["u", "states"], &["v"], vec![])
        .node("MatMul", &["v", "dense"], &["y"], vec![])
        .network()
}

#[test]
fn rows_of_time_are_the_same_by_rows_and_by_parts() {
    for direction in ["forward", "reverse", "bidirectional"] {
        let network = network(direction);
        let recurrent =
            network.layers.iter().filter(|layer| matches!(layer.operator, Operator::Recurrent(_))).count();
        assert_eq!(recurrent, if direction == "bidirectional" { 2 } else { 1 });
        // No layer only moves elements, except those that turn time round.
        let moves = |layer: &&csdfc_network::Layer| matches!(layer.operator, Operator::Transpose(_));
        assert_eq!(network.layers.iter().filter(moves).count(), 0, "{direction}");
        let x = Value { dims: vec![1, 1, 300, 5], data: Data::F32(inputs(1500)) };
        let whole = outputs(network.clone(), RowsChoice::None, &x);
        for rows in [RowsChoice::All, RowsChoice::Default] {
            let made = outputs(network.clone(), rows, &x);
            let bits = |value: &Value| floats(value).iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&made[0]), bits(&whole[0]), "{direction}");
        }
    }
}

/// From the model of a frame, hops of one row: the state goes on from each to the next.
#[test]
fn hops_go_on_with_the_state() {
    let network = network("forward");
    let x = Value { dims: vec![1, 1, 300, 5], data: Data::F32(inputs(1500)) };
    let whole = outputs(network.clone(), RowsChoice::None, &x);
    let hop = of_hops(normalise(network, Fusion::Full), None, None).unwrap();
    let application = generate::of_one(hop.clone(), StorageModel::Tensors, RowsChoice::Default);
    let plan = plan(&application);
    let parameters = |_: usize, layer: usize, parameter: usize| hop.parameter(layer, parameter);
    let mut runner = Runner::poisoned(&plan, &parameters).unwrap();
    let mut made = Vec::new();
    for row in inputs(1500).chunks(5) {
        let row = Value { dims: vec![1, 1, 1, 5], data: Data::F32(row.to_vec()) };
        made.extend(floats(&runner.infer(0, &[row]).unwrap()[0]).iter().map(|x| x.to_bits()));
    }
    // The convolution's last window reaches below the frame.
    let expected: Vec<u32> = floats(&whole[0]).iter().map(|x| x.to_bits()).collect();
    assert_eq!(made.len(), 299 * 3);
    assert_eq!(made, expected[..299 * 3]);
}

/// Between two hops, nothing else may lie where a state does, even while no layer uses it.
#[test]
fn a_state_has_its_bytes_to_itself() {
    let hop = of_hops(normalise(network("forward"), Fusion::Full), None, None).unwrap();
    let mut plan = plan(&generate::of_one(hop, StorageModel::Tensors, RowsChoice::All));
    let has_state = |layer: &&Layer| layer.operator.has_state();
    let state = plan.cnns[0].layers.iter().find(has_state).unwrap().workspace;
    for t in 0..plan.tensors.len() {
        let Some(ring) = plan.tensors[t].ring else { continue };
        plan.tensors[t].ring = Some(Ring { offset: state.offset, ..ring });
        let violations = check(&plan).unwrap_err();
        assert!(violations.iter().any(|violation| matches!(violation, Violation::Overlap { .. })), "{t}");
        plan.tensors[t].ring = Some(ring);
    }
    check(&plan).unwrap();
}

/// Forward, one row of each tensor is enough, or three for the convolution; the state is 24 + 2 · 6 floats.
#[test]
fn a_row_of_products_is_in_memory_at_a_time() {
    let network = normalise(network("forward"), Fusion::Full);
    let plan = plan(&Application::of_network("a", network, RowsChoice::All));
    let row = |bytes: u64| bytes * 4;
    assert!(plan.memory.arena <= row(3 * 5 + 20 + 24 + 6 + 36), "{}", plan.memory.arena);
}
