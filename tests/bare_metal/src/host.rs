//! This machine in place of a board.

pub use std::println;

/// The measurement of the stack, which only boards have.
pub fn stack_of(work: impl FnOnce()) -> Option<usize> {
    work();
    None
}
