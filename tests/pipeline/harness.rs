//! Uses an emitted crate as a program would: each CNN frame by frame, then as a pipeline. The pipeline must hand over
//! the same bytes in the same order, allocate nothing on the way, and end cleanly if a stage panics.

#![allow(non_local_definitions, dead_code, reason = "macros make more than each CNN needs")]

use counting::allocations;
use emitted::{ARENA_BYTES, Arena};

/// An element of a frame.
fn value(frame: usize, element: usize) -> f32 {
    ((frame * 31 + element) * 7919 % 1013) as f32 / 507.0 - 1.0
}

/// Prints the hash of all frames.
fn tell(cnn: &str, frames: &[f32]) {
    let fnv = |hash: u64, x: &f32| (hash ^ u64::from(x.to_bits())).wrapping_mul(0x0000_0100_0000_01b3);
    println!("{cnn}: {:016x}", frames.iter().fold(0xcbf2_9ce4_8422_2325, fnv));
}

/// The frame after all.
const NEVER: usize = usize::MAX;

/// A CNN with one input and one output: its stages, or none where it is no pipeline.
macro_rules! cnn {
    ($cnn:ident, $input:ident: [f32; $row:literal], $output:ident: [[f32; $out_row:literal]; $out_rows:literal]) => {
        mod $cnn {
            use super::*;
            use emitted::$cnn::{InputRows, Model, OutputRows, Outputs};
            use std::ops::Range;

            /// Elements of a frame.
            pub const SIZE: usize = $out_row * $out_rows;

            pub struct Source {
                pub frame: usize,
                pub frames: usize,
                pub panics_at: usize,
            }

            impl InputRows for Source {
                fn $input(&mut self, y: usize, row: &mut [f32; $row]) {
                    assert!(self.frame != self.panics_at, "enough of {}", stringify!($input));
                    row.iter_mut().enumerate().for_each(|(x, to)| *to = value(self.frame, y * $row + x));
                }
            }

            /// One frame alone.
            pub fn infer(model: &mut Model<'_>, frame: usize, made: &mut [f32]) {
                let source = Source { frame, frames: 1, panics_at: NEVER };
                let made = made.first_chunk_mut().expect("a frame");
                model.infer_rows(source, Outputs { $output: made });
            }

            /// Some frames, one after another, without an allocation.
            pub fn infer_all(model: &mut Model<'_>, frames: usize) -> Vec<f32> {
                let mut all = vec![f32::NAN; frames * SIZE];
                let before = allocations();
                let made = all.chunks_exact_mut(SIZE).enumerate();
                made.for_each(|(frame, made)| infer(model, frame, made));
                assert_eq!(allocations(), before, "allocations of {}", stringify!($cnn));
                all
            }

            /// The sink of the frames: each frame must be the expected one.
            pub struct Sink<'e> {
                pub expected: &'e [f32],
                pub made: Vec<f32>,
                pub ended: &'e mut Ended,
                pub panics_at: usize,
            }

            impl<'e> Sink<'e> {
                pub fn new(expected: &'e [f32], ended: &'e mut Ended, panics_at: usize) -> Self {
                    *ended = Ended::default();
                    Sink { expected, made: vec![f32::NAN; SIZE], ended, panics_at }
                }

                pub fn end(&mut self) {
                    let frame = self.ended.frames;
                    let expected = &self.expected[frame * SIZE..][..SIZE];
                    let same = self.made.iter().map(|x| x.to_bits()).eq(expected.iter().map(|x| x.to_bits()));
                    assert!(same, "frame {frame} of {}", stringify!($cnn));
                    self.ended.allocations[usize::from(frame > 0)] = allocations();
                    self.ended.frames += 1;
                    self.made.fill(f32::NAN);
                }
            }

            impl OutputRows for Sink<'_> {
                fn $output(&mut self, y: Range<usize>) -> &mut [f32] {
                    assert!(self.ended.frames != self.panics_at, "enough of {}", stringify!($output));
                    &mut self.made[y.start * $out_row..y.end * $out_row]
                }
            }
        }
    };
}

/// The frames that have left a pipeline.
#[derive(Default)]
struct Ended {
    frames: usize,
    /// Allocations at the end of the first and of the last frame.
    allocations: [usize; 2],
}

/// Runs a CNN with stages: the names of the first and the last.
macro_rules! pipeline {
    ($cnn:ident, $arena:expr, $frames:expr, $first:literal, $last:literal) => {{
        use emitted::PipelineError;
        use emitted::$cnn::{InputFrames, Model, OutputFrames};
        use $cnn::{Sink, Source, infer_all};

        impl InputFrames for Source {
            fn next_frame(&mut self) -> bool {
                self.frame = self.frame.wrapping_add(1);
                self.frame < self.frames
            }
        }

        impl OutputFrames for Sink<'_> {
            fn end_frame(&mut self) {
                self.end();
            }
        }

        let frames: usize = $frames;
        let mut model = Model::new($arena);
        let expected = infer_all(&mut model, frames);
        let source = |panics_at| Source { frame: usize::MAX, frames, panics_at };
        let mut ended = Ended::default();
        for _ in 0..2 {
            let ran = model.pipeline(source(NEVER), Sink::new(&expected, &mut ended, NEVER));
            assert_eq!((ran.expect("no panic"), ended.frames), (frames, frames));
            assert_eq!(ended.allocations[0], ended.allocations[1], "allocations of {}", stringify!($cnn));
        }
        for panics_at in [0, 1, frames - 1] {
            let ran = model.pipeline(source(panics_at), Sink::new(&expected, &mut ended, NEVER));
            assert!(matches!(ran, Err(PipelineError::Panic { stage: $first, .. })), "{ran:?}");
            let ran = model.pipeline(source(NEVER), Sink::new(&expected, &mut ended, panics_at));
            assert!(matches!(ran, Err(PipelineError::Panic { stage: $last, .. })), "{ran:?}");
            assert_eq!(ended.frames, panics_at);
        }
        // After all that it still runs, also frame by frame.
        let ran = model.pipeline(source(NEVER), Sink::new(&expected, &mut ended, NEVER));
        assert_eq!(ran.expect("no panic"), frames);
        assert_eq!(infer_all(&mut model, frames), expected);
        tell(stringify!($cnn), &expected);
    }};
}

cnn!(lenet, input: [f32; 32], output: [[f32; 10]; 1]);
cnn!(skip, l1: [f32; 96], l5: [[f32; 512]; 32]);
cnn!(branch, l1: [f32; 96], l5: [[f32; 512]; 32]);
cnn!(fork, input0: [f32; 48], out: [[f32; 320]; 16]);
cnn!(one, input: [f32; 32], output: [[f32; 10]; 1]);
cnn!(two, l1: [f32; 96], l2: [[f32; 256]; 32]);

fn main() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // Some are expected.
        let text = panic.payload_as_str().unwrap_or_default();
        if !text.starts_with("enough of") {
            usual(panic);
        }
    }));
    let frames = std::env::args().nth(1).and_then(|frames| frames.parse().ok()).expect("a number of frames");
    let mut arena = Box::new(Arena::new());
    assert_eq!(size_of::<Arena>(), ARENA_BYTES);
    println!("arena: {ARENA_BYTES}");
    pipeline!(lenet, &mut *arena, frames, "a", "c");
    pipeline!(skip, &mut *arena, frames, "d", "e");

    let first = one::infer_all(&mut emitted::one::Model::new(&mut *arena), frames);
    let second = two::infer_all(&mut emitted::two::Model::new(&mut *arena), frames);
    let (left, right) = arena.one_and_two();
    let (mut left, mut right) = (emitted::one::Model::new(left), emitted::two::Model::new(right));
    let (mut made_left, mut made_right) = (vec![0.0; first.len()], vec![0.0; second.len()]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let made = made_left.chunks_exact_mut(one::SIZE).enumerate();
            made.for_each(|(frame, made)| one::infer(&mut left, frame, made));
        });
        let made = made_right.chunks_exact_mut(two::SIZE).enumerate();
        made.for_each(|(frame, made)| two::infer(&mut right, frame, made));
    });
    assert!(made_left == first && made_right == second, "at the same time");
    tell("one", &first);
    tell("two", &second);
    pipeline!(branch, &mut *arena, frames, "j", "j");
    pipeline!(fork, &mut *arena, frames, "f", "h");
}
