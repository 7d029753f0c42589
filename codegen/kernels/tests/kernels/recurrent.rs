//! Recurrent layers compared with their definition in doubles, however many rows a firing makes.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::arch::Isa;
use csdfc_kernels::kernel::{Context, RowKernel};
use csdfc_kernels::recurrent::{Cell, Recurrent};
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
use csdfc_kernels::span::{Span, SpanMut};

use crate::testing::Random;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// One sequence: state and memory after a step, by ONNX's formulas.
fn step(
    layer: &Recurrent,
    products: &[f32],
    [weights, beside]: [&[f32]; 2],
    h: &[f64],
    c: &[f64],
) -> [Vec<f64>; 2] {
    let size = layer.size;
    let gates = products.len() / size;
    let clip = |x: f64| layer.clip.map_or(x, |clip| x.clamp(-f64::from(clip), f64::from(clip)));
    let product = |state: &[f64], column: usize| -> f64 {
        (0..size).map(|k| state[k] * f64::from(weights[k * gates * size + column])).sum()
    };
    let sum = |gate: usize, u: usize| f64::from(products[gate * size + u]) + product(h, gate * size + u);
    let beside = |i: usize| beside.get(i).map_or(0.0, |x| f64::from(*x));
    match layer.cell {
        Cell::Rnn => [(0..size).map(|u| clip(sum(0, u)).tanh()).collect(), vec![]],
        Cell::Gru { linear_before_reset } => {
            let gate = |gate: usize, u: usize| sigmoid(clip(sum(gate, u)));
            let reset: Vec<f64> = (0..size).map(|u| gate(1, u) * h[u]).collect();
            let made = |u: usize| {
                let added = match linear_before_reset {
                    true => gate(1, u) * (product(h, 2 * size + u) + beside(u)),
                    false => product(&reset, 2 * size + u),
                };
                let new = clip(f64::from(products[2 * size + u]) + added).tanh();
                (1.0 - gate(0, u)) * new + gate(0, u) * h[u]
            };
            [(0..size).map(made).collect(), vec![]]
        }
        Cell::Lstm { input_forget } => {
            let made = |u: usize| {
                let gate = |gate: usize, c: f64| sigmoid(clip(sum(gate, u) + beside(gate * size + u) * c));
                let i = gate(0, c[u]);
                let f = if input_forget { 1.0 - i } else { gate(2, c[u]) };
                let memory = f * c[u] + i * clip(sum(3, u)).tanh();
                (gate(1, memory) * memory.tanh(), memory)
            };
            let (states, memories) = (0..size).map(made).unzip();
            [states, memories]
        }
    }
}

#[test]
fn recurrent_layers_are_those_of_the_definition() {
    let mut random = Random(23);
    let cells = [
        Cell::Rnn,
        Cell::Gru { linear_before_reset: false },
        Cell::Gru { linear_before_reset: true },
        Cell::Lstm { input_forget: false },
        Cell::Lstm { input_forget: true },
    ];
    for round in 0..200 {
        let cell = cells[round % cells.len()];
        let [size, width, height] = [random.within(1, 37), random.within(1, 3), random.within(1, 9)];
        let is_lstm = matches!(cell, Cell::Lstm { .. });
        let gates = if is_lstm {
            4
        } else if cell == Cell::Rnn {
            1
        } else {
            3
        };
        let first = if cell == Cell::Rnn { Activation::Tanh } else { Activation::Sigmoid };
        let layer = Recurrent {
            cell,
            size,
            activations: [first, Activation::Tanh, Activation::Tanh],
            clip: *random.pick(&[None, Some(0.5)]),
        };
        let [has_initial, has_beside] = [random.within(0, 1) == 1, random.within(0, 1) == 1];
        let mut floats = |n: usize| random.floats(n);
        let products = floats(height * width * gates * size);
        let weights: Vec<f32> = floats(size * gates * size).iter().map(|x| x / size as f32).collect();
        let beside = match cell {
            Cell::Gru { linear_before_reset: true } => floats(size),
            Cell::Lstm { .. } if has_beside => floats(3 * size),
            _ => vec![],
        };
        let states = usize::from(has_initial) * if is_lstm { 2 } else { 1 };
        let initial: Vec<Vec<f32>> = (0..states).map(|_| floats(width * size)).collect();
        let channels = if is_lstm && round % 2 == 0 { 2 * size } else { size };
        let mut want = vec![0.0; height * width * channels];
        for x in 0..width {
            let begin = |i: usize| -> Vec<f64> {
                let of = initial.get(i).map(|all| &all[x * size..][..size]);
                of.map_or(vec![0.0; size], |of| of.iter().map(|v| f64::from(*v)).collect())
            };
            let (mut h, mut c) = (begin(0), begin(1));
            for t in 0..height {
                let at = t * width + x;
                let products = &products[at * gates * size..][..gates * size];
                [h, c] = step(&layer, products, [&weights, &beside], &h, &c);
                let made = h.iter().chain(&c).take(channels);
                want[at * channels..].iter_mut().zip(made).for_each(|(to, from)| *to = *from);
            }
        }
        let dense = |channels| RowShape::dense(height, width, channels, height);
        let rows = |data, shape| Rows { data: Span::new(data), shape };
        let mut operands = vec![rows(&products, dense(gates * size))];
        operands.extend(initial.iter().map(|x| rows(x, RowShape::dense(1, width, size, 1))));
        let mut constants = vec![Rows::line(&weights)];
        constants.extend((!beside.is_empty()).then(|| Rows::line(&beside)));
        let mut before: Option<Vec<f32>> = None;
        for rows in [height, 1, 2] {
            let mut workspace = vec![f32::NAN; layer.workspace_len(width)];
            let mut context = Context { workspace: &mut workspace, ..Context::alone(Isa::detect()) };
            let mut made = vec![f32::NAN; want.len()];
            let mut output = RowsMut { data: SpanMut::new(&mut made), shape: dense(channels) };
            for first in (0..height).step_by(rows) {
                let firing = first..height.min(first + rows);
                layer.rows(&mut context, firing, &operands, &constants, &mut output);
            }
            for (made, want) in made.iter().zip(&want) {
                assert!((f64::from(*made) - want).abs() < 1e-4, "{layer:?}: {made} is not {want}");
            }
            assert!(before.is_none_or(|before| before == made), "{layer:?}: {rows} rows at a time");
            before = Some(made);
        }
    }
}
