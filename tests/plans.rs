//! Plans and what is made of them, in one binary: a binary for each file would link the whole compiler each time.

mod applications;
mod corruptions;
mod emit;
mod extended;
mod fallback;
mod fronts;
mod hostile;
mod limits;
mod measured;
mod methods;
mod networks;
mod one_by_one;
mod overlap;
mod packing;
mod paper;
mod pipeline;
mod plan_format;
mod random;
mod repack;
mod resize;
mod rings;
mod run;
mod shares;
mod tidy;
mod walks;
mod whole;
