//! What the functions raise, and what they warn of.

use std::ffi::CString;

use csdfc_command::error::Error as Failure;
use csdfc_planner::error::explained;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyUserWarning};
use pyo3::prelude::*;

create_exception!(
    csdfc,
    Error,
    PyException,
    "What was handed in is wrong, or a file cannot be read or written. The text says what to do."
);
create_exception!(
    csdfc,
    Unmet,
    Error,
    "No plan meets the constraints. The text says what can be reached, and which tensors take most of the memory."
);
create_exception!(
    csdfc,
    CsdfcWarning,
    PyUserWarning,
    "What the command would log as a warning: the work was done, but perhaps not as was meant."
);

/// An error as Python's.
pub fn failed(error: Failure) -> PyErr {
    Error::new_err(explained(&error))
}

/// Warns of these, one after another.
///
/// # Errors
/// What Python raises, if somebody has asked it to take warnings as errors.
pub fn warn(py: Python<'_>, warnings: Vec<String>) -> PyResult<()> {
    let category = py.get_type::<CsdfcWarning>();
    for text in warnings {
        let text = CString::new(text.replace('\0', " "))?;
        PyErr::warn(py, &category, &text, 1)?;
    }
    Ok(())
}
