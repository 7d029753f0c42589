//! Residual networks: torchvision's ResNet-18 and ResNet-50 (v1.5), and the ResNet-8 of MLPerf Tiny.

use csdfc_plan::operator::Function;

use super::blocks::{norm_relu, square};
use super::builder::{Builder, BuilderError, Padding, PoolWindow, flatten};
use csdfc_network::{Network, Operand};

/// He et al., "Deep residual learning" (2015), table 1, 18 layers.
pub(super) fn resnet18() -> Result<Network, BuilderError> {
    imagenet(4, [2, 2, 2, 2], 1, basic)
}

/// The same with 50 layers; the stride is in the 3×3 convolution ("v1.5").
pub(super) fn resnet50() -> Result<Network, BuilderError> {
    imagenet(5, [3, 4, 6, 3], 4, bottleneck)
}

/// A residual branch: builder, name of the block, input, width, stride.
type Branch = fn(&mut Builder, &str, &Operand, usize, usize) -> Result<Operand, BuilderError>;

fn imagenet(
    seed: u64,
    blocks: [usize; 4],
    expansion: usize,
    branch: Branch,
) -> Result<Network, BuilderError> {
    let mut b = Builder::new(seed);
    let x = b.input("input", [1, 3, 224, 224])?;
    let x = square(64, 7).stride(2).conv(&mut b, "conv1", &x)?;
    let x = norm_relu(&mut b, &x, "bn1", "relu", Function::Relu)?;
    let mut x = b.named("maxpool").max_pool(&x, PoolWindow::new(3, 2).pads(Padding::Each(1)))?;

    for (stage, (count, width)) in (1..).zip(blocks.into_iter().zip([64, 128, 256, 512])) {
        for block in 0..count {
            let name = format!("layer{stage}.{block}");
            let stride = if stage > 1 && block == 0 { 2 } else { 1 };
            let y = branch(&mut b, &name, &x, width, stride)?;
            if stride != 1 || x.shape.channels() != width * expansion {
                let name = format!("{name}.downsample");
                x = square(width * expansion, 1).stride(stride).conv(&mut b, &format!("{name}.0"), &x)?;
                x = b.named(format!("{name}.1")).batch_norm(&x)?;
            }
            x = b.named(format!("{name}.add")).add(&y, &x)?;
            x = b.named(format!("{name}.relu")).activation(&x, Function::Relu)?;
        }
    }

    let x = b.named("avgpool").global_average_pool(&x)?;
    let x = b.named("fc").gemm(&flatten(&x), 1000, true)?;
    b.output("output", &x)?;
    Ok(b.finish())
}

fn basic(
    b: &mut Builder,
    name: &str,
    x: &Operand,
    width: usize,
    stride: usize,
) -> Result<Operand, BuilderError> {
    let x = square(width, 3).stride(stride).conv(b, &format!("{name}.conv1"), x)?;
    let x = norm_relu(b, &x, &format!("{name}.bn1"), &format!("{name}.relu1"), Function::Relu)?;
    let x = square(width, 3).conv(b, &format!("{name}.conv2"), &x)?;
    b.named(format!("{name}.bn2")).batch_norm(&x)
}

fn bottleneck(
    b: &mut Builder,
    name: &str,
    x: &Operand,
    width: usize,
    stride: usize,
) -> Result<Operand, BuilderError> {
    let x = square(width, 1).conv(b, &format!("{name}.conv1"), x)?;
    let x = norm_relu(b, &x, &format!("{name}.bn1"), &format!("{name}.relu1"), Function::Relu)?;
    let x = square(width, 3).stride(stride).conv(b, &format!("{name}.conv2"), &x)?;
    let x = norm_relu(b, &x, &format!("{name}.bn2"), &format!("{name}.relu2"), Function::Relu)?;
    let x = square(width * 4, 1).conv(b, &format!("{name}.conv3"), &x)?;
    b.named(format!("{name}.bn3")).batch_norm(&x)
}

/// The image classifier of MLPerf Tiny (Banbury et al., 2021), for CIFAR-10: three stacks of one block, convolutions
/// with biases, shortcuts without batch norm, TensorFlow's padding.
pub(super) fn resnet8() -> Result<Network, BuilderError> {
    let mut b = Builder::new(6);
    let same = |filters, kernel| square(filters, kernel).bias().pads(Padding::Same);
    let x = b.input("input", [1, 3, 32, 32])?;
    let x = same(16, 3).conv(&mut b, "conv", &x)?;
    let mut x = norm_relu(&mut b, &x, "bn", "relu", Function::Relu)?;

    for (stack, filters) in (1..).zip([16, 32, 64]) {
        let name = format!("stack{stack}");
        let stride = if stack == 1 { 1 } else { 2 };
        let y = same(filters, 3).stride(stride).conv(&mut b, &format!("{name}_conv1"), &x)?;
        let y = norm_relu(&mut b, &y, &format!("{name}_bn1"), &format!("{name}_relu1"), Function::Relu)?;
        let y = same(filters, 3).conv(&mut b, &format!("{name}_conv2"), &y)?;
        let y = b.named(format!("{name}_bn2")).batch_norm(&y)?;
        if stack > 1 {
            x = same(filters, 1).stride(2).conv(&mut b, &format!("{name}_shortcut"), &x)?;
        }
        x = b.named(format!("{name}_add")).add(&x, &y)?;
        x = b.named(format!("{name}_relu")).activation(&x, Function::Relu)?;
    }

    let x = b.named("avg_pool").global_average_pool(&x)?;
    let x = b.named("dense").gemm(&flatten(&x), 10, true)?;
    let x = b.named("softmax").softmax(&x)?;
    b.output("output", &x)?;
    Ok(b.finish())
}
