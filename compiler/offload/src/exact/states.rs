//! A table of states by their value. It has open addressing, so that a search is the same on every machine.

/// Indices of states that lie elsewhere.
#[derive(Debug, Default)]
pub struct States {
    /// Hashes and indices. The index `FREE` marks a free place. The number of places is a power of two, or 0.
    places: Vec<(u32, u32)>,
    taken: usize,
}

const FREE: u32 = u32::MAX;

impl States {
    /// The index of the state with this hash of which `same` holds.
    pub fn find(&self, hash: u64, same: impl Fn(u32) -> bool) -> Option<u32> {
        let (_, index) = *self.places.get(self.place(hash, same)?)?;
        (index != FREE).then_some(index)
    }

    /// Enters an index, in place of that of the same state if there is one.
    pub fn insert(&mut self, hash: u64, index: u32, same: impl Fn(u32) -> bool) {
        if self.taken * 2 >= self.places.len() {
            self.grow();
        }
        if let Some(place) = self.place(hash, same) {
            self.taken += usize::from(self.places[place].1 == FREE);
            self.places[place] = (short(hash), index);
        }
    }

    /// The place of a state, or the free place where it belongs. `None` if there are no places at all.
    fn place(&self, hash: u64, same: impl Fn(u32) -> bool) -> Option<usize> {
        let mask = self.places.len().checked_sub(1)?;
        // At most half of the places are taken: this ends.
        (0..=mask).map(|step| (short(hash) as usize + step) & mask).find(|place| {
            let (known, index) = self.places[*place];
            index == FREE || known == short(hash) && same(index)
        })
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.places);
        self.places = vec![(0, FREE); (old.len() * 2).max(1024)];
        let mask = self.places.len() - 1;
        for (hash, index) in old.into_iter().filter(|(_, index)| *index != FREE) {
            let mut place = hash as usize & mask;
            while self.places[place].1 != FREE {
                place = (place + 1) & mask;
            }
            self.places[place] = (hash, index);
        }
    }
}

fn short(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// A hash of words.
pub fn hash(words: impl IntoIterator<Item = u64>) -> u64 {
    words
        .into_iter()
        .fold(0x9e37_79b9_7f4a_7c15, |hash: u64, word| {
            let mixed = (hash ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
            mixed ^ (mixed >> 32)
        })
        .wrapping_mul(0xc4ce_b9fe_1a85_ec53)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_entered_is_found() {
        let mut states = States::default();
        let keys: Vec<u64> = (0..5000).map(|i| i * i % 7919).collect();
        let mut last = std::collections::BTreeMap::new();
        for (index, key) in keys.iter().enumerate() {
            assert_eq!(
                states.find(hash([*key]), |other| keys[other as usize] == *key),
                last.get(key).copied()
            );
            states.insert(hash([*key]), index as u32, |other| keys[other as usize] == *key);
            last.insert(*key, index as u32);
        }
        assert_eq!(states.taken, last.len());
        assert_eq!(states.find(hash([u64::MAX]), |_| false), None);
    }
}
