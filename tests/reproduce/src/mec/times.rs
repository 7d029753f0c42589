//! The page's part on time, measured by one thread of the machine that makes the page.

use std::fmt::Write;
use std::time::Instant;

use csdfc_command::picture::chart::{Chart, Series};
use csdfc_kernels::Isa;

use super::layers::{Layer, STRIDES, TABLE_2, TABLE_3, cv1};
use super::methods::{Convolution, Method};
use crate::Tell;

/// Images at a time: one, as on the paper's phone; a few; and as many as on its server.
const BATCHES: [usize; 3] = [1, 4, 32];

/// Rounds, in each of which every method has a turn.
const ROUNDS: usize = 7;

/// Seconds that a turn takes at least. A method may convolve its batch several times in a turn; the fastest time
/// counts.
const TURN: f64 = 0.02;

/// The times of methods for a layer: seconds per image, by method and round.
struct LayerTimes {
    took: Vec<(Method, Vec<f64>)>,
}

impl LayerTimes {
    fn run(isa: Isa, layer: &Layer, images: usize, methods: &[Method], tell: Tell<'_>) -> LayerTimes {
        // Times do not depend on values, as long as they are normal numbers.
        let value = |i: usize| (i * 7919 % 257) as f32 / 257.0 - 0.5;
        let values = |count: usize| (0..count).map(value).collect::<Vec<f32>>();
        let weights = values(layer.filters * layer.channels * layer.kernel.pow(2));
        let batch = values(layer.size.pow(2) * layer.channels).repeat(images);
        let mut output = vec![0.0; images * layer.output().pow(2) * layer.filters];
        let ready: Vec<(Method, Convolution)> = methods
            .iter()
            .filter_map(|method| Some((*method, method.convolution(layer, images, &weights)?)))
            .collect();
        let most = ready.iter().map(|(_, convolution)| convolution.workspace).max();
        let mut workspace = vec![0.0; most.unwrap_or(0)];
        let mut turn = |convolution: &Convolution, times: usize| {
            let mut one = || {
                let start = Instant::now();
                convolution.run(isa, layer, &batch, &mut workspace, &mut output);
                start.elapsed().as_secs_f64()
            };
            (0..times).map(|_| one()).fold(f64::INFINITY, f64::min)
        };
        let mut times = Vec::new();
        let mut took: Vec<(Method, Vec<f64>)> = Vec::new();
        for (method, convolution) in &ready {
            // The first turn also brings memory into being.
            times.push((TURN / turn(convolution, 1)).ceil().clamp(1.0, 1000.0) as usize);
            took.push((*method, Vec::new()));
        }
        for round in 1..=ROUNDS {
            tell(&format!(
                "{} of stride {}, {images} images: round {round} of {ROUNDS}",
                layer.name, layer.stride
            ));
            for (((_, convolution), times), (_, took)) in ready.iter().zip(&times).zip(&mut took) {
                took.push(turn(convolution, *times) / images as f64);
            }
        }
        LayerTimes { took }
    }

    fn of(&self, method: Method) -> Option<&[f64]> {
        self.took.iter().find(|(of, _)| *of == method).map(|(_, took)| took.as_slice())
    }

    /// The ratio of the slowest round of each method to its fastest.
    fn spreads(&self) -> Vec<f64> {
        let [least, most] = [f64::min as fn(f64, f64) -> f64, f64::max];
        let of = |took: &Vec<f64>| {
            let over = |pick: fn(f64, f64) -> f64| took.iter().copied().reduce(pick).unwrap_or(f64::NAN);
            over(most) / over(least)
        };
        self.took.iter().map(|(_, took)| of(took)).collect()
    }

    /// The median, in milliseconds.
    fn milliseconds(&self, method: Method) -> Option<f64> {
        Some(1e3 * median(self.of(method)?))
    }

    /// How many times faster a method is than another one: the median over rounds.
    fn faster(&self, method: Method, than: Method) -> Option<f64> {
        let [own, other] = [self.of(method)?, self.of(than)?];
        Some(median(&own.iter().zip(other).map(|(own, other)| other / own).collect::<Vec<_>>()))
    }
}

/// The median of some numbers.
fn median(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |i: usize| sorted.get(i).copied().unwrap_or(f64::NAN);
    if sorted.len() % 2 == 1 {
        at(sorted.len() / 2)
    } else {
        (at(sorted.len() / 2 - 1) + at(sorted.len() / 2)) / 2.0
    }
}

/// All layers with a batch.
struct BatchTimes {
    images: usize,
    layers_times: Vec<LayerTimes>,
}

impl BatchTimes {
    fn methods(&self) -> impl Iterator<Item = Method> {
        let images = self.images;
        Method::ALL.into_iter().filter(move |method| images > 1 || *method != Method::MecB)
    }

    /// How many times faster a method is, by layer. Layers that one of the two methods cannot convolve are left out.
    fn ratios(&self, method: Method, than: Method) -> Vec<(&'static str, f64)> {
        let of = |(layer, layer_times): (&Layer, &LayerTimes)| {
            Some((layer.name, layer_times.faster(method, than)?))
        };
        TABLE_2.iter().zip(&self.layers_times).filter_map(of).collect()
    }

    /// On how many layers of how many a method is faster.
    fn wins(&self, method: Method, than: Method) -> String {
        let ratios = self.ratios(method, than);
        format!("{} of {}", ratios.iter().filter(|(_, ratio)| *ratio > 1.0).count(), ratios.len())
    }

    /// How many times faster a method convolves all layers than im2col does.
    fn overall(&self, method: Method) -> f64 {
        let sum = |of: Method| {
            self.layers_times.iter().filter_map(|layer_times| layer_times.milliseconds(of)).sum::<f64>()
        };
        sum(Method::Im2col) / sum(method)
    }

    fn section(&self) -> String {
        let mut text = format!("\n### Batch {}\n\n| layer |", self.images);
        self.methods().for_each(|method| text.push_str(&format!(" {} |", method.name())));
        text.push_str("\n| --- |");
        text.push_str(&" --- |".repeat(self.methods().count()));
        text.push('\n');
        for (layer, layer_times) in TABLE_2.iter().zip(&self.layers_times) {
            let _ = write!(text, "| {} |", layer.name);
            for method in self.methods() {
                let found = layer_times.milliseconds(method).zip(layer_times.faster(method, Method::Im2col));
                let _ = match found {
                    Some((own, _)) if method == Method::Im2col => write!(text, " {own:.2} |"),
                    Some((own, ratio)) => write!(text, " {own:.2} ({ratio:.2}) |"),
                    None => write!(text, " – |"),
                };
            }
            text.push('\n');
        }
        let mut ratios = self.ratios(Method::Mec, Method::Im2col);
        ratios.sort_by(|a, b| a.1.total_cmp(&b.1));
        let only: Vec<f64> = ratios.iter().map(|(_, ratio)| *ratio).collect();
        let [least, most] = [ratios.first(), ratios.last()].map(|of| of.copied().unwrap_or(("", f64::NAN)));
        let _ = write!(
            text,
            "\nMEC is faster than im2col on {} layers; the median ratio is {:.2}, from {:.2} ({}) to {:.2} ({}). It is faster\n\
             than Winograd on {} whole and {} by strips, and than the indirect product on {}. By strips MEC is faster than\n\
             im2col on {}.\n",
            self.wins(Method::Mec, Method::Im2col),
            median(&only),
            least.1,
            least.0,
            most.1,
            most.0,
            self.wins(Method::Mec, Method::WinogradWhole),
            self.wins(Method::Mec, Method::WinogradStrip),
            self.wins(Method::Mec, Method::Indirect),
            self.wins(Method::MecStrip, Method::Im2col),
        );
        text
    }
}

/// The processor's name for itself.
fn processor() -> String {
    let known = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = known.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.to_owned())
}

/// The sections, and a figure.
pub fn sections(tell: Tell<'_>) -> (String, String) {
    let isa = Isa::detect();
    let all: Vec<BatchTimes> = BATCHES
        .iter()
        .map(|&images| {
            let run = |layer: &Layer| LayerTimes::run(isa, layer, images, &Method::ALL, tell);
            BatchTimes { images, layers_times: TABLE_2.iter().map(run).collect() }
        })
        .collect();
    let mut text = format!(
        "\n## Times\n\n\
         Measured with `{}` instructions on \"{}\", by one thread: milliseconds of an image, the median of {ROUNDS}\n\
         rounds in which the methods take turns (a short turn has several runs, and the fastest counts). In brackets\n\
         how many times faster than im2col, the median over rounds; below 1 it is slower.\n",
        isa.name(),
        processor(),
    );
    text.push_str(WAYS);
    let spreads: Vec<f64> = all
        .iter()
        .flat_map(|layers_times| &layers_times.layers_times)
        .flat_map(LayerTimes::spreads)
        .collect();
    let _ = writeln!(
        text,
        "\nThe machine may have had other work: the slowest round of a method took {:.2} times as long as its fastest, in the\nmedian.",
        median(&spreads),
    );
    all.iter().for_each(|layers_times| text.push_str(&layers_times.section()));
    text.push_str(REASONS);
    if let Some(single) = all.first() {
        text.push_str(&table_3(single));
    }
    let (sweep, figure) = figure_4a(isa, tell);
    text.push_str(&sweep);
    text.push_str(&headlines(&all));
    (text, figure)
}

const WAYS: &str = "
im2col, Winograd and the indirect product take image by image. MEC is Algorithm 2 with T = 100 for the whole batch, and its L
is of the batch. All multiply with the same code, and the filters of all lie in panels.
";

const REASONS: &str = "
### Where MEC is not faster, and why

MEC multiplies as often as im2col, with the same code. It saves copying. Each element of a window that im2col
copies is multiplied by all filters. So copying is much of the time where there are few filters (64 to 128 in cv1 to cv4
and cv7 to cv9), the more so where the windows do not stay in a cache, and little where there are many (256 or 512 in cv5,
cv6, cv11 and cv12). In return, each of MEC's products makes only one row of the output. A row of
cv12 has 5 pixels and one of cv6 10, fewer than the 12 of a tile with `avx512`. Besides, MEC reads the filters, 9.4 MB
of cv12, again for each row, while im2col reads them for all rows at once. Solution A makes rows of all images together,
which mends this (cv12 in a batch of 32, beside *B alone*). Where rows are wide enough by themselves, A only adds a pass
over the output.

The paper's server ran several threads, and here it is one. Winograd's F(2×2, 3×3) multiplies 2.25 times less than MEC,
and so is slower only where the transforms take longer than what they save, for few channels (cv7) or, whole, for many tiles
(cv8). The indirect product copies nothing.
";

/// Table 3's times.
fn table_3(single: &BatchTimes) -> String {
    let mut text = String::from(
        "\n### Table 3: times\n\nMilliseconds of all occurrences of a layer, one image. The paper's are a phone's.\n\n\
         | layer | times | im2col: paper | csdfc | MEC: paper | csdfc |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    let (mut print, mut ours) = ([0.0; 2], [0.0; 2]);
    for row in &TABLE_3 {
        let layer_times = TABLE_2.iter().zip(&single.layers_times).find(|(layer, _)| layer.name == row.layer);
        let took = |method| {
            layer_times.and_then(|(_, layer_times)| layer_times.milliseconds(method)).unwrap_or(f64::NAN)
        };
        let own = [Method::Im2col, Method::Mec].map(|method| row.count as f64 * took(method));
        for i in 0..2 {
            print[i] += row.time[i];
            ours[i] += own[i];
        }
        let [im2col, mec] = row.time;
        let _ = writeln!(
            text,
            "| {} | {} | {im2col} | {:.1} | {mec} | {:.1} |",
            row.layer, row.count, own[0], own[1]
        );
    }
    let _ = writeln!(text, "| sum | | {:.1} | {:.1} | {:.1} | {:.1} |", print[0], ours[0], print[1], ours[1]);
    text
}

/// cv1 with other strides, in the server's batch.
fn figure_4a(isa: Isa, tell: Tell<'_>) -> (String, String) {
    let images = BATCHES[BATCHES.len() - 1];
    let mut text = format!(
        "\n### Figure 4a: runtime\n\ncv1 in a batch of {images}, milliseconds of an image.\n\n\
         ![Runtime over strides](figure-4a-runtime.svg)\n\n\
         | stride | im2col | MEC | times faster |\n| --- | --- | --- | --- |\n"
    );
    let mut points = Vec::new();
    for stride in STRIDES {
        let layer_times = LayerTimes::run(isa, &cv1(stride), images, &[Method::Im2col, Method::Mec], tell);
        let took = |method| layer_times.milliseconds(method).unwrap_or(f64::NAN);
        let ratio = layer_times.faster(Method::Mec, Method::Im2col).unwrap_or(f64::NAN);
        let [im2col, mec] = [Method::Im2col, Method::Mec].map(took);
        let _ = writeln!(text, "| {stride} | {im2col:.2} | {mec:.2} | {ratio:.2} |");
        points.push([stride as f64, ratio]);
    }
    let chart = Chart {
        title: "cv1, 11×11 filters: time of im2col to that of MEC".into(),
        x: "stride".into(),
        y: "times faster".into(),
        lines: vec![Series { name: "runtime".into(), points }],
    };
    (text, chart.svg())
}

/// The headlines of time.
fn headlines(all: &[BatchTimes]) -> String {
    let batch = |images: usize| all.iter().find(|layers_times| layers_times.images == images);
    let overall = |images| batch(images).map_or(f64::NAN, |layers_times| layers_times.overall(Method::Mec));
    let most = |images| {
        let ratios = batch(images)
            .map(|layers_times| layers_times.ratios(Method::Mec, Method::Im2col))
            .unwrap_or_default();
        let most = ratios.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
        most.map_or_else(String::new, |(layer, ratio)| format!("{ratio:.2} ({layer})"))
    };
    let wins = |images, than| {
        batch(images).map_or_else(String::new, |layers_times| layers_times.wins(Method::Mec, than))
    };
    format!(
        "\n### The headlines of time\n\n\
         | MEC | paper | csdfc |\n| --- | --- | --- |\n\
         | times faster than im2col, all layers, batch 1 | 1.2 (phone) | {:.2} |\n\
         | at most | 1.9 (cv6) | {} |\n\
         | times faster than im2col, all layers, batch 32 | 8.8 (server) | {:.2} |\n\
         | at most | | {} |\n\
         | faster than Winograd, batch 1 | 5 of 7 (phone) | {} whole, {} by strips |\n\
         | similar or faster, batch 32 | 3 of 7 (server) | {} whole, {} by strips |\n",
        overall(1),
        most(1),
        overall(32),
        most(32),
        wins(1, Method::WinogradWhole),
        wins(1, Method::WinogradStrip),
        wins(32, Method::WinogradWhole),
        wins(32, Method::WinogradStrip),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small layer by every method, in batches of 1 and 3: all methods make the same output, except for Winograd's
    /// roundings.
    #[test]
    fn all_methods_make_the_same() {
        let layer = Layer { name: "small", size: 9, channels: 5, kernel: 3, filters: 18, stride: 1 };
        let value = |i: usize| (i * 31 % 17) as f32 / 8.0 - 1.0;
        let weights: Vec<f32> = (0..layer.filters * layer.channels * 9).map(value).collect();
        for images in [1, 3] {
            let batch: Vec<f32> = (0..images * 81 * layer.channels).map(value).collect();
            let mut want: Option<Vec<f32>> = None;
            for method in Method::ALL {
                let convolution = method.convolution(&layer, images, &weights).unwrap();
                let mut made = vec![f32::NAN; images * layer.output().pow(2) * layer.filters];
                let mut room = vec![f32::NAN; convolution.workspace];
                convolution.run(Isa::detect(), &layer, &batch, &mut room, &mut made);
                let want = want.get_or_insert_with(|| made.clone());
                for (made, want) in made.iter().zip(want.iter()) {
                    assert!((made - want).abs() <= 1e-4, "{method:?}: {made}, not {want}");
                }
            }
        }
        assert!(Method::WinogradWhole.convolution(&TABLE_2[0], 1, &[0.0; 96 * 3 * 121]).is_none());
    }

    #[test]
    fn ratios_are_medians_over_rounds() {
        assert_eq!([median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 3.0])], [2.0, 2.5]);
        let took = vec![(Method::Im2col, vec![4.0, 2.0, 9.0]), (Method::Mec, vec![2.0, 2.0, 1.0])];
        let layer_times = || LayerTimes { took: took.clone() };
        assert_eq!(layer_times().faster(Method::Mec, Method::Im2col), Some(2.0));
        assert_eq!(layer_times().milliseconds(Method::Mec), Some(2000.0));
        assert_eq!(layer_times().faster(Method::Indirect, Method::Im2col), None);
        assert_eq!(layer_times().spreads(), [4.5, 2.0]);
        let layers_times =
            BatchTimes { images: 1, layers_times: TABLE_2.iter().map(|_| layer_times()).collect() };
        assert_eq!(layers_times.wins(Method::Mec, Method::Im2col), "12 of 12");
        assert_eq!(layers_times.wins(Method::Mec, Method::WinogradWhole), "0 of 0");
        assert_eq!(layers_times.overall(Method::Mec), 2.0);
        let text = layers_times.section();
        assert!(text.contains("\n| cv4 | 4000.00 | 2000.00 (2.00) | – | – | – | – |\n"), "{text}");
    }
}
