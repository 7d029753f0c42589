//! "Memory-throughput trade-off for CNN-based applications at the edge": its Tables 4 to 7 and 13, of precisions,
//! compared with csdfc's figures.

use std::fmt::Write;

use csdfc_command::error::Error;
use csdfc_input::app::MemoryGoal;
use csdfc_input::app::spec::{Method, WeightsPlace};
use csdfc_network::pass::Precision;
use csdfc_plan::plan::Plan;
use csdfc_planner::search::watch::Watch;

use super::Tell;
use super::table12::plans::{checked, opened, plan};

const INTRODUCTION: &str = "# Precisions: Tables 4 to 7 and 13

Made by `cargo run --release -p csdfc-reproduce -- precision -o docs/precision`; do not edit.
It sets the tables of Minakova and Stefanov (2022) that
combine precisions with less memory beside csdfc's figures. Megabytes are 10^6 bytes. Accuracies and frame rates are the
print's: csdfc claims none of the accuracies.

## Tables 4 to 7: MobileNetV2

The paper counts by its Table 3: *half* has 2 bytes for each element of data and parameters, *mixed* 2 and 1, *int* 1 and 1.
*csdfc* counts so, too: the elements are those of the fp32 plan of `apps/table12/app1.ron` by the method.
*From the paper* starts from the paper's own fp32 row, with csdfc's parameters: *half* is half of it, *int* a quarter,
and *mixed* a quarter of the parameters and half of the rest. If the printed figure is another one, the paper disagrees
with its own Table 3.
";

/// The application of Tables 4 to 7.
const MOBILENET: &str = include_str!("../../../apps/table12/app1.ron");

/// A row's name, its accuracy in per cent, and bytes of an element of data and of parameters.
const QUANTIZATIONS: [(&str, f64, [f64; 2]); 4] = [
    ("no (fp32)", 72.09, [4.0, 4.0]),
    ("half", 71.06, [2.0, 2.0]),
    ("mixed", 63.51, [2.0, 1.0]),
    ("int", 60.03, [1.0, 1.0]),
];

/// A table of the paper.
struct Table {
    title: &'static str,
    method: Method,
    /// Frames a second of the first two rows; the others have none.
    rates: [u32; 2],
    /// Megabytes.
    memory: [f64; 4],
}

const TABLES: [Table; 4] = [
    Table {
        title: "Table 4: quantization alone (`--method none`)",
        method: Method::None,
        rates: [46, 79],
        memory: [58.63, 29.3, 21.54, 14.65],
    },
    Table {
        title: "Table 5: with reuse by \\[23\\] (`--method reuse`)",
        method: Method::Reuse,
        rates: [46, 79],
        memory: [20.32, 10.16, 7.46, 5.08],
    },
    Table {
        title: "Table 6: with parts by \\[17\\] (`--method parts`)",
        method: Method::Parts,
        rates: [40, 68],
        memory: [16.2, 8.1, 4.61, 4.04],
    },
    Table {
        title: "Table 7: with the paper's method (`--method paper --mem min`)",
        method: Method::Paper,
        rates: [41, 71],
        memory: [15.93, 7.96, 4.47, 3.98],
    },
];

/// By how many megabytes a printed figure may differ from what follows from the printed rows: the paper rounds, or
/// cuts, some of them to a tenth.
const ROUNDING: f64 = 0.016;

const TABLE_13: &str = "
## Table 13: four applications

The files are in `apps/table13`; each row is the file with another precision, planned by the default method within the
memory that the paper requires, all weights in memory; the rate is required, too, where one is published. *csdfc's plan* is the total that the plan states, with all that the
crate keeps: scales of mixed precision, what fills up cache lines, workspaces. *By Table 3* counts elements of the fp32 plan
of the least memory as above. The paper shows what it measured as bars (Figure 5). Its text states one rate at less
memory: 71 fps of MobileNet-sequential at half precision, below the 75 required.

A frame rate is *not verifiable* if it depends on rates that were never published: nobody published rates of *mixed* and
*int*, and for *half* only MobileNetV2's on the GPU. Such a row is never *met*.

| application | required | precision | csdfc's plan, MB | by Table 3, MB | fps, modelled | verdict |
| --- | --- | --- | --- | --- | --- | --- |
";

/// An application of Table 13.
struct Application {
    name: &'static str,
    file: &'static str,
    /// Frames a second, of each CNN, and megabytes.
    required: (f64, f64),
    /// Whether rates at half precision are published for all its CNNs.
    has_half_rate: bool,
}

const APPLICATIONS: [Application; 4] = [
    Application {
        name: "MobileNet-sequential",
        file: include_str!("../../../apps/table13/mobilenet_sequential.ron"),
        required: (75.0, 8.0),
        has_half_rate: true,
    },
    Application {
        name: "ResNet-sequential",
        file: include_str!("../../../apps/table13/resnet_sequential.ron"),
        required: (75.0, 26.0),
        has_half_rate: false,
    },
    Application {
        name: "MobileNet-pipelined",
        file: include_str!("../../../apps/table13/mobilenet_pipelined.ron"),
        required: (80.0, 30.0),
        has_half_rate: false,
    },
    Application {
        name: "Multi-CNN",
        file: include_str!("../../../apps/table13/multi_cnn.ron"),
        required: (32.0, 30.0),
        has_half_rate: false,
    },
];

/// The page. `tell` receives the progress.
///
/// # Errors
/// When an application cannot be planned. No such application is known.
pub fn files(seed: u64, tell: Tell<'_>) -> Result<Vec<(String, String)>, Error> {
    let mut page = String::from(INTRODUCTION);
    for table in &TABLES {
        tell(table.title);
        page.push_str(&table.section(seed)?);
    }
    page.push_str(TABLE_13);
    for application in &APPLICATIONS {
        tell(application.name);
        page.push_str(&application.rows()?);
    }
    Ok(vec![("README.md".into(), page)])
}

/// Parts of the page that need no search: a page that lacks one is old.
///
/// # Errors
/// As [`files`].
pub fn without_search() -> Result<Vec<String>, Error> {
    let tables = TABLES.iter().filter(|table| table.method != Method::Paper);
    let sections = tables.map(|table| table.section(1)).collect::<Result<Vec<_>, _>>()?;
    Ok([vec![INTRODUCTION.to_owned(), TABLE_13.to_owned()], sections].concat())
}

/// Millions of elements of data and of parameters of a plan of fp32.
fn elements(plan: &Plan) -> [f64; 2] {
    [plan.memory.buffers, plan.memory.parameters].map(|bytes| bytes as f64 / 4e6)
}

/// Megabytes of these elements at these bytes each.
fn megabytes(elements: [f64; 2], bytes: [f64; 2]) -> f64 {
    elements[0] * bytes[0] + elements[1] * bytes[1]
}

impl Table {
    /// Megabytes of a row that follow from the printed fp32 row, with this many millions of parameters.
    fn by_print(&self, parameters: f64, bytes: [f64; 2]) -> f64 {
        megabytes([self.memory[0] / 4.0 - parameters, parameters], bytes)
    }

    fn section(&self, seed: u64) -> Result<String, Error> {
        let memory = (self.method == Method::Paper).then_some(MemoryGoal::Min);
        let found = plan(MOBILENET, seed, self.method, memory, &Watch::unwatched())?;
        Ok(self.rows(elements(&found)))
    }

    /// Its rows compared with those that follow from this many millions of elements.
    fn rows(&self, elements: [f64; 2]) -> String {
        let mut text = format!("\n### {}\n\n", self.title);
        text.push_str(
            "| precision | accuracy, paper | fps, paper | MB, paper | MB, csdfc | from the paper |\n",
        );
        text.push_str("| --- | --- | --- | --- | --- | --- |\n");
        for (row, (name, accuracy, bytes)) in QUANTIZATIONS.iter().enumerate() {
            let rate = self.rates.get(row).map_or_else(|| "–".to_owned(), u32::to_string);
            let (print, ours) = (self.memory[row], megabytes(elements, *bytes));
            let follows = self.by_print(elements[1], *bytes);
            let note = if (follows - print).abs() <= ROUNDING { "" } else { ", not the paper" };
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "| {name} | {accuracy} % | {rate} | {print} | {ours:.2} | {follows:.2}{note} |"
            );
        }
        text
    }
}

/// Whether a requirement is met, as far as that is known.
fn verdict(fits: bool, rate: Option<bool>) -> &'static str {
    match (fits, rate) {
        (false, _) => "not met: memory",
        (true, None) => "memory met, fps not verifiable",
        (true, Some(false)) => "not met: fps",
        (true, Some(true)) => "met",
    }
}

impl Application {
    /// Its plan at a precision, within this memory. The rates that the file requires count only if a rate is published.
    fn plan(&self, precision: Precision, memory: MemoryGoal) -> Result<Plan, Error> {
        let mut opened = opened(self.file)?;
        if !self.is_published(precision) {
            opened.spec.constraints.fps = Default::default();
        }
        opened.spec.cnns.iter_mut().for_each(|cnn| cnn.precision = precision);
        opened.spec.weights = WeightsPlace::Resident;
        opened.spec.constraints.memory = Some(memory);
        checked(&opened, &Watch::unwatched())
    }

    fn is_published(&self, precision: Precision) -> bool {
        self.has_half_rate && precision == Precision::Half
    }

    fn rows(&self) -> Result<String, Error> {
        let (fps, most) = self.required;
        let least = elements(&self.plan(Precision::Fp32, MemoryGoal::Min)?);
        let mut text = String::new();
        for (name, precision) in
            [("half", Some(Precision::Half)), ("mixed", Some(Precision::Mixed)), ("int", None)]
        {
            let bytes = QUANTIZATIONS.iter().find(|row| row.0 == name).map_or([0.0; 2], |row| row.2);
            let counted = megabytes(least, bytes);
            let (own, rates, verdict) = match precision {
                // Only a quantized model states which layers compute on integers.
                None => ("–".into(), "no published rate".into(), verdict(counted <= most, None)),
                Some(precision) => {
                    let plan = self.plan(precision, MemoryGoal::Bytes((most * 1e6) as u64))?;
                    let total = plan.memory.total as f64 / 1e6;
                    let is_published = self.is_published(precision);
                    let is_fast = plan.cnns.iter().all(|cnn| cnn.fps >= fps);
                    let rates = match is_published {
                        true => plan
                            .cnns
                            .iter()
                            .map(|cnn| format!("{:.1}", cnn.fps))
                            .collect::<Vec<_>>()
                            .join(", "),
                        false => "no published rate".into(),
                    };
                    (format!("{total:.2}"), rates, verdict(total <= most, is_published.then_some(is_fast)))
                }
            };
            let _ = writeln!(
                text,
                "| {} | {fps} fps, {most} MB | {name} | {own} | {counted:.2} | {rates} | {verdict} |",
                self.name
            );
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Millions of parameters of MobileNetV2 with its batch norms folded, by hand: filters and biases.
    const PARAMETERS: f64 = 3.487_904;

    #[test]
    fn the_print_follows_from_its_first_rows_but_for_two_cells() {
        let mut others = Vec::new();
        for table in &TABLES {
            for (row, (name, _, bytes)) in QUANTIZATIONS.iter().enumerate() {
                let follows = table.by_print(PARAMETERS, *bytes);
                if (follows - table.memory[row]).abs() > ROUNDING {
                    others.push((*name, table.memory[row], format!("{follows:.2}")));
                }
            }
        }
        assert_eq!(others, [("mixed", 21.54, "25.83".into()), ("mixed", 7.46, "6.67".into())]);
    }

    #[test]
    fn what_no_rate_is_published_of_is_never_met() {
        assert!([true, false].map(|fits| verdict(fits, None)).iter().all(|verdict| *verdict != "met"));
    }
}
