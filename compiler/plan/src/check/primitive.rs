//! A row of the checker's table of primitives.

use crate::format::Element::{F16, F32, U8};
use crate::format::Layout::Hwc;
use crate::format::{Element, Layout};
use crate::operator::{Conv, Function, Operator};
use crate::shape::Shape;

use super::{integers, parameters};

/// A row of the table.
pub struct Primitive {
    /// What a plan calls it.
    pub name: &'static str,
    /// Whether it computes an operator that sees operands of these shapes.
    pub computes: fn(&Operator, &[&Shape]) -> bool,
    /// Layout that it reads, and layout that it writes.
    pub layouts: [Layout; 2],
    /// Elements that it reads, and elements that it writes.
    pub elements: [Element; 2],
    /// Whether its weights are 8-bit integers, for tensors of 16-bit floats.
    pub is_mixed: bool,
    /// Whether an offset of 4 bytes is added to each of its weights, which are 8-bit integers.
    pub has_offset: bool,
    /// Bytes of a weight, if weights are narrower than the tensors' floats and have a scale for each output channel.
    pub scaled: Option<u64>,
    /// Bytes that it keeps of a layer's parameters, from the shapes of the layer's operands; none beyond 64 bits.
    pub stored: fn(&Operator, &[&Shape]) -> Option<u64>,
    /// Bytes of workspace, from the shapes of the layer's operands and output; none beyond 64 bits.
    pub workspace: fn(&Operator, &[&Shape], &Shape) -> Option<u64>,
}

impl Primitive {
    /// A primitive that keeps weights in panels, if there are any, and needs no workspace.
    pub(super) const fn new(
        name: &'static str,
        computes: fn(&Operator, &[&Shape]) -> bool,
        layouts: [Layout; 2],
    ) -> Self {
        let (elements, stored) = ([F32; 2], parameters::stored);
        let (is_mixed, has_offset, scaled) = (false, false, None);
        let workspace = |_: &Operator, _: &[&Shape], _: &Shape| Some(0);
        Primitive { name, computes, layouts, elements, is_mixed, has_offset, scaled, stored, workspace }
    }

    /// The same for 16-bit floats, from HWC to HWC.
    pub(super) const fn half(name: &'static str, computes: fn(&Operator, &[&Shape]) -> bool) -> Self {
        let (elements, stored) = ([F16; 2], parameters::stored_half);
        Primitive { elements, stored, ..Primitive::new(name, computes, [Hwc, Hwc]) }
    }

    /// The same with weights of 8 bits.
    pub(super) const fn mixed(name: &'static str, computes: fn(&Operator, &[&Shape]) -> bool) -> Self {
        let stored = parameters::stored_mixed;
        Primitive { is_mixed: true, stored, ..Primitive::half(name, computes) }
    }

    /// The same with weights of 8-bit integers, for tensors of 32-bit floats.
    pub(super) const fn w8(name: &'static str, computes: fn(&Operator, &[&Shape]) -> bool) -> Self {
        let stored = |operator: &Operator, inputs: &[&Shape]| parameters::stored_scaled(operator, inputs, 1);
        Primitive { scaled: Some(1), stored, ..Primitive::new(name, computes, [Hwc, Hwc]) }
    }

    /// The same with weights of 16-bit floats, for tensors of 32-bit floats.
    pub(super) const fn w16(name: &'static str, computes: fn(&Operator, &[&Shape]) -> bool) -> Self {
        let stored = |operator: &Operator, inputs: &[&Shape]| parameters::stored_scaled(operator, inputs, 2);
        Primitive { scaled: Some(2), stored, ..Primitive::new(name, computes, [Hwc, Hwc]) }
    }

    /// The same for 8-bit integers.
    pub(super) const fn of_integers(name: &'static str, computes: fn(&Operator, &[&Shape]) -> bool) -> Self {
        let (elements, stored) = ([U8; 2], integers::stored);
        Primitive { elements, stored, ..Primitive::new(name, computes, [Hwc, Hwc]) }
    }

    /// The same with an offset of the weights.
    pub(super) const fn with_offset(name: &'static str, computes: fn(&Operator, &[&Shape]) -> bool) -> Self {
        let stored = integers::stored_with_offset;
        Primitive { has_offset: true, stored, ..Primitive::of_integers(name, computes) }
    }
}

/// A convolution of one image and one group. Nothing is fused into it, except functions without parameters.
pub(super) fn plain<'a>(operator: &'a Operator, inputs: &[&Shape]) -> Option<&'a Conv> {
    let (Operator::Conv(conv), [x]) = (operator, inputs) else { return None };
    let has_slopes = matches!(conv.activation, Some(Function::PRelu { .. }));
    let alone = conv.groups == 1 && conv.pre.is_none() && !conv.residual && !has_slopes;
    (alone && x.is_image()).then_some(conv)
}
