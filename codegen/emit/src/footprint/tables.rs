//! The tables, one file for each target, as `tests/emit/footprint.rs` wrote them.

mod riscv32;
mod thumbv7em;
mod thumbv8m;

use super::Table;

/// The targets, the processors that they stand for, and what was measured with optimisation for speed and for size.
pub(super) const TARGETS: &[(&str, &str, [&Table; 2])] = &[
    ("thumbv7em-none-eabihf", "Cortex-M4 and M7", [&thumbv7em::FAST, &thumbv7em::SMALL]),
    ("thumbv8m.main-none-eabihf", "Cortex-M33 and larger", [&thumbv8m::FAST, &thumbv8m::SMALL]),
    ("riscv32imac-unknown-none-elf", "RISC-V of 32 bits", [&riscv32::FAST, &riscv32::SMALL]),
];
