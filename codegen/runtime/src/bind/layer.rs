//! Binds the layers of a plan, given its allocations.

use std::borrow::Cow;

use csdfc_plan::check::{Allocation, CnnIndex};
use csdfc_plan::format::Element;
use csdfc_plan::operator::Operator;
use csdfc_plan::shape::Shape;

use crate::error::LayerError;
use crate::stream;

use super::choice::Choice;
use super::constants::Part;
use super::kernel::{Call, Constant, Operand, Site};
use super::primitive::Primitive;

/// Binds a layer to the kernel by which a primitive computes it.
///
/// # Errors
/// When no kernel does.
pub fn bind(primitive: Primitive, site: &Site<'_>) -> Result<Call, LayerError> {
    let Choice { form, parts, slopes } = primitive.kernel(site)?;
    let [reads, makes] = form.elements();
    if [reads, makes] != [primitive.reads(), primitive.makes(site.operator)].map(|format| format.element) {
        return Err(LayerError::KernelElements { reads, makes });
    }
    let mut start = 0;
    let constants = parts.into_iter().map(|Part { packing, parameters }| {
        let range = start..start + packing.len() * reads.bytes() as usize;
        start = range.end;
        Constant { packing, parameters, range }
    });
    Ok(Call { form, constants: constants.collect(), slopes })
}

/// The allocation from which a layer reads a tensor; none for the caller's copy.
pub fn read_from(allocations: &[Allocation], layer: usize, tensor: usize) -> Option<usize> {
    allocations
        .iter()
        .position(|allocation| allocation.tensor == tensor && allocation.readers.contains(&layer))
}

/// The places to which a layer writes its tensor: the kernel writes to the first of them.
pub fn written_by(allocations: &[Allocation], layer: usize) -> Vec<usize> {
    (0..allocations.len()).filter(|&s| allocations[s].tensor == layer && allocations[s].is_ring()).collect()
}

/// The workspace of a layer, if it has one.
pub fn workspace_of(allocations: &[Allocation], layer: usize) -> Option<usize> {
    allocations.iter().position(|allocation| allocation.tensor == layer && allocation.is_workspace())
}

/// Binds a layer of a plan to the kernel that computes it. If only the caller holds its tensor, the kernel writes into
/// a buffer for `room` rows. `None` for layers without a kernel: network inputs, and layers whose tensor is stored
/// nowhere.
///
/// # Errors
/// When no kernel computes it, or the kernel cannot work with the places of the tensors.
pub fn bind_layer(
    cnn: &CnnIndex<'_>,
    allocations: &[Allocation],
    l: usize,
    room: u64,
) -> Result<Option<Call>, LayerError> {
    let entry = &cnn.layers[l];
    let written = written_by(allocations, l);
    let is_stored = !written.is_empty() || entry.tensor.external;
    if matches!(entry.layer.operator, Operator::Input(_)) || !is_stored {
        return Ok(None);
    }
    let makes_indices = entry.tensor.format.element == Element::I64;
    if makes_indices && !(written.is_empty() && entry.readers.is_empty()) {
        return Err(LayerError::IndicesAreRead);
    }
    let over_time = cnn.is_over_time(l);
    let endless = |shape| stream::endless(over_time, shape);
    let shapes: Vec<[Cow<'_, Shape>; 2]> = (entry.inputs.iter().enumerate())
        .map(|(operand, &tensor)| {
            [&cnn.layers[tensor].tensor.shape, cnn.viewed_shape(l, operand)].map(endless)
        })
        .collect();
    let operand = |(operand, &tensor): (usize, &usize)| {
        let read = &cnn.layers[tensor];
        let rows = match read_from(allocations, l, tensor) {
            Some(allocation) => allocations[allocation].ring_rows,
            None if read.tensor.external && matches!(read.layer.operator, Operator::Input(_)) => read.rows(),
            None => return Err(LayerError::NotStored { tensor: read.tensor.name.clone() }),
        };
        let (layout, quantization) = (read.tensor.format.layout, read.tensor.quantization);
        let [own, seen] = &shapes[operand];
        Ok(Operand { own, seen, layout, quantization, ring_rows: rows as usize })
    };
    let inputs = entry.inputs.iter().enumerate().map(operand).collect::<Result<_, LayerError>>()?;
    let ring_rows = written.first().map_or(room, |&own| allocations[own].ring_rows) as usize;
    let name = &entry.layer.primitive;
    let primitive = Primitive::find(name).ok_or_else(|| LayerError::NoPrimitive { name: name.clone() })?;
    let output = &*endless(&entry.tensor.shape);
    let operator = &*stream::endless_operator(over_time, &entry.layer.operator, output);
    let (layout, quantization) = (entry.tensor.format.layout, entry.tensor.quantization);
    let elements = primitive.elements();
    let site = Site { operator, inputs, output, layout, elements, quantization, ring_rows };
    let call = bind(primitive, &site)?;
    let follows = |tensor: usize| {
        let rings = read_from(allocations, l, tensor).zip(written.first().copied());
        rings.is_some_and(|(read, own)| allocations[read].overlaps(&allocations[own]))
    };
    if (0..entry.inputs.len()).any(|operand| call.folds(operand) && follows(entry.inputs[operand])) {
        return Err(LayerError::Mistake("it takes in one piece what it makes row by row: a mistake"));
    }
    if call.elements()[1] != entry.tensor.format.element {
        return Err(LayerError::Mistake("its tensor is of other elements than it makes: a mistake"));
    }
    Ok(Some(call))
}
