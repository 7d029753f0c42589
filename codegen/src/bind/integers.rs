//! Kernels of 8-bit integers: which layers have one, which it is, and how its constants are packed.
//!
//! A layer that reads and makes 8-bit integers computes what its operator computes on the numbers that they stand for,
//! and rounds once. Sums are exact. The scales of input, weights and output are one multiplier for each output channel.
//! An activation that only bounds its argument becomes bounds of the integers. A function of one element is a table.
//!
//! The parameters of a convolution or of a matrix product are its weights, its biases, and after them the scales of the
//! weights, one for each output channel. All are given as floats: an integer is the quotient of a weight and its scale.
//! Such a layer keeps a byte of each weight, and four of the bias and the multiplier of each output channel.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::conv::Conv;
use csdfc_kernels::pool::Pool;
use csdfc_kernels::quantised::Requantise;
use csdfc_kernels::quantised::binary::{QBinary, QFunction};
use csdfc_kernels::quantised::cast::{Dequantise, Quantise};
use csdfc_kernels::quantised::conv::QConv;
use csdfc_kernels::quantised::gemm::QGemm;
use csdfc_kernels::quantised::pool::QPool;
use csdfc_kernels::quantised::table::Table;
use csdfc_kernels::rows::RowShape;

use crate::format::{Element, Quantisation};
use crate::operator::{self, BinaryFunction, Function, Operator, PoolKind, ReduceFunction};
use crate::shape::Shape;

use super::choice::{Choice, Forms};
use super::constants::{self, Packing};
use super::kernel::{Kernel, Operand, Site};
use super::products::{self, ProductRows};
use super::{own_kernels, translate};

/// Elements of a table.
const TABLE: usize = 256;

/// How the constants of a kernel of 8-bit integers are packed, into bytes.
#[derive(Debug, Clone)]
pub enum Integers {
    /// Weights, biases and multipliers of a convolution.
    Conv {
        /// The convolution that reads them.
        conv: QConv,
        /// Whether there are biases.
        bias: bool,
        /// Scales of what it reads and makes.
        scales: [f32; 2],
    },
    /// The same of a matrix product.
    Gemm {
        /// The product that reads them.
        gemm: QGemm,
        /// Whether the weights are stored `[units, inner]`.
        transposed: bool,
        /// Whether there are biases.
        bias: bool,
        /// As in [`Packing::Gemm`].
        image: Option<[usize; 2]>,
        /// Scales of what it reads and makes.
        scales: [f32; 2],
    },
    /// An operand.
    Constant {
        /// How its elements lie.
        elements: Box<Packing>,
        /// Which numbers the integers stand for.
        quantisation: Quantisation,
    },
    /// What a function makes of each integer.
    Table {
        /// The function.
        function: Unary,
        /// Which numbers the integers stand for that it reads, and those that it makes.
        quantisations: [Quantisation; 2],
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
        /// What becomes of the result.
        activation: Activation,
    },
    /// The same of a constant that is an integer too.
    Integers {
        /// The function, and what its operands stand for.
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

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Packs parameters into [`Integers::len`] bytes.
    ///
    /// # Errors
    /// When they are not as many as they should be, or weights are no integers of 8 bits times their scale.
    pub fn pack(&self, parameters: &[Vec<f32>], packed: &mut [u8]) -> Result<(), String> {
        match self {
            Integers::Conv { conv, bias, scales } => {
                let elements =
                    conv.conv.channels / conv.conv.groups * conv.conv.kernel.iter().product::<usize>();
                let of = |weight: usize| weight / elements.max(1);
                let units = Units::of(parameters, *bias, *scales, [conv.conv.filters, elements], of)?;
                conv.pack(&units.weights, &units.biases, &units.multipliers, packed);
            }
            Integers::Gemm { gemm, transposed, bias, image, scales } => {
                let (inner, units) = (gemm.gemm.inner, gemm.gemm.units);
                let of =
                    |weight: usize| if *transposed { weight / inner.max(1) } else { weight % units.max(1) };
                let Units { weights, biases, multipliers } =
                    Units::of(parameters, *bias, *scales, [units, inner], of)?;
                let weight = |unit: usize, place: usize| {
                    let i = match image {
                        Some([channels, pixels]) => place % channels * pixels + place / channels,
                        None => place,
                    };
                    weights[if *transposed { unit * inner + i } else { i * units + unit }]
                };
                gemm.pack(weight, &biases, &multipliers, packed);
            }
            Integers::Constant { elements, quantisation } => {
                let mut numbers = vec![0.0; elements.len()];
                elements.pack(parameters, &mut numbers)?;
                packed.iter_mut().zip(numbers).for_each(|(to, x)| *to = quantisation.integer(x));
            }
            Integers::Table { function, quantisations: [read, made] } => {
                let constant = parameters.first().and_then(|values| values.first()).copied().unwrap_or(0.0);
                for (q, to) in (0..=u8::MAX).zip(packed) {
                    *to = function.of(q, constant, [*read, *made]);
                }
            }
        }
        Ok(())
    }
}

impl Unary {
    /// What it makes of an integer, and of the constant if there is one.
    fn of(self, q: u8, constant: f32, [read, made]: [Quantisation; 2]) -> u8 {
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

/// A function of an integer and of this constant. A sum is rounded as ONNX Runtime rounds that of a tensor and one
/// element: what does not change first, and then all at once.
fn with_constant(binary: &QBinary, q: u8, constant: f32) -> u8 {
    let (of_constant, of_element) = if binary.constant_first { (0, 1) } else { (1, 0) };
    let [[scale, zero_point], [constant_scale, constant_zero_point]] =
        [of_element, of_constant].map(|side| [binary.scales[side], f32::from(binary.zero_points[side])]);
    let [made, made_zero_point] = [binary.scales[2], f32::from(binary.zero_points[2])];
    let constant =
        Quantisation { scale: constant_scale, zero_point: binary.zero_points[of_constant] }.integer(constant);
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

/// A function of two numbers, but for powers.
fn of_two(function: BinaryFunction, a: f32, b: f32) -> f32 {
    match function {
        BinaryFunction::Add => a + b,
        BinaryFunction::Sub => a - b,
        BinaryFunction::Mul => a * b,
        BinaryFunction::Div => a / b,
        BinaryFunction::Max => a.max(b),
        BinaryFunction::Min => a.min(b),
        BinaryFunction::Pow => f32::NAN,
    }
}

/// The parameters of sums of products as integers.
struct Units {
    weights: Vec<i8>,
    biases: Vec<i32>,
    multipliers: Vec<f32>,
}

impl Units {
    /// From weights, biases and scales of so many output channels, each of so many products. `of` is the output channel
    /// of a weight.
    fn of(
        parameters: &[Vec<f32>],
        bias: bool,
        [read, made]: [f32; 2],
        [units, products]: [usize; 2],
        of: impl Fn(usize) -> usize,
    ) -> Result<Self, String> {
        let none = Vec::new();
        let parameter = |index: usize, elements: usize| match parameters.get(index).unwrap_or(&none) {
            found if found.len() == elements => Ok(found),
            found => Err(format!("its parameter {index} has {} elements, not {elements}", found.len())),
        };
        let weights = parameter(0, units * products)?;
        let biases = if bias { parameter(1, units)? } else { &none };
        let scales = parameter(1 + usize::from(bias), units)?;
        let integer = |(at, &weight): (usize, &f32)| {
            let q = (f64::from(weight) / f64::from(scales[of(at)])).round_ties_even();
            // A quotient of two zeros is no number, and stands for 0.
            let fits = q.is_nan() || (f64::from(i8::MIN)..=f64::from(i8::MAX)).contains(&q);
            if fits {
                Ok(q as i8)
            } else {
                Err(format!("a weight is {q} times its scale, no integer of 8 bits"))
            }
        };
        let weights = weights.iter().enumerate().map(integer).collect::<Result<_, _>>()?;
        let bias = |(unit, scale): (usize, &f32)| {
            let bias = biases.get(unit).copied().unwrap_or(0.0);
            (f64::from(bias) / f64::from(read * scale)).round_ties_even() as i32
        };
        let biases = scales.iter().enumerate().map(bias).collect();
        Ok(Units { weights, biases, multipliers: scales.iter().map(|scale| read * scale / made).collect() })
    }
}

/// Whether this is a convolution of one tensor, with nothing added, that bounds its sums at most.
pub(super) fn is_conv(operator: &Operator, inputs: &[&Shape]) -> bool {
    let Operator::Conv(conv) = operator else { return false };
    inputs.len() == 1 && conv.pre.is_none() && !conv.residual && bounds_at_most(conv.activation.as_ref())
}

/// The same of a matrix product by constants.
pub(super) fn is_gemm(operator: &Operator, _: &[&Shape]) -> bool {
    matches!(operator, Operator::Gemm(gemm) if bounds_at_most(gemm.activation.as_ref()))
}

/// Whether an operator has a kernel of 8-bit integers of its own.
pub(super) fn has_own_kernel(operator: &Operator, inputs: &[&Shape]) -> bool {
    match operator {
        Operator::ElementWise(element_wise) => !matches!(element_wise.function, Function::PRelu { .. }),
        Operator::Binary(binary) => match &binary.constant {
            Some(constant) if constant.quantisation.is_none() => {
                let is_power = binary.function == BinaryFunction::Pow;
                !is_power && is_table(constant, binary.activation.as_ref())
            }
            _ => function_of(binary.function).is_some() && bounds_at_most(binary.activation.as_ref()),
        },
        Operator::Pool(pool) => matches!(pool.kind, PoolKind::Max | PoolKind::Average { .. }),
        Operator::Reduce(reduce) => is_mean_of_image(reduce, inputs),
        Operator::Concat(_)
        | Operator::Slice(_)
        | Operator::Transpose(_)
        | Operator::DepthToSpace(_)
        | Operator::SpaceToDepth(_)
        | Operator::Resize(_)
        | Operator::Pad(_) => true,
        _ => false,
    }
}

/// Whether a function of an element and this constant is a function of the element.
fn is_table(constant: &operator::ConstantOperand, activation: Option<&Function>) -> bool {
    is_one(&constant.dims) && !matches!(activation, Some(Function::PRelu { .. }))
}

/// Whether a constant of these dimensions is one element.
fn is_one(dims: &[usize]) -> bool {
    dims.iter().product::<usize>() == 1
}

fn is_mean_of_image(reduce: &operator::Reduce, inputs: &[&Shape]) -> bool {
    reduce.function == ReduceFunction::Mean
        && reduce.axes == [2, 3]
        && matches!(inputs, [x] if x.is_image() && x.rank() == 4 && x.order == crate::shape::Order::ChannelsFirst)
}

fn function_of(function: BinaryFunction) -> Option<QFunction> {
    match function {
        BinaryFunction::Add => Some(QFunction::Sum),
        BinaryFunction::Sub => Some(QFunction::Difference),
        BinaryFunction::Mul => Some(QFunction::Product),
        _ => None,
    }
}

fn bounds_at_most(activation: Option<&Function>) -> bool {
    matches!(activation, None | Some(Function::Relu | Function::Clip { .. }))
}

/// Bytes of so many parameters of a layer: a byte of each weight, and four of each bias, scale and constant that is a
/// float.
pub(super) fn parameter_bytes(operator: &Operator, elements: u64) -> u64 {
    match beside_weights(operator) {
        Some(beside) => elements + 3 * beside,
        None if has_constant_integers(operator) => elements,
        None => elements * Element::F32.bytes(),
    }
}

/// Whether an operator's constant operand is kept as 8-bit integers.
fn has_constant_integers(operator: &Operator) -> bool {
    let Operator::Binary(binary) = operator else { return false };
    binary.constant.as_ref().is_some_and(|constant| constant.quantisation.is_some())
}

/// Biases and scales of sums of products.
fn beside_weights(operator: &Operator) -> Option<u64> {
    let (units, bias) = match operator {
        Operator::Conv(conv) => (conv.filters, conv.bias),
        Operator::Gemm(gemm) => (gemm.units, gemm.bias),
        _ => return None,
    };
    Some(units as u64 * (1 + u64::from(bias)))
}

/// Bytes that a layer's parameters take as packed.
pub(super) fn stored_bytes(operator: &Operator, inputs: &[&Shape], elements: u64) -> u64 {
    let requantise = Requantise { zero_point: 0, low: 0, high: 0 };
    match operator {
        Operator::Conv(_) | Operator::Gemm(_) => {
            let len = constants::panels(operator, inputs).map(|(part, _)| match part.packing {
                Packing::Conv { conv, .. } => {
                    QConv { conv: bare(conv), zero_point: 0, requantise }.packed_len()
                }
                Packing::Gemm { gemm, .. } => QGemm { gemm, zero_point: 0, requantise }.packed_len(),
                _ => 0,
            });
            len.unwrap_or(0) as u64
        }
        Operator::ElementWise(_) | Operator::Convert => TABLE as u64,
        Operator::Binary(operator::Binary { constant: Some(constant), .. }) if is_one(&constant.dims) => {
            TABLE as u64
        }
        Operator::Binary(operator::Binary { constant: Some(_), .. }) => elements,
        _ => 0,
    }
}

/// The convolution alone.
fn bare(conv: Conv) -> Conv {
    Conv { activation: Activation::None, ..conv }
}

/// What a layer rounds its sums to.
fn requantise(made: Quantisation, activation: Option<&Function>) -> Requantise {
    let [low, high] = match activation {
        Some(Function::Relu) => [Some(0.0), None],
        Some(Function::Clip { min, max }) => [*min, *max],
        _ => [None; 2],
    };
    // The upper bound counts where the two cross, as in a Clip.
    let high = high.map_or(u8::MAX, |high| made.integer(high));
    let low = low.map_or(0, |low| made.integer(low)).min(high);
    Requantise { zero_point: made.zero_point, low, high }
}

impl Site<'_> {
    /// Which numbers the integers stand for that it reads first, and those that it makes.
    fn quantisations(&self) -> Result<[Quantisation; 2], String> {
        let read = self.inputs.first().and_then(|x| x.quantisation);
        match read.zip(self.quantisation) {
            Some((read, made)) => Ok([read, made]),
            None => Err("a tensor of 8-bit integers has no scale".into()),
        }
    }
}

/// A convolution.
pub(super) fn convolution(site: &Site<'_>) -> Result<Choice, String> {
    let (Operator::Conv(attributes), [x]) = (site.operator, site.inputs.as_slice()) else {
        return site.unsupported();
    };
    let panels = constants::panels(site.operator, &[x.seen]);
    let (Some((part, _)), Some(input), Some(output)) = (panels, x.image(), site.image()) else {
        return site.unsupported();
    };
    let Packing::Conv { conv, bias } = part.packing else { return site.unsupported() };
    let [read, made] = site.quantisations()?;
    let requantise = requantise(made, attributes.activation.as_ref());
    let conv = QConv { conv: bare(conv), zero_point: read.zero_point, requantise };
    let packing = Integers::Conv { conv, bias, scales: [read.scale, made.scale] };
    let choice = Choice::by_rows(Kernel::rows::<u8, u8>(conv), vec![input], output);
    Ok(choice.with(Packing::Integers(packing), 0..part.parameters.end + 1))
}

/// A matrix product by constants.
pub(super) fn gemm(site: &Site<'_>) -> Result<Choice, String> {
    let (Operator::Gemm(attributes), [x]) = (site.operator, site.inputs.as_slice()) else {
        return site.unsupported();
    };
    let Some((part, _)) = constants::panels(site.operator, &[x.seen]) else { return site.unsupported() };
    let Packing::Gemm { gemm, transposed, bias, .. } = part.packing else { return site.unsupported() };
    let ProductRows { input, output, image } = products::rows_of_product(site, x, gemm.inner);
    let [read, made] = site.quantisations()?;
    let requantise = requantise(made, attributes.activation.as_ref());
    let gemm = csdfc_kernels::gemm::Gemm { activation: Activation::None, ..gemm };
    let product = QGemm { gemm, zero_point: read.zero_point, requantise };
    let choice = match input.zip(output) {
        Some((input, output)) => Choice::by_rows(Kernel::rows::<u8, u8>(product), vec![input], output),
        None => site.elements(Kernel::elements::<u8, u8>(product))?,
    };
    let scales = [read.scale, made.scale];
    let packing = Integers::Gemm { gemm: product, transposed, bias, image, scales };
    Ok(choice.with(Packing::Integers(packing), 0..part.parameters.end + 1))
}

/// A function of each integer: a table of what it makes of all.
fn of_each(site: &Site<'_>, function: Unary) -> Result<Choice, String> {
    let Some(x) = site.inputs.first() else { return site.unsupported() };
    let packing = Integers::Table { function, quantisations: site.quantisations()? };
    let parameters = 0..usize::from(!matches!(function, Unary::Function(_)));
    let choice = own_kernels::of_each_element(site, x, Forms::of::<u8, u8>(Table), None)?;
    Ok(choice.with(Packing::Integers(packing), parameters))
}

/// The same numbers as other integers.
pub(super) fn table(site: &Site<'_>) -> Result<Choice, String> {
    of_each(site, Unary::Function(Activation::None))
}

/// Numbers as the integers that stand for them, or back.
pub(super) fn cast(site: &Site<'_>) -> Result<Choice, String> {
    let Some(x) = site.inputs.first() else { return site.unsupported() };
    let kernel = match (site.elements, x.quantisation, site.quantisation) {
        ([Element::F32, Element::U8], _, Some(Quantisation { scale, zero_point })) => {
            Forms::of::<u8, f32>(Quantise { scale, zero_point })
        }
        ([Element::U8, Element::F32], Some(Quantisation { scale, zero_point }), _) => {
            Forms::of::<f32, u8>(Dequantise { scale, zero_point })
        }
        _ => return site.unsupported(),
    };
    own_kernels::of_each_element(site, x, kernel, None)
}

/// Chooses the kernel of a layer whose operator has one.
pub(super) fn choose(site: &Site<'_>) -> Result<Choice, String> {
    match (site.operator, site.inputs.as_slice()) {
        (Operator::ElementWise(element_wise), _) => {
            of_each(site, Unary::Function(translate::activation(Some(&element_wise.function))))
        }
        (Operator::Binary(binary), _) => self::binary(site, binary),
        (Operator::Pool(pool), [x]) => self::pool(site, x, pool),
        (Operator::Reduce(_), [x]) => mean(site, x),
        (Operator::Concat(concat), _) => own_kernels::concat(site, concat.axis),
        (_, [x]) => own_kernels::unary(site, x),
        _ => site.unsupported(),
    }
}

fn binary(site: &Site<'_>, binary: &operator::Binary) -> Result<Choice, String> {
    let constant = binary.constant.as_ref();
    let of_constant = constant.and_then(|constant| constant.quantisation);
    let constant_first = constant.is_some_and(|constant| constant.left);
    if constant.is_some() && of_constant.is_none() {
        let activation = translate::activation(binary.activation.as_ref());
        return of_each(site, Unary::Binary { function: binary.function, left: constant_first, activation });
    }
    let mut operands: Vec<Quantisation> =
        site.inputs.iter().filter_map(|x| x.quantisation).chain(of_constant).collect();
    if constant_first {
        operands.reverse();
    }
    let (Some(function), &[a, b], Some(made)) =
        (function_of(binary.function), operands.as_slice(), site.quantisation)
    else {
        return site.unsupported();
    };
    let Requantise { zero_point, low, high } = requantise(made, binary.activation.as_ref());
    let kernel = QBinary {
        function,
        constant_first,
        scales: [a.scale, b.scale, made.scale],
        zero_points: [a.zero_point, b.zero_point, zero_point],
        low,
        high,
    };
    let dims = constant.map(|constant| constant.dims.as_slice());
    if dims.is_some_and(is_one) {
        return of_each(site, Unary::Integers { function: kernel });
    }
    own_kernels::of_two(site, Forms::of::<u8, u8>(kernel), dims, |choice| {
        let (Some(dims), Some(quantisation)) = (dims, of_constant) else { return Ok(choice) };
        let elements = Box::new(choice.constant(site.output, dims)?);
        Ok(choice.with(Packing::Integers(Integers::Constant { elements, quantisation }), 0..1))
    })
}

fn pool(site: &Site<'_>, x: &Operand<'_>, pool: &operator::Pool) -> Result<Choice, String> {
    let [read, made] = site.quantisations()?;
    let kernel = QPool {
        pool: translate::pool(pool),
        zero_point: read.zero_point,
        multiplier: read.scale / made.scale,
        requantise: requantise(made, None),
    };
    let Forms { rows, elements } = Forms::of::<u8, u8>(kernel);
    site.images(x, rows).map_or_else(|| site.elements(elements), Ok)
}

/// The mean of an image's channels.
fn mean(site: &Site<'_>, x: &Operand<'_>) -> Result<Choice, String> {
    let [read, made] = site.quantisations()?;
    let Some(input) = x.image() else { return site.unsupported() };
    let (kernel, stride, dilation, pads) = ([input.shape.height, input.shape.width], [1; 2], [1; 2], [0; 4]);
    let kernel = QPool {
        pool: Pool { kind: csdfc_kernels::pool::PoolKind::Average, kernel, stride, dilation, pads },
        zero_point: read.zero_point,
        multiplier: read.scale / made.scale,
        requantise: requantise(made, None),
    };
    // One pixel of channels, whatever its dimensions.
    let output = RowShape::dense(1, 1, input.shape.channels, site.ring_rows);
    Ok(Choice::by_rows(Kernel::rows::<u8, u8>(kernel), vec![input], output))
}
