//! The result of `csdfc run`.

use std::fmt::Write;

use csdfc_runtime::run::{Data, Value};
use serde::Serialize;

/// Largest difference, relative to the largest element of the reference, of results that count as equal.
pub const TOLERANCE: f64 = 1e-4;

/// Largest elements of an output that are shown.
const TOP: usize = 5;

/// The result of a run.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// The application.
    pub application: String,
    /// Bytes of the arena: buffers and workspace.
    pub arena_bytes: u64,
    /// The CNNs, in the order in which they ran.
    pub cnns: Vec<CnnRun>,
}

/// The result of one CNN.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CnnRun {
    /// The CNN.
    pub name: String,
    /// Its outputs, of the last frame.
    pub outputs: Vec<Output>,
    /// The boxes that the outputs state, best first, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boxes: Option<Vec<DetectedBox>>,
    /// What the outputs were taken to be, for these boxes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boxes_read_as: Option<String>,
    /// Outputs compared with references.
    pub comparisons: Vec<Comparison>,
    /// Layers compared with references.
    pub layers_compared: usize,
    /// The first layer that differs from its reference.
    pub first_difference: Option<LayerDifference>,
    /// Median time of a frame.
    pub milliseconds: Option<f64>,
    /// Mean time of each layer in a frame.
    pub profile: Vec<ProfiledLayer>,
}

/// An output.
#[derive(Debug, Clone, Serialize)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// Its dimensions.
    pub dims: Vec<usize>,
    /// Its element type.
    pub element: String,
    /// Least element.
    pub min: f64,
    /// Largest element.
    pub max: f64,
    /// Mean of all elements.
    pub mean: f64,
    /// Elements that are not a number. All other figures leave them out.
    pub not_numbers: usize,
    /// The largest elements with their row-major indices. Of equal elements, the first comes first.
    pub top: Vec<(usize, f64)>,
    /// The names of these, if they are classes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
}

/// A box that a detector found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DetectedBox {
    /// Its class, counted from 0.
    pub class: usize,
    /// The name of the class, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its score, from 0 to 1.
    pub score: f64,
    /// Left, top, right and bottom, in the network's units.
    pub corners: [f64; 4],
}

/// A tensor compared with its reference.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// Its name.
    pub name: String,
    /// The reason why a comparison is impossible, if it is.
    pub mismatch: Option<String>,
    /// Largest absolute difference. It is infinite if only one of two elements is a number.
    pub difference: f64,
    /// Largest absolute element of the reference.
    pub largest: f64,
    /// `difference / largest`.
    pub relative: f64,
}

/// A layer that differs.
#[derive(Debug, Clone, Serialize)]
pub struct LayerDifference {
    /// The layer.
    pub layer: String,
    /// Its tensor compared with the reference.
    pub comparison: Comparison,
}

/// Time of a layer.
#[derive(Debug, Clone, Serialize)]
pub struct ProfiledLayer {
    /// The layer.
    pub layer: String,
    /// Its kind.
    pub operator: String,
    /// The primitive that computed it.
    pub primitive: String,
    /// Firings in a frame, as they were counted.
    pub firings: u64,
    /// All its firings in a frame.
    pub milliseconds: f64,
    /// The same, as the plan states it.
    pub modelled: Option<f64>,
}

impl RunReport {
    /// Whether everything that was compared is equal within [`TOLERANCE`].
    pub fn is_equal(&self) -> bool {
        self.cnns
            .iter()
            .all(|cnn| cnn.first_difference.is_none() && cnn.comparisons.iter().all(Comparison::is_equal))
    }
}

impl Output {
    /// The figures of an output.
    pub fn new(name: &str, value: &Value) -> Self {
        let all = numbers(&value.data);
        let mut top: Vec<(usize, f64)> =
            all.iter().copied().enumerate().filter(|(_, value)| !value.is_nan()).collect();
        let numbers = top.len();
        let fold = |start: f64, f: fn(f64, f64) -> f64| top.iter().map(|(_, value)| *value).fold(start, f);
        let (min, max) = (fold(f64::INFINITY, f64::min), fold(f64::NEG_INFINITY, f64::max));
        let mean = fold(0.0, |sum, value| sum + value) / numbers.max(1) as f64;
        // The sort is stable.
        top.sort_by(|a, b| b.1.total_cmp(&a.1));
        top.truncate(TOP);
        let not_numbers = all.len() - numbers;
        let (name, element) = (name.to_owned(), value.data.element().to_owned());
        let (dims, classes) = (value.dims.clone(), Vec::new());
        Output { name, dims, element, min, max, mean, not_numbers, top, classes }
    }

    /// Names the largest elements, if there are as many names as elements.
    pub fn classify(&mut self, names: &[String]) {
        if self.dims.iter().product::<usize>() == names.len() {
            self.classes = self.top.iter().filter_map(|(index, _)| names.get(*index).cloned()).collect();
        }
    }
}

impl Comparison {
    /// Compares a tensor with its reference.
    pub fn new(name: &str, value: &Value, reference: &Value) -> Self {
        let (a, b) = (numbers(&value.data), numbers(&reference.data));
        let mismatch = (value.dims != reference.dims).then(|| {
            format!("its dimensions are {:?}, those of the reference are {:?}", value.dims, reference.dims)
        });
        let difference = |(a, b): (&f64, &f64)| match (a - b).abs() {
            _ if a == b || (a.is_nan() && b.is_nan()) => 0.0,
            difference if difference.is_nan() => f64::INFINITY,
            difference => difference,
        };
        let difference = a.iter().zip(&b).map(difference).fold(0.0, f64::max);
        let largest = b.iter().map(|b| b.abs()).filter(|b| b.is_finite()).fold(0.0, f64::max);
        let relative = if difference == 0.0 { 0.0 } else { difference / largest };
        Comparison { name: name.to_owned(), mismatch, difference, largest, relative }
    }

    /// Compares a layer's tensor with its reference. The tensor may have more dimensions of 1, or have them elsewhere, since
    /// csdfc makes lines, and images of one row, as images of one column.
    pub fn of_layer(name: &str, value: &Value, reference: Value) -> Self {
        let long = |value: &Value| value.dims.iter().copied().filter(|dim| *dim != 1).collect::<Vec<_>>();
        let dims = if long(value) == long(&reference) { value.dims.clone() } else { reference.dims };
        Self::new(name, value, &Value { dims, data: reference.data })
    }

    /// Whether the two are equal within [`TOLERANCE`].
    pub fn is_equal(&self) -> bool {
        self.mismatch.is_none() && self.relative <= TOLERANCE
    }
}

/// The report for people.
pub fn text(report: &RunReport) -> String {
    let mut text = format!("{}: arena of {} bytes\n", report.application, report.arena_bytes);
    for cnn in &report.cnns {
        // Writing to a string cannot fail.
        let _ = write_cnn(&mut text, cnn);
    }
    text
}

fn write_cnn(text: &mut String, cnn: &CnnRun) -> std::fmt::Result {
    write!(text, "\n{}", cnn.name)?;
    if let Some(milliseconds) = cnn.milliseconds {
        write!(text, ": {milliseconds:.3} ms a frame")?;
    }
    text.push('\n');
    for output in &cnn.outputs {
        let dims: Vec<String> = output.dims.iter().map(ToString::to_string).collect();
        writeln!(text, "  output {}, {} {}", output.name, output.element, dims.join("×"))?;
        writeln!(text, "    min {:.6}, max {:.6}, mean {:.6}", output.min, output.max, output.mean)?;
        if output.not_numbers > 0 {
            writeln!(text, "    {} elements are not a number", output.not_numbers)?;
        }
        if output.classes.is_empty() {
            let top: Vec<String> = output.top.iter().map(|(i, value)| format!("{i}: {value:.6}")).collect();
            writeln!(text, "    largest at {}", top.join(", "))?;
        }
        for (number, (class, (_, value))) in output.classes.iter().zip(&output.top).enumerate() {
            writeln!(text, "    {}. {class}: {value:.6}", number + 1)?;
        }
    }
    if let Some(boxes) = &cnn.boxes {
        let read_as = cnn.boxes_read_as.as_deref().unwrap_or_default();
        writeln!(text, "  boxes: {} (of {read_as})", boxes.len())?;
        for (number, one) in boxes.iter().enumerate() {
            let name = one.name.clone().unwrap_or_else(|| format!("class {}", one.class));
            let [left, top, right, bottom] = one.corners;
            writeln!(
                text,
                "    {}. {name}: {:.6} from {left:.3}, {top:.3} to {right:.3}, {bottom:.3}",
                number + 1,
                one.score
            )?;
        }
    }
    for comparison in &cnn.comparisons {
        writeln!(text, "  compared: {}", sentence(comparison))?;
    }
    if let Some(LayerDifference { layer, comparison }) = &cnn.first_difference {
        writeln!(text, "  the first layer that differs is {layer}: {}", sentence(comparison))?;
    } else if cnn.layers_compared > 0 {
        writeln!(text, "  {} layers compared, all equal within {TOLERANCE:e}", cnn.layers_compared)?;
    }
    let total: f64 = cnn.profile.iter().map(|time| time.milliseconds).sum();
    let width = cnn.profile.iter().map(|time| time.layer.chars().count()).max().unwrap_or(0).clamp(5, 48);
    if !cnn.profile.is_empty() {
        writeln!(
            text,
            "  {:width$}  {:14} {:>12} {:>7} {:>12}",
            "layer", "operator", "measured", "", "planned"
        )?;
    }
    for ProfiledLayer { layer, operator, primitive, firings, milliseconds, modelled } in &cnn.profile {
        let share = 100.0 * milliseconds / total.max(f64::MIN_POSITIVE);
        let modelled = modelled.map_or(String::new(), |modelled| format!("{modelled:.3} ms"));
        writeln!(
            text,
            "  {layer:width$}  {operator:14} {milliseconds:9.3} ms {share:5.1} % {modelled:>12}  {firings:4} × {primitive}"
        )?;
    }
    Ok(())
}

fn sentence(comparison: &Comparison) -> String {
    let Comparison { name, mismatch, difference, largest, relative } = comparison;
    let verdict = if comparison.is_equal() { "equal" } else { "differs" };
    match mismatch {
        Some(mismatch) => format!("{name} differs: {mismatch}"),
        None => format!(
            "{name} {verdict}: the largest difference is {difference:.3e}, {relative:.1e} of the largest element, {largest:.3e}"
        ),
    }
}

fn numbers(data: &Data) -> Vec<f64> {
    match data {
        Data::F32(values) => values.iter().copied().map(f64::from).collect(),
        Data::U8(values) => values.iter().copied().map(f64::from).collect(),
        Data::I8(values) => values.iter().copied().map(f64::from).collect(),
        Data::I64(values) => values.iter().map(|value| *value as f64).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_relative_to_the_largest_element() {
        let value = |values: &[f32]| Value { dims: vec![values.len()], data: Data::F32(values.to_vec()) };
        let check = |a: &[f32], b: &[f32], relative: f64, equal: bool| {
            let comparison = Comparison::new("x", &value(a), &value(b));
            assert_eq!((comparison.relative, comparison.is_equal()), (relative, equal), "{a:?} {b:?}");
        };
        check(&[1.0, 2.0], &[1.0, 2.0], 0.0, true);
        check(&[1.5, -4.0], &[1.0, -4.0], 0.125, false);
        check(&[f32::NAN], &[f32::NAN], 0.0, true);
        check(&[f32::NAN], &[1.0], f64::INFINITY, false);
        check(&[f32::INFINITY, 1.0], &[f32::INFINITY, 1.0], 0.0, true);
        check(&[1e-3], &[0.0], f64::INFINITY, false);
        assert!(!Comparison::new("x", &value(&[0.0]), &value(&[0.0, 0.0])).is_equal());
    }

    #[test]
    fn lines_are_compared_with_images_of_one_column() {
        let value = |dims: &[usize]| Value { dims: dims.to_vec(), data: Data::F32(vec![1.0; 6]) };
        let check = |dims: &[usize]| Comparison::of_layer("x", &value(&[1, 2, 3, 1]), value(dims)).is_equal();
        assert!(check(&[1, 2, 3]) && check(&[1, 2, 1, 3]));
        assert!(!check(&[1, 3, 2]) && !check(&[6]));
    }

    #[test]
    fn outputs_have_their_figures() {
        let value = Value { dims: vec![6], data: Data::F32(vec![1.0, 3.0, f32::NAN, 3.0, -1.0, 0.0]) };
        let output = Output::new("x", &value);
        assert_eq!((output.min, output.max, output.mean, output.not_numbers), (-1.0, 3.0, 1.2, 1));
        assert_eq!(output.top, [(1, 3.0), (3, 3.0), (0, 1.0), (5, 0.0), (4, -1.0)]);
    }
}
