//! "CNN offloading in steps: S1 strategies": its Figures 9 and 11 to 13, and tables of their numbers.

use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use csdfc_command::error::Error;
use csdfc_command::picture::chart::{Chart, HeatMap, Series};
use csdfc_command::picture::strategy;
use csdfc_input::builtin;
use csdfc_input::units::grouped;
use csdfc_offload::model::{NamedLayer, convolutions};
use csdfc_offload::problem::{Cost, Options};
use csdfc_offload::shapes::{self, Heuristic};
use csdfc_offload::{Accelerator, Budget, Convolution, OffloadError, Problem, Spec, optimise};
use rayon::prelude::*;

use super::Tell;

/// Inputs of section 7.1, square.
const SIZES: std::ops::RangeInclusive<usize> = 4..=12;

/// Sizes of groups of section 7.1.
const GROUPS: std::ops::RangeInclusive<usize> = 2..=10;

/// Maximum number of loads of a pixel (section 2.3).
const RELOAD: u32 = 2;

/// Layers that are larger than the paper's: size of the input and of the group, with 3x3 filters.
const LARGER: [(usize, usize); 3] = [(32, 4), (32, 8), (56, 8)];

/// A cell of the table: a layer, a size of group, and what the strategies cost.
struct Cell {
    size: usize,
    group: usize,
    baseline: Cost,
    row: Cost,
    zigzag: Cost,
    column: Cost,
    best: Cost,
    bound: u64,
    /// The method that found the best duration.
    by: String,
}

impl Cell {
    fn new(size: usize, group: usize, budget: Budget, seed: u64) -> Result<Self, OffloadError> {
        let problem = problem(&Spec::new([size, size], 1, [3, 3], 1), group)?;
        let cost = |kind| problem.cost(&shapes::unbounded(&problem, kind).groups);
        let answer = optimise(&problem, budget, seed)?;
        Ok(Cell {
            size,
            group,
            baseline: cost(Heuristic::Baseline),
            row: cost(Heuristic::Row),
            zigzag: cost(Heuristic::ZigZag),
            column: cost(Heuristic::Column),
            best: problem.cost(&answer.strategy.groups),
            bound: answer.bound,
            by: answer.strategy.name,
        })
    }

    /// By how many per cent the best duration is shorter than that of the better of the paper's heuristics.
    fn gain(&self) -> f64 {
        let better = self.row.duration.min(self.zigzag.duration);
        100.0 * (1.0 - self.best.duration as f64 / better as f64)
    }

    fn is_proved(&self) -> bool {
        self.best.duration == self.bound
    }
}

/// The page and its figures, by file name.
///
/// # Errors
/// Errors of the library are passed on. There are none for the paper's layers.
pub fn files(budget: Budget, seed: u64, tell: Tell<'_>) -> Result<Vec<(String, String)>, Error> {
    let pairs: Vec<(usize, usize)> =
        SIZES.flat_map(|size| GROUPS.map(move |group| (size, group))).chain(LARGER).collect();
    let (all, done) = (pairs.len(), AtomicUsize::new(0));
    let cells: Vec<Cell> = pairs
        .into_par_iter()
        .map(|(size, group)| {
            let cell = Cell::new(size, group, budget, seed);
            let done = 1 + done.fetch_add(1, Ordering::Relaxed);
            tell(&format!("{done} of {all} layers; the last {size}x{size} in groups of {group}"));
            cell
        })
        .collect::<Result<_, _>>()?;
    let (cells, larger): (Vec<Cell>, Vec<Cell>) =
        cells.into_iter().partition(|cell| SIZES.contains(&cell.size));

    let (mut page, figures) = without_search()?;
    let mut files = vec![("README.md".to_owned(), String::new())];
    files.extend(figures);
    page.push_str("\n## Figures 12 and 13\n\n![Figure 12](figure-12.svg)\n![Figure 13](figure-13.svg)\n\n");
    page.push_str(TABLE);
    page.push_str(&table(&cells));
    page.push_str("\n## Larger layers\n\n3x3 filters, as above.\n\n");
    page.push_str(&table(&larger));
    files[0].1 = page;
    files.push(("figure-12.svg".into(), figure_12(&cells)));
    files.push(("figure-13.svg".into(), figure_13(&cells)));
    Ok(files)
}

/// The beginning of the page, and its figures of heuristics alone: all that needs no search.
///
/// # Errors
/// As [`files`].
pub fn without_search() -> Result<(String, Vec<(String, String)>), Error> {
    let mut files = figure_9()?;
    let mut page = String::from(INTRODUCTION);
    for network in ["lenet5", "resnet8"] {
        let built = builtin::network(network).map_err(|error| Error::Bug(error.to_string()))?;
        for layer in convolutions(&built) {
            let name = format!("figure-11-{network}-{}.svg", layer.name);
            // Writing to a string cannot fail.
            let _ = writeln!(page, "![{network}, {}]({name})", layer.name);
            files.push((name, figure_11(network, &layer)?));
        }
    }
    page.push_str("\nThe first layer of LeNet-5:\n\n");
    page.push_str(&lenet_table()?);
    Ok((page, files))
}

const INTRODUCTION: &str = "# Offloading in steps

Made by `cargo run --release -p csdfc-reproduce -- s1 -o docs/s1`; do not edit.
It makes the figures of \"CNN offloading in steps: S1
strategies\" again from csdfc's own data. Durations are the paper's Eq. 15 with t_l = t_acc = 1: pixels loaded plus
steps, every pixel of the padded input counted once whatever its channels.

## Figure 9

The layer of the paper's Example 1, groups of two patches.

![Row by row](figure-9-row.svg)
![ZigZag](figure-9-zigzag.svg)

## Figure 11

Durations over sizes of groups, for every convolution of LeNet-5 and ResNet-8.

";

const TABLE: &str = "Figure 12 is for groups of 4, Figure 13 the gain of the best over the better of Row and ZigZag.

Filters of 3x3, square inputs; every pixel is loaded at most twice, except where a heuristic's figure has a star.
*Best* is csdfc's answer within its default limits. *Bound* is a lower bound on the duration of every strategy, whatever
its number of steps. If the two are equal, the answer is proved optimal.

";

fn problem(spec: &Spec, group: usize) -> Result<Problem, OffloadError> {
    let options = Options { group: Some(group), reload: Some(RELOAD), ..Options::default() };
    Problem::new(Convolution::new(spec.clone())?, Accelerator::default(), &options)
}

fn figure_9() -> Result<Vec<(String, String)>, OffloadError> {
    let problem = problem(&Spec::new([5, 5], 2, [3, 3], 2), 2)?;
    let picture = |kind| strategy::steps(&problem, &shapes::unbounded(&problem, kind));
    Ok(vec![
        ("figure-9-row.svg".into(), picture(Heuristic::Row)),
        ("figure-9-zigzag.svg".into(), picture(Heuristic::ZigZag)),
    ])
}

/// Durations of a layer over sizes of groups up to a little more than a row of patches.
fn figure_11(network: &str, layer: &NamedLayer) -> Result<String, OffloadError> {
    let convolution = Convolution::new(layer.spec.clone())?;
    let [rows, columns] = convolution.output();
    let sizes = 1..=(columns + 4).min((rows * columns).max(2));
    let line = |name: &str, kind: Heuristic| -> Result<Series, OffloadError> {
        let point = |group: usize| {
            let problem = problem(&layer.spec, group)?;
            let duration = problem.cost(&shapes::unbounded(&problem, kind).groups).duration;
            Ok([group as f64, duration as f64])
        };
        Ok(Series {
            name: name.into(),
            points: sizes.clone().map(point).collect::<Result<_, OffloadError>>()?,
        })
    };
    let spec = &layer.spec;
    let by = |pair: [usize; 2]| format!("{}x{}", pair[0], pair[1]);
    let title = format!(
        "{network} {}: input {}, filter {}, stride {}, output {}",
        layer.name,
        by(spec.input),
        by(spec.filter),
        by(spec.stride),
        by([rows, columns])
    );
    let lines = vec![
        line("Row", Heuristic::Row)?,
        line("ZigZag", Heuristic::ZigZag)?,
        line("Sliding column", Heuristic::Column)?,
    ];
    Ok(Chart { title, x: "patches in a group".into(), y: "duration".into(), lines }.svg())
}

fn lenet_table() -> Result<String, OffloadError> {
    let mut text = String::from("| group | Row | ZigZag | sliding column |\n| --- | --- | --- | --- |\n");
    for group in 1..=32 {
        let problem = problem(&Spec::new([32, 32], 1, [5, 5], 1), group)?;
        let [row, zigzag, column] = [Heuristic::Row, Heuristic::ZigZag, Heuristic::Column]
            .map(|kind| grouped(problem.cost(&shapes::unbounded(&problem, kind).groups).duration));
        let _ = writeln!(text, "| {group} | {row} | {zigzag} | {column} |");
    }
    Ok(text)
}

fn table(cells: &[Cell]) -> String {
    let mut text = String::from(
        "| input | group | Row | ZigZag | sliding column | best | by | bound | proved | gain |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for cell in cells {
        let heuristic = |cost: &Cost| {
            format!("{}{}", grouped(cost.duration), if cost.most_loads > RELOAD { "\\*" } else { "" })
        };
        let _ = writeln!(
            text,
            "| {size}x{size} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1} % |",
            cell.group,
            heuristic(&cell.row),
            heuristic(&cell.zigzag),
            heuristic(&cell.column),
            grouped(cell.best.duration),
            cell.by,
            grouped(cell.bound),
            if cell.is_proved() { "yes" } else { "no" },
            cell.gain(),
            size = cell.size,
        );
    }
    text
}

fn figure_12(cells: &[Cell]) -> String {
    let of_4: Vec<&Cell> = cells.iter().filter(|cell| cell.group == 4).collect();
    let line = |name: &str, cost: fn(&Cell) -> &Cost| Series {
        name: name.into(),
        points: of_4.iter().map(|cell| [cell.size as f64, cost(cell).duration as f64]).collect(),
    };
    let lines = vec![
        line("S1-baseline", |cell| &cell.baseline),
        line("Row", |cell| &cell.row),
        line("ZigZag", |cell| &cell.zigzag),
        line("csdfc", |cell| &cell.best),
    ];
    let title = "Groups of 4, 3x3 filters".into();
    Chart { title, x: "height and width of the input".into(), y: "duration".into(), lines }.svg()
}

fn figure_13(cells: &[Cell]) -> String {
    let cell = |size, group| cells.iter().find(|cell| (cell.size, cell.group) == (size, group));
    let of = |size, group| {
        cell(size, group).map_or((0.0, String::new()), |cell| (cell.gain(), format!("{:.1} %", cell.gain())))
    };
    HeatMap {
        title: "Gain over the better of Row and ZigZag".into(),
        x: ("height and width of the input".into(), SIZES.map(|size| size.to_string()).collect()),
        y: ("patches in a group".into(), GROUPS.rev().map(|group| group.to_string()).collect()),
        cells: GROUPS.rev().map(|group| SIZES.map(|size| of(size, group)).collect()).collect(),
    }
    .svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_figures_hold_their_cells() {
        let cell = |(size, group)| Cell::new(size, group, Budget::Work(10_000), 1).unwrap();
        let cells = [(4, 4), (5, 2), (5, 3), (5, 4)].map(cell);
        let text = table(&cells);
        assert!(text.contains("\n| 5x5 | 3 | 28 | 28 | 28 | 28 | row | 28 | yes | 0.0 % |\n"), "{text}");
        assert!(text.contains("\n| 5x5 | 2 | 34 | 36 | 34 | 31 | "), "{text}");
        let lines = figure_12(&cells);
        assert_eq!((lines.matches("<polyline").count(), lines.matches("<circle").count()), (4, 8));
        assert!(figure_13(&cells).contains(">8.8 %<"));
        let layer = NamedLayer { name: "C3".into(), spec: Spec::new([14, 14], 6, [5, 5], 16) };
        let picture = figure_11("lenet5", &layer).unwrap();
        assert_eq!(picture.matches("<circle").count(), 3 * 14);
        assert_eq!(figure_9().unwrap().len(), 2);
    }
}
