//! DenseNet-121, with the layer names of torchvision.

use csdfc_plan::operator::Function;

use super::blocks::{norm_relu, square};
use super::builder::{Builder, BuilderError, Padding, PoolWindow, flatten};
use csdfc_network::{Network, Operand};

/// New channels of each dense layer.
const GROWTH: usize = 32;

/// Huang et al., "Densely connected convolutional networks" (2016), table 1, growth 32. As in the authors' own code,
/// each dense layer appends its channels to those that its block has so far.
pub(super) fn densenet121() -> Result<Network, BuilderError> {
    let mut b = Builder::new(7);
    let x = b.input("input", [1, 3, 224, 224])?;
    let x = square(64, 7).stride(2).conv(&mut b, "features.conv0", &x)?;
    let x = norm_relu(&mut b, &x, "features.norm0", "features.relu0", Function::Relu)?;
    let mut x = b.named("features.pool0").max_pool(&x, PoolWindow::new(3, 2).pads(Padding::Each(1)))?;

    for (block, layers) in (1..).zip([6, 12, 24, 16]) {
        if block > 1 {
            x = transition(&mut b, &format!("features.transition{}", block - 1), &x)?;
        }
        for layer in 1..=layers {
            x = dense_layer(&mut b, &format!("features.denseblock{block}.denselayer{layer}"), &x)?;
        }
    }

    let x = norm_relu(&mut b, &x, "features.norm5", "relu", Function::Relu)?;
    let x = b.named("avgpool").global_average_pool(&x)?;
    let x = b.named("classifier").gemm(&flatten(&x), 1000, true)?;
    b.output("output", &x)?;
    Ok(b.finish())
}

fn dense_layer(b: &mut Builder, name: &str, input: &Operand) -> Result<Operand, BuilderError> {
    let x = norm_relu(b, input, &format!("{name}.norm1"), &format!("{name}.relu1"), Function::Relu)?;
    let x = square(4 * GROWTH, 1).conv(b, &format!("{name}.conv1"), &x)?;
    let x = norm_relu(b, &x, &format!("{name}.norm2"), &format!("{name}.relu2"), Function::Relu)?;
    let x = square(GROWTH, 3).conv(b, &format!("{name}.conv2"), &x)?;
    b.named(format!("{name}.concat")).concat(&[input, &x])
}

/// Half the channels, half the size.
fn transition(b: &mut Builder, name: &str, x: &Operand) -> Result<Operand, BuilderError> {
    let x = norm_relu(b, x, &format!("{name}.norm"), &format!("{name}.relu"), Function::Relu)?;
    let x = square(x.shape.channels() / 2, 1).conv(b, &format!("{name}.conv"), &x)?;
    b.named(format!("{name}.pool")).average_pool(&x, PoolWindow::new(2, 2), false)
}
