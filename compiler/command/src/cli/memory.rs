//! The options that say how much memory there is.

use clap::Args;
use csdfc_input::app::Origin;
use csdfc_input::app::spec::AppSpec;
use csdfc_input::device::memory::Ram;
use csdfc_input::units::{MemoryGoal, Size};

/// How much memory a plan may take.
#[derive(Debug, Clone, Args)]
pub struct MemoryArgs {
    /// Most memory that the application may take, or `min` for the smallest plan that csdfc finds
    #[arg(long, value_name = "SIZE|min")]
    pub mem: Option<MemoryGoal>,
    /// The memories of a board that has several, in place of --mem: 128kB@dtcm,512kB@sram,8MB@psram. What layers move most
    /// lies in the fastest, which is the first if no times are given. A time says how much longer a byte takes than in the
    /// fastest (8MB@psram:12.5ns), and what follows `=` is what may lie there: buffers, weights, stack
    /// (64kB@ccm=buffers+stack). What is left out is as the device profile says. The parameters stay in flash
    #[arg(long, value_name = "[SIZE@]NAME[:NS][=WHAT],…", conflicts_with = "mem")]
    pub ram: Option<Ram>,
    /// Most flash that the parameters may take, and with them the code, if csdfc knows the device's processor
    #[arg(long, value_name = "SIZE")]
    pub flash: Option<Size>,
}

impl MemoryArgs {
    /// Writes the options over what the application file says.
    pub fn apply(&self, spec: &mut AppSpec, origin: &mut Origin) {
        let constraints = &mut spec.constraints;
        if let Some(memory) = self.mem {
            (constraints.memory, constraints.ram) = (Some(memory), None);
        }
        if let Some(ram) = &self.ram {
            (constraints.memory, constraints.ram) = (None, Some(ram.clone()));
            origin.replaced.push(("ram", "--ram"));
        }
        if self.flash.is_some() {
            constraints.flash = self.flash;
        }
    }
}
