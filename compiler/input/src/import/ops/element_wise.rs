//! Functions of each element.

use csdfc_plan::operator::{ElementWise, Function, Operator};

use super::binary;
use super::parts::{number, part, tensor};
use crate::import::builder::Builder;
use crate::import::constant::Constant;
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, Value};

/// An operator that is a [`Function`] with attributes alone.
pub(in crate::import) fn function(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let function = of_node(node)?;
    layer(builder, node, node.tensor(0)?, function)
}

/// `Clip`, its bounds attributes before opset 11 and operands since.
pub(super) fn clip(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    if node.inputs.iter().skip(1).flatten().any(|bound| matches!(bound, Value::Tensor(_))) {
        return clip_to_tensors(builder, node);
    }
    let [min, max] = clip_bounds(node)?;
    layer(builder, node, node.tensor(0)?, Function::Clip { min, max })
}

/// `Clip` to bounds that the network computes: `Max` and `Min`. If the bounds cross, the upper one counts.
fn clip_to_tensors(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let Some(mut x) = node.input(0).cloned() else { return fault!("operand 0 is missing") };
    for (index, function) in [(1, "Max"), (2, "Min")] {
        if let Some(bound) = node.input(index) {
            x = part(builder, node, function, [x, bound.clone()])?;
        }
    }
    tensor(x)
}

/// `Celu`: `alpha · elu(x / alpha)`.
pub(super) fn celu(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let (x, alpha) = (node.tensor(0)?, node.float("alpha", 1.0)?);
    if alpha == 1.0 {
        return layer(builder, node, x, Function::Elu { alpha });
    }
    let scaled = part(builder, node, "Div", [x.clone().into(), number(alpha)])?;
    let elu = part(builder, node, "Elu", [scaled])?;
    tensor(part(builder, node, "Mul", [elu, number(alpha)])?)
}

/// `Shrink`: nearer to 0 by `bias`, and 0 from `−lambd` to `lambd`.
pub(super) fn shrink(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = Value::from(node.tensor(0)?.clone());
    let (bias, lambd) = (node.float("bias", 0.0)?, node.float("lambd", 0.5)?);
    let mut result = number(0.0);
    for (comparison, limit, moved) in [("Less", -lambd, -bias), ("Greater", lambd, bias)] {
        let is_beyond = part(builder, node, comparison, [x.clone(), number(limit)])?;
        let moved = part(builder, node, "Sub", [x.clone(), number(moved)])?;
        result = part(builder, node, "Where", [is_beyond, moved, result])?;
    }
    tensor(result)
}

/// `Swish`, which is a function of its own if its `alpha` is 1, else `x · sigmoid(alpha · x)`.
pub(super) fn swish(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let (x, alpha) = (node.tensor(0)?, node.float("alpha", 1.0)?);
    if alpha == 1.0 {
        return layer(builder, node, x, Function::Swish);
    }
    gated(builder, node, x, alpha)
}

/// `x · sigmoid(alpha · x)`.
pub(super) fn gated(builder: &mut Builder, node: &Node, x: &Tensor, alpha: f32) -> Result<Tensor, Fault> {
    let scaled = binary::of_two_operands(builder, node, "Mul", x, Constant::floats([], vec![alpha]))?;
    let gate = layer(builder, node, &scaled, Function::Sigmoid)?;
    binary::of_two_operands(builder, node, "Mul", x, gate)
}

/// `PRelu`. If the network computes the slopes, each negative element is multiplied by its slope, and the others are taken as
/// they are.
pub(super) fn p_relu(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    if let (Some(x), Some(slope @ Value::Tensor(_))) = (node.input(0), node.input(1)) {
        let sloped = part(builder, node, "Mul", [x.clone(), slope.clone()])?;
        let is_below = part(builder, node, "Less", [x.clone(), number(0.0)])?;
        return tensor(part(builder, node, "Where", [is_below, sloped, x.clone()])?);
    }
    let slope = node.constant(1, "slope")?.weights()?;
    let operator =
        Operator::ElementWise(ElementWise { function: Function::PRelu { slope: slope.dims.clone() } });
    builder.layer(node, operator, &[node.tensor(0)?], vec![slope])
}

/// Lower and upper bound of a `Clip`. A bound that limits nothing is `None`.
pub(in crate::import) fn clip_bounds(node: &Node) -> Result<[Option<f32>; 2], Fault> {
    let mut bounds = [None, None];
    for (i, (bound, name)) in bounds.iter_mut().zip(["min", "max"]).enumerate() {
        let value = if node.opset < 11 {
            if node.has(name) { Some(node.float(name, 0.0)?) } else { None }
        } else {
            node.optional(i + 1, name)?.map(|constant| constant.scalar()).transpose()?
        };
        if value.is_some_and(f32::is_nan) {
            return fault!("its {name} is not a number");
        }
        let unbounded = if i == 0 { f32::MIN } else { f32::MAX };
        *bound = value.filter(|value| value.is_finite() && *value != unbounded);
        // −∞ as the upper bound, or ∞ as the lower bound, excludes every number.
        if value == Some(if i == 0 { f32::INFINITY } else { f32::NEG_INFINITY }) {
            return fault!("its {name} is infinite");
        }
    }
    Ok(bounds)
}

/// The function of a node that needs no operand but the first.
pub(in crate::import) fn of_node(node: &Node) -> Result<Function, Fault> {
    Ok(match node.operator {
        "Abs" => Function::Abs,
        "Ceil" => Function::Ceil,
        "Cos" => Function::Cos,
        "Elu" => Function::Elu { alpha: node.float("alpha", 1.0)? },
        "Erf" => Function::Erf,
        "Exp" => Function::Exp,
        "Floor" => Function::Floor,
        "Gelu" => match node.text("approximate", "none")? {
            "none" => Function::Gelu { tanh: false },
            "tanh" => Function::Gelu { tanh: true },
            other => return fault!("approximate {other} is unknown"),
        },
        "HardSigmoid" => {
            Function::HardSigmoid { alpha: node.float("alpha", 0.2)?, beta: node.float("beta", 0.5)? }
        }
        "HardSwish" => Function::HardSwish,
        "LeakyRelu" => Function::LeakyRelu { alpha: node.float("alpha", 0.01)? },
        "Log" => Function::Log,
        "Mish" => Function::Mish,
        "Neg" => Function::Neg,
        "Reciprocal" => Function::Reciprocal,
        "Relu" => Function::Relu,
        "Round" => Function::Round,
        "Selu" => Function::Selu {
            alpha: node.float("alpha", 1.673_263_2)?,
            gamma: node.float("gamma", 1.050_701)?,
        },
        "Sigmoid" => Function::Sigmoid,
        "Sign" => Function::Sign,
        "Sin" => Function::Sin,
        "Softplus" => Function::Softplus,
        "Softsign" => Function::Softsign,
        "Sqrt" => Function::Sqrt,
        "Tanh" => Function::Tanh,
        "ThresholdedRelu" => Function::ThresholdedRelu { alpha: node.float("alpha", 1.0)? },
        other => return fault!("{other} is no function of each element"),
    })
}

/// A function of each element of a tensor.
pub(super) fn layer(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    function: Function,
) -> Result<Tensor, Fault> {
    builder.layer(node, Operator::ElementWise(ElementWise { function }), &[x], Vec::new())
}
