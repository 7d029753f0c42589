//! The known primitives: what they compute, in which layouts, and which bytes they keep of a layer's parameters.
//!
//! This table is the checker's own. A test compares it with the kernels: it executes plans with every primitive, in an
//! arena between guards, whose released rows become NaN (`tests/run/layouts.rs`). The second part of the table, for
//! primitives of families, is `families`.

use crate::format::Element::{F16, F32, I64, U8};
use crate::format::Layout::{Chw, Hcw, Hwc};
use crate::format::{Element, Layout};
use crate::operator::{Conv, Function, Operator};
use crate::plan::Layer;
use crate::shape::Shape;

use super::index::{CnnIndex, Index, LayerIndex};
use super::{Findings, Violation, parameters};
use super::{families, integers};

/// A row of the table.
pub(super) struct Primitive {
    pub name: &'static str,
    pub computes: fn(&Operator, &[&Shape]) -> bool,
    /// Layout that it reads, and layout that it writes.
    pub layouts: [Layout; 2],
    /// Elements that it reads, and elements that it writes.
    pub elements: [Element; 2],
    /// Whether its weights are 8-bit integers beside 16-bit floats.
    pub is_mixed: bool,
    /// Bytes that it keeps of a layer's parameters, from the shapes of the layer's operands; none beyond 64 bits.
    pub stored: fn(&Operator, &[&Shape]) -> Option<u64>,
    /// Bytes of workspace, from the shapes of the layer's operands and output; none beyond 64 bits.
    pub workspace: fn(&Operator, &[&Shape], &Shape) -> Option<u64>,
}

impl Primitive {
    /// A primitive that keeps weights in panels, if there are any, and needs no workspace.
    const fn new(
        name: &'static str,
        computes: fn(&Operator, &[&Shape]) -> bool,
        layouts: [Layout; 2],
    ) -> Self {
        let (elements, stored) = ([F32; 2], parameters::stored);
        let is_mixed = false;
        Primitive { name, computes, layouts, elements, is_mixed, stored, workspace: |_, _, _| Some(0) }
    }

    /// The same for 16-bit floats, from HWC to HWC.
    const fn half(name: &'static str, computes: fn(&Operator, &[&Shape]) -> bool) -> Self {
        let (elements, stored) = ([F16; 2], parameters::stored_half);
        Primitive { elements, stored, ..Primitive::new(name, computes, [Hwc, Hwc]) }
    }

    /// The same with weights of 8 bits.
    const fn mixed(name: &'static str, computes: fn(&Operator, &[&Shape]) -> bool) -> Self {
        let stored = parameters::stored_mixed;
        Primitive { is_mixed: true, stored, ..Primitive::half(name, computes) }
    }

    /// The same for 8-bit integers.
    const fn of_integers(name: &'static str, computes: fn(&Operator, &[&Shape]) -> bool) -> Self {
        let (elements, stored) = ([U8; 2], integers::stored);
        Primitive { elements, stored, ..Primitive::new(name, computes, [Hwc, Hwc]) }
    }
}

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
    Primitive { workspace: kept_boxes, ..Primitive::new("own-kernel-hwc-hwc", is_other, [Hwc, Hwc]) },
    Primitive::new("element-wise-hcw-hcw", is_element_wise, [Hcw, Hcw]),
    Primitive::new("element-wise-chw-chw", is_element_wise, [Chw, Chw]),
    Primitive::half("indirect-gemm-half-hwc-hwc", is_dense),
    Primitive::half("depthwise-direct-half-hwc-hwc", is_depthwise),
    Primitive::half("gemm-panels-half-hwc-hwc", |op, _| op.kind() == "gemm"),
    Primitive::half("own-kernel-half-hwc-hwc", |op, _| OF_HALVES.contains(&op.kind())),
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
    Primitive::of_integers("indirect-gemm-int8-hwc-hwc", |op, inputs| {
        is_dense(op, inputs) && integers::is_sum(op, inputs)
    }),
    Primitive::of_integers("depthwise-direct-int8-hwc-hwc", |op, inputs| {
        is_depthwise(op, inputs) && integers::is_sum(op, inputs)
    }),
    Primitive::of_integers("gemm-panels-int8-hwc-hwc", |op, inputs| {
        op.kind() == "gemm" && integers::is_sum(op, inputs)
    }),
    Primitive::of_integers("own-kernel-int8-hwc-hwc", integers::is_other),
    Primitive::of_integers("convert-requantise-hwc-hwc", |op, _| op.kind() == "convert"),
    Primitive {
        elements: [F32, U8],
        stored: |_, _| Some(0),
        ..Primitive::of_integers("convert-quantise-hwc-hwc", |op, _| op.kind() == "convert")
    },
    Primitive {
        elements: [U8, F32],
        stored: |_, _| Some(0),
        ..Primitive::of_integers("convert-dequantise-hwc-hwc", |op, _| op.kind() == "convert")
    },
];

/// Kinds of operators, except convolutions and products, that are computed on 16-bit floats.
const OF_HALVES: &[&str] = &[
    "element_wise",
    "batch_norm",
    "binary",
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

fn is_depthwise(operator: &Operator, inputs: &[&Shape]) -> bool {
    // The rule on shapes forbids a residual in a depthwise convolution.
    matches!((operator, inputs), (Operator::Conv(conv), [x]) if [x.channels(), conv.filters] == [conv.groups; 2])
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

/// A float for each box of a class that a suppression keeps.
fn kept_boxes(operator: &Operator, _: &[&Shape], _: &Shape) -> Option<u64> {
    match operator {
        Operator::NonMaxSuppression(suppression) => (suppression.most as u64).checked_mul(4),
        _ => Some(0),
    }
}

/// Functions of an element that need no constants.
fn is_element_wise(operator: &Operator, _: &[&Shape]) -> bool {
    matches!(operator, Operator::ElementWise(element_wise) if !matches!(element_wise.function, Function::PRelu { .. }))
}

fn is_other(operator: &Operator, _: &[&Shape]) -> bool {
    !["conv", "conv_transpose", "gemm", "convert"].contains(&operator.kind())
}

/// All primitives.
fn all() -> impl Iterator<Item = &'static Primitive> {
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
    for (what, quantisation) in within {
        let Some(quantisation) = quantisation else { continue };
        if primitive.elements != [U8; 2] {
            wrong(format!("{what} is kept as 8-bit integers, which `{}` does not read", primitive.name));
        }
        if !(quantisation.scale.is_normal() && quantisation.scale > 0.0) {
            wrong(format!("the scale of {what} is {}, no positive normal number", quantisation.scale));
        }
    }
    let is_conv = matches!(layer.operator, Operator::Conv(_));
    if let [first, others @ ..] = entry.inputs.as_slice()
        && is_conv
        && primitive.elements == [U8; 2]
    {
        let of = |read: usize| cnn.layers[read].tensor;
        for &other in others.iter().filter(|&&other| of(other).quantisation != of(*first).quantisation) {
            let [first, other] = [*first, other].map(|read| &of(read).name);
            wrong(format!(
                "it reads integers of `{other}`, which stand for other numbers than those of `{first}`"
            ));
        }
    }
    let makes = match &layer.operator {
        Operator::ArgMax(_) | Operator::NonMaxSuppression(_) => I64,
        Operator::TopK(top) if top.indices => I64,
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
        if moves && tensor.quantisation != entry.tensor.quantisation {
            let (read, made) = (&tensor.name, &entry.tensor.name);
            wrong(format!(
                "it moves integers of `{read}`, which stand for other numbers than those of `{made}`"
            ));
        }
        if [reads, writes] != [Hwc, Hwc] && input.view.is_some() {
            wrong(format!("it reads `{}` as it lies, not in other dimensions", tensor.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::bind;
    use crate::check::tests::plans;
    use crate::format::Quantisation;
    use crate::operator::{Conv, ConvTranspose, Gemm, Pre};

    /// No name is in one table and not in the other.
    #[test]
    fn all_primitives_are_known() {
        let names: Vec<&str> = all().map(|row| row.name).collect();
        let bound: Vec<&str> = bind::Primitive::all().map(bind::Primitive::name).collect();
        assert_eq!(names, bound);
    }

    /// The bytes that a layer keeps, by operator, groups and slopes, are the bytes into which it is packed.
    #[test]
    fn both_tables_keep_the_same() {
        let slopes = [None, Some(vec![1]), Some(vec![12, 1, 1]), Some(vec![12, 5, 5]), Some(vec![12])];
        let mut compared = 0;
        for slope in slopes {
            let activation = slope.map(|slope| Function::PRelu { slope });
            for (groups, channels, affine) in
                [(1, 8, false), (1, 8, true), (4, 8, false), (6, 6, false), (12, 24, false), (12, 12, true)]
            {
                let (kernel, stride, dilation, pads) = ([3, 2], [1, 1], [1, 1], [0; 4]);
                let pre = affine.then_some(Pre { affine, ..Pre::default() });
                let (filters, bias, residual) = (12, true, false);
                let conv = Operator::Conv(Conv {
                    filters,
                    kernel,
                    stride,
                    dilation,
                    pads,
                    groups,
                    bias,
                    pre,
                    residual,
                    activation: activation.clone(),
                });
                let transposed = Operator::ConvTranspose(ConvTranspose {
                    filters,
                    kernel,
                    stride,
                    dilation,
                    pads,
                    output_padding: [0; 2],
                    groups,
                    bias,
                    activation: activation.clone(),
                });
                let (inner, units, transposed_weights) = (8, 12, true);
                let gemm = Operator::Gemm(Gemm {
                    inner,
                    units,
                    transposed: transposed_weights,
                    bias,
                    activation: activation.clone(),
                });
                let (image, vector) = (Shape::image(channels, 7, 6), Shape::new([1, 8]));
                for (operator, seen) in [(conv, &image), (transposed, &image), (gemm, &vector)] {
                    let count = parameters::elements(&operator, &[seen]).unwrap();
                    let bound = bind::Primitive::of(&operator, &[seen]);
                    let row = all().find(|row| row.name == bound.name()).unwrap();
                    let kept = bound.stored_bytes(&operator, &[seen], count);
                    assert_eq!((row.stored)(&operator, &[seen]), Some(kept), "{operator:?}");
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 90);
    }

    /// For convolutions of all kinds, with anything fused: the primitives that compute them, and their workspace.
    #[test]
    fn both_tables_take_the_same_convolutions() {
        let image = Shape::image(4, 7, 6);
        let output = Shape::image(4, 5, 5);
        let mut lowered = 0;
        for (channels, filters, groups) in [(4, 4, 1), (4, 4, 4), (4, 8, 4), (4, 4, 2), (1, 1, 1), (1, 4, 1)]
        {
            for (count, residual, affine) in (1..4)
                .flat_map(|count| [false, true].map(|is| (count, is)))
                .flat_map(|(count, is)| [false, true].map(|affine| (count, is, affine)))
            {
                let pre = affine.then_some(Pre { affine, ..Pre::default() });
                let conv = Operator::Conv(Conv {
                    filters,
                    kernel: [3, 2],
                    stride: [1, 1],
                    dilation: [1, 1],
                    pads: [0; 4],
                    groups,
                    bias: true,
                    pre,
                    residual,
                    activation: None,
                });
                let first = Shape::image(channels, 7, 6);
                let mut inputs = vec![&first];
                inputs.resize(count, if residual { &output } else { &image });
                // Refused by the rule on shapes, before primitives are looked at.
                let is_depthwise = groups == channels && groups == filters;
                if residual && (count == 1 || is_depthwise) || groups > 1 && count > 1 + usize::from(residual)
                {
                    continue;
                }
                for row in PRIMITIVES {
                    let bound = bind::Primitive::find(row.name).unwrap();
                    let computes = (row.computes)(&conv, &inputs);
                    assert_eq!(computes, bound.computes(&conv, &inputs), "{} {conv:?}", row.name);
                    if computes {
                        let bytes = bound.workspace_bytes(&conv, &inputs, &output);
                        assert_eq!((row.workspace)(&conv, &inputs, &output), Some(bytes));
                        lowered += usize::from(bytes > 0);
                    }
                }
            }
        }
        assert!(lowered > 0);
    }

    /// For random convolutions, small and large: the primitives that compute them, the bytes that these keep, and their
    /// workspace.
    #[test]
    fn both_tables_know_the_same_of_random_convolutions() {
        let mut random = ChaCha8Rng::seed_from_u64(13);
        let mut counts = BTreeMap::new();
        for _ in 0..3000 {
            let mut up_to = |most: usize| match random.random_range(0..3) {
                0 => 1,
                _ => random.random_range(1..=most),
            };
            let (channels, filters) = (up_to(100), up_to(300));
            let mut kernel = [up_to(6), up_to(6)];
            let [mut stride, mut dilation] = [[up_to(2), up_to(2)], [up_to(2), up_to(2)]];
            let mut pads = [0; 4].map(|_: usize| up_to(3) - 1);
            let (height, width) = (up_to(90), up_to(150));
            let parts = if up_to(6) == 6 { 2 } else { 1 };
            let groups = if up_to(6) == 6 && parts == 1 && filters == channels { channels } else { 1 };
            match random.random_range(0..4) {
                0 => {
                    kernel = [[3, 3], [5, 5], [4, 3], [2, 5]][random.random_range(0..4)];
                    (stride, dilation) = ([1, 1], [1, 1]);
                }
                1 => (kernel, pads) = ([1, 1], [0; 4]),
                _ => {}
            }
            let activation = match random.random_range(0..4) {
                0 => Some(Function::PRelu { slope: vec![1] }),
                1 => Some(Function::Relu),
                _ => None,
            };
            let pre = (random.random_range(0..8) == 0).then(|| Pre {
                affine: random.random_range(0..4) > 0,
                activation: [None, Some(Function::Relu), Some(Function::HardSwish)]
                    [random.random_range(0..3)]
                .clone(),
                quantisation: [None, Some(Quantisation { scale: 0.1, zero_point: 3 })]
                    [random.random_range(0..2)],
            });
            let (bias, residual) = (random.random_range(0..2) == 0, false);
            let size = [height, width];
            let made = [0, 1].map(|axis| {
                let reach = (kernel[axis] - 1) * dilation[axis] + 1;
                (size[axis] + pads[axis] + pads[axis + 2])
                    .checked_sub(reach)
                    .map(|rest| rest / stride[axis] + 1)
            });
            let [Some(rows), Some(columns)] = made else { continue };
            let conv = Operator::Conv(Conv {
                filters,
                kernel,
                stride,
                dilation,
                pads,
                groups,
                bias,
                pre,
                residual,
                activation,
            });
            let (image, output) =
                (Shape::image(channels, height, width), Shape::image(filters, rows, columns));
            let seen = vec![&image; parts];
            let Some(elements) = parameters::elements(&conv, &seen) else { continue };
            for row in all() {
                let bound = bind::Primitive::find(row.name).unwrap();
                let computes = (row.computes)(&conv, &seen);
                assert_eq!(computes, bound.computes(&conv, &seen), "{} {conv:?} of {image}", row.name);
                if computes {
                    let kept = bound.stored_bytes(&conv, &seen, elements);
                    assert_eq!((row.stored)(&conv, &seen), Some(kept), "{} {conv:?} of {image}", row.name);
                    let bytes = bound.workspace_bytes(&conv, &seen, &output);
                    let stated = (row.workspace)(&conv, &seen, &output);
                    assert_eq!(stated, Some(bytes), "{} {conv:?} of {image}", row.name);
                    *counts.entry(row.name).or_insert(0) += 1;
                }
            }
        }
        let few: Vec<_> = counts.iter().filter(|(_, count)| **count < 20).collect();
        assert!(counts.len() >= 160 && few.is_empty(), "{} primitives, {few:?}", counts.len());
    }

    /// For every layer of the test plans, the primitives that compute it.
    #[test]
    fn both_tables_compute_the_same() {
        for (name, plan) in plans::all() {
            let index = crate::check::structure::check(&plan).unwrap();
            for cnn in &index.cnns {
                for l in 0..cnn.layers.len() {
                    let (operator, inputs) = (&cnn.layers[l].layer.operator, cnn.seen_all(l));
                    for row in all() {
                        let bound = bind::Primitive::find(row.name).unwrap();
                        let computes = (row.computes)(operator, &inputs);
                        assert_eq!(computes, bound.computes(operator, &inputs), "{name}, {}", row.name);
                        assert_eq!((row.layouts, row.elements), (bound.layouts(), bound.elements()));
                    }
                }
            }
        }
    }
}
