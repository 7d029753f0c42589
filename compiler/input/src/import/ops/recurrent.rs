//! `LSTM`, `GRU` and `RNN`: an image whose rows are the steps. Products of the inputs and their weights are a layer of
//! their own. A second layer makes the states from them.

use csdfc_network::weights::Weights;
use csdfc_network::{LayerId, Network};
use csdfc_plan::operator::{Cell, Function, Operator, Pad, PadMode, Recurrent};
use csdfc_plan::shape::Order;

use super::layout::{joined, take, tensor_of};
use super::parts::{cut, dims, part, reshaped, tensor, transposed};
use crate::import::builder::Builder;
use crate::import::constant::Constant;
use crate::import::error::{Fault, fault};
use crate::import::fold::index::Range;
use crate::import::node::{Node, Tensor, Value};

/// `RNN`: all states, and the last state.
pub(super) fn rnn(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    recurrent(builder, node, Cell::Rnn)
}

/// `GRU`: all states, and the last state.
pub(super) fn gru(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    let linear_before_reset = node.flag("linear_before_reset", false)?;
    recurrent(builder, node, Cell::Gru { linear_before_reset })
}

/// `LSTM`: all states, the last state, and the last memory.
pub(super) fn lstm(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    let (input_forget, peepholes) = (node.flag("input_forget", false)?, node.input(7).is_some());
    let memory = node.proto.output.get(2).is_some_and(|name| !name.is_empty());
    recurrent(builder, node, Cell::Lstm { input_forget, peepholes, memory })
}

/// The dimension of images of steps, `[1, steps, batch, channels]`, that counts the steps.
const STEPS: usize = 1;

/// That which counts the channels.
const CHANNELS: usize = 3;

/// The layers of each direction, and of what they make the operator's outputs.
fn recurrent(builder: &mut Builder, node: &Node, cell: Cell) -> Result<Vec<Value>, Fault> {
    let Some(x) = node.input(0) else { return fault!("operand 0 is missing") };
    let layout = node.flag("layout", false)?;
    let x = if layout { transposed(builder, node, x, vec![1, 0, 2])? } else { x.clone() };
    let x = tensor(x)?;
    let &[all_steps, batch, _] = x.dims() else { return fault!("its input has dimensions {:?}", x.dims()) };
    let steps = steps(node, all_steps)?;
    let directions: &[bool] = match node.text("direction", "forward")? {
        "forward" => &[false],
        "reverse" => &[true],
        "bidirectional" => &[false, true],
        other => return fault!("direction {other} is unknown"),
    };
    let x = match builder.rows_of_image(&x) {
        Some(image) => image,
        None => builder.steps(node, &x)?,
    };
    let rows = x.operand.shape.row_axis().unwrap_or(STEPS);
    let x = range(builder, node, &x, rows, [0, steps])?;
    let size = match *node.constant(2, "R")?.dims {
        [_, _, size] => size,
        ref other => return fault!("its R has dimensions {other:?}"),
    };
    // By direction: all states. By state and memory, and direction: the last.
    let (mut states, mut last) = (Vec::new(), vec![Vec::new(); cell.states()]);
    for (d, &is_reverse) in directions.iter().enumerate() {
        let x = if is_reverse { reversed(builder, node, &x, rows)? } else { x.clone() };
        let made = direction(builder, node, cell, &x, d, size)?;
        for (i, last) in last.iter_mut().enumerate() {
            if made.dims()[CHANNELS] >= (i + 1) * size {
                let mut ranges = Range::whole(made.dims());
                ranges[STEPS] = Range { start: steps - 1, step: 1, length: 1 };
                ranges[CHANNELS] = Range { start: i * size, step: 1, length: size };
                let end = take(builder, node, &made, &ranges)?;
                last.push(builder.reshape(node, &end, vec![1, batch, size])?);
            }
        }
        let made = range(builder, node, &made, CHANNELS, [0, size])?;
        states.push(if is_reverse { reversed(builder, node, &made, STEPS)? } else { made });
    }
    let states = joined(builder, node, CHANNELS, &states)?;
    let states = padded(builder, node, &states, all_steps - steps)?;
    let states = builder.reshape(node, &states, vec![all_steps, batch, directions.len(), size])?;
    let perm = if layout { vec![1, 0, 2, 3] } else { vec![0, 2, 1, 3] };
    let mut made = vec![Value::from(builder.transpose(node, &states, perm)?)];
    for last in last.into_iter().filter(|last| !last.is_empty()) {
        let whole = joined(builder, node, 0, &last)?;
        made.push(Value::from(if layout { builder.transpose(node, &whole, vec![1, 0, 2])? } else { whole }));
    }
    Ok(made)
}

/// How many steps all sequences take, of this number for which there is room.
fn steps(node: &Node, all: usize) -> Result<usize, Fault> {
    let Some(lengths) = node.optional(4, "sequence_lens")? else { return Ok(all) };
    let lengths = lengths.to_ints()?;
    match lengths.first().map(|length| usize::try_from(*length)) {
        Some(Ok(steps)) if (1..=all).contains(&steps) && lengths.iter().all(|other| *other == lengths[0]) => {
            Ok(steps)
        }
        _ => fault!("its sequences are {lengths:?} steps long, not all the same number from 1 to {all}"),
    }
}

/// The states of direction `d` as an image of steps, in the order in which they are made, and the memories if the cell
/// makes them. `x` is the inputs: an image of steps, or `[1, C, steps, W]` with a row for each step.
fn direction(
    builder: &mut Builder,
    node: &Node,
    cell: Cell,
    x: &Tensor,
    d: usize,
    size: usize,
) -> Result<Tensor, Fault> {
    let all = cell.gates() * size;
    let weights = of_direction(builder, node, node.constant(1, "W")?.clone().into(), d)?;
    let mut products = products(builder, node, x, &weights)?;
    let recurrent = of_direction(builder, node, node.constant(2, "R")?.clone().into(), d)?;
    let mut parameters = vec![weights_of(&transposed(builder, node, &recurrent, vec![1, 0])?)?];
    let is_reset_after = matches!(cell, Cell::Gru { linear_before_reset: true });
    let biases = node.optional(3, "B")?.cloned();
    if let Some(biases) = biases {
        let biases = of_direction(builder, node, biases.into(), d)?;
        let of_input = cut(builder, node, &biases, 0, [0, all])?;
        let mut of_state = cut(builder, node, &biases, 0, [all, 2 * all])?;
        if is_reset_after {
            parameters.push(weights_of(&cut(builder, node, &of_state, 0, [2 * size, all])?)?);
            let is_gate = (0..all).map(|at| f32::from(u8::from(at < 2 * size))).collect();
            of_state = part(builder, node, "Mul", [of_state, Constant::floats([all], is_gate).into()])?;
        }
        let sum = part(builder, node, "Add", [of_input, of_state])?;
        products = part(builder, node, "Add", [products, sum])?;
    } else if is_reset_after {
        parameters.push(Weights::new([size], vec![0.0; size]));
    }
    if let Cell::Lstm { peepholes: true, .. } = cell {
        let peepholes = of_direction(builder, node, node.constant(7, "P")?.clone().into(), d)?;
        parameters.push(weights_of(&peepholes)?);
    }
    let mut operands = vec![tensor(products)?];
    let initial = initial(builder, node, cell, d, &operands[0])?;
    operands.extend(initial);
    let operator = Operator::Recurrent(Recurrent {
        cell,
        size,
        activations: functions(node, cell, d)?,
        clip: clip(node)?,
        initial: operands.len() > 1,
    });
    builder.layer(node, operator, &operands.iter().collect::<Vec<_>>(), parameters)
}

/// The products of the inputs and their weights, `[gates · size, inner]`, as an image of steps.
fn products(builder: &mut Builder, node: &Node, x: &Tensor, weights: &Value) -> Result<Value, Fault> {
    let &[1, channels, _, columns] = x.dims() else {
        return fault!("its input has dimensions {:?}", x.dims());
    };
    if x.operand.shape.order == Order::ChannelsLast {
        let weights = transposed(builder, node, weights, vec![1, 0])?;
        return part(builder, node, "MatMul", [x.clone().into(), weights]);
    }
    // A row is one window.
    let filters = reshaped(builder, node, weights, vec![dims(weights)[0], channels, 1, columns])?;
    let image = part(builder, node, "Conv", [x.clone().into(), filters])?;
    transposed(builder, node, &image, vec![0, 2, 3, 1])
}

/// A constant as parameters.
fn weights_of(value: &Value) -> Result<Weights, Fault> {
    match value {
        Value::Constant(constant) => constant.weights(),
        Value::Tensor(_) => fault!("its weights are no constants"),
    }
}

/// The largest absolute value that goes into a function, if there is one.
fn clip(node: &Node) -> Result<Option<f32>, Fault> {
    if !node.has("clip") {
        return Ok(None);
    }
    let clip = node.float("clip", 0.0)?;
    if clip > 0.0 { Ok(Some(clip)) } else { fault!("its clip is {clip}, not above 0") }
}

/// The part of an operand that is of direction `d`.
fn of_direction(builder: &mut Builder, node: &Node, all: Value, d: usize) -> Result<Value, Fault> {
    let own = dims(&all).to_vec();
    if own.first().is_none_or(|directions| d >= *directions) {
        return fault!("a constant of dimensions {own:?} has no part for direction {d}");
    }
    let part = cut(builder, node, &all, 0, [d, d + 1])?;
    reshaped(builder, node, &part, own[1..].to_vec())
}

/// The state and the memory before the first step, images of one step; nothing if both are 0. `products` are the
/// products of the inputs.
fn initial(
    builder: &mut Builder,
    node: &Node,
    cell: Cell,
    d: usize,
    products: &Tensor,
) -> Result<Vec<Tensor>, Fault> {
    let is_zero = |index: usize| match node.input(index) {
        None => Ok(true),
        Some(Value::Constant(constant)) => Ok(constant.to_floats()?.iter().all(|value| *value == 0.0)),
        Some(Value::Tensor(_)) => Ok::<_, Fault>(false),
    };
    let places = [5, 6];
    let places = &places[..cell.states()];
    if places.iter().map(|index| is_zero(*index)).collect::<Result<Vec<_>, _>>()?.iter().all(|zero| *zero) {
        return Ok(Vec::new());
    }
    let image = [1, 1, products.dims()[2], products.dims()[CHANNELS] / cell.gates()];
    let mut made = Vec::new();
    for index in places {
        let given = match node.input(*index) {
            None => Constant::floats(image, vec![0.0; image.iter().product()]).into(),
            Some(given) => {
                let layout = node.flag("layout", false)?;
                let first = if layout { vec![1, 0, 2] } else { vec![0, 1, 2] };
                let given = transposed(builder, node, given, first)?;
                of_direction(builder, node, given, d)?
            }
        };
        made.push(match given {
            Value::Tensor(given) => {
                let given = builder.reshape(node, &given, image[1..].to_vec())?;
                builder.steps(node, &given)?
            }
            Value::Constant(given) => tensor_of(builder, node, products, &given.reshaped(image.to_vec()))?,
        });
    }
    Ok(made)
}

/// The functions of direction `d`: f, g and h in ONNX.
fn functions(node: &Node, cell: Cell, d: usize) -> Result<Vec<Function>, Fault> {
    let usual: &[&str] = match cell {
        Cell::Rnn => &["Tanh"],
        Cell::Gru { .. } => &["Sigmoid", "Tanh"],
        Cell::Lstm { .. } => &["Sigmoid", "Tanh", "Tanh"],
    };
    let attribute = |name: &str| node.attribute(name);
    let stated = attribute("activations").map(|attribute| attribute.strings.as_slice()).unwrap_or_default();
    let numbers =
        |name: &str| attribute(name).map(|list| list.floats.clone()).unwrap_or_default().into_iter();
    // Each function that has such a number takes the next one of the list.
    let (mut alphas, mut betas) = (numbers("activation_alpha"), numbers("activation_beta"));
    let mut functions = Vec::new();
    for i in 0..usual.len() * (d + 1) {
        let name = stated.get(i).map_or(usual[i % usual.len()], |name| name.as_ref());
        let mut alpha = |usual: f32| alphas.next().unwrap_or(usual);
        functions.push(match name.to_ascii_lowercase().as_str() {
            "sigmoid" => Function::Sigmoid,
            "tanh" => Function::Tanh,
            "relu" => Function::Relu,
            "softsign" => Function::Softsign,
            "softplus" => Function::Softplus,
            "elu" => Function::Elu { alpha: alpha(1.0) },
            "leakyrelu" => Function::LeakyRelu { alpha: alpha(0.01) },
            "thresholdedrelu" => Function::ThresholdedRelu { alpha: alpha(1.0) },
            "hardsigmoid" => Function::HardSigmoid { alpha: alpha(0.2), beta: betas.next().unwrap_or(0.5) },
            _ => return fault!("its activation {name} is not supported"),
        });
    }
    Ok(functions.split_off(usual.len() * d))
}

/// The elements of an image of steps from `start` to before `end` along a dimension.
fn range(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    axis: usize,
    [start, end]: [usize; 2],
) -> Result<Tensor, Fault> {
    let mut ranges = Range::whole(x.dims());
    ranges[axis] = Range { start, step: 1, length: end - start };
    take(builder, node, x, &ranges)
}

/// An image with the last row first. Its dimension `rows` counts them.
fn reversed(builder: &mut Builder, node: &Node, x: &Tensor, rows: usize) -> Result<Tensor, Fault> {
    let mut ranges = Range::whole(x.dims());
    let steps = x.dims()[rows];
    ranges[rows] = Range { start: steps - 1, step: -1, length: steps };
    if steps == 1 { Ok(x.clone()) } else { take(builder, node, x, &ranges) }
}

/// An image of steps and then this number of steps that are zero.
fn padded(builder: &mut Builder, node: &Node, x: &Tensor, steps: usize) -> Result<Tensor, Fault> {
    if steps == 0 {
        return Ok(x.clone());
    }
    let (before, mut after) = (vec![0; 4], vec![0; 4]);
    after[STEPS] = steps as i64;
    let pad = Pad { mode: PadMode::Constant { value: Some(0.0) }, before, after };
    builder.layer(node, Operator::Pad(pad), &[x], Vec::new())
}

/// The network without memories that nobody reads. Which outputs of an `LSTM` a model reads is known only at its end.
pub(in crate::import) fn without_unread_memories(mut network: Network) -> Network {
    for id in network.ids() {
        let layer = network.layer(id);
        let Operator::Recurrent(Recurrent { cell: Cell::Lstm { memory: true, .. }, size, .. }) =
            layer.operator
        else {
            continue;
        };
        let readers = network.readers().swap_remove(id.0);
        let reads_states = |reader: &LayerId| match &network.layer(*reader).operator {
            Operator::Slice(slice) => (slice.starts[CHANNELS], slice.lengths[CHANNELS]) == (0, size),
            _ => false,
        };
        if network.outputs.iter().any(|output| output.operand.layer == id)
            || !readers.iter().all(reads_states)
        {
            continue;
        }
        let layer = &mut network.layers[id.0];
        if let Operator::Recurrent(Recurrent { cell: Cell::Lstm { memory, .. }, .. }) = &mut layer.operator {
            *memory = false;
        }
        layer.shape.dims[CHANNELS] = size;
        let shape = layer.shape.clone();
        for reader in readers {
            network.layers[reader.0].inputs[0].shape = shape.clone();
            // A slice of all states moves nothing.
            let is_whole = network.layer(reader).shape == shape
                && matches!(&network.layer(reader).operator, Operator::Slice(slice) if slice.steps[STEPS] == 1);
            if is_whole {
                let operands = network.layers.iter_mut().flat_map(|layer| &mut layer.inputs);
                let operands = operands.chain(network.outputs.iter_mut().map(|output| &mut output.operand));
                operands.filter(|operand| operand.layer == reader).for_each(|operand| operand.layer = id);
            }
        }
    }
    network
}
