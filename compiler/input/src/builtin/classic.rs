//! Plain chains of layers: LeNet-5, torchvision's AlexNet, and VGG.

use csdfc_plan::operator::Function;

use super::blocks::square;
use super::builder::{Builder, BuilderError, Padding, PoolWindow, flatten};
use csdfc_network::{Network, Operand};

/// LeCun et al., "Gradient-based learning applied to document recognition" (1998), figure 2, as it is read today: C3
/// sees all six maps of S2, subsampling is a plain mean, and the output layer is fully connected.
pub(super) fn lenet5() -> Result<Network, BuilderError> {
    let mut b = Builder::new(9);
    let mut x = b.input("input", [1, 1, 32, 32])?;
    for (conv, filters, pool) in [("C1", 6, Some("S2")), ("C3", 16, Some("S4")), ("C5", 120, None)] {
        x = square(filters, 5).bias().pads(Padding::Valid).conv(&mut b, conv, &x)?;
        x = b.named(format!("{conv}_tanh")).activation(&x, Function::Tanh)?;
        if let Some(pool) = pool {
            x = b.named(pool).average_pool(&x, PoolWindow::new(2, 2), false)?;
        }
    }
    let x = b.named("F6").gemm(&flatten(&x), 84, true)?;
    let x = b.named("F6_tanh").activation(&x, Function::Tanh)?;
    let x = b.named("output").gemm(&x, 10, true)?;
    b.output("output", &x)?;
    Ok(b.finish())
}

/// Krizhevsky, "One weird trick for parallelizing convolutional neural networks" (2014): one column.
pub(super) fn alexnet() -> Result<Network, BuilderError> {
    let mut b = Builder::new(10);
    let x = b.input("input", [1, 3, 224, 224])?;
    let convs = [
        (0, square(64, 11).stride(4).pads(Padding::Each(2)), true),
        (3, square(192, 5), true),
        (6, square(384, 3), false),
        (8, square(256, 3), false),
        (10, square(256, 3), true),
    ];
    let mut x = x;
    for (place, conv, pool) in convs {
        x = conv.bias().conv(&mut b, &format!("features.{place}"), &x)?;
        x = b.named(format!("features.{}", place + 1)).activation(&x, Function::Relu)?;
        if pool {
            x = b.named(format!("features.{}", place + 2)).max_pool(&x, PoolWindow::new(3, 2))?;
        }
    }
    classifier(b, &x, [1, 4, 6])
}

/// Simonyan and Zisserman, "Very deep convolutional networks" (2014), table 1, B.
pub(super) fn vgg_b() -> Result<Network, BuilderError> {
    vgg(14, [&[3, 3]; 5])
}

/// Column C: the third convolution of the last three blocks has 1×1 filters.
pub(super) fn vgg_c() -> Result<Network, BuilderError> {
    vgg(15, [&[3, 3], &[3, 3], &[3, 3, 1], &[3, 3, 1], &[3, 3, 1]])
}

/// Column D.
pub(super) fn vgg16() -> Result<Network, BuilderError> {
    vgg(11, [&[3, 3], &[3, 3], &[3; 3], &[3; 3], &[3; 3]])
}

/// Column E.
pub(super) fn vgg_e() -> Result<Network, BuilderError> {
    vgg(16, [&[3, 3], &[3, 3], &[3; 4], &[3; 4], &[3; 4]])
}

/// Five blocks of convolutions of these kernels, each with a pool behind it, in torchvision's places.
fn vgg(seed: u64, blocks: [&[usize]; 5]) -> Result<Network, BuilderError> {
    let mut b = Builder::new(seed);
    let mut x = b.input("input", [1, 3, 224, 224])?;
    let mut place = 0;
    for (kernels, filters) in blocks.into_iter().zip([64, 128, 256, 512, 512]) {
        for &kernel in kernels {
            x = square(filters, kernel).bias().conv(&mut b, &format!("features.{place}"), &x)?;
            x = b.named(format!("features.{}", place + 1)).activation(&x, Function::Relu)?;
            place += 2;
        }
        x = b.named(format!("features.{place}")).max_pool(&x, PoolWindow::new(2, 2))?;
        place += 1;
    }
    classifier(b, &x, [0, 3, 6])
}

/// Two hidden layers of 4096 units and the scores, in these places of torchvision's `classifier`.
fn classifier(mut b: Builder, x: &Operand, places: [usize; 3]) -> Result<Network, BuilderError> {
    let mut x = flatten(x);
    for place in &places[..2] {
        x = b.named(format!("classifier.{place}")).gemm(&x, 4096, true)?;
        x = b.named(format!("classifier.{}", place + 1)).activation(&x, Function::Relu)?;
    }
    let x = b.named(format!("classifier.{}", places[2])).gemm(&x, 1000, true)?;
    b.output("output", &x)?;
    Ok(b.finish())
}
