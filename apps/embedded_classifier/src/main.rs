//! Classifies one image by a network whose memory was planned when this program was built.

include!(concat!(env!("OUT_DIR"), "/classifier.rs"));

use classifier::{Arena, Inputs, Model, Outputs};

fn main() {
    // An image of 32 rows of 32 pixels of 3 colors.
    let image = std::array::from_fn(|at| (at % 96) as f32 / 96.0);
    let mut scores = [0.0; 10];
    let arena = Arena::take().expect("nobody else has taken it");
    let mut model = Model::new(arena);
    model.infer(Inputs { input: &image }, Outputs { output: &mut scores });
    let (class, score) = scores.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).expect("ten scores");
    println!("class {class}, score {score}");
    println!("arena {} bytes, weights {} bytes", classifier::ARENA_BYTES, classifier::WEIGHT_BYTES);
}
