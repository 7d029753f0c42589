//! The primitives: every way in which csdfc can compute a layer. Each is a row of one table, which says what the primitive
//! computes, in which formats, with how much workspace, in which form it keeps weights, and by which kernel.
//!
//! A primitive is named `<family>-<variant>-<in>-<out>`, by the layouts that it reads and writes. A plan names one for
//! each layer. To add one: write its kernel, choose the kernel for a [`Site`] in `bind/`, add a row here, and add what
//! the checker must know of it to the table in `check/primitives.rs`. Convolutions that are generic over layouts are
//! families (`scenarios`): one row there stands for a primitive for each pair of layouts.

use csdfc_kernels::conv::im2row::Im2row;
use csdfc_plan::format::Layout::{Chw, Hcw, Hwc};
use csdfc_plan::format::{Element, Format, Layout};
use csdfc_plan::operator::{Conv, Function, Operator, PoolKind};
use csdfc_plan::shape::Shape;

use crate::error::LayerError;

use super::choice::Choice;
use super::kernel::Site;
use super::scenarios::{self, Member};
use super::{constants, integers, layouts, mixed, own_kernels, products, scaled, translate};
use crate::bytes::LINE;

/// A row of the table.
struct Row {
    name: &'static str,
    /// Layout that it reads, and layout that it writes.
    layouts: [Layout; 2],
    /// Elements that it reads, and elements that it makes.
    elements: [Element; 2],
    /// Whether it computes an operator of these operands, as seen.
    computes: fn(&Operator, &[&Shape]) -> bool,
    /// Bytes of workspace, for operands as seen and this output.
    workspace: fn(&Operator, &[&Shape], &Shape) -> u64,
    /// Whether it keeps weights as 8-bit integers, for tensors of 16-bit floats.
    is_mixed: bool,
    /// Whether an offset is added to each of its weights, which are 8-bit integers.
    has_offset: bool,
    /// Bytes of a weight, if weights are 8-bit integers or 16-bit floats with scales, for tensors of 32-bit floats.
    scaled: Option<u64>,
    /// Elements that it keeps of this number of parameters; bytes if it reads 8-bit integers.
    stored: fn(&Operator, &[&Shape], u64) -> u64,
    /// The kernel, and how it sees its tensors.
    kernel: fn(&Site<'_>) -> Result<Choice, LayerError>,
}

impl Row {
    /// A primitive of 32-bit floats that needs no workspace and keeps filters in panels, if there are any.
    const fn new(
        name: &'static str,
        layouts: [Layout; 2],
        computes: fn(&Operator, &[&Shape]) -> bool,
        kernel: fn(&Site<'_>) -> Result<Choice, LayerError>,
    ) -> Self {
        let (elements, stored) = ([Element::F32; 2], constants::stored_elements);
        let (is_mixed, has_offset, scaled) = (false, false, None);
        Row {
            name,
            layouts,
            elements,
            computes,
            workspace: |_, _, _| 0,
            is_mixed,
            has_offset,
            scaled,
            stored,
            kernel,
        }
    }

    /// The same with weights of 8-bit integers.
    const fn w8(
        name: &'static str,
        computes: fn(&Operator, &[&Shape]) -> bool,
        kernel: fn(&Site<'_>) -> Result<Choice, LayerError>,
    ) -> Self {
        let stored =
            |operator: &Operator, inputs: &[&Shape], _: u64| scaled::stored_floats(operator, inputs, false);
        Row { scaled: Some(1), stored, ..Row::new(name, [Hwc, Hwc], computes, kernel) }
    }

    /// The same with weights of 16-bit floats.
    const fn w16(
        name: &'static str,
        computes: fn(&Operator, &[&Shape]) -> bool,
        kernel: fn(&Site<'_>) -> Result<Choice, LayerError>,
    ) -> Self {
        let stored =
            |operator: &Operator, inputs: &[&Shape], _: u64| scaled::stored_floats(operator, inputs, true);
        Row { scaled: Some(2), stored, ..Row::new(name, [Hwc, Hwc], computes, kernel) }
    }

    /// The same for tensors in HWC of 8-bit integers.
    const fn of_integers(
        name: &'static str,
        computes: fn(&Operator, &[&Shape]) -> bool,
        kernel: fn(&Site<'_>) -> Result<Choice, LayerError>,
    ) -> Self {
        let (elements, stored) = ([Element::U8; 2], integers::stored_bytes);
        Row { elements, stored, ..Row::new(name, [Hwc, Hwc], computes, kernel) }
    }

    /// The same with an offset that is added to each weight.
    const fn with_offset(
        name: &'static str,
        computes: fn(&Operator, &[&Shape]) -> bool,
        kernel: fn(&Site<'_>) -> Result<Choice, LayerError>,
    ) -> Self {
        let stored = |operator: &Operator, inputs: &[&Shape], elements| {
            integers::stored_bytes(operator, inputs, elements) + integers::OFFSET
        };
        Row { stored, has_offset: true, ..Row::of_integers(name, computes, kernel) }
    }

    /// The same for images in HWC whose elements, and whose parameters, are 16-bit floats.
    const fn half(
        name: &'static str,
        computes: fn(&Operator, &[&Shape]) -> bool,
        kernel: fn(&Site<'_>) -> Result<Choice, LayerError>,
    ) -> Self {
        Row { elements: [Element::F16; 2], ..Row::new(name, [Hwc, Hwc], computes, kernel) }
    }

    /// The same with weights of 8 bits.
    const fn mixed(
        name: &'static str,
        computes: fn(&Operator, &[&Shape]) -> bool,
        kernel: fn(&Site<'_>) -> Result<Choice, LayerError>,
    ) -> Self {
        Row { is_mixed: true, stored: mixed::stored_halves, ..Row::half(name, computes, kernel) }
    }
}

/// If several primitives compute a layer, the first is taken, unless another one was chosen.
static TABLE: &[Row] = &[
    Row::new(
        "indirect-gemm-hwc-hwc",
        [Hwc, Hwc],
        |operator, inputs| translate::is_conv(operator, inputs, false),
        products::convolution,
    ),
    Row {
        workspace: windows_of_a_row,
        ..Row::new(
            "im2row-strip-hwc-hwc",
            [Hwc, Hwc],
            |operator, inputs| of_windows(operator, inputs).is_some(),
            |site| products::of_one_image(site, |conv| Im2row { conv }),
        )
    },
    Row::new(
        "depthwise-direct-hwc-hwc",
        [Hwc, Hwc],
        |operator, inputs| translate::is_conv(operator, inputs, true),
        products::convolution,
    ),
    Row::new(
        "transposed-gather-hwc-hwc",
        [Hwc, Hwc],
        |operator, _| matches!(operator, Operator::ConvTranspose(_)),
        products::convolution,
    ),
    Row::new("gemm-panels-hwc-hwc", [Hwc, Hwc], |operator, _| is_gemm(operator), products::gemm),
    Row::new("convert-swap-hwc-hcw", [Hwc, Hcw], is_convert, layouts::convert),
    Row::new("convert-swap-hcw-hwc", [Hcw, Hwc], is_convert, layouts::convert),
    Row::new("convert-scatter-hcw-chw", [Hcw, Chw], is_convert, layouts::convert),
    Row::new("convert-gather-chw-hcw", [Chw, Hcw], is_convert, layouts::convert),
    Row {
        workspace: |operator, _, output| own_kernels::workspace_bytes(operator, output),
        ..Row::new(
            "own-kernel-hwc-hwc",
            [Hwc, Hwc],
            |operator, _| has_own_kernel(operator),
            own_kernels::choose,
        )
    },
    Row::new("element-wise-hcw-hcw", [Hcw, Hcw], is_element_wise, layouts::element_wise),
    Row::new("element-wise-chw-chw", [Chw, Chw], is_element_wise, layouts::element_wise),
    Row::half(
        "indirect-gemm-half-hwc-hwc",
        |operator, inputs| translate::is_conv(operator, inputs, false),
        products::convolution,
    ),
    Row::half(
        "depthwise-direct-half-hwc-hwc",
        |operator, inputs| translate::is_conv(operator, inputs, true),
        products::convolution,
    ),
    Row::half("gemm-panels-half-hwc-hwc", |operator, _| is_gemm(operator), products::gemm),
    Row::half("own-kernel-half-hwc-hwc", |operator, _| has_own_half_kernel(operator), own_kernels::choose),
    Row {
        elements: [Element::F32, Element::F16],
        ..Row::half("convert-narrow-hwc-hwc", is_convert, layouts::cast)
    },
    Row {
        elements: [Element::F16, Element::F32],
        ..Row::half("convert-widen-hwc-hwc", is_convert, layouts::cast)
    },
    Row::mixed(
        "indirect-gemm-mixed-hwc-hwc",
        |operator, inputs| translate::is_conv(operator, inputs, false),
        mixed::convolution,
    ),
    Row::mixed(
        "depthwise-direct-mixed-hwc-hwc",
        |operator, inputs| translate::is_conv(operator, inputs, true),
        mixed::convolution,
    ),
    Row::mixed("gemm-panels-mixed-hwc-hwc", |operator, _| is_gemm(operator), mixed::gemm),
    Row::w8(
        "indirect-gemm-w8-hwc-hwc",
        |operator, inputs| scaled::is_conv(operator, inputs, false),
        |site| scaled::convolution(site, false),
    ),
    Row::w8(
        "depthwise-direct-w8-hwc-hwc",
        |operator, inputs| scaled::is_conv(operator, inputs, true),
        |site| scaled::convolution(site, false),
    ),
    Row::w8("gemm-panels-w8-hwc-hwc", scaled::is_gemm, |site| scaled::gemm(site, false)),
    Row::w16(
        "indirect-gemm-w16-hwc-hwc",
        |operator, inputs| scaled::is_conv(operator, inputs, false),
        |site| scaled::convolution(site, true),
    ),
    Row::w16(
        "depthwise-direct-w16-hwc-hwc",
        |operator, inputs| scaled::is_conv(operator, inputs, true),
        |site| scaled::convolution(site, true),
    ),
    Row::w16("gemm-panels-w16-hwc-hwc", scaled::is_gemm, |site| scaled::gemm(site, true)),
    Row::of_integers(
        "indirect-gemm-int8-hwc-hwc",
        |operator, inputs| integers::is_conv(operator, inputs) && translate::is_conv(operator, inputs, false),
        |site| integers::convolution(site, false),
    ),
    Row::of_integers(
        "depthwise-direct-int8-hwc-hwc",
        |operator, inputs| integers::is_conv(operator, inputs) && translate::is_conv(operator, inputs, true),
        |site| integers::convolution(site, false),
    ),
    Row::of_integers("gemm-panels-int8-hwc-hwc", integers::is_gemm, |site| integers::gemm(site, false)),
    Row::with_offset(
        "indirect-gemm-uint8-hwc-hwc",
        |operator, inputs| integers::is_conv(operator, inputs) && translate::is_conv(operator, inputs, false),
        |site| integers::convolution(site, true),
    ),
    Row::with_offset(
        "depthwise-direct-uint8-hwc-hwc",
        |operator, inputs| integers::is_conv(operator, inputs) && translate::is_conv(operator, inputs, true),
        |site| integers::convolution(site, true),
    ),
    Row::with_offset("gemm-panels-uint8-hwc-hwc", integers::is_gemm, |site| integers::gemm(site, true)),
    Row::of_integers("own-kernel-int8-hwc-hwc", integers::has_own_kernel, integers::choose),
    Row::of_integers("convert-requantize-hwc-hwc", is_convert, integers::table),
    Row {
        elements: [Element::F32, Element::U8],
        stored: |_, _, _| 0,
        ..Row::of_integers("convert-quantize-hwc-hwc", is_convert, integers::cast)
    },
    Row {
        elements: [Element::U8, Element::F32],
        stored: |_, _, _| 0,
        ..Row::of_integers("convert-dequantize-hwc-hwc", is_convert, integers::cast)
    },
];

fn is_gemm(operator: &Operator) -> bool {
    matches!(operator, Operator::Gemm(_))
}

/// Whether the operator's own kernel is also one of 16-bit floats.
fn has_own_half_kernel(operator: &Operator) -> bool {
    if matches!(operator, Operator::Pool(pool) if pool.kind == PoolKind::MaxIndex) {
        return false;
    }
    matches!(
        operator,
        Operator::ElementWise(_)
            | Operator::BatchNorm(_)
            | Operator::Binary(_)
            | Operator::Where(_)
            | Operator::MatMul
            | Operator::Pool(_)
            | Operator::Reduce(_)
            | Operator::Softmax(_)
            | Operator::Concat(_)
            | Operator::Resize(_)
            | Operator::Pad(_)
            | Operator::Slice(_)
            | Operator::Transpose(_)
            | Operator::DepthToSpace(_)
            | Operator::SpaceToDepth(_)
    )
}

/// The attributes of a convolution that is computed as a matrix product of its windows, which are copied, and its
/// filters.
fn of_windows<'a>(operator: &'a Operator, inputs: &[&Shape]) -> Option<&'a Conv> {
    let Operator::Conv(conv) = operator else { return None };
    let alone = inputs.len() == 1 && conv.groups == 1 && conv.pre.is_none() && !conv.residual;
    Some(conv).filter(|_| alone && translate::is_conv(operator, inputs, false))
}

/// The windows of one row of the output.
fn windows_of_a_row(operator: &Operator, inputs: &[&Shape], output: &Shape) -> u64 {
    let (Some(conv), Some(column)) = (of_windows(operator, inputs), output.column_axis()) else { return 0 };
    let window = conv.kernel[0] * conv.kernel[1] * inputs[0].channels();
    (output.dims[column] * window) as u64 * Element::F32.bytes()
}

fn is_convert(operator: &Operator, _: &[&Shape]) -> bool {
    matches!(operator, Operator::Convert)
}

fn is_element_wise(operator: &Operator, inputs: &[&Shape]) -> bool {
    let Operator::ElementWise(element_wise) = operator else { return false };
    !matches!(element_wise.function, Function::PRelu { .. }) && inputs.iter().all(|input| input.is_image())
}

/// Whether this operator has a kernel of its own and no family of primitives.
fn has_own_kernel(operator: &Operator) -> bool {
    match operator {
        Operator::Conv(_) | Operator::ConvTranspose(_) | Operator::Gemm(_) | Operator::Convert => false,
        Operator::Input(input) => !input.is_of_integers(),
        _ => true,
    }
}

/// A primitive.
#[derive(Clone, Copy)]
pub struct Primitive(Entry);

/// Where a primitive is defined.
#[derive(Clone, Copy)]
enum Entry {
    /// A row of the table.
    Row(&'static Row),
    /// One of a family that reads and writes several layouts.
    Member(&'static Member),
}

impl Primitive {
    /// All primitives: the rows of the table, and then the members of families.
    pub fn all() -> impl Iterator<Item = Primitive> {
        let members = scenarios::members().iter().map(Entry::Member);
        TABLE.iter().map(Entry::Row).chain(members).map(Primitive)
    }

    /// The primitive of this name.
    ///
    /// ```
    /// use csdfc_runtime::bind::Primitive;
    ///
    /// assert!(Primitive::find("indirect-gemm-hwc-hwc").is_some());
    /// assert!(Primitive::find("no such thing").is_none());
    /// ```
    pub fn find(name: &str) -> Option<Primitive> {
        Primitive::all().find(|primitive| primitive.name() == name)
    }

    /// The primitive that computes an operator of these operands, as seen, unless another one was chosen.
    pub fn new(operator: &Operator, inputs: &[&Shape]) -> Primitive {
        #[expect(clippy::expect_used, reason = "every operator is in the table, as a test sees to")]
        Primitive::all().find(|primitive| primitive.computes(operator, inputs)).expect("a primitive")
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self.0 {
            Entry::Row(row) => row.name,
            Entry::Member(member) => &member.name,
        }
    }

    /// Layout that it reads, and layout that it writes.
    pub fn layouts(self) -> [Layout; 2] {
        match self.0 {
            Entry::Row(row) => row.layouts,
            Entry::Member(member) => member.layouts,
        }
    }

    /// Elements that it reads, and elements that it makes. Operators that make indices make them for elements of any
    /// type.
    pub fn elements(self) -> [Element; 2] {
        match self.0 {
            Entry::Row(row) => row.elements,
            Entry::Member(_) => [Element::F32; 2],
        }
    }

    /// The format of the tensors that it reads.
    pub fn reads(self) -> Format {
        Format { layout: self.layouts()[0], element: self.elements()[0] }
    }

    /// The format of the tensor that it makes, as the output of this operator.
    pub fn makes(self, operator: &Operator) -> Format {
        let element = if operator.makes_indices() { Element::I64 } else { self.elements()[1] };
        Format { layout: self.layouts()[1], element }
    }

    /// Whether its weights are 8-bit integers, for tensors of 16-bit floats.
    pub fn is_mixed(self) -> bool {
        matches!(self.0, Entry::Row(Row { is_mixed: true, .. }))
    }

    /// Bytes of a weight, if its weights are 8-bit integers or 16-bit floats with a scale for each output channel, for
    /// tensors of 32-bit floats. The scales are one more parameter, after all others.
    pub fn scaled_weight(self) -> Option<u64> {
        match self.0 {
            Entry::Row(row) => row.scaled,
            Entry::Member(_) => None,
        }
    }

    /// Whether its weights are 8-bit integers and an offset that is added to each of them.
    pub fn has_offset(self) -> bool {
        matches!(self.0, Entry::Row(Row { has_offset: true, .. }))
    }

    /// The same primitive of integers whose weights have an offset, if there is one.
    pub fn with_offset(self) -> Option<Primitive> {
        Primitive::find(&self.name().replace("-int8-", "-uint8-")).filter(|found| found.has_offset())
    }

    /// Whether it keeps the weights of a convolution or product in panels, whose form does not depend on the size of an
    /// image.
    pub fn has_panels(self) -> bool {
        let families = ["indirect-gemm-", "depthwise-direct-", "transposed-gather-", "gemm-panels-"];
        families.iter().any(|family| self.name().starts_with(family))
    }

    /// Bytes of `elements` parameters of a layer, before they are packed. `inputs` are the operands as seen. Beside
    /// weights of 8 bits, biases, scales and an offset have 4 bytes each; in mixed precision, biases have 2.
    pub fn parameter_bytes(self, operator: &Operator, inputs: &[&Shape], elements: u64) -> u64 {
        match self.elements()[0] {
            _ if self.is_mixed() => mixed::parameter_bytes(operator, inputs, elements),
            Element::U8 => {
                let offset = if self.has_offset() { integers::OFFSET } else { 0 };
                integers::parameter_bytes(operator, inputs, elements) + offset
            }
            float => match self.scaled_weight() {
                Some(width) => scaled::parameter_bytes(operator, inputs, elements, width),
                None => elements * float.bytes(),
            },
        }
    }

    /// Whether it computes an operator of these operands, as seen.
    pub fn computes(self, operator: &Operator, inputs: &[&Shape]) -> bool {
        match self.0 {
            Entry::Row(row) => (row.computes)(operator, inputs),
            Entry::Member(member) => member.computes(operator, inputs),
        }
    }

    /// How much an output element may differ from the exact sum, as a share of the largest `Σ|x||w|` of the output.
    /// Tests check every primitive against it.
    pub fn error(self) -> f64 {
        match self.0 {
            Entry::Row(_) => scenarios::ERROR,
            Entry::Member(member) => member.error(),
        }
    }

    /// Bytes of workspace of the primitive that [`Self::new`] returns for an operator with this output, without a search.
    pub fn first_workspace_bytes(operator: &Operator, output: &Shape) -> u64 {
        own_kernels::workspace_bytes(operator, output)
    }

    /// Bytes of workspace that each worker needs while it fires. `inputs` are the operands as seen.
    pub fn workspace_bytes(self, operator: &Operator, inputs: &[&Shape], output: &Shape) -> u64 {
        match self.0 {
            Entry::Row(row) => (row.workspace)(operator, inputs, output),
            Entry::Member(member) => member.workspace_len(operator, inputs) as u64 * Element::F32.bytes(),
        }
    }

    /// Bytes that it keeps of a layer's parameters, given their number. `inputs` are the operands as seen.
    pub fn stored_bytes(self, operator: &Operator, inputs: &[&Shape], parameters: u64) -> u64 {
        let elements = match self.0 {
            Entry::Row(row) => (row.stored)(operator, inputs, parameters),
            Entry::Member(member) => member.stored_len(operator, inputs) as u64,
        };
        let bytes = match self.elements()[0] {
            // The row counts bytes.
            Element::U8 => elements,
            float => elements * float.bytes(),
        };
        bytes.next_multiple_of(LINE as u64)
    }

    pub(super) fn kernel(self, site: &Site<'_>) -> Result<Choice, LayerError> {
        match self.0 {
            Entry::Row(row) => (row.kernel)(site),
            Entry::Member(member) => member.kernel(site),
        }
    }
}

impl PartialEq for Primitive {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Primitive {}

impl std::fmt::Debug for Primitive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
