//! Slices: some of a layer's output channels at a time, where its weights are read so.
//!
//! A slice is what the layer would be if it had no other output channels. Its kernel is that of the layer with fewer
//! filters, and so are its packed parameters. Only the pixels that it writes, and those that it adds, are as far apart as
//! those of the whole layer, and the first channel is another.

use std::ops::Range;

use csdfc_kernels::conv::Conv;
use csdfc_kernels::conv::mixed::MixedConv;
use csdfc_kernels::element::F16;

use crate::bytes::LINE;
use crate::format::Element;
use crate::operator::{Function, Operator};
use crate::shape::Shape;

use super::constants::Packing;
use super::kernel::{Call, Constant, Form, Kernel, RowCall, Site};
use super::primitive::Primitive;

/// The primitives whose kernels are a [`Conv`] of panels.
const SLICED: [&str; 6] = [
    "indirect-gemm-hwc-hwc",
    "indirect-gemm-half-hwc-hwc",
    "indirect-gemm-mixed-hwc-hwc",
    "gemm-panels-hwc-hwc",
    "gemm-panels-half-hwc-hwc",
    "gemm-panels-mixed-hwc-hwc",
];

/// How the output channels of a layer may be dealt into slices: as many at a time as are wanted, in whole panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slicing {
    /// Output channels of the layer.
    pub filters: u64,
    /// Bytes that one takes.
    each: u64,
    /// Bytes that every slice has beside them.
    beside: u64,
    /// Bytes of a weight.
    weight: u64,
}

impl Slicing {
    /// Output channels of a panel: a slice has a multiple, or all that are left.
    pub const PANEL: u64 = 16;

    /// How a layer of tensors that are stored whole may be sliced, if it may be. `operands` are as they are and as they
    /// are seen.
    pub fn of(
        primitive: Primitive,
        operator: &Operator,
        operands: &[(&Shape, &Shape)],
        output: &Shape,
    ) -> Option<Self> {
        if !SLICED.contains(&primitive.name()) {
            return None;
        }
        let elements = primitive.elements();
        let site = Site { elements, ..Site::whole(operator, operands.iter().copied(), output) };
        let call = super::bind(primitive, &site).ok()?;
        call.slice(operator, 1)?;
        let Packed { conv, each, beside, weight, .. } = Packed::of(&call)?;
        let [filters, each, beside, weight] = [conv.filters, each, beside, weight].map(|count| count as u64);
        Some(Slicing { filters, each, beside, weight })
    }

    /// Bytes of a slice of so many output channels.
    pub fn bytes(&self, filters: u64) -> u64 {
        let zeros = filters.next_multiple_of(Self::PANEL) - filters;
        (filters * self.each + zeros * self.weight + self.beside).next_multiple_of(LINE as u64)
    }

    /// The most output channels, in whole panels, whose slice has no more bytes than this; a panel at least.
    pub fn within(&self, bytes: u64) -> u64 {
        let panel = Self::PANEL * self.each;
        let most = bytes.saturating_sub(self.beside) / panel.max(1) * Self::PANEL;
        let most = if self.bytes(self.filters) <= bytes { self.filters } else { most };
        let mut filters = most.clamp(Self::PANEL, self.filters.max(Self::PANEL)).min(self.filters);
        while filters > Self::PANEL && self.bytes(filters) > bytes {
            filters = (filters - 1) / Self::PANEL * Self::PANEL;
        }
        filters
    }
}

impl Call {
    /// The call that makes `filters` output channels of the layer, whichever they are. Its operands and its output are
    /// those of the layer, from the first of these channels on ([`Call::is_sliced_operand`]). None if no kernel does.
    pub fn slice(&self, operator: &Operator, filters: usize) -> Option<Call> {
        let Form::Rows(call) = &self.form else { return None };
        let [Constant { packing, parameters, .. }] = self.constants.as_slice() else { return None };
        if self.slopes || matches!(operator.activation(), Some(Function::PRelu { .. })) {
            return None;
        }
        let (panels, is_mixed) = match packing {
            Packing::Mixed(panels) => (&**panels, true),
            panels => (panels, false),
        };
        let (kernel, packing) = match (panels, operator) {
            (Packing::Conv { conv, bias }, Operator::Conv(_)) if conv.groups == 1 && !conv.is_depthwise() => {
                let conv = Conv { filters, ..*conv };
                (conv, Packing::Conv { conv, bias: *bias })
            }
            (Packing::Gemm { gemm, transposed, bias, image }, Operator::Gemm(_)) => {
                let gemm = csdfc_kernels::gemm::Gemm { units: filters, ..*gemm };
                let (transposed, bias, image) = (*transposed, *bias, *image);
                (gemm.as_conv(), Packing::Gemm { gemm, transposed, bias, image })
            }
            _ => return None,
        };
        let kernel = match [call.kernel.reads, call.kernel.makes] {
            [Element::F32, Element::F32] => Kernel::rows::<f32, f32>(kernel),
            [Element::F16, Element::F16] if is_mixed => Kernel::rows::<F16, F16>(MixedConv { conv: kernel }),
            [Element::F16, Element::F16] => Kernel::rows::<F16, F16>(kernel),
            _ => return None,
        };
        let packing = if is_mixed { Packing::Mixed(Box::new(packing)) } else { packing };
        let range = 0..packing.len() * call.kernel.reads.bytes() as usize;
        let constants = vec![Constant { packing, parameters: parameters.clone(), range }];
        Some(Call { form: Form::Rows(RowCall { kernel, ..call.clone() }), constants, slopes: false })
    }

    /// Whether a slice reads only its own channels of an operand: what is added to the sums.
    pub fn is_sliced_operand(&self, operand: usize) -> bool {
        let is_residual = match self.constants.as_slice() {
            [Constant { packing, .. }] => packing.conv().is_some_and(|conv| conv.residual),
            _ => false,
        };
        let inputs = match &self.form {
            Form::Rows(call) => call.inputs.len(),
            Form::Elements(call) => call.inputs.len(),
        };
        is_residual && operand + 1 == inputs
    }
}

/// The panels of a layer, in bytes.
struct Packed {
    conv: Conv,
    /// Of an output channel, of what lies beside them, and of all.
    each: usize,
    beside: usize,
    all: usize,
    /// Of a weight.
    weight: usize,
}

impl Packed {
    fn of(call: &Call) -> Option<Packed> {
        let [Constant { packing, .. }] = call.constants.as_slice() else { return None };
        let conv = packing.conv()?;
        let bare = Conv { pre: None, ..conv };
        if matches!(packing, Packing::Mixed(_)) {
            let [mixed, bare] = [conv, bare].map(|conv| MixedConv { conv });
            let (each, all) = (mixed.packed_each(), mixed.packed_len());
            return Some(Packed { conv, each, beside: all - bare.packed_len(), all, weight: 1 });
        }
        let weight = call.elements()[0].bytes() as usize;
        let [each, all, bare] =
            [conv.packed_each(), conv.packed_len(), bare.packed_len()].map(|count| count * weight);
        Some(Packed { conv, each, beside: all - bare, all, weight })
    }
}

/// Where the packed parameters of some output channels are among those of the whole layer, in bytes: those of the
/// channels, and what every slice has beside them. Between the two, a slice has zeros.
pub(crate) fn packed(call: &Call, filters: Range<usize>) -> Option<[Range<usize>; 2]> {
    let Packed { each, beside, all, .. } = Packed::of(call)?;
    Some([filters.start * each..filters.end * each, all - beside..all])
}
