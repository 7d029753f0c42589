//! Reads what csdfc wrote before: plans with their models, and fronts.

pub mod front;
pub mod identity;
pub mod reload;
