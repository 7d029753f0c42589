//! Operators of the domain `com.microsoft` into which ONNX Runtime fuses others when it optimises a model. Each becomes
//! the operators that it was fused from.

use csdfc_plan::operator::Function;
use rten_onnx::onnx::NodeProto;

use super::{binary, convolution, dense, element_wise, normalise};
use crate::import::attribute;
use crate::import::builder::Builder;
use crate::import::constant::Constant;
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, Value, with_operands};

/// The operators here. ONNX has none of them.
pub(super) const OPERATORS: &[&str] = &[
    "BiasGelu",
    "FastGelu",
    "FusedConv",
    "FusedGemm",
    "FusedMatMul",
    "QuickGelu",
    "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
];

/// `BiasGelu` and `FastGelu`, the latter by an approximation and with no need for a bias.
pub(super) fn gelu(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = sum(builder, node, &[0, 1])?;
    element_wise::layer(builder, node, &x, Function::Gelu { tanh: node.operator == "FastGelu" })
}

/// `QuickGelu`: x · sigmoid(alpha · x).
pub(super) fn quick_gelu(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    element_wise::gated(builder, node, node.tensor(0)?, node.float("alpha", 1.702)?)
}

/// `FusedConv`: a convolution, to which a tensor may be added, and an activation.
pub(super) fn conv(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let inputs = node.inputs.iter().take(3).cloned().collect();
    let mut y = convolution::conv(builder, &Node { operator: "Conv", inputs, ..*node })?;
    if let Some(added) = node.input(3) {
        y = binary::of_two_operands(builder, node, "Add", &y, added.clone())?;
    }
    let given = node.attribute("activation_params").map_or(&[][..], |attribute| &attribute.floats);
    let function = match (node.text("activation", "")?, given) {
        ("", _) => return Ok(y),
        ("Clip", &[min, max]) => Function::Clip { min: Some(min), max: Some(max) },
        (activation, given) => {
            function(node, activation, ["alpha", "beta"].into_iter().zip(given.iter().copied()))?
        }
    };
    element_wise::layer(builder, node, &y, function)
}

/// `FusedGemm`: a `Gemm` and an activation.
pub(super) fn gemm(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let y = dense::gemm(builder, &Node { operator: "Gemm", inputs: node.inputs.clone(), ..*node })?;
    let mut given = Vec::new();
    for (name, stated) in
        [("alpha", "activation_alpha"), ("beta", "activation_beta"), ("gamma", "activation_gamma")]
    {
        if node.has(stated) {
            given.push((name, node.float(stated, 0.0)?));
        }
    }
    match node.text("activation", "")? {
        "" => Ok(y),
        activation => {
            let function = function(node, activation, given.into_iter())?;
            element_wise::layer(builder, node, &y, function)
        }
    }
}

/// `FusedMatMul`: a product of operands that may be transposed, times a number.
pub(super) fn mat_mul(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let a = transposed(builder, node, 0, ["transA", "transBatchA"])?;
    let b = transposed(builder, node, 1, ["transB", "transBatchB"])?;
    let product = dense::mat_mul(builder, &with_operands(node, "MatMul", [a, b].map(Some), None))?;
    match node.float("alpha", 1.0)? {
        1.0 => Ok(product),
        alpha => binary::of_two_operands(builder, node, "Mul", &product, Constant::floats([], vec![alpha])),
    }
}

/// `SkipLayerNormalization` and `SkipSimplifiedLayerNormalization`: the norm of a sum, and the sum.
pub(super) fn skip_norm(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    if node.proto.output.iter().skip(1).take(2).any(|name| !name.is_empty()) {
        return fault!("csdfc does not compute its outputs of mean and deviation");
    }
    let is_simple = node.operator == "SkipSimplifiedLayerNormalization";
    let x = sum(builder, node, if is_simple { &[0, 1, 3] } else { &[0, 1, 4] })?;
    let epsilon = node.float("epsilon", 1e-12)?;
    let scale = node.constant(2, "gamma")?.clone();
    let y = if is_simple {
        let y = normalise::of_unit_square(builder, node, &x, &[x.rank() - 1], epsilon)?;
        binary::of_two_operands(builder, node, "Mul", &y, scale)?
    } else {
        let proto =
            NodeProto { attribute: vec![attribute::float("epsilon", epsilon)], ..NodeProto::default() };
        let inputs = vec![Some(x.clone().into()), Some(scale.into()), node.input(3).cloned()];
        normalise::layer_norm(
            builder,
            &Node { proto: &proto, operator: "LayerNormalization", inputs, ..*node },
        )?
    };
    // The second and the third have no name.
    Ok([y, x.clone(), x.clone(), x].map(Value::Tensor).into())
}

/// The sum of the operands with these numbers. All but the first, a tensor, may be absent.
fn sum(builder: &mut Builder, node: &Node, operands: &[usize]) -> Result<Tensor, Fault> {
    let mut sum = node.tensor(0)?.clone();
    for added in operands.iter().skip(1).filter_map(|operand| node.input(*operand)) {
        sum = binary::of_two_operands(builder, node, "Add", &sum, added.clone())?;
    }
    Ok(sum)
}

/// An activation of this name, as ONNX has it, with these attributes.
fn function<'n>(
    node: &Node,
    activation: &str,
    given: impl Iterator<Item = (&'n str, f32)>,
) -> Result<Function, Fault> {
    let attribute = given.map(|(name, value)| attribute::float(name, value)).collect();
    let proto = NodeProto { attribute, ..NodeProto::default() };
    let node = Node {
        proto: &proto,
        operator: activation,
        index: node.index,
        opset: node.opset,
        inputs: Vec::new(),
    };
    element_wise::of_node(&node)
}

/// A factor with its last two dimensions swapped, if the first attribute says so. If the second does, its first dimension
/// comes last but one before that.
fn transposed(
    builder: &mut Builder,
    node: &Node,
    operand: usize,
    [matrix, batch]: [&str; 2],
) -> Result<Value, Fault> {
    let Some(value) = node.input(operand) else { return fault!("operand {operand} is missing") };
    let rank = match value {
        Value::Tensor(tensor) => tensor.rank(),
        Value::Constant(constant) => constant.dims.len(),
    };
    let mut perm: Vec<usize> = (0..rank).collect();
    if node.flag(batch, false)? && rank > 1 {
        perm[..rank - 1].rotate_left(1);
    }
    // A vector stays.
    if node.flag(matrix, false)? && rank > 1 {
        perm.swap(rank - 2, rank - 1);
    }
    if perm.is_sorted() {
        return Ok(value.clone());
    }
    Ok(match value {
        Value::Tensor(tensor) => builder.transpose(node, tensor, perm)?.into(),
        Value::Constant(constant) => constant.transposed(&perm)?.into(),
    })
}
