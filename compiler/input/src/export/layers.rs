//! The graph of a network, layer by layer.

use csdfc_network::{LayerId, Network, Operand};
use csdfc_plan::format::Quantization;
use csdfc_plan::operator::{Input, InputElement, Operator};
use rten_onnx::onnx::{DataType, GraphProto};

use super::graph::{Graph, element, value};
use super::nodes::Nodes;
use super::{ExportError, constants, operators};

/// The graph of a network.
pub(super) fn graph(network: &Network) -> Result<GraphProto, ExportError> {
    let mut graph = Graph::default();
    graph.name_tensors(network);
    for id in network.ids() {
        layer(&mut graph, network, id)?;
    }
    for output in &network.outputs {
        let seen = graph.operand(&output.operand);
        let layer = network.layer(output.operand.layer);
        if let Some(Quantization { scale, zero_point }) = output.integers
            && layer.quantization != output.integers
        {
            let scale = constants::of_floats(&format!("{}_scale", output.name), &[], &[scale]);
            let point = constants::of_byte(&format!("{}_zero_point", output.name), zero_point);
            let input = vec![seen, graph.constant(scale), graph.constant(point)];
            let name = graph.unique_node(&output.name);
            graph.node("QuantizeLinear", name, input, output.name.clone(), Vec::new());
            graph.proto.output.push(value(&output.name, DataType::UINT8, &output.operand.shape));
            continue;
        }
        if seen != output.name {
            let name = graph.unique_node(&output.name);
            graph.node("Identity", name, vec![seen], output.name.clone(), Vec::new());
        }
        let element = element(layer);
        graph.proto.output.push(value(&output.name, element, &output.operand.shape));
    }
    Ok(graph.proto)
}

/// Signed integers of an input as unsigned ones, which stand for the same numbers.
fn unsigned(graph: &mut Graph, input: &str, Quantization { scale, zero_point }: Quantization) -> String {
    let scale = graph.constant(constants::of_floats(&format!("{input}_scale"), &[], &[scale]));
    let signed = (zero_point ^ 0x80).cast_signed();
    let mut seen = input.to_owned();
    for (operator, name, point) in [
        ("DequantizeLinear", "numbers", constants::of_signed_byte("zero_point", signed)),
        ("QuantizeLinear", "unsigned", constants::of_byte("zero_point", zero_point)),
    ] {
        let point = graph.constant(point);
        let (node, made) = (graph.unique_node(operator), graph.unique_tensor(&format!("{input}_{name}")));
        graph.node(operator, node, vec![seen, scale.clone(), point], made.clone(), Vec::new());
        seen = made;
    }
    seen
}

fn layer(graph: &mut Graph, network: &Network, id: LayerId) -> Result<(), ExportError> {
    let layer = network.layer(id);
    let name = graph.made[id.0].0.clone();
    if let Operator::Input(input) = &layer.operator {
        let element = match input {
            Input { camera: Some(_), .. } => {
                let reason = "an ONNX model takes floats, not the bytes of a camera".into();
                return Err(ExportError::Layer { layer: layer.name.clone(), reason });
            }
            Input { element: InputElement::F32, .. } => DataType::FLOAT,
            Input { element: InputElement::U8, .. } => DataType::UINT8,
            Input { element: InputElement::I8, .. } => DataType::INT8,
        };
        graph.proto.input.push(value(&name, element, &layer.shape));
        if let (DataType::INT8, Some(quantization)) = (element, layer.quantization) {
            graph.made[id.0].0 = unsigned(graph, &name, quantization);
        }
        return Ok(());
    }
    let operands: Vec<String> = layer.inputs.iter().map(|operand| graph.operand(operand)).collect();
    let read = |operand: &Operand| network.layer(operand.layer).quantization;
    let read = layer.inputs.iter().map(read).collect();
    let mut nodes = Nodes::new(graph, layer, read);
    let made = operators::operator(&mut nodes, operands)?;
    nodes.finish(&made, name);
    Ok(())
}
