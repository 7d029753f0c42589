//! Strategies as pictures: the steps side by side, as in the paper's Figure 9, or a page that plays them.
//!
//! ```
//! use csdfc_command::picture::strategy;
//! use csdfc_offload::problem::Options;
//! use csdfc_offload::shapes::{Heuristic, best};
//! use csdfc_offload::{Accelerator, Convolution, Problem, Spec};
//!
//! let layer = Convolution::new(Spec::new([5, 5], 2, [3, 3], 2))?;
//! let options = Options { group: Some(2), ..Options::default() };
//! let problem = Problem::new(layer, Accelerator::default(), &options)?;
//! let by_rows = best(&problem, Heuristic::Row)?;
//! assert!(strategy::steps(&problem, &by_rows).contains("step 1"));
//! # Ok::<(), csdfc_offload::OffloadError>(())
//! ```

use csdfc_offload::coverage::Coverage;
use csdfc_offload::problem::Problem;
use csdfc_offload::strategy::Strategy;
use serde::Serialize;

use super::svg::{Anchor, Rect, Svg};

/// Maximum number of squares of a picture: what browsers draw at once.
const MAX_SQUARES: usize = 60_000;

/// Steps side by side.
const PER_ROW: usize = 4;

const LOADED: &str = "#e69f00";
const KEPT: &str = "#56b4e9";
const FREED: &str = "#dddddd";
const NOW: &str = "#009e73";
const DONE: &str = "#999999";

/// The page without its data.
const PLAYER: &str = include_str!("player.html");

/// The first steps of a strategy, as many as fit a picture. For each step, it shows the input, with the pixels that are
/// loaded, kept and freed, and the output, with the patches that are computed now and that were computed before.
pub fn steps(problem: &Problem, strategy: &Strategy) -> String {
    let convolution = &problem.convolution;
    let ([height, width], [rows, columns]) = (convolution.padded(), convolution.output());
    let squares = height * width + rows * columns;
    let shown = (MAX_SQUARES / squares).clamp(1, strategy.groups.len().max(1));
    let side = (200.0 / height.max(width) as f64).clamp(1.0, 18.0);
    let panel = [(width + columns) as f64 * side + 44.0, height.max(rows) as f64 * side + 52.0];
    let lines = shown.div_ceil(PER_ROW);
    let mut svg = Svg::new(panel[0] * PER_ROW.min(shown) as f64 + 20.0, panel[1] * lines as f64 + 76.0);
    let of = match strategy.groups.len() {
        steps if steps == shown => format!("{steps} steps"),
        steps => format!("the first {shown} of {steps} steps"),
    };
    svg.text([14.0, 24.0], 15.0, Anchor::Start, &format!("{}: {of}", strategy.name));
    let keys = [(LOADED, "loaded"), (KEPT, "kept"), (FREED, "freed"), (NOW, "computed"), (DONE, "done")];
    for (number, (color, what)) in keys.into_iter().enumerate() {
        let x = 14.0 + number as f64 * 90.0;
        svg.rect(
            Rect { x, y: 38.0, width: 12.0, height: 12.0 },
            &format!("fill=\"{color}\" stroke=\"#222\""),
        );
        svg.text([x + 18.0, 48.0], 12.0, Anchor::Start, what);
    }
    let mut coverage = Coverage::new(convolution);
    let mut done = vec![false; rows * columns];
    let mut before: &[u32] = &[];
    for (number, group) in strategy.groups.iter().take(shown).enumerate() {
        let at = [14.0 + (number % PER_ROW) as f64 * panel[0], 66.0 + (number / PER_ROW) as f64 * panel[1]];
        let mut colors = vec!["white"; height * width];
        coverage.fresh(&[], before, |pixel| colors[pixel as usize] = FREED);
        coverage.fresh(&[], group, |pixel| colors[pixel as usize] = KEPT);
        let loads = coverage.fresh(before, group, |pixel| colors[pixel as usize] = LOADED);
        let title = format!("step {}: {} loaded, {} held", number + 1, loads, coverage.size(group));
        svg.text([at[0], at[1] + 14.0], 12.0, Anchor::Start, &title);
        let mut outputs: Vec<&str> = done.iter().map(|done| if *done { DONE } else { "white" }).collect();
        for patch in group {
            outputs[*patch as usize] = NOW;
            done[*patch as usize] = true;
        }
        let top = at[1] + 22.0;
        grid(&mut svg, [at[0], top], side, width, &colors);
        grid(&mut svg, [at[0] + width as f64 * side + 16.0, top], side, columns, &outputs);
        before = group;
    }
    svg.finish()
}

fn grid(svg: &mut Svg, at: [f64; 2], side: f64, width: usize, colors: &[&str]) {
    svg.begin_group("stroke=\"#888\" stroke-width=\"0.5\"");
    for (place, color) in colors.iter().enumerate() {
        let (x, y) = (at[0] + (place % width) as f64 * side, at[1] + (place / width) as f64 * side);
        svg.rect(Rect { x, y, width: side, height: side }, &format!("fill=\"{color}\""));
    }
    svg.end_group();
}

/// The data that the page plays.
#[derive(Debug, Serialize)]
struct PlayerData<'a> {
    name: &'a str,
    padded: [usize; 2],
    output: [usize; 2],
    filter: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    groups: &'a [Vec<u32>],
}

/// A page of its own, without links to others, that plays the steps of a strategy.
pub fn player(problem: &Problem, strategy: &Strategy) -> String {
    let (convolution, spec) = (&problem.convolution, problem.convolution.spec());
    let played = PlayerData {
        name: &strategy.name,
        padded: convolution.padded(),
        output: convolution.output(),
        filter: spec.filter,
        stride: spec.stride,
        dilation: spec.dilation,
        groups: &strategy.groups,
    };
    // The data has only numbers and a name of letters, so nothing in it ends a script.
    let data = serde_json::to_string(&played).unwrap_or_default().replace('<', "\\u003c");
    PLAYER.replace("/*DATA*/null", &data)
}

#[cfg(test)]
mod tests {
    use csdfc_offload::problem::Options;
    use csdfc_offload::shapes::{self, Heuristic};
    use csdfc_offload::{Accelerator, Convolution, Spec};

    use super::*;

    fn problem(input: [usize; 2]) -> Problem {
        let convolution = Convolution::new(Spec::new(input, 2, [3, 3], 2)).unwrap();
        let options = Options { group: Some(2), ..Options::default() };
        Problem::new(convolution, Accelerator::default(), &options).unwrap()
    }

    /// Figure 9: the second step of ZigZag loads 6 pixels and keeps 6.
    #[test]
    fn figure_9_is_drawn() {
        let problem = problem([5, 5]);
        let strategy = shapes::unbounded(&problem, Heuristic::ZigZag);
        let svg = steps(&problem, &strategy);
        assert!(svg.contains("zigzag: 5 steps") && svg.contains("step 2: 6 loaded, 12 held"));
        let panels: Vec<&str> = svg.split("step ").skip(1).collect();
        let count = |step: usize, color: &str| panels[step - 1].matches(&format!("fill=\"{color}\"")).count();
        assert_eq!((count(1, LOADED), count(1, KEPT), count(1, NOW)), (12, 0, 2));
        assert_eq!((count(2, LOADED), count(2, KEPT), count(2, FREED), count(2, DONE)), (6, 6, 6, 2));
        assert_eq!(count(5, NOW), 1);
    }

    #[test]
    fn large_layers_are_drawn_in_part() {
        let problem = problem([200, 200]);
        let strategy = shapes::unbounded(&problem, Heuristic::Row);
        let svg = steps(&problem, &strategy);
        assert!(svg.contains("the first 1 of 19602 steps") && svg.len() < 8_000_000);
    }

    #[test]
    fn the_page_holds_the_steps() {
        let problem = problem([5, 5]);
        let page = player(&problem, &shapes::unbounded(&problem, Heuristic::ZigZag));
        assert!(page.contains("\"groups\":[[0,1],[2,5],[4,3],[6,7],[8]]") && !page.contains("/*DATA*/"));
        assert!(!page.contains("http://") && !page.contains("https://"));
    }
}
