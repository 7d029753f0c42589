//! Pictures in SVG. Only [`strategy`] knows what it draws.

pub mod chart;
pub mod front;
pub mod strategy;
pub mod svg;
