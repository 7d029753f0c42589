//! The known primitives: what they compute, in which layouts, and which bytes they keep of a layer's parameters.
//!
//! This table is the checker's own. A test compares it with the kernels: it executes plans with every primitive, in an
//! arena between guards, whose released rows become NaN (`tests/run/layouts.rs`). The second part of the table, for
//! primitives of families, is `families`.
//!
//! ```
//! use csdfc_plan::check::primitives::all;
//! use csdfc_plan::operator::Operator;
//! use csdfc_plan::shape::Shape;
//!
//! let conv: Operator = serde_json::from_str(
//!     r#"{"op": "conv", "attributes": {"filters": 8, "kernel": [5, 5], "stride": [1, 1], "dilation": [1, 1],
//!         "pads": [2, 2, 2, 2], "groups": 1, "bias": true}}"#,
//! )?;
//! let (image, output) = (Shape::image(3, 32, 32), Shape::image(8, 32, 32));
//! let im2row = all().find(|primitive| primitive.name == "im2row-strip-hwc-hwc").ok_or("not known")?;
//! assert!((im2row.computes)(&conv, &[&image]));
//! // The windows of an output row: 32 times 5·5 pixels of three channels.
//! assert_eq!((im2row.workspace)(&conv, &[&image], &output), Some(32 * 5 * 5 * 3 * 4));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::format::Element::{F16, F32, I64, U8};
use crate::format::Layout::{Chw, Hcw, Hwc};
use crate::operator::{Cell, Conv, Function, Operator, PoolKind};
use crate::plan::Layer;
use crate::shape::Shape;

use super::index::{CnnIndex, Index, LayerIndex};
use super::{Findings, Violation};
use super::{families, integers};

pub use super::primitive::Primitive;

const PRIMITIVES: &[Primitive] = &[
    Primitive::new("indirect-gemm-hwc-hwc", is_dense, [Hwc, Hwc]),
    Primitive {
        workspace: im2row,
        ..Primitive::new("im2row-strip-hwc-hwc", |op, inputs| is_lowered(op, inputs).is_some(), [Hwc, Hwc])
    },
    Primitive::new("depthwise-direct-hwc-hwc", is_depthwise, [Hwc, Hwc]),
    Primitive::new("transposed-gather-hwc-hwc", |op, _| op.kind() == "conv_transpose", [Hwc, Hwc]),
    Primitive::new("gemm-panels-hwc-hwc", |op, _| op.kind() == "gemm", [Hwc, Hwc]),
    Primitive::new("convert-swap-hwc-hcw", |op, _| op.kind() == "convert", [Hwc, Hcw]),
    Primitive::new("convert-swap-hcw-hwc", |op, _| op.kind() == "convert", [Hcw, Hwc]),
    Primitive::new("convert-scatter-hcw-chw", |op, _| op.kind() == "convert", [Hcw, Chw]),
    Primitive::new("convert-gather-chw-hcw", |op, _| op.kind() == "convert", [Chw, Hcw]),
    Primitive { workspace: room_of_others, ..Primitive::new("own-kernel-hwc-hwc", is_other, [Hwc, Hwc]) },
    Primitive::new("element-wise-hcw-hcw", is_element_wise, [Hcw, Hcw]),
    Primitive::new("element-wise-chw-chw", is_element_wise, [Chw, Chw]),
    Primitive::half("indirect-gemm-half-hwc-hwc", is_dense),
    Primitive::half("depthwise-direct-half-hwc-hwc", is_depthwise),
    Primitive::half("gemm-panels-half-hwc-hwc", |op, _| op.kind() == "gemm"),
    Primitive::half("own-kernel-half-hwc-hwc", |op, _| OF_HALVES.contains(&op.kind()) && !is_place(op)),
    Primitive {
        elements: [F32, F16],
        ..Primitive::half("convert-narrow-hwc-hwc", |op, _| op.kind() == "convert")
    },
    Primitive {
        elements: [F16, F32],
        ..Primitive::half("convert-widen-hwc-hwc", |op, _| op.kind() == "convert")
    },
    Primitive::mixed("indirect-gemm-mixed-hwc-hwc", is_dense),
    Primitive::mixed("depthwise-direct-mixed-hwc-hwc", is_depthwise),
    Primitive::mixed("gemm-panels-mixed-hwc-hwc", |op, _| op.kind() == "gemm"),
    Primitive::w8("indirect-gemm-w8-hwc-hwc", |op, inputs| is_dense(op, inputs) && !has_slopes(op)),
    Primitive::w8("depthwise-direct-w8-hwc-hwc", |op, inputs| is_depthwise(op, inputs) && !has_slopes(op)),
    Primitive::w8("gemm-panels-w8-hwc-hwc", |op, _| op.kind() == "gemm" && !has_slopes(op)),
    Primitive::w16("indirect-gemm-w16-hwc-hwc", |op, inputs| is_dense(op, inputs) && !has_slopes(op)),
    Primitive::w16("depthwise-direct-w16-hwc-hwc", |op, inputs| is_depthwise(op, inputs) && !has_slopes(op)),
    Primitive::w16("gemm-panels-w16-hwc-hwc", |op, _| op.kind() == "gemm" && !has_slopes(op)),
    Primitive::of_integers("indirect-gemm-int8-hwc-hwc", |op, inputs| {
        is_dense(op, inputs) && integers::is_sum(op, inputs)
    }),
    Primitive::of_integers("depthwise-direct-int8-hwc-hwc", |op, inputs| {
        is_depthwise(op, inputs) && integers::is_sum(op, inputs)
    }),
    Primitive::of_integers("gemm-panels-int8-hwc-hwc", |op, inputs| {
        op.kind() == "gemm" && integers::is_sum(op, inputs)
    }),
    Primitive::with_offset("indirect-gemm-uint8-hwc-hwc", |op, inputs| {
        is_dense(op, inputs) && integers::is_sum(op, inputs)
    }),
    Primitive::with_offset("depthwise-direct-uint8-hwc-hwc", |op, inputs| {
        is_depthwise(op, inputs) && integers::is_sum(op, inputs)
    }),
    Primitive::with_offset("gemm-panels-uint8-hwc-hwc", |op, inputs| {
        op.kind() == "gemm" && integers::is_sum(op, inputs)
    }),
    Primitive::of_integers("own-kernel-int8-hwc-hwc", integers::is_other),
    Primitive::of_integers("convert-requantize-hwc-hwc", |op, _| op.kind() == "convert"),
    Primitive {
        elements: [F32, U8],
        stored: |_, _| Some(0),
        ..Primitive::of_integers("convert-quantize-hwc-hwc", |op, _| op.kind() == "convert")
    },
    Primitive {
        elements: [U8, F32],
        stored: |_, _| Some(0),
        ..Primitive::of_integers("convert-dequantize-hwc-hwc", |op, _| op.kind() == "convert")
    },
];

/// Kinds of operators, except convolutions and products, that are computed on 16-bit floats.
const OF_HALVES: &[&str] = &[
    "element_wise",
    "batch_norm",
    "binary",
    "where",
    "mat_mul",
    "pool",
    "reduce",
    "softmax",
    "concat",
    "resize",
    "pad",
    "slice",
    "transpose",
    "depth_to_space",
    "space_to_depth",
];

/// Whether it makes places of elements, which 16-bit floats cannot hold.
fn is_place(operator: &Operator) -> bool {
    matches!(operator, Operator::Pool(pool) if pool.kind == PoolKind::MaxIndex)
}

fn is_depthwise(operator: &Operator, inputs: &[&Shape]) -> bool {
    // The rule on shapes forbids a residual in a depthwise convolution.
    matches!((operator, inputs), (Operator::Conv(conv), [x]) if [x.channels(), conv.filters] == [conv.groups; 2])
}

fn has_slopes(operator: &Operator) -> bool {
    matches!(operator.activation(), Some(Function::PRelu { .. }))
}

fn is_dense(operator: &Operator, inputs: &[&Shape]) -> bool {
    matches!(operator, Operator::Conv(_)) && !is_depthwise(operator, inputs)
}

/// A dense convolution of one image as it is, of one group, to which nothing is added.
fn is_lowered<'a>(operator: &'a Operator, inputs: &[&Shape]) -> Option<&'a Conv> {
    match operator {
        Operator::Conv(conv) if is_dense(operator, inputs) && inputs.len() == 1 => {
            (conv.groups == 1 && !conv.residual && conv.pre.is_none()).then_some(conv)
        }
        _ => None,
    }
}

/// The floats of the windows of one output row: `o_w · k_h · k_w · i_c` of them.
fn im2row(operator: &Operator, inputs: &[&Shape], output: &Shape) -> Option<u64> {
    let conv = is_lowered(operator, inputs)?;
    let [_, _, _, width] = output.dims[..] else { return None };
    let factors = [width, conv.kernel[0], conv.kernel[1], inputs[0].channels(), 4];
    factors.iter().try_fold(1u64, |product, &factor| product.checked_mul(factor as u64))
}

/// A float for each box of a class that a suppression keeps. For each column of a recurrent layer, its state, the sums of
/// its gates and, unless it is an RNN, the memory or the state that is reset.
fn room_of_others(operator: &Operator, _: &[&Shape], output: &Shape) -> Option<u64> {
    match operator {
        Operator::NonMaxSuppression(suppression) => (suppression.most as u64).checked_mul(4),
        Operator::Recurrent(recurrent) => {
            let columns = output.dims.get(output.column_axis()?)?;
            let vectors = recurrent.cell.gates() + if recurrent.cell == Cell::Rnn { 1 } else { 2 };
            (*columns as u64).checked_mul(recurrent.size as u64)?.checked_mul(4 * vectors as u64)
        }
        _ => Some(0),
    }
}

/// Functions of an element that need no constants.
fn is_element_wise(operator: &Operator, _: &[&Shape]) -> bool {
    matches!(operator, Operator::ElementWise(element_wise) if !matches!(element_wise.function, Function::PRelu { .. }))
}

fn is_other(operator: &Operator, _: &[&Shape]) -> bool {
    let is_of_integers = matches!(operator, Operator::Input(input) if input.is_of_integers());
    !is_of_integers && !["conv", "conv_transpose", "gemm", "convert"].contains(&operator.kind())
}

/// All primitives.
pub fn all() -> impl Iterator<Item = &'static Primitive> {
    PRIMITIVES.iter().chain(families::all())
}

/// The primitive of a layer, if it is one that computes it. `inputs` are the operands as seen.
pub(super) fn find(layer: &Layer, inputs: &[&Shape]) -> Option<&'static Primitive> {
    all().find(|row| row.name == layer.primitive && (row.computes)(&layer.operator, inputs))
}

/// Bytes of workspace that a layer needs; none beyond 64 bits, or if its primitive is not known.
pub(super) fn workspace(entry: &LayerIndex<'_>, inputs: &[&Shape]) -> Option<u64> {
    let primitive = find(entry.layer, inputs)?;
    (primitive.workspace)(&entry.layer.operator, inputs, &entry.tensor.shape)
}

/// Checks that each layer has a primitive that computes it, reads tensors in their formats, and writes its tensor in
/// the format that the plan states.
pub(super) fn check(index: &Index<'_>) -> Result<(), Vec<Violation>> {
    let mut findings = Findings::default();
    for cnn in &index.cnns {
        for l in 0..cnn.layers.len() {
            check_layer(cnn, l, &mut |why| {
                let (cnn, layer) = (cnn.cnn.name.clone(), cnn.layers[l].layer.name.clone());
                findings.push(Violation::Operator { cnn, layer, why });
            });
        }
    }
    findings.or(())
}

fn check_layer(cnn: &CnnIndex<'_>, l: usize, wrong: &mut dyn FnMut(String)) {
    let entry = &cnn.layers[l];
    let layer = entry.layer;
    let Some(primitive) = find(layer, &cnn.seen_all(l)) else {
        return wrong(format!("no primitive `{}` computes this {}", layer.primitive, layer.operator.kind()));
    };
    let [reads, writes] = primitive.layouts;
    let stated = [layer.layout_in, layer.layout_out];
    if stated != primitive.layouts {
        let ([says_in, says_out], name) = (stated, primitive.name);
        wrong(format!("`{name}` reads {reads} and writes {writes}, not {says_in} and {says_out}"));
    }
    let stated = entry.tensor.format.layout;
    if stated != writes {
        wrong(format!("it writes {writes}, but `{}` is stored as {stated}", entry.tensor.name));
    }
    let within = [
        ("its constant", integers::constant(&layer.operator)),
        ("what it multiplies", integers::multiplied(&layer.operator)),
    ];
    for (what, quantization) in within {
        let Some(quantization) = quantization else { continue };
        if primitive.elements != [U8; 2] {
            wrong(format!("{what} is kept as 8-bit integers, which `{}` does not read", primitive.name));
        }
        if !(quantization.scale.is_normal() && quantization.scale > 0.0) {
            wrong(format!("the scale of {what} is {}, no positive normal number", quantization.scale));
        }
    }
    let is_conv = matches!(layer.operator, Operator::Conv(_));
    if let [first, others @ ..] = entry.inputs.as_slice()
        && is_conv
        && primitive.elements == [U8; 2]
    {
        let of = |read: usize| cnn.layers[read].tensor;
        for &other in others.iter().filter(|&&other| of(other).quantization != of(*first).quantization) {
            let [first, other] = [*first, other].map(|read| &of(read).name);
            wrong(format!(
                "it reads integers of `{other}`, which stand for other numbers than those of `{first}`"
            ));
        }
    }
    let makes = match &layer.operator {
        Operator::NonMaxSuppression(suppression) if !suppression.floats => I64,
        Operator::ArgMax(arg_max) if !arg_max.floats => I64,
        Operator::TopK(top) if top.indices && !top.floats => I64,
        _ => primitive.elements[1],
    };
    let stated = entry.tensor.format.element;
    if stated != makes {
        wrong(format!("it makes {makes}, but `{}` has elements {stated}", entry.tensor.name));
    }
    for (read, input) in entry.inputs.iter().zip(&layer.inputs) {
        let tensor = cnn.layers[*read].tensor;
        let stated = tensor.format.layout;
        if stated != reads {
            wrong(format!("it reads {reads}, but `{}` is stored as {stated}", tensor.name));
        }
        let (element, stated) = (primitive.elements[0], tensor.format.element);
        if stated != element {
            wrong(format!("it reads {element}, but `{}` has elements {stated}", tensor.name));
        }
        let moves = primitive.elements == [U8; 2] && integers::moves(&layer.operator);
        if moves && tensor.quantization != entry.tensor.quantization {
            let (read, made) = (&tensor.name, &entry.tensor.name);
            wrong(format!(
                "it moves integers of `{read}`, which stand for other numbers than those of `{made}`"
            ));
        }
        if [reads, writes] != [Hwc, Hwc] && input.view.is_some() {
            wrong(format!(
                "its primitive reads `{}` as it lies, so the operand must have no `view`",
                tensor.name
            ));
        }
    }
}
