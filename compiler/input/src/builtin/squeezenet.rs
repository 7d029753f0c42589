//! SqueezeNet 1.0, with the layer names of torchvision.

use csdfc_plan::operator::Function;

use super::blocks::{Square, square};
use super::builder::{Builder, BuilderError, Padding, PoolWindow, flatten};
use csdfc_network::{Network, Operand};

/// Iandola et al., "SqueezeNet" (2016), table 1.
pub(super) fn squeezenet1_0() -> Result<Network, BuilderError> {
    let mut b = Builder::new(8);
    let x = b.input("input", [1, 3, 224, 224])?;
    let stem = square(96, 7).stride(2).pads(Padding::Valid);
    let mut x = conv_relu(&mut b, stem, "features.0", "features.1", &x)?;

    // Place in `features`, squeezed channels, channels of each expansion; 0 is a pool.
    let layers = [
        (2, 0, 0),
        (3, 16, 64),
        (4, 16, 64),
        (5, 32, 128),
        (6, 0, 0),
        (7, 32, 128),
        (8, 48, 192),
        (9, 48, 192),
        (10, 64, 256),
        (11, 0, 0),
        (12, 64, 256),
    ];
    for (place, squeezed, expanded) in layers {
        let name = format!("features.{place}");
        x = if squeezed == 0 {
            b.named(name).max_pool(&x, PoolWindow::new(3, 2).ceil())?
        } else {
            fire(&mut b, &name, &x, squeezed, expanded)?
        };
    }

    let x = conv_relu(&mut b, square(1000, 1), "classifier.1", "classifier.2", &x)?;
    let x = b.named("classifier.3").global_average_pool(&x)?;
    b.output("output", &flatten(&x))?;
    Ok(b.finish())
}

fn fire(
    b: &mut Builder,
    name: &str,
    x: &Operand,
    squeezed: usize,
    expanded: usize,
) -> Result<Operand, BuilderError> {
    let squeeze = format!("{name}.squeeze");
    let x = conv_relu(b, square(squeezed, 1), &squeeze, &format!("{squeeze}_activation"), x)?;
    let one = format!("{name}.expand1x1");
    let one = conv_relu(b, square(expanded, 1), &one, &format!("{one}_activation"), &x)?;
    let three = format!("{name}.expand3x3");
    let three = conv_relu(b, square(expanded, 3), &three, &format!("{three}_activation"), &x)?;
    b.named(format!("{name}.concat")).concat(&[&one, &three])
}

fn conv_relu(
    b: &mut Builder,
    square: Square,
    name: &str,
    relu: &str,
    x: &Operand,
) -> Result<Operand, BuilderError> {
    let x = square.bias().conv(b, name, x)?;
    b.named(relu).activation(&x, Function::Relu)
}
