//! Charts: lines over a common axis, and tables whose cells are colored by their value.
//!
//! ```
//! use csdfc_command::picture::chart::HeatMap;
//!
//! let map = HeatMap {
//!     title: "How often a primitive is chosen".into(),
//!     x: ("network".into(), vec!["LeNet-5".into(), "AlexNet".into()]),
//!     y: ("family".into(), vec!["winograd".into()]),
//!     cells: vec![vec![(0.5, "1 of 2".into()), (0.8, "4 of 5".into())]],
//! };
//! assert!(map.svg().contains("4 of 5"));
//! ```

use super::svg::{Anchor, Rect, Svg};

/// Colors of lines, in order, told apart by color-blind readers too.
pub(super) const COLORS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
/// Room around the plot: left, top, right, bottom.
const ROOM: [f64; 4] = [70.0, 50.0, 20.0, 55.0];

/// A line of a chart.
#[derive(Debug, Clone)]
pub struct Series {
    /// What it shows.
    pub name: String,
    /// Its points, by ascending x.
    pub points: Vec<[f64; 2]>,
}

/// Lines over a common axis. The vertical axis begins at 0.
#[derive(Debug, Clone)]
pub struct Chart {
    /// Title.
    pub title: String,
    /// What the horizontal axis shows.
    pub x: String,
    /// What the vertical axis shows.
    pub y: String,
    /// The lines.
    pub lines: Vec<Series>,
}

/// A table with colored cells. Rows go from top to bottom.
#[derive(Debug, Clone)]
pub struct HeatMap {
    /// Title.
    pub title: String,
    /// What the columns stand for, and each of them.
    pub x: (String, Vec<String>),
    /// What the rows stand for, and each of them.
    pub y: (String, Vec<String>),
    /// Values by row and column, each with the text of its cell. A larger value is darker.
    pub cells: Vec<Vec<(f64, String)>>,
}

impl Chart {
    /// The chart as SVG.
    pub fn svg(&self) -> String {
        let mut svg = Svg::new(WIDTH, HEIGHT);
        let all = || self.lines.iter().flat_map(|line| &line.points);
        let [mut low, mut high] = [f64::INFINITY, f64::NEG_INFINITY];
        all().for_each(|[x, _]| (low, high) = (low.min(*x), high.max(*x)));
        let top = all().map(|[_, y]| *y).fold(0.0, f64::max);
        if low >= high {
            (low, high) = if low.is_finite() { (low - 1.0, low + 1.0) } else { (0.0, 1.0) };
        }
        let tick_y = tick(top.max(1.0), 6.0);
        let top = (top.max(1.0) / tick_y).ceil() * tick_y;
        let [left, above, right, below] = ROOM;
        let place = |x: f64, y: f64| {
            [
                left + (x - low) / (high - low) * (WIDTH - left - right),
                HEIGHT - below - y / top * (HEIGHT - above - below),
            ]
        };
        svg.text([WIDTH / 2.0, 22.0], 15.0, Anchor::Middle, &self.title);
        for step in 0..=(top / tick_y).round() as u32 {
            let y = f64::from(step) * tick_y;
            svg.line(place(low, y), place(high, y), "stroke=\"#ddd\"");
            let [x, at] = place(low, y);
            svg.text([x - 8.0, at + 4.0], 11.0, Anchor::End, &format!("{y}"));
        }
        let tick_x = tick(high - low, 16.0).max(1.0);
        let first = (low / tick_x).ceil() as i64;
        for step in first..=(high / tick_x).floor() as i64 {
            let [x, y] = place(step as f64 * tick_x, 0.0);
            svg.line([x, y], [x, y + 4.0], "stroke=\"#222\"");
            svg.text([x, y + 18.0], 11.0, Anchor::Middle, &format!("{}", step as f64 * tick_x));
        }
        svg.line(place(low, 0.0), place(high, 0.0), "stroke=\"#222\"");
        svg.line(place(low, 0.0), place(low, top), "stroke=\"#222\"");
        svg.text([WIDTH / 2.0, HEIGHT - 14.0], 12.0, Anchor::Middle, &self.x);
        let upright = format!("fill=\"#222\" transform=\"rotate(-90 16 {})\"", HEIGHT / 2.0);
        svg.text_with([16.0, HEIGHT / 2.0], 12.0, Anchor::Middle, &upright, &self.y);
        for (number, line) in self.lines.iter().enumerate() {
            let color = COLORS[number % COLORS.len()];
            let points: Vec<[f64; 2]> = line.points.iter().map(|[x, y]| place(*x, *y)).collect();
            svg.polyline(&points, &format!("stroke=\"{color}\" stroke-width=\"2\""));
            if points.len() <= 64 {
                points.iter().for_each(|point| svg.circle(*point, 2.5, &format!("fill=\"{color}\"")));
            }
            let at = left + 10.0 + number as f64 * 130.0;
            svg.line([at, 38.0], [at + 20.0, 38.0], &format!("stroke=\"{color}\" stroke-width=\"3\""));
            svg.text([at + 26.0, 42.0], 12.0, Anchor::Start, &line.name);
        }
        svg.finish()
    }
}

impl HeatMap {
    /// The table as SVG.
    pub fn svg(&self) -> String {
        const CELL: [f64; 2] = [58.0, 34.0];
        let (left, above) = (80.0, 50.0);
        let (rows, columns) = (self.y.1.len() as f64, self.x.1.len() as f64);
        let mut svg = Svg::new(left + columns * CELL[0] + 20.0, above + rows * CELL[1] + 50.0);
        svg.text([left + columns * CELL[0] / 2.0, 24.0], 15.0, Anchor::Middle, &self.title);
        let most = self.cells.iter().flatten().map(|(value, _)| *value).fold(0.0, f64::max);
        for (row, cells) in self.cells.iter().enumerate() {
            let y = above + row as f64 * CELL[1];
            svg.text([left - 8.0, y + 21.0], 12.0, Anchor::End, self.y.1.get(row).map_or("", String::as_str));
            for (column, (value, text)) in cells.iter().enumerate() {
                let x = left + column as f64 * CELL[0];
                let share = if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 };
                let rect = Rect { x, y, width: CELL[0], height: CELL[1] };
                svg.rect(rect, &format!("fill=\"{}\" stroke=\"white\"", shade(share)));
                let color = if share > 0.6 { "fill=\"white\"" } else { "fill=\"#222\"" };
                svg.text_with([x + CELL[0] / 2.0, y + 21.0], 12.0, Anchor::Middle, color, text);
            }
        }
        let bottom = above + rows * CELL[1];
        for (column, name) in self.x.1.iter().enumerate() {
            let x = left + (column as f64 + 0.5) * CELL[0];
            svg.text([x, bottom + 18.0], 12.0, Anchor::Middle, name);
        }
        svg.text([left + columns * CELL[0] / 2.0, bottom + 40.0], 12.0, Anchor::Middle, &self.x.0);
        let middle = above + rows * CELL[1] / 2.0;
        let upright = format!("fill=\"#222\" transform=\"rotate(-90 18 {middle})\"");
        svg.text_with([18.0, middle], 12.0, Anchor::Middle, &upright, &self.y.0);
        svg.finish()
    }
}

/// A color from pale to dark.
fn shade(share: f64) -> String {
    let mix = |from: f64, to: f64| (from + (to - from) * share).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(237.0, 8.0), mix(248.0, 88.0), mix(251.0, 158.0))
}

/// A round distance of marks, so that about `marks` of them fill `range`.
pub(super) fn tick(range: f64, marks: f64) -> f64 {
    let rough = range / marks;
    let mut unit = 1.0;
    // Ranges are finite, so both end.
    while unit * 10.0 <= rough {
        unit *= 10.0;
    }
    while unit > rough {
        unit /= 10.0;
    }
    [1.0, 2.0, 5.0, 10.0].map(|times| times * unit).into_iter().find(|step| *step >= rough).unwrap_or(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round() {
        for (range, marks, expected) in
            [(5264.0, 6.0, 1000.0), (31.0, 16.0, 2.0), (1.0, 6.0, 0.2), (8.0, 16.0, 0.5)]
        {
            assert!((tick(range, marks) - expected).abs() < 1e-9, "{range}: {}", tick(range, marks));
        }
    }

    #[test]
    fn charts_hold_every_point() {
        let line = |name: &str, factor: f64| {
            let points = (1..=10).map(|x| [f64::from(x), factor * f64::from(x)]).collect();
            Series { name: name.into(), points }
        };
        let chart = Chart {
            title: "t".into(),
            x: "x".into(),
            y: "y".into(),
            lines: vec![line("one", 1.0), line("two", 2.0)],
        };
        let svg = chart.svg();
        assert_eq!((svg.matches("<polyline").count(), svg.matches("<circle").count()), (2, 20));
        // Neither an empty chart nor one of a single point divides by nothing.
        for points in [vec![], vec![[3.0, 0.0]]] {
            let svg = Chart { lines: vec![Series { name: "a".into(), points }], ..chart.clone() }.svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn tables_hold_every_cell() {
        let cells = vec![vec![(0.0, "0 %".to_owned()), (10.0, "10 %".to_owned())]];
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let map = HeatMap {
            title: "t".into(),
            x: ("x".into(), names(&["a", "b"])),
            y: ("y".into(), names(&["c"])),
            cells,
        };
        let svg = map.svg();
        assert!(svg.contains("#edf8fb") && svg.contains("#08589e") && svg.contains(">10 %<"));
    }
}
