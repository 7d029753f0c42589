//! The paper's two headlines, from its figures and from ours: how many times less memory Algorithm 2 takes at its least
//! than a plan without reduction, and by how many per cent it is below the better of the two baselines of the paper.

use std::fmt::Write;

use super::plans::size;
use super::rows::Row;

/// The headlines of one application.
struct Headline {
    /// How many times less than without reduction: the printed figure, and csdfc's.
    times: [f64; 2],
    /// Per cent below the best baseline: the printed figure, csdfc's, and csdfc's with \[23\] as published among the
    /// baselines.
    below: [f64; 3],
}

impl Headline {
    fn of(row: &Row) -> Option<Headline> {
        let [none, reuse, parts] =
            [row.baselines.first()?, row.baselines.get(1)?, row.baselines.get(2)?].map(size);
        let ours = size(row.paper.last()?);
        let printed = row.printed.baselines.map(|figures| figures.memory);
        let least = row.printed.paper.last()?.1.memory;
        let below = |least: f64, best: f64| 100.0 * (1.0 - least / best);
        let best = reuse.min(parts);
        Some(Headline {
            times: [printed[0] / least, none / ours],
            below: [
                below(least, printed[1].min(printed[2])),
                below(ours, best),
                below(ours, best.min(row.offsets[0]).min(row.offsets[1])),
            ],
        })
    }
}

/// The section of the page.
pub fn section(rows: &[Row]) -> String {
    let headlines: Vec<Headline> = rows.iter().filter_map(Headline::of).collect();
    let range = |figure: &dyn Fn(&Headline) -> f64| {
        let all = || headlines.iter().map(figure);
        [all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max)]
    };
    let [printed, ours] = [0, 1].map(|i| range(&|headline: &Headline| headline.times[i]));
    let below = [0, 1, 2].map(|i| range(&|headline: &Headline| headline.below[i]));
    let mut text = format!(
        "\n## The headlines\n\n\
         The paper's abstract says of its figures: {:.1} to {:.1} times less memory than without reduction, and {:.0}\n\
         to {:.0} % less than the best of \\[23\\] and \\[17\\]. csdfc's figures, with Algorithm 2 at its least, say:\n\
         {:.1} to {:.1} times less than without reduction, and {:.0} to {:.0} % below the best of the stand-in for\n\
         \\[23\\] and \\[17\\]; {:.0} to {:.0} % if \\[23\\] as published is among them. A negative\n\
         figure is above the baseline.\n\n\
         | application | times less: print | csdfc | % below the best: print | csdfc | with \\[23\\] as published |\n\
         | --- | --- | --- | --- | --- | --- |\n",
        printed[0],
        printed[1],
        below[0][0],
        below[0][1],
        ours[0],
        ours[1],
        below[1][0],
        below[1][1],
        below[2][0],
        below[2][1],
    );
    for (row, headline) in rows.iter().zip(&headlines) {
        let [a, b] = headline.times;
        let [c, d, e] = headline.below;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {} | {a:.1} | {b:.1} | {c:.1} | {d:.1} | {e:.1} |", row.printed.name);
    }
    text
}
