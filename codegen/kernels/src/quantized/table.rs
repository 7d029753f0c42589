//! Functions of one byte as tables.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::quantized::table::Table;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let table: [u8; 256] = core::array::from_fn(|q| 255 - q as u8);
//! let input = Rows { data: Span::new(&[0, 200]), shape: RowShape::dense(1, 1, 2, 1) }; // [1, 1, 2]
//! let mut made = [0_u8; 2];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 1, 2, 1) }; // [1, 1, 2]
//! Table.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[Rows::line(&table)], &mut output);
//! assert_eq!(made, [255, 55]);
//! ```

use core::ops::Range;

use super::super::elements::{Elements, ElementsMut};
use super::super::kernel::{Context, ElementKernel, RowKernel};
use super::super::rows::{Rows, RowsMut};

/// A function of each element: element `q` becomes byte `q` of the constant, which has 256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Table;

/// Bytes of a table.
const SIZE: usize = 256;

/// The constant as a table.
///
/// # Panics
/// If it has fewer bytes.
fn table(constant: &[u8]) -> [u8; SIZE] {
    let mut table = [0; SIZE];
    table.copy_from_slice(&constant[..SIZE]);
    table
}

/// One operand, of the output's shape.
impl RowKernel<u8, u8> for Table {
    fn rows(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, u8>],
        constants: &[Rows<'_, u8>],
        output: &mut RowsMut<'_, u8>,
    ) {
        let table = table(constants[0].row(0));
        for y in y {
            let pairs = output.row(y).iter_mut().zip(operands[0].row(y));
            pairs.for_each(|(r, &q)| *r = table[usize::from(q)]);
        }
    }
}

/// One operand, of the output's dimensions.
impl ElementKernel<u8, u8> for Table {
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, u8>],
        constants: &[Elements<'_, u8>],
        output: &mut ElementsMut<'_, u8>,
    ) {
        let (input, table) = (&operands[0], table(constants[0].values()));
        output.fill(y, |index| table[usize::from(input.at(index))]);
    }
}
