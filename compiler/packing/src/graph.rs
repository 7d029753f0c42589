//! Sets of blocks, and the parts into which a conflict graph falls.

/// A set of small numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BitSet {
    words: Vec<u64>,
}

impl BitSet {
    /// The empty set of numbers below `count`.
    pub fn new(count: usize) -> Self {
        BitSet { words: vec![0; count.div_ceil(64)] }
    }

    /// Puts a number in.
    pub fn insert(&mut self, i: usize) {
        self.words[i / 64] |= 1 << (i % 64);
    }

    /// Takes a number out.
    pub fn remove(&mut self, i: usize) {
        self.words[i / 64] &= !(1 << (i % 64));
    }

    /// Whether a number is in.
    pub fn contains(&self, i: usize) -> bool {
        self.words[i / 64] >> (i % 64) & 1 == 1
    }

    /// Whether all numbers are in `other` too.
    pub fn is_subset(&self, other: &BitSet) -> bool {
        self.words.iter().zip(&other.words).all(|(a, b)| a & !b == 0)
    }

    /// Keeps what is in both.
    pub fn intersect(&mut self, other: &BitSet) {
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a &= b;
        }
    }

    /// Keeps what is not in `other`.
    pub fn subtract(&mut self, other: &BitSet) {
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a &= !b;
        }
    }

    /// The least number, if any.
    pub fn first(&self) -> Option<usize> {
        let word = self.words.iter().position(|word| *word != 0)?;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    at * 64 + bit
                })
            })
        })
    }
}

/// The connected parts of a set of vertices, or of its complement graph. Between two parts there is no edge, or in the
/// complement every edge. Each part ascends, and the parts come in the order of their least vertices. It takes O(n²)
/// time for n vertices, 64 vertices at a time.
pub(super) fn components(vertices: &BitSet, neighbours: &[BitSet], complement: bool) -> Vec<Vec<usize>> {
    let mut rest = vertices.clone();
    let mut parts = Vec::new();
    while let Some(seed) = rest.first() {
        let mut part = vec![seed];
        rest.remove(seed);
        let mut next = 0;
        while next < part.len() {
            let mut reached = rest.clone();
            if complement {
                reached.subtract(&neighbours[part[next]]);
            } else {
                reached.intersect(&neighbours[part[next]]);
            }
            rest.subtract(&reached);
            part.extend(reached.iter());
            next += 1;
        }
        part.sort_unstable();
        parts.push(part);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(count: usize, numbers: &[usize]) -> BitSet {
        let mut set = BitSet::new(count);
        numbers.iter().for_each(|i| set.insert(*i));
        set
    }

    #[test]
    fn graphs_fall_into_parts() {
        // A triangle 0 1 2, a pair 3 4, and 70 alone.
        let edges = [(0, 1), (1, 2), (0, 2), (3, 4)];
        let neighbours: Vec<BitSet> = (0..71)
            .map(|i| {
                let near = edges.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).filter(|(a, _)| *a == i);
                set(71, &near.map(|(_, b)| b).collect::<Vec<_>>())
            })
            .collect();
        let all = set(71, &[0, 1, 2, 3, 4, 70]);
        assert_eq!(components(&all, &neighbours, false), [vec![0, 1, 2], vec![3, 4], vec![70]]);
        assert_eq!(components(&set(71, &[0, 1, 2]), &neighbours, true), [[0], [1], [2]]);
        assert_eq!(components(&set(71, &[0, 1, 3]), &neighbours, true), [[0, 1, 3]]);
        assert!(set(71, &[3]).is_subset(&all) && !all.is_subset(&set(71, &[3])));
    }
}
