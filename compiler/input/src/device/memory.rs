//! The memories of a board, and how much of each an application may take.
//!
//! ```
//! use csdfc_input::device::memory::{Ram, Memory};
//!
//! // The tightly coupled memory of a microcontroller, and a memory outside the chip that takes 12.5 ns a byte longer.
//! let ram: Ram = "128kB@dtcm:0ns, 8MB@psram:12.5ns".parse()?;
//! let memories = ram.memories(&[])?;
//! assert_eq!(memories[1], Memory { ns_per_byte: Some(12.5), ..Memory::new("psram", 8_000_000) });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeSet;
use std::str::FromStr;

use csdfc_network::suggest::{self, clip};
use csdfc_plan::plan::Content;
use serde::{Deserialize, Serialize};

use crate::units::{self, SizeError};

/// A memory of a board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Its name, such as `dtcm`: small letters, digits and `_`.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// What a byte that is read or written in it takes longer than in the fastest memory, in nanoseconds; `None` if nobody
    /// knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_per_byte: Option<f64>,
    /// What may lie in it.
    #[serde(default = "Content::of_arena")]
    pub holds: BTreeSet<Content>,
    /// Bytes of it that the stack of a frame takes; 0 if the stack lies elsewhere, or if nobody knows.
    #[serde(skip)]
    pub stack: u64,
}

/// The memories that an application may use: `128kB@dtcm,8MB@psram:12.5ns=buffers+weights`. Each is a name, and may have a
/// size before it, and after it the time of a byte and what may lie there. What is left out is as the device profile says.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Ram(Vec<Part>);

/// A memory as the user names it.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    name: String,
    bytes: Option<u64>,
    ns_per_byte: Option<f64>,
    holds: Option<BTreeSet<Content>>,
}

/// What may lie in a memory, by name.
const CONTENTS: [(&str, Content); 3] =
    [("buffers", Content::Buffers), ("weights", Content::Weights), ("stack", Content::Stack)];

/// Maximum number of memories.
const MAX_MEMORIES: usize = 64;

/// Why a text names no memories.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RamError {
    /// No name, or one with other characters.
    #[error(
        "`{0}` is no memory: give SIZE@NAME, or the NAME of a memory of the device (128kB@dtcm,512kB@sram); a name has small \
         letters, digits and `_`"
    )]
    NotAMemory(String),
    /// A size that is none.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// A memory of no bytes.
    #[error("memory `{0}` has no bytes")]
    Empty(String),
    /// A time that is none.
    #[error("`{0}` is no time of a byte: give nanoseconds of 0 or more, and the unit (8MB@psram:12.5ns)")]
    Time(String),
    /// What lies in no memory.
    #[error(
        "`{0}` is not what lies in a memory: that is `buffers`, `weights` and `stack` (64kB@ccm=buffers+stack)"
    )]
    Content(String),
    /// No memory for rings and workspaces.
    #[error("no memory holds `buffers`, so tensors have no place")]
    NoBuffers,
    /// The stack in two memories.
    #[error("the stack lies in one memory, but `{0}` and `{1}` hold it")]
    Stacks(String, String),
    /// Only some of the memories have a time.
    #[error(
        "memory `{0}` has no time, and others have one: say how many nanoseconds longer a byte takes there than in the \
         fastest ({0}:12.5ns)"
    )]
    SomeTimes(String),
    /// More memories than a board has.
    #[error("{0} memories are more than the {MAX_MEMORIES} that a plan can have")]
    TooMany(usize),
    /// A name that comes twice.
    #[error("two memories are named `{0}`")]
    Twice(String),
    /// A memory without a size that the device does not have.
    #[error("the device profile has no memory `{name}`, so its size is not known")]
    Unknown {
        /// The memory.
        name: String,
        /// What to do.
        help: String,
    },
}

impl Ram {
    /// The memories, the fastest first; in the order given if no times are known. If others have a time, the first needs
    /// none, and is as fast as the fastest. `known` are those of the device.
    ///
    /// # Errors
    /// When a size is not known, or the times of only some.
    pub fn memories(&self, known: &[Memory]) -> Result<Vec<Memory>, RamError> {
        let names = || known.iter().map(|memory| memory.name.as_str());
        let memory = |part: &Part| {
            let shipped = known.iter().find(|memory| memory.name == part.name);
            let bytes = part.bytes.or(shipped.map(|memory| memory.bytes));
            let ns_per_byte = part.ns_per_byte.or(shipped.and_then(|memory| memory.ns_per_byte));
            let unknown = || RamError::Unknown {
                name: part.name.clone(),
                help: match known {
                    [] => format!("give its size: 512kB@{}", part.name),
                    _ => suggest::help(&part.name, "its memories are", names()),
                },
            };
            let holds = part.holds.clone().or(shipped.map(|memory| memory.holds.clone()));
            Ok(Memory {
                name: part.name.clone(),
                bytes: bytes.ok_or_else(unknown)?,
                ns_per_byte,
                holds: holds.unwrap_or_else(Content::of_arena),
                stack: 0,
            })
        };
        let mut memories = self.0.iter().map(memory).collect::<Result<Vec<_>, RamError>>()?;
        let holding = |content| memories.iter().filter(move |memory| memory.holds.contains(&content));
        if let [one, other, ..] = holding(Content::Stack).collect::<Vec<_>>()[..] {
            return Err(RamError::Stacks(one.name.clone(), other.name.clone()));
        }
        if holding(Content::Buffers).next().is_none() {
            return Err(RamError::NoBuffers);
        }
        if memories.iter().any(|memory| memory.ns_per_byte.is_some()) {
            if let Some(first) = memories.first_mut() {
                first.ns_per_byte.get_or_insert(0.0);
            }
            if let Some(untimed) = memories.iter().find(|memory| memory.ns_per_byte.is_none()) {
                return Err(RamError::SomeTimes(untimed.name.clone()));
            }
        }
        memories.sort_by(|a, b| a.ns_per_byte.unwrap_or(0.0).total_cmp(&b.ns_per_byte.unwrap_or(0.0)));
        Ok(memories)
    }
}

impl FromStr for Ram {
    type Err = RamError;

    fn from_str(text: &str) -> Result<Self, RamError> {
        let parts = text.split(',').map(|part| part.trim().parse()).collect::<Result<Vec<Part>, _>>()?;
        if parts.len() > MAX_MEMORIES {
            return Err(RamError::TooMany(parts.len()));
        }
        for (i, part) in parts.iter().enumerate() {
            if parts[..i].iter().any(|before| before.name == part.name) {
                return Err(RamError::Twice(part.name.clone()));
            }
        }
        Ok(Ram(parts))
    }
}

impl TryFrom<String> for Ram {
    type Error = RamError;

    fn try_from(text: String) -> Result<Self, RamError> {
        text.parse()
    }
}

impl FromStr for Part {
    type Err = RamError;

    fn from_str(text: &str) -> Result<Self, RamError> {
        let (place, held) = match text.split_once('=') {
            Some((place, held)) => (place.trim_end(), Some(held)),
            None => (text, None),
        };
        let (size, rest) = match place.split_once('@') {
            Some((size, rest)) => (Some(size), rest),
            None => (None, place),
        };
        let (name, time) = match rest.split_once(':') {
            Some((name, time)) => (name.trim(), Some(time.trim())),
            None => (rest.trim(), None),
        };
        if !is_name(name) {
            return Err(RamError::NotAMemory(clip(text)));
        }
        let bytes = size.map(units::parse).transpose()?;
        if bytes == Some(0) {
            return Err(RamError::Empty(name.into()));
        }
        let ns = |time: &str| time.strip_suffix("ns")?.trim_end().parse().ok().filter(|ns| is_time(*ns));
        let ns_per_byte = time.map(|time| ns(time).ok_or_else(|| RamError::Time(clip(time)))).transpose()?;
        let content = |word: &str| {
            let known = CONTENTS.iter().find(|(name, _)| *name == word.trim());
            known.map(|(_, content)| *content).ok_or_else(|| RamError::Content(clip(word)))
        };
        let holds = held.map(|held| held.split('+').map(content).collect()).transpose()?;
        Ok(Part { name: name.into(), bytes, ns_per_byte, holds })
    }
}

/// Whether a text is the name of a memory. It becomes that of a constant, a type and a section of a linker script.
fn is_name(text: &str) -> bool {
    (1..=32).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// The longest time of a byte that makes sense, in nanoseconds: one millisecond.
const MAX_NS: f64 = 1e6;

fn is_time(ns: f64) -> bool {
    (0.0..=MAX_NS).contains(&ns)
}

impl Memory {
    /// A memory for all that the arena has, of which no time is known.
    pub fn new(name: &str, bytes: u64) -> Self {
        Memory { name: name.into(), bytes, ns_per_byte: None, holds: Content::of_arena(), stack: 0 }
    }

    /// Bytes that are left for the arena.
    pub fn room(&self) -> u64 {
        self.bytes.saturating_sub(self.stack)
    }

    /// Whether its figures make sense.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        match () {
            () if !is_name(&self.name) => Err("a name has small letters, digits and `_`"),
            () if self.bytes == 0 => Err("it has no bytes"),
            () if self.holds.is_empty() => Err("it holds nothing"),
            () if !self.ns_per_byte.is_none_or(is_time) => Err("`ns_per_byte` is no time"),
            () => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(name: &str, bytes: u64, ns_per_byte: Option<f64>) -> Memory {
        Memory { ns_per_byte, ..Memory::new(name, bytes) }
    }

    #[test]
    fn sizes_and_times_that_are_left_out_are_the_devices() {
        let known = [memory("dtcm", 131_072, Some(0.0)), memory("sram", 524_288, Some(1.0))];
        let of = |text: &str| text.parse::<Ram>().unwrap().memories(&known).unwrap();
        let (dtcm, sram) = (&known[0], &known[1]);
        assert_eq!(of("dtcm,sram"), known);
        // The fastest comes first.
        assert_eq!(of("sram, dtcm"), known);
        assert_eq!(of("100kB@dtcm"), [Memory { bytes: 100_000, ..dtcm.clone() }]);
        assert_eq!(of("sram:2ns,8MB@psram:12.5 ns")[0], Memory { ns_per_byte: Some(2.0), ..sram.clone() });
    }

    #[test]
    fn without_times_the_order_counts() {
        let ram: Ram = "8MB@far,128kB@near".parse().unwrap();
        assert_eq!(
            ram.memories(&[]).unwrap(),
            [memory("far", 8_000_000, None), memory("near", 128_000, None)]
        );
    }

    #[test]
    fn what_lies_in_a_memory_is_as_given_or_as_the_device_says() {
        let ccm = Memory { holds: [Content::Buffers, Content::Stack].into(), ..memory("ccm", 65_536, None) };
        let of = |text: &str| text.parse::<Ram>().unwrap().memories(std::slice::from_ref(&ccm)).unwrap();
        assert_eq!(of("ccm,128kB@sram"), [ccm.clone(), memory("sram", 128_000, None)]);
        let stack = Memory { holds: [Content::Stack].into(), ..memory("ccm", 1000, Some(0.0)) };
        assert_eq!(of("1kB@ccm:0ns = stack, 1kB@sram:1ns")[0], stack);
        assert_eq!(of("ccm=weights+buffers")[0], memory("ccm", 65_536, None));
        let refused = |text: &str| text.parse::<Ram>().and_then(|ram| ram.memories(&[])).unwrap_err();
        assert_eq!(refused("1kB@a=all"), RamError::Content("all".into()));
        assert_eq!(refused("1kB@a="), RamError::Content(String::new()));
        assert_eq!(refused("1kB@a=weights+stack"), RamError::NoBuffers);
        assert_eq!(refused("1kB@a=buffers+stack,1kB@b=stack"), RamError::Stacks("a".into(), "b".into()));
    }

    #[test]
    fn what_names_no_memories_is_refused() {
        for text in ["", "128kB", "128kB@", "128kB@DTCM", "128kB@1a", "1kB@a,,1kB@b", "1kB@a@b", "1kB@\u{e9}"]
        {
            assert!(matches!(text.parse::<Ram>(), Err(RamError::NotAMemory(_))), "{text}");
        }
        for text in ["banana@a", "-8MB@a", "99EB@a"] {
            assert!(matches!(text.parse::<Ram>(), Err(RamError::Size(_))), "{text}");
        }
        for text in ["1kB@a:", "1kB@a:5", "1kB@a:-1ns", "1kB@a:NaNns", "1kB@a:infns", "1kB@a:1e9ns"] {
            assert!(matches!(text.parse::<Ram>(), Err(RamError::Time(_))), "{text}");
        }
        let many = |count: usize| (0..count).map(|i| format!("1kB@m{i}")).collect::<Vec<_>>().join(",");
        assert!(many(MAX_MEMORIES).parse::<Ram>().is_ok());
        assert_eq!(many(MAX_MEMORIES + 1).parse::<Ram>(), Err(RamError::TooMany(MAX_MEMORIES + 1)));
        assert_eq!("0@a".parse::<Ram>(), Err(RamError::Empty("a".into())));
        assert_eq!("1kB@a,2kB@a".parse::<Ram>(), Err(RamError::Twice("a".into())));
    }

    #[test]
    fn what_is_not_known_is_asked_for() {
        let known = [memory("dtcm", 131_072, Some(0.0))];
        let of = |text: &str, known: &[Memory]| text.parse::<Ram>().unwrap().memories(known).unwrap_err();
        let RamError::Unknown { help, .. } = of("dctm", &known) else { panic!() };
        assert!(help.contains("dtcm"), "{help}");
        let RamError::Unknown { help, .. } = of("dtcm", &[]) else { panic!() };
        assert!(help.contains("512kB@dtcm"), "{help}");
        assert_eq!(of("dtcm,8MB@psram", &known), RamError::SomeTimes("psram".into()));
    }

    #[test]
    fn the_first_memory_is_the_fastest_if_only_others_have_a_time() {
        let ram: Ram = "2MB@fast,14MB@slow:5ns".parse().unwrap();
        let expected = [memory("fast", 2_000_000, Some(0.0)), memory("slow", 14_000_000, Some(5.0))];
        assert_eq!(ram.memories(&[]).unwrap(), expected);
    }
}
