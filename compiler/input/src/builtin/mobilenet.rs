//! MobileNetV1 and V2, with the layer names of Keras and TensorFlow's padding.

use super::blocks::{RELU6, norm_relu, square};
use super::builder::{Builder, BuilderError, Padding, flatten};
use csdfc_network::{Network, Operand};

/// Howard et al., "MobileNets" (2017), table 1; `percent` is the width multiplier in hundredths.
pub(super) fn mobilenet_v1(percent: usize) -> Result<Network, BuilderError> {
    let width = |filters: usize| filters * percent / 100;
    let mut b = Builder::new(1);
    let x = b.input("input", [1, 3, 224, 224])?;
    let x = square(width(32), 3).stride(2).pads(Padding::Same).conv(&mut b, "conv1", &x)?;
    let mut x = norm_relu(&mut b, &x, "conv1_bn", "conv1_relu", RELU6)?;

    let blocks = [
        (64, 1),
        (128, 2),
        (128, 1),
        (256, 2),
        (256, 1),
        (512, 2),
        (512, 1),
        (512, 1),
        (512, 1),
        (512, 1),
        (512, 1),
        (1024, 2),
        (1024, 1),
    ];
    for (i, (filters, stride)) in (1..).zip(blocks) {
        let (dw, pw) = (format!("conv_dw_{i}"), format!("conv_pw_{i}"));
        let same = square(x.shape.channels(), 3).stride(stride).pads(Padding::Same);
        x = same.depthwise(&mut b, &dw, &x)?;
        x = norm_relu(&mut b, &x, &format!("{dw}_bn"), &format!("{dw}_relu"), RELU6)?;
        x = square(width(filters), 1).conv(&mut b, &pw, &x)?;
        x = norm_relu(&mut b, &x, &format!("{pw}_bn"), &format!("{pw}_relu"), RELU6)?;
    }

    let x = b.named("global_average_pooling2d").global_average_pool(&x)?;
    let x = square(1000, 1).bias().conv(&mut b, "conv_preds", &x)?;
    let x = b.named("predictions").softmax(&flatten(&x))?;
    b.output("predictions", &x)?;
    Ok(b.finish())
}

/// Sandler et al., "MobileNetV2" (2018), table 2, for images of `size` by `size`. `percent` is the width multiplier in
/// hundredths, at most 100: it does not widen the last convolution.
pub(super) fn mobilenet_v2(percent: usize, size: usize) -> Result<Network, BuilderError> {
    let mut b = Builder::new(2);
    let x = b.input("input", [1, 3, size, size])?;
    let x = square(multiple_of_8(32, percent), 3).stride(2).pads(Padding::Same).conv(&mut b, "Conv1", &x)?;
    let mut x = norm_relu(&mut b, &x, "bn_Conv1", "Conv1_relu", RELU6)?;

    // Expansion, channels, repeats, stride of the first.
    let stages = [
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ];
    let mut block = 0;
    for (expansion, channels, repeats, first_stride) in stages {
        for i in 0..repeats {
            let stride = if i == 0 { first_stride } else { 1 };
            let name = if block == 0 { "expanded_conv".to_owned() } else { format!("block_{block}") };
            x = inverted_residual(&mut b, &name, &x, expansion, multiple_of_8(channels, percent), stride)?;
            block += 1;
        }
    }

    let x = square(1280, 1).conv(&mut b, "Conv_1", &x)?;
    let x = norm_relu(&mut b, &x, "Conv_1_bn", "out_relu", RELU6)?;
    let x = b.named("global_average_pooling2d").global_average_pool(&x)?;
    let x = b.named("dense").gemm(&flatten(&x), 1000, true)?;
    let x = b.named("predictions").softmax(&x)?;
    b.output("predictions", &x)?;
    Ok(b.finish())
}

/// The multiple of 8 next to this percentage of some filters, but not 10 % below it, as Keras rounds.
fn multiple_of_8(filters: usize, percent: usize) -> usize {
    let hundredths = filters * percent;
    let nearest = (hundredths + 400) / 800 * 8;
    if nearest * 1000 < hundredths * 9 { nearest + 8 } else { nearest }
}

fn inverted_residual(
    b: &mut Builder,
    name: &str,
    input: &Operand,
    expansion: usize,
    channels: usize,
    stride: usize,
) -> Result<Operand, BuilderError> {
    let mut x = input.clone();
    if expansion != 1 {
        let expand = format!("{name}_expand");
        x = square(input.shape.channels() * expansion, 1).conv(b, &expand, &x)?;
        x = norm_relu(b, &x, &format!("{expand}_BN"), &format!("{expand}_relu"), RELU6)?;
    }
    let depthwise = format!("{name}_depthwise");
    let same = square(x.shape.channels(), 3).stride(stride).pads(Padding::Same);
    x = same.depthwise(b, &depthwise, &x)?;
    x = norm_relu(b, &x, &format!("{depthwise}_BN"), &format!("{depthwise}_relu"), RELU6)?;
    x = square(channels, 1).conv(b, &format!("{name}_project"), &x)?;
    x = b.named(format!("{name}_project_BN")).batch_norm(&x)?;
    if stride == 1 && input.shape.channels() == channels {
        x = b.named(format!("{name}_add")).add(input, &x)?;
    }
    Ok(x)
}
