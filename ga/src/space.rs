//! Genomes: bits, bounded integers and permutations, in any mixture.

use std::ops::RangeInclusive;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

/// A section of a genome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Section {
    /// This many genes, each 0 or 1.
    Bits(usize),
    /// One gene for each range, and within it. An empty range allows its start only.
    Integers(Vec<RangeInclusive<i64>>),
    /// A permutation of the numbers from 0 up to this number, which is not included.
    Permutation(usize),
}

/// A set of genomes. A genome has the genes of all sections, one section after another.
///
/// ```
/// use csdfc_ga::{Section, Space};
///
/// let space = Space::new(vec![Section::Bits(2), Section::Integers(vec![1..=4]), Section::Permutation(3)]);
/// assert_eq!(space.len(), 6);
/// assert!(space.accepts(&[0, 1, 4, 2, 0, 1]));
/// assert!(!space.accepts(&[0, 1, 5, 2, 0, 1])); // 5 is out of its range
/// assert!(!space.accepts(&[0, 1, 4, 2, 0, 2])); // no permutation
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    sections: Vec<Section>,
}

impl Section {
    /// Number of its genes.
    pub fn len(&self) -> usize {
        match self {
            Section::Bits(count) | Section::Permutation(count) => *count,
            Section::Integers(ranges) => ranges.len(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn accepts(&self, genes: &[i64]) -> bool {
        match self {
            Section::Bits(_) => genes.iter().all(|gene| (0..=1).contains(gene)),
            Section::Integers(ranges) => genes
                .iter()
                .zip(ranges)
                .all(|(gene, range)| range.contains(gene) || range.is_empty() && gene == range.start()),
            Section::Permutation(count) => {
                let mut sorted = genes.to_vec();
                sorted.sort_unstable();
                sorted.iter().copied().eq(0..*count as i64)
            }
        }
    }

    fn random(&self, random: &mut ChaCha8Rng) -> Vec<i64> {
        match self {
            Section::Bits(count) => (0..*count).map(|_| random.random_range(0..=1)).collect(),
            Section::Integers(ranges) => ranges.iter().map(|range| random_within(range, random)).collect(),
            Section::Permutation(count) => {
                let mut order: Vec<i64> = (0..*count as i64).collect();
                for i in (1..order.len()).rev() {
                    order.swap(i, random.random_range(0..=i));
                }
                order
            }
        }
    }
}

fn random_within(range: &RangeInclusive<i64>, random: &mut ChaCha8Rng) -> i64 {
    if range.is_empty() { *range.start() } else { random.random_range(range.clone()) }
}

impl Space {
    /// The genomes of these sections.
    pub fn new(sections: Vec<Section>) -> Self {
        Space { sections }
    }

    /// Its sections.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Number of genes.
    pub fn len(&self) -> usize {
        self.sections.iter().map(Section::len).sum()
    }

    /// Whether the only genome has no genes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether `genome` is in the space.
    pub fn accepts(&self, genome: &[i64]) -> bool {
        genome.len() == self.len()
            && self.stretches().all(|(section, from)| section.accepts(&genome[from..from + section.len()]))
    }

    /// A random genome. All genomes are equally likely.
    pub fn random(&self, random: &mut ChaCha8Rng) -> Vec<i64> {
        self.sections.iter().flat_map(|section| section.random(random)).collect()
    }

    /// The sections and the index of the first gene of each.
    pub fn stretches(&self) -> impl Iterator<Item = (&Section, usize)> {
        self.sections.iter().scan(0, |from, section| {
            let start = *from;
            *from += section.len();
            Some((section, start))
        })
    }
}

/// One-point crossover. A child has the genes of one parent up to a random place, and from there on those of the other
/// parent. Within a permutation, the remaining numbers come in the order of the other parent.
pub fn one_point(space: &Space, parents: [&[i64]; 2], random: &mut ChaCha8Rng) -> [Vec<i64>; 2] {
    let cut = random.random_range(0..=space.len());
    let child = |[first, second]: [&[i64]; 2]| {
        let mut child = Vec::with_capacity(first.len());
        for (section, from) in space.stretches() {
            let to = from + section.len();
            let here = cut.clamp(from, to);
            child.extend_from_slice(&first[from..here]);
            match section {
                Section::Permutation(count) => {
                    let mut taken = vec![false; *count];
                    first[from..here].iter().for_each(|gene| taken[*gene as usize] = true);
                    child.extend(second[from..to].iter().filter(|gene| !taken[**gene as usize]));
                }
                Section::Bits(_) | Section::Integers(_) => child.extend_from_slice(&second[here..to]),
            }
        }
        child
    };
    [child(parents), child([parents[1], parents[0]])]
}

/// Changes one random gene: a bit flips, an integer changes to another one, a number of a permutation swaps its place
/// with another.
pub fn mutate_one_gene(space: &Space, genome: &mut [i64], random: &mut ChaCha8Rng) {
    if genome.is_empty() {
        return;
    }
    let gene = random.random_range(0..genome.len());
    for (section, from) in
        space.stretches().filter(|(section, from)| (*from..from + section.len()).contains(&gene))
    {
        match section {
            Section::Bits(_) => genome[gene] = 1 - genome[gene],
            Section::Integers(ranges) => {
                let (low, high) = (*ranges[gene - from].start(), *ranges[gene - from].end());
                if low < high {
                    // Draw one of the other values: the last value stands in for the present one.
                    let other = random.random_range(low..high);
                    genome[gene] = if other == genome[gene] { high } else { other };
                }
            }
            Section::Permutation(count) => genome.swap(gene, from + random.random_range(0..*count)),
        }
    }
}
