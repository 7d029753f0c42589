//! Calls of kernels.

use std::ops::Range;

use csdfc_kernels::element_wise::PReluInPlace;
use csdfc_kernels::elements::{ElementShape, Elements, ElementsMut};
use csdfc_kernels::kernel::{Context, ElementKernel};
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
use csdfc_kernels::share::share_rows;

use super::kernel::{Call, ElementCall, Form, Kernel, RowCall};
use super::seen::{Input, View};

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
pub struct Target<'a> {
    /// Their storage.
    pub data: TargetData<'a>,
    /// Where in it they are.
    pub slots: Slots,
}

/// Storage that a firing writes.
#[derive(Debug)]
pub enum TargetData<'a> {
    /// Floats.
    F32(&'a mut [f32]),
    /// Indices.
    I64(&'a mut [i64]),
}

impl Call {
    /// Makes rows `y` of the layer's output. `weights` are the layer's packed parameters.
    ///
    /// # Errors
    /// When the output is for other elements than the kernel makes.
    pub fn fire(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        inputs: &[Source<'_>],
        weights: &[f32],
        output: Target<'_>,
    ) -> Result<(), String> {
        match &self.form {
            Form::Rows(call) => self.fire_rows(call, context, y, inputs, weights, output),
            Form::Elements(call) => self.fire_elements(call, context, y, inputs, weights, output),
        }
    }

    fn fire_rows(
        &self,
        call: &RowCall,
        context: &mut Context<'_>,
        y: Range<usize>,
        inputs: &[Source<'_>],
        weights: &[f32],
        output: Target<'_>,
    ) -> Result<(), String> {
        let operands: Vec<Rows<'_>> =
            inputs.iter().zip(&call.inputs).map(|(x, input)| x.rows(input)).collect();
        let constants: Vec<Rows<'_>> = self
            .constants
            .iter()
            .map(|c| Rows { data: weights[c.range.clone()].into(), shape: c.packing.rows() })
            .collect();
        let (constants, slopes) = constants.split_at(constants.len() - usize::from(self.slopes));
        let shape = output.slots.rows(call.output);
        match (&call.kernel, output.data) {
            (Kernel::F32(bound), TargetData::F32(data)) => {
                let mut output = RowsMut { data: data.into(), shape };
                share_rows(&*bound.kernel, context, y.clone(), &operands, constants, &mut output);
                if self.slopes {
                    share_rows(&PReluInPlace, context, y, &[], slopes, &mut output);
                }
            }
            (Kernel::I64(bound), TargetData::I64(data)) => {
                let mut output = RowsMut { data: data.into(), shape };
                share_rows(&*bound.kernel, context, y, &operands, constants, &mut output);
            }
            _ => return Err(WRONG_ELEMENTS.into()),
        }
        Ok(())
    }

    fn fire_elements(
        &self,
        call: &ElementCall,
        context: &mut Context<'_>,
        y: Range<usize>,
        inputs: &[Source<'_>],
        weights: &[f32],
        output: Target<'_>,
    ) -> Result<(), String> {
        let operands: Vec<Elements<'_>> =
            inputs.iter().zip(&call.inputs).map(|(x, input)| x.elements(input)).collect();
        let constants: Vec<Elements<'_>> = self
            .constants
            .iter()
            .map(|c| {
                let View { shape, seen } = c.packing.elements();
                Elements { data: weights[c.range.clone()].into(), shape, seen }
            })
            .collect();
        let (constants, slopes) = constants.split_at(constants.len() - usize::from(self.slopes));
        let shape = output.slots.elements(call.output);
        match (&call.kernel, output.data) {
            (Kernel::F32(bound), TargetData::F32(data)) => {
                let mut output = ElementsMut { data: data.into(), shape };
                bound.kernel.elements(context, y.clone(), &operands, constants, &mut output);
                if self.slopes {
                    PReluInPlace.elements(context, y, &[], slopes, &mut output);
                }
            }
            (Kernel::I64(bound), TargetData::I64(data)) => {
                let mut output = ElementsMut { data: data.into(), shape };
                bound.kernel.elements(context, y, &operands, constants, &mut output);
            }
            _ => return Err(WRONG_ELEMENTS.into()),
        }
        Ok(())
    }
}

const WRONG_ELEMENTS: &str = "its output is for other elements than its kernel makes: a mistake";

impl<'a> Source<'a> {
    fn rows(&self, input: &Input<RowShape>) -> Rows<'a> {
        Rows { data: self.data.into(), shape: self.slots.of(input).rows(input.shape) }
    }

    fn elements(&self, input: &Input<View>) -> Elements<'a> {
        let View { shape, seen } = input.shape;
        Elements { data: self.data.into(), shape: self.slots.of(input).elements(shape), seen }
    }
}

impl Slots {
    /// Those of the rows that a kernel sees of an operand.
    fn of<S>(&self, input: &Input<S>) -> Slots {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bind::{Primitive, Site, bind};
    use crate::operator::{ElementWise, Function, Operator};
    use crate::shape::Shape;

    /// Slopes for each channel of a view whose channels are the pixels of the tensor.
    #[test]
    fn slopes_are_those_of_the_channels_seen() {
        let (own, seen) = (Shape::image(1, 8, 3), Shape::image(24, 1, 1));
        let operator =
            Operator::ElementWise(ElementWise { function: Function::PRelu { slope: vec![24, 1, 1] } });
        let primitive = Primitive::of(&operator, &[&seen]);
        let call = bind(primitive, &Site::whole(&operator, [(&own, &seen)].into_iter(), &seen)).unwrap();
        let slopes: Vec<f32> = (1..=24).map(|i| i as f32).collect();
        let mut weights = vec![0.0; call.constants[0].range.end];
        call.constants[0].packing.pack(std::slice::from_ref(&slopes), &mut weights).unwrap();
        let x = Source { data: &[-1.0; 24], slots: Slots::Ring(0) };
        let mut made = [0.0; 24];
        let output = Target { data: TargetData::F32(&mut made), slots: Slots::Ring(0) };
        let context = &mut Context::alone(csdfc_kernels::arch::Isa::compiled());
        call.fire(context, 0..1, &[x], &weights, output).unwrap();
        assert_eq!(made.to_vec(), slopes.iter().map(|slope| -slope).collect::<Vec<f32>>());
    }
}
