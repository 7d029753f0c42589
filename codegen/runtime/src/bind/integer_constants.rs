//! Constants of kernels of 8-bit integers: from the parameters of a layer to bytes.
//!
//! The parameters of a convolution or of a matrix product are its weights, its biases, the scales and shifts of its
//! prologue, if it has one, and then the scales of the weights, one for each output channel. All are given as floats:
//! an integer is the quotient of a weight and its scale. Such a layer keeps a byte of each weight, and for each output
//! channel four bytes of the bias and four of the multiplier. If the integers do not fit a signed byte, one offset of
//! four bytes is added to all of them when they are multiplied. A function of one element is a table of its values for
//! all 256 integers.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::quantized::binary::{QBinary, QFunction};
use csdfc_kernels::quantized::conv::QConv;
use csdfc_kernels::quantized::gemm::QGemm;
use csdfc_kernels::quantized::pre::QPre;
use std::borrow::Cow;

use csdfc_plan::format::Quantization;
use csdfc_plan::operator::BinaryFunction;

use crate::error::LayerError;

use super::operand_constant::OperandConstant;

/// Bytes of a table.
pub(super) const TABLE: usize = 256;

/// How the constants of a kernel of 8-bit integers are packed, into bytes.
#[derive(Debug, Clone)]
pub enum Integers {
    /// Weights, biases and multipliers of a convolution.
    Conv {
        /// The convolution that reads them.
        conv: QConv,
        /// Whether there are biases.
        bias: bool,
        /// Scales of the integers that it multiplies, and of those that it makes.
        scales: [f32; 2],
    },
    /// The same for a matrix product.
    Gemm {
        /// The product that reads them.
        gemm: QGemm,
        /// Whether the weights are stored `[units, inner]`.
        transposed: bool,
        /// Whether there are biases.
        bias: bool,
        /// Channels and pixels of the input, if it is an image that lies pixel by pixel but is seen channel by channel.
        image: Option<[usize; 2]>,
        /// Scales of the integers that it reads, and of those that it makes.
        scales: [f32; 2],
    },
    /// An operand.
    Constant {
        /// How its elements lie.
        elements: OperandConstant,
        /// Which numbers the integers stand for.
        quantization: Quantization,
    },
    /// The values of a function for all integers.
    Table {
        /// The function.
        function: Unary,
        /// The quantizations of its input and of its output.
        quantizations: [Quantization; 2],
    },
}

/// A function of one number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unary {
    /// The number itself, or a function of it.
    Function(Activation),
    /// A function of it and of a constant, the layer's only parameter.
    Binary {
        /// The function.
        function: BinaryFunction,
        /// Whether the constant is the left operand.
        left: bool,
        /// Applied to the result.
        activation: Activation,
    },
    /// The same for a constant that is an integer too.
    Integers {
        /// The function, with the quantizations of its operands.
        function: QBinary,
    },
}

impl Integers {
    /// Bytes as packed.
    pub fn len(&self) -> usize {
        match self {
            Integers::Conv { conv, .. } => conv.packed_len(),
            Integers::Gemm { gemm, .. } => gemm.packed_len(),
            Integers::Constant { elements, .. } => elements.len(),
            Integers::Table { .. } => TABLE,
        }
    }

    /// The convolution whose panels these are. A matrix product counts as a convolution.
    pub fn conv(&self) -> Option<QConv> {
        match self {
            Integers::Conv { conv, .. } => Some(*conv),
            Integers::Gemm { gemm, .. } => Some(gemm.as_conv()),
            Integers::Constant { .. } | Integers::Table { .. } => None,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Packs parameters into [`Integers::len`] bytes.
    ///
    /// # Errors
    /// When their number is wrong, or weights are not 8-bit integers times their scale.
    pub fn pack(&self, parameters: &[Cow<'_, [f32]>], packed: &mut [u8]) -> Result<(), LayerError> {
        match self {
            Integers::Conv { conv, bias, scales } => {
                let elements =
                    conv.conv.channels / conv.conv.groups * conv.conv.kernel.iter().product::<usize>();
                let of = |weight: usize| weight / elements.max(1);
                let shape = [conv.conv.filters, elements];
                let units = Units::new(parameters, *bias, *scales, shape, conv.has_offset, of)?;
                let constants = prologue_constants(parameters, *bias, conv)?;
                let weights = (units.weights.as_slice(), units.offset);
                conv.pack(weights, &units.biases, &units.multipliers, constants, packed);
            }
            Integers::Gemm { gemm, transposed, bias, image, scales } => {
                let (inner, units) = (gemm.gemm.inner, gemm.gemm.units);
                let of =
                    |weight: usize| if *transposed { weight / inner.max(1) } else { weight % units.max(1) };
                let Units { weights, offset, biases, multipliers } =
                    Units::new(parameters, *bias, *scales, [units, inner], gemm.has_offset, of)?;
                let weight = |unit: usize, place: usize| {
                    let i = match image {
                        Some([channels, pixels]) => place % channels * pixels + place / channels,
                        None => place,
                    };
                    weights[if *transposed { unit * inner + i } else { i * units + unit }]
                };
                gemm.pack((weight, offset), &biases, &multipliers, packed);
            }
            Integers::Constant { elements, quantization } => {
                let mut numbers = vec![0.0; elements.len()];
                elements.pack(parameters, &mut numbers)?;
                packed.iter_mut().zip(numbers).for_each(|(to, x)| *to = quantization.integer(x));
            }
            Integers::Table { function, quantizations: [read, made] } => {
                let constant = parameters.first().and_then(|values| values.first()).copied().unwrap_or(0.0);
                for (q, to) in (0..=u8::MAX).zip(packed) {
                    *to = function.apply(q, constant, [*read, *made]);
                }
            }
        }
        Ok(())
    }
}

impl Unary {
    /// Its value for an integer, and for the constant if there is one.
    fn apply(self, q: u8, constant: f32, [read, made]: [Quantization; 2]) -> u8 {
        let x = read.number(q);
        match self {
            Unary::Function(function) => made.integer(function.apply(x, 0.0)),
            Unary::Binary { function, left, activation } => {
                let [a, b] = if left { [constant, x] } else { [x, constant] };
                made.integer(activation.apply(of_two(function, a, b), 0.0))
            }
            Unary::Integers { function } => with_constant(&function, q, constant),
        }
    }
}

/// A function of an integer and of this constant. A sum is rounded as ONNX Runtime rounds the sum of a tensor and one
/// element: first the part that does not change, and then everything at once.
fn with_constant(binary: &QBinary, q: u8, constant: f32) -> u8 {
    let (of_constant, of_element) = if binary.constant_first { (0, 1) } else { (1, 0) };
    let [[scale, zero_point], [constant_scale, constant_zero_point]] =
        [of_element, of_constant].map(|side| [binary.scales[side], f32::from(binary.zero_points[side])]);
    let [made, made_zero_point] = [binary.scales[2], f32::from(binary.zero_points[2])];
    let constant =
        Quantization { scale: constant_scale, zero_point: binary.zero_points[of_constant] }.integer(constant);
    let (q, constant) = (f32::from(q), f32::from(constant));
    let rounded = match binary.function {
        QFunction::Product => {
            let product = (q - zero_point) * (constant - constant_zero_point);
            (product * (binary.scales[0] * binary.scales[1] / made)).round_ties_even() + made_zero_point
        }
        QFunction::Sum | QFunction::Difference => {
            let sign = |side: usize| match binary.function {
                QFunction::Difference if side == 1 => -1.0,
                _ => 1.0,
            };
            let [ratio, constant_ratio] = [(of_element, scale), (of_constant, constant_scale)]
                .map(|(side, scale)| sign(side) * (scale / made));
            // Products of 24 and of 8 bits are exact in 64.
            let exact = |a: f32, b: f32, c: f32| (f64::from(a) * f64::from(b) + f64::from(c)) as f32;
            let fixed = match binary.constant_first {
                true => exact(constant_ratio, constant_zero_point, ratio * zero_point),
                false => exact(ratio, zero_point, constant_ratio * constant_zero_point),
            };
            exact(q, ratio, (made_zero_point - fixed) + constant * constant_ratio).round_ties_even()
        }
    };
    // A conversion to an integer type saturates.
    (rounded as u8).clamp(binary.low, binary.high)
}

/// A function of two numbers, except powers and what divisions leave over.
fn of_two(function: BinaryFunction, a: f32, b: f32) -> f32 {
    match function {
        BinaryFunction::Add => a + b,
        BinaryFunction::Sub => a - b,
        BinaryFunction::Mul => a * b,
        BinaryFunction::Div => a / b,
        BinaryFunction::Max => a.max(b),
        BinaryFunction::Min => a.min(b),
        BinaryFunction::Pow | BinaryFunction::Mod | BinaryFunction::Fmod => f32::NAN,
        BinaryFunction::Equal => f32::from(a == b),
        BinaryFunction::Greater => f32::from(a > b),
        BinaryFunction::GreaterOrEqual => f32::from(a >= b),
    }
}

/// Scales and shifts of a convolution's prologue, if there are any. They come after its weights and biases.
fn prologue_constants<'p>(
    parameters: &'p [Cow<'_, [f32]>],
    bias: bool,
    q: &QConv,
) -> Result<[&'p [f32]; 2], LayerError> {
    let first = 1 + usize::from(bias);
    match (q.pre, parameters.get(first..first + 2)) {
        (Some(QPre { affine: true, .. }), Some([scales, shifts]))
            if [scales.len(), shifts.len()] == [q.conv.channels; 2] =>
        {
            Ok([scales, shifts])
        }
        (Some(QPre { affine: true, .. }), _) => Err(LayerError::Prologue { channels: q.conv.channels }),
        _ => Ok([&[]; 2]),
    }
}

/// The parameters of sums of products as integers.
struct Units {
    weights: Vec<i8>,
    /// What is added to each weight.
    offset: i32,
    biases: Vec<i32>,
    multipliers: Vec<f32>,
}

impl Units {
    /// From the weights, biases and scales of the output channels, each a sum of the same number of products. `of`
    /// gives the output channel of a weight. The least offset is taken with which weights are bytes, if they may have one.
    fn new(
        parameters: &[Cow<'_, [f32]>],
        bias: bool,
        [read, made]: [f32; 2],
        [units, products]: [usize; 2],
        has_offset: bool,
        of: impl Fn(usize) -> usize,
    ) -> Result<Self, LayerError> {
        let parameter = |index: usize, elements: usize| match parameters
            .get(index)
            .map_or(&[][..], |found| found)
        {
            found if found.len() == elements => Ok(found),
            found => {
                Err(LayerError::ParameterLength { parameter: index, found: found.len(), expected: elements })
            }
        };
        let weights = parameter(0, units * products)?;
        let biases = if bias { parameter(1, units)? } else { &[] };
        let scales = parameter(parameters.len().saturating_sub(1), units)?;
        // A quotient of two zeros is NaN, and counts as 0.
        let integer = |(at, &weight): (usize, &f32)| {
            (f64::from(weight) / f64::from(scales[of(at)])).round_ties_even() as i64
        };
        let integers: Vec<i64> = weights.iter().enumerate().map(integer).collect();
        let [least, most] = [i8::MIN, i8::MAX].map(i64::from);
        let [low, high] = integers.iter().fold([0, 0], |[low, high], &q| [q.min(low), q.max(high)]);
        let offset = if has_offset { (high - most).max(0) + (low - least).min(0) } else { 0 };
        let byte = |&q: &i64| i8::try_from(q - offset).map_err(|_| LayerError::WeightBeyondByte { times: q });
        let weights = integers.iter().map(byte).collect::<Result<_, _>>()?;
        let Ok(offset) = i32::try_from(offset) else { return Err(LayerError::WeightsTooLarge) };
        let bias = |(unit, scale): (usize, &f32)| {
            let bias = biases.get(unit).copied().unwrap_or(0.0);
            (f64::from(bias) / f64::from(read * scale)).round_ties_even() as i32
        };
        let biases = scales.iter().enumerate().map(bias).collect();
        Ok(Units {
            weights,
            offset,
            biases,
            multipliers: scales.iter().map(|scale| read * scale / made).collect(),
        })
    }
}
