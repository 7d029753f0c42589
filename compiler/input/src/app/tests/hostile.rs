//! Damaged application files: each is refused or accepted, none stops the program.

use std::time::Instant;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::application;

const CASES: usize = 12_000;

const SOUND: [&str; 2] = [
    r##"#![enable(implicit_some)]
( // an application
  name: "adaptive-classifier", /* J follows */
  cnns: [
    (name: "cnn1", model: r#"cnn1.onnx"#, inputs: {"image": (type: u8, layout: HWC, mean: [1.5, 2, 3], scale: 0.5)}),
    (name: "cnn2", model: "cnn2.onnx", precision: fp32, shapes: {"image": [1, 3, 8, 6]},
     partitions: [(name: "p2", upto: "relu2", processor: "gpu", schedule: [["conv1", "conv2"]]), (name: "p3")]),
  ],
  parallel: [["cnn1"], ["p2", "p3"]],
  constraints: (memory: "8MB", fps: {"cnn2": 71}),
  search: (seed: 1, crossover: 0.9),
  storage: edges, rows: {"cnn1/add": 4}, fuse: true, threads: 2,
)"##,
    r#"(cnns: [(model: "builtin:é", precisions: {"conv1": float})], rows: all, constraints: (fps: 7.5, memory: min))"#,
];

const TOKENS: [&str; 28] = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "\"",
    "\\",
    "r#\"",
    "#",
    "/*",
    "*/",
    "//",
    "Some(",
    "None",
    "NaN",
    "-1",
    "1e999",
    "18446744073709551616",
    "0x",
    "'",
    "\u{0}",
    "é",
    "\u{1F600}",
    "\n",
    "conv1",
];

fn mutated(random: &mut ChaCha8Rng) -> String {
    let mut bytes = SOUND[random.random_range(0..SOUND.len())].as_bytes().to_vec();
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..bytes.len().max(1)).min(bytes.len());
        let other = random.random_range(0..bytes.len().max(1)).min(bytes.len());
        let token = TOKENS[random.random_range(0..TOKENS.len())].as_bytes();
        match random.random_range(0..6) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
            2 => drop(bytes.splice(at..at, token.iter().copied())),
            3 => drop(bytes.drain(at.min(other)..at.max(other))),
            4 => bytes = words_swapped(&bytes, random),
            _ => {
                let copy = bytes[at.min(other)..at.max(other)].to_vec();
                bytes.splice(at..at, copy);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn words_swapped(bytes: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut words: Vec<&[u8]> = bytes.split_inclusive(|b| b" ,:()[]{}".contains(b)).collect();
    if !words.is_empty() {
        let (a, b) = (random.random_range(0..words.len()), random.random_range(0..words.len()));
        words.swap(a, b);
    }
    words.concat()
}

/// Parses, resolves and, where refused, shows: all of what a user's text can reach.
fn survives(text: &str) -> bool {
    match application(text) {
        Ok(_) => true,
        Err(error) => {
            let mut shown = String::new();
            let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::none());
            handler.render_report(&mut shown, error.as_ref()).expect("a message can be shown");
            false
        }
    }
}

#[test]
fn mutated_files_are_refused_or_accepted() {
    let start = Instant::now();
    let mut random = ChaCha8Rng::seed_from_u64(2);
    assert!(SOUND.iter().all(|text| survives(text)));
    let accepted = (0..CASES).filter(|_| survives(&mutated(&mut random))).count();
    println!(
        "{CASES} mutated files: {accepted} accepted, {} refused, {:?}",
        CASES - accepted,
        start.elapsed()
    );
    // Both paths are really taken.
    assert!((100..CASES - 100).contains(&accepted), "{accepted}");
}

#[test]
fn deep_or_long_files_end_soon() {
    let start = Instant::now();
    for unit in [
        "(",
        "[",
        "{",
        "Some(",
        "/*",
        "a(",
        "(cnns:[",
        "(cnns:[(model:\"",
        "#![enable(",
        "r#",
        "\"",
        ",",
        "//",
    ] {
        for prefix in
            ["", "(cnns: ", "(rows: ", "(constraints: (fps: ", "(cnns: [(model: \"a.onnx\", inputs: "]
        {
            assert!(!survives(&format!("{prefix}{}", unit.repeat(100_000))), "{prefix}{unit}");
        }
    }
    let many = "(model: \"a.onnx\"),".repeat(2000);
    assert!(!survives(&format!("(cnns: [{many}])")));
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}
