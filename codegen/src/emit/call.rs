//! Calls of kernels as Rust: the counterpart of `bind`'s own.

use std::fmt::Debug;
use std::ops::Range;

use csdfc_kernels::activation::Activation;
use csdfc_kernels::conv::{Conv, Pre};
use csdfc_kernels::elements::{Dims, ElementShape};
use csdfc_kernels::resize::{Line, ResizeMode};
use csdfc_kernels::rows::RowShape;

use crate::bind::{Access, Call, Constant, Kernel};

use super::source::Source;

/// Rows as a kernel's argument: where their storage is, and where in it they are.
pub(super) struct Operand {
    pub data: String,
    pub slots: Slots,
}

/// Where rows of a frame are in some storage.
pub(super) enum Slots {
    /// It is the ring that the layer is bound with; the slot of row 0.
    Ring(String),
    /// The rows of this variable alone, the first at the start.
    Only(String),
}

/// A kernel's function and the arguments that come before the rows.
struct Function {
    module: &'static str,
    name: &'static str,
    /// Whether it takes the instruction set.
    isa: bool,
    arguments: Vec<Argument>,
}

/// An argument that is a constant.
enum Argument {
    /// Written where it stands.
    Inline(String),
    /// A structure: its type and fields.
    Struct(&'static str, Vec<String>),
}

/// The modules of the kernels that a call needs.
pub(super) fn modules(call: &Call) -> impl Iterator<Item = &'static str> {
    let activation = match &call.kernel {
        Kernel::Conv(_) | Kernel::ConvTranspose(_) | Kernel::GemmElements(_) => Some("activation"),
        Kernel::ElementWise(_) | Kernel::BatchNorm(_) => Some("activation"),
        Kernel::Binary(_) | Kernel::BinaryConstant { .. } => Some("activation"),
        _ => None,
    };
    let axis = matches!(call.kernel, Kernel::ArgMax { .. }).then_some("concat");
    let elements = matches!(call.output, Access::Elements(..)).then_some("elements");
    let slopes = call.p_relu.then_some("element_wise");
    let own = function(call).module;
    [Some(own), activation, axis, elements, slopes].into_iter().flatten()
}

/// Writes the call that makes rows `y` of a layer into `output`. `weights` are where the layer's parameters begin
/// among all, `threads` how many workers share a firing.
pub(super) fn write(
    source: &mut Source,
    call: &Call,
    operands: &[Operand],
    output: &Operand,
    weights: usize,
    threads: usize,
) {
    for (i, (operand, input)) in operands.iter().zip(&call.inputs).enumerate() {
        let slots = match (&operand.slots, input.fold, input.into) {
            (Slots::Only(rows), ..) => Slots::Only(rows.clone()),
            (Slots::Ring(first), 1, 1) => Slots::Ring(first.clone()),
            (Slots::Ring(first), ..) if first == "0" => Slots::Ring(first.clone()),
            (Slots::Ring(first), fold, 1) => Slots::Ring(format!("{first} / {fold}")),
            (Slots::Ring(first), fold, into) => Slots::Ring(format!("{first} / {fold} * {into}")),
        };
        write_access(source, &format!("x{}", i + 1), &operand.data, &slots, input.access, false);
    }
    for (i, constant) in call.constants.iter().enumerate() {
        write_constant(source, &format!("c{}", i + 1), constant, weights, is_per_channel(call, i));
    }
    write_access(source, "output", &output.data, &output.slots, call.output, true);

    let function = function(call);
    let mut before = Vec::new();
    if function.isa {
        before.push("self.isa".to_owned());
    }
    if let Kernel::Conv(Conv { pre: Some(Pre { affine, activation }), .. }) = call.kernel {
        let fields = [format!("affine: {affine}"), activation_field(activation)];
        source.list("const PRE: kernels::conv::Pre = kernels::conv::Pre {", &fields, ";");
    }
    for argument in function.arguments {
        match argument {
            Argument::Inline(text) => before.push(text),
            Argument::Struct(name, fields) => {
                let path = format!("kernels::{}::{name}", function.module);
                source.list(&format!("const P: {path} = {path} {{"), &fields, ";");
                before.push("&P".into());
            }
        }
    }
    let by_elements = matches!(call.output, Access::Elements(..));
    let is_product = matches!(call.kernel, Kernel::MatMul);
    let is_shared = threads > 1 && matches!(call.kernel, Kernel::Conv(_));
    if is_shared {
        before.insert(0, "self.workers".to_owned());
    }
    let name = if is_shared {
        "kernels::workers::conv(".to_owned()
    } else if by_elements && !is_product && !function.name.ends_with("_elements") {
        format!("kernels::{}::{}_elements(", function.module, function.name)
    } else {
        format!("kernels::{}::{}(", function.module, function.name)
    };
    let borrowed = if by_elements { "&" } else { "" };
    let x = |i: usize| format!("{borrowed}x{}", i + 1);
    let constant = |i: usize| match call.constants.get(i).map(|constant| constant.packing.access()) {
        Some(Some(Access::Elements(..))) if by_elements && !is_per_channel(call, i) => format!("&c{}", i + 1),
        _ => format!("c{}", i + 1),
    };
    let finish = |before: Vec<String>, rows: &[String]| {
        let y = match call.kernel {
            Kernel::ReduceFrame(_) => None,
            _ => Some("y.clone()".to_owned()),
        };
        before
            .into_iter()
            .chain(y)
            .chain(rows.iter().cloned())
            .chain(["&mut output".to_owned()])
            .collect::<Vec<_>>()
    };
    match &call.kernel {
        Kernel::Concat { starts, .. } | Kernel::ConcatElements { starts, .. } => {
            for (i, start) in starts.iter().enumerate() {
                let before = before.iter().cloned().chain([start.to_string()]).collect();
                source.list(&name, &finish(before, &[x(i)]), ";");
            }
        }
        Kernel::Conv(_) => {
            let read = match operands.len() {
                1 => "&[x1]".to_owned(),
                count => {
                    source.list("let operands = [", &(0..count).map(x).collect::<Vec<_>>(), ";");
                    "&operands".to_owned()
                }
            };
            source.list(&name, &finish(before, &[read, constant(0)]), ";");
        }
        Kernel::ConvTranspose(_) | Kernel::GemmElements(_) | Kernel::PRelu => {
            source.list(&name, &finish(before, &[x(0), constant(0)]), ";")
        }
        Kernel::BatchNorm(_) | Kernel::InstanceNorm { .. } => {
            source.list(&name, &finish(before, &[x(0), constant(0), constant(1)]), ";")
        }
        Kernel::Binary(_) | Kernel::MatMul => source.list(&name, &finish(before, &[x(0), x(1)]), ";"),
        Kernel::BinaryConstant { left: true, .. } => {
            source.list(&name, &finish(before, &[constant(0), x(0)]), ";");
        }
        Kernel::BinaryConstant { left: false, .. } => {
            source.list(&name, &finish(before, &[x(0), constant(0)]), ";");
        }
        _ => source.list(&name, &finish(before, &[x(0)]), ";"),
    }
    if call.p_relu {
        let slopes = constant(call.constants.len().saturating_sub(1));
        let suffix = if by_elements { "_elements" } else { "" };
        let arguments = ["y.clone()".to_owned(), slopes, "&mut output".into()];
        source.list(&format!("kernels::element_wise::p_relu_in_place{suffix}("), &arguments, ";");
    }
}

fn function(call: &Call) -> Function {
    let function = |module, name, arguments| Function { module, name, isa: false, arguments };
    let vector = |module, name, arguments| Function { module, name, isa: true, arguments };
    let by_rows = matches!(call.output, Access::Rows(_));
    let text = |value: &dyn Debug| Argument::Inline(format!("{value:?}"));
    let list = |value: &dyn Debug| Argument::Inline(format!("&{value:?}"));
    let of = |kind: &str, value: &dyn Debug| Argument::Inline(format!("kernels::{kind}::{}", numbers(value)));
    let field = |name: &str, value: &dyn Debug| format!("{name}: {}", numbers(value));
    match &call.kernel {
        Kernel::Conv(p) => {
            let fields = vec![
                field("channels", &p.channels),
                field("filters", &p.filters),
                field("kernel", &p.kernel),
                field("stride", &p.stride),
                field("dilation", &p.dilation),
                field("pads", &p.pads),
                field("groups", &p.groups),
                if p.pre.is_some() { "pre: Some(PRE)" } else { "pre: None" }.to_owned(),
                field("residual", &p.residual),
                activation_field(p.activation),
            ];
            vector("conv", "conv", vec![Argument::Struct("Conv", fields)])
        }
        Kernel::ConvTranspose(p) => {
            let fields = vec![
                field("channels", &p.channels),
                field("filters", &p.filters),
                field("kernel", &p.kernel),
                field("stride", &p.stride),
                field("dilation", &p.dilation),
                field("pads", &p.pads),
                field("groups", &p.groups),
                activation_field(p.activation),
            ];
            let arguments = vec![Argument::Struct("transpose::ConvTranspose", fields)];
            vector("conv", "transpose::conv_transpose", arguments)
        }
        Kernel::GemmElements(p) => {
            let fields =
                vec![field("inner", &p.inner), field("units", &p.units), activation_field(p.activation)];
            vector("gemm", "gemm_elements", vec![Argument::Struct("Gemm", fields)])
        }
        Kernel::MatMul => vector("mat_mul", "mat_mul", Vec::new()),
        Kernel::ElementWise(function) => Function {
            isa: by_rows,
            ..vector("element_wise", "element_wise", vec![of("activation::Activation", function)])
        },
        Kernel::PRelu => Function { isa: by_rows, ..vector("element_wise", "p_relu", Vec::new()) },
        Kernel::BatchNorm(activation) => Function {
            isa: by_rows,
            ..vector("element_wise", "batch_norm", vec![of("activation::Activation", activation)])
        },
        Kernel::Binary(p) | Kernel::BinaryConstant { binary: p, .. } => {
            let function = format!("function: kernels::binary::BinaryFunction::{:?}", p.function);
            let fields = vec![function, activation_field(p.activation)];
            Function { isa: by_rows, ..vector("binary", "binary", vec![Argument::Struct("Binary", fields)]) }
        }
        Kernel::Pool(p) => {
            let fields = vec![
                format!("kind: kernels::pool::PoolKind::{:?}", p.kind),
                field("kernel", &p.kernel),
                field("stride", &p.stride),
                field("dilation", &p.dilation),
                field("pads", &p.pads),
            ];
            Function { isa: by_rows, ..vector("pool", "pool", vec![Argument::Struct("Pool", fields)]) }
        }
        Kernel::ReduceRows { function: f, columns, channels } => function(
            "reduce",
            "reduce_rows",
            vec![of("reduce::ReduceFunction", f), text(columns), text(channels)],
        ),
        Kernel::ReduceFrame(f) => vector("reduce", "reduce_frame", vec![of("reduce::ReduceFunction", f)]),
        Kernel::ReduceElements { function: f, axes, keep_dims } => {
            let arguments = vec![of("reduce::ReduceFunction", f), list(axes), text(keep_dims)];
            function("reduce", "reduce_elements", arguments)
        }
        Kernel::ArgMax { axis, select_last } => {
            function("arg_max", "arg_max", vec![of("concat::ImageAxis", axis), text(select_last)])
        }
        Kernel::ArgMaxElements { axis, keep_dims, select_last } => {
            function("arg_max", "arg_max_elements", vec![text(axis), text(keep_dims), text(select_last)])
        }
        Kernel::Concat { axis, .. } => function("concat", "concat", vec![of("concat::ImageAxis", axis)]),
        Kernel::ConcatElements { axis, .. } => function("concat", "concat_elements", vec![text(axis)]),
        Kernel::Slice(p) => {
            let fields = vec![field("starts", &p.starts), field("steps", &p.steps)];
            function("slice", "slice", vec![Argument::Struct("Slice", fields)])
        }
        Kernel::SliceElements { starts, steps } => {
            function("slice", "slice_elements", vec![list(starts), list(steps)])
        }
        Kernel::Pad(p) => {
            let mode = format!("mode: kernels::pad::PadMode::{}", numbers(&p.mode));
            let fields = vec![mode, field("before", &p.before), field("after", &p.after)];
            function("pad", "pad", vec![Argument::Struct("Pad", fields)])
        }
        Kernel::PadElements { mode, before, after } => {
            function("pad", "pad_elements", vec![of("pad::PadMode", mode), list(before), list(after)])
        }
        Kernel::Resize(p) => {
            let line = |line: Line| format!("kernels::resize::{line:?}");
            let mode = match p.mode {
                ResizeMode::Nearest(rounding) => format!("Nearest(kernels::resize::Rounding::{rounding:?})"),
                ResizeMode::Linear => "Linear".into(),
            };
            let fields = vec![
                format!("mode: kernels::resize::ResizeMode::{mode}"),
                format!("rows: {}", line(p.rows)),
                format!("columns: {}", line(p.columns)),
            ];
            function("resize", "resize", vec![Argument::Struct("Resize", fields)])
        }
        Kernel::TransposeElements { perm } => function("transpose", "transpose_elements", vec![list(perm)]),
        Kernel::Softmax(p) => {
            let fields =
                vec![field("log", &p.log), field("columns", &p.columns), field("channels", &p.channels)];
            vector("softmax", "softmax", vec![Argument::Struct("Softmax", fields)])
        }
        Kernel::SoftmaxElements { log, axes } => {
            function("softmax", "softmax_elements", vec![text(log), list(axes)])
        }
        Kernel::Lrn(p) => {
            let fields = vec![
                field("size", &p.size),
                field("alpha", &p.alpha),
                field("beta", &p.beta),
                field("bias", &p.bias),
            ];
            function("lrn", "lrn", vec![Argument::Struct("Lrn", fields)])
        }
        Kernel::DepthToSpace(p) => {
            let fields = vec![field("block", &p.block), field("depth_first", &p.depth_first)];
            function("depth_space", "depth_to_space", vec![Argument::Struct("DepthToSpace", fields)])
        }
        Kernel::InstanceNorm { epsilon } => function("instance_norm", "instance_norm", vec![text(epsilon)]),
        Kernel::SpaceToDepth { block } => function("depth_space", "space_to_depth", vec![text(block)]),
    }
}

/// Writes a variable that is the tensor as the kernel sees it.
fn write_access(source: &mut Source, name: &str, data: &str, slots: &Slots, access: Access, is_output: bool) {
    let (binding, suffix) = if is_output { (format!("mut {name}"), "Mut") } else { (name.to_owned(), "") };
    match access {
        Access::Rows(shape) => {
            let fields = [format!("data: {data}"), format!("shape: {}", row_shape(&shape, slots))];
            source.list(&format!("let {binding} = Rows{suffix} {{"), &fields, ";");
        }
        Access::Elements(shape, seen) => {
            let (data, shape) = element_shape(&shape, data, slots);
            let mut fields = vec![format!("data: {data}"), format!("shape: {shape}")];
            if !is_output {
                fields.push(format!("seen: {}", dims(&seen)));
            }
            source.list(&format!("let {binding} = Elements{suffix} {{"), &fields, ";");
        }
    }
}

/// Whether a constant is one of a norm's scales and shifts, which kernels take as slices.
fn is_per_channel(call: &Call, constant: usize) -> bool {
    constant < 2 && matches!(call.kernel, Kernel::BatchNorm(_) | Kernel::InstanceNorm { .. })
}

/// Writes a variable that is a part of the layer's parameters.
fn write_constant(source: &mut Source, name: &str, constant: &Constant, weights: usize, is_slice: bool) {
    let Range { start, end } = constant.range;
    let data = format!("&self.weights[{}..{}]", weights + start, weights + end);
    match constant.packing.access() {
        Some(access) if !is_slice => {
            write_access(source, name, &format!("Span::new({data})"), &Slots::Ring("0".into()), access, false)
        }
        _ => source.line(format!("let {name} = {data};")),
    }
}

fn row_shape(shape: &RowShape, slots: &Slots) -> String {
    let RowShape { height, width, channels, ring_rows, .. } = shape;
    let dense = format!("RowShape::dense({height}, {width}, {channels}, {ring_rows})");
    match slots {
        Slots::Ring(first) if first == "0" => dense,
        Slots::Ring(first) => format!("RowShape {{ first: {first}, ..{dense} }}"),
        Slots::Only(rows) => format!("{dense}.stored(&{rows})"),
    }
}

/// The storage and shape of a tensor that is seen element by element.
fn element_shape(shape: &ElementShape, data: &str, slots: &Slots) -> (String, String) {
    let sizes = &shape.dims.sizes;
    let image = |height: usize, width: usize, channels: usize| {
        row_shape(&RowShape::dense(height, width, channels, shape.ring_rows), slots)
    };
    let text = match (shape.row_axis, shape.dims.rank) {
        (None, rank) => format!("ElementShape::dense(&{:?})", &sizes[..rank]),
        (Some(2), 4) => format!("ElementShape::channels_first({})", image(sizes[2], sizes[3], sizes[1])),
        (Some(_), 4) => format!("ElementShape::channels_last({})", image(sizes[1], sizes[2], sizes[3])),
        (Some(axis), rank) => {
            let rows = format!("ElementShape::by_rows(&{:?}, {axis}, {})", &sizes[..rank], shape.ring_rows);
            match slots {
                Slots::Ring(first) if first == "0" => rows,
                Slots::Ring(first) => format!("ElementShape {{ first: {first}, ..{rows} }}"),
                Slots::Only(only) => format!("{rows}.stored(&{only})"),
            }
        }
    };
    match slots {
        // One of several frames' worth.
        Slots::Ring(first) if first != "0" && shape.row_axis.is_none() => {
            let elements = shape.dims.elements();
            (format!("{data}.part({first} * {elements}, {elements})"), text)
        }
        _ => (data.to_owned(), text),
    }
}

fn dims(dims: &Dims) -> String {
    format!("Dims::new(&{:?})", &dims.sizes[..dims.rank])
}

fn activation_field(activation: Activation) -> String {
    format!("activation: kernels::activation::Activation::{}", numbers(&activation))
}

/// The debug form of a constant, its numbers as Rust writes them.
fn numbers(value: &dyn Debug) -> String {
    let text = format!("{value:?}");
    let mut numbers = String::new();
    for word in text.split_inclusive([' ', ',', '(', '[', ')', ']']) {
        let end = word.trim_end_matches([' ', ',', '(', '[', ')', ']']);
        numbers += match end {
            "inf" => "f32::INFINITY",
            "-inf" => "f32::NEG_INFINITY",
            "NaN" => "f32::NAN",
            other => other,
        };
        numbers += &word[end.len()..];
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_rust() {
        let clip = Activation::Clip { min: f32::NEG_INFINITY, max: 6.0 };
        assert_eq!(numbers(&clip), "Clip { min: f32::NEG_INFINITY, max: 6.0 }");
        assert_eq!(numbers(&[f32::INFINITY, -1e-12, 3e20]), "[f32::INFINITY, -1e-12, 3e20]");
        assert_eq!(numbers(&[1usize, 2]), "[1, 2]");
    }
}
