//! The options of custom operators: a map of a FlexBuffer, which is read from its end.
//!
//! Only numbers are read. The crate of that name brings a second `syn` and its parser of TOML to every build of csdfc.

use crate::import::error::{Fault, fault};

/// The types of values, of those that are read here.
const INT: u8 = 1;
const UINT: u8 = 2;
const FLOAT: u8 = 3;
const INDIRECT_INT: u8 = 6;
const INDIRECT_UINT: u8 = 7;
const INDIRECT_FLOAT: u8 = 8;
const MAP: u8 = 9;
const BOOL: u8 = 26;

/// Maximum number of entries.
const MAX_ENTRIES: usize = 1 << 10;

/// A map from names to values. Before its values lie their number, the width of the offsets to its keys, and the offset
/// to these; after them, the type of each.
pub(super) struct Map<'a> {
    bytes: &'a [u8],
    /// Where the values begin, and the bytes that each takes.
    at: usize,
    width: usize,
    count: usize,
}

impl<'a> Map<'a> {
    /// The map that is the root of a buffer: its last two bytes are the root's type and width.
    pub fn root(bytes: &'a [u8]) -> Result<Self, Fault> {
        let read = || {
            let [rest @ .., kind, width] = bytes else { return None };
            let root = rest.len().checked_sub(usize::from(*width))?;
            let (kind, width_of_values) = unpacked(*kind);
            (kind == MAP).then_some(())?;
            let at = pointed(bytes, root, usize::from(*width))?;
            let count = number_at(bytes, at.checked_sub(width_of_values)?, width_of_values)?;
            let count = usize::try_from(count).ok().filter(|count| *count <= MAX_ENTRIES)?;
            Some(Map { bytes, at, width: width_of_values, count })
        };
        read().map_or_else(|| fault!("its options are no map of numbers by name"), Ok)
    }

    /// The number of this name, if it has one. Truth values are 0 and 1.
    pub fn number(&self, name: &str) -> Result<Option<f64>, Fault> {
        for entry in 0..self.count {
            match self.key(entry) {
                Some(key) if key == name.as_bytes() => {
                    let value = self.value(entry).filter(|value| value.is_finite());
                    return value
                        .map_or_else(|| fault!("its option {name} is no number"), |value| Ok(Some(value)));
                }
                Some(_) => {}
                None => return fault!("its options are damaged"),
            }
        }
        Ok(None)
    }

    fn key(&self, entry: usize) -> Option<&'a [u8]> {
        let about = self.at.checked_sub(3 * self.width)?;
        let keys = pointed(self.bytes, about, self.width)?;
        let width = usize::try_from(number_at(self.bytes, about + self.width, self.width)?).ok()?;
        let start = pointed(self.bytes, keys.checked_add(entry.checked_mul(width)?)?, width)?;
        let key = self.bytes.get(start..)?;
        key.get(..key.iter().position(|byte| *byte == 0)?)
    }

    fn value(&self, entry: usize) -> Option<f64> {
        let at = self.at + entry * self.width;
        let (kind, indirect_width) = unpacked(*self.bytes.get(self.at + self.count * self.width + entry)?);
        let (at, width) = match kind {
            INDIRECT_INT | INDIRECT_UINT | INDIRECT_FLOAT => {
                (pointed(self.bytes, at, self.width)?, indirect_width)
            }
            _ => (at, self.width),
        };
        let bits = number_at(self.bytes, at, width)?;
        match kind {
            INT | INDIRECT_INT => {
                let unused = 64 - 8 * width as u32;
                Some(((bits << unused) as i64 >> unused) as f64)
            }
            UINT | INDIRECT_UINT | BOOL => Some(bits as f64),
            FLOAT | INDIRECT_FLOAT if width == 4 => Some(f64::from(f32::from_bits(bits as u32))),
            FLOAT | INDIRECT_FLOAT if width == 8 => Some(f64::from_bits(bits)),
            _ => None,
        }
    }
}

/// A value's type, and the width of what it points to.
fn unpacked(packed: u8) -> (u8, usize) {
    (packed >> 2, 1 << (packed & 3))
}

/// The place to which the offset at `at` points, which is before it.
fn pointed(bytes: &[u8], at: usize, width: usize) -> Option<usize> {
    at.checked_sub(usize::try_from(number_at(bytes, at, width)?).ok()?)
}

/// An unsigned integer of 1, 2, 4 or 8 bytes.
fn number_at(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let stored = bytes.get(at..at.checked_add(width)?).filter(|_| matches!(width, 1 | 2 | 4 | 8))?;
    let mut whole = [0; 8];
    whole[..width].copy_from_slice(stored);
    Some(u64::from_le_bytes(whole))
}

#[cfg(test)]
mod tests {
    use super::Map;

    /// `{"b": true, "big": 70000, "low": -2, "share": 0.5}` by Google's writer (flatbuffers 25.12).
    const WRITTEN: &[u8] =
        b"b\0big\0low\0share\0\x04\x11\x10\x0d\x0a\0\0\0\x07\0\0\0\x01\0\0\0\x04\0\0\0\x01\0\0\0p\x11\x01\0\xfe\xff\xff\xff\0\0\0\x3fj\x06\x06\x0e\x14\x26\x01";

    #[test]
    fn numbers_are_found_by_name() {
        let map = Map::root(WRITTEN).unwrap();
        let found = ["b", "big", "low", "share", "none"].map(|name| map.number(name).unwrap());
        assert_eq!(found, [Some(1.0), Some(70000.0), Some(-2.0), Some(0.5), None]);
    }

    #[test]
    fn damaged_maps_are_refused_or_read() {
        let read = |bytes: &[u8]| Map::root(bytes).and_then(|map| map.number("share"));
        let mut refused = 0;
        for at in 0..WRITTEN.len() {
            for value in 0..=u8::MAX {
                let mut bytes = WRITTEN.to_vec();
                bytes[at] = value;
                refused += usize::from(read(&bytes).is_err());
            }
            let _ = read(&WRITTEN[at..]);
            assert!(read(&WRITTEN[..at]).is_err(), "the first {at} bytes");
        }
        assert!(refused > 1_000, "{refused}");
    }
}
