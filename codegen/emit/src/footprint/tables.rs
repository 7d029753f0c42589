//! The tables, as `tests/emit/footprint.rs` wrote them.

mod aarch64;
mod riscv32;
mod thumbv6m;
mod thumbv7em;

use super::Table;

/// The targets, the processors that they stand for, and what was measured with optimisation for speed and for size. Targets
/// with the same instructions have the same tables.
pub(super) const TARGETS: &[(&str, &str, [&Table; 2])] = &[
    (
        "thumbv7em-none-eabihf",
        "Cortex-M4 and M7, with the feature `dsp`",
        [&thumbv7em::FAST, &thumbv7em::SMALL],
    ),
    (
        "thumbv8m.main-none-eabihf",
        "Cortex-M33 and larger, with the feature `dsp`",
        [&thumbv7em::FAST, &thumbv7em::SMALL],
    ),
    ("thumbv6m-none-eabi", "Cortex-M0 and M0+", [&thumbv6m::FAST, &thumbv6m::SMALL]),
    ("riscv32imac-unknown-none-elf", "RISC-V of 32 bits", [&riscv32::FAST, &riscv32::SMALL]),
    (
        "riscv32imc-unknown-none-elf",
        "the same without atomic instructions",
        [&riscv32::FAST, &riscv32::SMALL],
    ),
    ("aarch64-unknown-none", "64-bit Arm", [&aarch64::FAST, &aarch64::SMALL]),
];
