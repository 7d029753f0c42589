//! Patches and pixels as bits, and the reflections of the grid.

use std::collections::BTreeMap;

use crate::problem::Problem;

/// Maximum number of patches of a layer that is searched.
pub const MAX_PATCHES: usize = 64;

/// Maximum number of classes of pixels: the bits of a set of them.
const MAX_CLASSES: usize = 128;

/// A layer as bit sets. Pixels that the same patches cover are one class. Pixels that only one patch covers are in no
/// set, since no other group can use them.
#[derive(Debug)]
pub struct Grid {
    covers: Vec<u128>,
    /// Patches that cover each class.
    covered_by: Vec<u64>,
    /// Pixels of each class.
    weights: Vec<u32>,
    /// Pixels that a patch alone covers, per patch.
    own: Vec<u32>,
    covered: u64,
    reflections: Vec<Reflection>,
    /// Whether every group fits the memory.
    pub always_fits: bool,
}

/// A map of the grid onto itself. Sets are mapped byte by byte through tables.
#[derive(Debug)]
pub struct Reflection {
    /// Where each patch goes.
    pub patches: Vec<u32>,
    patch_bytes: Vec<[u64; 256]>,
    class_bytes: Vec<[u128; 256]>,
}

impl Grid {
    /// The layer of a problem, if it is small enough and its filters are all in memory.
    pub fn new(problem: &Problem) -> Option<Self> {
        let convolution = &problem.convolution;
        let patches = convolution.patches();
        if patches > MAX_PATCHES || problem.passes() > 1 {
            return None;
        }
        let mut covering = vec![0u64; convolution.pixels()];
        for patch in 0..patches as u32 {
            for pixel in convolution.pixels_of(patch) {
                covering[pixel as usize] |= 1 << patch;
            }
        }
        let mut own = vec![0; patches];
        let mut classes: BTreeMap<u64, u32> = BTreeMap::new();
        for set in covering.iter().copied().filter(|set| *set != 0) {
            match set.count_ones() {
                1 => own[set.trailing_zeros() as usize] += 1,
                _ => *classes.entry(set).or_default() += 1,
            }
        }
        if classes.len() > MAX_CLASSES {
            return None;
        }
        let covered_by: Vec<u64> = classes.keys().copied().collect();
        let weights: Vec<u32> = classes.into_values().collect();
        let cover = |patch: usize| -> u128 {
            let of = |(class, set): (usize, &u64)| u128::from(set >> patch & 1) << class;
            covered_by.iter().enumerate().map(of).fold(0, |all, bit| all | bit)
        };
        let covers: Vec<u128> = (0..patches).map(cover).collect();
        let reflections = reflections(convolution.output(), &covered_by, &own, &weights);
        let most = problem.group * convolution.pixels_per_patch();
        Some(Grid {
            covers,
            weights,
            own,
            covered: convolution.covered_pixels() as u64,
            reflections,
            covered_by,
            always_fits: problem.fits(most, problem.group),
        })
    }

    /// Patches.
    pub fn patches(&self) -> usize {
        self.covers.len()
    }

    /// Pixels that some patch covers.
    pub fn covered(&self) -> u64 {
        self.covered
    }

    /// Classes of pixels.
    pub fn classes(&self) -> usize {
        self.weights.len()
    }

    /// The patches that cover a class, at least two.
    pub fn patches_of(&self, class: usize) -> impl Iterator<Item = u32> + use<> {
        bits(self.covered_by[class].into())
    }

    /// Pixels that only this patch covers.
    pub fn own(&self, patch: u32) -> u64 {
        self.own[patch as usize].into()
    }

    /// The classes that a patch covers.
    pub fn cover(&self, patch: u32) -> u128 {
        self.covers[patch as usize]
    }

    /// Pixels of these classes.
    pub fn weight(&self, classes: u128) -> u64 {
        bits(classes).map(|class| u64::from(self.weights[class as usize])).sum()
    }

    /// Pixels that a group covers.
    pub fn pixels(&self, group: u64, classes: u128) -> usize {
        let own: u32 = bits(group.into()).map(|patch| self.own[patch as usize]).sum();
        own as usize + self.weight(classes) as usize
    }

    /// Of `classes`, those that a patch not yet done covers.
    pub fn needed(&self, classes: u128, done: u64) -> u128 {
        let open = |class: &u32| self.covered_by[*class as usize] & !done != 0;
        bits(classes).filter(open).fold(0, |all, class| all | 1 << class)
    }

    /// The reflections, the identity first.
    pub fn reflections(&self) -> &[Reflection] {
        &self.reflections
    }
}

/// The places of the ones of a set.
fn bits(set: u128) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(set), |set| Some(set & set.wrapping_sub(1)))
        .take_while(|set| *set != 0)
        .map(u128::trailing_zeros)
}

impl Reflection {
    fn new(patches: Vec<u32>, classes: &[u32]) -> Self {
        let map = |to: &[u32], byte: usize, value: usize| -> u128 {
            let moved = |bit: usize| match (value >> bit & 1, to.get(byte * 8 + bit)) {
                (1, Some(to)) => 1u128 << to,
                _ => 0,
            };
            (0..8).map(moved).fold(0, |all, bit| all | bit)
        };
        let table = |to: &[u32]| -> Vec<[u128; 256]> {
            (0..to.len().div_ceil(8)).map(|byte| std::array::from_fn(|value| map(to, byte, value))).collect()
        };
        // Patches are below 64.
        let patch_bytes = table(&patches).into_iter().map(|table| table.map(|set| set as u64)).collect();
        let class_bytes = table(classes);
        Reflection { patches, patch_bytes, class_bytes }
    }

    /// Where a set of patches goes.
    pub fn done(&self, set: u64) -> u64 {
        let byte = |(place, table): (usize, &[u64; 256])| table[(set >> (8 * place)) as usize & 255];
        self.patch_bytes.iter().enumerate().map(byte).fold(0, |all, bits| all | bits)
    }

    /// Where a set of classes goes.
    pub fn classes(&self, set: u128) -> u128 {
        let byte = |(place, table): (usize, &[u128; 256])| table[(set >> (8 * place)) as usize & 255];
        self.class_bytes.iter().enumerate().map(byte).fold(0, |all, bits| all | bits)
    }
}

/// The reflections of a grid of patches that map each class onto a class of equally many pixels. Without padding, every
/// grid has two, and a square grid has four more.
fn reflections(output: [usize; 2], covered_by: &[u64], own: &[u32], weights: &[u32]) -> Vec<Reflection> {
    let [rows, columns] = output;
    let mut found = Vec::new();
    for kind in 0..8 {
        let (down, across, turn) = (kind & 1 != 0, kind & 2 != 0, kind & 4 != 0);
        if turn && rows != columns {
            continue;
        }
        let place = |patch: usize| -> u32 {
            let (row, column) = (patch / columns, patch % columns);
            let row = if down { rows - 1 - row } else { row };
            let column = if across { columns - 1 - column } else { column };
            (if turn { column * columns + row } else { row * columns + column }) as u32
        };
        let patches: Vec<u32> = (0..rows * columns).map(place).collect();
        let image = |set: u64| bits(set.into()).fold(0u64, |all, patch| all | 1 << patches[patch as usize]);
        let class = |set: &u64| covered_by.binary_search(&image(*set)).ok().map(|class| class as u32);
        let classes: Option<Vec<u32>> = covered_by.iter().map(class).collect();
        let Some(classes) = classes else { continue };
        let alike = classes.iter().zip(weights).all(|(to, weight)| weights[*to as usize] == *weight)
            && patches.iter().zip(own).all(|(to, own_pixels)| own[*to as usize] == *own_pixels);
        if alike {
            found.push(Reflection::new(patches, &classes));
        }
    }
    found
}
