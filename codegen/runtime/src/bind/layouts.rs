//! Kernels of tensors in any layout, and those that bring a tensor from one layout into another.

use csdfc_kernels::convert::{Cast, Gather, Scatter, Swap};
use csdfc_kernels::element_wise::ElementWise;
use csdfc_kernels::half::F16;
use csdfc_kernels::rows::RowShape;

use csdfc_plan::format::{Element, Format, Layout};
use csdfc_plan::operator::Operator;
use csdfc_plan::shape::Shape;

use crate::error::LayerError;

use super::choice::Choice;
use super::kernel::{Kernel, Site};
use super::translate;
use super::views::Input;

/// The rows of an image as they lie in this layout: of `[W, C]`, of `[C, W]`, or one row of C planes.
pub(super) fn rows(shape: &Shape, layout: Layout, ring_rows: usize) -> Option<RowShape> {
    let columns = shape.dims[shape.column_axis()?];
    let format = Format { layout, element: Element::F32 };
    let (height, row) = (format.rows(shape), format.row_elements(shape));
    let inner = if layout == Layout::Hwc { shape.channels() } else { row / shape.channels().max(1) };
    let outer = if layout == Layout::Hwc { columns } else { shape.channels() };
    Some(RowShape::dense(height, outer, inner, ring_rows))
}

/// The operand and the output of a layer of one operand that keeps its shape.
fn operand_and_output(site: &Site<'_>) -> Option<(Vec<Input<RowShape>>, RowShape)> {
    let [x] = site.inputs.as_slice() else { return None };
    let input = rows(x.own, x.layout, x.ring_rows).filter(|_| x.own == x.seen && x.own == site.output)?;
    Some((vec![Input::whole(input)], rows(site.output, site.layout, site.ring_rows)?))
}

/// A function of each element, whatever the layout.
pub(super) fn element_wise(site: &Site<'_>) -> Result<Choice, LayerError> {
    let Operator::ElementWise(element_wise) = site.operator else { return site.unsupported() };
    let kernel = ElementWise { function: translate::activation(Some(&element_wise.function)) };
    let Some((inputs, output)) = operand_and_output(site) else { return site.unsupported() };
    Ok(Choice::by_f32_rows(kernel, inputs, output))
}

/// From one layout into another.
pub(super) fn convert(site: &Site<'_>) -> Result<Choice, LayerError> {
    let Some((inputs, output)) = operand_and_output(site) else { return site.unsupported() };
    match [site.inputs[0].layout, site.layout] {
        [Layout::Hwc, Layout::Hcw] | [Layout::Hcw, Layout::Hwc] => {
            Ok(Choice::by_f32_rows(Swap, inputs, output))
        }
        [Layout::Hcw, Layout::Chw] => Ok(Choice::by_f32_rows(Scatter, inputs, output)),
        [Layout::Chw, Layout::Hcw] => Ok(Choice::by_f32_rows(Gather, inputs, output)),
        _ => site.unsupported(),
    }
}

/// From floats of one width to floats of the other, as they lie.
pub(super) fn cast(site: &Site<'_>) -> Result<Choice, LayerError> {
    let kernel = match site.elements {
        [Element::F32, Element::F16] => Kernel::rows::<F16, f32>(Cast),
        _ => Kernel::rows::<f32, F16>(Cast),
    };
    let [x] = site.inputs.as_slice() else { return site.unsupported() };
    // An image by its rows, lines by theirs, any other tensor in one piece.
    let lines = site.output.rows();
    let image = x.image().zip(site.image()).filter(|_| x.own == site.output);
    match image.or_else(|| x.flat(lines, lines).zip(site.flat(lines))) {
        Some((input, output)) => Ok(Choice::by_rows(kernel, vec![input], output)),
        None => site.unsupported(),
    }
}
