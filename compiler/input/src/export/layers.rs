//! The graph of a network, layer by layer.

use csdfc_network::{LayerId, Network, Operand};
use csdfc_plan::operator::{Input, InputElement, Operator};
use rten_onnx::onnx::{DataType, GraphProto};

use super::graph::{Graph, element, value};
use super::nodes::Nodes;
use super::{ExportError, operators};

/// The graph of a network.
pub(super) fn graph(network: &Network) -> Result<GraphProto, ExportError> {
    let mut graph = Graph::default();
    graph.name_tensors(network);
    for id in network.ids() {
        layer(&mut graph, network, id)?;
    }
    for output in &network.outputs {
        let seen = graph.operand(&output.operand);
        if seen != output.name {
            let name = graph.unique_node(&output.name);
            graph.node("Identity", name, vec![seen], output.name.clone(), Vec::new());
        }
        let element = element(network.layer(output.operand.layer));
        graph.proto.output.push(value(&output.name, element, &output.operand.shape));
    }
    Ok(graph.proto)
}

fn layer(graph: &mut Graph, network: &Network, id: LayerId) -> Result<(), ExportError> {
    let layer = network.layer(id);
    let name = graph.made[id.0].0.clone();
    if let Operator::Input(input) = &layer.operator {
        let Input { element: InputElement::F32, camera: None } = input else {
            let reason = "an ONNX model takes floats, not the bytes of a camera".into();
            return Err(ExportError::Layer { layer: layer.name.clone(), reason });
        };
        graph.proto.input.push(value(&name, DataType::FLOAT, &layer.shape));
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
