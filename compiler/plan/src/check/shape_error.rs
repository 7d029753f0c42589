//! Why an operator cannot take its inputs.

/// What is wrong, in words that follow the name of the layer. Nothing but a reader tells one from another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct ShapeError(pub String);

/// Says why an operator cannot take its inputs.
pub(super) fn fail<T>(why: impl Into<String>) -> Result<T, ShapeError> {
    Err(ShapeError(why.into()))
}
