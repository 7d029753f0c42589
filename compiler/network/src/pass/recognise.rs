//! Activations spelled out in several layers become one.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use csdfc_plan::operator::{BinaryFunction, ElementWise, Function, Operator};
use csdfc_plan::shape::Shape;

use super::rewrite::Rewrite;
use crate::{Layer, LayerId, Network, Operand};

/// Finds trees of element-wise layers that spell out HardSigmoid, HardSwish, Swish, Mish or Gelu, and whose inner
/// tensors nothing else reads. Replaces each of them by one layer, which takes the name of the first layer of the tree.
pub(super) fn activations(network: Network) -> Network {
    let mut rewrite = Rewrite::new(network);
    for id in rewrite.network.ids() {
        rewrite.visit(id);
        let Some((function, x)) = Tree { rewrite: &rewrite, root: id }.activation() else { continue };
        let inner = inner_layers(&rewrite.network, id, x);
        let mut nodes = Vec::new();
        for inner in &inner {
            nodes.append(&mut rewrite.network.layers[inner.0].onnx_nodes);
        }
        // `id` itself is among them, so there is a first layer. `id` disappears if it is not the first.
        let name = inner.first().map(|first| rewrite.network.layer(*first).name.clone());
        let layer = &mut rewrite.network.layers[id.0];
        layer.name = name.unwrap_or_else(|| layer.name.clone());
        layer.onnx_nodes = nodes;
        layer.operator = Operator::ElementWise(ElementWise { function });
        layer.inputs = vec![Operand { layer: x, shape: layer.shape.clone() }];
        layer.parameters.clear();
    }
    rewrite.finish()
}

/// The layers between `x` and `root`, and `root`, in topological order.
fn inner_layers(network: &Network, root: LayerId, x: LayerId) -> Vec<LayerId> {
    let (mut inner, mut next) = (Vec::new(), vec![root]);
    while let Some(id) = next.pop() {
        inner.push(id);
        next.extend(network.layer(id).inputs.iter().map(|operand| operand.layer).filter(|id| *id != x));
    }
    inner.sort_unstable();
    inner
}

/// A tree of element-wise layers, read from its root towards the inputs.
struct Tree<'a> {
    rewrite: &'a Rewrite,
    root: LayerId,
}

/// A product of a constant and some tensors.
struct Product {
    constant: f64,
    factors: Vec<LayerId>,
}

/// Layers and factors of a product beyond which it is no activation's.
const MAX_STEPS: usize = 16;

impl Tree<'_> {
    /// The activation that the tree computes, and its input.
    fn activation(&self) -> Option<(Function, LayerId)> {
        let layer = self.rewrite.network.layer(self.root);
        // Every spelling ends in a multiplication or division.
        let Operator::Binary(binary) = &layer.operator else { return None };
        if !matches!(binary.function, BinaryFunction::Mul | BinaryFunction::Div) {
            return None;
        }
        let product = self.product(self.root)?;
        match product.factors.as_slice() {
            [gate] if near(product.constant, 1.0 / 6.0) => {
                let x = self.clipped(*gate)?;
                Some((hard_sigmoid(), x))
            }
            [a, b] => self.gated(product.constant, *a, *b).or_else(|| self.gated(product.constant, *b, *a)),
            _ => None,
        }
    }

    /// `constant · x · gate(x)`.
    fn gated(&self, constant: f64, x: LayerId, gate: LayerId) -> Option<(Function, LayerId)> {
        if !self.same_shape(x) {
            return None;
        }
        let function = if near(constant, 1.0) {
            match self.function(gate)? {
                (Function::Sigmoid, of) if of == x => Function::Swish,
                (function, of) if of == x && is_hard_sigmoid(function) => Function::HardSwish,
                (Function::Tanh, of) if self.function(of) == Some((&Function::Softplus, x)) => Function::Mish,
                _ => return None,
            }
        } else if near(constant, 1.0 / 6.0) && self.clipped(gate) == Some(x) {
            Function::HardSwish
        } else if near(constant, 0.5) {
            match self.function(self.plus(gate, 1.0)?)? {
                (Function::Erf, of) if self.is_product(of, FRAC_1_SQRT_2, &[x]) => {
                    Function::Gelu { tanh: false }
                }
                (Function::Tanh, of) if self.is_gelu_argument(of, x) => Function::Gelu { tanh: true },
                _ => return None,
            }
        } else {
            return None;
        };
        Some((function, x))
    }

    /// `√(2/π)·(x + 0.044715·x³)`, or with x taken out of the parentheses.
    fn is_gelu_argument(&self, id: LayerId, x: LayerId) -> bool {
        const CUBIC: f64 = 0.044715;
        let Some(product) = self.product(id) else { return false };
        let inside = match product.factors[..] {
            [sum] => self.operands(sum, BinaryFunction::Add).is_some_and(|[a, b]| {
                let cube = if a == x { b } else { a };
                (a == x || b == x) && self.is_power(cube, CUBIC, x, 3)
            }),
            [a, b] => {
                let sum = if a == x { b } else { a };
                (a == x || b == x) && self.plus(sum, 1.0).is_some_and(|s| self.is_power(s, CUBIC, x, 2))
            }
            _ => false,
        };
        inside && near(product.constant, FRAC_2_SQRT_PI * FRAC_1_SQRT_2)
    }

    /// `constant · x^exponent`, as a power or as a product.
    fn is_power(&self, id: LayerId, constant: f64, x: LayerId, exponent: usize) -> bool {
        let Some(product) = self.product(id) else { return false };
        let power = match product.factors.as_slice() {
            &[power] => self
                .constant(power, BinaryFunction::Pow)
                .is_some_and(|(of, value, left)| of == x && !left && near(value, exponent as f64)),
            factors => factors.len() == exponent && factors.iter().all(|factor| *factor == x),
        };
        power && near(product.constant, constant)
    }

    /// x of `clip(x + 3, 0, 6)`.
    fn clipped(&self, id: LayerId) -> Option<LayerId> {
        let below_six = |id| match self.constant(id, BinaryFunction::Min) {
            Some((of, value, _)) if near(value, 6.0) => Some(of),
            _ => match self.function(id)? {
                (Function::Clip { min: None, max: Some(6.0) }, of) => Some(of),
                _ => None,
            },
        };
        let relu6 = match self.function(id) {
            Some((Function::Clip { min: Some(0.0), max: Some(6.0) }, of)) => of,
            _ => match self.function(below_six(id)?)? {
                (Function::Relu, of) => of,
                _ => return None,
            },
        };
        let x = self.plus(relu6, 3.0)?;
        self.same_shape(x).then_some(x)
    }

    fn is_product(&self, id: LayerId, constant: f64, factors: &[LayerId]) -> bool {
        self.product(id).is_some_and(|product| near(product.constant, constant) && product.factors == factors)
    }

    /// The layer's tensor as a product, taken apart as far as its inner tensors go.
    fn product(&self, id: LayerId) -> Option<Product> {
        let mut product = Product { constant: 1.0, factors: Vec::new() };
        let mut next = vec![id];
        // Each turn takes a multiplication apart or finds a factor.
        for _ in 0..MAX_STEPS {
            let Some(id) = next.pop() else { return Some(product) };
            if let Some([a, b]) = self.operands(id, BinaryFunction::Mul) {
                next.extend([a, b]);
            } else if let Some((of, value, _)) = self.constant(id, BinaryFunction::Mul) {
                product.constant *= value;
                next.push(of);
            } else if let Some((of, value, false)) = self.constant(id, BinaryFunction::Div) {
                product.constant /= value;
                next.push(of);
            } else {
                product.factors.push(id);
            }
        }
        None
    }

    /// The tensor to which this layer adds this constant.
    fn plus(&self, id: LayerId, constant: f64) -> Option<LayerId> {
        let (of, value, _) = self.constant(id, BinaryFunction::Add)?;
        near(value, constant).then_some(of)
    }

    /// Function and input of an inner layer.
    fn function(&self, id: LayerId) -> Option<(&Function, LayerId)> {
        match &self.inner(id)?.operator {
            Operator::ElementWise(element_wise) => {
                Some((&element_wise.function, self.inner(id)?.inputs.first()?.layer))
            }
            _ => None,
        }
    }

    /// The two inputs of an inner layer with this function.
    fn operands(&self, id: LayerId, function: BinaryFunction) -> Option<[LayerId; 2]> {
        let layer = self.inner(id)?;
        match (&layer.operator, layer.inputs.as_slice()) {
            (Operator::Binary(binary), [a, b]) if binary.function == function => Some([a.layer, b.layer]),
            _ => None,
        }
    }

    /// For an inner layer with this function: its input, its scalar constant, and whether the constant is on the left.
    fn constant(&self, id: LayerId, function: BinaryFunction) -> Option<(LayerId, f64, bool)> {
        let layer = self.inner(id)?;
        let Operator::Binary(binary) = &layer.operator else { return None };
        let constant = binary.constant.as_ref().filter(|_| binary.function == function)?;
        let weights = layer.parameters.first().filter(|weights| weights.elements() == 1)?;
        let value = weights.values().ok()?.first().copied()?;
        Some((layer.inputs.first()?.layer, f64::from(value), constant.left))
    }

    /// The layer, if it works on whole tensors of the root's shape, and if it is the root or only the tree reads it.
    fn inner(&self, id: LayerId) -> Option<&Layer> {
        let layer = self.rewrite.network.layer(id);
        let shape = self.shape();
        let fits = (id == self.root || self.rewrite.read_once(id))
            && layer.operator.activation().is_none()
            && layer.shape == *shape
            && layer.inputs.iter().all(|operand| operand.shape == *shape && self.same_shape(operand.layer));
        fits.then_some(layer)
    }

    fn same_shape(&self, id: LayerId) -> bool {
        self.rewrite.network.layer(id).shape == *self.shape()
    }

    fn shape(&self) -> &Shape {
        &self.rewrite.network.layer(self.root).shape
    }
}

fn hard_sigmoid() -> Function {
    Function::HardSigmoid { alpha: 1.0 / 6.0, beta: 0.5 }
}

fn is_hard_sigmoid(function: &Function) -> bool {
    matches!(function, Function::HardSigmoid { alpha, beta }
        if near(f64::from(*alpha), 1.0 / 6.0) && near(f64::from(*beta), 0.5))
}

/// Models print their constants with six digits or more.
fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= 1e-5 * expected.abs()
}
