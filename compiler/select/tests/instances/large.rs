//! Instances of the size of GoogLeNet, with 57 primitives for each convolution, as in the TASO paper.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use serde_json::{Value, json};

/// Primitives of a convolution.
const PRIMITIVES: usize = 57;

/// Families with the time and the memory of their primitives, other than the plain loops.
const FAMILIES: [(&str, f64, f64); 6] = [
    ("direct", 1.0, 1.0),
    ("im2col", 0.35, 6.0),
    ("im2row", 0.3, 6.5),
    ("kn2row", 0.4, 2.0),
    ("mec", 0.45, 3.0),
    ("winograd", 0.2, 5.0),
];

const LAYOUTS: [&str; 3] = ["CHW", "HCW", "HWC"];

struct Network {
    layers: Vec<Value>,
    edges: Vec<Value>,
    random: ChaCha8Rng,
    /// Whether pools have primitives too.
    pools: bool,
}

/// GoogLeNet: 57 convolutions, 13 pools and 9 concats in 9 inception modules. If `pools`, pools have as many primitives as
/// convolutions: 70 × 57 = 3990 variables, the size in Table 1 of the TASO paper.
pub fn googlenet(pools: bool, random: ChaCha8Rng) -> String {
    let mut network = Network { layers: vec![], edges: vec![], random, pools };
    let mut last = network.convolution("conv1", &[], 900.0, 12_000.0);
    last = network.pool("pool1", &last, 3_000.0);
    last = network.convolution("conv2_reduce", &[&last], 120.0, 3_000.0);
    last = network.convolution("conv2", &[&last], 2_500.0, 3_000.0);
    last = network.pool("pool2", &last, 2_300.0);
    for module in 0..9 {
        if module == 2 || module == 7 {
            last = network.pool(&format!("pool_{module}"), &last, 1_000.0);
        }
        let size = [1_500.0, 1_900.0, 800.0, 800.0, 800.0, 850.0, 1_100.0, 300.0, 350.0][module];
        let name = |part: &str| format!("inception{module}_{part}");
        let one = network.convolution(&name("1x1"), &[&last], size * 0.3, size);
        let three = network.convolution(&name("3x3_reduce"), &[&last], size * 0.4, size);
        let three = network.convolution(&name("3x3"), &[&three], size, size);
        let five = network.convolution(&name("5x5_reduce"), &[&last], size * 0.1, size);
        let five = network.convolution(&name("5x5"), &[&five], size * 0.5, size * 0.7);
        let pool = network.pool(&name("pool"), &last, size);
        let pool = network.convolution(&name("pool_proj"), &[&pool], size * 0.2, size);
        last = network.pass(&name("concat"), &[&one, &three, &five, &pool], size);
    }
    json!({ "layers": network.layers, "edges": network.edges }).to_string()
}

impl Network {
    /// Between 0.6 and 1.4, to three decimals of what is multiplied.
    fn around(&mut self, value: f64) -> f64 {
        (value * self.random.random_range(0.6..1.4) * 1000.0).round() / 1000.0
    }

    fn edge(&mut self, from: &str, to: &str, size: f64) {
        let pairs = [("CHW", "HCW"), ("HCW", "CHW"), ("HCW", "HWC"), ("HWC", "HCW"), ("CHW", "HWC")];
        let mut conversions = Vec::new();
        for (input, output) in pairs {
            let time = self.around(size / 50.0);
            conversions.push(json!({ "in": input, "out": output, "time": time }));
        }
        self.edges.push(json!({ "from": from, "to": to, "conversions": conversions }));
    }

    fn convolution(&mut self, name: &str, from: &[&str], work: f64, size: f64) -> String {
        let mut options = Vec::new();
        for at in 0..PRIMITIVES {
            let (family, time, memory) = FAMILIES[at % FAMILIES.len()];
            let (input, output) = (LAYOUTS[at / 3 % 3], LAYOUTS[at % 3]);
            let primitive = if at == 0 { "direct-sum2d-chw-chw".into() } else { format!("{family}-{at}") };
            let time = self.around(work * if at == 0 { 2.0 } else { time });
            let memory = self.around(size * memory);
            options.push(
                json!({ "primitive": primitive, "in": input, "out": output, "time": time, "memory": memory }),
            );
        }
        self.layer(name, "conv", from, options, size)
    }

    fn pool(&mut self, name: &str, from: &str, size: f64) -> String {
        match self.pools {
            true => self.convolution(name, &[from], size / 20.0, size),
            false => self.pass(name, &[from], size),
        }
    }

    fn pass(&mut self, name: &str, from: &[&str], size: f64) -> String {
        let mut options = Vec::new();
        for layout in LAYOUTS {
            let time = self.around(size / 100.0);
            options.push(
                json!({ "primitive": format!("pass-{layout}"), "in": layout, "out": layout, "time": time, "memory": 0 }),
            );
        }
        self.layer(name, "pass", from, options, size)
    }

    fn layer(&mut self, name: &str, kind: &str, from: &[&str], options: Vec<Value>, size: f64) -> String {
        self.layers.push(json!({ "name": name, "kind": kind, "options": options }));
        for from in from {
            self.edge(from, name, size);
        }
        name.into()
    }
}
