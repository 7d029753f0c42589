//! Attention of several heads, as exporters write it: products, a softmax, and transposes that part the heads and join them.

use csdfc_input::units::MemoryGoal;
use csdfc_network::pass::{Fusion, PartitionLayers, normalise, reorder};
use csdfc_network::{Network, NetworkOutput, Operand};
use csdfc_plan::operator::{Gemm, Operator, Softmax, Transpose};
use csdfc_plan::shape::Shape;
use csdfc_tests::generate::{add, input, of_one};

use super::*;

fn attention(tokens: usize, heads: usize, width: usize) -> Network {
    let mut network = Network::default();
    let units = heads * width;
    let x = input(&mut network, Shape::new([1, tokens, units]));
    let gemm = Operator::Gemm(Gemm { inner: units, units, transposed: false, bias: false, activation: None });
    let layer = |network: &mut Network, operator: &Operator, inputs: &[&Operand]| {
        let shapes: Vec<Shape> = inputs.iter().map(|operand| operand.shape.clone()).collect();
        let shape = csdfc_network::operators::output_shape(operator, &shapes).unwrap();
        add(network, operator.clone(), inputs.iter().map(|&operand| operand.clone()).collect(), shape)
    };
    let [queries, keys, values] = [[0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]].map(|perm| {
        let lines = layer(&mut network, &gemm, &[&x]);
        let seen = Operand { shape: Shape::new([1, tokens, heads, width]), ..lines };
        layer(&mut network, &Operator::Transpose(Transpose::new(perm)), &[&seen])
    });
    let scores = layer(&mut network, &Operator::MatMul, &[&queries, &keys]);
    let softmax = Operator::Softmax(Softmax { axes: vec![3], log: false });
    let shares = layer(&mut network, &softmax, &[&scores]);
    let made = layer(&mut network, &Operator::MatMul, &[&shares, &values]);
    let joined = layer(&mut network, &Operator::Transpose(Transpose::new([0, 2, 1, 3])), &[&made]);
    let joined = Operand { shape: x.shape.clone(), ..joined };
    let y = layer(&mut network, &gemm, &[&joined]);
    network.outputs.push(NetworkOutput::new("y", y));
    let network = normalise(network, Fusion::Full);
    let layers: Vec<LayerId> = network.ids().collect();
    reorder("cnn", network, &[PartitionLayers { layers: &layers, is_scheduled: false }], false)
}

#[test]
fn scores_of_some_queries_at_a_time() {
    let network = attention(40, 3, 8);
    let of_rows = |rows: usize| {
        // The caller hands the input over whole.
        let layers = network.ids().filter(|id| !network.layer(*id).is_input());
        let rows = layers.map(|id| ((0, id), rows.min(network.layer(id).rows()) as u64)).collect();
        of_one(network.clone(), StorageModel::Tensors, RowsChoice::Layers(rows))
    };
    let whole = bits(&run(&of_rows(usize::MAX)).unwrap());
    for rows in [1, 3, 8] {
        assert_eq!(bits(&run(&of_rows(rows)).unwrap()), whole, "{rows} rows");
    }
    // Keys and values, and 4 rows of each tensor beside them.
    let plan = plan(&of_rows(1));
    let tensor = 4 * 40 * 24;
    assert!(plan.memory.buffers <= 2 * tensor + 4 * 4 * (24 * 4 + 2 * 40 * 3), "{}", plan.memory.buffers);
}

/// With 15 % of the buffers that whole scores take, 1 024 tokens of 8 heads are as fast.
#[test]
fn scores_are_never_whole() {
    let network = attention(1024, 8, 64);
    let whole = plan(&of_one(network.clone(), StorageModel::Tensors, RowsChoice::None));
    let mut application = of_one(network, StorageModel::Tensors, RowsChoice::Default);
    let limit = whole.memory.parameters + whole.memory.buffers * 15 / 100;
    application.constraints.memory = Some(MemoryGoal::Bytes(limit));
    let by_rows = plan(&application);
    assert!(by_rows.memory.total <= limit, "{} > {limit}", by_rows.memory.total);
    let [fps, whole] = [&by_rows, &whole].map(|plan| plan.cnns[0].fps);
    assert!(fps * 1.1 >= whole, "{fps} for {whole}");
}
