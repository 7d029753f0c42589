//! Calls of kernels.

use std::ops::Range;

use csdfc_kernels::arch::Isa;
use csdfc_kernels::elements::{ElementShape, Elements, ElementsMut};
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
use csdfc_kernels::span::Span;
use csdfc_kernels::workers::{self, Workers};
use csdfc_kernels::{
    arg_max, binary, concat, conv, depth_space, element_wise, gemm, instance_norm, lrn, mat_mul, pad, pool,
    reduce, resize, slice, softmax, transpose,
};

use super::access::{Access, Input};
use super::kernel::{Call, Constant, Kernel};

/// Rows that a firing reads.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    /// Their storage.
    pub data: &'a [f32],
    /// Where in it they are.
    pub slots: Slots,
}

/// Where rows of a frame are in some storage.
#[derive(Debug, Clone)]
pub enum Slots {
    /// It is the ring that the layer is bound with; the slot of row 0.
    Ring(usize),
    /// These rows alone, the first at the start.
    Only(Range<usize>),
}

/// Rows that a firing writes.
#[derive(Debug)]
pub enum Target<'a> {
    /// Floats.
    F32(&'a mut [f32]),
    /// Indices.
    I64(&'a mut [i64]),
    /// Nothing: the tensor is stored nowhere.
    Nothing,
}

impl Call {
    /// Makes rows `y` of the layer's output, which go into these slots of it. `weights` are the layer's packed
    /// parameters.
    #[expect(clippy::too_many_arguments, reason = "what a firing is made of")]
    pub fn fire(
        &self,
        workers: &mut Workers,
        isa: Isa,
        y: Range<usize>,
        inputs: &[Source<'_>],
        weights: &[f32],
        output: Target<'_>,
        slots: &Slots,
    ) {
        match (self.output, output) {
            (Access::Rows(shape), Target::F32(data)) => {
                let (data, shape) = (data.into(), slots.rows(shape));
                self.fire_rows(workers, isa, y, inputs, weights, &mut RowsMut { data, shape });
            }
            (Access::Elements(shape, _), Target::F32(data)) => {
                let (data, shape) = (data.into(), slots.elements(shape));
                self.fire_elements(isa, y, inputs, weights, &mut ElementsMut { data, shape });
            }
            (Access::Rows(shape), Target::I64(data)) => {
                let (data, shape) = (data.into(), slots.rows(shape));
                if let (Kernel::ArgMax { axis, select_last }, Some(x)) = (&self.kernel, self.rows(inputs, 0))
                {
                    arg_max::arg_max(*axis, *select_last, y, x, &mut RowsMut { data, shape });
                }
            }
            (Access::Elements(shape, _), Target::I64(data)) => {
                let (data, shape) = (data.into(), slots.elements(shape));
                if let (&Kernel::ArgMaxElements { axis, keep_dims, select_last }, Some(x)) =
                    (&self.kernel, self.elements(inputs, 0))
                {
                    let output = &mut ElementsMut { data, shape };
                    arg_max::arg_max_elements(axis, keep_dims, select_last, y, &x, output);
                }
            }
            (_, Target::Nothing) => {}
        }
    }

    fn fire_rows(
        &self,
        workers: &mut Workers,
        isa: Isa,
        y: Range<usize>,
        inputs: &[Source<'_>],
        weights: &[f32],
        output: &mut RowsMut<'_>,
    ) {
        let Some(x) = self.rows(inputs, 0) else { return };
        let made = y.clone();
        match &self.kernel {
            Kernel::Conv(p) => {
                let weights = &weights[self.constants[0].range.clone()];
                let operands: Option<Vec<Rows<'_>>> =
                    (0..inputs.len()).map(|i| self.rows(inputs, i)).collect();
                workers::conv(workers, isa, p, y, &operands.unwrap_or_default(), weights, output);
            }
            Kernel::ConvTranspose(p) => {
                let weights = &weights[self.constants[0].range.clone()];
                conv::transpose::conv_transpose(isa, p, y, x, weights, output);
            }
            Kernel::ElementWise(function) => element_wise::element_wise(isa, *function, y, x, output),
            Kernel::PRelu => {
                element_wise::p_relu(isa, y, x, constant_rows(&self.constants[0], weights), output)
            }
            Kernel::BatchNorm(activation) => {
                let [scale, shift] = [0, 1].map(|i| &weights[self.constants[i].range.clone()]);
                element_wise::batch_norm(isa, *activation, y, x, scale, shift, output);
            }
            Kernel::InstanceNorm { epsilon } => {
                let [scale, shift] = [0, 1].map(|i| &weights[self.constants[i].range.clone()]);
                instance_norm::instance_norm(*epsilon, y, x, scale, shift, output);
            }
            Kernel::Binary(p) => {
                if let Some(right) = self.rows(inputs, 1) {
                    binary::binary(isa, p, y, x, right, output);
                }
            }
            Kernel::BinaryConstant { binary: p, left } => {
                let constant = constant_rows(&self.constants[0], weights);
                let (a, b) = if *left { (constant, x) } else { (x, constant) };
                binary::binary(isa, p, y, a, b, output);
            }
            Kernel::Pool(p) => pool::pool(isa, p, y, x, output),
            Kernel::ReduceRows { function, columns, channels } => {
                reduce::reduce_rows(*function, *columns, *channels, y, x, output);
            }
            Kernel::ReduceFrame(function) => reduce::reduce_frame(isa, *function, x, output),
            Kernel::Concat { axis, starts } => {
                for (i, start) in starts.iter().enumerate() {
                    if let Some(x) = self.rows(inputs, i) {
                        concat::concat(*axis, *start, y.clone(), x, output);
                    }
                }
            }
            Kernel::Slice(p) => slice::slice(p, y, x, output),
            Kernel::Pad(p) => pad::pad(p, y, x, output),
            Kernel::Resize(p) => resize::resize(p, y, x, output),
            Kernel::Softmax(p) => softmax::softmax(isa, p, y, x, output),
            Kernel::Lrn(p) => lrn::lrn(p, y, x, output),
            Kernel::DepthToSpace(p) => depth_space::depth_to_space(p, y, x, output),
            Kernel::SpaceToDepth { block } => depth_space::space_to_depth(*block, y, x, output),
            Kernel::GemmElements(_)
            | Kernel::MatMul
            | Kernel::ArgMax { .. }
            | Kernel::ReduceElements { .. }
            | Kernel::ArgMaxElements { .. }
            | Kernel::ConcatElements { .. }
            | Kernel::SliceElements { .. }
            | Kernel::PadElements { .. }
            | Kernel::TransposeElements { .. }
            | Kernel::SoftmaxElements { .. } => {}
        }
        if let Some(slopes) = self.constants.last().filter(|_| self.p_relu) {
            element_wise::p_relu_in_place(made, constant_rows(slopes, weights), output);
        }
    }

    fn fire_elements(
        &self,
        isa: Isa,
        y: Range<usize>,
        inputs: &[Source<'_>],
        weights: &[f32],
        output: &mut ElementsMut<'_>,
    ) {
        let Some(x) = self.elements(inputs, 0) else { return };
        let made = y.clone();
        match &self.kernel {
            Kernel::ElementWise(function) => element_wise::element_wise_elements(*function, y, &x, output),
            Kernel::PRelu => {
                element_wise::p_relu_elements(y, &x, &constant_elements(&self.constants[0], weights), output);
            }
            Kernel::BatchNorm(activation) => {
                let [scale, shift] = [0, 1].map(|i| &weights[self.constants[i].range.clone()]);
                element_wise::batch_norm_elements(*activation, y, &x, scale, shift, output);
            }
            Kernel::InstanceNorm { epsilon } => {
                let [scale, shift] = [0, 1].map(|i| &weights[self.constants[i].range.clone()]);
                instance_norm::instance_norm_elements(*epsilon, y, &x, scale, shift, output);
            }
            Kernel::Binary(p) => {
                if let Some(right) = self.elements(inputs, 1) {
                    binary::binary_elements(p, y, &x, &right, output);
                }
            }
            Kernel::BinaryConstant { binary: p, left } => {
                let constant = constant_elements(&self.constants[0], weights);
                let (a, b) = if *left { (&constant, &x) } else { (&x, &constant) };
                binary::binary_elements(p, y, a, b, output);
            }
            Kernel::GemmElements(p) => {
                gemm::gemm_elements(isa, p, y, &x, &weights[self.constants[0].range.clone()], output);
            }
            Kernel::MatMul => {
                if let Some(right) = self.elements(inputs, 1) {
                    mat_mul::mat_mul(isa, y, &x, &right, output);
                }
            }
            Kernel::Pool(p) => pool::pool_elements(p, y, &x, output),
            Kernel::ReduceElements { function, axes, keep_dims } => {
                reduce::reduce_elements(*function, axes, *keep_dims, y, &x, output);
            }
            Kernel::ConcatElements { axis, starts } => {
                for (i, start) in starts.iter().enumerate() {
                    if let Some(x) = self.elements(inputs, i) {
                        concat::concat_elements(*axis, *start, y.clone(), &x, output);
                    }
                }
            }
            Kernel::SliceElements { starts, steps } => slice::slice_elements(starts, steps, y, &x, output),
            Kernel::PadElements { mode, before, after } => {
                pad::pad_elements(*mode, before, after, y, &x, output);
            }
            Kernel::Resize(p) => resize::resize_elements(p, y, &x, output),
            Kernel::TransposeElements { perm } => transpose::transpose_elements(perm, y, &x, output),
            Kernel::SoftmaxElements { log, axes } => softmax::softmax_elements(*log, axes, y, &x, output),
            Kernel::Lrn(p) => lrn::lrn_elements(p, y, &x, output),
            Kernel::DepthToSpace(p) => depth_space::depth_to_space_elements(p, y, &x, output),
            Kernel::SpaceToDepth { block } => {
                depth_space::space_to_depth_elements(*block, y, &x, output);
            }
            Kernel::Conv(_)
            | Kernel::ConvTranspose(_)
            | Kernel::ReduceRows { .. }
            | Kernel::ReduceFrame(_)
            | Kernel::ArgMax { .. }
            | Kernel::ArgMaxElements { .. }
            | Kernel::Concat { .. }
            | Kernel::Slice(_)
            | Kernel::Pad(_)
            | Kernel::Softmax(_) => {}
        }
        if let Some(slopes) = self.constants.last().filter(|_| self.p_relu) {
            element_wise::p_relu_in_place_elements(made, &constant_elements(slopes, weights), output);
        }
    }

    /// An operand that is seen by rows.
    fn rows<'a>(&self, inputs: &[Source<'a>], operand: usize) -> Option<Rows<'a>> {
        let (source, input) = (inputs.get(operand)?, self.inputs.get(operand)?);
        let Access::Rows(shape) = input.access else { return None };
        Some(Rows { data: source.data.into(), shape: source.slots.of(input).rows(shape) })
    }

    /// An operand that is seen element by element.
    fn elements<'a>(&self, inputs: &[Source<'a>], operand: usize) -> Option<Elements<'a>> {
        let (source, input) = (inputs.get(operand)?, self.inputs.get(operand)?);
        let Access::Elements(shape, seen) = input.access else { return None };
        Some(Elements { data: source.data.into(), shape: source.slots.of(input).elements(shape), seen })
    }
}

impl Slots {
    /// Those of the rows that a kernel sees of an operand.
    fn of(&self, input: &Input) -> Slots {
        match self {
            Slots::Ring(first) => Slots::Ring(first / input.fold * input.into),
            Slots::Only(rows) => Slots::Only(rows.clone()),
        }
    }

    /// A tensor seen by rows.
    fn rows(&self, shape: RowShape) -> RowShape {
        match self {
            Slots::Ring(first) => RowShape { first: *first, ..shape },
            Slots::Only(rows) => shape.stored(rows),
        }
    }

    /// A tensor seen element by element.
    fn elements(&self, mut shape: ElementShape) -> ElementShape {
        match (self, shape.row_axis) {
            (Slots::Ring(first), Some(_)) => shape.first = *first,
            // It is one row itself.
            (Slots::Ring(first), None) => shape.offset = first * shape.dims.elements(),
            (Slots::Only(rows), _) => return shape.stored(rows),
        }
        shape
    }
}

fn constant_rows<'a>(constant: &Constant, weights: &'a [f32]) -> Rows<'a> {
    let data = Span::new(&weights[constant.range.clone()]);
    match constant.packing.access() {
        Some(Access::Rows(shape)) => Rows { data, shape },
        // Binding packs what is read by rows as rows.
        _ => Rows { data, shape: RowShape::dense(1, 1, constant.range.len(), 1) },
    }
}

fn constant_elements<'a>(constant: &Constant, weights: &'a [f32]) -> Elements<'a> {
    let data = Span::new(&weights[constant.range.clone()]);
    match constant.packing.access() {
        Some(Access::Elements(shape, seen)) => Elements { data, shape, seen },
        // Binding keeps what is read element by element as it is.
        _ => Elements::dense(&weights[constant.range.clone()], &[constant.range.len()]),
    }
}
