//! Fourier transforms, as products with constant matrices.

use std::f64::consts::TAU;

use csdfc_plan::operator::{Conv, Operator};

use super::parts::{dims, part, reshaped, tensor, transposed};
use crate::import::builder::Builder;
use crate::import::constant::Constant;
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, Value, axis};
use csdfc_network::weights::Weights;

/// The most elements of a matrix of a transform.
const MAX_MATRIX: usize = 1 << 24;

/// cos and sin of −2π·k·t / n.
fn turned(k: usize, t: usize, n: usize) -> [f64; 2] {
    let angle = -TAU * ((k as u128 * t as u128) % n as u128) as f64 / n as f64;
    [angle.cos(), angle.sin()]
}

/// How many frequencies of a transform of `n` elements there are: those of a real signal up to half of them, or all.
fn frequencies(n: usize, onesided: bool) -> usize {
    if onesided { n / 2 + 1 } else { n }
}

fn size(elements: [usize; 2]) -> Result<usize, Fault> {
    match elements[0].checked_mul(elements[1]) {
        Some(size) if size <= MAX_MATRIX => Ok(size),
        _ => fault!("a transform of {} by {} elements is too large", elements[0], elements[1]),
    }
}

/// `DFT`: a product with a matrix of cosines and sines.
pub(super) fn dft(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = Value::from(node.tensor(0)?.clone());
    let own = dims(&x).to_vec();
    let Some((&parts @ (1 | 2), signal)) = own.split_last() else {
        return fault!("the last of its dimensions {own:?} is neither 1 nor 2");
    };
    let along = match node.opset {
        20.. => node.optional(2, "axis")?.map_or(Ok(-2), Constant::scalar_int)?,
        _ => node.int("axis", 1)?,
    };
    let along = axis(along, own.len())?;
    if along >= signal.len() {
        return fault!("it transforms the last of its dimensions {own:?}");
    }
    let (inverse, onesided) = (node.flag("inverse", false)?, node.flag("onesided", false)?);
    // Half of the frequencies become a real signal.
    let is_real = inverse && onesided;
    let given = own[along];
    let n = match node.optional(1, "length")? {
        Some(length) => usize::try_from(length.scalar_int()?).unwrap_or(0),
        None if is_real => 2 * (given - 1),
        None => given,
    };
    if n == 0 {
        return fault!("its length is not above 0");
    }
    let made = if is_real { n } else { frequencies(n, onesided) };
    let made_parts = if is_real { 1 } else { 2 };
    let elements = size([given * parts, made * made_parts])?;
    builder.charge(elements)?;
    let element = |at: usize| {
        let (from, to) = (at / (made * made_parts), at % (made * made_parts));
        let (t, k) = (from / parts, to / made_parts);
        let [cosine, sine] = turned(k, t % n, n);
        let sine = if inverse { -sine } else { sine };
        let scale = match () {
            // What is beyond the length is cut off.
            () if t >= n || (is_real && t > n / 2) => 0.0,
            // Each frequency stands for its negative, too, but the first and the one in the middle.
            () if is_real && t != 0 && 2 * t != n => 2.0 / n as f64,
            () if inverse => 1.0 / n as f64,
            () => 1.0,
        };
        let value = match (from % parts, to % made_parts) {
            (0, 0) | (1, 1) => cosine,
            (0, _) => sine,
            _ => -sine,
        };
        (value * scale) as f32
    };
    let matrix = Constant::floats([given * parts, made * made_parts], (0..elements).map(element).collect());
    // The signal's dimension before the last.
    let mut perm: Vec<usize> = (0..own.len()).collect();
    perm.swap(along, signal.len() - 1);
    let x = transposed(builder, node, &x, perm.clone())?;
    let mut outer = dims(&x).to_vec();
    outer.truncate(signal.len() - 1);
    let x = reshaped(builder, node, &x, [&outer[..], &[given * parts]].concat())?;
    let y = part(builder, node, "MatMul", [x, matrix.into()])?;
    let y = reshaped(builder, node, &y, [&outer[..], &[made, made_parts]].concat())?;
    tensor(transposed(builder, node, &y, perm)?)
}

/// `STFT` of a real signal: a convolution whose filters are cosines and sines, times the window.
pub(super) fn stft(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let length = match *x.dims() {
        [1, length] | [1, length, 1] => length,
        _ => return fault!("its signal is {}; csdfc takes one real signal", x.operand.shape),
    };
    let step = usize::try_from(node.constant(1, "step")?.scalar_int()?).unwrap_or(0);
    let window = node.optional(2, "window")?.map(Constant::to_floats).transpose()?;
    let n = match (node.optional(3, "length of frames")?, &window) {
        (Some(n), _) => usize::try_from(n.scalar_int()?).unwrap_or(0),
        (None, Some(window)) => window.len(),
        (None, None) => return fault!("it has neither a window nor a length of frames"),
    };
    if step == 0 || n == 0 || n > length || window.as_ref().is_some_and(|window| window.len() != n) {
        return fault!("it takes frames of {n}, {step} apart, of a signal of {length}");
    }
    let bins = frequencies(n, node.flag("onesided", true)?);
    let elements = size([2 * bins, n])?;
    builder.charge(elements)?;
    let weight = |at: usize| {
        let (filter, t) = (at / n, at % n);
        let factor = window.as_ref().map_or(1.0, |window| f64::from(window[t]));
        (turned(filter % bins, t, n)[filter / bins] * factor) as f32
    };
    let weights = Weights::new([2 * bins, 1, 1, n], (0..elements).map(weight).collect::<Vec<_>>());
    let (stride, dilation, pads) = ([1, step], [1, 1], [0; 4]);
    let conv = Conv {
        filters: 2 * bins,
        kernel: [1, n],
        stride,
        dilation,
        pads,
        groups: 1,
        bias: false,
        pre: None,
        residual: false,
        activation: None,
    };
    let signal = builder.reshape(node, x, vec![1, 1, 1, length])?;
    let made = builder.layer(node, Operator::Conv(conv), &[&signal], vec![weights])?;
    let frames = made.dims()[3];
    let made = builder.reshape(node, &made, vec![1, 2, bins, frames])?;
    builder.transpose(node, &made, vec![0, 3, 2, 1])
}
