//! The page's part on memory. Its figures are exact, and the same on every machine.

use std::fmt::Write;

use csdfc_command::picture::chart::{Chart, Series};
use csdfc_input::units::grouped;
use csdfc_kernels::conv::mec::{Solution, T};
use csdfc_kernels::conv::mec_batch::MecBatch;

use super::layers::{Layer, STRIDES, TABLE_2, TABLE_3, cv1};
use super::methods::Method;

/// Bytes of a float, and of a MiB.
const FLOAT: usize = 4;
const MIB: f64 = (1 << 20) as f64;

/// Floats of the workspace for one image, and floats of the packed filters, if the method can convolve the layer.
fn floats(method: Method, layer: &Layer) -> Option<[usize; 2]> {
    let weights = vec![0.0; layer.filters * layer.channels * layer.kernel.pow(2)];
    let convolution = method.convolution(layer, 1, &weights)?;
    Some([convolution.workspace, convolution.kept(layer)])
}

/// Floats of the workspaces of im2col and of MEC, and how many times smaller that of MEC is.
fn lowered(layer: &Layer) -> ([usize; 2], f64) {
    let [im2col, mec] = [Method::Im2col, Method::Mec].map(|m| floats(m, layer).map_or(0, |[room, _]| room));
    ([im2col, mec], im2col as f64 / mec as f64)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// Table 2, and the memory that each method takes.
pub fn table_2() -> String {
    let mut text = String::from(
        "| layer | input | filters, stride | output | im2col | MEC | times less | solution |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for layer in &TABLE_2 {
        let Layer { name, size, channels, kernel, filters, stride } = *layer;
        let ([im2col, mec], ratio) = lowered(layer);
        let is_a = MecBatch::new(layer.scenario(), 1, T).solution == Solution::A;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {name} | {size}×{size}×{channels} | {kernel}×{kernel}×{filters}, {stride} | {made}×{made} | {} | {} \
             | {ratio:.2} | {} |",
            grouped(im2col as u64),
            grouped(mec as u64),
            if is_a { "A" } else { "B" },
            made = layer.output(),
        );
    }
    text
}

/// Bytes that each method allocates for one image.
pub fn allocated() -> String {
    let columns: Vec<Method> = Method::ALL.into_iter().filter(|method| *method != Method::MecB).collect();
    let mut text = String::from("| layer |");
    columns.iter().for_each(|method| text.push_str(&format!(" {} |", method.name())));
    text.push_str(" Winograd's filters |\n| --- |");
    text.push_str(&" --- |".repeat(columns.len() + 1));
    text.push('\n');
    let bytes = |floats: Option<usize>| {
        floats.map_or_else(|| "–".to_owned(), |floats| grouped((FLOAT * floats) as u64))
    };
    for layer in &TABLE_2 {
        let _ = write!(text, "| {} |", layer.name);
        for &method in &columns {
            let _ = write!(text, " {} |", bytes(floats(method, layer).map(|[room, _]| room)));
        }
        let filters = floats(Method::WinogradWhole, layer).map(|[_, kept]| kept);
        let _ = writeln!(text, " {} |", bytes(filters));
    }
    text
}

/// MiB of im2col and of MEC for all occurrences of a layer of Table 3.
fn occurrences() -> Vec<[f64; 2]> {
    let of = |name: &str| TABLE_2.iter().find(|layer| layer.name == name);
    let mib =
        |count: usize, layer: &Layer| lowered(layer).0.map(|floats| (count * FLOAT * floats) as f64 / MIB);
    TABLE_3.iter().filter_map(|row| Some(mib(row.count, of(row.layer)?))).collect()
}

/// Table 3.
pub fn table_3() -> String {
    let mut text = String::from(
        "| layer | times | im2col: paper | csdfc | MEC: paper | csdfc |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    let (mut ours, mut print) = ([0.0; 2], [0.0; 2]);
    for (row, found) in TABLE_3.iter().zip(occurrences()) {
        for i in 0..2 {
            ours[i] += found[i];
            print[i] += row.memory[i];
        }
        let [im2col, mec] = row.memory;
        let _ = writeln!(
            text,
            "| {} | {} | {im2col} | {:.2} | {mec} | {:.2} |",
            row.layer, row.count, found[0], found[1]
        );
    }
    let _ = writeln!(
        text,
        "| sum | | {:.1} | {:.2} | {:.1} | {:.2} |\n\nThe paper's sums are {:.1} times apart, csdfc's {:.2} times.",
        print[0],
        ours[0],
        print[1],
        ours[1],
        print[0] / print[1],
        ours[0] / ours[1]
    );
    text
}

/// The stride sweep, and its figure.
pub fn figure_4a() -> (String, String) {
    let mut text = String::from("| stride | im2col | MEC | times less |\n| --- | --- | --- | --- |\n");
    let mut points = Vec::new();
    for stride in STRIDES {
        let ([im2col, mec], ratio) = lowered(&cv1(stride));
        let _ = writeln!(
            text,
            "| {stride} | {} | {} | {ratio:.2} |",
            grouped(im2col as u64),
            grouped(mec as u64)
        );
        points.push([stride as f64, ratio]);
    }
    let chart = Chart {
        title: "cv1, 11×11 filters: memory of im2col to that of MEC".into(),
        x: "stride".into(),
        y: "times less".into(),
        lines: vec![Series { name: "memory".into(), points }],
    };
    (text, chart.svg())
}

/// The headlines of memory.
pub fn headlines() -> String {
    let ratios = || TABLE_2.iter().map(|layer| lowered(layer).1);
    let largest = TABLE_2.iter().max_by(|a, b| lowered(a).1.total_cmp(&lowered(b).1));
    let winograd = |with_filters: bool| {
        let of = |layer: &Layer| {
            let [room, kept] = floats(Method::WinogradWhole, layer)?;
            let kept = if with_filters { kept } else { 0 };
            Some((room + kept) as f64 / lowered(layer).0[1] as f64)
        };
        // cv6 to cv12 are the layers with 3×3 filters.
        mean(TABLE_2.iter().filter_map(of))
    };
    let sums = occurrences().into_iter().fold([0.0; 2], |sum, of| [sum[0] + of[0], sum[1] + of[1]]);
    format!(
        "| memory | paper | csdfc |\n| --- | --- | --- |\n\
         | times less than im2col on average | 3.2 | {:.2} (Table 3's sums); {:.2} (mean of cv1 to cv12) |\n\
         | at most | 3.4 | {:.2} ({}) |\n\
         | times less than Winograd, mean of cv6 to cv12 | 5.9 | {:.1}; {:.1} with its filters |\n",
        sums[0] / sums[1],
        mean(ratios()),
        ratios().fold(0.0, f64::max),
        largest.map_or("", |layer| layer.name),
        winograd(false),
        winograd(true),
    )
}

#[cfg(test)]
mod tests {
    use csdfc_plan::operator::{Conv, Operator};
    use csdfc_plan::shape::Shape;
    use csdfc_runtime::bind::Primitive;

    use super::*;

    /// The workspaces here are those that the table of primitives states, and so those of plans.
    #[test]
    fn workspaces_are_those_of_the_primitives() {
        for layer in &TABLE_2 {
            let Layer { size, channels, kernel, filters, stride, .. } = *layer;
            let conv = Operator::Conv(Conv {
                filters,
                kernel: [kernel; 2],
                stride: [stride; 2],
                dilation: [1; 2],
                pads: [0; 4],
                groups: 1,
                bias: false,
                pre: None,
                residual: false,
                activation: None,
            });
            let (input, output) =
                (Shape::image(channels, size, size), Shape::image(filters, layer.output(), layer.output()));
            for (name, method) in [
                ("im2row-panels-hwc-hwc", Method::Im2col),
                ("im2col-lines-hwc-chw", Method::Im2col),
                ("mec-b-hwc-hwc", Method::Mec),
                ("mec-strip-hwc-hwc", Method::MecStrip),
                ("winograd-f2x2-3x3-hwc-hwc", Method::WinogradStrip),
                ("indirect-gemm-hwc-hwc", Method::Indirect),
            ] {
                let primitive = Primitive::find(name).unwrap();
                let computes = primitive.computes(&conv, &[&input]);
                let stated = computes.then(|| primitive.workspace_bytes(&conv, &[&input], &output));
                let found = floats(method, layer).map(|[room, _]| (FLOAT * room) as u64);
                assert_eq!(found, stated, "{name} of {}", layer.name);
            }
            let a = Primitive::find("mec-a-hwc-chw").unwrap().computes(&conv, &[&input]);
            let chosen = MecBatch::new(layer.scenario(), 32, T).solution;
            assert_eq!(chosen == Solution::A, a, "{}", layer.name);
        }
    }

    /// Eq. 2 and 3 with i_c for k_c, and Table 3's sums.
    #[test]
    fn sizes_are_those_of_the_paper() {
        assert_eq!(lowered(&TABLE_2[0]).0, [1_098_075, 412_005]);
        assert_eq!(lowered(&TABLE_2[3]).0, [37_258_816, 10_938_368]);
        for layer in &TABLE_2 {
            let Layer { size, channels, kernel, .. } = *layer;
            let made = layer.output();
            let windows = made * made * kernel * kernel * channels;
            assert_eq!(lowered(layer).0, [windows, made * size * kernel * channels], "{}", layer.name);
        }
        // The paper rounds the sums of occurrences to one digit. For cv9 it prints 6.7, though the sum is 6.64.
        for (row, found) in TABLE_3.iter().zip(occurrences()) {
            for (printed, found) in row.memory.iter().zip(found) {
                let most = if (row.layer, *printed) == ("cv9", 6.7) { 0.06 } else { 0.05 };
                assert!((printed - found).abs() <= most, "{}: {found}, printed {printed}", row.layer);
            }
        }
        let text = table_3();
        assert!(text.contains("\n| cv9 | 3 | 19.2 | 19.22 | 6.7 | 6.64 |\n"), "{text}");
        assert!(text.contains("\n| sum | | 203.6 | "), "{text}");
        assert!(text.contains(" | 64.6 | 64."), "{text}");
    }

    /// The ratio falls to 1: if no rows of windows overlap, nothing is saved.
    #[test]
    fn the_sweep_falls_with_the_stride() {
        let ratios: Vec<f64> = STRIDES.map(|stride| lowered(&cv1(stride)).1).collect();
        assert!(ratios.is_sorted_by(|a, b| a > b), "{ratios:?}");
        assert_eq!(
            (format!("{:.2}", ratios[0]), format!("{:.2}", ratios[9])),
            ("10.52".into(), "1.07".into())
        );
        assert!((ratios[10] - 1.0).abs() < 0.05, "{ratios:?}");
    }
}
