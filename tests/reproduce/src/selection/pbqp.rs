//! "Optimal DNN primitive selection with partitioned boolean quadratic programming" (Anderson and Gregg, CGO 2018): the
//! bars of its Figures 5 to 7, and the ratios of its Tables 2 and 3, compared with csdfc's figures.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use csdfc_command::error::Error;
use csdfc_command::picture::chart::HeatMap;
use csdfc_input::device::DeviceProfile;
use csdfc_select::baselines::{self, NoBaseline, SUM2D, family};
use csdfc_select::instance::LayerKind;
use csdfc_select::problem::Selection;
use csdfc_select::{Instance, Method, Problem};

use super::{CostedNetwork, OVER_FIRST, cell, command, fastest, left_out, problem, threads};
use crate::Tell;

/// The networks of the evaluation, and three more: their names in the paper, and their built-in names.
const NETWORKS: [(&str, &str); 9] = [
    ("AlexNet", "alexnet"),
    ("VGG B", "vgg_b"),
    ("VGG C", "vgg_c"),
    ("VGG D", "vgg16"),
    ("VGG E", "vgg_e"),
    ("GoogLeNet", "googlenet"),
    ("ResNet-50", "resnet50"),
    ("SqueezeNet", "squeezenet1_0"),
    ("Inception v2", "inception_v2"),
];

/// Tables 2 and 3, in ms: the processor and its threads; then, for AlexNet and GoogLeNet, the times of sums of single
/// channels, the local optimum, the PBQP optimum, and Caffe.
const PRINTED: [(&str, [[f64; 4]; 2]); 4] = [
    ("i5-4570, one thread", [[711.75, 231.75, 100.0, 419.565], [1401.0, 465.25, 249.0, 1267.07]]),
    ("i5-4570, four threads", [[712.25, 186.0, 44.25, 286.518], [1400.25, 261.5, 123.5, 919.196]]),
    ("Cortex-A57, one thread", [[2369.5, 744.25, 461.0, 2341.09], [4544.75, 1695.25, 1025.0, 5782.4]]),
    ("Cortex-A57, four threads", [[2432.5, 639.25, 294.0, 1342.62], [4509.75, 919.25, 547.5, 3707.91]]),
];

/// The networks that Tables 2 and 3 have.
const PRINTED_NETWORKS: [&str; 2] = ["AlexNet", "GoogLeNet"];

/// The times of a network in one way of counting, in µs.
struct Times {
    /// Without any choice.
    plain: Option<f64>,
    /// By family.
    bars: BTreeMap<String, Option<f64>>,
    local: Option<f64>,
    optimum: Option<f64>,
    /// Whether the optimum is proven.
    is_proven: bool,
    /// By family, the convolutions that the optimum computes with it.
    taken: BTreeMap<String, usize>,
    /// Edges on which the optimum converts.
    conversions: usize,
    /// Convolutions that the optimum computes by another primitive than the fastest family would.
    others: usize,
}

/// A network on the device with a number of threads.
struct Column {
    name: &'static str,
    title: String,
    /// Whether plain is the sum of single channels.
    is_sum2d: bool,
    counted: Times,
    executed: Times,
}

/// The page and its figures, by file name. `tell` receives the progress.
///
/// # Errors
/// When the device lacks a processor named `cpu`.
pub fn files(device: &DeviceProfile, tell: Tell<'_>) -> Result<Vec<(String, String)>, Error> {
    let mut page = introduction(device);
    let mut files = Vec::new();
    let mut all: Vec<(u64, Vec<Column>)> = Vec::new();
    for threads in threads(device)? {
        let mut columns = Vec::new();
        let mut missing = Vec::new();
        for network in NETWORKS {
            tell(&format!("{}, {threads} threads", network.0));
            match CostedNetwork::of(network, device, threads)? {
                Some(subject) => columns.push(Column::of(&subject)?),
                None => missing.push(network.1),
            }
        }
        let figure = format!("speed-ups-{threads}.svg");
        // Speed-ups of several threads are relative to one thread, as in the paper.
        let base = all.first().map_or(&columns, |(_, columns)| columns);
        page.push_str(&section(threads, &columns, base, &missing, &figure));
        files.push((figure, heat_map(threads, &columns, base).svg()));
        all.push((threads, columns));
    }
    if all.len() < 2 {
        page.push_str(ONE_THREAD);
    }
    page.push_str(&beside_print(&all));
    page.push_str(&headlines(&all));
    files.insert(0, ("README.md".into(), page));
    Ok(files)
}

impl Column {
    fn of(subject: &CostedNetwork) -> Result<Column, Error> {
        let times = |instance: &Instance, pass_converts: bool| {
            Ok::<_, Error>(Times::of(&problem(subject, instance, pass_converts)?, subject.plain))
        };
        let (counted, executed) = (times(&subject.counted, true)?, times(&subject.executed, false)?);
        let (name, title, is_sum2d) = (subject.name, subject.title(), subject.plain == SUM2D);
        Ok(Column { name, title, is_sum2d, counted, executed })
    }
}

impl Times {
    fn of(problem: &Problem<'_>, plain: &str) -> Times {
        let time = |selection: &Selection| problem.cost(selection).map(|cost| problem.times.value(cost.time));
        let by = |method: Method| fastest(problem, method, None);
        let bars = baselines::families(problem, &problem.all(), plain);
        let time_of = |selection: &Result<Selection, NoBaseline>| selection.as_ref().ok().and_then(&time);
        let mut times = Times {
            plain: time_of(&baselines::everywhere(problem, &problem.all(), plain)),
            bars: bars.iter().map(|bar| (bar.family.clone(), time_of(&bar.selection))).collect(),
            local: by(Method::LocalOptimal).and_then(|chosen| time(&chosen.selection)),
            optimum: None,
            is_proven: false,
            taken: BTreeMap::new(),
            conversions: 0,
            others: 0,
        };
        if let Some(chosen) = by(Method::Exact) {
            times.optimum = time(&chosen.selection);
            times.is_proven = chosen.bound == chosen.cost.time;
            let best = times.best().and_then(|(best, _)| bars.iter().find(|bar| bar.family == best));
            let best = best.and_then(|bar| bar.selection.as_ref().ok());
            let (mut by_family, mut others) = (BTreeMap::new(), 0);
            for (at, layer) in problem.instance.layers.iter().enumerate() {
                if layer.kind == LayerKind::Conv {
                    let option = problem.taken(&chosen.selection, at).option;
                    *by_family.entry(family(&layer.options[option].primitive).into()).or_default() += 1;
                    others += usize::from(best.is_some_and(|best| problem.taken(best, at).option != option));
                }
            }
            (times.taken, times.others) = (by_family, others);
            let taken = |layer: usize| problem.taken(&chosen.selection, layer);
            let converts =
                |edge: &&csdfc_select::instance::Edge| taken(edge.from).output != taken(edge.to).input;
            times.conversions = problem.instance.edges.iter().filter(converts).count();
        }
        times
    }

    /// The fastest family.
    fn best(&self) -> Option<(&str, f64)> {
        let bars = self.bars.iter().filter_map(|(family, time)| Some((family.as_str(), (*time)?)));
        bars.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Every row of the tables, in their order.
    fn rows(&self, families: &BTreeSet<&str>) -> Vec<Option<f64>> {
        let bars = families.iter().map(|family| self.bars.get(*family).copied().flatten());
        std::iter::once(self.plain).chain(bars).chain([self.local, self.optimum]).collect()
    }
}

fn families(columns: &[Column]) -> BTreeSet<&str> {
    columns.iter().flat_map(|column| column.counted.bars.keys().map(String::as_str)).collect()
}

fn row_names(families: &BTreeSet<&str>) -> Vec<String> {
    let bars = families.iter().map(|family| (*family).to_owned());
    std::iter::once("plain".into()).chain(bars).chain(["local optimal".into(), "PBQP".into()]).collect()
}

fn introduction(device: &DeviceProfile) -> String {
    format!(
        "# Optimal DNN primitive selection with PBQP\n\n\
         Made by `{}`; do not edit.\n\
         It sets the figures of Anderson and Gregg\n\
         (CGO 2018) beside what `csdfc select` answers on the device profile `{}` ({}). No network was run for\n\
         it: a time is the sum of the layers' times in the profile, and of the conversions'. tests/benches/README.md says what selections\n\
         take when they run. The bars are those of section 5.5:\n\n\
         - *plain*: every convolution by sum2d, the sum of single channels, a scalar loop nest in CHW;\n\
         - a family: for each convolution the fastest of its primitives, or the plain one where that is faster. This\n\
         \x20 choice ignores conversions, but the time includes them. The paper's *im2* is im2col and im2row here,\n\
         \x20 its *kn2* kn2col and kn2row, its *fft* fft1d and fft2d; indirect, mec and pointwise are not in the\n\
         \x20 paper;\n\
         - *local optimal*: the fastest primitive of each convolution from CHW to CHW. A dash: some convolution has none in the\n\
         \x20 profile;\n\
         - *PBQP*: the optimum, conversions charged.\n\n\
         AlexNet is torchvision's, of one column. ResNet-50, SqueezeNet and Inception v2 are not in the paper.\n\n\
         {OVER_FIRST}\n\
         *As the paper counts*: only convolutions take time, and every other layer has any layout and converts for nothing. *As\n\
         executed*: the other layers take time, and have the layouts in which csdfc computes them, mostly HWC alone. So whatever\n\
         writes CHW is converted before each pool there.\n",
        command("pbqp", device),
        device.name,
        device.basis
    )
}

const ONE_THREAD: &str = "
## Several threads

The profile has times of one thread alone. `csdfc profile MODEL --threads 2 --device-out FILE.ron` adds those of two, and
`csdfc-reproduce pbqp --device FILE.ron` then has a section for them.
";

fn section(threads: u64, columns: &[Column], base: &[Column], missing: &[&str], figure: &str) -> String {
    let plural = if threads == 1 { "thread" } else { "threads" };
    let mut text = format!("\n## {threads} {plural}\n\n");
    if columns.is_empty() {
        return text + &left_out(missing, "pbqp");
    }
    let _ = writeln!(text, "![Speed-ups]({figure})\n");
    let _ = writeln!(text, "As the paper counts: ms, and times as fast as plain with one thread.\n");
    text.push_str(&table(columns, base, |column| &column.counted));
    let _ = writeln!(text, "\nAs executed, the same figures:\n");
    text.push_str(&table(columns, base, |column| &column.executed));
    text.push('\n');
    text.push_str(&findings(columns));
    text + &left_out(missing, "pbqp")
}

fn table(columns: &[Column], base: &[Column], times: impl Fn(&Column) -> &Times) -> String {
    let families = families(columns);
    let mut text = String::from("| |");
    columns.iter().for_each(|column| text.push_str(&format!(" {} |", column.title)));
    text.push_str("\n| --- |");
    columns.iter().for_each(|_| text.push_str(" --- |"));
    text.push('\n');
    let rows: Vec<Vec<Option<f64>>> = columns.iter().map(|column| times(column).rows(&families)).collect();
    for (at, name) in row_names(&families).iter().enumerate() {
        let _ = write!(text, "| {name} |");
        for (column, rows) in columns.iter().zip(&rows) {
            let plain = base.iter().find(|base| base.name == column.name).and_then(|base| times(base).plain);
            let speed_up = |time: f64| cell(plain, |plain| format!("{:.1}×", plain / time));
            let _ = write!(
                text,
                " {} |",
                cell(rows[at], |time| format!("{:.1} ({})", time / 1e3, speed_up(time)))
            );
        }
        text.push('\n');
    }
    text
}

fn heat_map(threads: u64, columns: &[Column], base: &[Column]) -> HeatMap {
    let families = families(columns);
    let rows: Vec<Vec<Option<f64>>> = columns.iter().map(|column| column.counted.rows(&families)).collect();
    let names = row_names(&families);
    let cell_of = |at: usize, column: usize| {
        let name = columns[column].name;
        let plain = base.iter().find(|base| base.name == name).and_then(|base| base.counted.plain);
        let speed_up = rows[column][at].and_then(|time| Some(plain? / time));
        (speed_up.unwrap_or(0.0), cell(speed_up, |speed_up| format!("{speed_up:.1}")))
    };
    HeatMap {
        title: format!("Times as fast as plain, threads: {threads}"),
        x: ("as the paper counts".into(), columns.iter().map(|column| column.name.into()).collect()),
        y: (String::new(), names.clone()),
        cells: (0..names.len())
            .map(|at| (0..columns.len()).map(|column| cell_of(at, column)).collect())
            .collect(),
    }
}

/// The findings of the columns, in sentences.
fn findings(columns: &[Column]) -> String {
    let mut text = String::from(
        "The optimum, as the paper counts. *Others*: convolutions for which it takes another primitive than the best family.\n\n\
         | | best family | PBQP over it | over local optimal | its families, by convolutions | others | conversions | proven |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let mut slower = Vec::new();
    for column in columns {
        let times = &column.counted;
        let Some(optimum) = times.optimum else { continue };
        let best = times.best();
        let taken = times.taken.iter().map(|(family, count)| format!("{family} {count}"));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            column.name,
            best.map_or("–", |(family, _)| family),
            cell(best.map(|(_, time)| time / optimum), |ratio| format!("{ratio:.3}×")),
            cell(times.local.map(|time| time / optimum), |ratio| format!("{ratio:.2}×")),
            taken.collect::<Vec<_>>().join(", "),
            times.others,
            times.conversions,
            if times.is_proven { "yes" } else { "no" },
        );
        for (which, times) in [("as the paper counts", times), ("as executed", &column.executed)] {
            for (family, time) in &times.bars {
                if time.zip(times.plain).is_some_and(|(time, plain)| time > plain) {
                    slower.push(format!("{family} for {} {which}", column.name));
                }
            }
        }
    }
    let other = columns.iter().filter(|column| column.counted.others > 0).count();
    let _ = writeln!(
        text,
        "\nFor {other} of the {} networks, the optimum is not the selection of the best family.",
        columns.len()
    );
    let slower = if slower.is_empty() { "none".into() } else { slower.join(", ") };
    let _ = writeln!(
        text,
        "Families that are slower than plain with all conversions, though no slower for any convolution alone: {slower}.\n\
         In the paper, this is so for direct on GoogLeNet (Figure 7a)."
    );
    text
}

/// Tables 2 and 3 as ratios.
fn beside_print(all: &[(u64, Vec<Column>)]) -> String {
    let mut text = String::from(
        "\n## Tables 2 and 3\n\n\
         The table has ratios of times, since machines may have similar ratios where their times differ. csdfc's are\n\
         as the paper counts; a dash says that the profile lacks what is compared. No Caffe is run here.\n\n\
         | | network | PBQP over sum2d | PBQP over local optimal | PBQP over Caffe |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for (machine, networks) in PRINTED {
        for (network, [sum2d, local, optimum, caffe]) in PRINTED_NETWORKS.iter().zip(networks) {
            let [a, b, c] = [sum2d, local, caffe].map(|time| time / optimum);
            let _ = writeln!(text, "| print: {machine} | {network} | {a:.1}× | {b:.1}× | {c:.1}× |");
        }
    }
    for (threads, columns) in all {
        for column in columns.iter().filter(|column| PRINTED_NETWORKS.contains(&column.name)) {
            let base = all.first().and_then(|(_, base)| base.iter().find(|base| base.name == column.name));
            let over =
                |time: Option<f64>| time.zip(column.counted.optimum).map(|(time, optimum)| time / optimum);
            let sum2d = base.filter(|base| base.is_sum2d).and_then(|base| base.counted.plain);
            let ratio = |ratio: f64| format!("{ratio:.1}×");
            let _ = writeln!(
                text,
                "| csdfc, threads: {threads} | {} | {} | {} | – |",
                column.name,
                cell(over(sum2d), ratio),
                cell(over(column.counted.local), ratio),
            );
        }
    }
    text
}

/// The claims of the paper's text.
fn headlines(all: &[(u64, Vec<Column>)]) -> String {
    let columns = || all.iter().flat_map(|(_, columns)| columns);
    let range = |ratio: &dyn Fn(&Times) -> Option<f64>| {
        let all: Vec<f64> = columns().filter_map(|column| ratio(&column.counted)).collect();
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        (!all.is_empty()).then(|| (least, all.iter().copied().fold(0.0, f64::max)))
    };
    let text = |range: Option<(f64, f64)>| {
        range.map_or_else(
            || "not compared: the profile has no primitive from CHW to CHW for each convolution".into(),
            |(least, most)| format!("{least:.3} to {most:.3} times as fast"),
        )
    };
    let over_local = range(&|times| Some(times.local? / times.optimum?));
    let over_best = range(&|times| Some(times.best()?.1 / times.optimum?));
    format!(
        "\n## The headlines\n\n\
         | print | csdfc |\n\
         | --- | --- |\n\
         | up to 2 times as fast as MKL-DNN (VGG E, four threads) | not compared: no such library is run here |\n\
         | up to 7 times as fast as Caffe (Cortex-A57) | not compared: no Caffe is run here |\n\
         | always faster than the local optimum | {} |\n\
         | no family is the best for every network and layer, and the optimum faster than each | {} as the best family |\n\
         | each query is solved in less than a second, optimally | `csdfc-reproduce taso` prints the times of ours |\n\n\
         `tests/benches/README.md` compares emitted crates with ONNX Runtime and tract, run on one machine.\n",
        text(over_local),
        text(over_best),
    )
}
