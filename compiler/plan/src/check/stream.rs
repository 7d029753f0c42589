//! Rule 3 for streams: which rows of a hop a layer reads, and how far tensors lag behind.
//!
//! A tensor whose rows follow each other in time is endless: its row a does not exist for a < 0. Row i of hop f is row
//! a = f · H + i − delay. A layer over time makes row a of its output from the rows `[a·s − t, a·s − t + extent)` of an
//! operand, as it does in a frame; rows before the first count as padding. So row i of a hop reads the rows
//! `[i·s − top, i·s − top + extent)` of the same hop, with `top = t + delay·s − delay of the operand`. Negative rows are
//! rows of the hops before: the *history*. The delay is the least that lets the last row of a hop read no row of the
//! next one.

use crate::format::Layout;
use crate::operator::{Operator, PoolKind};
use crate::plan::{StorageModel, StreamRows};

use super::index::{CnnIndex, Index};
use super::span::Span;
use super::{Findings, Violation};

/// Maximum number of rows of a delay, of a history, or of a window.
const MAX_HISTORY: i64 = 1 << 20;

/// How a layer over time reads an operand, in a frame.
#[derive(Clone, Copy)]
struct Window {
    /// Rows from the first to the last.
    extent: i64,
    stride: i64,
    top: i64,
    /// Rows of the output for each row read, if the stride is 1 and there is no padding.
    up: i64,
}

const SAME: Window = Window { extent: 1, stride: 1, top: 0, up: 1 };

/// By layer of a stream, whether it works along time: its operands are rows that follow each other in time, and it reads
/// some rows around each. Any other layer computes each hop by itself. Empty if the CNN is no stream.
pub(super) fn over_time(cnn: &CnnIndex<'_>) -> Vec<bool> {
    if cnn.cnn.stream.is_none() {
        return Vec::new();
    }
    let mut over_time: Vec<bool> = Vec::new();
    for (l, entry) in cnn.layers.iter().enumerate() {
        let is_time = |&tensor: &usize| over_time[tensor] || cnn.layers[tensor].inputs.is_empty();
        let mut operands = entry.inputs.iter().enumerate();
        let reads = operands.all(|(operand, tensor)| is_time(tensor) && window(cnn, l, operand).is_some());
        over_time.push(!entry.inputs.is_empty() && reads);
    }
    over_time
}

/// The operator that makes the rows of one hop: its windows cover all rows, each once, since what they read of other hops
/// makes no more rows.
pub(super) fn of_hop(operator: &Operator) -> Operator {
    let mut operator = operator.clone();
    let tile =
        |kernel: &mut [usize; 2], stride: [usize; 2], dilation: &mut [usize; 2], pads: &mut [usize; 4]| {
            (kernel[0], dilation[0], pads[0], pads[2]) = (stride[0], 1, 0, 0);
        };
    match &mut operator {
        Operator::Conv(conv) => tile(&mut conv.kernel, conv.stride, &mut conv.dilation, &mut conv.pads),
        Operator::Pool(pool) => tile(&mut pool.kernel, pool.stride, &mut pool.dilation, &mut pool.pads),
        _ => {}
    }
    operator
}

/// How a layer over time reads operand `operand`. `None` if it needs more than some rows around each row.
fn window(cnn: &CnnIndex<'_>, layer: usize, operand: usize) -> Option<Window> {
    let (entry, seen) = (&cnn.layers[layer], cnn.viewed_shape(layer, operand));
    let own = &cnn.layers[entry.inputs[operand]].tensor.shape;
    let row = seen.row_axis()?;
    let keeps = own.is_image() && seen.is_image() && own.keeps_rows(seen) && entry.tensor.shape.is_image();
    if !keeps || entry.tensor.shape.row_axis() != Some(row) {
        return None;
    }
    let number = |value: usize| i64::try_from(value).ok().filter(|value| *value <= MAX_HISTORY);
    let windows = |kernel: usize, stride: usize, dilation: usize, top: usize| {
        let extent = (number(kernel)?.checked_sub(1)?).checked_mul(number(dilation)?)?.checked_add(1)?;
        let stride = number(stride).filter(|stride| *stride > 0)?;
        let is_sound = (1..=MAX_HISTORY).contains(&extent);
        is_sound.then_some(Window { extent, stride, top: number(top)?, up: 1 })
    };
    let is_residual = |residual: bool| residual && operand + 1 == entry.inputs.len();
    match &entry.layer.operator {
        Operator::Conv(conv) if is_residual(conv.residual) => Some(SAME),
        Operator::Conv(conv) => windows(conv.kernel[0], conv.stride[0], conv.dilation[0], conv.pads[0]),
        Operator::Pool(pool) if pool.kind != PoolKind::MaxIndex => {
            windows(pool.kernel[0], pool.stride[0], pool.dilation[0], pool.pads[0])
        }
        Operator::SpaceToDepth(blocks) => windows(blocks.block, blocks.block, 1, 0),
        Operator::DepthToSpace(blocks) => Some(Window { up: number(blocks.block)?, ..SAME }),
        Operator::ElementWise(_) | Operator::BatchNorm(_) | Operator::Convert | Operator::Gemm(_) => {
            Some(SAME)
        }
        Operator::Lrn(_) => Some(SAME),
        // What the rows before have left, it keeps in its workspace.
        Operator::Recurrent(recurrent) => (!recurrent.initial).then_some(SAME),
        Operator::Binary(_) if seen.rows() == entry.tensor.rows() => Some(SAME),
        Operator::Softmax(softmax) if !softmax.axes.contains(&row) => Some(SAME),
        Operator::Reduce(reduce) if !reduce.axes.contains(&row) => Some(SAME),
        Operator::Concat(concat) if concat.axis != row => Some(SAME),
        Operator::Slice(slice) => {
            let ends = (slice.starts.get(row)?, slice.steps.get(row)?, slice.lengths.get(row)?);
            (ends == (&0, &1, &seen.rows())).then_some(SAME)
        }
        Operator::Pad(pad) => {
            ((pad.before.get(row), pad.after.get(row)) == (Some(&0), Some(&0))).then_some(SAME)
        }
        _ => None,
    }
}

/// The spans of a hop's output rows in one operand of a layer over time.
pub(super) fn spans(cnn: &CnnIndex<'_>, layer: usize, operand: usize) -> Option<Vec<Span>> {
    let entry = &cnn.layers[layer];
    let Window { extent, stride, up, .. } = window(cnn, layer, operand)?;
    let top = top(cnn, layer, operand)?;
    Some(
        (0..entry.rows() as i64)
            .map(|y| y / up * stride - top)
            .map(|first| (first, first + extent))
            .collect(),
    )
}

/// Rows of the operand before row 0 of the hop that output row 0 of the hop reads.
fn top(cnn: &CnnIndex<'_>, layer: usize, operand: usize) -> Option<i64> {
    let entry = &cnn.layers[layer];
    let Window { stride, top, up, .. } = window(cnn, layer, operand)?;
    let delay = |tensor: usize| delay(cnn.layers[tensor].tensor.stream.as_ref());
    Some(top + delay(layer) * stride - delay(entry.inputs[operand]) * up)
}

fn delay(stream: Option<&StreamRows>) -> i64 {
    stream.map_or(0, |stream| i64::try_from(stream.delay).unwrap_or(MAX_HISTORY).min(MAX_HISTORY))
}

/// Checks the delays and histories of streams against those that follow from their operators.
pub(super) fn check(index: &Index<'_>) -> Result<(), Vec<Violation>> {
    let mut findings = Findings::default();
    for (c, cnn) in index.cnns.iter().enumerate() {
        if cnn.cnn.stream.is_some() {
            check_application(index, c, &mut findings);
        } else if let Some(entry) = cnn.layers.iter().find(|entry| entry.tensor.stream.is_some()) {
            let (name, tensor) = (cnn.cnn.name.clone(), entry.tensor.name.clone());
            let why = "it has `stream`, but its CNN has not".into();
            findings.push(Violation::Tensor { cnn: name, tensor, why });
        }
        for l in 0..cnn.layers.len() {
            check_delay(cnn, l, &mut findings);
        }
    }
    findings.or(())?;
    let mut findings = Findings::default();
    for cnn in &index.cnns {
        for l in 0..cnn.layers.len() {
            check_history(cnn, l, &mut findings);
        }
    }
    findings.or(())
}

/// A stream has one partition, no partitions of its plan run at the same time, and it is in storage model `tensors`.
fn check_application(index: &Index<'_>, c: usize, findings: &mut Findings) {
    let cnn = &index.cnns[c];
    let mut wrong = |why: &str| {
        let place = format!("CNN `{}`, a stream", cnn.cnn.name);
        findings.push(Violation::Structure { place, why: why.into() });
    };
    if index.concurrent.iter().flatten().any(|at_once| *at_once) {
        wrong("is beside partitions that run at the same time");
    }
    if cnn.partitions.len() > 1 {
        wrong("has several partitions");
    }
    if index.plan.storage_model != StorageModel::Tensors {
        wrong("is in storage model `edges`");
    }
    if cnn.layers.iter().any(|entry| entry.tensor.format.layout == Layout::Chw) {
        wrong("has tensors in CHW, whose rows are not apart");
    }
    if cnn.layers.iter().any(|entry| entry.tensor.stream.is_none()) {
        wrong("has tensors without `stream`");
    }
}

fn check_delay(cnn: &CnnIndex<'_>, l: usize, findings: &mut Findings) {
    let entry = &cnn.layers[l];
    let Some(stated) = entry.tensor.stream else { return };
    let mut wrong = |why: String| {
        let (name, layer) = (cnn.cnn.name.clone(), entry.layer.name.clone());
        findings.push(Violation::Operator { cnn: name, layer, why });
    };
    let lag = |tensor: usize| delay(cnn.layers[tensor].tensor.stream.as_ref());
    let expected = if entry.inputs.is_empty() {
        if !entry.tensor.shape.is_image() {
            wrong(format!("rows of {} do not follow each other in time", entry.tensor.shape));
        }
        0
    } else if cnn.is_over_time(l) {
        let each = entry.inputs.iter().enumerate().filter_map(|(operand, &tensor)| {
            let Window { extent, stride, top, up } = window(cnn, l, operand)?;
            // Row H_out − 1 ends at (H_out − 1) · s − top + extent, which is at most H = H_out · s.
            let behind = lag(tensor) * up + extent - stride - top;
            Some((behind.max(0) + stride - 1) / stride)
        });
        each.max().unwrap_or(0)
    } else {
        if let Some(tensor) = entry.inputs.iter().find(|&&tensor| cnn.layers[tensor].rows() != 1) {
            let (tensor, rows) = (&cnn.layers[*tensor].tensor.name, cnn.layers[*tensor].rows());
            wrong(format!("it needs all rows of `{tensor}`, of which a hop makes {rows}"));
        }
        // Each operand is one row of a hop.
        entry.inputs.iter().map(|&tensor| lag(tensor)).max().unwrap_or(0)
    };
    if i64::try_from(stated.delay) != Ok(expected) || expected > MAX_HISTORY {
        wrong(format!("its tensor lags {expected} rows behind, not {}", stated.delay));
    }
}

fn check_history(cnn: &CnnIndex<'_>, l: usize, findings: &mut Findings) {
    let entry = &cnn.layers[l];
    let Some(stated) = entry.tensor.stream else { return };
    let reads = entry.readers.iter().filter(|&&reader| cnn.is_over_time(reader)).flat_map(|&reader| {
        let operands = cnn.layers[reader].inputs.iter().enumerate();
        operands.filter(|(_, tensor)| **tensor == l).map(move |(operand, _)| top(cnn, reader, operand))
    });
    let expected = reads.flatten().max().unwrap_or(0).max(0);
    let mut wrong = |why: String| {
        let (name, tensor) = (cnn.cnn.name.clone(), entry.tensor.name.clone());
        findings.push(Violation::Tensor { cnn: name, tensor, why });
    };
    if i64::try_from(stated.history) != Ok(expected) || expected > MAX_HISTORY {
        wrong(format!("a hop needs {expected} rows of the hops before, not {}", stated.history));
    } else if expected > 0 && entry.tensor.ring.is_none() {
        wrong("rows of the hops before are needed, but it has no ring".into());
    }
}
