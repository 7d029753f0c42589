//! Computes single layers without a plan, from tensors that lie whole in memory. Import computes nodes of constants so.
//!
//! ```
//! use csdfc_plan::format::Element;
//! use csdfc_plan::operator::{ElementWise, Function, Operator};
//! use csdfc_plan::shape::Shape;
//! use csdfc_runtime::bind::{Primitive, Site};
//! use csdfc_runtime::run::whole::{make, store};
//! use csdfc_runtime::run::{Data, read};
//!
//! let relu = Operator::ElementWise(ElementWise { function: Function::Relu });
//! let image = Shape::image(1, 2, 2);
//! let x = store(&image, vec![-1.0, 2.0, -3.0, 4.0])?;
//! let site = Site::whole(&relu, [(&image, &image)].into_iter(), &image);
//! let y = make(Primitive::new(&relu, &[&image]), &site, 16, &[&x], &|_| Ok(Vec::new().into()))?;
//! let made = read(&y, Element::F32, &image, &image);
//! assert_eq!(made.data, Data::F32(vec![0.0, 2.0, 0.0, 4.0]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use csdfc_kernels::arch::Isa;
use csdfc_kernels::kernel::Context;
use csdfc_kernels::span::SpanMut;

use super::rows::InputRow;
use super::{RunError, value};
use crate::bind::{self, Primitive, Site, Slots, Source, Target};
use crate::bytes::Bytes;
use crate::weights;
use csdfc_plan::operator::{Input, InputElement};
use csdfc_plan::shape::Shape;

/// A tensor of these 32-bit floats, given in row-major order, as rows.
///
/// # Errors
/// When there is no memory for it.
pub fn store(shape: &Shape, values: Vec<f32>) -> Result<Bytes, RunError> {
    let mut rows = zeros(4 * shape.elements() as u64)?;
    let value = value::Value { dims: shape.dims.clone(), data: value::Data::F32(values) };
    let input = Input { element: InputElement::F32, camera: None };
    let data: &mut [f32] = SpanMut::of_bytes(&mut rows).all();
    for (y, row) in data.chunks_exact_mut(shape.row_elements()).enumerate() {
        value::copy_row(&input, shape, &value, y, InputRow::F32(row));
    }
    Ok(rows)
}

/// Makes the tensor of a layer, `bytes` in all. `inputs` are the tensors that it reads, and `values` gives the parameter
/// of an index. The kernel is the one for the processors that this program was compiled for, so that all of them make
/// the same bytes.
///
/// # Errors
/// When no kernel computes the layer or none was compiled, when there is no memory, or when parameters cannot be read.
pub fn make(
    primitive: Primitive,
    site: &Site<'_>,
    bytes: u64,
    inputs: &[&[u8]],
    values: &weights::Values<'_>,
) -> Result<Bytes, RunError> {
    let cannot =
        |why| RunError::Layer { cnn: String::new(), layer: primitive.name().into(), why: Box::new(why) };
    let call = bind::bind(primitive, site).map_err(cannot)?;
    let mut packed = zeros(weights::stored_len(&call) as u64)?;
    weights::pack(&call, values, &mut packed).map_err(cannot)?;
    let seen: Vec<&Shape> = site.inputs.iter().map(|operand| operand.seen).collect();
    let mut workspace = zeros(primitive.workspace_bytes(site.operator, &seen, site.output))?;
    let mut context =
        Context { workspace: SpanMut::of_bytes(&mut workspace).all(), ..Context::alone(Isa::compiled()) };
    let sources: Vec<Source<'_>> = inputs.iter().map(|data| Source { data, slots: Slots::Ring(0) }).collect();
    let mut made = zeros(bytes)?;
    let target = Target { data: &mut made, slots: Slots::Ring(0) };
    call.fire(&mut context, 0..site.ring_rows, &sources, &packed, target);
    Ok(made)
}

fn zeros(bytes: u64) -> Result<Bytes, RunError> {
    usize::try_from(bytes).ok().and_then(Bytes::zeros).ok_or(RunError::Memory { bytes })
}
