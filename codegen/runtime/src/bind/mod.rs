//! From a layer of a plan to a kernel: which kernel computes the layer, with which constants, on which rows.
//!
//! A kernel is a structure of parameters with one method. [`RowKernel::rows`](csdfc_kernels::kernel::RowKernel::rows)
//! sees tensors by rows, [`ElementKernel::elements`](csdfc_kernels::kernel::ElementKernel::elements) sees them element
//! by element. [`bind`] chooses a kernel and says how it sees the operands, the constants and the output: all by rows,
//! or all by elements ([`Form`]). So no kernel can be bound to a form that it does not know. `run` calls the method.
//! `emit` prints the structure and the same call; `literal` writes the structure by means of `serde`. So only this
//! module decides which kernel fits a layer.
//!
//! A kernel sees an operand in one of three ways. If its elements lie as the rows of an image, the kernel sees rows,
//! even if only a part of them is stored. If its elements lie in the row-major order of the dimensions seen, the kernel
//! sees pixels, divided among the rows of the output. All other operands are seen element by element.
//!
//! ```
//! use csdfc_plan::operator::{ElementWise, Function, Operator};
//! use csdfc_plan::shape::Shape;
//! use csdfc_runtime::bind::{Form, Literal, Primitive, Site, bind};
//!
//! let relu = Operator::ElementWise(ElementWise { function: Function::Relu });
//! let image = Shape::image(8, 32, 32);
//! let primitive = Primitive::new(&relu, &[&image]);
//! assert_eq!(primitive.name(), "own-kernel-hwc-hwc");
//! let call = bind(primitive, &Site::whole(&relu, [(&image, &image)].into_iter(), &image))?;
//! assert!(matches!(&call.form, Form::Rows(rows) if rows.inputs.len() == 1));
//! assert!(matches!(call.literal(), Literal::Type { name: "ElementWise", .. }));
//! assert!(call.constants.is_empty());
//! # Ok::<(), csdfc_runtime::LayerError>(())
//! ```

mod access;
mod choice;
mod constants;
mod fire;
mod integer_constants;
mod integers;
mod kernel;
mod layer;
mod layouts;
mod literal;
mod mixed;
mod operand_constant;
mod own_kernels;
mod primitive;
mod products;
mod scaled;
mod scenarios;
mod tiles;
mod translate;
mod typed;
mod views;

pub use constants::{Packing, Part};
pub use fire::{Slots, Source, Target};
pub use integer_constants::{Integers, Unary};
pub use kernel::{Call, Constant, ElementCall, Form, Kernel, Operand, Parameters, RowCall, Site};
pub use layer::{bind, bind_layer, read_from, workspace_of, written_by};
pub use literal::Literal;
pub(crate) use mixed::pack as pack_mixed;
pub use operand_constant::OperandConstant;
pub use primitive::Primitive;
pub(crate) use scaled::pack as pack_scaled;
pub use tiles::Tiling;
pub(crate) use tiles::packed;
pub use typed::{ByElements, ByRows, OnBytes, Stored, StridedView};
pub use views::{Input, View};
