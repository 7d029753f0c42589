//! Calls of kernels.

use std::ops::Range;

use csdfc_kernels::element_wise::PReluInPlace;
use csdfc_kernels::elements::ElementShape;
use csdfc_kernels::half::F16;
use csdfc_kernels::kernel::Context;
use csdfc_kernels::rows::RowShape;

use csdfc_plan::format::Element;

use super::constants::Packing;
use super::kernel::{Call, Form};
use super::typed::{ByElements, ByRows, OnBytes, StridedView, Typed};
use super::views::{Input, View};

/// Rows that a firing reads.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    /// Their storage.
    pub data: &'a [u8],
    /// Where in it they are.
    pub slots: Slots,
}

/// Where rows of a frame are in some storage.
#[derive(Debug, Clone)]
pub enum Slots {
    /// In the ring with which the layer is bound. The number is the slot of row 0.
    Ring(usize),
    /// These rows alone, the first at the start.
    Only(Range<usize>),
}

/// Rows that a firing writes.
#[derive(Debug)]
pub struct Target<'a> {
    /// Their storage.
    pub data: &'a mut [u8],
    /// Where in it they are.
    pub slots: Slots,
}

/// The kernel that applies the slopes of a PRelu to the output of another kernel.
const SLOPES: Typed<PReluInPlace, f32, f32> = Typed::new(PReluInPlace);
/// The same for 16-bit floats.
const HALF_SLOPES: Typed<PReluInPlace, F16, F16> = Typed::new(PReluInPlace);

impl Call {
    /// Makes rows `y` of the layer's output. `weights` are the layer's packed parameters.
    ///
    /// # Panics
    /// If a tensor or the weights are not as the layer was bound.
    pub fn fire(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        inputs: &[Source<'_>],
        weights: &[u8],
        output: Target<'_>,
    ) {
        let Target { data, slots } = output;
        match &self.form {
            Form::Rows(call) => {
                let operands = inputs.iter().zip(&call.inputs).map(|(x, input)| x.rows(input)).collect();
                let constants = self.constants(weights, Packing::rows);
                let slopes: &ByRows = if self.is_half() { &HALF_SLOPES } else { &SLOPES };
                let kernels = [call.kernel.calls(), slopes];
                self.make(kernels, context, y, operands, constants, (data, slots.rows(call.output)));
            }
            Form::Elements(call) => {
                let operands = inputs.iter().zip(&call.inputs).map(|(x, input)| x.elements(input)).collect();
                let constants = self.constants(weights, Packing::elements);
                let slopes: &ByElements = if self.is_half() { &HALF_SLOPES } else { &SLOPES };
                let kernels = [call.kernel.calls(), slopes];
                self.make(kernels, context, y, operands, constants, (data, slots.elements(call.output)));
            }
        }
    }

    fn is_half(&self) -> bool {
        self.elements() == [Element::F16; 2]
    }

    /// The layer's constants among its packed parameters.
    fn constants<'w, S>(&self, weights: &'w [u8], see: fn(&Packing) -> S) -> Vec<StridedView<'w, S>> {
        self.constants.iter().map(|c| (&weights[c.range.clone()], see(&c.packing))).collect()
    }

    /// Calls the kernel and, if there are slopes, the one that applies them.
    fn make<S, T: Copy>(
        &self,
        [kernel, slopes]: [&dyn OnBytes<S, T>; 2],
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: Vec<StridedView<'_, S>>,
        constants: Vec<StridedView<'_, S>>,
        (data, shape): (&mut [u8], T),
    ) {
        let (own, last) = constants.split_at(constants.len() - usize::from(self.slopes));
        kernel.call(context, y.clone(), &operands, own, (data, shape));
        if self.slopes {
            slopes.call(context, y, &[], last, (data, shape));
        }
    }
}

impl<'a> Source<'a> {
    fn rows(&self, input: &Input<RowShape>) -> StridedView<'a, RowShape> {
        (self.data, self.slots.viewed_as(input).rows(input.shape))
    }

    fn elements(&self, input: &Input<View>) -> StridedView<'a, View> {
        let View { shape, seen } = input.shape;
        (self.data, View { shape: self.slots.viewed_as(input).elements(shape), seen })
    }
}

impl Slots {
    /// The slots of an operand's rows as a kernel sees them.
    fn viewed_as<S>(&self, input: &Input<S>) -> Slots {
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
