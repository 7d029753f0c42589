//! The front of a search as a picture: total memory against frames per second, with a step line for each CNN.

use super::chart::{COLORS, tick};
use super::svg::{Anchor, Svg};

const WIDTH: f64 = 720.0;
const PANEL: f64 = 300.0;
/// Room around a panel's plot: left, top, right, bottom.
const ROOM: [f64; 4] = [70.0, 40.0, 30.0, 50.0];

/// A front, and the plan chosen from it.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontPicture {
    /// The title.
    pub title: String,
    /// One panel for each CNN: its name, and total bytes and frames per second for each plan, by falling memory.
    pub panels: Vec<(String, Vec<[f64; 2]>)>,
    /// The same for the plan that was chosen, by CNN.
    pub chosen: Vec<[f64; 2]>,
    /// The memory limit, in bytes.
    pub limit: Option<f64>,
}

impl FrontPicture {
    /// The front as SVG. The vertical axes begin where the slowest plan lies.
    pub fn svg(&self) -> String {
        let mut svg = Svg::new(WIDTH, 30.0 + PANEL * self.panels.len() as f64);
        svg.text([WIDTH / 2.0, 22.0], 15.0, Anchor::Middle, &self.title);
        for (number, (name, points)) in self.panels.iter().enumerate() {
            let top = 30.0 + PANEL * number as f64;
            let chosen = self.chosen.get(number).copied();
            self.panel(&mut svg, top, name, points, chosen, COLORS[number % COLORS.len()]);
        }
        svg.finish()
    }

    fn panel(
        &self,
        svg: &mut Svg,
        top: f64,
        name: &str,
        points: &[[f64; 2]],
        chosen: Option<[f64; 2]>,
        color: &str,
    ) {
        let [left, above, right, below] = ROOM;
        let (x_axis, y_axis) = (
            Axis::new(points.iter().chain(&chosen).map(|p| p[0] / 1e6)),
            Axis::new(points.iter().chain(&chosen).map(|p| p[1])),
        );
        let place = |[bytes, fps]: [f64; 2]| {
            [
                left + x_axis.share(bytes / 1e6) * (WIDTH - left - right),
                top + above + (1.0 - y_axis.share(fps)) * (PANEL - above - below),
            ]
        };
        let bottom = top + PANEL - below;
        for mark in y_axis.marks() {
            let [_, y] = place([x_axis.low * 1e6, mark]);
            svg.line([left, y], [WIDTH - right, y], "stroke=\"#ddd\"");
            svg.text([left - 8.0, y + 4.0], 11.0, Anchor::End, &y_axis.label(mark));
        }
        for mark in x_axis.marks() {
            let [x, _] = place([mark * 1e6, y_axis.low]);
            svg.line([x, bottom], [x, bottom + 4.0], "stroke=\"#222\"");
            svg.text([x, bottom + 18.0], 11.0, Anchor::Middle, &x_axis.label(mark));
        }
        svg.line([left, bottom], [WIDTH - right, bottom], "stroke=\"#222\"");
        svg.line([left, top + above], [left, bottom], "stroke=\"#222\"");
        svg.text([WIDTH / 2.0, bottom + 38.0], 12.0, Anchor::Middle, "total memory, MB");
        svg.text([left, top + above - 12.0], 12.0, Anchor::Start, &format!("{name}: frames per second"));
        // A plan serves every budget from its memory up to that of the next faster one.
        let mut steps = Vec::new();
        for pair in points.windows(2) {
            steps.extend([place(pair[0]), place([pair[0][0], pair[1][1]])]);
        }
        steps.extend(points.last().map(|point| place(*point)));
        svg.polyline(&steps, &format!("stroke=\"{color}\" stroke-width=\"2\""));
        for point in points {
            svg.circle(place(*point), 2.5, &format!("fill=\"{color}\""));
        }
        if let Some(limit) = self.limit.filter(|limit| (0.0..=1.0).contains(&x_axis.share(limit / 1e6))) {
            let [x, _] = place([limit, y_axis.low]);
            svg.line([x, top + above], [x, bottom], "stroke=\"#d55e00\" stroke-dasharray=\"4 3\"");
        }
        if let Some(chosen) = chosen {
            svg.circle(place(chosen), 6.0, "fill=\"none\" stroke=\"#222\" stroke-width=\"2\"");
        }
    }
}

/// The range of an axis, and the distance of its marks.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// An axis from one mark to another with all values between.
    fn new(values: impl Iterator<Item = f64>) -> Axis {
        let [low, high] =
            values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], v| [low.min(v), high.max(v)]);
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        // A front of one plan has room around it.
        let range = (high - low).max(high.abs() * 1e-3).max(1e-6);
        let step = tick(range, 6.0);
        Axis { low: (low / step).floor() * step, high: ((low + range) / step).ceil() * step, step }
    }

    fn share(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    fn marks(&self) -> impl Iterator<Item = f64> + '_ {
        let count = ((self.high - self.low) / self.step).round() as u32;
        (0..=count).map(|mark| self.low + f64::from(mark) * self.step)
    }

    /// A mark with as many decimals as its neighbours differ in.
    fn label(&self, mark: f64) -> String {
        let decimals = (-self.step.log10().floor()).max(0.0) as usize;
        format!("{mark:.decimals$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_is_a_point() {
        let points = vec![[20_021_120.0, 23.6], [16_257_920.0, 23.2], [14_978_432.0, 23.0]];
        let front = FrontPicture {
            title: "a <b>".into(),
            panels: vec![("one".into(), points.clone()), ("two".into(), points.clone())],
            chosen: vec![points[1], points[1]],
            limit: Some(17e6),
        };
        let svg = front.svg();
        assert_eq!((svg.matches("<polyline").count(), svg.matches("<circle").count()), (2, 8));
        assert_eq!(svg.matches("stroke-dasharray").count(), 2);
        assert!(svg.contains(">23.0<") && svg.contains(">16<") && svg.contains("a &lt;b&gt;"), "{svg}");
    }

    #[test]
    fn a_front_of_one_plan_or_none_divides_by_nothing() {
        for points in [vec![], vec![[0.0, 0.0]], vec![[1e6, 1e9]]] {
            let chosen = points.clone();
            let front = FrontPicture {
                title: String::new(),
                panels: vec![("a".into(), points)],
                chosen,
                limit: Some(0.0),
            };
            let svg = front.svg();
            assert!(!svg.contains("NaN") && !svg.contains("\"inf"), "{svg}");
        }
    }
}
