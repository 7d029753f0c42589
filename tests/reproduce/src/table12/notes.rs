//! Prose about the figures. Every figure in the prose comes from the paper or from the plans.

use csdfc_plan::plan::Plan;

use super::cuts::{self, spread};
use super::plans::{ELEMENT_BYTES, size};
use super::rows::{Row, beside, published};

/// The note behind Table 9, about its plan.
pub fn table_9(plan: &Plan, printed: u64) -> String {
    let row = plan.tensors.iter().find(|tensor| tensor.name == "l4");
    let elements = row.map_or(0, |tensor| tensor.row_bytes / ELEMENT_BYTES);
    let [channels, columns] = row.map_or([0, 0], |tensor| {
        let column = tensor.shape.column_axis().map_or(0, |axis| tensor.shape.dims[axis]);
        [tensor.shape.channels(), column]
    });
    let total = plan.memory.buffers / ELEMENT_BYTES;
    format!(
        "The paper has {printed} elements for the last buffer. One row of edge e45^1 has {channels} channels and {columns} columns,\n\
         {elements} elements, and the total is {total}.\n\n"
    )
}

fn of_application<'r>(rows: &'r [Row], number: &str) -> Option<&'r Row> {
    rows.iter().find(|row| row.printed.name.starts_with(number))
}

/// By how many per cent csdfc's figure differs from the printed one.
fn off(printed: f64, ours: f64) -> f64 {
    100.0 * (ours / printed - 1.0)
}

/// The note behind the table of memory.
pub fn memory(rows: &[Row]) -> String {
    let mut text = String::from("\nWhat deviates, and why:\n\n");
    let nothing = rows
        .iter()
        .filter_map(|row| Some(off(row.printed.baselines[0].memory, size(row.baselines.first()?))));
    let [least, most] = range(nothing);
    text.push_str(&format!(
        "- *No reduction* could not be rebuilt from any graph of these networks that was tried: csdfc's figures are {:.0} to {:.0} %\n  \
         below the paper's.",
        -most, -least
    ));
    if let Some((row, plan)) = of_application(rows, "1").and_then(|row| Some((row, row.baselines.first()?))) {
        let parameters = plan.memory.parameters as f64 / 1e6;
        text.push_str(&format!(
            " MobileNetV2's tensors, one buffer an edge, take {:.1} MB with batch norms and activations folded, and\n  \
             the paper leaves {:.1} MB for them.",
            plan.memory.buffers as f64 / 1e6,
            row.printed.baselines[0].memory - parameters
        ));
    }
    text.push_str(" csdfc folds, as TensorRT does.\n");
    text.push_str(
        "- *\\[23\\], stand-in* is Algorithm 1 without its sharing among CNNs: whole buffers, each shared by edges of one CNN. What\n  \
         \\[23\\] publishes has a table of its own below. EfficientNet's swish, where it is a sigmoid and a multiplication, has\n  \
         more large edges at once than where it is folded into the convolution: that may be why the paper is above csdfc's in\n  \
         applications 2 and 4. A pipeline's partitions run one after another here, so that applications 3 and 4 are 1 and 2\n  \
         again, in the paper too.\n",
    );
    let parts = |numbers: &[&str]| -> Vec<(f64, f64)> {
        let rows = numbers.iter().filter_map(|number| of_application(rows, number));
        rows.filter_map(|row| Some((row.printed.baselines[2].memory, size(row.baselines.get(2)?)))).collect()
    };
    let single = parts(&["1", "2", "3", "4"]);
    let several = parts(&["5", "6"]);
    let [_, most] = range(single.iter().map(|(printed, ours)| off(*printed, *ours).abs()));
    let exceeding: Vec<String> =
        several.iter().map(|(printed, ours)| format!("{printed} against {ours:.2}")).collect();
    text.push_str(&format!(
        "- *\\[17\\]*, every layer by parts and no reuse, is within {most:.1} % for applications 1 to 4. For\n  \
         those of three CNNs, the paper is larger than the sum over their CNNs: {} MB.\n",
        exceeding.join(" and ")
    ));
    text.push_str(&algorithm_2(rows));
    text.push_str(&swapped(rows));
    text.push_str(
        "\n## \\[23\\] as published\n\n\
         Pisarchyk and Lee's *greedy by size for offset calculation*: the largest first, each in the smallest gap that it fits\n\
         among the buffers that are in use at the same time. Megabytes, as above, of three methods: the stand-in;\n\
         offsets with a place for every edge, as in the rest of this page; and offsets with a place for every\n\
         tensor, as they publish it (inputs are then the caller's).\n\n\
         | application | stand-in | offsets, edges | offsets, tensors |\n| --- | --- | --- | --- |\n",
    );
    for row in rows {
        text.push_str(&published(row.printed, &row.baselines, &row.offsets));
    }
    text.push_str(&cut(rows));
    text
}

fn range(figures: impl Iterator<Item = f64>) -> [f64; 2] {
    figures.fold([f64::INFINITY, f64::NEG_INFINITY], |[least, most], figure| {
        [least.min(figure), most.max(figure)]
    })
}

/// The names, as `1, 2 and 4`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => "none".into(),
        [one] => (*one).into(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

fn algorithm_2(rows: &[Row]) -> String {
    let least = rows.iter().filter_map(|row| {
        let (printed, ours) = (row.printed.paper.last()?.1.memory, size(row.paper.last()?));
        Some((row.printed.number(), off(printed, (100.0 * ours).round() / 100.0)))
    });
    let least: Vec<(&str, f64)> = least.collect();
    let small: Vec<&str> = least.iter().filter(|(_, off)| *off <= 0.0).map(|(name, _)| *name).collect();
    let large: Vec<String> = least
        .iter()
        .filter(|(_, off)| *off > 0.0)
        .map(|(name, off)| format!("{name} by {off:.1} %"))
        .collect();
    let large: Vec<&str> = large.iter().map(String::as_str).collect();
    let mut text = format!(
        "- *Algorithm 2* at its least is as small as the paper or smaller in applications {}; larger in {}.",
        listed(&small),
        listed(&large)
    );
    if let Some(plan) = of_application(rows, "3").and_then(|row| row.paper.last()) {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        text.push_str(&format!(
            " In application 3\n  {:.2} MB of buffers are in use at once, {:.2} with the parameters, and whole buffers place them in {:.2} MB.",
            megabytes(plan.memory.bound),
            megabytes(plan.memory.bound + plan.memory.parameters),
            megabytes(plan.memory.buffers)
        ));
    }
    let more = rows.iter().filter_map(|row| Some(off(size(row.paper.last()?), size(row.as_printed.last()?))));
    let [fewest, most] = range(more);
    text.push_str(&format!(
        "\n  csdfc's departs from the paper in two ways, which `--method paper-printed` leaves out. Its first generation holds simple\n  \
         chromosomes and a descent from the best of them, beside random ones. And where that saves more than one part in 64,\n  \
         Algorithm 1 visits the largest edges first, or single edges earlier than that; the paper says nothing of how the\n  \
         search begins, nor of the order of edges. *As printed*, the search begins at random and\n  \
         Algorithm 1 has one order: its smallest plan then differs by {fewest:+.1} to {most:+.1} % in memory.\n"
    ));
    text
}

/// Application 6 with the printed figures of \[23\] and \[17\] as they stand, and with the two exchanged.
fn swapped(rows: &[Row]) -> String {
    let Some(row) = of_application(rows, "6") else { return String::new() };
    let [_, reuse, parts] = row.printed.baselines.map(|figures| figures.memory);
    let ours = [1, 2].map(|baseline: usize| row.baselines.get(baseline).map_or(f64::NAN, size));
    let line = |name: &str, [reuse, parts]: [f64; 2]| {
        format!("| {name} | {} | {} |\n", beside(reuse, ours[0], 2), beside(parts, ours[1], 2))
    };
    let least = row.printed.paper.last().map_or(f64::NAN, |(_, figures)| figures.memory);
    format!(
        "\n## A hypothesis: application 6 with \\[23\\] and \\[17\\] swapped\n\n\
         The paper may have the two swapped. For it: in application 5, the other one of three CNNs, \\[17\\] is the larger, and\n\
         csdfc's stand-in for \\[23\\] is near the paper's \\[17\\]. Against it: the paper's own prose goes by the printed order\n\
         ({least} MB is there \"≈ 2 times\" less than \\[23\\] and \"≈ 15 %\" less than \\[17\\], and {reuse} / {least} is {:.1}, {parts} to {least} is\n\
         {:.0} % less), and csdfc's \\[17\\] is nearer to the printed one. Neither order makes both figures right.\n\n\
         | order | \\[23\\], stand-in | \\[17\\] |\n| --- | --- | --- |\n{}{}",
        reuse / least,
        100.0 * (1.0 - least / parts),
        line("as printed", [reuse, parts]),
        line("swapped", [parts, reuse])
    )
}

fn cut(rows: &[Row]) -> String {
    let mut text = format!(
        "\n## Where applications 3 and 4 are cut\n\n\
         The paper does not say where it cuts its pipelines. The cuts of `app3.ron` and `app4.ron` are **assumptions**. Under\n\
         other cuts, the first partition on the CPU and the second on the GPU, Algorithm 2 with {} chromosomes:\n\n\
         | application | cut after | no reduction, MB | \\[17\\], MB | Algorithm 2 at its least, MB | no reduction, fps |\n\
         | --- | --- | --- | --- | --- | --- |\n",
        cuts::EVALUATIONS
    );
    let cut: Vec<&Row> = rows.iter().filter(|row| !row.cuts.is_empty()).collect();
    cut.iter().for_each(|row| text.push_str(&cuts::table(row.printed, &row.cuts)));
    text.push_str("\nSo, from the table's cut to others,");
    let moves = cut.iter().map(|row| {
        let [none, parts, paper] = [0, 1, 2].map(|i| spread(&row.cuts, |cut| cut.megabytes[i]));
        let fps = spread(&row.cuts, |cut| cut.fps);
        let by = |[least, most]: [f64; 2]| format!("{least:+.0} to {most:+.0} %");
        format!(
            " application {} moves by {} without reduction,\n{} by \\[17\\], {} by Algorithm 2, and its frame rate by {}",
            row.printed.number(),
            by(none),
            by(parts),
            by(paper),
            by(fps)
        )
    });
    text.push_str(&moves.collect::<Vec<_>>().join(";"));
    text.push_str(".\n\n");
    text
}

/// The note behind the table of throughput.
pub fn rates(rows: &[Row]) -> String {
    let first = |number: &str, cnn: usize| {
        let row = of_application(rows, number)?;
        Some((row.printed.baselines[0].fps[cnn], row.baselines.first()?.cnns.get(cnn)?.fps))
    };
    let mut text = String::from(
        "\nRates are measured in the paper and modelled here, by device profile `jetson-tx2`: figures of a GPU fitted to the\n\
         print's own rates of its CNNs, with the residuals listed in `compiler/input/src/device/targets/jetson-tx2.ron`, and an analytic CPU for\n\
         the first stage of the pipelines, which has all four cores to itself as each partition has its processor in the\n\
         paper (`jetson-tx2-paper`). Deviations are those residuals:",
    );
    if let (Some((efficient, ours)), Some((mobile, _)), Some((small, small_ours))) =
        (first("2", 0), first("1", 0), first("5", 1))
    {
        text.push_str(&format!(
            " the profile has EfficientNet-B0 {:.1} times too slow, since\n\
             no model of arithmetic and traffic gives it {:.2} of MobileNetV2's time, and MobileNetV1 0.25 {:.0} % too slow.",
            efficient / ours,
            mobile / efficient,
            100.0 * (1.0 - small_ours / small)
        ));
    }
    text.push_str(
        " The\n\
         cost of a method relative to no reduction is the better figure, since all CNNs agree on the cost of a\n\
         firing. In a pipeline without overlap (`reuse`), the CPU's stage is added to the GPU's, while the paper runs\n\
         everything on the GPU. Where the paper's rate under a constraint is higher, its memory is larger too, or its\n\
         chromosome is another one of the same memory.\n",
    );
    text
}
