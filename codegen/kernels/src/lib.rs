//! A kernel for every operator, computing by rows.
//!
//! A kernel makes a range of rows of one tensor from rows of others. It sees tensors as [`Rows`]: row y of a frame is
//! slot `(first + y) mod ring_rows` of a ring. Only the rows that its window needs have to be there. It allocates
//! nothing, and panics only if its caller makes a mistake. The bytes that it makes depend neither on the number of rows
//! per call nor on the number of workers. Rows are pixels of channels (layout HWC) unless a kernel says otherwise.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::pool::{Pool, PoolKind};
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let pool = Pool { kind: PoolKind::Max, kernel: [2, 2], stride: [2, 2], dilation: [1, 1], pads: [0; 4] };
//! let input = Rows { data: Span::new(&[1.0, 2.0, 3.0, 4.0]), shape: RowShape::dense(2, 2, 1, 2) }; // [2, 2, 1]
//! let mut made = [0.0; 1];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 1, 1, 1) }; // [1, 1, 1]
//! pool.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[], &mut output);
//! assert_eq!(made, [4.0]);
//! ```
#![no_std]

pub mod activation;
pub mod arch;
pub mod arg_max;
pub mod binary;
pub mod checksum;
pub mod concat;
pub mod conv;
pub mod convert;
pub mod depth_space;
mod element;
pub mod element_wise;
pub mod elements;
mod features;
pub mod gather;
pub mod gemm;
pub mod grid_sample;
pub mod half;
mod indirect;
pub mod instance_norm;
mod interleaved;
pub mod kernel;
pub mod layout;
pub mod lines;
pub mod lrn;
pub mod mat_mul;
pub mod math;
pub mod max_unpool;
pub mod pad;
pub mod panel;
mod pixels;
pub mod pool;
pub mod product;
pub mod quantized;
pub mod recurrent;
pub mod reduce;
pub mod resample;
pub mod resize;
pub mod rows;
pub mod share;
mod shared;
pub mod slice;
pub mod softmax;
pub mod sources;
pub mod span;
pub mod suppression;
pub mod ternary;
mod tile;
pub mod top_k;
pub mod transpose;
mod weight;
pub mod workers;

pub use activation::Activation;
pub use arch::Isa;
pub use element::Element;
pub use elements::{Elements, ElementsMut};
pub use half::F16;
pub use kernel::{Context, ElementKernel, RowKernel};
pub use rows::{Rows, RowsMut};
pub use shared::SharedRows;
pub use span::{Span, SpanMut};
