//! "TASO: Time and space optimization for memory-constrained DNN inference" (Wen et al., 2020): fronts of time and
//! memory, and of time and workspace, as in its Figures 6 to 9; the greedy algorithm, Figure 10; and its headlines,
//! compared with csdfc's.

use std::fmt::Write;
use std::time::Instant;

use csdfc_command::error::Error;
use csdfc_command::picture::chart::{Chart, Series};
use csdfc_input::device::DeviceProfile;
use csdfc_select::baselines;
use csdfc_select::{Method, Problem, Quantity, Query, front};

use super::{CostedNetwork, OVER_FIRST, cell, command, fastest, left_out, problem};
use crate::Tell;

/// The networks of the evaluation: their names in the paper, and their built-in names.
const NETWORKS: [(&str, &str); 5] = [
    ("AlexNet", "alexnet"),
    ("GoogLeNet", "googlenet"),
    ("ResNet-50", "resnet50"),
    ("SqueezeNet", "squeezenet1_0"),
    ("VGG-D", "vgg16"),
];

/// Table 1: variables, and seconds to solve.
const TABLE_1: [(&str, u32, f64); 4] =
    [("AlexNet", 456, 3.373), ("VGG-D", 741, 5.259), ("SqueezeNet", 1710, 8.835), ("GoogLeNet", 3990, 23.84)];

/// Families whose bars the paper has.
const BARS: [&str; 4] = ["direct", "im2row", "im2col", "winograd"];

/// Budgets at which the greedy algorithm is compared, from the memory of the fastest selection to the least.
const BUDGETS: u32 = 16;

/// How much longer the paper's small selection takes (section 5.3.1), and its small workspace (Figure 6b).
const LONGER: [f64; 2] = [1.15, 1.02];
/// By how much more workspace the paper gets a speed-up at tight workspaces (Figure 6b, points C and D).
const MORE: f64 = 1.05;

/// A memory in KiB and a time in µs.
type Point = [f64; 2];

/// The results for a network.
struct Found {
    name: &'static str,
    title: String,
    /// Options of convolutions: the integer program has a variable for each.
    variables: usize,
    /// The front by rising memory, and whether it is complete.
    memory: (Vec<Point>, bool),
    /// The front by rising workspace, and whether it is complete.
    workspace: (Vec<Point>, bool),
    /// The families for which the paper has bars, in its order.
    bars: Vec<Option<Point>>,
    /// By falling budget: the budget's share of the fastest selection's memory, the least time, and the greedy
    /// algorithm's time, if it finds a selection.
    greedy: Vec<(f64, f64, Option<f64>)>,
    /// Milliseconds of the time optimum, of the slowest budget, and of both fronts. They are not in the page.
    solved: [f64; 4],
}

/// The page and its figures, by file name; and how long each took, for a terminal. `tell` receives the progress.
///
/// # Errors
/// When the device lacks a processor named `cpu`.
pub fn files(device: &DeviceProfile, tell: Tell<'_>) -> Result<(Vec<(String, String)>, String), Error> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for network in NETWORKS {
        tell(network.0);
        match CostedNetwork::of(network, device, 1)? {
            Some(subject) => found.extend(Found::of(&subject)?),
            None => missing.push(network.1),
        }
    }
    let mut page = introduction(device);
    page.push_str(&left_out(&missing, "taso"));
    page.push_str(&fronts(&found));
    page.push_str(&greedy(&found));
    page.push_str(&sizes(&found));
    page.push_str(&headlines(&found));
    let chart = |title: &str, x: &str, front: &dyn Fn(&Found) -> &Vec<Point>| {
        let line = |found: &Found| Series { name: found.name.into(), points: relative(front(found)) };
        let lines = found.iter().map(line).collect();
        let y = "time, % of the least".into();
        Chart { title: title.into(), x: x.into(), y, lines }.svg()
    };
    let files = vec![
        ("README.md".into(), page),
        (
            "fronts-memory.svg".into(),
            chart("Time and memory", "memory, % of the fastest selection's", &|found| &found.memory.0),
        ),
        (
            "fronts-workspace.svg".into(),
            chart("Time and workspace", "workspace, % of the fastest selection's", &|found| {
                &found.workspace.0
            }),
        ),
        ("greedy.svg".into(), greedy_chart(&found).svg()),
    ];
    Ok((files, solve_times(&found)))
}

impl Found {
    /// `None` if there is no selection at all.
    fn of(subject: &CostedNetwork) -> Result<Option<Found>, Error> {
        let problem = problem(subject, &subject.counted, false)?;
        let (start, mut solved) = (Instant::now(), [0.0; 4]);
        let Some(best) = fastest(&problem, Method::Exact, None) else { return Ok(None) };
        solved[0] = milliseconds(start);
        let mut of = |place: usize, minimise: Quantity| {
            let start = Instant::now();
            let query = Query { minimise, time: None, memory: None, workspace: None, method: Method::Exact };
            let points =
                front(&problem, &query).map(|front| (values(&problem, &front.points), front.complete));
            solved[place] = milliseconds(start);
            points.unwrap_or_default()
        };
        let (memory, workspace) = (of(2, Quantity::Memory), of(3, Quantity::Workspace));
        let (greedy, slowest) = compared(&problem, problem.memories.value(best.cost.memory), &memory.0);
        solved[1] = slowest;
        let bars = baselines::families(&problem, &problem.all(), subject.plain);
        let bar = |name: &&str| {
            let bar = bars.iter().find(|bar| bar.family == **name)?;
            let cost = problem.cost(bar.selection.as_ref().ok()?)?;
            Some([problem.memories.value(cost.memory), problem.times.value(cost.time)])
        };
        let convolutions = problem.instance.layers.iter().zip(&subject.executed.layers);
        let variables = convolutions
            .filter(|(_, layer)| layer.kind == csdfc_select::instance::LayerKind::Conv)
            .map(|(layer, _)| layer.options.len());
        Ok(Some(Found {
            name: subject.name,
            title: subject.title(),
            variables: variables.sum(),
            memory,
            workspace,
            bars: BARS.iter().map(bar).collect(),
            greedy,
            solved,
        }))
    }

    /// Memory and time of the fastest selection.
    fn fastest(&self) -> Point {
        self.memory.0.last().copied().unwrap_or([f64::NAN; 2])
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn values(problem: &Problem<'_>, points: &[(u64, u64)]) -> Vec<Point> {
    let value = |(memory, time): &(u64, u64)| [problem.memories.value(*memory), problem.times.value(*time)];
    points.iter().map(value).collect()
}

/// The exact method compared with the greedy one, at budgets between the least memory and that of the fastest
/// selection; and the milliseconds of the slowest exact answer.
fn compared(problem: &Problem<'_>, most: f64, front: &[Point]) -> (Vec<(f64, f64, Option<f64>)>, f64) {
    let least = front.first().map_or(most, |point| point[0]);
    let (mut all, mut slowest) = (Vec::new(), 0.0);
    for step in 0..=BUDGETS {
        let budget = most - (most - least) * f64::from(step) / f64::from(BUDGETS);
        let start = Instant::now();
        let exact = fastest(problem, Method::Exact, Some(budget));
        slowest = f64::max(slowest, milliseconds(start));
        let greedy = fastest(problem, Method::Greedy, Some(budget));
        let time = |chosen: csdfc_select::Chosen| problem.times.value(chosen.cost.time);
        if let Some(exact) = exact {
            all.push((budget / most, time(exact), greedy.map(time)));
        }
    }
    (all, slowest)
}

/// A front in percent of the memory and the time of its fastest point.
fn relative(front: &[Point]) -> Vec<Point> {
    let Some(last) = front.last() else { return Vec::new() };
    front.iter().map(|point| [0, 1].map(|at| 100.0 * point[at] / last[at])).collect()
}

/// How many times less of the first coordinate than the fastest point a point takes that is at most `longer` times as
/// slow.
fn less(front: &[Point], longer: f64) -> Option<f64> {
    let last = front.last()?;
    let found = front.iter().find(|point| point[1] <= longer * last[1])?;
    Some(last[0] / found[0])
}

/// The largest speed-up from one point to another that takes at most [`MORE`] times as much.
fn steepest(front: &[Point]) -> Option<f64> {
    let from = |(at, from): (usize, &Point)| {
        let near = front[at..].iter().filter(|to| to[0] <= MORE * from[0]);
        near.map(|to| from[1] / to[1]).fold(1.0, f64::max)
    };
    front.iter().enumerate().map(from).max_by(f64::total_cmp)
}

fn introduction(device: &DeviceProfile) -> String {
    format!(
        "# TASO: time and space optimization\n\n\
         Made by `{}`; do not edit.\n\
         It sets the figures of Wen et al. (2020)\n\
         beside what `csdfc select` answers on the device profile `{}` ({}), with one thread. Nothing here\n\
         was run as a whole: a time is the sum of the layers' times in the profile, and of the conversions'. As in the paper,\n\
         convolutions alone count; other layers take neither time nor memory and keep any one layout. A convolution\n\
         takes its input, output, stored weights and workspace. *Memory* is the sum of this over all\n\
         convolutions, and *workspace* is the largest of them (Eq. 9 and 15). The paper's megabytes cannot be\n\
         rebuilt from its text, and its processor is another one. So this page compares shapes and ratios.\n",
        command("taso", device),
        device.name,
        device.basis
    )
}

fn fronts(found: &[Found]) -> String {
    let mut text = String::from(
        "\n## Fronts (Figures 6 to 9)\n\n\
         ![Time and memory](fronts-memory.svg)\n\n\
         ![Time and workspace](fronts-workspace.svg)\n\n\
         Every point is a selection that no other beats in both. *Least* is the smallest one, relative to the fastest.\n\n\
         | | points by memory | all of them | least memory | its time | points by workspace | least workspace | its time |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for found in found {
        let least =
            |front: &[Point]| relative(front).first().map_or([f64::NAN; 2], |point| point.map(|v| v / 100.0));
        let ([memory, slow], [workspace, other]) = (least(&found.memory.0), least(&found.workspace.0));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.0} % | {slow:.1}× | {} | {:.0} % | {other:.1}× |",
            found.name,
            found.memory.0.len(),
            if found.memory.1 { "yes" } else { "no" },
            100.0 * memory,
            found.workspace.0.len(),
            100.0 * workspace,
        );
    }
    text.push_str(
        "\nFamilies (Figure 5): time over that of the fastest selection, and memory over the least. A family's bar has for each\n\
         convolution the fastest primitive of the family, or sum2d where that is faster.\n\n",
    );
    let _ = write!(text, "{OVER_FIRST}\n| |");
    BARS.iter().for_each(|name| text.push_str(&format!(" {name} |")));
    text.push_str(" least memory |\n| --- | --- | --- | --- | --- | --- |\n");
    for found in found {
        let _ = write!(text, "| {} |", found.title);
        let least = found.memory.0.first().copied().unwrap_or([f64::NAN; 2]);
        let fastest = found.fastest();
        for bar in found.bars.iter().copied().chain([Some(least)]) {
            let told = bar.map(|[memory, time]| {
                format!("{:.1}× time, {:.2}× memory", time / fastest[1], memory / least[0])
            });
            let _ = write!(text, " {} |", told.unwrap_or_else(|| "–".into()));
        }
        text.push('\n');
    }
    text
}

fn greedy(found: &[Found]) -> String {
    let mut text = format!(
        "\n## The greedy algorithm (Figure 10)\n\n\
         ![Speed-up over the greedy algorithm](greedy.svg)\n\n\
         At {} budgets from the memory of the fastest selection to the least: how many times as fast the optimum is. *None*: the\n\
         greedy algorithm has no convolution left to make smaller, and finds nothing. The paper has a bar for each budget of\n\
         GoogLeNet, up to 8 times.\n\n\
         | | at most | at the least memory | greedy finds none, of the budgets |\n\
         | --- | --- | --- | --- |\n",
        BUDGETS + 1
    );
    for found in found {
        let speed_up = |(_, exact, greedy): &(f64, f64, Option<f64>)| greedy.map(|greedy| greedy / exact);
        let all: Vec<Option<f64>> = found.greedy.iter().map(speed_up).collect();
        let most = all.iter().flatten().copied().max_by(f64::total_cmp);
        let times = |ratio: f64| format!("{ratio:.2}×");
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} of {} |",
            found.name,
            cell(most, times),
            all.last().copied().flatten().map_or_else(|| "none".into(), times),
            all.iter().filter(|speed_up| speed_up.is_none()).count(),
            all.len(),
        );
    }
    text
}

fn greedy_chart(found: &[Found]) -> Chart {
    let line = |found: &Found| {
        let points = found.greedy.iter().rev();
        let points = points.filter_map(|(share, exact, greedy)| Some([100.0 * share, (*greedy)? / exact]));
        Series { name: found.name.into(), points: points.collect() }
    };
    Chart {
        title: "The optimum beside the greedy algorithm".into(),
        x: "budget, % of the fastest selection's memory".into(),
        y: "times as fast".into(),
        lines: found.iter().map(line).collect(),
    }
}

fn sizes(found: &[Found]) -> String {
    let mut text = String::from(
        "\n## Table 1\n\n\
         Variables: in the paper 57 for each of 8, 13, 30 and 70 layers, pools among them; here the primitives that were measured for each\n\
         convolution. `csdfc-reproduce taso` prints how long each answer took, which is not the same twice. No integer program is\n\
         solved for these: elimination over layouts gives the optimum, and whole fronts.\n\n\
         | | variables, paper | variables, csdfc | seconds, paper |\n\
         | --- | --- | --- | --- |\n",
    );
    for found in found {
        let printed = TABLE_1.iter().find(|(name, ..)| *name == found.name);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            found.name,
            printed.map_or_else(|| "–".into(), |(_, variables, _)| variables.to_string()),
            found.variables,
            printed.map_or_else(|| "–".into(), |(.., seconds)| seconds.to_string()),
        );
    }
    text
}

fn headlines(found: &[Found]) -> String {
    let mut text = format!(
        "\n## The headlines\n\n\
         All figures of the paper are for GoogLeNet on a Cortex-A15.\n\n\
         - *Memory*: times less than the fastest selection's, for up to {:.0} % more time (points A and B of Figure 6a).\n\
         - *Workspace*: times less, for up to {:.0} % more time (points A and B of Figure 6b).\n\
         - *Steepest*: times as fast with up to {:.0} % more workspace (points C and D of Figure 6b).\n\
         - *Greedy*: times as fast as the greedy algorithm at the same budget, at most.\n\n\
         | | memory | workspace | steepest | greedy |\n\
         | --- | --- | --- | --- | --- |\n\
         | print, GoogLeNet | 2.2× | 1.5× | 1.4× | 8× |\n",
        100.0 * LONGER[0] - 100.0,
        100.0 * LONGER[1] - 100.0,
        100.0 * MORE - 100.0,
    );
    for found in found {
        let greedy = found.greedy.iter().filter_map(|(_, exact, greedy)| Some((*greedy)? / exact));
        let figures = [
            less(&found.memory.0, LONGER[0]),
            less(&found.workspace.0, LONGER[1]),
            steepest(&found.workspace.0),
            greedy.max_by(f64::total_cmp),
        ];
        let cells = figures.map(|figure| cell(figure, |figure| format!("{figure:.2}×")));
        let _ = writeln!(text, "| csdfc, {} | {} |", found.name, cells.join(" | "));
    }
    text
}

fn solve_times(found: &[Found]) -> String {
    let mut text = String::from(
        "\nmilliseconds  variables  time optimum  slowest budget  front by memory  by workspace\n",
    );
    for found in found {
        let [optimum, budget, memory, workspace] = found.solved;
        let _ = writeln!(
            text,
            "{:<12}  {:>9}  {optimum:>12.1}  {budget:>14.1}  {memory:>15.1}  {workspace:>12.1}",
            found.name, found.variables
        );
    }
    text
}
