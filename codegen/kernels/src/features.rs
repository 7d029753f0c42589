//! What kernels need code for: everything here. In an emitted crate, this file says what the kernels of its plan do, so that
//! the compiler leaves out the code for the rest.

/// Some convolutions are depthwise.
pub(crate) const DEPTHWISE: bool = true;
/// Some depthwise ones have filters 3 wide.
pub(crate) const WIDTH_3: bool = true;
/// Some depthwise ones have filters 5 wide.
pub(crate) const WIDTH_5: bool = true;
/// Some convolutions change their input as they read it: `Conv::pre`.
pub(crate) const PROLOGUES: bool = true;
/// Some convolutions read their input as several operands.
pub(crate) const PARTS: bool = true;
/// Some convolutions of bytes are not depthwise.
pub(crate) const QUANTIZED_DENSE: bool = true;
/// Some depthwise convolutions of bytes add a number to each weight, or have the largest filters.
pub(crate) const TAP_BY_TAP: bool = true;
/// Some activations have exponential functions.
pub(crate) const EXPONENTIALS: bool = true;
/// Some activations have logarithms.
pub(crate) const LOGARITHMS: bool = true;
/// Some activations are sines or cosines.
pub(crate) const SINES: bool = true;
