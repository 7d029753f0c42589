//! Dilated convolutions as TensorFlow writes them: a `SPACE_TO_BATCH_ND` puts every n-th pixel of a padded image into a
//! batch of its own, a convolution goes over the batches, and a `BATCH_TO_SPACE_ND` puts the pixels together again and
//! crops the image. That is one convolution of the image, with n as its dilation. Cropping takes padding away.
//!
//! Between the three, dimensions of 1 may come and go (a convolution along a line is one of images), and behind the
//! convolution each element may be changed for itself.

use std::collections::BTreeMap;

use super::codes::OperatorCode;
use super::schema::{Model, Operator, Tensor};

/// Maximum number of operators of such a chain.
const MAX_CHAIN_LEN: usize = 16;

/// Largest block, padding, window or dilation.
const MAX_SIZE: i64 = 1 << 16;

/// Operators that change each element for itself, by nothing else or by constants that are the same for all pixels.
const ELEMENT_WISE: &[&str] = &[
    "ADD",
    "DEQUANTIZE",
    "DIV",
    "ELU",
    "HARD_SWISH",
    "LEAKY_RELU",
    "LOGISTIC",
    "MUL",
    "QUANTIZE",
    "RELU",
    "RELU6",
    "RELU_0_TO_1",
    "RELU_N1_TO_1",
    "SUB",
    "TANH",
];

/// What an operator of the chain becomes.
pub(super) enum Part {
    /// The `SPACE_TO_BATCH_ND`: the image itself. A line gets this dimension of 1.
    Image { added: Option<usize> },
    /// An operator that adds or removes dimensions of 1: nothing.
    Same,
    /// The convolution, with this window.
    Convolution(Window),
    /// The `BATCH_TO_SPACE_ND`: what is cropped beyond the padding, before and after rows and columns, and the
    /// dimension that a line loses.
    Cropped { before: [i64; 2], after: [i64; 2], removed: Option<usize> },
}

/// The window of a convolution of stride 1, in rows and columns.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub dilations: [i64; 2],
    /// Padding before the image, and after it.
    pub before: [i64; 2],
    pub after: [i64; 2],
}

/// The operators of all chains among the needed ones. `constant` gives the integers of a tensor, if the file stores them.
pub(super) fn find(
    model: &Model,
    needed: &[usize],
    mut constant: impl FnMut(usize) -> Option<Vec<i64>>,
) -> BTreeMap<usize, Part> {
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); model.tensors.len()];
    for &index in needed {
        model.operators[index].inputs.iter().flatten().for_each(|input| readers[*input].push(index));
    }
    let mut parts = BTreeMap::new();
    for &start in needed {
        if model.operators[start].kind == OperatorCode::Own("SPACE_TO_BATCH_ND") {
            parts.extend(chain(model, &readers, start, &mut constant).into_iter().flatten());
        }
    }
    parts
}

/// The operators from a `SPACE_TO_BATCH_ND` to its `BATCH_TO_SPACE_ND`.
fn chain(
    model: &Model,
    readers: &[Vec<usize>],
    start: usize,
    constant: &mut impl FnMut(usize) -> Option<Vec<i64>>,
) -> Option<Vec<(usize, Part)>> {
    let begin = Blocks::read(model, &model.operators[start], constant)?;
    if !matches!(begin.rank, 3 | 4) {
        return None;
    }
    let (mut at, mut parts, mut found) = (start, Vec::new(), None);
    for _ in 0..MAX_CHAIN_LEN {
        let &[made] = model.operators[at].outputs.as_slice() else { return None };
        let &[reader] = readers[made].as_slice() else { return None };
        if model.outputs.contains(&made) {
            return None;
        }
        let operator = &model.operators[reader];
        let OperatorCode::Own(name) = operator.kind else { return None };
        match (name, found) {
            ("EXPAND_DIMS" | "RESHAPE" | "SQUEEZE", _) if keeps_all_but_ones(model, operator, made) => {
                parts.push((reader, Part::Same));
            }
            ("CONV_2D" | "DEPTHWISE_CONV_2D", None) if operator.inputs.first() == Some(&Some(made)) => {
                let filters = &model.tensors[operator.inputs.get(1).copied().flatten()?];
                let line = (begin.rank == 3).then(|| line(&model.tensors[made], filters));
                found = Some((window(operator, name, filters, &begin.image(line)?)?, line, reader));
            }
            ("BATCH_TO_SPACE_ND", Some((window, line, convolution))) => {
                let end = Blocks::read(model, operator, constant)?;
                if end.block != begin.block || end.rank != begin.rank {
                    return None;
                }
                let crops = end.image(line)?;
                let left = Window {
                    before: excess(window.before, crops.before),
                    after: excess(window.after, crops.after),
                    ..window
                };
                parts.push((start, Part::Image { added: line }));
                parts.push((convolution, Part::Convolution(left)));
                let (before, after) =
                    (excess(crops.before, window.before), excess(crops.after, window.after));
                parts.push((reader, Part::Cropped { before, after, removed: line }));
                return Some(parts);
            }
            (name, Some(_)) if ELEMENT_WISE.contains(&name) && is_same_for_all(model, operator, made) => {}
            _ => return None,
        }
        at = reader;
    }
    None
}

/// By how much rows and columns are more than others, if they are.
fn excess(rows: [i64; 2], others: [i64; 2]) -> [i64; 2] {
    [0, 1].map(|i| (rows[i] - others[i]).max(0))
}

/// The operands of a `SPACE_TO_BATCH_ND` or `BATCH_TO_SPACE_ND`.
struct Blocks {
    rank: usize,
    block: Vec<i64>,
    /// Padding, or what is cropped: before and after each dimension.
    sides: Vec<i64>,
}

impl Blocks {
    fn read(
        model: &Model,
        operator: &Operator,
        constant: &mut impl FnMut(usize) -> Option<Vec<i64>>,
    ) -> Option<Self> {
        let &[Some(x), Some(block), Some(sides)] = operator.inputs.as_slice() else { return None };
        let (block, sides) = (constant(block)?, constant(sides)?);
        let rank = model.tensors[x].dims.len();
        let fits = block.len() + 2 == rank && sides.len() == 2 * block.len();
        let is_small = |least: i64, all: &[i64]| all.iter().all(|value| (least..=MAX_SIZE).contains(value));
        (fits && is_small(1, &block) && is_small(0, &sides)).then_some(Blocks { rank, block, sides })
    }

    /// As rows and columns of an image. The dimension of 1 of a line is given.
    fn image(&self, line: Option<usize>) -> Option<Window> {
        let side = |at: usize, empty: i64, of: &[i64], step: usize| match (line, of) {
            (None, _) => Some([*of.get(at)?, *of.get(at + step)?]),
            (Some(1), _) => Some([empty, *of.get(at)?]),
            (Some(_), _) => Some([*of.get(at)?, empty]),
        };
        Some(Window {
            dilations: side(0, 1, &self.block, 1)?,
            before: side(0, 0, &self.sides, 2)?,
            after: side(1, 0, &self.sides, 2)?,
        })
    }
}

/// The dimension of 1 of a line that a convolution sees as an image: its rows, or its columns.
fn line(image: &Tensor, filters: &Tensor) -> usize {
    match (image.dims.as_slice(), filters.dims.as_slice()) {
        (&[_, 1, columns, _], &[_, rows, ..]) if columns != 1 || rows == 1 => 1,
        _ => 2,
    }
}

/// The window of a convolution of batches, which lie in the image as `blocks` says.
fn window(operator: &Operator, name: &str, filters: &Tensor, blocks: &Window) -> Option<Window> {
    let option = |id: usize, default: i32| {
        operator.options.map_or(Some(default), |options| options.int(id, default).ok())
    };
    let dilated = if name == "CONV_2D" { [5, 4] } else { [6, 5] };
    let &[_, rows, columns, _] = filters.dims.as_slice() else { return None };
    let is_same = operator.options?.code(0).ok()? == 0;
    let mut window = *blocks;
    for (i, size) in [rows, columns].map(i64::from).into_iter().enumerate() {
        let (stride, dilation) = (option(2 - i, 0)?, i64::from(option(dilated[i], 1)?));
        if stride != 1 || ![size, dilation].iter().all(|value| (1..=MAX_SIZE).contains(value)) {
            return None;
        }
        // TFLite pads after the image, if the padding is odd.
        let padding = if is_same { (size - 1) * dilation } else { 0 };
        window.dilations[i] = dilation * blocks.dilations[i];
        window.before[i] += padding / 2 * blocks.dilations[i];
        window.after[i] += (padding - padding / 2) * blocks.dilations[i];
    }
    Some(window)
}

/// Whether an operator changes nothing but the dimensions of 1 of a tensor.
fn keeps_all_but_ones(model: &Model, operator: &Operator, tensor: usize) -> bool {
    let large = |index: usize| model.tensors[index].dims.iter().filter(|dim| **dim != 1);
    operator.inputs.first() == Some(&Some(tensor))
        && operator.outputs.first().is_some_and(|made| large(*made).eq(large(tensor)))
}

/// Whether all operands but this tensor are constants that are the same for all pixels.
fn is_same_for_all(model: &Model, operator: &Operator, tensor: usize) -> bool {
    let is_constant = |index: usize| {
        let is_made = model.operators.iter().any(|operator| operator.outputs.contains(&index));
        let dims = &model.tensors[index].dims;
        !is_made && !model.inputs.contains(&index) && dims.iter().rev().skip(1).all(|dim| *dim == 1)
    };
    operator.inputs.iter().flatten().all(|input| *input == tensor || is_constant(*input))
}
