//! A layer may write in part where it reads, row by row and as closely as possible. It must make the same output as in
//! separate memory.

use csdfc_input::app::partition::Partition;
use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_network::{Network, NetworkOutput, Operand};
use csdfc_plan::format::Element;
use csdfc_plan::operator::{BinaryFunction, ElementWise, Function, Operator};
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_plan::shape::Shape;
use csdfc_runtime::run::{Runner, Value};
use csdfc_tests::{generate, outcome, together};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::kernels::{constant, groups};
use super::{Emitted, FRAMES, check_crate, inputs, values_of};

/// One layer, between a layer that stores its operands and a layer that reads its output.
struct Case {
    name: String,
    network: Network,
    /// The tensor that it makes.
    tensor: usize,
}

fn case(name: &str, inputs: &[Shape], operator: &Operator) -> Option<Case> {
    let mut network = Network::default();
    // The operand that is stored last lies nearest.
    let mut read: Vec<Operand> = inputs
        .iter()
        .rev()
        .map(|shape| {
            let operand = generate::input(&mut network, shape.clone());
            let halve = constant(BinaryFunction::Mul, &[], false, None);
            generate::push(&mut network, halve, vec![operand]).expect("a product")
        })
        .collect();
    read.reverse();
    let made = generate::push(&mut network, operator.clone(), read).expect("a layer");
    let tensor = made.layer.0;
    if network.layers[tensor].format().element != Element::F32 {
        return None;
    }
    let end = Operator::ElementWise(ElementWise { function: Function::Neg });
    let operand = generate::push(&mut network, end, vec![made]).expect("a reader");
    network.outputs.push(NetworkOutput::new("out", operand));
    Some(Case { name: name.into(), network, tensor })
}

/// A layer of every kind that can go by rows, each operand an image in a ring of all its rows.
fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for group in groups() {
        let is_plain = group.inputs.iter().all(|[own, seen]| own == seen && own.rank() == 4);
        for (i, operator) in group.operators.iter().enumerate().filter(|_| is_plain) {
            let own: Vec<Shape> = group.inputs.iter().map(|[own, _]| own.clone()).collect();
            all.extend(case(&format!("{}_{i}", group.name), &own, operator));
        }
    }
    all
}

fn application(cases: &[&Case], threads: usize) -> Application {
    let cnn = |case: &&Case| {
        let layers = case.network.ids().collect();
        let whole = Partition { name: case.name.clone(), layers, processor: "cpu".into(), schedule: None };
        generate::of_network(&case.name, case.network.clone(), vec![whole])
    };
    let parallel = cases.iter().map(|case| vec![case.name.clone()]).collect();
    let cnns = cases.iter().map(cnn).collect();
    let application = generate::of_cnns(cnns, parallel, StorageModel::Tensors, RowsChoice::None);
    Application { threads, ..application }
}

fn run(application: &Application, plan: &Plan) -> Vec<Value> {
    let values = values_of(application);
    let mut runner = Runner::poisoned(plan, &values).expect("a runner");
    let frame = |_| runner.infer(0, &inputs(plan, 0)).expect("a frame");
    (0..FRAMES).map(frame).last().expect("a frame")
}

/// The plan of one case, with its ring as close to its operands as possible; and whether they share bytes.
fn tight(application: &Application, case: &Case) -> (Plan, bool) {
    let apart = together::apart(&outcome(application).plan);
    let name = &case.network.layers[case.tensor].output;
    let tensor = apart.tensors.iter().position(|tensor| tensor.name == *name).expect("its tensor");
    let (plan, _) = together::follow(&apart, tensor);
    let shares = !together::followers(&plan).is_empty();
    (plan, shares)
}

/// Whether every row is made from all rows.
fn needs_all_rows(operator: &Operator) -> bool {
    match operator {
        Operator::InstanceNorm(_)
        | Operator::NonMaxSuppression(_)
        | Operator::GridSample(_)
        | Operator::MaxUnpool(_) => true,
        Operator::Transpose(transpose) => transpose.perm[2] != 2,
        Operator::TopK(top) => top.axis == 2,
        Operator::GatherElements(gather) => gather.axis == 2,
        Operator::Reduce(reduce) => reduce.axes.contains(&2),
        Operator::Softmax(softmax) => softmax.axes.contains(&2),
        _ => false,
    }
}

#[test]
fn layers_follow_what_they_are_made_from() {
    let mut followers = 0;
    for (i, case) in cases().iter().enumerate() {
        let application = application(&[case], 1 + i % 3);
        let apart = together::apart(&outcome(&application).plan);
        let (plan, shares) = tight(&application, case);
        let operator = &case.network.layers[case.tensor].operator;
        assert_eq!(shares, !needs_all_rows(operator), "{}", case.name);
        let expected = format!("{:?}", run(&application, &apart));
        assert_eq!(format!("{:?}", run(&application, &plan)), expected, "{}", case.name);
        followers += usize::from(shares);
    }
    println!("{followers} layers follow");
}

/// A few of them in one crate, so that it builds fast.
#[test]
fn layers_that_follow_are_emitted() {
    let all = cases();
    let mut kinds = std::collections::BTreeSet::new();
    let mut some = Vec::new();
    for case in &all {
        let of_one = application(&[case], 1);
        let (plan, shares) = tight(&of_one, case);
        let layer = &case.network.layers[case.tensor];
        if shares && kinds.insert((layer.operator.kind(), layer.inputs.len())) {
            some.push((case, plan));
        }
    }
    let chosen: Vec<&Case> = some.iter().map(|(case, _)| *case).collect();
    let application = application(&chosen, 1);
    let mut plan = outcome(&application).plan;
    for tensor in &mut plan.tensors {
        let (_, own) = some.iter().find(|(case, _)| case.name == tensor.cnn).expect("its case");
        let same = own.tensors.iter().find(|other| other.name == tensor.name).expect("its tensor");
        tensor.ring = same.ring;
    }
    for cnn in &mut plan.cnns {
        let (_, own) = some.iter().find(|(case, _)| case.name == cnn.name).expect("its case");
        let workspaces = own.cnns[0].layers.iter().map(|layer| layer.workspace);
        cnn.layers.iter_mut().zip(workspaces).for_each(|(layer, own)| layer.workspace = own);
    }
    together::settle(&mut plan);
    assert_eq!(together::followers(&plan).len(), some.len());
    check_crate(&Emitted::of(&application, plan));
}

/// Rings that share addresses within the stages of a pipeline, and between CNNs that run in turn.
#[test]
fn stages_whose_rings_share_addresses() {
    let application = csdfc_tests::application(
        "(cnns: [(model: \"builtin:resnet8\", partitions: [(name: \"a\", upto: \"stack1_conv1\"), (name: \"b\")]),
            (model: \"builtin:lenet5\")], parallel: [[\"a\", \"b\"], [\"lenet5\"]], rows: none)",
    );
    let mut apart = together::apart(&outcome(&application).plan);
    // One that is planned for several workers has few layers that go row by row.
    apart.threads = 2;
    let pushed = |seed: u64| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        together::pushed(&apart, &mut |n| random.random_range(0..n))
    };
    let in_both = |plan: &Plan| {
        let followers = together::followers(plan);
        (0..2).all(|c| followers.iter().any(|(cnn, _)| *cnn == c))
    };
    let plan = (0..100).map(pushed).find(in_both).expect("layers made row by row in both CNNs");
    let values = values_of(&application);
    for c in 0..2 {
        let [mut one, mut other] =
            [&apart, &plan].map(|plan| Runner::poisoned(plan, &values).expect("a runner"));
        let inputs = inputs(&plan, c);
        assert_eq!(one.infer(c, &inputs).expect("a frame"), other.infer(c, &inputs).expect("a frame"));
    }
    check_crate(&Emitted::of(&application, plan));
}
