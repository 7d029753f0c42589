//! Inception networks: torchvision's GoogLeNet, and BN-Inception as "Inception v2".

use csdfc_codegen::operator::Function;

use super::blocks::{Square, norm_relu, square};
use super::builder::{BuildError, Builder, Padding, Window, flatten};
use crate::network::{Network, Operand};

/// Szegedy et al., "Going deeper with convolutions" (2014), table 1, as torchvision has it: with batch norm, without
/// the auxiliary classifiers, and 3×3 filters where the paper has 5×5.
pub(super) fn googlenet() -> Result<Network, BuildError> {
    let mut builder = Builder::new(12);
    let b = &mut builder;
    let pool = || Window::new(3, 2).ceil();
    let x = b.input("input", [1, 3, 224, 224])?;
    let x = basic(b, "conv1", &x, square(64, 7).stride(2))?;
    let x = b.named("maxpool1").max_pool(&x, pool())?;
    let x = basic(b, "conv2", &x, square(64, 1))?;
    let x = basic(b, "conv3", &x, square(192, 3))?;
    let mut x = b.named("maxpool2").max_pool(&x, pool())?;

    // 1×1; 3×3 reduced, 3×3; "5×5" reduced, "5×5"; pool projection.
    let modules = [
        ("inception3a", [64, 96, 128, 16, 32, 32]),
        ("inception3b", [128, 128, 192, 32, 96, 64]),
        ("inception4a", [192, 96, 208, 16, 48, 64]),
        ("inception4b", [160, 112, 224, 24, 64, 64]),
        ("inception4c", [128, 128, 256, 24, 64, 64]),
        ("inception4d", [112, 144, 288, 32, 64, 64]),
        ("inception4e", [256, 160, 320, 32, 128, 128]),
        ("inception5a", [256, 160, 320, 32, 128, 128]),
        ("inception5b", [384, 192, 384, 48, 128, 128]),
    ];
    for (name, [one, reduce3, three, reduce5, five, project]) in modules {
        if name == "inception4a" {
            x = b.named("maxpool3").max_pool(&x, pool())?;
        }
        if name == "inception5a" {
            x = b.named("maxpool4").max_pool(&x, Window::new(2, 2).ceil())?;
        }
        let branch1 = basic(b, &format!("{name}.branch1"), &x, square(one, 1))?;
        let branch2 = basic(b, &format!("{name}.branch2.0"), &x, square(reduce3, 1))?;
        let branch2 = basic(b, &format!("{name}.branch2.1"), &branch2, square(three, 3))?;
        let branch3 = basic(b, &format!("{name}.branch3.0"), &x, square(reduce5, 1))?;
        let branch3 = basic(b, &format!("{name}.branch3.1"), &branch3, square(five, 3))?;
        let window = Window::new(3, 1).pads(Padding::Each(1));
        let branch4 = b.named(format!("{name}.branch4.0")).max_pool(&x, window)?;
        let branch4 = basic(b, &format!("{name}.branch4.1"), &branch4, square(project, 1))?;
        x = b.named(format!("{name}.concat")).concat(&[&branch1, &branch2, &branch3, &branch4])?;
    }

    let x = b.named("avgpool").global_average_pool(&x)?;
    let x = b.named("fc").gemm(&flatten(&x), 1000, true)?;
    b.output("output", &x)?;
    Ok(builder.finish())
}

/// torchvision's `BasicConv2d`.
fn basic(b: &mut Builder, name: &str, x: &Operand, conv: Square) -> Result<Operand, BuildError> {
    let x = conv.conv(b, &format!("{name}.conv"), x)?;
    norm_relu(b, &x, &format!("{name}.bn"), &format!("{name}.relu"), Function::Relu)
}

/// Ioffe and Szegedy, "Batch normalization" (2015), figure 5, as its Caffe model has it: 224×224, plain 7×7 stem,
/// convolutions with biases before the batch norms.
pub(super) fn inception_v2() -> Result<Network, BuildError> {
    let mut builder = Builder::new(13);
    let b = &mut builder;
    let pool = || Window::new(3, 2).ceil();
    let x = b.input("input", [1, 3, 224, 224])?;
    let x = caffe(b, "conv1", "7x7_s2", &x, square(64, 7).stride(2))?;
    let x = b.named("pool1_3x3_s2").max_pool(&x, pool())?;
    let x = caffe(b, "conv2", "3x3_reduce", &x, square(64, 1))?;
    let x = caffe(b, "conv2", "3x3", &x, square(192, 3))?;
    let mut x = b.named("pool2_3x3_s2").max_pool(&x, pool())?;

    // 1×1; 3×3 reduced, 3×3; double 3×3 reduced, double 3×3; pool projection. No 1×1: the module halves the size and
    // its pool is passed on as it is.
    let modules = [
        ("3a", [64, 64, 64, 64, 96, 32]),
        ("3b", [64, 64, 96, 64, 96, 64]),
        ("3c", [0, 128, 160, 64, 96, 0]),
        ("4a", [224, 64, 96, 96, 128, 128]),
        ("4b", [192, 96, 128, 96, 128, 128]),
        ("4c", [160, 128, 160, 128, 160, 128]),
        ("4d", [96, 128, 192, 160, 192, 128]),
        ("4e", [0, 128, 192, 192, 256, 0]),
        ("5a", [352, 192, 320, 160, 224, 128]),
        ("5b", [352, 192, 320, 192, 224, 128]),
    ];
    for (module, [one, reduce, three, double_reduce, double, project]) in modules {
        let name = format!("inception_{module}");
        let stride = if one == 0 { 2 } else { 1 };
        let mut branches = Vec::new();
        if one > 0 {
            branches.push(caffe(b, &name, "1x1", &x, square(one, 1))?);
        }
        let y = caffe(b, &name, "3x3_reduce", &x, square(reduce, 1))?;
        branches.push(caffe(b, &name, "3x3", &y, square(three, 3).stride(stride))?);
        let y = caffe(b, &name, "double_3x3_reduce", &x, square(double_reduce, 1))?;
        let y = caffe(b, &name, "double_3x3_1", &y, square(double, 3))?;
        branches.push(caffe(b, &name, "double_3x3_2", &y, square(double, 3).stride(stride))?);
        let window = Window::new(3, 1).pads(Padding::Each(1));
        b.named(format!("{name}_pool"));
        let y = match module {
            "3c" | "4e" => b.max_pool(&x, pool())?,
            "5b" => b.max_pool(&x, window)?,
            _ => b.average_pool(&x, window, true)?,
        };
        branches.push(if project > 0 { caffe(b, &name, "pool_proj", &y, square(project, 1))? } else { y });
        x = b.named(format!("{name}_output")).concat(&branches.iter().collect::<Vec<_>>())?;
    }

    let x = b.named("global_pool").global_average_pool(&x)?;
    let x = b.named("last_linear").gemm(&flatten(&x), 1000, true)?;
    b.output("output", &x)?;
    Ok(builder.finish())
}

/// A convolution `{block}_{part}` with bias, batch norm and rectifier.
fn caffe(b: &mut Builder, block: &str, part: &str, x: &Operand, conv: Square) -> Result<Operand, BuildError> {
    let x = conv.bias().conv(b, &format!("{block}_{part}"), x)?;
    norm_relu(b, &x, &format!("{block}_{part}_bn"), &format!("{block}_relu_{part}"), Function::Relu)
}
