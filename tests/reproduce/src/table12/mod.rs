//! "Memory-throughput trade-off for CNN-based applications at the edge": its Tables 1, 8, 9 and 12 compared with
//! csdfc's figures.

mod cuts;
mod fronts;
mod headlines;
mod notes;
mod offsets;
pub(super) mod plans;
mod printed;
mod rows;

use std::fmt::Write;

use csdfc_command::error::Error;
use csdfc_input::app::spec::{Method, RowsSpec};
use csdfc_plan::plan::{Edge, Plan};
use csdfc_planner::search::watch::Watch;

use self::plans::{ELEMENT_BYTES, checked, opened};
use self::printed::{APPLICATIONS, Buffers, TABLE_1, TABLE_8, TABLE_9};
use self::rows::Row;
use super::Tell;

/// The example of Tables 1, 8 and 9.
const EXAMPLE: &str = include_str!("../../../../apps/adaptive_classifier.ron");

/// The page. `tell` receives the progress.
///
/// # Errors
/// When an application cannot be planned. No such application is known.
pub fn files(seed: u64, tell: Tell<'_>) -> Result<Vec<(String, String)>, Error> {
    let mut page = String::from(INTRODUCTION);
    page.push_str(&examples()?);
    let rows = APPLICATIONS.iter().map(|application| Row::new(application, seed, tell));
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    page.push_str(TABLE_12);
    page.push_str(&rows::memory(&rows));
    page.push_str(&notes::memory(&rows));
    page.push_str(&rows::rates(&rows));
    page.push_str(&notes::rates(&rows));
    page.push_str(&headlines::section(&rows));
    page.push_str(FRONTS);
    rows.iter().for_each(|row| page.push_str(&row.fronts()));
    Ok(vec![("README.md".into(), page)])
}

/// Parts of the page that need no search: a page that lacks one is old.
///
/// # Errors
/// As [`files`].
pub fn without_search() -> Result<Vec<String>, Error> {
    let mut parts = vec![INTRODUCTION.to_owned(), examples()?];
    for application in &APPLICATIONS {
        let baselines = rows::baselines(application)?;
        parts.push(rows::beginning(application, &baselines));
        let offsets = rows::offsets(application, &baselines)?;
        parts.push(rows::published(application, &baselines, &offsets));
    }
    Ok(parts)
}

/// Tables 1, 8 and 9.
fn examples() -> Result<String, Error> {
    let (none, simple) = (example(Method::None, &[])?, example(Method::Simple, &[])?);
    let parts = example(Method::Simple, &["l3", "l4", "l5"])?;
    let mut text = String::new();
    for (title, plan, printed) in [
        ("Table 1: no reuse", none, TABLE_1),
        ("Table 8: Algorithm 1", simple, TABLE_8),
        ("Table 9: Algorithm 1 with l3, l4 and l5 of CNN 1 by parts", parts.clone(), TABLE_9),
    ] {
        // Writing to a string cannot fail.
        let _ = write!(text, "## {title}\n\n{}\n", buffers(&plan, printed));
    }
    text.push_str(&notes::table_9(&parts, TABLE_9.last().map_or(0, |buffer| buffer.1)));
    Ok(text)
}

const INTRODUCTION: &str = "# Memory-throughput trade-off for CNN-based applications at the edge

Made by `cargo run --release -p csdfc-reproduce -- table12 -o docs/table12`; do not edit.
It sets the tables of Minakova and Stefanov (2022) beside
csdfc's own figures, in storage model `edges`. Sizes of Tables 1, 8 and 9 are in elements.

";

const TABLE_12: &str = "## Table 12: memory

Megabytes (10^6 bytes) of parameters and buffers: the paper, csdfc's, and the deviation in per cent. The applications are
`apps/table12/app1.ron` to `app6.ron`; the columns `csdfc plan … --method none`, `reuse`, `parts` and, with `--mem` as in the
second column, `paper`; *as printed* is `paper-printed`, without what csdfc adds to it. If plans of
several sizes keep a constraint, csdfc's plan and the paper's may be different ones.

";

const FRONTS: &str = "
## The default method beside Algorithm 2

For each method, the table has the number of plans that the method finds with `--mem min`, and the megabytes of the
smallest plan: its stored parameters and its buffers. Each method has its own storage model, `edges` for `paper` and
`tensors` for the default. *Dominated* says whether the default method has, for every plan of Algorithm 2, a plan that
takes no more memory and in which no CNN is slower, as modelled. *Ratio* is the hypervolume of the default method
divided by that of Algorithm 2. Its axes are the total memory, up to that of *no reduction*, and the modelled rate of
each CNN, from 0. The last column compares the default method with itself: its hypervolume with about twice the
evaluations, divided by that with the default number.

| application | Algorithm 2: plans, MB | default: plans, MB | dominated | ratio | twice the evaluations |
| --- | --- | --- | --- | --- | --- |
";

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

/// An edge as the paper writes it: `e23^2(1)` is half 1 of the edge from layer 2 to layer 3 of CNN 2.
fn edge_name(edge: &Edge) -> String {
    let number = |name: &str| name.trim_start_matches(|c: char| !c.is_ascii_digit()).to_owned();
    let half = edge.half.map_or(String::new(), |half| format!("({half})"));
    format!("e{}{}^{}{half}", number(&edge.tensor), number(&edge.consumer), number(&edge.cnn))
}

/// The buffers of a plan compared with the printed ones.
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

#[cfg(test)]
mod tests {
    use csdfc_input::units::MemoryGoal;

    use super::plans::{BASELINES, size};
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
