//! Problems to pack, and a check of packings that shares no code with the packer.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::lives::Life;
use crate::problem::Block;

pub(super) fn random(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

pub(super) fn life(lower: i64, upper: i64, bytes: u64) -> Life {
    Life { block: Block::of_bytes(bytes), lower, upper, gaps: Vec::new() }
}

/// Bytes of a buffer that are in use at a moment.
pub(super) fn in_use(life: &Life, at: i64) -> Option<(u64, u64)> {
    if at < life.lower || life.upper <= at {
        return None;
    }
    match life.gaps.iter().find(|gap| gap.lower <= at && at < gap.upper) {
        Some(gap) => gap.window,
        None => Some((0, life.block.bytes)),
    }
}

/// Checks that no two buffers use an address at the same moment, that all are aligned and fixed as asked, and that the
/// height is right.
pub(super) fn check_lawful(lives: &[Life], offsets: &[u64], bytes: u64) {
    assert_eq!(lives.len(), offsets.len());
    let ends = lives.iter().zip(offsets).map(|(life, at)| life.block.bytes + at);
    assert_eq!(ends.max().unwrap_or(0), bytes);
    for (life, at) in lives.iter().zip(offsets) {
        assert_eq!(at % life.block.alignment, 0);
        assert!(life.block.offset.is_none_or(|fixed| fixed == *at));
    }
    // Between two beginnings nothing new comes into use.
    let begins = lives.iter().map(|life| life.lower);
    let moments =
        begins.chain(lives.iter().flat_map(|life| &life.gaps).flat_map(|gap| [gap.lower, gap.upper]));
    for moment in moments {
        let used = lives.iter().zip(offsets);
        let mut used: Vec<(u64, u64)> = used
            .filter_map(|(life, at)| in_use(life, moment).map(|(low, high)| (at + low, at + high)))
            .filter(|(low, high)| low < high)
            .collect();
        used.sort_unstable();
        assert!(used.windows(2).all(|pair| pair[0].1 <= pair[1].0), "overlap at {moment}: {used:?}");
    }
}
