//! Networks for the frames of a camera or a video.

use csdfc_network::{Network, Operand};
use csdfc_plan::operator::Function;

use super::blocks::square;
use super::builder::{Builder, BuilderError, PoolWindow};

/// Shi et al., "Real-time single image and video super-resolution" (2016): ESPCN with (f1, n1) = (5, 64), (f2, n2) =
/// (3, 32) and f3 = 3, on 960×540 pixels of three colours, four times larger: 3840×2160.
pub(super) fn espcn() -> Result<Network, BuilderError> {
    let mut b = Builder::new(15);
    let x = b.input("input", [1, 3, 540, 960])?;
    let x = square(64, 5).bias().conv(&mut b, "conv1", &x)?;
    let x = b.named("tanh1").activation(&x, Function::Tanh)?;
    let x = square(32, 3).bias().conv(&mut b, "conv2", &x)?;
    let x = b.named("tanh2").activation(&x, Function::Tanh)?;
    let x = square(3 * 4 * 4, 3).bias().conv(&mut b, "conv3", &x)?;
    let x = b.named("shuffle").pixel_shuffle(&x, 4)?;
    b.output("output", &x)?;
    Ok(b.finish())
}

/// A small network in the form of Ronneberger et al., "U-Net: Convolutional Networks for Biomedical Image Segmentation"
/// (2015), of three levels with 8, 16 and 32 channels and with padding, so that the mask is as large as the image:
/// 2000×1500 pixels of three colours in, and for each pixel a number from 0 to 1 out.
pub(super) fn unet() -> Result<Network, BuilderError> {
    let mut b = Builder::new(23);
    let x = b.input("input", [1, 3, 1500, 2000])?;
    let first = twice(&mut b, "down1", &x, 8)?;
    let x = b.named("pool1").max_pool(&first, PoolWindow::new(2, 2))?;
    let second = twice(&mut b, "down2", &x, 16)?;
    let x = b.named("pool2").max_pool(&second, PoolWindow::new(2, 2))?;
    let x = twice(&mut b, "bottom", &x, 32)?;
    let x = b.named("up2").upscale(&x, 16, 2)?;
    let x = b.named("skip2").concat(&[&second, &x])?;
    let x = twice(&mut b, "merge2", &x, 16)?;
    let x = b.named("up1").upscale(&x, 8, 2)?;
    let x = b.named("skip1").concat(&[&first, &x])?;
    let x = twice(&mut b, "merge1", &x, 8)?;
    let x = square(1, 1).bias().conv(&mut b, "mask", &x)?;
    let x = b.named("sigmoid").activation(&x, Function::Sigmoid)?;
    b.output("output", &x)?;
    Ok(b.finish())
}

/// Two convolutions of 3×3, each with a rectifier.
fn twice(b: &mut Builder, name: &str, x: &Operand, filters: usize) -> Result<Operand, BuilderError> {
    let mut x = x.clone();
    for number in 1..=2 {
        x = square(filters, 3).bias().conv(b, &format!("{name}_conv{number}"), &x)?;
        x = b.named(format!("{name}_relu{number}")).activation(&x, Function::Relu)?;
    }
    Ok(x)
}
