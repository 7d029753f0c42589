//! The small networks by which Minakova and Stefanov (2022) explain their method.

use csdfc_plan::operator::Function;

use super::blocks::square;
use super::builder::{Builder, BuilderError, Padding, flatten};
use csdfc_network::Network;

/// CNN1 of the example application (section 2.3).
pub(super) fn cnn1() -> Result<Network, BuilderError> {
    let mut b = Builder::new(21);
    let l1 = b.input("l1", [1, 3, 32, 32])?;
    let l2 = square(8, 5).bias().conv(&mut b, "l2", &l1)?;
    let l3 = square(8, 5).bias().conv(&mut b, "l3", &l2)?;
    let l4 = b.named("l4").concat(&[&l3, &l2])?;
    let l5 = b.named("l5").activation(&l4, Function::Relu)?;
    b.output("l5", &l5)?;
    Ok(b.finish())
}

/// CNN2 of the example application (section 2.3).
pub(super) fn cnn2() -> Result<Network, BuilderError> {
    let mut b = Builder::new(22);
    let l1 = b.input("l1", [1, 3, 32, 32])?;
    let l2 = square(8, 5).bias().pads(Padding::Valid).conv(&mut b, "l2", &l1)?;
    let l3 = b.named("l3").gemm(&flatten(&l2), 10, true)?;
    let l4 = b.named("l4").softmax(&l3)?;
    b.output("l4", &l4)?;
    Ok(b.finish())
}

/// The input and convolution that section 2.5 processes by parts.
pub(super) fn pair() -> Result<Network, BuilderError> {
    let mut b = Builder::new(23);
    let l1 = b.input("l1", [1, 3, 32, 32])?;
    let l2 = square(8, 5).bias().conv(&mut b, "l2", &l1)?;
    b.output("l2", &l2)?;
    Ok(b.finish())
}
