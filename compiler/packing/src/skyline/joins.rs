//! Joining blocks that seem to have been one.
//!
//! Blocks may end where other blocks begin, both stacks being equally high. This may be an accident. The fewer blocks
//! begin and end there, the less likely an accident is: of `n` blocks on one side and `m` on the other, about `n m / h`
//! pairs have the same height `h` by chance. Pairs that are unlikely by chance are joined into one block, and that
//! block may be joined to others in turn. So a rectangle that was cut up is put together again from its smallest
//! pieces. Joins are guesses, and each seed makes other ones.

use std::collections::BTreeMap;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::line::TimeLine;

/// A block, or several that keep their places to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its first section, and the one after its last.
    pub span: Span,
    /// In bytes.
    pub size: u64,
    /// The blocks, and how far above its start each lies.
    pub blocks: Vec<(usize, u64)>,
}

/// Each block by itself.
pub fn singletons(line: &TimeLine) -> Vec<Piece> {
    let piece = |i: usize| Piece { span: line.spans[i], size: line.sizes[i], blocks: vec![(i, 0)] };
    (0..line.sizes.len()).map(piece).collect()
}

/// Maximum number of pieces that are stacked on one side of a joint, and on both.
const MAX_STACKED: usize = 3;
const MAX_OF_A_JOINT: usize = 5;

/// With more pieces of the same sections than the first number, no three are stacked; with more than the second, no
/// two.
const MANY: [usize; 2] = [10, 40];

/// Maximum number of looks at stacks.
const MAX_LOOKS: u64 = 1 << 20;

/// A joint is not made if at least this many joints like it are expected by accident. One of these limits is drawn.
const LIMITS: [f64; 6] = [0.0625, 0.125, 0.25, 0.5, 1.0, 2.0];

/// Added to the number of joints that are expected by accident, so that joints below it count alike.
const MIN_EXPECTED: f64 = 0.02;

/// Joins some blocks, drawn with this seed. Also returns how many stacks it looked at.
pub fn join(line: &TimeLine, seed: u64) -> (Vec<Piece>, u64) {
    let mut yard = PieceSet { pieces: singletons(line), stacks: BTreeMap::new(), work: 0 };
    let mut of_spans: BTreeMap<Span, Vec<usize>> = BTreeMap::new();
    for (i, span) in line.spans.iter().enumerate() {
        of_spans.entry(*span).or_default().push(i);
    }
    of_spans.into_iter().for_each(|(span, pieces)| yard.stack(span, pieces));
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let most = random.random_range(0..=line.sizes.len() / 2);
    let limit = LIMITS[random.random_range(0..LIMITS.len())];
    for _ in 0..most {
        if yard.work > MAX_LOOKS {
            break;
        }
        let Some(joint) = yard.unlikeliest(limit, &mut random) else { break };
        yard.make(joint);
    }
    let rest = yard.stacks.values().flat_map(|stacks| &stacks.pieces);
    (rest.map(|i| yard.pieces[*i].clone()).collect(), yard.work)
}

/// The first section, and the one after the last.
type Span = (usize, usize);

/// Pieces of the same sections.
struct Stacks {
    pieces: Vec<usize>,
    /// Stacks of some of them, each with its height. Sorted by height.
    stacks: Vec<(u64, Vec<usize>)>,
}

/// Two stacks that stand side by side and are level.
struct Joint {
    before: (Span, Vec<usize>),
    after: (Span, Vec<usize>),
    /// The lower, the sooner it is made.
    score: f64,
}

/// Pieces that are being joined.
struct PieceSet {
    /// Those that went into others too.
    pieces: Vec<Piece>,
    stacks: BTreeMap<Span, Stacks>,
    work: u64,
}

impl PieceSet {
    /// A joint of which few are expected by accident, fewer than `limit`.
    fn unlikeliest(&mut self, limit: f64, random: &mut ChaCha8Rng) -> Option<Joint> {
        let mut best: Option<Joint> = None;
        for (&before, lower) in &self.stacks {
            for (&after, upper) in self.stacks.range((before.1, 0)..(before.1 + 1, 0)) {
                self.work += lower.stacks.len() as u64;
                let mut rest = upper.stacks.as_slice();
                for (height, these) in &lower.stacks {
                    rest = &rest[rest.iter().take_while(|(h, _)| h < height).count()..];
                    for (_, those) in rest.iter().take_while(|(h, _)| h == height) {
                        self.work += 1;
                        let stacked = these.len() + those.len();
                        let pairs = combinations(lower.pieces.len(), these.len())
                            * combinations(upper.pieces.len(), those.len());
                        let expected = pairs * (stacked - 1) as f64 / (*height).max(2) as f64;
                        if stacked > MAX_OF_A_JOINT || expected >= limit {
                            continue;
                        }
                        let chance: f64 = random.random();
                        let score = (expected + MIN_EXPECTED) * chance / (1.0 - chance);
                        if best.as_ref().is_none_or(|best| score < best.score) {
                            let [before, after] = [(before, these.clone()), (after, those.clone())];
                            best = Some(Joint { before, after, score });
                        }
                    }
                }
            }
        }
        best
    }

    fn make(&mut self, joint: Joint) {
        let span = (joint.before.0.0, joint.after.0.1);
        let mut whole = Piece { span, size: 0, blocks: Vec::new() };
        for (side, stack) in [joint.before, joint.after] {
            whole.size = 0;
            for piece in stack.iter().map(|i| &self.pieces[*i]) {
                whole.blocks.extend(piece.blocks.iter().map(|(block, above)| (*block, whole.size + above)));
                whole.size += piece.size;
            }
            let mut rest = self.stacks.remove(&side).map_or(Vec::new(), |stacks| stacks.pieces);
            rest.retain(|i| !stack.contains(i));
            self.stack(side, rest);
        }
        let mut alike = self.stacks.remove(&span).map_or(Vec::new(), |stacks| stacks.pieces);
        alike.push(self.pieces.len());
        self.pieces.push(whole);
        self.stack(span, alike);
    }

    /// Stacks a few of the pieces of the same sections in all ways.
    fn stack(&mut self, span: Span, pieces: Vec<usize>) {
        if pieces.is_empty() {
            return;
        }
        let most = MAX_STACKED - MANY.iter().filter(|many| pieces.len() > **many).count();
        let mut stacks: Vec<(u64, Vec<usize>)> = vec![(0, Vec::new())];
        for &i in &pieces {
            for at in 0..stacks.len() {
                let (height, stack) = &stacks[at];
                if stack.len() < most {
                    let higher = stack.iter().copied().chain([i]).collect();
                    stacks.push((height + self.pieces[i].size, higher));
                }
            }
        }
        stacks.swap_remove(0);
        stacks.sort_unstable();
        self.work += stacks.len() as u64;
        self.stacks.insert(span, Stacks { pieces, stacks });
    }
}

/// In how many ways `few` of `count` can be chosen.
fn combinations(count: usize, few: usize) -> f64 {
    (0..few).map(|i| count.saturating_sub(i) as f64 / (i + 1) as f64).product()
}
