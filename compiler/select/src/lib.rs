//! Selection of a primitive, and with it of layouts, for each layer of a network.
//!
//! Two papers pose the problem:
//!
//! - *PBQP*: Anderson and Gregg, *Optimal DNN Primitive Selection with Partitioned Boolean Quadratic Programming*, CGO
//!   2018. It asks for the least time. A tensor that is written in one layout and read in another must be converted
//!   (section 3).
//! - *TASO*: Wen, Anderson, Radu, O'Boyle and Gregg, *TASO: Time and Space Optimization for Memory-Constrained DNN Inference*,
//!   2020. It asks for the least time under a budget of memory (Eq. 13), the least memory under a budget of time (Eq. 14),
//!   and the least workspace under a budget of time (Eq. 15).
//!
//! An [`Instance`] is a bare table of costs: this crate knows no CNN and no kernel. [`answer()`] gives a selection, and
//! a bound that proves it optimal; [`front()`] gives all trade-offs. The time of a selection is the sum over all layers
//! and over the conversions on all edges. Its memory is the sum over layers (Eq. 9); conversions need none. Its
//! workspace is the memory of the layer that takes most.
//!
//! | module | what |
//! | --- | --- |
//! | [`instance`] | instances, and their JSON form |
//! | [`scale`] | costs as whole numbers |
//! | [`conversions`] | the cheapest chains of conversions |
//! | [`problem`] | an instance in whole numbers; what a selection costs |
//! | [`model`] | a problem as a sum of tables over layouts |
//! | [`elimination`] | the least sum of tables |
//! | [`budget`] | the least of one quantity under a budget of the other |
//! | [`descent`] | selections made better, one layer at a time |
//! | `workspace` | the least workspace, and its front |
//! | `front` | undominated sums |
//! | `program` | the integer program, with which the above is compared |
//! | [`baselines`] | what the papers compare with |
//! | [`mod@blocked`] | why there is no selection at all |
//! | [`quantity`] | the quantities that are minimised and limited |
//! | `query` | what is asked and answered |
//! | [`stop`] | the end of a search, if somebody asks for it |
//!
//! Every answer has a bound. It equals the answer, unless the graph is so dense that a table of the elimination would
//! have more than 2^18 cells, which takes more than 11 variables of three layouts. In that case, a search goes on from
//! a relaxation. The bound still holds, but may be lower than the answer.
//!
//! This crate differs from the papers in two points. A layer that is not a convolution keeps one layout. The PBQP paper
//! lets it convert for nothing (section 5.2), which [`Problem::new`] does if asked to. Eq. 12 of the TASO paper sums
//! conversions over all pairs of layers; here only edges have conversions.
//!
//! ```
//! use csdfc_select::{Answer, Instance, Method, Problem, Quantity, Query, answer};
//!
//! let instance = Instance::parse(
//!     r#"{"layers": [
//!         {"name": "conv1", "kind": "conv", "options": [
//!             {"primitive": "sum2d", "in": "CHW", "out": "CHW", "time": 90, "memory": 10},
//!             {"primitive": "im2row", "in": "CHW", "out": "HWC", "time": 40, "memory": 80}]},
//!         {"name": "conv2", "kind": "conv", "options": [
//!             {"primitive": "sum2d", "in": "CHW", "out": "CHW", "time": 70, "memory": 10}]}],
//!      "edges": [{"from": "conv1", "to": "conv2", "conversions": [{"in": "HWC", "out": "CHW", "time": 5.5}]}]}"#,
//! )?;
//! let problem = Problem::new(&instance, false)?;
//! let mut query =
//!     Query { minimise: Quantity::Time, time: None, memory: None, workspace: None, method: Method::Exact };
//! let Ok(Answer::Met(fastest)) = answer(&problem, &query) else { panic!() };
//! assert_eq!(problem.times.value(fastest.cost.time), 40.0 + 5.5 + 70.0);
//! assert_eq!(fastest.bound, fastest.cost.time);
//!
//! query.memory = Some(50.0);
//! let Ok(Answer::Met(small)) = answer(&problem, &query) else { panic!() };
//! assert_eq!(problem.times.value(small.cost.time), 160.0);
//! # Ok::<(), csdfc_select::InstanceError>(())
//! ```

pub mod baselines;
pub mod blocked;
pub mod budget;
pub mod conversions;
pub mod descent;
pub mod elimination;
mod front;
pub mod instance;
pub mod model;
pub mod problem;
mod program;
pub mod quantity;
mod query;
pub mod scale;
pub mod stop;
mod workspace;

pub use instance::{Instance, InstanceError};
pub use problem::Problem;
pub use program::ProgramError;
pub use quantity::Quantity;
pub use query::{Answer, Chosen, FrontAnswer, Method, Query, answer, front};
