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
