//! Tests of plans and of everything made from plans, in one binary: with a binary for each file, each would link the
//! whole compiler.

mod applications;
mod corruptions;
mod emit;
mod extended;
mod fallback;
mod fronts;
mod hostile;
mod joint;
mod limits;
mod measured;
mod memories;
mod methods;
mod networks;
mod one_by_one;
mod overlap;
mod packing;
mod paper;
mod pipeline;
mod plan_format;
mod precision;
mod random;
mod repack;
mod resize;
mod rings;
mod run;
mod schedules;
mod selection;
mod shares;
mod streamed;
mod tidy;
mod walks;
mod whole;
