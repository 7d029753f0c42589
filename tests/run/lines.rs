//! Tensors of rank 2 and 3 by rows: by parts they have the same bytes as whole, in less memory. Plans that are wrong in
//! some part are refused.

use csdfc_input::app::partition::Partition;
use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_network::{LayerId, Network, NetworkOutput, Operand};
use csdfc_plan::check;
use csdfc_plan::operator::{
    Binary, BinaryFunction, Concat, ConstantOperand, ElementWise, Function, Gemm, InstanceNorm, Operator,
    Pad, PadMode, Reduce, ReduceFunction, Slice, Softmax,
};
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_plan::shape::Shape;
use csdfc_tests::{generate, plan};

use super::{bits, compare, run};

/// A network under construction.
struct Made(Network);

impl Made {
    fn input(&mut self, dims: &[usize]) -> Operand {
        generate::input(&mut self.0, Shape::new(dims))
    }

    fn layer(&mut self, operator: Operator, inputs: &[&Operand]) -> Operand {
        let inputs = inputs.iter().map(|operand| (*operand).clone()).collect();
        generate::push(&mut self.0, operator, inputs).unwrap()
    }

    /// The network of which these are the outputs.
    fn out(mut self, outputs: &[&Operand]) -> Network {
        let output =
            |(i, operand): (usize, &&Operand)| NetworkOutput::new(format!("out{i}"), (*operand).clone());
        self.0.outputs = outputs.iter().enumerate().map(output).collect();
        self.0
    }
}

fn seen(operand: &Operand, dims: &[usize]) -> Operand {
    Operand { shape: Shape::new(dims), ..operand.clone() }
}

fn binary(function: BinaryFunction) -> Operator {
    Operator::Binary(Binary { function, constant: None, activation: None })
}

fn gemm(inner: usize, units: usize) -> Operator {
    Operator::Gemm(Gemm { inner, units, transposed: true, bias: true, activation: None })
}

fn mean(axis: usize) -> Operator {
    Operator::Reduce(Reduce { function: ReduceFunction::Mean, axes: vec![axis], keep_dims: true })
}

fn softmax(axis: usize) -> Operator {
    Operator::Softmax(Softmax { axes: vec![axis], log: false })
}

fn relu() -> Operator {
    Operator::ElementWise(ElementWise { function: Function::Relu })
}

/// A block of a transformer's kind: a mean over the last dimension, a product with it, a matrix product by another tensor
/// and one by constants, a bias, a softmax over the last dimension.
fn block(dims: &[usize]) -> Network {
    let [.., rows, channels] = *dims else { unreachable!("two dimensions or more") };
    let last = dims.len() - 1;
    let mut made = Made(Network::default());
    let (x, weights) = (made.input(dims), made.input(&[channels, 6]));
    let mean = made.layer(mean(last), &[&x]);
    let scaled = made.layer(binary(BinaryFunction::Mul), &[&x, &mean]);
    let normed = made.layer(binary(BinaryFunction::Add), &[&scaled, &x]);
    let product = made.layer(Operator::MatMul, &[&normed, &weights]);
    let constant = ConstantOperand { dims: vec![6], left: false, quantization: None };
    let bias =
        Binary { function: BinaryFunction::Add, constant: Some(constant), activation: Some(Function::Relu) };
    let biased = made.layer(Operator::Binary(bias), &[&product]);
    let logits = made.layer(gemm(6, 50), &[&biased]);
    let probabilities = made.layer(softmax(last), &[&logits]);
    let largest = made.layer(gemm(50, 2), &[&probabilities]);
    assert_eq!(made.0.layer(probabilities.layer).shape.rows(), rows);
    made.out(&[&largest])
}

/// Rows moved, put together and cut, and channels that are rows.
fn moved() -> Network {
    let mut made = Made(Network::default());
    let x = made.input(&[1, 12, 5]);
    let clipped = made.layer(relu(), &[&x]);
    let matrix = seen(&clipped, &[12, 5]);
    let slice = Slice { starts: vec![10, 0], steps: vec![-2, 1], lengths: vec![5, 5] };
    let sliced = made.layer(Operator::Slice(slice), &[&matrix]);
    let pad = Pad { mode: PadMode::Edge, before: vec![0, 2, 0], after: vec![0, -1, 1] };
    let padded = made.layer(Operator::Pad(pad), &[&seen(&sliced, &[1, 5, 5])]);
    let norm = made.layer(Operator::InstanceNorm(InstanceNorm { channels: 6, epsilon: 0.1 }), &[&padded]);
    let wider = made.layer(gemm(5, 6), &[&clipped]);
    let both = made.layer(Operator::Concat(Concat { axis: 1 }), &[&norm, &wider]);
    // A view with another number of rows needs the whole tensor. An image of one channel is seen by rows.
    let other = made.layer(relu(), &[&seen(&both, &[1, 9, 12])]);
    let image = made.layer(softmax(3), &[&seen(&both, &[1, 1, 18, 6])]);
    made.out(&[&other, &image])
}

/// The application of a network in this many partitions, at the same time or one after another.
fn application(network: &Network, partitions: usize, together: bool, storage: StorageModel) -> Application {
    let ids: Vec<LayerId> = network.ids().collect();
    let partitions: Vec<Partition> = ids
        .chunks(ids.len().div_ceil(partitions))
        .enumerate()
        .map(|(i, layers)| Partition {
            name: format!("p{i}"),
            layers: layers.to_vec(),
            processor: "cpu".into(),
            schedule: None,
        })
        .collect();
    let names: Vec<String> = partitions.iter().map(|partition| partition.name.clone()).collect();
    let parallel = if together { vec![names] } else { names.into_iter().map(|name| vec![name]).collect() };
    let cnn = generate::of_network("lines", network.clone(), partitions);
    generate::of_cnns(vec![cnn], parallel, storage, RowsChoice::All)
}

#[test]
fn by_parts_as_whole() {
    for network in [block(&[1, 12, 8]), block(&[12, 8]), moved()] {
        let mut first = None;
        for storage in [StorageModel::Tensors, StorageModel::Edges] {
            for (partitions, together) in [(1, false), (2, false), (3, true)] {
                let all = application(&network, partitions, together, storage);
                for rows in [1, 5, 12].map(|rows| {
                    let of_layer = |id: LayerId| (network.layer(id).rows() as u64).min(rows);
                    RowsChoice::Layers(network.ids().map(|id| ((0, id), of_layer(id))).collect())
                }) {
                    let application = Application { rows, threads: 1 + partitions, ..all.clone() };
                    let outputs = run(&application).unwrap();
                    match &first {
                        None => {
                            compare(&application, &outputs).unwrap();
                            first = Some(outputs);
                        }
                        Some(first) => assert_eq!(bits(first), bits(&outputs), "{partitions} {storage}"),
                    }
                }
            }
        }
    }
}

#[test]
fn logits_take_a_row() {
    let rows = |rows: RowsChoice| {
        let application = application(&block(&[1, 40, 8]), 1, false, StorageModel::Tensors);
        plan(&Application { rows, ..application }).memory.buffers
    };
    let (whole, by_parts) = (rows(RowsChoice::None), rows(RowsChoice::All));
    // Whole, the logits and also their softmax: nobody asks for less, and a row at a time takes longer. By parts, a few
    // rows of each tensor.
    assert!(whole >= 2 * 40 * 50 * 4 && by_parts < 40 * 50 * 4 / 4, "{whole} {by_parts}");
}

/// Dimensions are broadcast from the last. So an operand with fewer dimensions has its rows in another dimension.
#[test]
fn operands_of_another_rank() {
    // All dimensions are four, so that code which mistakes one dimension for another is not caught by sizes.
    let operands: [(&[usize], &[usize]); 6] = [
        (&[1, 4, 4], &[4, 4]),
        (&[4, 4], &[1, 4, 4]),
        (&[1, 4, 4, 4], &[1, 4, 4]),
        (&[1, 4, 4, 4], &[4, 4]),
        (&[1, 4, 4, 4], &[4, 1]),
        (&[2, 4, 4], &[4, 4]),
    ];
    for (left, right) in operands {
        for operator in [binary(BinaryFunction::Mul), Operator::MatMul] {
            let mut made = Made(Network::default());
            let (a, b) = (made.input(left), made.input(right));
            let (a, b) = (made.layer(relu(), &[&a]), made.layer(relu(), &[&b]));
            let result = made.layer(operator, &[&a, &b]);
            let out = made.layer(relu(), &[&result]);
            let network = made.out(&[&out]);
            let mut first = None;
            for rows in [RowsChoice::None, RowsChoice::All] {
                let of = application(&network, 1, false, StorageModel::Tensors);
                let application = Application { rows, ..of };
                let outputs = run(&application).unwrap();
                compare(&application, &outputs).unwrap();
                let first = first.get_or_insert_with(|| outputs.clone());
                assert_eq!(bits(first), bits(&outputs), "{left:?} {right:?}");
            }
        }
    }
}

/// A list of boxes is one row: a plan with many rows would be useless.
#[test]
fn a_long_list_is_one_row() {
    let mut network = Network::default();
    let shape = Shape::new([100_000, 4]);
    let x = generate::input(&mut network, shape.clone());
    let operand = generate::add(&mut network, relu(), vec![x], shape);
    network.outputs = vec![NetworkOutput::new("out", operand)];
    let application = application(&network, 1, false, StorageModel::Tensors);
    let plan = plan(&application);
    assert!(plan.cnns[0].layers.iter().all(|layer| layer.firings == 1));
    compare(&application, &run(&application).unwrap()).unwrap();
}

#[test]
fn wrong_plans_by_lines_are_refused() {
    let application = application(&block(&[1, 12, 8]), 1, false, StorageModel::Tensors);
    let good = plan(&application);
    check(&good).unwrap();
    let place = |plan: &Plan, operator: &str| {
        let mut layers = plan.cnns[0].layers.iter();
        layers.position(|layer| layer.operator.kind() == operator).unwrap()
    };
    let refused = |what: &str, edit: &dyn Fn(&mut Plan)| {
        let mut plan = good.clone();
        edit(&mut plan);
        assert!(plan != good && check(&plan).is_err(), "{what}");
    };
    refused("a softmax over rows that has only some", &|plan| {
        let softmax = place(plan, "softmax");
        let Operator::Softmax(softmax) = &mut plan.cnns[0].layers[softmax].operator else { unreachable!() };
        softmax.axes = vec![1];
    });
    refused("rows dealt out anew", &|plan| {
        let softmax = place(plan, "softmax");
        plan.cnns[0].layers[softmax].inputs[0].view = Some(Shape::new([1, 24, 25]));
    });
    refused("rows dealt out anew as an image of channels", &|plan| {
        let softmax = place(plan, "softmax");
        plan.cnns[0].layers[softmax].inputs[0].view = Some(Shape::image(50, 12, 1));
    });
    refused("a product by a tensor of which only a row is there", &|plan| {
        let product = place(plan, "mat_mul");
        let rates = plan.cnns[0].layers[product].inputs[0].acquire.clone();
        plan.cnns[0].layers[product].inputs[1].acquire = rates;
    });
    refused("a row acquired late", &|plan| {
        let softmax = place(plan, "softmax");
        plan.cnns[0].layers[softmax].inputs[0].acquire = "0,10*1,2".into();
    });
    refused("two rows where logits are one", &|plan| {
        let softmax = place(plan, "softmax");
        plan.cnns[0].layers[softmax].rows_per_firing = 2;
    });
}
