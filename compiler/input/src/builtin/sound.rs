//! Networks that listen.

use csdfc_plan::operator::Function;

use super::builder::{Builder, BuilderError, ConvOptions, Padding, flatten};
use csdfc_network::{Network, Operand};

/// MLPerf Tiny's streaming wake word, by its model of 8-bit integers: 30 rows of 40 features, one each 32 ms. Windows see
/// rows of time, without padding, and the last of them makes one row of 30.
pub(super) fn wake_word() -> Result<Network, BuilderError> {
    let mut b = Builder::new(21);
    let mut x = b.input("features", [1, 40, 30, 1])?;
    for (place, kernel, filters) in [(1, 3, 128), (2, 5, 128), (3, 10, 128), (4, 15, 32)] {
        let channels = x.shape.channels();
        x = over_time(&mut b, &format!("depthwise{place}"), &x, channels, kernel, channels)?;
        x = over_time(&mut b, &format!("pointwise{place}"), &x, filters, 1, 1)?;
        x = b.named(format!("relu{place}")).activation(&x, Function::Relu)?;
    }
    let x = b.named("dense").gemm(&flatten(&x), 3, true)?;
    let x = b.named("softmax").softmax(&x)?;
    b.output("scores", &x)?;
    Ok(b.finish())
}

/// A convolution over `kernel` rows.
fn over_time(
    b: &mut Builder,
    name: &str,
    x: &Operand,
    filters: usize,
    kernel: usize,
    groups: usize,
) -> Result<Operand, BuilderError> {
    let options = ConvOptions { pads: Padding::Valid, groups, bias: true, ..ConvOptions::default() };
    b.named(name).conv(x, filters, [kernel, 1], options)
}

/// The voice activity of RNNoise (Valin, 2018): 42 features of 10 ms of sound go through a dense layer of 24 units and a
/// gated recurrent unit of 24, whose state goes out as `next_state` and comes in as `state`.
pub(super) fn voice_activity() -> Result<Network, BuilderError> {
    let mut b = Builder::new(22);
    let features = b.input("features", [1, 42])?;
    let state = b.input("state", [1, UNITS])?;
    let x = b.named("dense").gemm(&features, UNITS, true)?;
    let x = b.named("tanh").activation(&x, Function::Tanh)?;
    let update = sum_of_products(&mut b, "update", &x, &state)?;
    let update = b.named("update_gate").activation(&update, Function::Sigmoid)?;
    let reset = sum_of_products(&mut b, "reset", &x, &state)?;
    let reset = b.named("reset_gate").activation(&reset, Function::Sigmoid)?;
    let kept = b.named("kept").mul(&reset, &state)?;
    let fresh = sum_of_products(&mut b, "fresh", &x, &kept)?;
    let fresh = b.named("fresh_tanh").activation(&fresh, Function::Tanh)?;
    // (1 - update) * fresh + update * state
    let change = b.named("change").sub(&state, &fresh)?;
    let change = b.named("changed").mul(&update, &change)?;
    let next = b.named("next").add(&fresh, &change)?;
    let y = b.named("vad").gemm(&next, 1, true)?;
    let y = b.named("vad_sigmoid").activation(&y, Function::Sigmoid)?;
    b.output("voice", &y)?;
    b.output("next_state", &next)?;
    Ok(b.finish())
}

/// Units of the dense and of the recurrent layer of [`voice_activity`].
const UNITS: usize = 24;

/// What goes into a gate: W x + U h + b.
fn sum_of_products(b: &mut Builder, gate: &str, x: &Operand, h: &Operand) -> Result<Operand, BuilderError> {
    let of_x = b.named(format!("{gate}_x")).gemm(x, UNITS, true)?;
    let of_h = b.named(format!("{gate}_h")).gemm(h, UNITS, false)?;
    b.named(format!("{gate}_sum")).add(&of_x, &of_h)
}
