//! Hashes, and tables of them.

/// Slots of a table, a power of two.
const SLOTS: usize = 1 << 16;

/// A hash table of fixed size in which later entries replace earlier ones. Keys are hashes themselves.
#[derive(Default)]
pub struct Table {
    slots: Vec<(u64, u64)>,
}

impl Table {
    /// What was put in last with this key, if it is still there.
    pub fn get(&self, key: u64) -> Option<u64> {
        self.slots.get((key >> 20) as usize % SLOTS).filter(|slot| slot.0 == key).map(|slot| slot.1)
    }

    /// Puts a value in.
    pub fn insert(&mut self, key: u64, value: u64) {
        if self.slots.is_empty() {
            self.slots = vec![(0, 0); SLOTS];
        }
        self.slots[(key >> 20) as usize % SLOTS] = (key, value);
    }
}

/// A number that looks random (the finaliser of SplitMix64).
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
