//! Constants that are operands: those of an addition, of a batch norm, or slopes that differ within a channel.

use std::borrow::Cow;

use csdfc_kernels::elements::{ElementShape, MAX_RANK};
use csdfc_kernels::rows::RowShape;

use crate::error::LayerError;

use super::views::View;

/// How a constant that is an operand lies in memory, and how kernels see it.
#[derive(Debug, Clone)]
pub enum OperandConstant {
    /// A constant `[C, H, W]` as rows of pixels.
    Image {
        /// Height, width and channels.
        rows: RowShape,
    },
    /// As it is, read as rows of pixels.
    Row {
        /// The rows.
        rows: RowShape,
    },
    /// As it is.
    Plain {
        /// Dimensions.
        dims: Vec<usize>,
    },
}

impl OperandConstant {
    /// Elements.
    pub fn len(&self) -> usize {
        match self {
            OperandConstant::Image { rows } | OperandConstant::Row { rows } => {
                rows.height * rows.row_stride()
            }
            OperandConstant::Plain { dims } => dims.iter().product(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How kernels by rows see it. A constant that is no image is one row of one pixel.
    pub fn rows(&self) -> RowShape {
        match self {
            OperandConstant::Image { rows } | OperandConstant::Row { rows } => *rows,
            OperandConstant::Plain { .. } => RowShape::dense(1, 1, self.len(), 1),
        }
    }

    /// How kernels by elements see it. A constant without dimensions of its own has one dimension.
    pub fn elements(&self) -> View {
        let shape = match self {
            OperandConstant::Plain { dims } if dims.len() <= MAX_RANK => ElementShape::dense(dims),
            _ => ElementShape::flat(self.len()),
        };
        View { shape, seen: shape.dims }
    }

    /// Packs it, the first of these parameters.
    ///
    /// # Errors
    /// When it has another number of elements.
    pub fn pack(&self, parameters: &[Cow<'_, [f32]>], packed: &mut [f32]) -> Result<(), LayerError> {
        let values = parameters.first().map_or(&[][..], |values| values);
        if values.len() != self.len() {
            return Err(LayerError::ParameterLength {
                parameter: 0,
                found: values.len(),
                expected: self.len(),
            });
        }
        match self {
            OperandConstant::Image { rows } => {
                let pixels = rows.height * rows.width;
                for (i, value) in packed.iter_mut().enumerate() {
                    *value = values[i % rows.channels * pixels + i / rows.channels];
                }
            }
            OperandConstant::Row { .. } | OperandConstant::Plain { .. } => packed.copy_from_slice(values),
        }
        Ok(())
    }
}
