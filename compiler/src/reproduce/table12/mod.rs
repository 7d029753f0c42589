//! "Memory-throughput trade-off for CNN-based applications at the edge": its Tables 1, 8, 9 and 12 beside csdfc's figures.

mod fronts;
mod printed;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use csdfc_codegen::plan::{Edge, Plan};

use self::fronts::Extended;
use self::printed::{APPLICATIONS, Application, Buffers, Figures, TABLE_1, TABLE_8, TABLE_9};
use crate::app::open::Opened;
use crate::app::spec::{Method, RowsSpec};
use crate::app::{Origin, spec};
use crate::cost::DeviceProfile;
use crate::driver;
use crate::error::Error;
use crate::search::known::Start;
use crate::search::watch::Watch;
use crate::units::MemoryGoal;

/// The example of Tables 1, 8 and 9.
const EXAMPLE: &str = include_str!("../../../../apps/adaptive_classifier.ron");

/// Bytes of an element.
const ELEMENT_BYTES: u64 = 4;

/// The baselines in the table's order.
const BASELINES: [Method; 3] = [Method::None, Method::Reuse, Method::Parts];

/// Deviations up to this many per cent are as good as none.
const SMALL: f64 = 1.0;

/// The page.
///
/// # Errors
/// When an application cannot be planned, none is known.
pub fn files(seed: u64) -> Result<Vec<(String, String)>, Error> {
    let mut page = String::from(INTRODUCTION);
    for (title, plan, printed, note) in [
        ("Table 1: no reuse", example(Method::None, &[])?, TABLE_1, ""),
        ("Table 8: Algorithm 1", example(Method::Simple, &[])?, TABLE_8, ""),
        (
            "Table 9: Algorithm 1 with l3, l4 and l5 of CNN 1 by parts",
            example(Method::Simple, &["l3", "l4", "l5"])?,
            TABLE_9,
            NOTE_9,
        ),
    ] {
        // Writing to a string cannot fail.
        let _ = write!(page, "## {title}\n\n{}\n{note}", buffers(&plan, printed));
    }
    let rows =
        APPLICATIONS.iter().map(|application| Row::new(application, seed)).collect::<Result<Vec<_>, _>>()?;
    page.push_str(TABLE_12);
    page.push_str(&memory(&rows));
    page.push_str(MEMORY_NOTES);
    page.push_str(&rates(&rows));
    page.push_str(RATE_NOTES);
    page.push_str(FRONTS);
    rows.iter().for_each(|row| page.push_str(&row.fronts()));
    Ok(vec![("README.md".into(), page)])
}

const INTRODUCTION: &str = "# Memory-throughput trade-off for CNN-based applications at the edge

Made by `csdfc reproduce table12 -o docs/table12`; do not edit. It sets the tables of Minakova and Stefanov (2022) beside
csdfc's own figures, in storage model `edges`. Sizes of Tables 1, 8 and 9 are in elements.

";

const NOTE_9: &str = "The print's 256 elements for the last buffer are half of what they must be: one row of edge e45^1 has 16 channels and
32 columns, 512 elements, and the total is 19 968.

";

const TABLE_12: &str = "## Table 12: memory

Megabytes (10^6 bytes) of parameters and buffers: the print, csdfc's, and the deviation in per cent. The applications are
`apps/table12/app1.ron` to `app6.ron`; the columns `csdfc plan … --method none`, `reuse`, `parts` and, with `--mem` as in the
second column, `paper`. Where a constraint leaves room for plans of several sizes, csdfc's and the print's may be different
ones that both keep it.

";

const MEMORY_NOTES: &str = "
What deviates, and why:

- *No reduction* cannot be rebuilt from any graph of these networks: MobileNetV2's tensors, one buffer an edge, take 29 MB
  with batch norms and activations folded, and the print leaves 44.7 MB for them. csdfc folds, as TensorRT does.
- *\\[23\\]*, greedy reuse within each CNN, is Algorithm 1 without its sharing among CNNs. Pisarchyk and Lee's own order, the
  largest buffer first, gives 21.35 MB for application 1 (5 % off, where Algorithm 1's gives 3 %) and 170.97 for
  application 5 (2.3 % off, where Algorithm 1's gives 0.6 %): Algorithm 1's is nearer to the print. Application 2's 39.14 is
  what three edges of 4.8 MB and two of 1.8 MB take: EfficientNet's swish, where it is a sigmoid and a multiplication, has
  three such edges at once. Folded into the convolution it has none.
  A pipeline's partitions run one after another here, so that applications 3 and 4 are 1 and 2 again, in the print too.
- *\\[17\\]*, every layer by parts and no reuse, is within 1 % for applications 1 to 4. For those of three CNNs the
  print exceeds what the sum over their CNNs can be made of, 226 against 159 and 291 against 168 MB: it is above \\[23\\] even,
  though parts alone need less than whole buffers in each of those CNNs.
- The print has application 6's \\[23\\] and \\[17\\] swapped, and Table 11's column heads shifted by one; here they stand right.
- *Algorithm 2* at its least is as small as the print or smaller in applications 1, 2, 4 and 5; in 3 and 6 it takes up to
  1 % more. In application 3 the rings are the smallest that the dataflow engine proves, 1.97 MB are in use at once, which
  is the print's 15.92 with the parameters, and Algorithm 1 as printed, whole buffers and no edge moved once it has one,
  places them in 2.13 MB. Its first generation holds simple
  chromosomes and a descent from the best of them, beside random ones. Where that saves more than one part in 64, Algorithm 1
  visits the largest edges first, or single edges earlier than that; the print says nothing of how the search begins, nor of
  the order of edges.

";

const RATE_NOTES: &str = "
Rates are measured in the print and modelled here, by device profile `jetson-tx2`: six figures of a GPU fitted to the
print's own rates of six CNNs, with the residuals listed in `compiler/src/targets/jetson-tx2.ron`, and an analytic CPU for
the first stage of the pipelines, which has all four cores to itself as each partition has its processor in the paper
(`jetson-tx2-paper`). Deviations are those residuals: the profile has EfficientNet-B0 five times too slow, since
no model of arithmetic and traffic gives it a quarter of MobileNetV2's time, and MobileNetV1 0.25 a third too slow. What a
method costs relative to no reduction is the better figure, since a firing's cost is what the CNNs agree on. In a pipeline
without overlap (`reuse`) the CPU's stage is added to the GPU's, where the print runs everything on the GPU. Where the
print's rate under a constraint is higher, so is its memory, or its chromosome another of the same memory.
";

const FRONTS: &str = "
## The default method beside Algorithm 2

Of each method the plans that it finds with `--mem min`, and the megabytes of the smallest: parameters as they are stored
and buffers, each method in its own storage model, `edges` for `paper` and `tensors` for the default. *Dominated* says
whether for every plan of Algorithm 2 the default method has one of no more memory at which no CNN is slower, as modelled.
*Ratio* is that of the hypervolumes, the default method's to Algorithm 2's: the axes are the total memory, up to that of *no
reduction*, and the modelled rate of each CNN, from 0. The last column is the hypervolume with about twice the evaluations to
that with the default number.

| application | Algorithm 2: plans, MB | default: plans, MB | dominated | ratio | twice the evaluations |
| --- | --- | --- | --- | --- | --- |
";

/// An application's plans.
struct Row {
    printed: &'static Application,
    baselines: Vec<Plan>,
    paper: Vec<Plan>,
    extended: Extended,
}

impl Row {
    fn new(printed: &'static Application, seed: u64) -> Result<Self, Error> {
        let plan = |method, memory| plan(printed.file, seed, method, memory);
        Ok(Row {
            printed,
            baselines: BASELINES.iter().map(|method| plan(*method, None)).collect::<Result<_, _>>()?,
            paper: printed
                .paper
                .iter()
                .map(|(limit, _)| plan(Method::Paper, Some(limit.map_or(MemoryGoal::Min, megabytes))))
                .collect::<Result<_, _>>()?,
            extended: Extended::new(printed, seed)?,
        })
    }

    /// The default method beside Algorithm 2 at its least, which the last of its constraints asks for.
    fn fronts(&self) -> String {
        match (self.baselines.first(), self.paper.last()) {
            (Some(none), Some(paper)) => fronts::line(self.printed, none, paper, &self.extended),
            _ => String::new(),
        }
    }

    /// The lines of the table: what the memory constraint is, and for each method the print's figures and csdfc's plan.
    fn lines(&self) -> impl Iterator<Item = (Option<u64>, Vec<(Figures, &Plan)>)> {
        let printed = self.printed;
        printed.paper.iter().zip(&self.paper).map(|((limit, figures), plan)| {
            let baselines = printed.baselines.iter().copied().zip(&self.baselines);
            (*limit, baselines.chain([(*figures, plan)]).collect())
        })
    }
}

fn megabytes(megabytes: u64) -> MemoryGoal {
    MemoryGoal::Bytes(megabytes * 1_000_000)
}

/// The plan of an application under a method, in the words of its file.
fn plan(file: &str, seed: u64, method: Method, memory: Option<MemoryGoal>) -> Result<Plan, Error> {
    let mut opened = opened(file)?;
    opened.spec.search.seed = seed;
    opened.spec.search.method = Some(method);
    opened.spec.constraints.memory = memory;
    checked(&opened, &Watch::unwatched())
}

/// The plan of the example with these layers of its first CNN by parts.
fn example(method: Method, by_parts: &[&str]) -> Result<Plan, Error> {
    let mut opened = opened(EXAMPLE)?;
    if method == Method::None {
        opened.spec.rows = RowsSpec::Default;
        opened.spec.search.method = Some(method);
    } else {
        let layers = by_parts.iter().map(|layer| (format!("cnn1/{layer}"), 1));
        opened.spec.rows = RowsSpec::Layers(layers.collect());
    }
    checked(&opened, &Watch::unwatched())
}

fn opened(file: &str) -> Result<Opened, Error> {
    let origin = Origin { name: "app.ron".into(), text: Some(file.into()), replaced: Vec::new() };
    Ok(Opened { spec: spec::parse(&origin)?, origin, folder: PathBuf::new() })
}

fn checked(opened: &Opened, watch: &Watch<'_>) -> Result<Plan, Error> {
    let application = opened.resolve()?;
    let device = DeviceProfile::find(&application.device, Path::new(""))?;
    let paths = application.cnns.iter().map(|cnn| cnn.model.name.clone()).collect();
    let plan = driver::plan_from(&Start::default(), &application, &device, paths, watch, &|_| Ok(()))?.plan;
    match csdfc_codegen::check(&plan) {
        Ok(_) => Ok(plan),
        Err(violations) => {
            let first = violations.first().map(ToString::to_string).unwrap_or_default();
            Err(Error::Bug(format!("check refuses the plan of {}: {first}", application.name)))
        }
    }
}

/// An edge as the paper writes it: `e23^2(1)` is half 1 of the edge from layer 2 to layer 3 of CNN 2.
fn edge_name(edge: &Edge) -> String {
    let number = |name: &str| name.trim_start_matches(|c: char| !c.is_ascii_digit()).to_owned();
    let half = edge.half.map_or(String::new(), |half| format!("({half})"));
    format!("e{}{}^{}{half}", number(&edge.tensor), number(&edge.consumer), number(&edge.cnn))
}

/// The buffers of a plan beside those of the print.
fn buffers(plan: &Plan, printed: Buffers) -> String {
    let mut text = String::from("| edges | print | csdfc |\n| --- | --- | --- |\n");
    let mut rest: Vec<(String, u64)> = plan
        .buffers
        .iter()
        .map(|buffer| {
            let edges: Vec<String> = buffer.holds.iter().map(edge_name).collect();
            (edges.join(", "), buffer.bytes / ELEMENT_BYTES)
        })
        .collect();
    let total = |sizes: &mut dyn Iterator<Item = u64>| sizes.sum::<u64>();
    let sums = [total(&mut printed.iter().map(|b| b.1)), total(&mut rest.iter().map(|b| b.1))];
    for (edges, size) in printed {
        let place = rest.iter().position(|(of, _)| of == edges);
        let ours = place.map_or_else(|| "–".to_owned(), |place| rest.remove(place).1.to_string());
        let _ = writeln!(text, "| {edges} | {size} | {ours} |");
    }
    for (edges, size) in rest {
        let _ = writeln!(text, "| {edges} | – | {size} |");
    }
    let _ = writeln!(text, "| total | {} | {} |", sums[0], sums[1]);
    text
}

/// Megabytes of parameters and buffers, as the paper counts them.
fn size(plan: &Plan) -> f64 {
    (plan.memory.parameters + plan.memory.buffers) as f64 / 1e6
}

/// The print's figure, csdfc's, and by how much that deviates.
fn beside(printed: f64, ours: f64, decimals: usize) -> String {
    let deviation = 100.0 * (ours / printed - 1.0);
    let decimals_of_deviation = usize::from(deviation.abs() < SMALL);
    format!("{printed} / {ours:.decimals$} ({deviation:+.decimals_of_deviation$})")
}

fn limit(limit: Option<u64>) -> String {
    limit.map_or("min".into(), |megabytes| megabytes.to_string())
}

fn memory(rows: &[Row]) -> String {
    let mut text = String::from(
        "| application | ≤ MB | no reduction | \\[23\\] | \\[17\\] | Algorithm 2 |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        for (bound, methods) in row.lines() {
            let cells: Vec<String> =
                methods.iter().map(|(printed, plan)| beside(printed.memory, size(plan), 2)).collect();
            let _ = writeln!(text, "| {} | {} | {} |", row.printed.name, limit(bound), cells.join(" | "));
        }
    }
    text
}

fn rates(rows: &[Row]) -> String {
    let mut text = String::from(
        "## Table 12: throughput\n\nFrames per second, as above.\n\n\
         | application | CNN | ≤ MB | no reduction | \\[23\\] | \\[17\\] | Algorithm 2 |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        for (bound, methods) in row.lines() {
            for (i, cnn) in row.printed.cnns.iter().enumerate() {
                let cells: Vec<String> = methods
                    .iter()
                    .map(|(printed, plan)| beside(printed.fps[i], plan.cnns[i].fps, 1))
                    .collect();
                let (name, bound) = (row.printed.name, limit(bound));
                let _ = writeln!(text, "| {name} | {cnn} | {bound} | {} |", cells.join(" | "));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_the_example_are_the_papers() {
        for (plan, printed, total) in [
            (example(Method::None, &[]).unwrap(), TABLE_1, "| total | 59658 | 59658 |"),
            (example(Method::Simple, &[]).unwrap(), TABLE_8, "| total | 32778 | 32778 |"),
            (example(Method::Simple, &["l3", "l4", "l5"]).unwrap(), TABLE_9, "| total | 19712 | 19968 |"),
        ] {
            let text = buffers(&plan, printed);
            assert!(text.contains(total) && !text.contains('–'), "{text}");
        }
    }

    /// Megabytes that the least plan of each application may take, and by how many per cent `reuse` and `parts` may be off.
    #[test]
    fn the_bars_are_met() {
        let bars = [
            (14.95, [Some(4.0), Some(1.0)]),
            (27.30, [None, Some(1.0)]),
            (16.08, [None, None]),
            (31.34, [None, Some(1.0)]),
            (162.0, [Some(2.0), None]),
            (157.1, [None, None]),
        ];
        for (application, (most, off)) in APPLICATIONS.iter().zip(bars) {
            let plan = |method| {
                let mut opened = opened(application.file).unwrap();
                opened.spec.search.method = Some(method);
                opened.spec.constraints.memory = Some(MemoryGoal::Min);
                // Three CNNs take long, and a short search is enough.
                if application.cnns.len() > 1 {
                    (opened.spec.search.population, opened.spec.search.generations) = (8, 4);
                }
                checked(&opened, &Watch::unwatched()).unwrap()
            };
            let (name, found) = (application.name, plan(Method::Paper));
            assert!(size(&found) <= most, "{name}: {}", size(&found));
            assert!(found.memory.parameters_stored as f64 <= 1.01 * found.memory.parameters as f64, "{name}");
            for (i, off) in off.into_iter().enumerate() {
                let (method, printed) = (BASELINES[i + 1], application.baselines[i + 1].memory);
                let deviation = 100.0 * (size(&plan(method)) / printed - 1.0);
                assert!(off.is_none_or(|off| deviation.abs() <= off), "{name}, {method:?}: {deviation:+} %");
            }
        }
    }
}
