//! Pictures in SVG. Nothing here knows of plans or strategies.

pub mod chart;
pub mod front;
pub mod svg;
