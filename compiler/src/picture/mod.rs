//! Pictures: SVG written by hand, and what is drawn with it. Knows nothing of plans or strategies.

pub mod chart;
pub mod front;
pub mod svg;
