//! What csdfc wrote before, read again: plans with their models, and fronts.

pub mod front;
pub mod identity;
pub mod reload;
