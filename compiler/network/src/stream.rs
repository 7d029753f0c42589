//! Streams: networks whose inputs never end, such as sound, or the lines of a scanner.
//!
//! A model states a frame of T rows, which follow each other in time. As a stream it has no last row. A *hop* takes the
//! next rows of the inputs, and makes the rows of each tensor that follow from them. No row is computed twice: what
//! windows read of the hops before stays in the rings, as the initial tokens of their channels.
//!
//! Row a of a tensor is made of the same rows as in a frame, and rows before row 0 are padding, as at the top of a frame.
//! There is no padding below: a layer whose windows reach ahead waits for the rows to come, and its tensor lags behind
//! (its *delay*). So hop by hop, a stream makes the rows of one long frame.
//!
//! Some layers need all of time, such as a global pool. They can look over a window of a fixed number of rows of the
//! input instead: once a hop, over what came last. Layers after them compute each hop by itself.
//!
//! ```
//! use csdfc_network::stream::{Streams, of_hops};
//! use csdfc_network::{Layer, Network, Operand};
//! use csdfc_plan::operator::{Input, InputElement, Operator, Pool, PoolKind};
//! use csdfc_plan::shape::Shape;
//!
//! // 32 rows, and the largest of five rows around each, with two rows of padding.
//! let rows = Shape::image(1, 32, 1);
//! let layer = |name: &str, operator, inputs| Layer {
//!     name: name.into(),
//!     onnx_nodes: Vec::new(),
//!     operator,
//!     inputs,
//!     parameters: Vec::new(),
//!     output: name.into(),
//!     shape: rows.clone(),
//!     primitive: None,
//!     quantization: None,
//! };
//! let mut network = Network::default();
//! let input = Operator::Input(Input { element: InputElement::F32, camera: None });
//! let x = network.add(layer("x", input, vec![]));
//! let (kind, kernel, pads) = (PoolKind::Max, [5, 1], [2, 0, 2, 0]);
//! let pool = Pool { kind, kernel, stride: [1; 2], dilation: [1; 2], pads, ceil: false };
//! network.add(layer("pool", Operator::Pool(pool), vec![Operand { layer: x, shape: rows.clone() }]));
//!
//! let hop = of_hops(network, Some(1), None)?;
//! let streams = Streams::new(&hop).ok_or("no stream")?;
//! // A row is made when the two rows below it have come. Four rows stay from hop to hop.
//! assert_eq!((hop.layers[1].rows(), streams.rows[1].delay), (1, 2));
//! assert_eq!(streams.rows[0].history, 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use csdfc_plan::operator::{Function, Operator, Pool, PoolKind, ReduceFunction};
use csdfc_plan::plan::{Stream, StreamRows};
use csdfc_plan::shape::Shape;

use crate::operators::{self, MAX_ROWS, RowAccess};
use crate::{Layer, LayerId, Network, Operand};

/// Why a network cannot be a stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The rows of an input are not rows of an image.
    #[error(
        "input `{input}` of shape {shape} has no rows: a stream takes images, whose rows follow each other in time"
    )]
    NoRows {
        /// The input.
        input: String,
        /// Its shape.
        shape: Shape,
    },
    /// Inputs have different numbers of rows.
    #[error(
        "input `{input}` has {rows} rows, but `{first}` has {expected}: the rows of a stream come together"
    )]
    Inputs {
        /// The input.
        input: String,
        /// Its rows.
        rows: usize,
        /// The first input.
        first: String,
        /// Its rows.
        expected: usize,
    },
    /// A layer looks at all rows of a frame, and no window was given.
    #[error("layer `{layer}` ({kind}) needs all {rows} rows of `{tensor}`, and a stream never ends")]
    NoWindow {
        /// The layer.
        layer: String,
        /// Its operator.
        kind: &'static str,
        /// The tensor.
        tensor: String,
        /// Rows of it in a frame.
        rows: usize,
        /// Rows of the input in a frame.
        frame: usize,
    },
    /// A layer looks at all rows of a frame, and cannot look at a window instead.
    #[error(
        "layer `{layer}` ({kind}) needs all {rows} rows of `{tensor}`, and cannot look at a window of them"
    )]
    NeedsAll {
        /// The layer.
        layer: String,
        /// Its operator.
        kind: &'static str,
        /// The tensor.
        tensor: String,
        /// Rows of it in a frame.
        rows: usize,
    },
    /// A layer has constants that differ from row to row.
    #[error("layer `{layer}` has constants of its own for each row of a frame")]
    RowConstants {
        /// The layer.
        layer: String,
    },
    /// A window is too short for a layer.
    #[error("a window of {window} rows is too short for layer `{layer}`")]
    ShortWindow {
        /// The window.
        window: usize,
        /// The layer.
        layer: String,
    },
    /// A hop does not make whole rows.
    #[error("a hop of {hop} rows does not fit: layer `{layer}` would make no whole number of rows")]
    Hop {
        /// The rows asked for.
        hop: usize,
        /// The layer.
        layer: String,
        /// The least hop that fits. All others are its multiples.
        smallest: usize,
    },
    /// A layer that takes one row at a time gets several in a hop.
    #[error("a hop of {hop} rows does not fit: layer `{layer}` takes one row of a hop")]
    OneRow {
        /// The rows asked for.
        hop: usize,
        /// The layer.
        layer: String,
        /// The hop that fits.
        smallest: usize,
    },
    /// A window does not end where a hop ends.
    #[error("a window of {rows} rows of `{tensor}`, of which a hop makes {step}, does not end with a hop")]
    Window {
        /// The tensor.
        tensor: String,
        /// Rows of it that the layer looks at, and by which it lags.
        rows: usize,
        /// Rows that a hop makes.
        step: usize,
        /// The nearest hop that fits.
        nearest: usize,
    },
    /// Something is too large.
    #[error("layer `{layer}` would need more than {MAX_ROWS} rows")]
    TooLarge {
        /// The layer.
        layer: String,
    },
}

impl StreamError {
    /// What would work.
    pub fn help(&self) -> Option<String> {
        match self {
            StreamError::NoWindow { frame, .. } => Some(format!(
                "say over how many rows of the input it looks: a window of {frame}, say, the model's own frame"
            )),
            StreamError::Hop { hop, smallest, .. } => {
                let below = hop / smallest * smallest;
                let below = if below > 0 { format!("{below} or ") } else { String::new() };
                Some(format!(
                    "take a hop of {below}{} rows: a multiple of {smallest}",
                    (hop / smallest + 1) * smallest
                ))
            }
            StreamError::Window { nearest: hop, .. } | StreamError::OneRow { smallest: hop, .. } => {
                Some(format!("take a hop of {hop}"))
            }
            _ => None,
        }
    }
}

/// How a layer over time reads an operand, in a frame.
#[derive(Debug, Clone, Copy)]
struct Window {
    /// Rows from the first to the last.
    extent: i64,
    stride: i64,
    /// Rows of padding above.
    top: i64,
    /// Rows of the output for each row read.
    up: i64,
}

/// How a layer that works along time reads operand `index`: some rows around each. None if it does not work so.
fn window(network: &Network, layer: &Layer, index: usize) -> Option<Window> {
    let (operand, inputs) = (&layer.inputs[index], layer.input_shapes());
    let own = &network.layer(operand.layer).shape;
    if !(own.is_image() && operand.shape.is_image() && layer.shape.is_image()) {
        return None;
    }
    let access = operators::row_access(&layer.operator, own, &inputs, &layer.shape, index);
    let number = |value: usize| i64::try_from(value).unwrap_or(i64::from(u32::MAX));
    let has_all_rows = operand.shape.rows() == layer.shape.rows();
    match (&layer.operator, access) {
        (Operator::Pool(Pool { kind: PoolKind::MaxIndex, .. }), _) => None,
        (Operator::DepthToSpace(blocks), RowAccess::Rows(_)) => {
            Some(Window { extent: 1, stride: 1, top: 0, up: number(blocks.block) })
        }
        (
            Operator::Conv(_) | Operator::Pool(_) | Operator::SpaceToDepth(_),
            RowAccess::Window { kernel, stride, dilation, top },
        ) => {
            let extent = (number(kernel) - 1) * number(dilation) + 1;
            Some(Window { extent, stride: number(stride), top, up: 1 })
        }
        (
            Operator::ElementWise(_)
            | Operator::BatchNorm(_)
            | Operator::Convert
            | Operator::Gemm(_)
            | Operator::Lrn(_)
            | Operator::Binary(_)
            | Operator::Softmax(_)
            | Operator::Reduce(_)
            | Operator::Concat(_)
            | Operator::Slice(_),
            RowAccess::Window { kernel: 1, stride: 1, top: 0, .. },
        ) if has_all_rows => Some(Window { extent: 1, stride: 1, top: 0, up: 1 }),
        // It keeps its state from row to row. A first state would be one of the hop.
        (Operator::Recurrent(recurrent), RowAccess::Window { .. }) if !recurrent.initial => {
            Some(Window { extent: 1, stride: 1, top: 0, up: 1 })
        }
        (Operator::Pad(pad), RowAccess::Rows(_) | RowAccess::Window { .. }) => {
            let row = operand.shape.row_axis()?;
            let keeps = [pad.before.get(row), pad.after.get(row)] == [Some(&0); 2];
            (keeps && has_all_rows).then_some(Window { extent: 1, stride: 1, top: 0, up: 1 })
        }
        _ => None,
    }
}

/// The rows of a stream's tensors, and which layers work along time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streams {
    /// By layer, whether it works along time. Any other layer computes each hop by itself.
    pub over_time: Vec<bool>,
    /// By layer, how the rows of its tensor follow those of the hops before.
    pub rows: Vec<StreamRows>,
}

impl Streams {
    /// Those of a network whose frames are hops; none if it is no stream.
    pub fn new(network: &Network) -> Option<Self> {
        network.stream?;
        let mut streams = Streams { over_time: Vec::new(), rows: Vec::new() };
        for layer in &network.layers {
            let is_time = |id: LayerId| streams.over_time[id.0] || network.layer(id).is_input();
            let windows = || (0..layer.inputs.len()).map(|index| window(network, layer, index));
            let reads = layer.inputs.iter().all(|operand| is_time(operand.layer));
            let over_time = !layer.is_input() && reads && windows().all(|window| window.is_some());
            let behind = |(operand, window): (&Operand, Option<Window>)| {
                let lag = streams.rows[operand.layer.0].delay as i64;
                match window {
                    Some(Window { extent, stride, top, up }) if over_time => {
                        ((lag * up + extent - stride - top).max(0) + stride - 1) / stride
                    }
                    _ => lag,
                }
            };
            let delay = layer.inputs.iter().zip(windows()).map(behind).max().unwrap_or(0);
            streams.over_time.push(over_time);
            streams.rows.push(StreamRows { delay: delay as u64, history: 0 });
        }
        for id in network.ids() {
            for (index, operand) in network.layer(id).inputs.iter().enumerate() {
                if let Some(RowAccess::Window { top, .. }) = streams.access(network, id, index) {
                    let history = &mut streams.rows[operand.layer.0].history;
                    *history = (*history).max(u64::try_from(top).unwrap_or(0));
                }
            }
        }
        Some(streams)
    }

    /// How a layer over time reads an operand in a hop: the rows of the hop are counted from 0, and those of the hops
    /// before are negative. None if the layer computes each hop by itself, or has several rows for each row that it reads.
    pub fn access(&self, network: &Network, id: LayerId, index: usize) -> Option<RowAccess> {
        let layer = network.layer(id);
        let Window { extent, stride, top, up } =
            window(network, layer, index).filter(|_| self.over_time[id.0])?;
        let delay = |id: LayerId| self.rows[id.0].delay as i64;
        let top = top + delay(id) * stride - delay(layer.inputs[index].layer) * up;
        let size = |value: i64| usize::try_from(value).unwrap_or(0);
        (up == 1).then_some(RowAccess::Window {
            kernel: size(extent),
            stride: size(stride),
            dilation: 1,
            top,
        })
    }
}

/// What a tensor is, before it is cut into hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Rows in time: `rate` rows for each row of the input, and in a window so many.
    Time { rate: Rate, window: usize },
    /// One row a hop, of the window that ends there.
    Collapsed,
    /// Computed in each hop by itself.
    Hop,
}

/// A fraction in lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rate {
    over: usize,
    under: usize,
}

impl Rate {
    fn new(over: usize, under: usize) -> Self {
        let divisor = gcd(over, under).max(1);
        Rate { over: over / divisor, under: under / divisor }
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The network whose frames are hops of `hop` rows of each input, or of the least number of rows that makes whole rows
/// of every tensor. Layers that need all of time look over the last `window` rows of the input instead.
///
/// # Errors
/// Why it cannot be one, with the layer; [`StreamError::help`] says what would work.
pub fn of_hops(network: Network, hop: Option<usize>, window: Option<usize>) -> Result<Network, StreamError> {
    let frame = frame(&network)?;
    let kinds = kinds(&network, frame, window)?;
    let rates = || kinds.iter().enumerate().filter_map(|(l, kind)| Some((l, rate(*kind)?)));
    let smallest = rates().fold(1, |all, (_, rate)| all / gcd(all, rate.under) * rate.under);
    let hop = hop.unwrap_or(smallest);
    let misfit = rates().find(|(_, rate)| hop == 0 || !hop.is_multiple_of(rate.under));
    if let Some((l, _)) = misfit {
        let layer = network.layers[l].name.clone();
        return Err(StreamError::Hop { hop, layer, smallest });
    }
    let collapses = kinds.contains(&Kind::Collapsed);
    let rows = |kind: Kind| match kind {
        Kind::Time { rate, .. } => Some(hop / rate.under * rate.over),
        Kind::Collapsed => Some(1),
        Kind::Hop => None,
    };
    for layer in
        network.layers.iter().zip(&kinds).filter(|(_, kind)| **kind == Kind::Hop).map(|(layer, _)| layer)
    {
        let several = |operand: &&Operand| rows(kinds[operand.layer.0]).is_some_and(|rows| rows > 1);
        if let Some(operand) = layer.inputs.iter().find(several) {
            let smallest =
                rate(kinds[operand.layer.0]).map_or(smallest, |rate| rate.under / rate.over.max(1));
            return Err(StreamError::OneRow { hop, layer: layer.name.clone(), smallest });
        }
    }
    let mut network = network;
    for l in 0..network.layers.len() {
        let windows = pooled(&network, l, &kinds, &rows);
        let layer = &mut network.layers[l];
        if let Some(pool) = windows {
            layer.operator = Operator::Pool(pool);
            layer.shape = Shape::image(layer.inputs[0].shape.channels(), 1, columns(&layer.shape));
        }
        for operand in &mut layer.inputs {
            set_rows(&mut operand.shape, rows(kinds[operand.layer.0]));
        }
        set_rows(&mut layer.shape, rows(kinds[l]));
        if let (Operator::Slice(slice), Some(axis)) = (&mut layer.operator, layer.shape.row_axis()) {
            slice.lengths[axis] = layer.shape.dims[axis];
        }
        if layer.rows() > MAX_ROWS {
            return Err(StreamError::TooLarge { layer: layer.name.clone() });
        }
    }
    for output in &mut network.outputs {
        let LayerId(l) = output.operand.layer;
        // Rows in time are seen as those of the image that they are.
        if rows(kinds[l]).is_some() && !output.operand.shape.is_image() {
            output.operand.shape = network.layers[l].shape.clone();
        }
        set_rows(&mut output.operand.shape, rows(kinds[l]));
    }
    let window = window.filter(|_| collapses).map(|window| window as u64);
    network.stream = Some(Stream { frame: frame as u64, window });
    check_windows(&network, &kinds, hop, smallest)?;
    Ok(network)
}

fn rate(kind: Kind) -> Option<Rate> {
    match kind {
        Kind::Time { rate, .. } => Some(rate),
        Kind::Collapsed | Kind::Hop => None,
    }
}

fn columns(shape: &Shape) -> usize {
    shape.column_axis().map_or(1, |axis| shape.dims[axis])
}

fn set_rows(shape: &mut Shape, rows: Option<usize>) {
    if let (true, Some(axis), Some(rows)) = (shape.is_image(), shape.row_axis(), rows) {
        shape.dims[axis] = rows;
    }
}

/// Rows of the inputs in a frame.
fn frame(network: &Network) -> Result<usize, StreamError> {
    let mut inputs = network.layers.iter().filter(|layer| layer.is_input());
    let Some(first) = inputs.next() else { return Ok(1) };
    for layer in [first].into_iter().chain(inputs) {
        let (input, shape) = (layer.name.clone(), layer.shape.clone());
        if !shape.is_image() {
            return Err(StreamError::NoRows { input, shape });
        }
        let (rows, expected) = (shape.rows(), first.shape.rows());
        if rows != expected {
            return Err(StreamError::Inputs { input, rows, first: first.name.clone(), expected });
        }
    }
    Ok(first.shape.rows())
}

/// What each tensor is, by the shapes of a frame of `frame` rows.
fn kinds(network: &Network, frame: usize, window: Option<usize>) -> Result<Vec<Kind>, StreamError> {
    let mut kinds: Vec<Kind> = Vec::new();
    for layer in &network.layers {
        let kind = match layer.is_input() {
            true => Kind::Time { rate: Rate::new(1, 1), window: window.unwrap_or(frame) },
            false => kind(network, layer, &kinds, frame, window)?,
        };
        kinds.push(kind);
    }
    Ok(kinds)
}

fn kind(
    network: &Network,
    layer: &Layer,
    kinds: &[Kind],
    frame: usize,
    given: Option<usize>,
) -> Result<Kind, StreamError> {
    let name = || layer.name.clone();
    let in_time = layer.inputs.iter().filter(|operand| rate(kinds[operand.layer.0]).is_some());
    let Some(first) = in_time.clone().next() else {
        return behind(network, layer, kinds);
    };
    let tensor = network.layer(first.layer);
    let kind = layer.operator.kind();
    let needs_all =
        || StreamError::NeedsAll { layer: name(), kind, tensor: tensor.output.clone(), rows: tensor.rows() };
    if in_time.count() < layer.inputs.len() {
        return Err(needs_all());
    }
    if is_global(network, layer) {
        return match given {
            Some(_) => Ok(Kind::Collapsed),
            None => {
                let (layer, tensor, rows) = (name(), tensor.output.clone(), tensor.rows());
                Err(StreamError::NoWindow { layer, kind, tensor, rows, frame })
            }
        };
    }
    if has_row_constants(layer) {
        return Err(StreamError::RowConstants { layer: name() });
    }
    let is_one_row = |operand: &Operand| matches!(kinds[operand.layer.0], Kind::Time { window: 1, .. });
    let goes_by_rows = (0..layer.inputs.len()).all(|index| self::window(network, layer, index).is_some());
    if !goes_by_rows && layer.inputs.iter().all(is_one_row) {
        // What a frame has one row of, it computes by itself.
        return Ok(Kind::Hop);
    }
    let mut own = None;
    for (index, operand) in layer.inputs.iter().enumerate() {
        let (Some(Window { stride, up, .. }), Kind::Time { rate, window: rows }) =
            (self::window(network, layer, index), kinds[operand.layer.0])
        else {
            return Err(needs_all());
        };
        let rate = Rate::new(rate.over * up as usize, rate.under * stride as usize);
        let rows = rows_of_window(&layer.operator, rows, index + 1 == layer.inputs.len());
        let rows =
            rows.ok_or_else(|| StreamError::ShortWindow { window: given.unwrap_or(frame), layer: name() })?;
        let this = Kind::Time { rate, window: rows };
        if *own.get_or_insert(this) != this {
            return Err(needs_all());
        }
    }
    Ok(own.unwrap_or(Kind::Hop))
}

/// A layer behind a window computes each hop by itself. If its operands are rows of hops, it must not mix them.
fn behind(network: &Network, layer: &Layer, kinds: &[Kind]) -> Result<Kind, StreamError> {
    let is_collapsed = layer.inputs.iter().all(|operand| kinds[operand.layer.0] == Kind::Collapsed);
    let windows: Vec<Option<Window>> =
        (0..layer.inputs.len()).map(|index| window(network, layer, index)).collect();
    if !is_collapsed || windows.iter().any(Option::is_none) {
        return Ok(Kind::Hop);
    }
    let is_same = |window: &Window| (window.extent, window.top, window.stride, window.up) == (1, 0, 1, 1);
    match windows.iter().flatten().all(is_same) && !layer.operator.has_state() {
        true => Ok(Kind::Collapsed),
        false => {
            let tensor = network.layer(layer.inputs[0].layer);
            let (layer, kind) = (layer.name.clone(), layer.operator.kind());
            Err(StreamError::NeedsAll { layer, kind, tensor: tensor.output.clone(), rows: tensor.rows() })
        }
    }
}

/// Whether a layer makes one row of all rows of an image, and can do so of a window.
fn is_global(network: &Network, layer: &Layer) -> bool {
    let [operand] = layer.inputs.as_slice() else { return false };
    let seen = &operand.shape;
    let (Some(row), Some(column)) = (seen.row_axis(), seen.column_axis()) else { return false };
    if !seen.is_image() || !network.layer(operand.layer).shape.keeps_rows(seen) {
        return false;
    }
    match &layer.operator {
        Operator::Pool(pool) => {
            let covers = pool.kernel[0] == seen.rows() && [pool.pads[0], pool.pads[2]] == [0, 0];
            covers && seen.rows() > 1 && pool.kind != PoolKind::MaxIndex
        }
        Operator::Reduce(reduce) => {
            let is_pool = matches!(reduce.function, ReduceFunction::Mean | ReduceFunction::Max);
            is_pool
                && reduce.axes.contains(&row)
                && reduce.axes.iter().all(|axis| [row, column].contains(axis))
        }
        _ => false,
    }
}

/// The pool over a window that a global layer becomes; none if the layer stays as it is.
fn pooled(network: &Network, l: usize, kinds: &[Kind], rows: &dyn Fn(Kind) -> Option<usize>) -> Option<Pool> {
    let layer = &network.layers[l];
    let operand = layer.inputs.first()?;
    let Kind::Time { window, .. } = kinds[operand.layer.0] else { return None };
    if kinds[l] != Kind::Collapsed {
        return None;
    }
    let step = rows(kinds[operand.layer.0])?;
    Some(match &layer.operator {
        Operator::Pool(pool) => Pool {
            kernel: [window, pool.kernel[1]],
            stride: [step, pool.stride[1]],
            dilation: [1, pool.dilation[1]],
            ..pool.clone()
        },
        operator => {
            let (is_mean, over_columns) = match operator {
                Operator::Reduce(reduce) => (
                    reduce.function == ReduceFunction::Mean,
                    operand.shape.column_axis().is_some_and(|column| reduce.axes.contains(&column)),
                ),
                _ => (false, false),
            };
            let width = if over_columns { columns(&operand.shape) } else { 1 };
            Pool {
                kind: if is_mean { PoolKind::Average { count_include_pad: false } } else { PoolKind::Max },
                kernel: [window, width],
                stride: [step, 1],
                dilation: [1, 1],
                pads: [0; 4],
                ceil: false,
            }
        }
    })
}

/// Rows that a layer makes of a window of so many rows.
fn rows_of_window(operator: &Operator, rows: usize, is_last: bool) -> Option<usize> {
    let windows = |kernel: usize, stride: usize, dilation: usize, pads: usize| {
        let extent = (kernel - 1) * dilation + 1;
        Some((rows + pads).checked_sub(extent)? / stride + 1)
    };
    match operator {
        Operator::Conv(conv) if conv.residual && is_last => Some(rows),
        Operator::Conv(conv) => {
            windows(conv.kernel[0], conv.stride[0], conv.dilation[0], conv.pads[0] + conv.pads[2])
        }
        Operator::Pool(pool) => {
            windows(pool.kernel[0], pool.stride[0], pool.dilation[0], pool.pads[0] + pool.pads[2])
        }
        Operator::SpaceToDepth(blocks) => Some(rows / blocks.block).filter(|rows| *rows > 0),
        Operator::DepthToSpace(blocks) => Some(rows * blocks.block),
        _ => Some(rows),
    }
}

/// Whether constants of a layer are different for different rows.
fn has_row_constants(layer: &Layer) -> bool {
    let by_rows = |dims: &[usize]| {
        let from_end = layer.shape.row_axis().map(|axis| layer.shape.rank() - axis);
        from_end.and_then(|from_end| dims.len().checked_sub(from_end)).is_some_and(|axis| dims[axis] > 1)
    };
    let slopes = match &layer.operator {
        Operator::ElementWise(element_wise) => Some(&element_wise.function),
        operator => operator.activation(),
    };
    let has_slopes = matches!(slopes, Some(Function::PRelu { slope }) if by_rows(slope));
    let constant = match &layer.operator {
        Operator::Binary(binary) => binary.constant.as_ref(),
        _ => None,
    };
    has_slopes || constant.is_some_and(|constant| by_rows(&constant.dims))
}

/// Checks that each window over the last rows ends where a hop ends.
fn check_windows(network: &Network, kinds: &[Kind], hop: usize, smallest: usize) -> Result<(), StreamError> {
    let Some(streams) = Streams::new(network) else { return Ok(()) };
    for (l, layer) in network.layers.iter().enumerate() {
        let Some(operand) = layer.inputs.first().filter(|operand| rate(kinds[operand.layer.0]).is_some())
        else {
            continue;
        };
        if let (Kind::Collapsed, Operator::Pool(pool)) = (kinds[l], &layer.operator) {
            let rows = pool.kernel[0] + streams.rows[operand.layer.0].delay as usize;
            let step = pool.stride[0];
            if !rows.is_multiple_of(step) {
                // The nearest hop that fits; one that makes a single row does.
                let fits = |hop_rows: &usize| rows.is_multiple_of((step * hop_rows / hop).max(1));
                let hops = (smallest..=2 * hop).step_by(smallest).filter(fits);
                let nearest = hops.min_by_key(|other| other.abs_diff(hop)).unwrap_or(smallest);
                let tensor = network.layer(operand.layer).output.clone();
                return Err(StreamError::Window { tensor, rows, step, nearest });
            }
        }
    }
    Ok(())
}
