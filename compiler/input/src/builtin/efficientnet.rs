//! EfficientNet-B0, with the layer names of Keras and TensorFlow's padding.

use csdfc_plan::operator::Function;

use super::blocks::{norm_relu, square};
use super::builder::{Builder, BuilderError, Padding, flatten};
use csdfc_network::{Network, Operand};

/// Tan and Le, "EfficientNet" (2019), table 1.
pub(super) fn efficientnet_b0() -> Result<Network, BuilderError> {
    let mut b = Builder::new(3);
    let x = b.input("input", [1, 3, 224, 224])?;
    let x = square(32, 3).stride(2).pads(Padding::Same).conv(&mut b, "stem_conv", &x)?;
    let mut x = norm_relu(&mut b, &x, "stem_bn", "stem_activation", Function::Swish)?;

    // Kernel, repeats, channels, expansion, stride of the first.
    let stages = [
        (3, 1, 16, 1, 1),
        (3, 2, 24, 6, 2),
        (5, 2, 40, 6, 2),
        (3, 3, 80, 6, 2),
        (5, 3, 112, 6, 1),
        (5, 4, 192, 6, 2),
        (3, 1, 320, 6, 1),
    ];
    for (stage, (kernel, repeats, channels, expansion, first_stride)) in (1..).zip(stages) {
        for (i, letter) in ('a'..='d').take(repeats).enumerate() {
            let stride = if i == 0 { first_stride } else { 1 };
            let name = format!("block{stage}{letter}_");
            x = MbConv { kernel, channels, expansion, stride }.add(&mut b, &name, &x)?;
        }
    }

    let x = square(1280, 1).conv(&mut b, "top_conv", &x)?;
    let x = norm_relu(&mut b, &x, "top_bn", "top_activation", Function::Swish)?;
    let x = b.named("avg_pool").global_average_pool(&x)?;
    let x = b.named("dense").gemm(&flatten(&x), 1000, true)?;
    let x = b.named("predictions").softmax(&x)?;
    b.output("predictions", &x)?;
    Ok(b.finish())
}

/// A mobile inverted bottleneck with squeeze-and-excitation.
struct MbConv {
    kernel: usize,
    channels: usize,
    expansion: usize,
    stride: usize,
}

impl MbConv {
    fn add(self, b: &mut Builder, name: &str, input: &Operand) -> Result<Operand, BuilderError> {
        let in_channels = input.shape.channels();
        let expanded = in_channels * self.expansion;
        let mut x = input.clone();
        if self.expansion != 1 {
            x = square(expanded, 1).conv(b, &format!("{name}expand_conv"), &x)?;
            x = norm_relu(
                b,
                &x,
                &format!("{name}expand_bn"),
                &format!("{name}expand_activation"),
                Function::Swish,
            )?;
        }
        let same = square(expanded, self.kernel).stride(self.stride).pads(Padding::Same);
        x = same.depthwise(b, &format!("{name}dwconv"), &x)?;
        x = norm_relu(b, &x, &format!("{name}bn"), &format!("{name}activation"), Function::Swish)?;

        // The squeeze has a quarter of the block's input channels, whatever the expansion.
        let gate = b.named(format!("{name}se_squeeze")).global_average_pool(&x)?;
        let gate = square(in_channels / 4, 1).bias().conv(b, &format!("{name}se_reduce"), &gate)?;
        let gate = b.named(format!("{name}se_reduce_activation")).activation(&gate, Function::Swish)?;
        let gate = square(expanded, 1).bias().conv(b, &format!("{name}se_expand"), &gate)?;
        let gate = b.named(format!("{name}se_expand_activation")).activation(&gate, Function::Sigmoid)?;
        x = b.named(format!("{name}se_excite")).mul(&x, &gate)?;

        x = square(self.channels, 1).conv(b, &format!("{name}project_conv"), &x)?;
        x = b.named(format!("{name}project_bn")).batch_norm(&x)?;
        if self.stride == 1 && in_channels == self.channels {
            x = b.named(format!("{name}add")).add(&x, input)?;
        }
        Ok(x)
    }
}
