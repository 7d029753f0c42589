//! What the functions raise.

use csdfc_command::error::Error as Failure;
use csdfc_planner::error::explained;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(csdfc, Error, PyException);
create_exception!(csdfc, Unmet, Error);

/// An error as Python's.
pub fn failed(error: Failure) -> PyErr {
    Error::new_err(explained(&error))
}
