//! Tiles: some of a layer's output channels at a time, if its weights are read tile by tile.
//!
//! A tile is the layer as it would be without its other output channels. Its kernel and its packed parameters are
//! those of the layer with fewer filters. Only two things differ: the pixels that it writes, and those that it adds,
//! are as far apart as those of the whole layer, and it begins at its own first channel.

use std::ops::Range;

use csdfc_kernels::conv::Conv;
use csdfc_kernels::conv::mixed::MixedConv;
use csdfc_kernels::conv::scaled::ScaledConv;
use csdfc_kernels::half::F16;
use csdfc_kernels::quantized::conv::QConv;

use crate::bytes::LINE;
use csdfc_plan::format::{Element, Quantization};
use csdfc_plan::operator::{Function, Operator};
use csdfc_plan::shape::Shape;

use super::constants::Packing;
use super::kernel::{Call, Constant, Form, Kernel, Operand, RowCall, Site};
use super::primitive::Primitive;
use super::typed::ByRows;

/// The primitives whose kernels are a convolution of panels.
const TILED: [&str; 14] = [
    "indirect-gemm-hwc-hwc",
    "indirect-gemm-half-hwc-hwc",
    "indirect-gemm-mixed-hwc-hwc",
    "indirect-gemm-int8-hwc-hwc",
    "indirect-gemm-uint8-hwc-hwc",
    "indirect-gemm-w8-hwc-hwc",
    "indirect-gemm-w16-hwc-hwc",
    "gemm-panels-hwc-hwc",
    "gemm-panels-half-hwc-hwc",
    "gemm-panels-mixed-hwc-hwc",
    "gemm-panels-int8-hwc-hwc",
    "gemm-panels-uint8-hwc-hwc",
    "gemm-panels-w8-hwc-hwc",
    "gemm-panels-w16-hwc-hwc",
];

/// How the output channels of a layer may be divided into tiles: any number at a time, in whole panels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tiling {
    /// Output channels of the layer.
    pub filters: u64,
    panels: Panels,
}

impl Tiling {
    /// Output channels of a panel. A tile has a multiple of this number, and the last tile has the channels that are
    /// left.
    pub const PANEL: u64 = 16;

    /// How a layer whose tensors are stored whole may be tiled, if it may be. `operands` have the shapes of their
    /// tensors and the shapes in which they are seen.
    pub fn new(
        primitive: Primitive,
        operator: &Operator,
        operands: &[(&Shape, &Shape)],
        output: &Shape,
    ) -> Option<Self> {
        if !TILED.contains(&primitive.name()) {
            return None;
        }
        let site = Site::whole(operator, operands.iter().copied(), output);
        // The length of panels does not depend on the quantization.
        let quantization = Some(Quantization { scale: 1.0, zero_point: 0 });
        let inputs = site.inputs.iter().map(|operand| Operand { quantization, ..*operand }).collect();
        let site = Site { elements: primitive.elements(), inputs, quantization, ..site };
        let call = super::bind(primitive, &site).ok()?;
        call.tile(operator, 1)?;
        let panels = Panels::new(&call)?;
        Some(Tiling { filters: panels.conv().filters as u64, panels })
    }

    /// Bytes of a tile of `filters` output channels.
    pub fn bytes(&self, filters: u64) -> u64 {
        self.panels.of_filters(filters as usize).len().next_multiple_of(LINE) as u64
    }

    /// The most output channels, in whole panels, whose tile has no more bytes than this; a panel at least.
    pub fn max_filters(&self, bytes: u64) -> u64 {
        let [each, beside] =
            [self.panels.channel_bytes(), self.panels.extra_bytes()].map(|count| count as u64);
        let most = bytes.saturating_sub(beside) / (Self::PANEL * each).max(1) * Self::PANEL;
        let most = if self.bytes(self.filters) <= bytes { self.filters } else { most };
        let mut filters = most.clamp(Self::PANEL, self.filters.max(Self::PANEL)).min(self.filters);
        while filters > Self::PANEL && self.bytes(filters) > bytes {
            filters = (filters - 1) / Self::PANEL * Self::PANEL;
        }
        filters
    }
}

impl Call {
    /// The call that makes any `filters` output channels of the layer. Its operands and its output are those of the
    /// layer, from the first of these channels on ([`Call::is_tiled_operand`]). `None` if no kernel does.
    pub fn tile(&self, operator: &Operator, filters: usize) -> Option<Call> {
        let Form::Rows(call) = &self.form else { return None };
        let [Constant { packing, parameters, .. }] = self.constants.as_slice() else { return None };
        if self.slopes || matches!(operator.activation(), Some(Function::PRelu { .. })) {
            return None;
        }
        let panels = Panels::new(self)?;
        let is_one = match (operator, panels) {
            // A single filter of one channel would be a depthwise convolution, which has other panels of integers.
            (Operator::Conv(_), _) | (_, Panels::Integers(_)) if panels.conv().channels == 1 => false,
            (Operator::Conv(_), _) => panels.conv().groups == 1,
            (Operator::Gemm(_), _) => true,
            _ => false,
        };
        if !is_one {
            return None;
        }
        let panels = panels.of_filters(filters);
        let (packing, range) = (packing.of_filters(filters)?, 0..panels.len());
        let constants = vec![Constant { packing, parameters: parameters.clone(), range }];
        let form = Form::Rows(RowCall { kernel: panels.kernel(), ..call.clone() });
        Some(Call { form, constants, slopes: false })
    }

    /// Whether a tile reads only its own channels of an operand. This holds for the operand that is added to the sums.
    pub fn is_tiled_operand(&self, operand: usize) -> bool {
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

/// The convolution that reads the panels of a layer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Panels {
    /// Of 32-bit floats.
    Single(Conv),
    /// Of 16-bit floats.
    Half(Conv),
    /// Of 8-bit integers, for tensors of 16-bit floats.
    Mixed(MixedConv),
    /// Of weights of 8 or 16 bits, for tensors of 32-bit floats.
    Scaled(ScaledConv),
    /// Of 8-bit integers.
    Integers(QConv),
}

impl Panels {
    fn new(call: &Call) -> Option<Panels> {
        let [Constant { packing, .. }] = call.constants.as_slice() else { return None };
        Some(match (packing, call.elements()) {
            (Packing::Integers(integers), _) => Panels::Integers(integers.conv()?),
            (Packing::Mixed(panels), _) => Panels::Mixed(MixedConv { conv: panels.conv()? }),
            (&Packing::Scaled { ref panels, halves }, _) => {
                Panels::Scaled(ScaledConv { conv: panels.conv()?, halves })
            }
            (panels, [Element::F32, Element::F32]) => Panels::Single(panels.conv()?),
            (panels, [Element::F16, Element::F16]) => Panels::Half(panels.conv()?),
            _ => return None,
        })
    }

    /// The convolution.
    fn conv(&self) -> &Conv {
        match self {
            Panels::Single(conv) | Panels::Half(conv) => conv,
            Panels::Mixed(mixed) => &mixed.conv,
            Panels::Scaled(scaled) => &scaled.conv,
            Panels::Integers(integers) => &integers.conv,
        }
    }

    /// The same for another convolution.
    fn with_conv(mut self, other: Conv) -> Self {
        match &mut self {
            Panels::Single(conv) | Panels::Half(conv) => *conv = other,
            Panels::Mixed(mixed) => mixed.conv = other,
            Panels::Scaled(scaled) => scaled.conv = other,
            Panels::Integers(integers) => integers.conv = other,
        }
        self
    }

    /// The panels of `filters` output channels.
    fn of_filters(self, filters: usize) -> Self {
        self.with_conv(Conv { filters, ..*self.conv() })
    }

    /// The kernel that computes these output channels.
    fn kernel(self) -> Kernel<ByRows> {
        match self {
            Panels::Single(conv) => Kernel::rows::<f32, f32>(conv),
            Panels::Half(conv) => Kernel::rows::<F16, F16>(conv),
            Panels::Mixed(mixed) => Kernel::rows::<F16, F16>(mixed),
            Panels::Scaled(scaled) => Kernel::rows::<f32, f32>(scaled),
            Panels::Integers(integers) => Kernel::rows::<u8, u8>(integers),
        }
    }

    /// Bytes of an output channel.
    fn channel_bytes(self) -> usize {
        match self {
            Panels::Single(conv) => conv.packed_each() * size_of::<f32>(),
            Panels::Half(conv) => conv.packed_each() * size_of::<F16>(),
            Panels::Mixed(mixed) => mixed.packed_each(),
            Panels::Scaled(scaled) => scaled.packed_each(),
            Panels::Integers(integers) => integers.packed_each(),
        }
    }

    /// Bytes of all panels, of the zeros that follow them, and of the data stored with them.
    fn len(self) -> usize {
        match self {
            Panels::Single(conv) => conv.packed_len() * size_of::<f32>(),
            Panels::Half(conv) => conv.packed_len() * size_of::<F16>(),
            Panels::Mixed(mixed) => mixed.packed_len(),
            Panels::Scaled(scaled) => scaled.packed_len(),
            Panels::Integers(integers) => integers.packed_len(),
        }
    }

    /// Bytes of the data stored with the panels.
    fn extra_bytes(self) -> usize {
        match self {
            Panels::Integers(integers) => integers.extra_bytes(),
            floats => floats.len() - floats.with_conv(Conv { pre: None, ..*floats.conv() }).len(),
        }
    }
}

/// The two byte ranges, among the packed parameters of the whole layer, that some output channels need: the parameters
/// of the channels, and the data that every weight tile has in addition. Between the two, a tile has zeros.
pub(crate) fn packed(call: &Call, filters: Range<usize>) -> Option<[Range<usize>; 2]> {
    let panels = Panels::new(call)?;
    let (each, all) = (panels.channel_bytes(), panels.len());
    Some([filters.start * each..filters.end * each, all - panels.extra_bytes()..all])
}
