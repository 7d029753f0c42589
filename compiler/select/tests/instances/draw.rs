//! Random instances.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

/// Shapes of networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Graph {
    /// Each layer reads the one before it.
    Chain,
    /// Branches from one layer to one concat.
    Inception,
    /// An addition of a layer and a chain behind it.
    Residual,
    /// Each layer reads all before it.
    Dense,
    /// Any of these, with few conversions.
    Broken,
}

pub const GRAPHS: [Graph; 5] = [Graph::Chain, Graph::Inception, Graph::Residual, Graph::Dense, Graph::Broken];

const LAYOUTS: [&str; 4] = ["CHW", "HCW", "HWC", "CHW8"];

const FAMILIES: [&str; 4] = ["direct", "im2col", "kn2row", "winograd"];

/// Random numbers, other ones for each `stream`, from `PROPTEST_RNG_SEED`.
pub fn random(stream: u64) -> ChaCha8Rng {
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = ChaCha8Rng::seed_from_u64(seed.unwrap_or(1));
    random.set_stream(stream);
    random
}

/// A time or a memory. Few values, so that there are ties; eighths, whose sums are exact in floats.
fn number(random: &mut ChaCha8Rng, most: u32) -> f64 {
    f64::from(random.random_range(0..=most * 8)) / 8.0
}

/// A small instance in JSON.
pub fn draw(graph: Graph, random: &mut ChaCha8Rng) -> String {
    let edges = shape(graph, random);
    let count = edges.iter().map(|(_, to)| to + 1).max().unwrap_or(1);
    let layouts = random.random_range(2..=LAYOUTS.len());
    let most = if random.random_range(0..3) == 0 { 2 } else { 20 };
    let layers: Vec<Value> = (0..count).map(|layer| draw_layer(layer, layouts, most, random)).collect();
    let density = if graph == Graph::Broken { 2 } else { 7 };
    let edge = |(from, to): (usize, usize)| {
        let mut conversions = Vec::new();
        let layouts = &LAYOUTS[..layouts];
        for input in layouts {
            for output in layouts.iter().filter(|output| *output != input) {
                if random.random_range(0..8) < density {
                    let time = number(random, most);
                    conversions.push(json!({ "in": input, "out": output, "time": time }));
                }
            }
        }
        json!({ "from": format!("l{from}"), "to": format!("l{to}"), "conversions": conversions })
    };
    let edges: Vec<Value> = edges.into_iter().map(edge).collect();
    json!({ "layers": layers, "edges": edges }).to_string()
}

fn draw_layer(layer: usize, layouts: usize, most: u32, random: &mut ChaCha8Rng) -> Value {
    let name = format!("l{layer}");
    if random.random_range(0..3) == 0 {
        let option = |layout: &&str| {
            let (time, memory) = match random.random_range(0..2) {
                0 => (0.0, 0.0),
                _ => (number(random, 2), number(random, 2)),
            };
            json!({ "primitive": "pass", "in": layout, "out": layout, "time": time, "memory": memory })
        };
        let options: Vec<Value> = LAYOUTS[..layouts].iter().map(option).collect();
        return json!({ "name": name, "kind": "pass", "options": options });
    }
    let sum2d = json!({ "primitive": "direct-sum2d-chw-chw", "in": "CHW", "out": "CHW",
        "time": number(random, 2 * most), "memory": number(random, 1) });
    let mut options = vec![sum2d];
    for at in 1..random.random_range(2..=4) {
        let mut layout = || LAYOUTS[random.random_range(0..layouts)];
        let (input, output) = (layout(), layout());
        let family = FAMILIES[random.random_range(0..FAMILIES.len())];
        options.push(json!({ "primitive": format!("{family}-{at}"), "in": input, "out": output,
            "time": number(random, most), "memory": number(random, most) }));
    }
    // Some convolutions have no way to compute them in CHW.
    if options.len() > 1 && random.random_range(0..3) == 0 {
        options.remove(0);
    }
    json!({ "name": name, "kind": "conv", "options": options })
}

/// Edges of a small graph, its layers in an order.
fn shape(graph: Graph, random: &mut ChaCha8Rng) -> Vec<(usize, usize)> {
    match graph {
        Graph::Chain => (1..random.random_range(2..=6)).map(|layer| (layer - 1, layer)).collect(),
        Graph::Inception => {
            // The branches of one to two layers end in one.
            let lengths: Vec<usize> =
                (0..random.random_range(2..=3)).map(|_| random.random_range(1..=2)).collect();
            let end = 1 + lengths.iter().sum::<usize>().min(4);
            let mut edges = Vec::new();
            let mut at = 1;
            for length in lengths {
                let mut last = 0;
                for _ in 0..length {
                    if at < end {
                        edges.push((last, at));
                        (last, at) = (at, at + 1);
                    }
                }
                edges.push((last, end));
            }
            edges
        }
        Graph::Residual => {
            let count = random.random_range(3..=6);
            let mut edges: Vec<(usize, usize)> = (1..count).map(|layer| (layer - 1, layer)).collect();
            edges.push((0, 2));
            if count > 4 {
                edges.push((2, 4));
            }
            edges
        }
        Graph::Dense => {
            let count = random.random_range(3..=5);
            (1..count).flat_map(|to| (0..to).map(move |from| (from, to))).collect()
        }
        Graph::Broken => shape(GRAPHS[random.random_range(0..4)], random),
    }
}
