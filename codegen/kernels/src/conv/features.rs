//! Which convolutions need code: all of them here. In an emitted crate, this file says what the convolutions of its plan are,
//! so that the compiler leaves out the code for others.

/// Some are depthwise.
pub(super) const DEPTHWISE: bool = true;
/// Some depthwise ones have filters 3 wide.
pub(super) const WIDTH_3: bool = true;
/// Some depthwise ones have filters 5 wide.
pub(super) const WIDTH_5: bool = true;
/// Some change their input as they read it: [`super::Conv::pre`].
pub(super) const PROLOGUES: bool = true;
/// Some read their input as several operands.
pub(super) const PARTS: bool = true;
