//! The accelerator (the paper's section 2.1).

use serde::Deserialize;

use super::error::OffloadError;

/// Largest figure of an accelerator, so that sums of its products with a layer's elements fit 64 bits.
const MAX_SIZE: u64 = 1 << 40;

/// Largest duration per element or step.
const MAX_TIME: u64 = 1 << 16;

/// An accelerator: an on-chip memory and a processing part. Durations are in its cycles.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accelerator {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// nbop_PE: multiply-accumulates per step. Without it, only the size of a group limits a step.
    #[serde(default)]
    pub pe: Option<u64>,
    /// size_MEM: elements that the on-chip memory holds. Without it, the memory holds everything.
    #[serde(default, rename = "mem_elements")]
    pub mem: Option<u64>,
    /// t_l: to load an element.
    #[serde(default = "one")]
    pub tl: u64,
    /// t_w: to write an element back.
    #[serde(default = "one")]
    pub tw: u64,
    /// t_acc: to compute a step.
    #[serde(default = "one")]
    pub tacc: u64,
}

fn one() -> u64 {
    1
}

impl Default for Accelerator {
    fn default() -> Self {
        Accelerator { name: String::new(), pe: None, mem: None, tl: 1, tw: 1, tacc: 1 }
    }
}

impl Accelerator {
    /// Reads an accelerator from RON.
    ///
    /// # Errors
    /// What is wrong, with line and column.
    pub fn parse(text: &str) -> Result<Self, OffloadError> {
        let ron = ron::Options::default().with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME);
        let accelerator: Accelerator =
            ron.from_str(text).map_err(|error| OffloadError::Accelerator { problem: error.to_string() })?;
        accelerator.check()?;
        Ok(accelerator)
    }

    /// Whether its figures are within reason.
    ///
    /// # Errors
    /// Which one is not.
    pub fn check(&self) -> Result<(), OffloadError> {
        let sizes =
            [("pe", self.pe), ("mem_elements", self.mem)].map(|(name, value)| (name, value, MAX_SIZE));
        let times = [("tl", self.tl), ("tw", self.tw), ("tacc", self.tacc)];
        let times = times.map(|(name, value)| (name, Some(value), MAX_TIME));
        for (name, value, most) in sizes.into_iter().chain(times) {
            if value.is_some_and(|value| value > most) {
                return Err(OffloadError::Accelerator { problem: format!("{name} is above {most}") });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read() {
        let read = Accelerator::parse("(name: \"vta\", pe: 120, mem_elements: 4096, tl: 2)").unwrap();
        let expected =
            Accelerator { name: "vta".into(), pe: Some(120), mem: Some(4096), tl: 2, tw: 1, tacc: 1 };
        assert_eq!(read, expected);
        for text in ["", "(pes: 1)", "(pe: -1)", "(tl: 65537)", "(mem_elements: 9999999999999)"] {
            assert!(Accelerator::parse(text).is_err(), "{text}");
        }
    }
}
