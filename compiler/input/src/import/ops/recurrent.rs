//! `LSTM`, `GRU` and `RNN` over a known number of steps, each of which becomes layers of its own.

use super::layout::{MAX_PARTS, joined};
use super::parts::{cut, dims, number, part, reshaped, tensor, transposed};
use crate::import::builder::Builder;
use crate::import::constant::Constant;
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, Value};

/// The operators, which differ in what a step computes.
#[derive(Clone, Copy)]
enum Recurrence {
    /// One layer: f(input + state).
    Rnn,
    /// The gates z and r, and what is new.
    Gru,
    /// The gates i, o and f, and what is new. Beside the state it has a memory, which ONNX calls the cell state.
    Lstm,
}

impl Recurrence {
    /// How many matrices lie one after another in the weights.
    fn matrices(self) -> usize {
        match self {
            Recurrence::Rnn => 1,
            Recurrence::Gru => 3,
            Recurrence::Lstm => 4,
        }
    }

    /// The functions of a direction, if the model names no others: f, g and h in ONNX.
    fn functions(self) -> &'static [&'static str] {
        match self {
            Recurrence::Rnn => &["Tanh"],
            Recurrence::Gru => &["Sigmoid", "Tanh"],
            Recurrence::Lstm => &["Sigmoid", "Tanh", "Tanh"],
        }
    }

    /// The operands that are the first state and, if there is one, the first memory.
    fn starts(self) -> &'static [usize] {
        match self {
            Recurrence::Rnn | Recurrence::Gru => &[5],
            Recurrence::Lstm => &[5, 6],
        }
    }
}

/// What all steps of one direction share.
struct Cell {
    kind: Recurrence,
    /// Products of the inputs and their weights, with biases: `[steps · batch, matrices · size]`.
    inputs: Value,
    /// The weights of the state before, `[size, matrices · size]`.
    recurrent: Value,
    /// In a `GRU` whose state is multiplied before it is reset: the bias of the product that is reset, `[size]`.
    reset_bias: Option<Value>,
    /// Weights from the memory to the gates i, o and f of an `LSTM`, `[size]` each.
    peepholes: Option<[Value; 3]>,
    batch: usize,
    size: usize,
    /// Names of operators, as many as [`Recurrence::functions`].
    functions: Vec<String>,
    /// The largest absolute value of a sum that goes into a function.
    clip: Option<f32>,
    /// `input_forget` of an `LSTM`: f is 1 − i.
    couples: bool,
    /// `linear_before_reset` of a `GRU`.
    is_linear_before_reset: bool,
}

/// `RNN`: all states, and the last state.
pub(super) fn rnn(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    unrolled(builder, node, Recurrence::Rnn)
}

/// `GRU`: all states, and the last state.
pub(super) fn gru(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    unrolled(builder, node, Recurrence::Gru)
}

/// `LSTM`: all states, the last state, and the last memory.
pub(super) fn lstm(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    unrolled(builder, node, Recurrence::Lstm)
}

/// Layers for each step, in each direction.
fn unrolled(builder: &mut Builder, node: &Node, kind: Recurrence) -> Result<Vec<Value>, Fault> {
    let Some(x) = node.input(0) else { return fault!("operand 0 is missing") };
    let layout = node.flag("layout", false)?;
    let x = if layout { transposed(builder, node, x, vec![1, 0, 2])? } else { x.clone() };
    let &[steps, batch, inner] = dims(&x) else { return fault!("its input has dimensions {:?}", dims(&x)) };
    if steps > MAX_PARTS {
        return fault!("it takes {steps} steps; csdfc takes at most {MAX_PARTS}");
    }
    if let Some(lengths) = node.optional(4, "sequence_lens")?
        && lengths.to_ints()?.iter().any(|length| *length != steps as i64)
    {
        return fault!("its sequences are not all {steps} steps long");
    }
    let directions: &[bool] = match node.text("direction", "forward")? {
        "forward" => &[false],
        "reverse" => &[true],
        "bidirectional" => &[false, true],
        other => return fault!("direction {other} is unknown"),
    };
    let x = reshaped(builder, node, &x, vec![steps * batch, inner])?;
    // By direction: all states. By state and memory, and direction: the last.
    let (mut all_states, mut last) = (Vec::new(), vec![Vec::new(); kind.starts().len()]);
    for (d, &is_reverse) in directions.iter().enumerate() {
        let cell = cell(builder, node, kind, &x, d, batch)?;
        let start = |index: &usize| initial(builder, node, *index, d, &cell, layout);
        let mut now: Vec<Option<Value>> = kind.starts().iter().map(start).collect::<Result<_, _>>()?;
        let mut states = vec![None; steps];
        for step in 0..steps {
            let at = if is_reverse { steps - 1 - step } else { step };
            now = one_step(builder, node, &cell, at, &now)?.into_iter().map(Some).collect();
            states[at] = now[0].clone();
        }
        let states = states.into_iter().flatten().map(tensor).collect::<Result<Vec<Tensor>, _>>()?;
        let states = joined(builder, node, 0, &states)?;
        all_states.push(builder.reshape(node, &states, vec![steps, 1, batch, cell.size])?);
        for (last, end) in last.iter_mut().zip(now) {
            let Some(Value::Tensor(end)) = end else { return fault!("it takes no steps") };
            last.push(builder.reshape(node, &end, vec![1, batch, cell.size])?);
        }
    }
    let last = last.into_iter().map(|last| (last, 0, vec![1, 0, 2]));
    let mut made = Vec::new();
    for (parts, axis, perm) in std::iter::once((all_states, 1, vec![2, 0, 1, 3])).chain(last) {
        let whole = Value::from(joined(builder, node, axis, &parts)?);
        made.push(if layout { transposed(builder, node, &whole, perm)? } else { whole });
    }
    Ok(made)
}

/// The cell of direction `d`.
fn cell(
    builder: &mut Builder,
    node: &Node,
    kind: Recurrence,
    x: &Value,
    d: usize,
    batch: usize,
) -> Result<Cell, Fault> {
    let recurrent = of_direction(builder, node, node.constant(2, "R")?.clone().into(), d)?;
    let &[_, size] = dims(&recurrent) else { return fault!("its R has dimensions {:?}", dims(&recurrent)) };
    let weights = of_direction(builder, node, node.constant(1, "W")?.clone().into(), d)?;
    let weights = transposed(builder, node, &weights, vec![1, 0])?;
    let mut inputs = part(builder, node, "MatMul", [x.clone(), weights])?;
    let is_linear_before_reset =
        matches!(kind, Recurrence::Gru) && node.flag("linear_before_reset", false)?;
    let mut reset_bias = None;
    if let Some(biases) = node.optional(3, "B")? {
        let biases = of_direction(builder, node, biases.clone().into(), d)?;
        let all = kind.matrices() * size;
        let of_input = cut(builder, node, &biases, 0, [0, all])?;
        let mut of_state = cut(builder, node, &biases, 0, [all, 2 * all])?;
        if is_linear_before_reset {
            reset_bias = Some(cut(builder, node, &of_state, 0, [2 * size, all])?);
            let is_gate = (0..all).map(|at| f32::from(u8::from(at < 2 * size))).collect();
            let gates = Constant::floats([all], is_gate);
            of_state = part(builder, node, "Mul", [of_state, gates.into()])?;
        }
        let sum = part(builder, node, "Add", [of_input, of_state])?;
        inputs = part(builder, node, "Add", [inputs, sum])?;
    }
    let peepholes = match (kind, node.optional(7, "P")?) {
        (Recurrence::Lstm, Some(all)) => {
            let all = of_direction(builder, node, all.clone().into(), d)?;
            let mut gate = |i: usize| cut(builder, node, &all, 0, [i * size, (i + 1) * size]);
            Some([gate(0)?, gate(1)?, gate(2)?])
        }
        _ => None,
    };
    Ok(Cell {
        kind,
        inputs,
        recurrent: transposed(builder, node, &recurrent, vec![1, 0])?,
        reset_bias,
        peepholes,
        batch,
        size,
        functions: functions(node, kind, d)?,
        clip: clip(node)?,
        couples: matches!(kind, Recurrence::Lstm) && node.flag("input_forget", false)?,
        is_linear_before_reset,
    })
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

/// The state or memory before the first step, `[batch, size]`; none is 0.
fn initial(
    builder: &mut Builder,
    node: &Node,
    index: usize,
    d: usize,
    cell: &Cell,
    layout: bool,
) -> Result<Option<Value>, Fault> {
    let Some(given) = node.input(index) else { return Ok(None) };
    if let Value::Constant(constant) = given
        && constant.to_floats()?.iter().all(|value| *value == 0.0)
    {
        return Ok(None);
    }
    let given = if layout { transposed(builder, node, given, vec![1, 0, 2])? } else { given.clone() };
    let part = of_direction(builder, node, given, d)?;
    reshaped(builder, node, &part, vec![cell.batch, cell.size]).map(Some)
}

/// The names of the operators of direction `d`.
fn functions(node: &Node, kind: Recurrence, d: usize) -> Result<Vec<String>, Fault> {
    let stated =
        node.attribute("activations").map(|attribute| attribute.strings.as_slice()).unwrap_or_default();
    let usual = kind.functions();
    let name = |i: usize| -> Result<String, Fault> {
        let name = stated.get(usual.len() * d + i).map_or(usual[i], |name| name.as_ref());
        match name.to_ascii_lowercase().as_str() {
            "sigmoid" => Ok("Sigmoid".into()),
            "tanh" => Ok("Tanh".into()),
            "relu" => Ok("Relu".into()),
            "softsign" => Ok("Softsign".into()),
            "softplus" => Ok("Softplus".into()),
            _ => fault!("its activation {name} is not supported"),
        }
    };
    (0..usual.len()).map(name).collect()
}

/// The state, and the memory if there is one, after the step at row `at` of the inputs. `now` has those before it; none
/// is 0.
fn one_step(
    builder: &mut Builder,
    node: &Node,
    cell: &Cell,
    at: usize,
    now: &[Option<Value>],
) -> Result<Vec<Value>, Fault> {
    let inputs = cut(builder, node, &cell.inputs, 0, [at * cell.batch, (at + 1) * cell.batch])?;
    match (cell.kind, now) {
        (Recurrence::Lstm, [h, c]) => lstm_step(builder, node, cell, inputs, h.clone(), c.clone()),
        (Recurrence::Gru, [h, ..]) => Ok(vec![gru_step(builder, node, cell, inputs, h.clone())?]),
        (_, states) => {
            let h = states.first().cloned().flatten();
            let sum = plus_product(builder, node, inputs, h, cell.recurrent.clone())?;
            Ok(vec![cell.function(builder, node, 0, sum)?])
        }
    }
}

/// `sum` and, if there is a state, its product with weights.
fn plus_product(
    builder: &mut Builder,
    node: &Node,
    sum: Value,
    state: Option<Value>,
    weights: Value,
) -> Result<Value, Fault> {
    let Some(state) = state else { return Ok(sum) };
    let product = part(builder, node, "MatMul", [state, weights])?;
    part(builder, node, "Add", [sum, product])
}

impl Cell {
    /// Function `index` of what is clipped first, if anything is.
    fn function(
        &self,
        builder: &mut Builder,
        node: &Node,
        index: usize,
        mut x: Value,
    ) -> Result<Value, Fault> {
        if let Some(clip) = self.clip {
            x = part(builder, node, "Clip", [x, number(-clip), number(clip)])?;
        }
        part(builder, node, &self.functions[index], [x])
    }

    /// The columns of some matrices, from `first` to before `end`.
    fn columns(
        &self,
        builder: &mut Builder,
        node: &Node,
        x: &Value,
        [first, end]: [usize; 2],
    ) -> Result<Value, Fault> {
        cut(builder, node, x, 1, [first * self.size, end * self.size])
    }
}

/// The state after a step of a `GRU`: (1 − z) · new + z · state.
fn gru_step(
    builder: &mut Builder,
    node: &Node,
    cell: &Cell,
    inputs: Value,
    h: Option<Value>,
) -> Result<Value, Fault> {
    let of_gates = cell.columns(builder, node, &inputs, [0, 2])?;
    let mut new = cell.columns(builder, node, &inputs, [2, 3])?;
    let weights = cell.columns(builder, node, &cell.recurrent, [0, 2])?;
    let gates = plus_product(builder, node, of_gates, h.clone(), weights)?;
    let gate = |builder: &mut Builder, i: usize| {
        let sum = cell.columns(builder, node, &gates, [i, i + 1])?;
        cell.function(builder, node, 0, sum)
    };
    let weights = cell.columns(builder, node, &cell.recurrent, [2, 3])?;
    if cell.is_linear_before_reset {
        let product = match (h.clone(), cell.reset_bias.clone()) {
            (None, bias) => bias,
            (Some(h), None) => Some(part(builder, node, "MatMul", [h, weights])?),
            (Some(h), Some(bias)) => Some(plus_product(builder, node, bias, Some(h), weights)?),
        };
        if let Some(product) = product {
            let r = gate(builder, 1)?;
            let reset = part(builder, node, "Mul", [r, product])?;
            new = part(builder, node, "Add", [new, reset])?;
        }
    } else if let Some(h) = h.clone() {
        let r = gate(builder, 1)?;
        let reset = part(builder, node, "Mul", [r, h])?;
        new = plus_product(builder, node, new, Some(reset), weights)?;
    }
    let new = cell.function(builder, node, 1, new)?;
    let z = gate(builder, 0)?;
    let rest = part(builder, node, "Sub", [number(1.0), z.clone()])?;
    let fresh = part(builder, node, "Mul", [rest, new])?;
    let Some(h) = h else { return Ok(fresh) };
    let kept = part(builder, node, "Mul", [z, h])?;
    part(builder, node, "Add", [fresh, kept])
}

/// The state and the memory after a step of an `LSTM`.
fn lstm_step(
    builder: &mut Builder,
    node: &Node,
    cell: &Cell,
    inputs: Value,
    h: Option<Value>,
    c: Option<Value>,
) -> Result<Vec<Value>, Fault> {
    let sums = plus_product(builder, node, inputs, h, cell.recurrent.clone())?;
    // The gates are i, o and f, and what is new comes after them.
    let gate = |builder: &mut Builder, i: usize, memory: Option<&Value>| {
        let mut sum = cell.columns(builder, node, &sums, [i, i + 1])?;
        if let (Some(peepholes), Some(memory)) = (&cell.peepholes, memory) {
            let seen = part(builder, node, "Mul", [memory.clone(), peepholes[i].clone()])?;
            sum = part(builder, node, "Add", [sum, seen])?;
        }
        cell.function(builder, node, usize::from(i == 3), sum)
    };
    let i = gate(builder, 0, c.as_ref())?;
    let new = gate(builder, 3, None)?;
    let mut memory = part(builder, node, "Mul", [i.clone(), new])?;
    if let Some(c) = c {
        let f = match cell.couples {
            true => part(builder, node, "Sub", [number(1.0), i])?,
            false => gate(builder, 2, Some(&c))?,
        };
        let kept = part(builder, node, "Mul", [f, c])?;
        memory = part(builder, node, "Add", [kept, memory])?;
    }
    let o = gate(builder, 1, Some(&memory))?;
    // As ONNX Runtime does, the memory is not clipped.
    let told = part(builder, node, &cell.functions[2], [memory.clone()])?;
    Ok(vec![part(builder, node, "Mul", [o, told])?, memory])
}
