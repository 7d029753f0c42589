//! Broken and sound application files, over made-up models.

mod broken;
mod hostile;

use std::path::Path;

use csdfc_plan::operator::{
    Binary, BinaryFunction, CameraLayout, ColorOrder, ElementWise, Function, Input, InputElement, Operator,
};
use csdfc_plan::shape::Shape;

use super::fault::{AppError, Origin};
use super::load::{LoadError, Loaded, ModelRequest, ModelSource};
use super::resolve::{Application, RowsChoice, resolve};
use super::spec;
use crate::units::MemoryGoal;
use csdfc_network::pass::Fusion;
use csdfc_network::{Layer, LayerId, Network, Operand};

#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("no such file")]
#[diagnostic(help("check the path"))]
struct Missing;

/// Every `.onnx` is image → conv1 → conv2 → add(conv1) → pool, of 3×8×6 each; conv2 stands for `relu2` too.
fn fake(request: &ModelRequest) -> Result<Loaded, LoadError> {
    if request.model.starts_with("missing") {
        return Err(LoadError::Refused(Box::new(Missing)));
    }
    if !super::load::is_model_file(request.model) && !request.model.starts_with("builtin:") {
        return Err(LoadError::Kind);
    }
    let relu = Operator::ElementWise(ElementWise { function: Function::Relu });
    let add = Binary { function: BinaryFunction::Add, constant: None, activation: None };
    let mut network = Network::default();
    for (name, operator, inputs) in [
        ("image", Operator::Input(Input { element: InputElement::F32, camera: None }), &[][..]),
        ("conv1", relu.clone(), &[0][..]),
        ("conv2", relu.clone(), &[1]),
        ("add", Operator::Binary(add), &[1, 2]),
        ("pool", relu, &[3]),
    ] {
        let shape = Shape::image(3, 8, 6);
        let inputs = inputs.iter().map(|id| Operand { layer: LayerId(*id), shape: shape.clone() }).collect();
        let mut onnx_nodes = vec![name.to_string()];
        if name == "conv2" {
            onnx_nodes.push("relu2".into());
        }
        network.add(Layer {
            name: name.into(),
            onnx_nodes,
            operator,
            inputs,
            parameters: Vec::new(),
            output: format!("{name}_out"),
            shape,
            primitive: None,
            quantization: None,
        });
    }
    let source = ModelSource { name: request.model.into(), ..ModelSource::default() };
    Ok(Loaded { network, source })
}

fn application(text: &str) -> Result<Application, Box<AppError>> {
    let origin = Origin { name: "app.ron".into(), text: Some(text.into()), replaced: Vec::new() };
    let spec = spec::parse(&origin)?;
    resolve(&spec, &origin, Path::new(""), &mut fake)
}

fn ids(ids: &[usize]) -> Vec<LayerId> {
    ids.iter().copied().map(LayerId).collect()
}

#[test]
fn the_design_s_example_resolves() {
    let app = application(
        r#"(
          name: "adaptive-classifier",
          cnns: [
            (name: "cnn1", model: "cnn1.onnx"),
            (name: "cnn2", model: "cnn2.onnx", precision: fp32,
             partitions: [(name: "p2", upto: "relu2", processor: "gpu"), (name: "p3", processor: "cpu")]),
          ],
          parallel: [["cnn1"], ["p2", "p3"]],       // J; default: every CNN alone
          device: "jetson-tx2",
          constraints: (memory: "8MB", fps: {"cnn2": 71}, latency: {"cnn2": "40ms"}),
          search: (seed: 1, population: 100, generations: 200, crossover: 0.9, mutation: 0.1),
          storage: edges, rows: {"cnn1/add": 4}, fuse: true, threads: 2,
        )"#,
    )
    .unwrap();
    assert_eq!(app.name, "adaptive-classifier");
    assert_eq!(app.parallel, [vec!["cnn1"], vec!["p2", "p3"]]);
    assert_eq!(app.constraints.memory, Some(MemoryGoal::Bytes(8_000_000)));
    assert_eq!(app.constraints.fps, [("cnn2".into(), 71.0)].into());
    assert_eq!(app.constraints.latency_ns, [("cnn2".into(), 40_000_000)].into());
    assert_eq!(app.rows, RowsChoice::Layers([((0, LayerId(3)), 4)].into()));
    let [p2, p3] = &app.cnns[1].partitions[..] else { panic!("two partitions") };
    assert_eq!((&p2.name[..], &p2.processor[..], &p2.layers), ("p2", "gpu", &ids(&[0, 1, 2])));
    assert_eq!((&p3.name[..], &p3.processor[..], &p3.layers), ("p3", "cpu", &ids(&[3, 4])));
    assert_eq!(app.cnns[0].partitions[0].name, "cnn1");
}

#[test]
fn defaults_fill_everything() {
    let app = application(r#"(cnns: [(model: "models/my net.onnx"), (model: "builtin:resnet8", partitions: [(upto: "image"), ()])])"#).unwrap();
    assert_eq!((app.name.as_str(), app.device.as_str(), app.threads), ("my_net+resnet8", "generic", 1));
    assert_eq!(app.parallel, [["my_net"], ["resnet8.p1"], ["resnet8.p2"]]);
    assert_eq!((app.constraints.memory, app.rows.clone()), (None, RowsChoice::Default));
    assert!(app.fusion == Fusion::Full && app.constraints.fps.is_empty());
}

#[test]
fn a_cnn_in_parallel_stands_for_its_partitions() {
    let app = application(
        r#"(cnns: [(name: "a", model: "a.onnx", partitions: [(name: "p", upto: "conv1"), (name: "q")]),
                   (name: "b", model: "b.onnx")], parallel: [["b", "a"]], constraints: (fps: 5, latency: "40ms", memory: min))"#,
    )
    .unwrap();
    assert_eq!(app.parallel, [["b", "p", "q"]]);
    assert_eq!(app.constraints.fps, [("a".into(), 5.0), ("b".into(), 5.0)].into());
    assert_eq!(app.constraints.latency_ns, [("a".into(), 40_000_000), ("b".into(), 40_000_000)].into());
    assert_eq!(app.constraints.memory, Some(MemoryGoal::Min));
}

/// Partitions stand in the order of their last layers, and layers of one follow each other where data let them.
#[test]
fn partitions_list_layers() {
    for (partitions, layers, expected) in [
        (
            r#"(name: "p"), (name: "q", layers: ["relu2"])"#,
            ["image", "conv1", "conv2", "add", "pool"],
            [("q", ids(&[2])), ("p", ids(&[0, 1, 3, 4]))],
        ),
        (
            r#"(name: "p", layers: ["pool", "add"]), (name: "q")"#,
            ["image", "conv1", "conv2", "add", "pool"],
            [("q", ids(&[0, 1, 2])), ("p", ids(&[3, 4]))],
        ),
        (
            r#"(name: "q", layers: ["conv2", "pool", "add"]), (name: "p", layers: ["conv1", "image"])"#,
            ["image", "conv1", "conv2", "add", "pool"],
            [("p", ids(&[0, 1])), ("q", ids(&[2, 3, 4]))],
        ),
    ] {
        let text = format!(
            r#"(cnns: [(model: "a.onnx", partitions: [{partitions}])], parallel: [["p", "q"]], storage: edges)"#
        );
        let app = application(&text).unwrap();
        let names: Vec<&str> = app.cnns[0].network.layers.iter().map(|layer| layer.name.as_str()).collect();
        assert_eq!(names, layers, "{partitions}");
        let found = app.cnns[0].partitions.iter().map(|p| (p.name.as_str(), p.layers.clone()));
        assert_eq!(found.collect::<Vec<_>>(), expected, "{partitions}");
    }
}

#[test]
fn schedules_are_bound() {
    for (schedule, expected) in [
        (r#"[["conv1"], ["conv2", "add"], ["pool"]]"#, vec![ids(&[0]), ids(&[1]), ids(&[2, 3]), ids(&[4])]),
        (r#"[["pool", "add", "conv2", "relu2", "conv1", "image"]]"#, vec![ids(&[0, 1, 2, 3, 4])]),
        (r#"[["image"], ["conv1"], ["relu2"], ["add_out"], ["pool"]]"#, (0..5).map(|i| ids(&[i])).collect()),
    ] {
        let text = format!("(cnns: [(model: \"a.onnx\", partitions: [(schedule: {schedule})])])");
        let app = application(&text).unwrap();
        assert_eq!(app.cnns[0].partitions[0].schedule.as_ref(), Some(&expected), "{schedule}");
    }
}

#[test]
fn camera_inputs_are_bound() {
    let app = application(
        r#"(cnns: [(model: "a.onnx", inputs: {"image": (type: u8, layout: CHW, order: BGR, mean: [1, 2, 3], scale: 0.5)})])"#,
    )
    .unwrap();
    let Operator::Input(Input { element: InputElement::U8, camera: Some(camera) }) =
        &app.cnns[0].network.layers[0].operator
    else {
        panic!("camera bytes");
    };
    assert_eq!((camera.layout, camera.order), (CameraLayout::Chw, ColorOrder::Bgr));
    assert_eq!((&camera.mean[..], &camera.scale[..]), (&[1.0, 2.0, 3.0][..], &[0.5, 0.5, 0.5][..]));
}

#[test]
fn an_option_s_fault_does_not_point_into_the_file() {
    let text = r#"(cnns: [(model: "a.onnx")], rows: {"pool": 4})"#;
    let mut origin = Origin { name: "app.ron".into(), text: Some(text.into()), replaced: Vec::new() };
    let mut spec = spec::parse(&origin).unwrap();
    spec.rows = spec::RowsSpec::Layers([("pool".into(), 99)].into());
    origin.replaced.push(("rows", "--rows"));
    let error = resolve(&spec, &origin, Path::new(""), &mut fake).unwrap_err();
    assert!(error.span.is_none());
    assert!(error.to_string().starts_with("--rows: "), "{error}");
}
