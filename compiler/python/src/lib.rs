//! The Python module `csdfc`: the command, and plans that are made, looked at and run. `csdfc.pyi` has its types and the
//! same texts, which a test compares.
//!
//! `functions`, `classes` and `errors` are what the module offers. Keyword arguments become options of the command line
//! (`options`). Work that takes long goes on in threads, so that Ctrl-C is seen (`interrupt`), and frames in the thread of
//! their plan (`frames`).

mod classes;
mod errors;
mod frames;
mod functions;
mod interrupt;
mod options;

use pyo3::prelude::*;

/// Plans the memory of CNNs on edge boards, and runs the plans.
#[pymodule]
mod csdfc {
    #[pymodule_export]
    use super::classes::{Board, Layer, Packing, Place, Plan, Point, Quantized, Remedy};
    #[pymodule_export]
    use super::errors::{CsdfcWarning, Error, Unmet};
    #[pymodule_export]
    use super::functions::{main, pack, plan, profile, quantize};
    use super::*;

    #[pymodule_init]
    fn version(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
