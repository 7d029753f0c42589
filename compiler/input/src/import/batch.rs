//! Models of a fixed batch. They compute several frames at once, which lie one after another along the first dimension of
//! their tensors. csdfc plans one of these frames, so none of them may depend on another.
//!
//! Each node is imported for one frame. The rules here say of every operator when the frames that it makes are those
//! that it makes of each frame alone, one after another along the first dimension again. Any other node is refused.
//! Views and shapes are as with all frames: so a `Reshape` may count with the batch.

use super::builder::Builder;
use super::constant::{Constant, Data};
use super::error::{Fault, ImportError, fault};
use super::node::{Node, Tensor, Value, axes, axis, permutation, plain};
use super::ops;

/// Operators of which each element depends on one element of each operand, broadcast, or on the line of it along the
/// last dimension.
const ELEMENT_WISE: &[&str] = &[
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "And",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BiasGelu",
    "Cast",
    "CastLike",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "Cosh",
    "Div",
    "Dropout",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "FastGelu",
    "Floor",
    "Gelu",
    "Greater",
    "GreaterOrEqual",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "Max",
    "Mean",
    "Min",
    "Mish",
    "Mod",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "PRelu",
    "Pow",
    "QLinearAdd",
    "QLinearLeakyRelu",
    "QLinearMul",
    "QLinearSigmoid",
    "QuickGelu",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Sub",
    "Sum",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Where",
    "Xor",
];

/// Operators that compute each image of their first operand by itself.
const OF_IMAGES: &[&str] = &[
    "AveragePool",
    "BatchNormalization",
    "Conv",
    "ConvInteger",
    "ConvTranspose",
    "DepthToSpace",
    "FusedConv",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "GroupNormalization",
    "InstanceNormalization",
    "LRN",
    "LpPool",
    "MaxPool",
    "QLinearAveragePool",
    "QLinearConv",
    "QLinearGlobalAveragePool",
    "Resize",
    "SpaceToDepth",
    "Upsample",
];

/// Imports a node, one frame of its operands.
///
/// # Errors
/// As [`ops::import`], and when frames of the model's batch may depend on each other.
pub(super) fn import(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    let Some(x) = node.inputs.iter().flatten().find_map(batched) else { return ops::import(builder, node) };
    let Some(&first) = x.dims().first() else { return fault!("a tensor of a batch has no dimensions") };
    let frames = Frames { node, batch: x.batch, first };
    match node.operator {
        "Shape" | "Size" => return ops::import(builder, &frames.all()),
        operator if ops::VIEWS.contains(&operator) => return Ok(vec![frames.view(builder)?.into()]),
        _ => frames.expect_apart()?,
    }
    let made = ops::import(builder, &frames.one()?)?;
    let with_batch = |value| match value {
        Value::Tensor(y) if y.dims().first() == Some(&first) => Ok(Tensor { batch: x.batch, ..y }.into()),
        _ => frames.mixed(),
    };
    made.into_iter().map(with_batch).collect()
}

/// Checks that an output of a model has the frames of its batch, if it has one.
///
/// # Errors
/// When it has not, so that it is no output of one frame.
pub(super) fn check_output(
    model: &str,
    name: &str,
    value: Option<&Value>,
    batch: usize,
) -> Result<(), ImportError> {
    match value {
        Some(Value::Tensor(y)) if batch > 1 && (y.batch != batch || y.dims().first() != Some(&1)) => {
            Err(ImportError::Output {
                model: model.to_string(),
                output: name.to_string(),
                reason: "its first dimension is not the batch".into(),
                help: "remove it from the outputs".into(),
            })
        }
        _ => Ok(()),
    }
}

/// The dimensions of all frames of a value.
pub(super) fn all_dims(value: &Value) -> Vec<usize> {
    let mut all = dims(value).to_vec();
    if let (Some(x), Some(first)) = (batched(value), all.first_mut()) {
        *first *= x.batch;
    }
    all
}

/// The dimensions of one frame, of those of all.
///
/// # Errors
/// When the frames do not lie along the first dimension.
pub(super) fn one_frame(mut all: Vec<usize>, batch: usize) -> Result<Vec<usize>, Fault> {
    match all.first_mut() {
        _ if batch == 1 => Ok(all),
        Some(first) if first.is_multiple_of(batch) => {
            *first /= batch;
            Ok(all)
        }
        _ => fault!("it makes {all:?}, whose first dimension is not the batch of {batch}"),
    }
}

/// The tensor, if the model has a batch of it.
pub(super) fn batched(value: &Value) -> Option<&Tensor> {
    match value {
        Value::Tensor(tensor) if tensor.batch > 1 => Some(tensor),
        _ => None,
    }
}

/// A node some of whose operands have the frames of a batch.
struct Frames<'n, 'a> {
    node: &'n Node<'a>,
    /// Number of frames.
    batch: usize,
    /// The first dimension of one frame.
    first: usize,
}

impl<'a> Frames<'_, 'a> {
    /// The node with operands of all frames, to see their dimensions.
    fn all(&self) -> Node<'a> {
        let all = |value: &Value| match value {
            Value::Tensor(x) => {
                let mut all = x.clone();
                all.operand.shape.dims = all_dims(value);
                all.into()
            }
            constant @ Value::Constant(_) => constant.clone(),
        };
        Node {
            inputs: self.node.inputs.iter().map(|value| value.as_ref().map(all)).collect(),
            ..plain(self.node)
        }
    }

    /// One frame of a view. With all frames it has the dimensions that the model states.
    fn view(&self, builder: &mut Builder) -> Result<Tensor, Fault> {
        let all = self.all();
        let dims = ops::viewed(&all, all.tensor(0)?.dims())?;
        builder.reshape(self.node, self.node.tensor(0)?, one_frame(dims, self.batch)?)
    }

    /// The node with operands of one frame.
    fn one(&self) -> Result<Node<'a>, Fault> {
        let one = |(index, value): (usize, &Option<Value>)| {
            Ok(match value {
                Some(Value::Tensor(x)) => Some(Tensor { batch: 1, ..x.clone() }.into()),
                Some(Value::Constant(constant)) => Some(self.constant(index, constant)?.into()),
                None => None,
            })
        };
        let inputs = self.node.inputs.iter().enumerate().map(one).collect::<Result<_, Fault>>()?;
        Ok(Node { inputs, ..plain(self.node) })
    }

    /// A constant operand, as it is for one frame.
    fn constant(&self, index: usize, constant: &Constant) -> Result<Constant, Fault> {
        let all = self.batch.saturating_mul(self.first);
        match (self.node.operator, index) {
            ("Expand", 1) | ("Resize", 3) => {
                let mut sizes = constant.to_ints()?;
                if sizes.len() == self.rank() && sizes[0] == all as i64 {
                    sizes[0] = self.first as i64;
                }
                Ok(Constant::ints([sizes.len()], sizes))
            }
            _ if self.has_own_frames(constant) && constant.dims[0] == all => self.of_each(constant),
            _ => Ok(constant.clone()),
        }
    }

    /// Whether the first dimension of a constant lies along that of the frames.
    fn has_own_frames(&self, constant: &Constant) -> bool {
        let is_beside = match self.node.operator {
            "Concat" | "QLinearConcat" => true,
            // The first dimension of a matrix is one of the sum.
            "FusedMatMul" | "MatMul" | "MatMulInteger" | "QLinearMatMul" => constant.dims.len() > 2,
            operator => ELEMENT_WISE.contains(&operator),
        };
        is_beside && constant.dims.len() == self.rank() && constant.dims.len() > 1
    }

    /// A constant that is the same for each frame.
    fn of_each(&self, constant: &Constant) -> Result<Constant, Fault> {
        fn first_of<T: Copy + PartialEq>(values: &[T], batch: usize) -> Option<Vec<T>> {
            let frame = values.len() / batch;
            values
                .chunks_exact(frame.max(1))
                .all(|other| *other == values[..frame])
                .then(|| values[..frame].to_vec())
        }
        let dims = [&[self.first], &constant.dims[1..]].concat();
        let one = match &constant.data {
            Data::Floats(_) => {
                first_of(&constant.to_floats()?, self.batch).map(|values| Constant::floats(dims, values))
            }
            Data::Ints(values) => first_of(values, self.batch).map(|values| Constant::ints(dims, values)),
            Data::Bools(values) => first_of(values, self.batch).map(|values| Constant::bools(dims, values)),
        };
        match one {
            Some(one) => Ok(Constant { stored: constant.stored, ..one }),
            None => fault!("a constant of {:?} differs from frame to frame of the batch", constant.dims),
        }
    }

    /// Checks that it makes of each frame what it would make of this frame alone.
    fn expect_apart(&self) -> Result<(), Fault> {
        let node = self.node;
        match node.operator {
            operator if ELEMENT_WISE.contains(&operator) => self.expect_aligned(),
            // Places of the largest elements are counted through all frames.
            "MaxPool" if node.proto.output.get(1).is_some_and(|name| !name.is_empty()) => self.mixed(),
            operator if OF_IMAGES.contains(&operator) => self.expect_batched(&[0]),
            "DequantizeLinear" | "QuantizeLinear" => {
                let is_one = |value: &Value| dims(value).iter().all(|dim| *dim == 1);
                match node.inputs.iter().skip(1).flatten().all(is_one) {
                    true => self.expect_batched(&[0]),
                    false => self.expect_along(self.axis(1)?),
                }
            }
            "Hardmax" | "LogSoftmax" | "Softmax" => {
                self.expect_along(self.axis(if node.opset < 13 { 1 } else { -1 })?)
            }
            "LayerNormalization" | "LpNormalization" | "QLinearSoftmax" | "RMSNormalization" | "TopK" => {
                self.expect_along(self.axis(-1)?)
            }
            "ArgMax" | "ArgMin" | "Split" => self.expect_along(self.axis(0)?),
            "Concat" | "QLinearConcat" => {
                self.expect_aligned()?;
                self.expect_not(self.axis(0)?)
            }
            "CumSum" => self.expect_along(axis(node.constant(1, "axis")?.scalar_int()?, self.rank())?),
            "OneHot" => self.expect_along(axis(node.int("axis", -1)?, self.rank() + 1)?),
            "Gather" => match (self.is_batched(0), self.is_batched(1)) {
                // A table that all frames look up.
                (false, true) if node.int("axis", 0)? == 0 => Ok(()),
                _ => self.expect_along(self.axis(0)?),
            },
            "GatherElements" => {
                self.expect_not(self.axis(0)?)?;
                self.expect_batched(&[0, 1])
            }
            "Transpose" => {
                self.expect_along(usize::from(permutation(node, self.rank())?.first() == Some(&0)))
            }
            "Trilu" => self.expect_along(self.rank().saturating_sub(2)),
            "Expand" => {
                let shape = node.constant(1, "shape")?.to_ints()?;
                let all = [1, (self.batch * self.first) as i64];
                let is_apart =
                    shape.len() < self.rank() || shape.len() == self.rank() && all.contains(&shape[0]);
                self.expect_along(usize::from(is_apart))
            }
            "Tile" => {
                let repeats = node.constant(1, "repeats")?.to_ints()?;
                self.expect_along(usize::from(repeats.first() == Some(&1)))
            }
            "Pad" => self.expect_pads(),
            "Slice" => self.expect_slices(),
            "MeanVarianceNormalization" => {
                self.expect_axes(node.ints("axes")?.map_or_else(|| vec![0, 2, 3], <[i64]>::to_vec))
            }
            operator if operator.starts_with("Reduce") => {
                let since = if operator == "ReduceSum" { 13 } else { 18 };
                let axes = node.ints_since("axes", since, 1)?.unwrap_or_default();
                let is_idle = axes.is_empty() && node.flag("noop_with_empty_axes", false)?;
                let all = if axes.is_empty() && !is_idle { vec![0] } else { axes };
                self.expect_axes(all)
            }
            "FusedGemm" | "Gemm" | "QGemm" => {
                let is_seen = !node.flag("transA", false)?;
                let addend = node.input(if node.operator == "QGemm" { 6 } else { 2 }).map_or(&[][..], dims);
                let is_for_all = addend.len() < 2 || addend[0] == 1;
                self.expect_along(usize::from(is_seen && is_for_all))
            }
            "FusedMatMul" | "MatMul" | "MatMulInteger" => self.expect_product(0, 1),
            "QLinearMatMul" => self.expect_product(0, 3),
            "Attention" => {
                let mask = node.input(3).map_or(&[][..], dims);
                let is_for_all = mask.len() < 4 || mask[0] == 1;
                let has_more = node.inputs.iter().skip(4).any(Option::is_some);
                self.expect_not(usize::from(is_for_all && !has_more))?;
                self.expect_batched(&[0, 1, 2])
            }
            _ => self.mixed(),
        }
    }

    /// Dimensions of the operands that have frames.
    fn rank(&self) -> usize {
        self.node.inputs.iter().flatten().find_map(batched).map_or(0, Tensor::rank)
    }

    fn is_batched(&self, index: usize) -> bool {
        self.node.input(index).and_then(batched).is_some()
    }

    /// The node's attribute `axis`.
    fn axis(&self, default: i64) -> Result<usize, Fault> {
        axis(self.node.int("axis", default)?, self.rank())
    }

    /// Checks that it works along another dimension than that of the frames, and that its first operand alone has frames.
    fn expect_along(&self, axis: usize) -> Result<(), Fault> {
        self.expect_not(axis)?;
        self.expect_batched(&[0])
    }

    fn expect_axes(&self, list: Vec<i64>) -> Result<(), Fault> {
        axes(&list, self.rank())?.into_iter().try_for_each(|axis| self.expect_not(axis))?;
        self.expect_batched(&[0])
    }

    fn expect_not(&self, axis: usize) -> Result<(), Fault> {
        if axis > 0 { Ok(()) } else { self.mixed() }
    }

    /// Checks that these operands, and no others, have frames.
    fn expect_batched(&self, operands: &[usize]) -> Result<(), Fault> {
        let is_right = |index| self.is_batched(index) == operands.contains(&index);
        if (0..self.node.inputs.len()).all(is_right) { Ok(()) } else { self.mixed() }
    }

    /// Checks that operands that broadcast do so frame by frame.
    fn expect_aligned(&self) -> Result<(), Fault> {
        let operands = || self.node.inputs.iter().flatten();
        let highest = operands().map(|value| dims(value).len()).max().unwrap_or_default();
        let is_aligned = |value: &Value| match value {
            _ if batched(value).is_some() => dims(value).len() == highest && dims(value)[0] == self.first,
            Value::Constant(constant) if self.has_own_frames(constant) => {
                [1, self.batch * self.first].contains(&constant.dims[0])
            }
            _ => dims(value).len() < highest || dims(value).first().is_none_or(|dim| *dim == 1),
        };
        if operands().all(is_aligned) { Ok(()) } else { self.mixed() }
    }

    /// Checks that a product of matrices has no sum through frames.
    fn expect_product(&self, left: usize, right: usize) -> Result<(), Fault> {
        let node = self.node;
        let (Some(a), Some(b)) = (node.input(left), node.input(right)) else { return self.mixed() };
        let all = self.batch * self.first;
        // Matrices beside those of the frames: fewer dimensions, or the same for each frame.
        let is_beside = |one: &Value, frames: &Value| {
            let (one, frames) = (dims(one), dims(frames));
            one.len() < frames.len() || (one.len() == frames.len() && [1, all].contains(&one[0]))
        };
        let is_apart = match (batched(a).is_some(), batched(b).is_some()) {
            (true, true) => dims(a).len() == dims(b).len() && dims(a).len() > 2 && dims(a)[0] == dims(b)[0],
            // The rows of a matrix are apart.
            (true, false) => match dims(a).len() {
                0 | 1 => false,
                2 => dims(b).len() <= 2 && !node.flag("transA", false)?,
                _ => dims(b).len() <= 2 || is_beside(b, a),
            },
            (false, true) => dims(b).len() > 2 && is_beside(a, b),
            (false, false) => false,
        };
        let moves_batch = node.flag("transBatchA", false)? || node.flag("transBatchB", false)?;
        if is_apart && !moves_batch { Ok(()) } else { self.mixed() }
    }

    fn expect_pads(&self) -> Result<(), Fault> {
        let pads = self.node.ints_since("pads", 11, 1)?.unwrap_or_default();
        let padded = match self.node.optional(3, "axes")? {
            Some(list) => list.to_ints()?,
            None => (0..self.rank() as i64).collect(),
        };
        let sides = pads.iter().zip(padded.iter().chain(&padded));
        self.expect_axes_once(sides.filter(|(pad, _)| **pad != 0).map(|(_, axis)| *axis))
    }

    fn expect_slices(&self) -> Result<(), Fault> {
        let part = |name, index| self.node.ints_since(name, 10, index);
        let (starts, ends) = (part("starts", 1)?.unwrap_or_default(), part("ends", 2)?.unwrap_or_default());
        let sliced = part("axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
        let steps = match self.node.opset < 10 {
            true => None,
            false => part("steps", 4)?,
        };
        let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
        let all = (self.batch * self.first) as i64;
        let is_whole = |at: usize| starts[at] == 0 && ends.get(at) >= Some(&all) && steps.get(at) == Some(&1);
        let cut = sliced.iter().enumerate().filter(|(at, _)| *at >= starts.len() || !is_whole(*at));
        self.expect_axes_once(cut.map(|(_, axis)| *axis))
    }

    /// As [`Self::expect_axes`], where an axis may be named several times.
    fn expect_axes_once(&self, list: impl Iterator<Item = i64>) -> Result<(), Fault> {
        let mut all = list.map(|of| axis(of, self.rank())).collect::<Result<Vec<_>, _>>()?.into_iter();
        all.try_for_each(|axis| self.expect_not(axis))?;
        self.expect_batched(&[0])
    }

    /// The error for a node that is not known to compute each frame by itself.
    fn mixed<T>(&self) -> Result<T, Fault> {
        fault!("it may mix the {} frames of the batch", self.batch)
    }
}

fn dims(value: &Value) -> &[usize] {
    match value {
        Value::Tensor(tensor) => tensor.dims(),
        Value::Constant(constant) => &constant.dims,
    }
}
