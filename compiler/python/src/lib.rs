//! The Python module `csdfc`: the command, [`plan`](functions::plan) and [`pack`](functions::pack). `csdfc.pyi` has its types
//! and its documentation.

mod classes;
mod functions;

use pyo3::prelude::*;

/// The module.
#[pymodule]
mod csdfc {
    #[pymodule_export]
    use super::classes::{Error, Packing, Plan, Unmet};
    #[pymodule_export]
    use super::functions::{main, pack, plan};
    use super::*;

    #[pymodule_init]
    fn version(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
