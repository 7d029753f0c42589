//! Trigonometric and hyperbolic functions and their inverses, as the functions that csdfc has.

use std::f32::consts::FRAC_PI_2;

use super::parts::{number, part, tensor};
use crate::import::builder::Builder;
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, Value};

/// Coefficients of the even powers in arctan(t) / t for t from 0 to 1, to 2·10⁻⁸ (Abramowitz and Stegun, 4.4.49).
const ARC_TANGENT: [f32; 9] = [
    1.0,
    -0.333_331_47,
    0.199_935_51,
    -0.142_089,
    0.106_562_64,
    -0.075_289_64,
    0.042_909_615,
    -0.016_165_737,
    0.002_866_225_8,
];

/// `Tan`: the sine over the cosine.
pub(super) fn tangent(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = Value::from(node.tensor(0)?.clone());
    let sine = part(builder, node, "Sin", [x.clone()])?;
    let cosine = part(builder, node, "Cos", [x])?;
    tensor(part(builder, node, "Div", [sine, cosine])?)
}

/// `Cosh`: the mean of eˣ and e⁻ˣ.
pub(super) fn hyperbolic_cosine(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = Value::from(node.tensor(0)?.clone());
    let up = part(builder, node, "Exp", [x.clone()])?;
    let down = part(builder, node, "Neg", [x])?;
    let down = part(builder, node, "Exp", [down])?;
    let sum = part(builder, node, "Add", [up, down])?;
    tensor(part(builder, node, "Mul", [sum, number(0.5)])?)
}

/// `Sinh`: tanh x · cosh x, which is exact near 0, where a difference of powers is not.
pub(super) fn hyperbolic_sine(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = Value::from(node.tensor(0)?.clone());
    let cosine = hyperbolic_cosine(builder, node)?;
    let tangent = part(builder, node, "Tanh", [x])?;
    tensor(part(builder, node, "Mul", [cosine.into(), tangent])?)
}

/// `Acos`, `Acosh`, `Asin`, `Asinh`, `Atan` and `Atanh`.
pub(super) fn inverse(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = Value::from(node.tensor(0)?.clone());
    let mut of = |operator: &str, inputs: [Value; 2]| part(builder, node, operator, inputs);
    let made = match node.operator {
        "Atan" => arc_tangent(builder, node, x)?,
        // The tangent is x over √(1 − x²), which is 0 at the ends.
        "Asin" => {
            let square = of("Mul", [x.clone(), x.clone()])?;
            let rest = of("Sub", [number(1.0), square])?;
            let cosine = part(builder, node, "Sqrt", [rest])?;
            let tangent = part(builder, node, "Div", [x, cosine])?;
            arc_tangent(builder, node, tangent)?
        }
        // The tangent of half of it is √((1 − x) / (1 + x)).
        "Acos" => {
            let below = of("Sub", [number(1.0), x.clone()])?;
            let above = of("Add", [x, number(1.0)])?;
            let ratio = of("Div", [below, above])?;
            let tangent = part(builder, node, "Sqrt", [ratio])?;
            let half = arc_tangent(builder, node, tangent)?;
            part(builder, node, "Mul", [half, number(2.0)])?
        }
        // ln(|x| + √(x² + 1)), with the sign of x.
        "Asinh" => {
            let square = of("Mul", [x.clone(), x.clone()])?;
            let square = of("Add", [square, number(1.0)])?;
            let root = part(builder, node, "Sqrt", [square])?;
            let size = part(builder, node, "Abs", [x.clone()])?;
            let sum = part(builder, node, "Add", [size, root])?;
            let size = part(builder, node, "Log", [sum])?;
            let sign = part(builder, node, "Sign", [x])?;
            part(builder, node, "Mul", [size, sign])?
        }
        // ln(x + √(x − 1) · √(x + 1)).
        "Acosh" => {
            let [below, above] = [-1.0, 1.0].map(|by| of("Add", [x.clone(), number(by)]));
            let below = part(builder, node, "Sqrt", [below?])?;
            let above = part(builder, node, "Sqrt", [above?])?;
            let root = part(builder, node, "Mul", [below, above])?;
            let sum = part(builder, node, "Add", [x, root])?;
            part(builder, node, "Log", [sum])?
        }
        // Half of ln((1 + x) / (1 − x)).
        "Atanh" => {
            let above = of("Add", [x.clone(), number(1.0)])?;
            let below = of("Sub", [number(1.0), x])?;
            let ratio = of("Div", [above, below])?;
            let twice = part(builder, node, "Log", [ratio])?;
            part(builder, node, "Mul", [twice, number(0.5)])?
        }
        other => return fault!("{other} is no inverse function"),
    };
    tensor(made)
}

/// The angle of a tangent: that of its reciprocal, from π/2 down, where it is above 1.
fn arc_tangent(builder: &mut Builder, node: &Node, x: Value) -> Result<Value, Fault> {
    let size = part(builder, node, "Abs", [x.clone()])?;
    let low = part(builder, node, "Min", [size.clone(), number(1.0)])?;
    let high = part(builder, node, "Max", [size.clone(), number(1.0)])?;
    let t = part(builder, node, "Div", [low, high])?;
    let square = part(builder, node, "Mul", [t.clone(), t.clone()])?;
    let [first, .., last] = ARC_TANGENT;
    let mut sum = part(builder, node, "Mul", [square.clone(), number(last)])?;
    for coefficient in ARC_TANGENT[1..ARC_TANGENT.len() - 1].iter().rev() {
        sum = part(builder, node, "Add", [sum, number(*coefficient)])?;
        sum = part(builder, node, "Mul", [sum, square.clone()])?;
    }
    sum = part(builder, node, "Add", [sum, number(first)])?;
    let angle = part(builder, node, "Mul", [sum, t])?;
    let other = part(builder, node, "Sub", [number(FRAC_PI_2), angle.clone()])?;
    let is_above = part(builder, node, "Greater", [size, number(1.0)])?;
    let angle = part(builder, node, "Where", [is_above, other, angle])?;
    let sign = part(builder, node, "Sign", [x])?;
    part(builder, node, "Mul", [angle, sign])
}
