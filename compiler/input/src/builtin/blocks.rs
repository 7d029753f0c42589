//! Square convolutions, alone or with batch norm and activation: the block of which nearly all architectures are made.

use csdfc_plan::operator::Function;

use super::builder::{Builder, BuilderError, ConvOptions, Padding};
use csdfc_network::Operand;

/// ReLU6.
pub(super) const RELU6: Function = Function::Clip { min: Some(0.0), max: Some(6.0) };

/// A convolution with a square kernel. [`square`] makes one.
#[derive(Clone, Copy)]
pub(super) struct Square {
    pub filters: usize,
    pub kernel: usize,
    pub stride: usize,
    pub pads: Padding,
    pub bias: bool,
}

/// `filters` filters of `kernel` × `kernel` elements, with stride 1 and without bias. The output is as large as the
/// input.
pub(super) fn square(filters: usize, kernel: usize) -> Square {
    Square { filters, kernel, stride: 1, pads: Padding::Each(kernel / 2), bias: false }
}

impl Square {
    pub fn stride(self, stride: usize) -> Self {
        Square { stride, ..self }
    }

    pub fn pads(self, pads: Padding) -> Self {
        Square { pads, ..self }
    }

    pub fn bias(self) -> Self {
        Square { bias: true, ..self }
    }

    /// Adds it to the network.
    pub fn conv(self, b: &mut Builder, name: &str, x: &Operand) -> Result<Operand, BuilderError> {
        self.grouped(b, name, x, 1)
    }

    /// Adds it as a depthwise convolution, one filter for each channel; `filters` is to be the number of channels.
    pub fn depthwise(self, b: &mut Builder, name: &str, x: &Operand) -> Result<Operand, BuilderError> {
        self.grouped(b, name, x, x.shape.channels())
    }

    fn grouped(
        self,
        b: &mut Builder,
        name: &str,
        x: &Operand,
        groups: usize,
    ) -> Result<Operand, BuilderError> {
        let Square { filters, kernel, stride, pads, bias } = self;
        let options = ConvOptions { stride: [stride; 2], pads, groups, bias, ..ConvOptions::default() };
        b.named(name).conv(x, filters, [kernel; 2], options)
    }
}

/// A batch norm and a rectifier of these names.
pub(super) fn norm_relu(
    b: &mut Builder,
    x: &Operand,
    norm: &str,
    relu: &str,
    function: Function,
) -> Result<Operand, BuilderError> {
    let x = b.named(norm).batch_norm(x)?;
    b.named(relu).activation(&x, function)
}
