//! `LSTM` over a known number of steps, each of which becomes layers of its own.

use super::layout::{MAX_PARTS, joined};
use super::parts::{cut, dims, number, part, reshaped, tensor, transposed};
use crate::import::builder::Builder;
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, Value};

/// What all steps of one direction share.
struct Cell {
    /// Products of the inputs and their weights, with biases: `[steps · batch, 4 · size]`.
    inputs: Value,
    /// The weights of the state before, `[size, 4 · size]`.
    recurrent: Value,
    /// Weights from the memory to the gates i, o and f, `[size]` each.
    peepholes: Option<[Value; 3]>,
    batch: usize,
    size: usize,
    /// Functions of the gates, of the input to the memory (the cell), and of the memory as it becomes the state: f, g and h
    /// in ONNX.
    functions: [String; 3],
    couples: bool,
}

/// `LSTM`: all states, the last state, and the last memory.
pub(super) fn lstm(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
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
    if node.has("clip") {
        return fault!("it clips its gates, which is not supported");
    }
    let directions: &[bool] = match node.text("direction", "forward")? {
        "forward" => &[false],
        "reverse" => &[true],
        "bidirectional" => &[false, true],
        other => return fault!("direction {other} is unknown"),
    };
    let x = reshaped(builder, node, &x, vec![steps * batch, inner])?;
    let (mut states, mut last, mut memories) = (Vec::new(), Vec::new(), Vec::new());
    for (d, &is_reverse) in directions.iter().enumerate() {
        let cell = cell(builder, node, &x, d, batch)?;
        let [mut h, mut c] = [5, 6].map(|index| initial(builder, node, index, d, &cell, layout));
        let mut all = vec![None; steps];
        for step in 0..steps {
            let at = if is_reverse { steps - 1 - step } else { step };
            let [state, memory] = one_step(builder, node, &cell, at, h?, c?)?;
            all[at] = Some(state.clone());
            (h, c) = (Ok(Some(state.into())), Ok(Some(memory.into())));
        }
        let all: Vec<Tensor> = all.into_iter().flatten().collect();
        let all = joined(builder, node, 0, &all)?;
        states.push(builder.reshape(node, &all, vec![steps, 1, batch, cell.size])?);
        for (ends, end) in [(&mut last, h?), (&mut memories, c?)] {
            let Some(Value::Tensor(end)) = end else { return fault!("it takes no steps") };
            ends.push(builder.reshape(node, &end, vec![1, batch, cell.size])?);
        }
    }
    let mut made = Vec::new();
    for (parts, axis, perm) in
        [(states, 1, vec![2, 0, 1, 3]), (last, 0, vec![1, 0, 2]), (memories, 0, vec![1, 0, 2])]
    {
        let whole = Value::from(joined(builder, node, axis, &parts)?);
        made.push(if layout { transposed(builder, node, &whole, perm)? } else { whole });
    }
    Ok(made)
}

/// The cell of direction `d`.
fn cell(builder: &mut Builder, node: &Node, x: &Value, d: usize, batch: usize) -> Result<Cell, Fault> {
    let recurrent = of_direction(builder, node, node.constant(2, "R")?.clone().into(), d)?;
    let &[_, size] = dims(&recurrent) else { return fault!("its R has dimensions {:?}", dims(&recurrent)) };
    let weights = of_direction(builder, node, node.constant(1, "W")?.clone().into(), d)?;
    let weights = transposed(builder, node, &weights, vec![1, 0])?;
    let mut inputs = part(builder, node, "MatMul", [x.clone(), weights])?;
    if let Some(biases) = node.optional(3, "B")? {
        let biases = of_direction(builder, node, biases.clone().into(), d)?;
        let gates = 4 * size;
        let of_input = cut(builder, node, &biases, 0, [0, gates])?;
        let of_state = cut(builder, node, &biases, 0, [gates, 2 * gates])?;
        let sum = part(builder, node, "Add", [of_input, of_state])?;
        inputs = part(builder, node, "Add", [inputs, sum])?;
    }
    let peepholes = match node.optional(7, "P")? {
        None => None,
        Some(all) => {
            let all = of_direction(builder, node, all.clone().into(), d)?;
            let mut gate = |i: usize| cut(builder, node, &all, 0, [i * size, (i + 1) * size]);
            Some([gate(0)?, gate(1)?, gate(2)?])
        }
    };
    let recurrent = transposed(builder, node, &recurrent, vec![1, 0])?;
    let couples = node.flag("input_forget", false)?;
    Ok(Cell { inputs, recurrent, peepholes, batch, size, functions: functions(node, d)?, couples })
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
fn functions(node: &Node, d: usize) -> Result<[String; 3], Fault> {
    let stated =
        node.attribute("activations").map(|attribute| attribute.strings.as_slice()).unwrap_or_default();
    let name = |i: usize, usual: &str| -> Result<String, Fault> {
        let name = stated.get(3 * d + i).map_or(usual, |name| name.as_ref());
        match name.to_ascii_lowercase().as_str() {
            "sigmoid" => Ok("Sigmoid".into()),
            "tanh" => Ok("Tanh".into()),
            "relu" => Ok("Relu".into()),
            "softsign" => Ok("Softsign".into()),
            "softplus" => Ok("Softplus".into()),
            _ => fault!("its activation {name} is not supported"),
        }
    };
    Ok([name(0, "Sigmoid")?, name(1, "Tanh")?, name(2, "Tanh")?])
}

/// The state and the memory after the step at row `at` of the inputs.
fn one_step(
    builder: &mut Builder,
    node: &Node,
    cell: &Cell,
    at: usize,
    h: Option<Value>,
    c: Option<Value>,
) -> Result<[Tensor; 2], Fault> {
    let (size, [of_gates, of_new, of_told]) = (cell.size, &cell.functions);
    let mut sums = cut(builder, node, &cell.inputs, 0, [at * cell.batch, (at + 1) * cell.batch])?;
    if let Some(h) = h {
        let recurrent = part(builder, node, "MatMul", [h, cell.recurrent.clone()])?;
        sums = part(builder, node, "Add", [sums, recurrent])?;
    }
    // The gates are i, o and f, and what is new comes after them.
    let gate = |builder: &mut Builder, i: usize, memory: Option<&Value>| {
        let mut sum = cut(builder, node, &sums, 1, [i * size, (i + 1) * size])?;
        if let (Some(peepholes), Some(memory)) = (&cell.peepholes, memory) {
            let seen = part(builder, node, "Mul", [memory.clone(), peepholes[i].clone()])?;
            sum = part(builder, node, "Add", [sum, seen])?;
        }
        part(builder, node, if i == 3 { of_new } else { of_gates }, [sum])
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
    let told = part(builder, node, of_told, [memory.clone()])?;
    let state = part(builder, node, "Mul", [o, told])?;
    Ok([tensor(state)?, tensor(memory)?])
}
