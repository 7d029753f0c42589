//! The simulator (the paper's section 6): it executes an n-step computation on data, and checks that it keeps the
//! rules. It knows nothing of how computations are made.
//!
//! The rules are:
//!
//! - Definition 2: what each action needs, and what it leaves;
//! - the assumptions of section 2.3: data are loaded a bounded number of times and processed at once. The computation
//!   of a step uses all of them, and the accelerator must be able to do it;
//! - Eq. 12: everything fits the memory;
//! - in the end every result has been computed and written once, and the memory is empty.
//!
//! ```
//! use csdfc_offload::problem::Options;
//! use csdfc_offload::simulate::{Data, Rules, convolve, simulate};
//! use csdfc_offload::steps::Computation;
//! use csdfc_offload::{Accelerator, Convolution, Problem, Spec};
//!
//! let layer = Convolution::new(Spec::new([3, 3], 1, [2, 2], 1))?;
//! let options = Options { group: Some(2), ..Options::default() };
//! let problem = Problem::new(layer.clone(), Accelerator::default(), &options)?;
//! let computation = Computation::new(&problem, &[vec![0, 1], vec![3, 2]]);
//! let data = Data::random(&layer, 1);
//! let (trace, results) = simulate(&layer, &Rules::new(&problem), &computation, Some(&data))?;
//! assert_eq!(trace.pixels_loaded, 9);
//! assert_eq!(results, convolve(&layer, &data));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod data;
mod memory;
mod trace;
mod violation;

use self::memory::Memory;
use super::convolution::Convolution;
use super::steps::Computation;

pub use self::data::{Data, convolve};
pub use self::trace::{Rules, StepTrace, Trace};
pub use self::violation::{Fault, Violation};

/// Executes a computation on `data`. Without data, it only checks the rules.
///
/// Returns what happened and, with data, the results that are in the DRAM at the end, as `[filter, row, column]`.
///
/// # Errors
/// The first rule that is broken, and the step that breaks it.
pub fn simulate(
    convolution: &Convolution,
    rules: &Rules,
    computation: &Computation,
    data: Option<&Data>,
) -> Result<(Trace, Vec<i64>), Violation> {
    let mut memory = Memory::new(convolution, rules, data);
    let mut steps = Vec::new();
    for (number, step) in computation.steps.iter().enumerate() {
        let at = |fault| Violation { step: Some(number + 1), fault };
        steps.push(memory.step(step).map_err(at)?);
    }
    let after = |fault| Violation { step: None, fault };
    memory.close(&computation.closing).map_err(after)?;
    let most = |step: &StepTrace| step.input_elements + step.filter_elements + step.output_elements;
    let ranges = |range: &std::ops::Range<u32>| range.len() as u64;
    let trace = Trace {
        memory: steps.iter().map(most).max().unwrap_or(0),
        pixels_loaded: steps.iter().map(|step| step.step.load_pixels.len() as u64).sum(),
        filters_loaded: steps.iter().map(|step| ranges(&step.step.load_filters)).sum(),
        outputs_written: convolution.patches() as u64 * convolution.spec().filters as u64,
        steps,
        closing: computation.closing.clone(),
    };
    Ok((trace, memory.into_results()))
}
