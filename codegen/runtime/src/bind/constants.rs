//! Packing: from the parameter tensors of a layer to the form in which kernels read them.
//!
//! The filters of a convolution, or the weights of a matrix product by constants, lie in panels of 16 output channels.
//! The last panel of a group has the channels that are left. A panel holds a bias for each channel (zeros if there are
//! no biases), the weights, step by step of the sum, and the slopes of a PRelu that has one slope per channel. A narrow
//! last panel is followed by as many zeros as it has channels less than 16, so that kernels may read whole vectors.
//! Primitives of convolutions that read several layouts keep the biases of all filters, or zeros, and then the filters
//! in an order of their own, or transformed. All other parameters are kept as they are, or as the pixels of an image.
//! The parameters of each layer begin at a multiple of 64 bytes, and their size is rounded up to such a multiple.

use std::borrow::Cow;
use std::ops::Range;

use csdfc_kernels::activation::Activation;
use csdfc_kernels::conv::fft::Fft1d;
use csdfc_kernels::conv::fft2d::Fft2d;
use csdfc_kernels::conv::mixed::MixedConv;
use csdfc_kernels::conv::scaled::ScaledConv;
use csdfc_kernels::conv::scenario::Scenario;
use csdfc_kernels::conv::transpose::ConvTranspose;
use csdfc_kernels::conv::winograd::Winograd;
use csdfc_kernels::conv::{Conv, Pre};
use csdfc_kernels::elements::ElementShape;
use csdfc_kernels::gemm::Gemm;
use csdfc_kernels::half::F16;
use csdfc_kernels::rows::RowShape;

use csdfc_plan::operator::{self, Function, Operator};
use csdfc_plan::shape::Shape;

use crate::error::LayerError;

use super::integer_constants::Integers;
use super::operand_constant::OperandConstant;
use super::translate::{activation, pre};
use super::views::View;

/// A part of a layer's parameters, and how it is packed.
#[derive(Debug, Clone)]
pub struct Part {
    /// How it is packed.
    pub packing: Packing,
    /// The parameters that it is packed from.
    pub parameters: Range<usize>,
}

/// How parameters are packed.
#[derive(Debug, Clone)]
pub enum Packing {
    /// In panels: filters, biases and slopes; after them, the scales and shifts that are applied to the input.
    Conv {
        /// The convolution that reads them.
        conv: Conv,
        /// Whether there are biases.
        bias: bool,
    },
    /// In panels: filters, biases and slopes.
    ConvTranspose {
        /// The transposed convolution that reads them.
        conv: ConvTranspose,
        /// Whether there are biases.
        bias: bool,
    },
    /// In panels: weights and biases of a matrix product, as of a convolution of single pixels.
    Gemm {
        /// The product that reads them.
        gemm: Gemm,
        /// Whether the weights are stored `[units, inner]`.
        transposed: bool,
        /// Whether there are biases.
        bias: bool,
        /// Channels and pixels of the input, if it is an image that lies pixel by pixel but is seen channel by channel.
        image: Option<[usize; 2]>,
    },
    /// Biases (zeros if there are none), and then filters in the order of the scenario.
    Scenario {
        /// The convolution that reads them.
        scenario: Scenario,
        /// Whether there are biases.
        bias: bool,
    },
    /// Biases (zeros if there are none), and transformed filters.
    Winograd {
        /// The convolution that reads them.
        winograd: Winograd,
        /// Whether there are biases.
        bias: bool,
    },
    /// Biases (zeros if there are none), cosines and sines, and filters or their spectra.
    Fft1d {
        /// The convolution that reads them.
        fft: Fft1d,
        /// Whether there are biases.
        bias: bool,
    },
    /// The same, with spectra of planes.
    Fft2d {
        /// The convolution that reads them.
        fft: Fft2d,
        /// Whether there are biases.
        bias: bool,
    },
    /// The panels of a convolution or of a matrix product, with weights of 8 bits and everything else of 16 bits.
    Mixed(Box<Packing>),
    /// The panels of a convolution or of a matrix product, with weights of 8 or 16 bits for tensors of floats.
    Scaled {
        /// The panels of floats.
        panels: Box<Packing>,
        /// Whether weights are 16-bit floats; if not, they are 8-bit integers.
        halves: bool,
    },
    /// Constants of a kernel of 8-bit integers.
    Integers(Integers),
    /// A constant that is an operand.
    Operand(OperandConstant),
}

impl Packing {
    /// Elements as packed; bytes of [`Packing::Integers`], pairs of bytes of [`Packing::Mixed`].
    pub fn len(&self) -> usize {
        match self {
            Packing::Conv { conv, .. } => conv.packed_len(),
            Packing::ConvTranspose { conv, .. } => conv.packed_len(),
            Packing::Gemm { gemm, .. } => gemm.packed_len(),
            Packing::Scenario { scenario, .. } => scenario.packed_len(),
            Packing::Winograd { winograd, .. } => winograd.packed_len(),
            Packing::Fft1d { fft, .. } => fft.packed_len(),
            Packing::Fft2d { fft, .. } => fft.packed_len(),
            Packing::Mixed(panels) => {
                panels.conv().map_or(0, |conv| MixedConv { conv }.packed_len() / size_of::<F16>())
            }
            Packing::Scaled { panels, halves } => panels
                .conv()
                .map_or(0, |conv| ScaledConv { conv, halves: *halves }.packed_len() / size_of::<f32>()),
            Packing::Integers(integers) => integers.len(),
            Packing::Operand(constant) => constant.len(),
        }
    }

    /// The convolution whose panels these are. A matrix product counts as a convolution.
    pub fn conv(&self) -> Option<Conv> {
        match self {
            Packing::Conv { conv, .. } => Some(*conv),
            Packing::Gemm { gemm, .. } => Some(gemm.as_conv()),
            Packing::Mixed(panels) | Packing::Scaled { panels, .. } => panels.conv(),
            _ => None,
        }
    }

    /// How the same parameters of `filters` output channels are packed, if they are in panels that can be divided.
    pub(super) fn of_filters(&self, filters: usize) -> Option<Packing> {
        let mut part = self.clone();
        match &mut part {
            Packing::Conv { conv, .. } => conv.filters = filters,
            Packing::Gemm { gemm, .. } => gemm.units = filters,
            Packing::Mixed(panels) | Packing::Scaled { panels, .. } => {
                **panels = panels.of_filters(filters)?
            }
            Packing::Integers(Integers::Conv { conv, .. }) => conv.conv.filters = filters,
            Packing::Integers(Integers::Gemm { gemm, .. }) => gemm.gemm.units = filters,
            _ => return None,
        }
        Some(part)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How kernels by rows see it. A constant that is not an image is one row of one pixel.
    pub fn rows(&self) -> RowShape {
        match self {
            Packing::Operand(elements) | Packing::Integers(Integers::Constant { elements, .. }) => {
                elements.rows()
            }
            _ => RowShape::dense(1, 1, self.len(), 1),
        }
    }

    /// How kernels by elements see it. A constant without dimensions of its own has one dimension.
    pub fn elements(&self) -> View {
        match self {
            Packing::Operand(elements) | Packing::Integers(Integers::Constant { elements, .. }) => {
                elements.elements()
            }
            _ => {
                let shape = ElementShape::flat(self.len());
                View { shape, seen: shape.dims }
            }
        }
    }

    /// Packs parameters, in the order of the operator's documentation, into exactly the floats that they take.
    ///
    /// # Errors
    /// When their number is wrong, or they are packed as narrower numbers: see [`Integers::pack`], `mixed` and `scaled`.
    pub fn pack(&self, parameters: &[Cow<'_, [f32]>], packed: &mut [f32]) -> Result<(), LayerError> {
        let parameter = |index: usize| parameters.get(index).map_or(&[][..], |values| values);
        let expect = |index: usize, elements: usize| match parameter(index).len() {
            found if found == elements => Ok(()),
            found => Err(LayerError::ParameterLength { parameter: index, found, expected: elements }),
        };
        let after_weights = |has_bias: bool, filters: usize, activation: Activation| {
            let bias = has_bias.then(|| parameter(1));
            bias_and_slopes(bias, parameter(1 + usize::from(has_bias)), filters, activation)
        };
        // A convolution of one group, without a prologue or activation that has constants of its own.
        let plain = |conv: &Conv, has_bias: bool| {
            expect(0, conv.filters * conv.channels * conv.kernel[0] * conv.kernel[1])?;
            let [bias, _] = after_weights(has_bias, conv.filters, conv.activation)?;
            Ok::<_, LayerError>([parameter(0), bias])
        };
        match self {
            Packing::Conv { conv, bias } => {
                expect(0, conv.filters * (conv.channels / conv.groups) * conv.kernel[0] * conv.kernel[1])?;
                let first = 1 + usize::from(*bias);
                let (constants, next) = match conv.pre {
                    Some(Pre { affine: true, .. }) => {
                        expect(first, conv.channels)?;
                        expect(first + 1, conv.channels)?;
                        ([parameter(first), parameter(first + 1)], first + 2)
                    }
                    _ => ([&[][..]; 2], first),
                };
                let bias = bias.then(|| parameter(1));
                let [bias, slopes] = bias_and_slopes(bias, parameter(next), conv.filters, conv.activation)?;
                conv.pack(parameter(0), bias, slopes, constants, packed);
            }
            Packing::ConvTranspose { conv, bias } => {
                expect(0, conv.channels * (conv.filters / conv.groups) * conv.kernel[0] * conv.kernel[1])?;
                let [bias, slopes] = after_weights(*bias, conv.filters, conv.activation)?;
                conv.pack(parameter(0), bias, slopes, packed);
            }
            Packing::Gemm { gemm, transposed, bias, image } => {
                expect(0, gemm.units * gemm.inner)?;
                let [bias, slopes] = after_weights(*bias, gemm.units, gemm.activation)?;
                let weight = |unit: usize, place: usize| {
                    let i = match image {
                        Some([channels, pixels]) => place % channels * pixels + place / channels,
                        None => place,
                    };
                    parameter(0)[if *transposed { unit * gemm.inner + i } else { i * gemm.units + unit }]
                };
                gemm.pack(weight, bias, slopes, packed);
            }
            Packing::Scenario { scenario, bias } => {
                let [weights, bias] = plain(&scenario.conv, *bias)?;
                scenario.pack(weights, bias, packed);
            }
            Packing::Winograd { winograd, bias } => {
                let [weights, bias] = plain(&winograd.conv, *bias)?;
                winograd.pack(weights, bias, packed);
            }
            Packing::Fft1d { fft, bias } => {
                let [weights, bias] = plain(&fft.scenario.conv, *bias)?;
                fft.pack(weights, bias, packed, &mut vec![0.0; 2 * fft.points()]);
            }
            Packing::Fft2d { fft, bias } => {
                let [weights, bias] = plain(&fft.scenario.conv, *bias)?;
                fft.pack(weights, bias, packed, &mut vec![0.0; fft.room()]);
            }
            Packing::Integers(_) | Packing::Mixed(_) | Packing::Scaled { .. } => {
                return Err(LayerError::Mistake("its parameters are packed as narrower numbers: a mistake"));
            }
            Packing::Operand(constant) => constant.pack(parameters, packed)?,
        }
        Ok(())
    }
}

/// The biases, if there are any, and the parameter that would be slopes, if they are in the panels.
fn bias_and_slopes<'a>(
    bias: Option<&'a [f32]>,
    slopes: &'a [f32],
    filters: usize,
    activation: Activation,
) -> Result<[&'a [f32]; 2], LayerError> {
    let slopes = if activation == Activation::PRelu { slopes } else { &[] };
    if let Some(bias) = bias
        && bias.len() != filters
    {
        return Err(LayerError::PerChannel { what: "biases", found: bias.len(), filters });
    }
    if activation == Activation::PRelu && ![1, filters].contains(&slopes.len()) {
        return Err(LayerError::PerChannel { what: "slopes", found: slopes.len(), filters });
    }
    Ok([bias.unwrap_or_default(), slopes])
}

/// How the parameters of a convolution or of a matrix product by constants are packed, and whether the slopes of a
/// PRelu are to follow in place, because they differ within a channel. `inputs` are the operands as seen.
pub(crate) fn panels(operator: &Operator, inputs: &[&Shape]) -> Option<(Part, bool)> {
    let (filters, bias) = match operator {
        Operator::Conv(conv) => (conv.filters, conv.bias),
        Operator::ConvTranspose(conv) => (conv.filters, conv.bias),
        Operator::Gemm(gemm) => (gemm.units, gemm.bias),
        _ => return None,
    };
    let slopes = match operator.activation() {
        Some(Function::PRelu { slope }) => Some(slope_per_channel(operator, slope, filters)),
        _ => None,
    };
    let in_place = slopes == Some(false);
    let activation = if in_place { Activation::None } else { activation(operator.activation()) };
    let parts = match operator {
        Operator::Conv(conv) => conv.parts(inputs.len()),
        _ => 1,
    };
    let channels = inputs.get(..parts)?.iter().map(|part| part.channels()).sum();
    let packing = match operator {
        Operator::Conv(conv) => {
            let &operator::Conv { kernel, stride, dilation, pads, groups, residual, .. } = conv;
            let pre = conv.pre.as_ref().map(pre);
            let conv =
                Conv { channels, filters, kernel, stride, dilation, pads, groups, pre, residual, activation };
            Packing::Conv { conv, bias }
        }
        Operator::ConvTranspose(conv) => {
            let &operator::ConvTranspose { kernel, stride, dilation, pads, groups, .. } = conv;
            let conv =
                ConvTranspose { channels, filters, kernel, stride, dilation, pads, groups, activation };
            Packing::ConvTranspose { conv, bias }
        }
        Operator::Gemm(gemm) => {
            let (inner, transposed) = (gemm.inner, gemm.transposed);
            Packing::Gemm { gemm: Gemm { inner, units: filters, activation }, transposed, bias, image: None }
        }
        _ => return None,
    };
    let affine = matches!(operator, Operator::Conv(operator::Conv { pre: Some(pre), .. }) if pre.affine);
    let parameters = 0..1 + usize::from(bias) + 2 * usize::from(affine) + usize::from(slopes == Some(true));
    Some((Part { packing, parameters }, in_place))
}

/// Whether slopes of these dimensions are one, or one per output channel.
fn slope_per_channel(operator: &Operator, slope: &[usize], filters: usize) -> bool {
    // Dimensions after that of the channels.
    let after = if matches!(operator, Operator::Gemm(_)) { 0 } else { 2 };
    let elements: usize = slope.iter().product();
    let at_channels = slope.len().checked_sub(after + 1).map(|axis| slope[axis]);
    elements == 1 || (elements == filters && at_channels == Some(filters))
}

/// Elements that a layer's parameters take as packed. `inputs` are the shapes in which the layer sees its operands, and
/// `elements` is the number of its parameters.
pub(super) fn stored_elements(operator: &Operator, inputs: &[&Shape], elements: u64) -> u64 {
    let in_panels = panels(operator, inputs).map(|(part, in_place)| {
        let slopes = match operator.activation() {
            Some(Function::PRelu { slope }) if in_place => slope.iter().product(),
            _ => 0,
        };
        (part.packing.len() + slopes) as u64
    });
    in_panels.unwrap_or(elements)
}
