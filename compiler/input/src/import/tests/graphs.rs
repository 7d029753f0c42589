//! Graphs, their inputs and outputs: messages and limits.

use csdfc_plan::shape::Order;
use miette::Diagnostic;

use super::*;
use crate::import::importer::build;
use crate::import::messages::Model as Decoded;

fn relu(input: &[i64]) -> Model {
    Model::new(13, input, &["y"]).node("Relu", &["x"], &["y"], vec![])
}

/// A model whose output depends on this many nodes. All but the last have operators that do not exist.
fn unknown_nodes(nodes: usize) -> Model {
    let mut model = Model::new(13, &[1, 3], &["y"]);
    let node = |output: String| NodeProto {
        op_type: Some("Unknown".into()),
        input: vec!["x".into()],
        output: vec![output],
        ..Default::default()
    };
    model.graph().node = (1..nodes).map(|i| node(format!("t{i}"))).collect();
    let input = (1..nodes).map(|i| format!("t{i}")).collect();
    let last =
        NodeProto { op_type: Some("Sum".into()), input, output: vec!["y".into()], ..Default::default() };
    model.graph().node.push(last);
    model
}

#[test]
fn unsupported_nodes_are_listed_up_to_twenty() {
    let message = |nodes: usize| unknown_nodes(nodes + 1).import().unwrap_err().to_string();
    assert_eq!(message(1), "model: one node has an operator that is not supported:\n  t1 (Unknown)");
    let listed = |nodes: usize| -> String { (1..=nodes).map(|i| format!("\n  t{i} (Unknown)")).collect() };
    let head = |nodes: usize| format!("model: {nodes} nodes have operators that are not supported:");
    assert_eq!(message(20), format!("{}{}", head(20), listed(20)));
    assert_eq!(message(22), format!("{}{}\n  and 2 more", head(22), listed(20)));
}

#[test]
fn operators_of_other_domains_are_others() {
    let mut model = relu(&[1, 3]);
    model.graph().node[0].domain = Some("com.example".into());
    refused(&model, "\n  node_y (com.example.Relu)");
    // Their version is not that of ONNX's operators.
    let other = OperatorSetIdProto { domain: Some("com.example".into()), version: Some(1) };
    let mut model = relu(&[1, 3]);
    model.proto.opset_import.insert(0, other);
    assert!(model.import().is_ok());
    model.graph().node[0].domain = Some("ai.onnx".into());
    assert!(model.import().is_ok());
    model.proto.opset_import.pop();
    refused(&model, "it does not state its version of the ONNX operators");
}

#[test]
fn a_graph_has_at_most_a_hundred_thousand_nodes() {
    let message = |nodes: usize| {
        let model = Decoded { proto: unknown_nodes(nodes).proto, ..Default::default() };
        build("model", &model, None, &ImportOptions::default(), 1).unwrap_err().to_string()
    };
    let most = message(100_000);
    assert!(most.contains("99999 nodes have operators that are not supported"), "{most}");
    assert_eq!(message(100_001), "model: the graph has more than 100000 nodes");
}

#[test]
fn a_cycle_is_named_by_a_node_that_is_on_it() {
    let model = Model::new(13, &[1, 3], &["y"])
        .node("Relu", &["x"], &["before"], vec![])
        .node("Relu", &["b"], &["y"], vec![])
        .node("Add", &["before", "b"], &["a"], vec![])
        .node("Relu", &["a"], &["b"], vec![]);
    let error = model.import().unwrap_err().to_string();
    assert_eq!(error, "model: node node_b depends on its own output");
}

#[test]
fn outputs_that_no_layer_computes() {
    let check = |output: &str, reason: &str| {
        let mut model = Model::new(13, &[1, 3, 4, 4], &["y", output]).floats("w", &[3]);
        model.graph().input.push(value("unread", DataType::FLOAT, &[1, 3]));
        model.graph().node.push(NodeProto {
            op_type: Some("MaxPool".into()),
            input: vec!["x".into()],
            output: vec!["y".into(), "indices".into()],
            // Places that count columns first.
            attribute: vec![ints("kernel_shape", &[2, 2]), int("storage_order", 1)],
            ..Default::default()
        });
        let error = model.import().unwrap_err().to_string();
        assert_eq!(error, format!("model: output {output}: {reason}"));
    };
    check("unread", "it is an input of the network, with no layer between");
    check("w", "it is a constant, whatever the input");
    check("indices", "csdfc does not compute this output of its node");
}

#[test]
fn a_batch_of_any_size_is_one() {
    let network = relu(&[-2, 3]).import().unwrap();
    assert_eq!(network.layers[0].shape.dims, [1, 3]);
}

#[test]
fn an_input_has_at_most_262144_rows() {
    assert!(relu(&[1, 1, 262_144, 1]).import().is_ok());
    refused(&relu(&[1, 1, 262_145, 1]), "has more than 262144 rows");
}

#[test]
fn the_help_for_open_dimensions_is_an_example() {
    let check = |model: &Model, shape: &str, example: &str| {
        let error = model.import().unwrap_err();
        assert_eq!(error.to_string(), format!("model: input x: its shape {shape} is dynamic"));
        let help = error.help().unwrap().to_string();
        assert_eq!(help, format!("give every dimension a number, such as --shape x={example}"));
    };
    check(&relu(&[0, -1, -1, 5]), "[batch, side, side, 5]", "1,16,224,5");
    check(&relu(&[0, -1, -1]), "[batch, side, side]", "1,16,16");
    let mut unnamed = relu(&[1, 3, 3, 4]);
    let kind = unnamed.graph().input[0].r#type.as_mut().unwrap();
    let dims = &mut kind.tensor_type.as_mut().unwrap().shape.as_mut().unwrap().dim;
    dims[1] = Dimension { dim_value: Some(-5), dim_param: None };
    dims[2] = Dimension { dim_value: None, dim_param: Some(String::new()) };
    check(&unnamed, "[1, ?, ?, 4]", "1,16,224,4");
}

/// Only a Transpose to channels-first says that an image is channels-last.
#[test]
fn a_permuted_input_is_channels_last_only_if_its_channels_go_first() {
    let order = |perm: &[i64]| {
        let model = Model::new(13, &[1, 6, 5, 3], &["y"]);
        let model = model.node("Transpose", &["x"], &["t"], vec![ints("perm", perm)]);
        model.node("Relu", &["t"], &["y"], vec![]).import().unwrap().layers[0].shape.order
    };
    assert_eq!(order(&[0, 3, 1, 2]), Order::ChannelsLast);
    assert_eq!(order(&[0, 2, 1, 3]), Order::ChannelsFirst);
}

/// Writers may leave out the number 0.
#[test]
fn an_attribute_without_its_number_is_0() {
    let axis = AttributeProto { i: None, ..int("axis", 1) };
    let layer = layers::single(13, &[1, 3, 4], "Softmax", layers::none(), vec![axis.clone()]);
    assert_eq!(format!("{:?}", layer.operator), "Softmax(Softmax { axes: [0], log: false })");
    let untyped = AttributeProto { r#type: None, ..axis };
    refused(
        &layers::one(13, &[1, 3, 4], "Softmax", layers::none(), vec![untyped]),
        "attribute axis is no number",
    );
}

/// It is one tensor of one name.
#[test]
fn an_output_may_be_listed_twice() {
    let model = Model::new(13, &[1, 3], &["y", "y"]).node("Relu", &["x"], &["y"], vec![]);
    let network = model.import().unwrap();
    assert_eq!(network.outputs.len(), 1);
}

/// Before opset 14, a batch norm that has outputs of statistics normalises by those of the batch.
#[test]
fn batch_norms_with_statistics_are_in_training_mode() {
    let model = |opset, outputs: &[&str]| {
        let vectors = ["x", "s", "s", "s", "s"];
        let model = Model::new(opset, &[1, 2, 2, 2], &["y"]).floats("s", &[2]);
        model.node("BatchNormalization", &vectors, outputs, vec![])
    };
    for opset in [7, 9, 13] {
        refused(&model(opset, &["y", "m", "v", "sm", "sv"]), "it is in training mode");
        refused(&model(opset, &["y", "", "v"]), "it is in training mode");
        assert!(model(opset, &["y", "", "", "", ""]).import().is_ok());
    }
    assert!(model(14, &["y", "m", "v"]).import().is_ok());
}

#[test]
fn a_pointer_of_git_lfs_is_no_model() {
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    let error = import_bytes(pointer, None, &ImportOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "model: it is a pointer of Git LFS to the model, which is not here");
    assert!(error.help().unwrap().to_string().contains("git lfs pull"));
}

#[test]
fn tensors_have_at_most_six_dimensions_where_kernels_see_them() {
    let dims = [1, 2, 2, 2, 2, 2, 2];
    let model = Model::new(13, &dims, &["y"]).node("ReduceMean", &["x"], &["y"], vec![ints("axes", &[2, 5])]);
    let error = model.import().unwrap_err();
    assert!(error.to_string().contains("node node_y (ReduceMean): a tensor of 7 dimensions"), "{error}");
    assert!(error.help().is_some());
}

/// An initialiser that several nodes read is one layer's, and the others use it, unless a batch norm makes it another.
#[test]
fn initialisers_of_several_nodes_are_kept_once() {
    let owners = |norms: [&[f32]; 2]| {
        let mut model = Model::new(13, &[1, 2, 5, 5], &["y"]).floats("w", &[2, 2, 3, 3]).floats("one", &[2]);
        let mut last = "x".to_owned();
        for (at, factors) in norms.into_iter().enumerate() {
            let [factor, conv, norm] = ["f", "c", "n"].map(|name| format!("{name}{at}"));
            let bytes: Vec<u8> = factors.iter().flat_map(|factor| factor.to_le_bytes()).collect();
            model = model
                .tensor(TensorProto {
                    name: Some(factor.clone()),
                    dims: vec![2],
                    data_type: Some(DataType::FLOAT),
                    raw_data: Some(RefCell::new(bytes)),
                    ..Default::default()
                })
                .node("Conv", &[&last, "w"], &[&conv], vec![])
                .node("BatchNormalization", &[&conv, &factor, "one", "one", "one"], &[&norm], vec![]);
            last = norm;
        }
        let network = model.node("Relu", &[&last], &["y"], vec![]).import().unwrap();
        let network = csdfc_network::pass::normalise(network, csdfc_network::pass::Fusion::Full);
        let owners = csdfc_network::sharing::owners(&network, |_, _| true);
        owners.into_iter().map(|owner| owner.map(|id| id.0)).collect::<Vec<_>>()
    };
    assert_eq!(owners([&[1.0, 2.0], &[1.0, 2.0]]), [None, None, Some(1)]);
    assert_eq!(owners([&[1.0, 2.0], &[1.0, 3.0]]), [None, None, None]);
}
