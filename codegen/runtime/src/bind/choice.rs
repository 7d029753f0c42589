//! A kernel that has been chosen, and how its constants are packed.

use std::ops::Range;

use csdfc_kernels::elements::MAX_RANK;
use csdfc_kernels::half::F16;
use csdfc_kernels::kernel::{ElementKernel, RowKernel};
use csdfc_kernels::rows::RowShape;

use csdfc_plan::format::Element;
use csdfc_plan::operator::Function;
use csdfc_plan::shape::{Order, Shape};

use crate::error::LayerError;

use super::access::image_rows;
use super::constants::{Packing, Part};
use super::kernel::{Form, Kernel, Parameters, RowCall, Site};
use super::operand_constant::OperandConstant;
use super::typed::{ByElements, ByRows, Stored};
use super::views::Input;

/// Kernels that see tensors of floats by rows, of 32 bits or of 16.
pub(super) trait RowFloats: RowKernel + RowKernel<F16, F16> + Parameters + Copy {}

impl<K: RowKernel + RowKernel<F16, F16> + Parameters + Copy> RowFloats for K {}

/// Kernels that see tensors of floats element by element, of 32 bits or of 16.
pub(super) trait ElementFloats: ElementKernel + ElementKernel<F16, F16> + Parameters + Copy {}

impl<K: ElementKernel + ElementKernel<F16, F16> + Parameters + Copy> ElementFloats for K {}

/// Kernels that move elements of any type by rows.
pub(super) trait RowMoves: RowFloats + RowKernel<u8, u8> {}

impl<K: RowFloats + RowKernel<u8, u8>> RowMoves for K {}

/// Kernels that move elements of any type one by one.
pub(super) trait ElementMoves: ElementFloats + ElementKernel<u8, u8> {}

impl<K: ElementFloats + ElementKernel<u8, u8>> ElementMoves for K {}

/// A kernel in both forms.
pub(super) struct Forms {
    pub rows: Kernel<ByRows>,
    pub elements: Kernel<ByElements>,
}

impl Forms {
    /// A kernel that makes elements `O` of elements `I`.
    pub(super) fn of_kernel<O: Stored, I: Stored>(
        kernel: impl RowKernel<O, I> + ElementKernel<O, I> + Parameters + Copy,
    ) -> Self {
        Forms { rows: Kernel::rows::<O, I>(kernel), elements: Kernel::elements::<O, I>(kernel) }
    }
}

impl Site<'_> {
    /// A kernel by rows, of the floats that the layer's primitive reads.
    pub(super) fn rows_of(&self, kernel: impl RowFloats) -> Kernel<ByRows> {
        match self.elements {
            [Element::F16, _] => Kernel::rows::<F16, F16>(kernel),
            _ => Kernel::rows::<f32, f32>(kernel),
        }
    }

    /// A kernel by elements, of the floats that the layer's primitive reads.
    pub(super) fn elements_of(&self, kernel: impl ElementFloats) -> Kernel<ByElements> {
        match self.elements {
            [Element::F16, _] => Kernel::elements::<F16, F16>(kernel),
            _ => Kernel::elements::<f32, f32>(kernel),
        }
    }

    /// A kernel in both forms, of the floats that the layer's primitive reads.
    pub(super) fn forms_of(&self, kernel: impl RowFloats + ElementFloats) -> Forms {
        Forms { rows: self.rows_of(kernel), elements: self.elements_of(kernel) }
    }

    /// A kernel by rows that moves the elements that the layer's primitive reads.
    pub(super) fn rows_moved(&self, kernel: impl RowMoves) -> Kernel<ByRows> {
        match self.elements {
            [Element::U8, _] => Kernel::rows::<u8, u8>(kernel),
            _ => self.rows_of(kernel),
        }
    }

    /// A kernel by elements that moves the elements that the layer's primitive reads.
    pub(super) fn elements_moved(&self, kernel: impl ElementMoves) -> Kernel<ByElements> {
        match self.elements {
            [Element::U8, _] => Kernel::elements::<u8, u8>(kernel),
            _ => self.elements_of(kernel),
        }
    }
}

/// A kernel with its constants not yet placed; fields as in [`super::Call`].
pub(super) struct Choice {
    pub form: Form,
    pub parts: Vec<Part>,
    pub slopes: bool,
}

impl Choice {
    pub(super) fn new(form: Form) -> Self {
        Choice { form, parts: Vec::new(), slopes: false }
    }

    /// A kernel by rows.
    pub(super) fn by_rows(kernel: Kernel<ByRows>, inputs: Vec<Input<RowShape>>, output: RowShape) -> Self {
        Choice::new(Form::Rows(RowCall { kernel, inputs, output }))
    }

    /// A kernel by rows that knows 32-bit floats only.
    pub(super) fn by_f32_rows(
        kernel: impl RowKernel + Parameters,
        inputs: Vec<Input<RowShape>>,
        output: RowShape,
    ) -> Self {
        Choice::by_rows(Kernel::rows::<f32, f32>(kernel), inputs, output)
    }

    pub(super) fn with_packing(mut self, packing: Packing, parameters: Range<usize>) -> Self {
        self.parts.push(Part { packing, parameters });
        self
    }

    /// This choice with parameters in panels.
    pub(super) fn with_panels(self, site: &Site<'_>, part: Part, in_place: bool) -> Result<Self, LayerError> {
        let next = part.parameters.end;
        let choice = self.with_packing(part.packing, part.parameters);
        if in_place { choice.with_p_relu(site, site.operator.activation(), next) } else { Ok(choice) }
    }

    /// This choice with the slopes of a fused PRelu, parameter `index`, applied in place.
    pub(super) fn with_p_relu(
        self,
        site: &Site<'_>,
        function: Option<&Function>,
        index: usize,
    ) -> Result<Self, LayerError> {
        let Some(Function::PRelu { slope }) = function else { return Ok(self) };
        let slopes = Packing::Operand(self.constant(site.output, slope)?);
        Ok(Choice { slopes: true, ..self.with_packing(slopes, index..index + 1) })
    }

    /// How a constant of these dimensions, which broadcasts to the output, is packed for this kernel.
    pub(super) fn constant(&self, output: &Shape, dims: &[usize]) -> Result<OperandConstant, LayerError> {
        match &self.form {
            Form::Elements(_) if dims.len() > MAX_RANK => Err(LayerError::ConstantRank { rank: dims.len() }),
            Form::Elements(_) => Ok(OperandConstant::Plain { dims: dims.to_vec() }),
            Form::Rows(call) => {
                // A kernel may also see an image as pixels of other channels.
                let is_image = image_rows(output, call.output.ring_rows) == Some(call.output);
                let packing = if is_image {
                    image_constant(output, dims)
                } else {
                    row_constant(output, call.output, dims)
                };
                packing.ok_or_else(|| LayerError::ConstantShape {
                    constant: Shape::new(dims),
                    output: output.clone(),
                })
            }
        }
    }
}

/// A constant that broadcasts to an image.
fn image_constant(output: &Shape, dims: &[usize]) -> Option<OperandConstant> {
    let missing = 4usize.checked_sub(dims.len())?;
    let dims: Vec<usize> = std::iter::repeat_n(1, missing).chain(dims.iter().copied()).collect();
    match (output.order, dims.as_slice()) {
        (Order::ChannelsFirst, &[1, c, h, w]) => {
            Some(OperandConstant::Image { rows: RowShape::dense(h, w, c, h) })
        }
        (Order::ChannelsLast, &[1, h, w, c]) => {
            Some(OperandConstant::Row { rows: RowShape::dense(h, w, c, h) })
        }
        _ => None,
    }
}

/// A constant that broadcasts to rows of pixels.
fn row_constant(output: &Shape, rows: RowShape, dims: &[usize]) -> Option<OperandConstant> {
    let [pixels, channels] = split(&output.dims, dims, rows.channels)?;
    let height = if pixels == 1 { 1 } else { rows.height };
    Some(OperandConstant::Row { rows: RowShape::dense(height, pixels / height, channels, height) })
}

/// Pixels and channels of an operand of dimensions `dims`, which broadcasts to `output` as pixels of `channels`
/// channels: all of either, or one that repeats.
pub(super) fn split(output: &[usize], dims: &[usize], channels: usize) -> Option<[usize; 2]> {
    let missing = output.len().checked_sub(dims.len())?;
    let dims: Vec<usize> = std::iter::repeat_n(1, missing).chain(dims.iter().copied()).collect();
    let product = |dims: &[usize]| dims.iter().product::<usize>();
    let cut = (0..=output.len()).find(|&cut| product(&output[cut..]) == channels)?;
    let side = |own: &[usize], all: &[usize]| match product(own) {
        1 => Some(1),
        elements => (own == all).then_some(elements),
    };
    Some([side(&dims[..cut], &output[..cut])?, side(&dims[cut..], &output[cut..])?])
}
