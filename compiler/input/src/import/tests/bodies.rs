//! `If` and `Loop`: what they run is known at import, or they are refused.

use miette::Diagnostic;

use super::*;

/// An attribute that is a graph.
fn graph(name: &str, inputs: &[&str], outputs: &[&str], nodes: Model) -> AttributeProto {
    let untyped = |name: &&str| value(name, DataType::FLOAT, &[]);
    let mut body = nodes.proto.graph.unwrap();
    body.input = inputs.iter().map(untyped).collect();
    body.output = outputs.iter().map(untyped).collect();
    AttributeProto {
        name: Some(name.into()),
        g: Some(body),
        r#type: Some(AttributeType::GRAPH),
        ..Default::default()
    }
}

fn body() -> Model {
    Model::new(13, &[1], &[])
}

/// The operators of the layers after the input.
fn layers(model: &Model) -> Vec<String> {
    let network = model.import().unwrap();
    let name = |layer: &csdfc_network::Layer| {
        let operator = format!("{:?}", layer.operator);
        let end = operator.find([' ', '(']).unwrap_or(operator.len());
        format!("{} {}", layer.name, &operator[..end])
    };
    network.layers[1..].iter().map(name).collect()
}

fn branches() -> Vec<AttributeProto> {
    vec![
        graph("then_branch", &[], &["t"], body().node("Softmax", &["x"], &["t"], vec![])),
        // An operator that there is not, in the branch that is not taken.
        graph("else_branch", &[], &["e"], body().node("Unknown", &["x"], &["e"], vec![])),
    ]
}

#[test]
fn the_branch_that_a_constant_takes() {
    let model = |condition: i64| {
        Model::new(13, &[1, 3], &["y"])
            .ints("c", &[condition])
            .node("Cast", &["c"], &["holds"], vec![int("to", 9)])
            .node("If", &["holds"], &["y"], branches())
    };
    assert_eq!(layers(&model(1)), ["node_y/node_t Softmax"]);
    assert_eq!(model(1).import().unwrap().layers[1].output, "y");
    refused(&model(0), "node_y/node_e (Unknown)");
}

/// As `torch.jit.script` writes `squeeze`: the condition follows from a shape. A body reads what the graph around it
/// computes, and its own constants.
#[test]
fn the_branch_that_a_shape_takes() {
    let squeezed = body().ints("axes", &[1]).node("Squeeze", &["r", "axes"], &["s"], vec![]);
    let model = Model::new(13, &[1, 1, 4], &["y"])
        .ints("at", &[1])
        .node("Relu", &["x"], &["r"], vec![])
        .node("Shape", &["x"], &["shape"], vec![])
        .node("Gather", &["shape", "at"], &["dim"], vec![])
        .node("Equal", &["dim", "at"], &["is_one"], vec![])
        .node(
            "If",
            &["is_one"],
            &["z"],
            vec![
                graph("then_branch", &[], &["s"], squeezed),
                graph("else_branch", &[], &["i"], body().node("Identity", &["r"], &["i"], vec![])),
            ],
        )
        .node("Softmax", &["z"], &["y"], vec![]);
    assert_eq!(layers(&model), ["node_r ElementWise", "node_y Softmax"]);
    assert_eq!(model.import().unwrap().layers[2].shape.dims, [1, 4]);
}

#[test]
fn a_condition_that_the_network_computes_is_refused() {
    let model = Model::new(13, &[1, 1], &["y"]).node("If", &["x"], &["y"], branches());
    let error = model.import().unwrap_err();
    assert_eq!(
        error.to_string(),
        "model: node node_y (If): operand 0, its condition (x), is computed by the network"
    );
    assert!(error.help().is_some());
}

/// v ← v · w + i, three times; every v + i is collected. The condition within is ignored if none is given.
#[test]
fn a_loop_is_unrolled() {
    let nodes = body()
        .node("Mul", &["v", "w"], &["product"], vec![])
        .node("Cast", &["i"], &["number"], vec![int("to", 1)])
        .node("Add", &["product", "number"], &["next"], vec![])
        .node("Identity", &["holds"], &["still"], vec![])
        .node("Identity", &["next"], &["seen"], vec![]);
    let repeated = graph("body", &["i", "holds", "v"], &["still", "next", "seen"], nodes);
    let model = Model::new(13, &[1, 2], &["last", "all"]).ints("count", &[3]).floats("w", &[2]).node(
        "Loop",
        &["count", "", "x"],
        &["last", "all"],
        vec![repeated],
    );
    let names: Vec<String> = (0..3)
        .flat_map(|i| ["product Binary", "next Binary"].map(|name| format!("node_last/{i}/node_{name}")))
        .chain(["node_last Concat".to_string()])
        .collect();
    assert_eq!(layers(&model), names);
    let network = model.import().unwrap();
    assert_eq!(network.outputs[1].operand.shape.dims, [3, 1, 2]);
    assert_eq!(network.layers[6].parameters[0].values().unwrap(), [2.0]);
    let shared = |layer: usize| match &network.layers[layer].parameters[0].source {
        csdfc_network::weights::WeightSource::Bytes { bytes, .. } => std::sync::Arc::as_ptr(bytes),
        other => panic!("{other:?}"),
    };
    assert_eq!(shared(1), shared(5), "the weights are stored once");
}

#[test]
fn a_loop_ends_with_its_condition() {
    let nodes = body().ints("two", &[2]).node("Relu", &["v"], &["next"], vec![]).node(
        "Less",
        &["i", "two"],
        &["still"],
        vec![],
    );
    let repeated = graph("body", &["i", "holds", "v"], &["still", "next"], nodes);
    let model = Model::new(13, &[1, 2], &["y"])
        .ints("one", &[1])
        .node("Cast", &["one"], &["holds"], vec![int("to", 9)])
        .node("Loop", &["", "holds", "x"], &["y"], vec![repeated.clone()]);
    assert_eq!(model.import().unwrap().layers.len(), 4);
    let endless = Model::new(13, &[1, 2], &["y"]).node("Loop", &["", "", "x"], &["y"], vec![repeated]);
    refused(&endless, "with what it runs, the model has more than 100000 nodes");
}

#[test]
fn a_loop_that_the_network_ends_is_refused() {
    let nodes = body().node("Relu", &["v"], &["next"], vec![]).node("Relu", &["v"], &["still"], vec![]);
    let repeated = graph("body", &["i", "holds", "v"], &["still", "next"], nodes);
    let model = Model::new(13, &[1, 1], &["y"])
        .ints("one", &[1])
        .node("Cast", &["one"], &["holds"], vec![int("to", 9)])
        .node("Loop", &["", "holds", "x"], &["y"], vec![repeated]);
    refused(&model, "node node_y (Loop): the network computes whether it goes on");
}
