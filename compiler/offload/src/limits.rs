//! How large a layer may be.

/// Maximum number of patches of a layer.
pub const MAX_PATCHES: usize = 1 << 20;

/// Maximum number of pixels of a layer's padded input.
pub const MAX_PIXELS: usize = 1 << 23;

/// Maximum number of pixels, summed over the patches of a layer. One evaluation of a strategy visits them all.
pub const MAX_TAPS: usize = 1 << 26;

/// Maximum number of channels or filters.
pub const MAX_CHANNELS: usize = 1 << 16;
