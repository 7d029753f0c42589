//! Inception networks: torchvision's GoogLeNet and Inception v3, and BN-Inception as "Inception v2".

use csdfc_plan::operator::Function;

use super::blocks::{Square, norm_relu, square};
use super::builder::{Builder, BuilderError, ConvOptions, Padding, PoolWindow, flatten};
use csdfc_network::{Network, Operand};

/// Szegedy et al., "Going deeper with convolutions" (2014), table 1, as torchvision has it: with batch norm, without
/// the auxiliary classifiers, and 3×3 filters where the paper has 5×5.
pub(super) fn googlenet() -> Result<Network, BuilderError> {
    let mut builder = Builder::new(12);
    let b = &mut builder;
    let pool = || PoolWindow::new(3, 2).ceil();
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
            x = b.named("maxpool4").max_pool(&x, PoolWindow::new(2, 2).ceil())?;
        }
        let branch1 = basic(b, &format!("{name}.branch1"), &x, square(one, 1))?;
        let branch2 = basic(b, &format!("{name}.branch2.0"), &x, square(reduce3, 1))?;
        let branch2 = basic(b, &format!("{name}.branch2.1"), &branch2, square(three, 3))?;
        let branch3 = basic(b, &format!("{name}.branch3.0"), &x, square(reduce5, 1))?;
        let branch3 = basic(b, &format!("{name}.branch3.1"), &branch3, square(five, 3))?;
        let window = PoolWindow::new(3, 1).pads(Padding::Each(1));
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
fn basic(b: &mut Builder, name: &str, x: &Operand, conv: Square) -> Result<Operand, BuilderError> {
    let x = conv.conv(b, &format!("{name}.conv"), x)?;
    norm_relu(b, &x, &format!("{name}.bn"), &format!("{name}.relu"), Function::Relu)
}

/// Szegedy et al., "Rethinking the Inception architecture for computer vision" (2015), as torchvision has it: 299×299,
/// without the auxiliary classifier.
pub(super) fn inception_v3() -> Result<Network, BuilderError> {
    let mut builder = Builder::new(17);
    let b = &mut builder;
    let valid = |filters, kernel| square(filters, kernel).pads(Padding::Valid);
    let x = b.input("input", [1, 3, 299, 299])?;
    let x = basic(b, "Conv2d_1a_3x3", &x, valid(32, 3).stride(2))?;
    let x = basic(b, "Conv2d_2a_3x3", &x, valid(32, 3))?;
    let x = basic(b, "Conv2d_2b_3x3", &x, square(64, 3))?;
    let x = b.named("maxpool1").max_pool(&x, PoolWindow::new(3, 2))?;
    let x = basic(b, "Conv2d_3b_1x1", &x, square(80, 1))?;
    let x = basic(b, "Conv2d_4a_3x3", &x, valid(192, 3))?;
    let mut x = b.named("maxpool2").max_pool(&x, PoolWindow::new(3, 2))?;
    for (name, projected) in [("Mixed_5b", 32), ("Mixed_5c", 64), ("Mixed_5d", 64)] {
        x = module_a(b, name, &x, projected)?;
    }
    x = module_b(b, "Mixed_6a", &x)?;
    for (name, inner) in [("Mixed_6b", 128), ("Mixed_6c", 160), ("Mixed_6d", 160), ("Mixed_6e", 192)] {
        x = module_c(b, name, &x, inner)?;
    }
    x = module_d(b, "Mixed_7a", &x)?;
    for name in ["Mixed_7b", "Mixed_7c"] {
        x = module_e(b, name, &x)?;
    }
    let x = b.named("avgpool").global_average_pool(&x)?;
    let x = b.named("fc").gemm(&flatten(&x), 1000, true)?;
    b.output("output", &x)?;
    Ok(builder.finish())
}

/// torchvision's `InceptionA`: 1×1, 5×5, two 3×3, and an average pool that is projected.
fn module_a(b: &mut Builder, name: &str, x: &Operand, projected: usize) -> Result<Operand, BuilderError> {
    let one = basic(b, &format!("{name}.branch1x1"), x, square(64, 1))?;
    let five = basic(b, &format!("{name}.branch5x5_1"), x, square(48, 1))?;
    let five = basic(b, &format!("{name}.branch5x5_2"), &five, square(64, 5))?;
    let three = basic(b, &format!("{name}.branch3x3dbl_1"), x, square(64, 1))?;
    let three = basic(b, &format!("{name}.branch3x3dbl_2"), &three, square(96, 3))?;
    let three = basic(b, &format!("{name}.branch3x3dbl_3"), &three, square(96, 3))?;
    let pool = projected_pool(b, name, x, projected)?;
    b.named(format!("{name}.concat")).concat(&[&one, &five, &three, &pool])
}

/// `InceptionB`, which halves the size: 3×3, two 3×3, and a pool.
fn module_b(b: &mut Builder, name: &str, x: &Operand) -> Result<Operand, BuilderError> {
    let halved = |filters| square(filters, 3).stride(2).pads(Padding::Valid);
    let three = basic(b, &format!("{name}.branch3x3"), x, halved(384))?;
    let double = basic(b, &format!("{name}.branch3x3dbl_1"), x, square(64, 1))?;
    let double = basic(b, &format!("{name}.branch3x3dbl_2"), &double, square(96, 3))?;
    let double = basic(b, &format!("{name}.branch3x3dbl_3"), &double, halved(96))?;
    let pool = b.named(format!("{name}.branch_pool")).max_pool(x, PoolWindow::new(3, 2))?;
    b.named(format!("{name}.concat")).concat(&[&three, &double, &pool])
}

/// `InceptionC`: 1×1, 7×7 in two lines, twice that, and an average pool that is projected.
fn module_c(b: &mut Builder, name: &str, x: &Operand, inner: usize) -> Result<Operand, BuilderError> {
    let one = basic(b, &format!("{name}.branch1x1"), x, square(192, 1))?;
    let seven = basic(b, &format!("{name}.branch7x7_1"), x, square(inner, 1))?;
    let seven = line(b, &format!("{name}.branch7x7_2"), &seven, inner, [1, 7])?;
    let seven = line(b, &format!("{name}.branch7x7_3"), &seven, 192, [7, 1])?;
    let mut double = basic(b, &format!("{name}.branch7x7dbl_1"), x, square(inner, 1))?;
    for (part, filters, kernel) in
        [(2, inner, [7, 1]), (3, inner, [1, 7]), (4, inner, [7, 1]), (5, 192, [1, 7])]
    {
        double = line(b, &format!("{name}.branch7x7dbl_{part}"), &double, filters, kernel)?;
    }
    let pool = projected_pool(b, name, x, 192)?;
    b.named(format!("{name}.concat")).concat(&[&one, &seven, &double, &pool])
}

/// `InceptionD`, which halves the size: 3×3, 7×7 in two lines and 3×3, and a pool.
fn module_d(b: &mut Builder, name: &str, x: &Operand) -> Result<Operand, BuilderError> {
    let halved = |filters| square(filters, 3).stride(2).pads(Padding::Valid);
    let three = basic(b, &format!("{name}.branch3x3_1"), x, square(192, 1))?;
    let three = basic(b, &format!("{name}.branch3x3_2"), &three, halved(320))?;
    let seven = basic(b, &format!("{name}.branch7x7x3_1"), x, square(192, 1))?;
    let seven = line(b, &format!("{name}.branch7x7x3_2"), &seven, 192, [1, 7])?;
    let seven = line(b, &format!("{name}.branch7x7x3_3"), &seven, 192, [7, 1])?;
    let seven = basic(b, &format!("{name}.branch7x7x3_4"), &seven, halved(192))?;
    let pool = b.named(format!("{name}.branch_pool")).max_pool(x, PoolWindow::new(3, 2))?;
    b.named(format!("{name}.concat")).concat(&[&three, &seven, &pool])
}

/// `InceptionE`: 1×1, two branches that end in a row and a column of three next to each other, and an average pool that
/// is projected.
fn module_e(b: &mut Builder, name: &str, x: &Operand) -> Result<Operand, BuilderError> {
    let one = basic(b, &format!("{name}.branch1x1"), x, square(320, 1))?;
    let three = basic(b, &format!("{name}.branch3x3_1"), x, square(384, 1))?;
    let row = line(b, &format!("{name}.branch3x3_2a"), &three, 384, [1, 3])?;
    let column = line(b, &format!("{name}.branch3x3_2b"), &three, 384, [3, 1])?;
    let three = b.named(format!("{name}.branch3x3")).concat(&[&row, &column])?;
    let double = basic(b, &format!("{name}.branch3x3dbl_1"), x, square(448, 1))?;
    let double = basic(b, &format!("{name}.branch3x3dbl_2"), &double, square(384, 3))?;
    let row = line(b, &format!("{name}.branch3x3dbl_3a"), &double, 384, [1, 3])?;
    let column = line(b, &format!("{name}.branch3x3dbl_3b"), &double, 384, [3, 1])?;
    let double = b.named(format!("{name}.branch3x3dbl")).concat(&[&row, &column])?;
    let pool = projected_pool(b, name, x, 192)?;
    b.named(format!("{name}.concat")).concat(&[&one, &three, &double, &pool])
}

/// A 3×3 average, with its padding, and so many 1×1 filters.
fn projected_pool(b: &mut Builder, name: &str, x: &Operand, filters: usize) -> Result<Operand, BuilderError> {
    let window = PoolWindow::new(3, 1).pads(Padding::Each(1));
    let pool = b.named(format!("{name}.branch_avg")).average_pool(x, window, true)?;
    basic(b, &format!("{name}.branch_pool"), &pool, square(filters, 1))
}

/// A `BasicConv2d` whose filters are a row or a column. The output is as large as the input.
fn line(
    b: &mut Builder,
    name: &str,
    x: &Operand,
    filters: usize,
    kernel: [usize; 2],
) -> Result<Operand, BuilderError> {
    let options = ConvOptions { pads: Padding::Same, bias: false, ..ConvOptions::default() };
    let x = b.named(format!("{name}.conv")).conv(x, filters, kernel, options)?;
    norm_relu(b, &x, &format!("{name}.bn"), &format!("{name}.relu"), Function::Relu)
}

/// Ioffe and Szegedy, "Batch normalization" (2015), figure 5, as its Caffe model has it: 224×224, plain 7×7 stem,
/// convolutions with biases before the batch norms.
pub(super) fn inception_v2() -> Result<Network, BuilderError> {
    let mut builder = Builder::new(13);
    let b = &mut builder;
    let pool = || PoolWindow::new(3, 2).ceil();
    let x = b.input("input", [1, 3, 224, 224])?;
    let x = conv_bn_relu(b, "conv1", "7x7_s2", &x, square(64, 7).stride(2))?;
    let x = b.named("pool1_3x3_s2").max_pool(&x, pool())?;
    let x = conv_bn_relu(b, "conv2", "3x3_reduce", &x, square(64, 1))?;
    let x = conv_bn_relu(b, "conv2", "3x3", &x, square(192, 3))?;
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
            branches.push(conv_bn_relu(b, &name, "1x1", &x, square(one, 1))?);
        }
        let y = conv_bn_relu(b, &name, "3x3_reduce", &x, square(reduce, 1))?;
        branches.push(conv_bn_relu(b, &name, "3x3", &y, square(three, 3).stride(stride))?);
        let y = conv_bn_relu(b, &name, "double_3x3_reduce", &x, square(double_reduce, 1))?;
        let y = conv_bn_relu(b, &name, "double_3x3_1", &y, square(double, 3))?;
        branches.push(conv_bn_relu(b, &name, "double_3x3_2", &y, square(double, 3).stride(stride))?);
        let window = PoolWindow::new(3, 1).pads(Padding::Each(1));
        b.named(format!("{name}_pool"));
        let y = match module {
            "3c" | "4e" => b.max_pool(&x, pool())?,
            "5b" => b.max_pool(&x, window)?,
            _ => b.average_pool(&x, window, true)?,
        };
        branches.push(if project > 0 {
            conv_bn_relu(b, &name, "pool_proj", &y, square(project, 1))?
        } else {
            y
        });
        x = b.named(format!("{name}_output")).concat(&branches.iter().collect::<Vec<_>>())?;
    }

    let x = b.named("global_pool").global_average_pool(&x)?;
    let x = b.named("last_linear").gemm(&flatten(&x), 1000, true)?;
    b.output("output", &x)?;
    Ok(builder.finish())
}

/// A convolution `{block}_{part}` with bias, batch norm and rectifier.
fn conv_bn_relu(
    b: &mut Builder,
    block: &str,
    part: &str,
    x: &Operand,
    conv: Square,
) -> Result<Operand, BuilderError> {
    let x = conv.bias().conv(b, &format!("{block}_{part}"), x)?;
    norm_relu(b, &x, &format!("{block}_{part}_bn"), &format!("{block}_relu_{part}"), Function::Relu)
}
