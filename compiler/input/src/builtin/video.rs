//! Networks for the frames of a video.

use csdfc_network::Network;
use csdfc_plan::operator::Function;

use super::blocks::square;
use super::builder::{Builder, BuilderError};

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
