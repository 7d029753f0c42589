//! Why a layer, a parameter or an input is refused.

use csdfc_kernels::elements::MAX_RANK;
use csdfc_plan::format::Element;
use csdfc_plan::shape::Shape;

/// Why a layer cannot be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// No kernel is made for such tensors.
    #[error("no kernel computes a {operator} from {} to {output}", joined(inputs))]
    NoKernel {
        /// The kind of operator.
        operator: &'static str,
        /// For each operand, the shape of its tensor and the shape in which the layer sees it.
        inputs: Vec<[Shape; 2]>,
        /// The output.
        output: Shape,
    },
    /// It reads nothing.
    #[error("a {operator} without operands cannot be computed")]
    NoOperands {
        /// The kind of operator.
        operator: &'static str,
    },
    /// The plan names a primitive that does not exist.
    #[error("there is no primitive `{name}`")]
    NoPrimitive {
        /// The name.
        name: String,
    },
    /// The plan has no buffer for an operand.
    #[error("its operand `{tensor}` is stored nowhere")]
    NotStored {
        /// The operand.
        tensor: String,
    },
    /// The slots of the rings of a stream come together too rarely to count rows in 30 bits.
    #[error("its rings are at their first slots again only after {hops} hops: take another hop")]
    Period {
        /// The hops.
        hops: u64,
    },
    /// Another layer reads its indices.
    #[error("it makes indices, which no layer can read")]
    IndicesAreRead,
    /// A tensor has too many dimensions.
    #[error("a tensor of {rank} dimensions has more than the {MAX_RANK} of kernels")]
    TensorRank {
        /// Its dimensions.
        rank: usize,
    },
    /// A constant has too many dimensions.
    #[error("a constant of {rank} dimensions has more than kernels know")]
    ConstantRank {
        /// Its dimensions.
        rank: usize,
    },
    /// An attribute has a value for each of too many dimensions.
    #[error("{rank} dimensions are more than the {MAX_RANK} of kernels")]
    AttributeRank {
        /// Its dimensions.
        rank: usize,
    },
    /// A constant cannot be broadcast to the output.
    #[error("a constant {constant} does not fit {output}")]
    ConstantShape {
        /// The constant.
        constant: Shape,
        /// The output.
        output: Shape,
    },
    /// Nobody knows what the integers of a tensor stand for.
    #[error("a tensor of 8-bit integers has no scale")]
    NoScale,
    /// The integers of its operands have different scales or zero points.
    #[error("its operands are of integers that stand for different numbers")]
    ScalesDiffer,
    /// A parameter has another length than the operator says.
    #[error("its parameter {parameter} has {found} elements, not {expected}")]
    ParameterLength {
        /// Its index.
        parameter: usize,
        /// The length that it has.
        found: usize,
        /// The length that it should have.
        expected: usize,
    },
    /// There is not one number for each output channel.
    #[error("it has {found} {what} for {filters} output channels")]
    PerChannel {
        /// What these numbers are.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// Output channels.
        filters: usize,
    },
    /// A prologue has not the constants that it needs.
    #[error("it has no scale and shift for each of {channels} channels")]
    Prologue {
        /// Input channels.
        channels: usize,
    },
    /// A weight is too large for an 8-bit integer.
    #[error("a weight is {times} times its scale, which does not fit 8 bits")]
    WeightBeyondByte {
        /// The weight divided by its scale.
        times: i64,
    },
    /// Weights are so large that what is added to them does not fit 32 bits.
    #[error("its weights are too large")]
    WeightsTooLarge,
    /// A weight is not finite.
    #[error("one of its weights is {weight}, which no 8-bit integer stands for: give it another precision")]
    WeightNotFinite {
        /// The weight.
        weight: f32,
    },
    /// The primitive keeps weights as integers or halves with scales, and these are none.
    #[error("its weights are not such numbers times scales as its primitive keeps")]
    WeightsNotScaled,
    /// The values of a parameter are not there.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// There is no memory for its packed weights.
    #[error("there is no memory for {bytes} bytes of weights")]
    Memory {
        /// Their size.
        bytes: usize,
    },
    /// Its weights are streamed, and the file for them cannot be written.
    #[error("the store cannot be written: {0}")]
    Store(std::io::Error),
    /// A mistake of csdfc: a kernel was chosen that computes on other elements than the primitive says.
    #[error("its kernel reads {reads} and makes {makes}, not what its primitive does: a mistake")]
    KernelElements {
        /// What the kernel reads.
        reads: Element,
        /// What the kernel makes.
        makes: Element,
    },
    /// Another mistake of csdfc.
    #[error("{0}")]
    Mistake(&'static str),
}

/// Why the values of a parameter are not there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// There is no such CNN.
    #[error("there is no CNN {cnn}")]
    NoCnn {
        /// Its index.
        cnn: usize,
    },
    /// There is no such layer.
    #[error("there is no layer {name}")]
    NoLayer {
        /// Its name.
        name: String,
    },
    /// The layer has fewer parameters.
    #[error("it has no parameter {parameter}")]
    Missing {
        /// The index of the parameter.
        parameter: usize,
    },
    /// The file that has its values cannot be read.
    #[error("its parameter {parameter} cannot be read: {error}")]
    Read {
        /// The index of the parameter.
        parameter: usize,
        /// Why.
        error: std::io::Error,
    },
}

/// Why a value is refused as an input of a CNN.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// There is no value for this input.
    #[error("it is not given")]
    Missing,
    /// There is a value too many.
    #[error("the CNN takes {inputs}")]
    TooMany {
        /// Inputs of the CNN.
        inputs: usize,
    },
    /// It has elements of another type.
    #[error("its elements are {found}, not {expected}")]
    Elements {
        /// The type that it has.
        found: &'static str,
        /// The type that the CNN takes.
        expected: &'static str,
    },
    /// It has other dimensions.
    #[error("its dimensions are {found:?}, not {expected:?}{}", order(found, expected))]
    Dimensions {
        /// The dimensions that it has.
        found: Vec<usize>,
        /// The dimensions that the CNN takes.
        expected: Vec<usize>,
    },
    /// It has not as many elements as its dimensions say.
    #[error("it has {found} elements, not {expected}")]
    Length {
        /// Its elements.
        found: usize,
        /// The product of its dimensions.
        expected: usize,
    },
}

/// Whether these are the dimensions of an image whose channels come last, of which others are expected first.
fn is_channels_last(found: &[usize], expected: &[usize]) -> bool {
    match (found, expected) {
        ([n, h, w, c], [batch, channels, rows, columns]) => {
            [n, c, h, w] == [batch, channels, rows, columns] && found != expected
        }
        _ => false,
    }
}

/// What is said of the order of dimensions.
fn order(found: &[usize], expected: &[usize]) -> &'static str {
    match is_channels_last(found, expected) {
        true => ": its channels come last (NHWC), and this model has them first (NCHW)",
        false => "",
    }
}

/// The operands of a layer, and how it sees those that it sees in another shape.
fn joined(inputs: &[[Shape; 2]]) -> String {
    let shapes = inputs.iter().map(|[own, seen]| match own == seen {
        true => own.to_string(),
        false => format!("{own} seen as {seen}"),
    });
    shapes.collect::<Vec<String>>().join(" and ")
}
