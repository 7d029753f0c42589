//! A part of an ONNX model: other tensors become its inputs and outputs.

use std::collections::{BTreeMap, BTreeSet};

use csdfc_plan::part::ModelPart;
use rten_onnx::onnx::{DataType, GraphProto, TypeProto, TypeProtoTensor, ValueInfoProto};

use super::error::ImportError;

/// Makes the inputs and outputs of a part those of the graph. Inputs of the graph that the part needs remain. Shapes are
/// those that the file states of inner tensors, if it does.
///
/// # Errors
/// When no node computes a tensor.
pub(super) fn cut(model: &str, graph: &mut GraphProto, part: &ModelPart) -> Result<(), ImportError> {
    if part.is_whole() {
        return Ok(());
    }
    let stated: BTreeMap<&str, &ValueInfoProto> = graph
        .value_info
        .iter()
        .chain(&graph.output)
        .chain(&graph.input)
        .filter_map(|info| Some((info.name.as_deref()?, info)))
        .collect();
    let info = |name: &String| stated.get(name.as_str()).map_or_else(|| floats(name), |&info| info.clone());
    let own: BTreeSet<&str> = graph.input.iter().filter_map(|info| info.name.as_deref()).collect();
    let made: BTreeSet<&str> = graph.node.iter().flat_map(|node| &node.output).map(String::as_str).collect();
    for name in part.outputs.iter().chain(&part.inputs) {
        if name.is_empty() || !(made.contains(name.as_str()) || own.contains(name.as_str())) {
            return Err(unknown(model, name, made.iter().chain(&own).copied()));
        }
    }
    let outputs: Vec<ValueInfoProto> = part.outputs.iter().map(info).collect();
    let cut: BTreeSet<&String> = part.inputs.iter().filter(|name| !own.contains(name.as_str())).collect();
    let inputs: Vec<ValueInfoProto> = cut.iter().map(|name| info(name)).collect();
    if !outputs.is_empty() {
        graph.output = outputs;
    }
    graph.input.extend(inputs);
    for output in graph.node.iter_mut().flat_map(|node| &mut node.output) {
        if cut.contains(output) {
            output.clear();
        }
    }
    Ok(())
}

/// A tensor of which the file states nothing: floats of a shape that the user gives.
fn floats(name: &str) -> ValueInfoProto {
    let tensor = TypeProtoTensor { elem_type: Some(DataType::FLOAT), ..TypeProtoTensor::default() };
    let kind = TypeProto { tensor_type: Some(tensor), ..TypeProto::default() };
    ValueInfoProto { name: Some(name.into()), r#type: Some(kind) }
}

/// The error for a tensor that no node computes. `known` are the tensors that may have been meant.
pub(super) fn unknown<'a>(model: &str, name: &str, known: impl Iterator<Item = &'a str>) -> ImportError {
    let near =
        known.filter(|known| !known.is_empty()).map(|known| (strsim::jaro_winkler(known, name), known));
    let near = near.filter(|(score, _)| *score > 0.7).max_by(|a, b| a.0.total_cmp(&b.0));
    ImportError::Tensor {
        model: model.into(),
        tensor: name.into(),
        reason:
            "no node computes a tensor of this name, so it can be neither an input nor an output of a part"
                .into(),
        help: Some(match near {
            Some((_, near)) => format!("did you mean {near}?"),
            None => "`csdfc inspect` lists the layers with the names of what they compute".into(),
        }),
    }
}
