//! Convolutions between a `SPACE_TO_BATCH_ND` and a `BATCH_TO_SPACE_ND` are those with a dilation.

use csdfc_plan::operator::Operator;

use super::Field::{self, Byte, Int, Ints};
use super::Model;
use super::text;

/// Fields of a convolution of stride 1 and of no padding.
const VALID: [(usize, Field); 3] = [(0, Byte(1)), (1, Int(1)), (2, Int(1))];

/// A dilated image: its block, padding, crops, sizes of the filters and of the image, and whether each channel is for itself.
struct Image {
    block: [i32; 2],
    paddings: [i32; 4],
    crops: [i32; 4],
    size: [i32; 2],
    filter: [i32; 2],
    is_depthwise: bool,
}

impl Image {
    fn name(&self) -> &'static str {
        if self.is_depthwise { "DEPTHWISE_CONV_2D" } else { "CONV_2D" }
    }

    fn filters(&self) -> Vec<i32> {
        let [rows, columns] = self.filter;
        vec![if self.is_depthwise { 1 } else { 4 }, rows, columns, 4]
    }

    /// As TensorFlow writes it, with a bias and an activation behind it.
    fn batches(&self) -> Model {
        let mut model = Model::default();
        let [rows, columns] = self.size;
        let x = model.input(&[1, rows, columns, 4]);
        let block = model.list(&self.block);
        let paddings = model.ints(&[2, 2], &self.paddings);
        let [p, c] = [self.paddings, self.crops];
        let spread = [0, 1].map(|i| (self.size[i] + p[2 * i] + p[2 * i + 1]) / self.block[i]);
        let batches = self.block[0] * self.block[1];
        let many = model.made(&[batches, spread[0], spread[1], 4]);
        model.operator("SPACE_TO_BATCH_ND", &[x, block, paddings], &[many], &[]);
        let filters = model.floats(&self.filters());
        let left = [0, 1].map(|i| spread[i] - self.filter[i] + 1);
        let convolved = model.made(&[batches, left[0], left[1], 4]);
        model.operator(self.name(), &[many, filters, -1], &[convolved], &VALID);
        let crops = model.ints(&[2, 2], &self.crops);
        let made = [0, 1].map(|i| left[i] * self.block[i] - c[2 * i] - c[2 * i + 1]);
        let joined = model.made(&[1, made[0], made[1], 4]);
        model.operator("BATCH_TO_SPACE_ND", &[convolved, block, crops], &[joined], &[]);
        let (bias, y) = (model.floats(&[4]), model.made(&[1, made[0], made[1], 4]));
        model.operator("ADD", &[joined, bias], &[y], &[(0, Byte(1))]);
        model.outputs = vec![y];
        model
    }

    /// As one convolution of an image that is padded and cropped by operators of their own.
    fn dilated(&self, padding: [i32; 4], crops: [i32; 4]) -> Model {
        let mut model = Model::default();
        let [rows, columns] = self.size;
        let x = model.input(&[1, rows, columns, 4]);
        let [top, bottom, left, right] = padding;
        let [height, width] = [rows + top + bottom, columns + left + right];
        let padded = model.made(&[1, height, width, 4]);
        let pads = model.ints(&[4, 2], &[0, 0, top, bottom, left, right, 0, 0]);
        model.operator("PAD", &[x, pads], &[padded], &[]);
        let from = if padding == [0; 4] { x } else { padded };
        let filters = model.floats(&self.filters());
        let [height, width] =
            [height - (self.filter[0] - 1) * self.block[0], width - (self.filter[1] - 1) * self.block[1]];
        let convolved = model.made(&[1, height, width, 4]);
        let mut options = VALID.to_vec();
        let first = if self.is_depthwise { 5 } else { 4 };
        options.extend([(first, Int(self.block[1])), (first + 1, Int(self.block[0]))]);
        model.operator(self.name(), &[from, filters, -1], &[convolved], &options);
        let [top, bottom, left, right] = crops;
        let [height, width] = [height - top - bottom, width - left - right];
        let begin = model.list(&[0, top, left, 0]);
        let size = model.list(&[1, height, width, 4]);
        let cropped = model.made(&[1, height, width, 4]);
        model.operator("SLICE", &[convolved, begin, size], &[cropped], &[]);
        let from = if crops == [0; 4] { convolved } else { cropped };
        let (bias, y) = (model.floats(&[4]), model.made(&[1, height, width, 4]));
        model.operator("ADD", &[from, bias], &[y], &[(0, Byte(1))]);
        model.outputs = vec![y];
        model
    }
}

/// A model with such a convolution.
pub(super) fn example() -> Model {
    let (block, size, filter) = ([2, 2], [8, 8], [3, 3]);
    Image { block, paddings: [2; 4], crops: [0; 4], size, filter, is_depthwise: false }.batches()
}

/// The layers of a model, normalised: a padding is that of the convolution.
fn layers(model: &Model) -> String {
    let network = model.import().unwrap();
    text(&csdfc_network::pass::normalise(network, csdfc_network::pass::Fusion::Full))
}

#[test]
fn images() {
    // Padding that makes blocks whole is cropped again; then the same padding as that of SAME; then more cropped than padded.
    for (paddings, crops, padding, left) in [
        ([0, 1, 0, 2], [0, 1, 0, 2], [0; 4], [0; 4]),
        ([2, 3, 3, 5], [0, 1, 0, 2], [2, 2, 3, 3], [0; 4]),
        ([0, 1, 1, 1], [1, 0, 0, 3], [0, 1, 1, 0], [1, 0, 0, 2]),
    ] {
        for is_depthwise in [false, true] {
            let image =
                Image { block: [2, 3], paddings, crops, size: [11, 13], filter: [3, 2], is_depthwise };
            assert_eq!(layers(&image.batches()), layers(&image.dilated(padding, left)));
        }
    }
}

/// A line of a causal network, seen as an image of one row or of one column.
#[test]
fn lines() {
    for (filter, unit) in [([1, 3], 1), ([3, 1], 2)] {
        let with = |line: [i32; 3]| {
            let mut image = line.to_vec();
            image.insert(unit, 1);
            image
        };
        let mut model = Model::default();
        let x = model.input(&[1, 30, 4]);
        let (block, paddings, crops) =
            (model.list(&[4]), model.ints(&[1, 2], &[8, 2]), model.ints(&[1, 2], &[0, 2]));
        let spread = model.made(&[4, 10, 4]);
        model.operator("SPACE_TO_BATCH_ND", &[x, block, paddings], &[spread], &[]);
        let (axis, image) = (model.ints(&[], &[unit as i32]), model.made(&with([4, 10, 4])));
        model.operator("EXPAND_DIMS", &[spread, axis], &[image], &[]);
        let filters = model.floats(&[4, filter[0], filter[1], 4]);
        let convolved = model.made(&with([4, 8, 4]));
        model.operator("CONV_2D", &[image, filters, -1], &[convolved], &VALID);
        let (line, activated) = (model.made(&[4, 8, 4]), model.made(&[4, 8, 4]));
        model.operator("SQUEEZE", &[convolved], &[line], &[(0, Ints(vec![unit as i32]))]);
        model.operator("RELU", &[line], &[activated], &[]);
        let y = model.made(&[1, 30, 4]);
        model.operator("BATCH_TO_SPACE_ND", &[activated, block, crops], &[y], &[]);
        model.outputs = vec![y];

        let network = model.import().unwrap();
        assert_eq!(network.outputs[0].operand.shape.dims, [1, 30, 4]);
        let convolution = network.layers.iter().find(|layer| layer.operator.kind() == "conv").unwrap();
        let Operator::Conv(conv) = &convolution.operator else { panic!("{:?}", convolution.operator) };
        let of_line = |along: usize, across: usize| if unit == 1 { [across, along] } else { [along, across] };
        assert_eq!(conv.dilation, of_line(4, 1));
        let [before, after] = [of_line(8, 0), of_line(0, 0)];
        assert_eq!(conv.pads, [before[0], before[1], after[0], after[1]]);
    }
}

/// Batches that no `BATCH_TO_SPACE_ND` of the same block puts together again.
#[test]
fn batches_alone_are_refused() {
    let refused = |model: &Model| {
        let error = model.import().unwrap_err().to_string();
        assert!(error.contains("it makes batches, but csdfc plans one frame at a time"), "{error}");
    };
    // The batches are an output too.
    let mut model = example();
    model.outputs.push(model.operators[1].outputs[0]);
    refused(&model);
    let mut model = example();
    model.operators[1].options[1] = (1, Int(2));
    refused(&model);
    let mut model = example();
    let other = model.list(&[4, 1]);
    model.operators[2].inputs[1] = other;
    refused(&model);
}
