//! The search along a line by itself: least heights of every order, and rectangles cut up.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::instances::{check_lawful, life, random};
use super::optima::{least_of, lives};
use crate::budget::{Budget, Meter};
use crate::line::TimeLine;
use crate::lives::{Gap, Life, problem};
use crate::problem::Block;
use crate::skyline::joins::join;
use crate::skyline::{Attempt, Skyline};
use crate::subproblem::Subproblem;

fn line(lives: &[Life]) -> Option<TimeLine> {
    let all: Vec<usize> = (0..lives.len()).collect();
    TimeLine::new(&Subproblem::new(&problem(lives).unwrap(), &all))
}

/// Buffers of which one is in use with all others, so that none is without neighbours.
fn connected(random: &mut ChaCha8Rng, most: usize, sizes: u64) -> Vec<Life> {
    let mut lives = lives(random, most, sizes);
    lives.push(life(0, 20, 1));
    lives
}

const STEPS: u64 = 1_000_000;

fn search(line: &TimeLine, height: u64, steps: u64) -> Attempt {
    Skyline::new(line, height).search(steps, &mut Meter::new(Budget::Work(steps)))
}

#[test]
fn optima_of_every_order_are_found() {
    for seed in 0..1000 {
        let lives = connected(&mut random(seed), 7, if seed % 2 == 0 { 4 } else { 40 });
        let least = least_of(&lives);
        let Attempt::Packed(offsets) = search(&line(&lives).unwrap(), least, STEPS) else {
            panic!("seed {seed}: {lives:?}")
        };
        check_lawful(&lives, &offsets, least);
    }
}

/// Two buffers must lie at the ends, since one alone fills the rest at a time; a third must lie next to both, and cannot
/// for a fourth between. The least height is that of the other search, which proves it.
#[test]
fn nothing_is_found_below_the_optimum() {
    for seed in 0..200 {
        let random = &mut random(seed);
        let [x, y, w, q] = [0; 4].map(|_| random.random_range(1..9));
        let most = x + y + w + q;
        let mut lives = vec![life(0, 3, x), life(2, 5, y), life(1, 4, w), life(2, 3, q)];
        let fill = [most - x, most - x - w, most - y - w, most - y];
        lives.extend([0, 1, 3, 4].into_iter().zip(fill).map(|(at, bytes)| life(at, at + 1, bytes)));
        let solution = super::solve(&lives, STEPS);
        let bytes = solution.packing.bytes;
        assert!(solution.proven() && bytes > most, "seed {seed}: {lives:?}");
        let line = line(&lives).unwrap();
        for height in most..bytes {
            assert_eq!(search(&line, height, STEPS), Attempt::Exhausted, "seed {seed}, {height}: {lives:?}");
        }
        assert!(matches!(search(&line, bytes, STEPS), Attempt::Packed(_)), "seed {seed}: {lives:?}");
    }
}

#[test]
fn lives_that_lie_on_no_line_have_none() {
    let mut lives = vec![life(0, 6, 4), life(0, 3, 2), life(3, 6, 2), life(2, 4, 6)];
    let found = line(&lives).unwrap();
    assert_eq!(found.spans, [(0, 2), (0, 1), (1, 2), (0, 2)]);
    assert_eq!((found.sizes, found.loads), (vec![4, 2, 2, 6], vec![12, 12]));
    lives[0].gaps = vec![Gap { lower: 2, upper: 4, window: None }];
    assert_eq!(line(&lives), None);
    lives[0].gaps.clear();
    lives[3].block = Block { alignment: 4, ..Block::of_bytes(6) };
    assert_eq!(line(&lives), None);
    lives[3].block = Block { offset: Some(2), ..Block::of_bytes(6) };
    assert_eq!(line(&lives), None);
}

/// A rectangle cut through again and again; of so many pieces the largest, along and across by turns or at random.
fn cut(count: usize, width: i64, height: u64, most: usize, by_turns: bool, seed: u64) -> Vec<Life> {
    let random = &mut random(seed);
    let mut pieces = vec![(0, width, height, 0)];
    while pieces.len() < count {
        let few: Vec<usize> = (0..most).map(|_| random.random_range(0..pieces.len())).collect();
        let area = |i: &usize| (pieces[*i].1 - pieces[*i].0) as u64 * pieces[*i].2;
        let i = few.into_iter().max_by_key(area).unwrap();
        let (from, to, high, depth) = pieces[i];
        let across = if by_turns { depth % 2 == 0 } else { random.random_range(0..2) == 0 };
        if (across || high == 1) && to - from > 1 {
            let at = random.random_range(from + 1..to);
            pieces[i] = (from, at, high, depth + 1);
            pieces.push((at, to, high, depth + 1));
        } else if high > 1 {
            let at = random.random_range(1..high);
            pieces[i] = (from, to, at, depth + 1);
            pieces.push((from, to, high - at, depth + 1));
        }
    }
    pieces.sort_unstable();
    pieces.into_iter().map(|(from, to, high, _)| life(from, to, high)).collect()
}

/// `missing` of the pieces are left out.
#[test]
fn rectangles_that_were_cut_up_are_put_together_again() {
    let cases = [
        (20, 10, 20, 4, 0),
        (60, 10, 20, 4, 0),
        (60, 30, 200, 4, 0),
        (60, 1000, 1000, 4, 0),
        (60, 30, 200, 4, 3),
        (100, 20, 30, 4, 0),
        (100, 50, 400, 4, 0),
        (120, 12, 1000, 100, 0),
        (150, 20, 300, 4, 0),
        (150, 200, 1000, 4, 0),
        (150, 5000, 10_000, 4, 0),
    ];
    for (count, width, height, most, missing) in cases {
        for seed in 0..4 {
            let mut lives = cut(count, width, height, most, seed % 2 == 0, seed);
            let random = &mut random(seed);
            for _ in 0..missing {
                lives.swap_remove(random.random_range(0..lives.len()));
            }
            let solution = super::solve(&lives, 100_000_000);
            let what = format!("{count} of {width} x {height}, {most}, {missing} missing, seed {seed}");
            println!("{what}: {} steps", solution.work);
            assert!(solution.proven() && solution.packing.bytes <= height, "{what}: {solution:?}");
        }
    }
}

/// Every joined block is made of blocks that fill it. So, wherever it lies, it needs exactly what they need together.
#[test]
fn joined_blocks_fill_their_pieces() {
    let mut joined = 0;
    for seed in 0..300 {
        let width = [6, 20, 200][seed as usize % 3];
        let mut lives = cut(40, width, 60, 4, seed % 2 == 0, seed);
        // None is to be without neighbours.
        lives.push(life(0, width, 1));
        let Some(line) = line(&lives) else { panic!("seed {seed}: {lives:?}") };
        let (pieces, _) = join(&line, seed);
        joined += lives.len() - pieces.len();
        let mut blocks: Vec<usize> = pieces.iter().flat_map(|p| p.blocks.iter().map(|(i, _)| *i)).collect();
        blocks.sort_unstable();
        assert_eq!(blocks, (0..lives.len()).collect::<Vec<_>>(), "seed {seed}");
        for piece in &pieces {
            for section in piece.span.0..piece.span.1 {
                let here = piece
                    .blocks
                    .iter()
                    .filter(|(i, _)| (line.spans[*i].0..line.spans[*i].1).contains(&section));
                let mut here: Vec<(u64, u64)> = here.map(|(i, at)| (*at, at + line.sizes[*i])).collect();
                here.sort_unstable();
                let end = here.iter().try_fold(0, |end, (from, to)| (end == *from).then_some(*to));
                assert_eq!(end, Some(piece.size), "seed {seed}, section {section}: {piece:?}");
            }
            let within =
                |(i, _): &(usize, u64)| piece.span.0 <= line.spans[*i].0 && line.spans[*i].1 <= piece.span.1;
            assert!(piece.blocks.iter().all(within), "seed {seed}: {piece:?}");
        }
    }
    assert!(joined > 1000, "{joined}");
}

/// Two blocks that are alone where they are, and as high as each other, are hardly so by accident; small ones among many
/// are.
#[test]
fn joints_are_no_accidents() {
    let mut lives = vec![life(0, 4, 5000), life(4, 9, 5000)];
    lives.extend((0..9).flat_map(|at| [life(at, at + 1, 3), life(at, at + 1, 2), life(at, at + 1, 4)]));
    let line = line(&lives).unwrap();
    let mut made = 0;
    for seed in 0..100 {
        let (pieces, _) = join(&line, seed);
        let whole = pieces.iter().find(|piece| piece.blocks.len() > 1);
        made += usize::from(whole.is_some_and(|piece| piece.span == (0, line.loads.len())));
        let small = pieces.iter().filter(|piece| piece.size < 5000);
        assert!(small.into_iter().all(|piece| piece.blocks.len() == 1), "seed {seed}: {pieces:?}");
    }
    assert!(made > 80, "{made}");
}
