//! Functions of each element, as activations too.

use csdfc_plan::operator::{BinaryFunction, Function};
use rten_onnx::onnx::AttributeProto;

use super::ExportError;
use super::nodes::Nodes;
use crate::import::attribute::{float, int, text};

/// A function of each element of `x`. The slopes of a PRelu are the layer's last parameter.
pub(super) fn function(nodes: &mut Nodes, function: &Function, x: String) -> Result<String, ExportError> {
    let (operator, attributes) = match function {
        Function::Clip { min, max } => return Ok(clip(nodes, [*min, *max], x)),
        Function::PRelu { .. } => {
            let last = nodes.layer.parameters.len().saturating_sub(1);
            let slope = nodes.parameter(last, "slope")?;
            return Ok(nodes.node("PRelu", [x, slope], Vec::new()));
        }
        // An operator of its own only since opset 24.
        Function::Swish => {
            let gate = nodes.node("Sigmoid", [x.as_str()], Vec::new());
            return Ok(nodes.node("Mul", [x, gate], Vec::new()));
        }
        Function::LeakyRelu { alpha } => ("LeakyRelu", vec![float("alpha", *alpha)]),
        Function::Elu { alpha } => ("Elu", vec![float("alpha", *alpha)]),
        Function::Selu { alpha, gamma } => ("Selu", vec![float("alpha", *alpha), float("gamma", *gamma)]),
        Function::HardSigmoid { alpha, beta } => {
            ("HardSigmoid", vec![float("alpha", *alpha), float("beta", *beta)])
        }
        Function::Gelu { tanh } => ("Gelu", vec![text("approximate", if *tanh { "tanh" } else { "none" })]),
        Function::Relu => ("Relu", Vec::new()),
        Function::Sigmoid => ("Sigmoid", Vec::new()),
        Function::HardSwish => ("HardSwish", Vec::new()),
        Function::Tanh => ("Tanh", Vec::new()),
        Function::Erf => ("Erf", Vec::new()),
        Function::Mish => ("Mish", Vec::new()),
        Function::Softplus => ("Softplus", Vec::new()),
        Function::Softsign => ("Softsign", Vec::new()),
        Function::Sqrt => ("Sqrt", Vec::new()),
        Function::Exp => ("Exp", Vec::new()),
        Function::Log => ("Log", Vec::new()),
        Function::Abs => ("Abs", Vec::new()),
        Function::Neg => ("Neg", Vec::new()),
        Function::Sign => ("Sign", Vec::new()),
        Function::Sin => ("Sin", Vec::new()),
        Function::Cos => ("Cos", Vec::new()),
        Function::Reciprocal => ("Reciprocal", Vec::new()),
        Function::Floor => ("Floor", Vec::new()),
        Function::Ceil => ("Ceil", Vec::new()),
        Function::Round => ("Round", Vec::new()),
        Function::ThresholdedRelu { alpha } => ("ThresholdedRelu", vec![float("alpha", *alpha)]),
    };
    Ok(nodes.node(operator, [x], attributes))
}

/// The layer's activation, if it has one.
pub(super) fn activated(nodes: &mut Nodes, x: String) -> Result<String, ExportError> {
    match nodes.layer.operator.activation() {
        Some(activation) => function(nodes, activation, x),
        None => Ok(x),
    }
}

/// A scale and a shift for each channel, constants by these names: a batch norm of mean 0 and variance 1.
pub(super) fn affine(nodes: &mut Nodes, x: String, [scale, shift]: [String; 2], channels: usize) -> String {
    let mut vector = |what: &str, value: f32| {
        let name = nodes.called(what);
        nodes.constant(super::constants::of_floats(&name, &[channels], &vec![value; channels]))
    };
    let (mean, variance) = (vector("mean", 0.0), vector("variance", 1.0));
    nodes.node("BatchNormalization", [x, scale, shift, mean, variance], vec![float("epsilon", 0.0)])
}

/// The ONNX operator of a function of two tensors, and its attributes.
pub(super) fn binary(function: BinaryFunction) -> (&'static str, Vec<AttributeProto>) {
    let operator = match function {
        BinaryFunction::Add => "Add",
        BinaryFunction::Sub => "Sub",
        BinaryFunction::Mul => "Mul",
        BinaryFunction::Div => "Div",
        BinaryFunction::Max => "Max",
        BinaryFunction::Min => "Min",
        BinaryFunction::Pow => "Pow",
        BinaryFunction::Mod => return ("Mod", Vec::new()),
        BinaryFunction::Fmod => return ("Mod", vec![int("fmod", 1)]),
        BinaryFunction::Equal => "Equal",
        BinaryFunction::Greater => "Greater",
        BinaryFunction::GreaterOrEqual => "GreaterOrEqual",
    };
    (operator, Vec::new())
}

/// Softmax or log-softmax over the last dimensions.
pub(super) fn softmax(
    nodes: &mut Nodes,
    axes: &[usize],
    log: bool,
    x: String,
) -> Result<String, ExportError> {
    let operator = if log { "LogSoftmax" } else { "Softmax" };
    if let &[axis] = axes {
        return Ok(nodes.node(operator, [x], vec![int("axis", axis)]));
    }
    let dims = nodes.layer.shape.dims.clone();
    let Some(&first) = axes.first().filter(|first| axes.iter().copied().eq(**first..dims.len())) else {
        return Err(nodes.refused(format!("a softmax over dimensions {axes:?}, which are not the last ones")));
    };
    // Since opset 13, a softmax goes over one dimension.
    let rows: usize = dims[..first].iter().product();
    let (rows, whole) =
        (nodes.list("rows", &[rows, dims[first..].iter().product()]), nodes.list("shape", &dims));
    let x = nodes.node("Reshape", [x, rows], Vec::new());
    let y = nodes.node(operator, [x], vec![int("axis", 1)]);
    Ok(nodes.node("Reshape", [y, whole], Vec::new()))
}

fn clip(nodes: &mut Nodes, bounds: [Option<f32>; 2], x: String) -> String {
    let mut inputs = vec![x];
    for (bound, what) in bounds.into_iter().zip(["min", "max"]) {
        // An empty name is no operand.
        inputs.push(bound.map_or_else(String::new, |bound| nodes.number(what, bound)));
    }
    nodes.node("Clip", inputs, Vec::new())
}
