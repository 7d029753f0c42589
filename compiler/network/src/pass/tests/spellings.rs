//! Activations as exporters spell them out.

use csdfc_plan::operator::BinaryFunction::{Add, Div, Min, Mul, Pow};
use csdfc_plan::operator::{ElementWise, Function, Operator};

use super::{Builder, Fusion, conv, same, text};
use crate::LayerId;

/// A spelling adds layers after its argument and returns the last.
type Spelling = (fn(&mut Builder, LayerId) -> LayerId, Function);

fn gelu(b: &mut Builder, x: LayerId) -> LayerId {
    let root = b.scalar(Div, x, std::f32::consts::SQRT_2);
    let erf = b.function(Function::Erf, root);
    b.scalar(Add, erf, 1.0)
}

fn gelu_tanh(b: &mut Builder, x: LayerId, cube: LayerId) -> LayerId {
    let cube = b.scalar(Mul, cube, 0.044715);
    let sum = b.binary(Add, x, cube);
    let scaled = b.scalar(Mul, sum, 0.797_884_6);
    let tanh = b.function(Function::Tanh, scaled);
    b.scalar(Add, tanh, 1.0)
}

pub(super) fn relu6(b: &mut Builder, x: LayerId) -> LayerId {
    let sum = b.scalar(Add, x, 3.0);
    b.function(Function::Clip { min: Some(0.0), max: Some(6.0) }, sum)
}

const HARD_SIGMOID: Function = Function::HardSigmoid { alpha: 1.0 / 6.0, beta: 0.5 };

const SPELLINGS: [Spelling; 17] = [
    (
        |b, x| {
            let s = b.function(Function::Sigmoid, x);
            b.binary(Mul, x, s)
        },
        Function::Swish,
    ),
    (
        |b, x| {
            let s = b.function(Function::Sigmoid, x);
            b.binary(Mul, s, x)
        },
        Function::Swish,
    ),
    (
        |b, x| {
            let s = b.function(HARD_SIGMOID, x);
            b.binary(Mul, s, x)
        },
        Function::HardSwish,
    ),
    (
        |b, x| {
            let r = relu6(b, x);
            b.scalar(Div, r, 6.0)
        },
        HARD_SIGMOID,
    ),
    (
        |b, x| {
            let r = relu6(b, x);
            b.scalar(Mul, r, 1.0 / 6.0)
        },
        HARD_SIGMOID,
    ),
    (
        |b, x| {
            let r = relu6(b, x);
            let s = b.scalar(Div, r, 6.0);
            b.binary(Mul, x, s)
        },
        Function::HardSwish,
    ),
    (
        |b, x| {
            let r = relu6(b, x);
            let p = b.binary(Mul, x, r);
            b.scalar(Div, p, 6.0)
        },
        Function::HardSwish,
    ),
    (
        |b, x| {
            let r = relu6(b, x);
            let p = b.binary(Mul, r, x);
            b.scalar(Mul, p, 0.166_666_7)
        },
        Function::HardSwish,
    ),
    (
        |b, x| {
            let s = b.scalar(Mul, x, 1.0 / 6.0);
            let r = relu6(b, x);
            b.binary(Mul, s, r)
        },
        Function::HardSwish,
    ),
    (
        |b, x| {
            let sum = b.scalar(Add, x, 3.0);
            let relu = b.function(Function::Relu, sum);
            let min = b.scalar(Min, relu, 6.0);
            b.scalar(Div, min, 6.0)
        },
        HARD_SIGMOID,
    ),
    (
        |b, x| {
            let soft = b.function(Function::Softplus, x);
            let tanh = b.function(Function::Tanh, soft);
            b.binary(Mul, x, tanh)
        },
        Function::Mish,
    ),
    (
        |b, x| {
            let g = gelu(b, x);
            let p = b.binary(Mul, x, g);
            b.scalar(Mul, p, 0.5)
        },
        Function::Gelu { tanh: false },
    ),
    (
        |b, x| {
            let g = gelu(b, x);
            let h = b.scalar(Mul, x, 0.5);
            b.binary(Mul, h, g)
        },
        Function::Gelu { tanh: false },
    ),
    (
        |b, x| {
            let g = gelu(b, x);
            let h = b.scalar(Div, g, 2.0);
            b.binary(Mul, x, h)
        },
        Function::Gelu { tanh: false },
    ),
    (
        |b, x| {
            let cube = b.scalar(Pow, x, 3.0);
            let gate = gelu_tanh(b, x, cube);
            let half = b.scalar(Mul, x, 0.5);
            b.binary(Mul, half, gate)
        },
        Function::Gelu { tanh: true },
    ),
    (
        |b, x| {
            let square = b.binary(Mul, x, x);
            let cube = b.binary(Mul, x, square);
            let gate = gelu_tanh(b, x, cube);
            let product = b.binary(Mul, gate, x);
            b.scalar(Mul, product, 0.5)
        },
        Function::Gelu { tanh: true },
    ),
    (
        |b, x| {
            let square = b.binary(Mul, x, x);
            let scaled = b.scalar(Mul, square, 0.044715);
            let sum = b.scalar(Add, scaled, 1.0);
            let outer = b.scalar(Mul, x, 0.797_884_6);
            let argument = b.binary(Mul, outer, sum);
            let tanh = b.function(Function::Tanh, argument);
            let gate = b.scalar(Add, tanh, 1.0);
            let half = b.scalar(Mul, x, 0.5);
            b.binary(Mul, half, gate)
        },
        Function::Gelu { tanh: true },
    ),
];

#[test]
fn activations_spelled_out() {
    for (i, (spelling, function)) in SPELLINGS.iter().enumerate() {
        let mut b = Builder::default();
        let x = b.input(&[1, 2, 5, 6]);
        let y = spelling(&mut b, x);
        b.output(y);
        let after = same(&b.0, Fusion::Paper);
        assert_eq!(after.layers.len(), 2, "spelling {i}:\n{}", text(&after));
        let layer = &after.layers[1];
        assert_eq!(layer.operator, Operator::ElementWise(ElementWise { function: function.clone() }));
        assert_eq!((layer.name.as_str(), layer.onnx_nodes.len()), ("1", b.0.layers.len() - 1));

        // After a convolution it goes on into that.
        let mut b = Builder::default();
        let x = b.input(&[1, 2, 5, 6]);
        let x = b.add(conv(2, 1, true), &[x]);
        let y = spelling(&mut b, x);
        b.output(y);
        let after = same(&b.0, Fusion::Paper);
        assert_eq!(after.layers.len(), 2, "spelling {i}:\n{}", text(&after));
        assert_eq!(after.layers[1].operator.activation(), Some(function));

        // Every inner tensor that is an output too keeps the spelling as it is.
        let mut b = Builder::default();
        let x = b.input(&[1, 2, 5, 6]);
        let y = spelling(&mut b, x);
        for id in 1..=y.0 {
            b.output(LayerId(id));
        }
        assert_eq!(text(&same(&b.0, Fusion::Paper)), text(&b.0));
    }
}

#[test]
fn near_misses_stay() {
    let spellings: [fn(&mut Builder, LayerId) -> LayerId; 4] = [
        |b, x| {
            let r = relu6(b, x);
            b.scalar(Div, r, 5.0)
        },
        |b, x| {
            let s = b.scalar(Mul, x, 1.702);
            let s = b.function(Function::Sigmoid, s);
            b.binary(Mul, x, s)
        },
        |b, x| {
            let s = b.function(Function::Sigmoid, x);
            b.binary(Div, x, s)
        },
        |b, x| {
            let g = gelu(b, x);
            b.binary(Mul, x, g)
        },
    ];
    for spelling in spellings {
        let mut b = Builder::default();
        let x = b.input(&[1, 2, 5, 6]);
        let y = spelling(&mut b, x);
        b.output(y);
        let after = same(&b.0, Fusion::Paper);
        let last = after.layers.last().unwrap();
        assert!(matches!(last.operator, Operator::Binary(_)), "{}", text(&after));
    }
}
