//! The names by which the command line and build scripts know precisions and the places of weights.
//!
//! ```
//! use csdfc_input::app::names;
//! use csdfc_network::pass::Precision;
//!
//! assert_eq!(names::find(names::PRECISIONS, "half", "precision"), Ok(Precision::Half));
//! let error = names::find(names::PRECISIONS, "hlaf", "precision").unwrap_err();
//! assert_eq!(error.help, "did you mean `half`? there are: fp32, half, mixed, w8a16, auto");
//! ```

use csdfc_network::pass::Precision;
use csdfc_network::suggest;

use super::spec::WeightsPlace;

/// Values with their names and what help says of them. A name of which it says nothing is an older name, which help hides.
pub type Names<T> = &'static [(T, &'static str, &'static str)];

/// The precisions that can be asked for. That of a model of 8-bit integers is not one of them: the model decides it.
pub const PRECISIONS: Names<Precision> = &[
    (Precision::Fp32, "fp32", "32-bit floats"),
    (
        Precision::Half,
        "half",
        "Weights and tensors are stored as 16-bit floats, where the operator has such a kernel; sums are 32-bit floats",
    ),
    (
        Precision::Mixed,
        "mixed",
        "W8A16: weights are 8-bit integers with a 32-bit scale for each output channel, tensors 16-bit floats",
    ),
    (Precision::Mixed, "w8a16", "The same as mixed"),
    (
        Precision::Auto,
        "auto",
        "Chooses one for each layer: fp32 where possible, less only as constraints need and --max-error allows",
    ),
];

/// The places where weights can be.
pub const WEIGHTS: Names<WeightsPlace> = &[
    (WeightsPlace::Auto, "auto", "In memory where they fit; those that do not fit are streamed"),
    (WeightsPlace::Resident, "resident", "In memory, all the time"),
    (
        WeightsPlace::Streamed,
        "streamed",
        "In a file or in flash: each frame reads them, piece by piece, into the arena",
    ),
    (WeightsPlace::Streamed, "paged", ""),
];

/// A name that stands for nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{}`", suggest::clip(.name))]
pub struct UnknownName {
    /// What it was to name.
    what: &'static str,
    name: String,
    /// The names that there are, and the one that may have been meant.
    pub help: String,
}

/// The value of a name. Errors call it a `what`.
///
/// # Errors
/// When no value has this name.
pub fn find<T: Copy>(names: Names<T>, name: &str, what: &'static str) -> Result<T, UnknownName> {
    let found = names.iter().find(|(_, known, _)| *known == name);
    found.map(|(value, ..)| *value).ok_or_else(|| {
        let shown = names.iter().filter(|(.., help)| !help.is_empty()).map(|(_, known, _)| *known);
        UnknownName { what, name: name.to_owned(), help: suggest::help(name, "there are", shown) }
    })
}
