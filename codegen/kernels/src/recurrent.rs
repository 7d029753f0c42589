//! Recurrent layers: each row of the output is made from a row of products and from the state that the row before left.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::recurrent::{Cell, Recurrent};
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Activation, Context, Isa, RowKernel, Rows, RowsMut};
//!
//! // state = products + 10 · state before
//! let activations = [Activation::None; 3];
//! let sums = Recurrent { cell: Cell::Rnn, size: 1, activations, clip: None };
//! let products = Rows { data: Span::new(&[1.0, 2.0, 3.0]), shape: RowShape::dense(3, 1, 1, 3) }; // [3, 1, 1]
//! let mut made = [0.0; 3];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: products.shape };
//! let mut workspace = vec![0.0; sums.workspace_len(1)];
//! let context = &mut Context { isa: Isa::PORTABLE, workers: None, workspace: &mut workspace };
//! sums.rows(context, 0..1, &[products], &[Rows::line(&[10.0])], &mut output);
//! // The state stays in the workspace until the next firing.
//! sums.rows(context, 1..3, &[products], &[Rows::line(&[10.0])], &mut output);
//! assert_eq!(made, [1.0, 12.0, 123.0]);
//! ```

use core::ops::Range;

use super::activation::Activation;
use super::arch::Isa;
use super::kernel::{Context, RowKernel, Sharing};
use super::product::{Left, Product, Right, Start};
use super::rows::{RowShape, Rows, RowsMut};

/// What a step computes. All products, those of the input and those of the state, lie gate by gate in ONNX's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Cell {
    /// The state is f(sum).
    Rnn,
    /// The gates z and r, and what is new.
    Gru {
        /// Whether the state is multiplied by its weights before r resets it, not after.
        linear_before_reset: bool,
    },
    /// The gates i, o and f, and what is new. Beside the state there is a memory.
    Lstm {
        /// Whether f is 1 − i.
        input_forget: bool,
    },
}

/// A recurrent layer of `size` channels. Each pixel of a row is a sequence of its own.
///
/// Its constants are the weights of the state, `[size, gates · size]`, and then, with `linear_before_reset`, the biases
/// of the product that r resets, `[size]`, or, if the gates of an LSTM see its memory, the weights of that for i, o and
/// f, `[3 · size]`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Recurrent {
    /// What a step computes.
    pub cell: Cell,
    /// Channels of the state, C.
    pub size: usize,
    /// ONNX's f, g and h, as many as the cell has; the others are `None`.
    pub activations: [Activation; 3],
    /// The largest absolute value of a sum that goes into f or g.
    pub clip: Option<f32>,
}

impl Recurrent {
    /// Matrices of C columns that lie side by side in the weights.
    const fn gates(&self) -> usize {
        match self.cell {
            Cell::Rnn => 1,
            Cell::Gru { .. } => 3,
            Cell::Lstm { .. } => 4,
        }
    }

    /// Elements of the workspace, for rows of `width` pixels: the state, what else a cell keeps (the memory of an
    /// LSTM, or room for the state that a GRU resets), and the sums of a row.
    pub const fn workspace_len(&self, width: usize) -> usize {
        let kept = match self.cell {
            Cell::Rnn => 1,
            Cell::Gru { .. } | Cell::Lstm { .. } => 2,
        };
        width * self.size * (kept + self.gates())
    }
}

/// Operands: the products of the inputs with biases, `[H, W, gates · C]`, and then, if the first row does not begin with
/// zeros, the state before it and, of an LSTM, the memory before it, `[1, W, C]` each. If the output has 2 · C channels,
/// the memory follows the state in each pixel. The workspace has [`Recurrent::workspace_len`] elements. What a firing
/// leaves there, the next one needs. The first row does not look at it.
impl RowKernel for Recurrent {
    /// A row needs the one before.
    fn sharing(&self, _: usize, _: usize, _: &RowShape) -> Sharing {
        Sharing::Alone
    }

    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        constants: &[Rows<'_>],
        output: &mut RowsMut<'_>,
    ) {
        let products = operands[0];
        let (size, width) = (self.size, products.shape.width);
        let workspace = &mut context.workspace[..self.workspace_len(width)];
        let (state, rest) = workspace.split_at_mut(width * size);
        let (kept, sums) = rest.split_at_mut(rest.len() - width * self.gates() * size);
        let beside = constants.get(1).map_or(&[][..], |beside| beside.row(0));
        let firing = Firing { layer: self, isa: context.isa, weights: constants[0].row(0), beside };
        for row in y {
            if row == 0 {
                let mut initial = operands[1..].iter().map(|x| x.row(0));
                for to in [&mut *state, &mut *kept] {
                    match initial.next() {
                        Some(from) => to.copy_from_slice(from),
                        None => to.fill(0.0),
                    }
                }
            }
            sums.copy_from_slice(products.row(row));
            match self.cell {
                Cell::Rnn => firing.rnn(state, sums),
                Cell::Gru { linear_before_reset } => firing.gru(linear_before_reset, state, kept, sums),
                Cell::Lstm { input_forget, .. } => firing.lstm(input_forget, state, kept, sums),
            }
            let channels = output.shape.channels;
            for (x, pixel) in output.row(row).chunks_exact_mut(channels).enumerate() {
                let (first, second) = pixel.split_at_mut(size);
                first.copy_from_slice(&state[x * size..][..size]);
                if !second.is_empty() {
                    second.copy_from_slice(&kept[x * size..][..size]);
                }
            }
        }
    }
}

/// What all rows of a firing share.
struct Firing<'a> {
    layer: &'a Recurrent,
    isa: Isa,
    /// `[C, gates · C]`.
    weights: &'a [f32],
    /// The biases or the weights of the memory; empty if there are none.
    beside: &'a [f32],
}

impl Firing<'_> {
    /// Makes `to`, `[W, gates · C]` of which these gates are written, begin with `start` and adds the product of `state`,
    /// `[W, C]`, and the weights of these gates.
    fn product(&self, state: &[f32], gates: Range<usize>, start: Start<'_>, to: &mut [f32], row: usize) {
        let Recurrent { size, .. } = *self.layer;
        let (width, columns) = (state.len() / size, self.layer.gates() * size);
        let product = Product {
            size: [width, gates.len() * size, size],
            left: Left { elements: state, row: size, step: 1 },
            right: Right::Rows { elements: &self.weights[gates.start * size..], row: columns },
            start,
            activation: Activation::None,
        };
        product.make(self.isa, to, row);
    }

    /// The same, added to the sums of these gates, `[W, gates · C]`.
    fn add_product(&self, state: &[f32], gates: Range<usize>, sums: &mut [f32]) {
        let (size, columns) = (self.layer.size, self.layer.gates() * self.layer.size);
        self.product(state, gates.clone(), Start::Old, &mut sums[gates.start * size..], columns);
    }

    /// Function `index` of what is clipped first, if anything is.
    fn activate(&self, index: usize, values: &mut [f32]) {
        if let Some(clip) = self.layer.clip {
            Activation::Clip { min: -clip, max: clip }.apply_all(self.isa, values, &[]);
        }
        self.layer.activations[index].apply_all(self.isa, values, &[]);
    }

    /// f(sum).
    fn rnn(&self, state: &mut [f32], sums: &mut [f32]) {
        self.add_product(state, 0..1, sums);
        self.activate(0, sums);
        state.copy_from_slice(sums);
    }

    /// (1 − z) · new + z · state. `reset` has room for what r resets, `[W, C]`.
    fn gru(&self, is_reset_after: bool, state: &mut [f32], reset: &mut [f32], sums: &mut [f32]) {
        let size = self.layer.size;
        self.add_product(state, 0..2, sums);
        if is_reset_after {
            self.product(state, 2..3, Start::Columns(self.beside), reset, size);
        }
        let pixels = sums.chunks_exact_mut(3 * size).zip(state.chunks_exact(size));
        for ((sums, state), reset) in pixels.zip(reset.chunks_exact_mut(size)) {
            let (gates, new) = sums.split_at_mut(2 * size);
            self.activate(0, gates);
            let r = &gates[size..];
            match is_reset_after {
                true => new.iter_mut().zip(r).zip(reset).for_each(|((new, r), reset)| *new += r * *reset),
                false => reset.iter_mut().zip(r).zip(state).for_each(|((reset, r), h)| *reset = r * h),
            }
        }
        if !is_reset_after {
            self.add_product(reset, 2..3, sums);
        }
        for (sums, state) in sums.chunks_exact_mut(3 * size).zip(state.chunks_exact_mut(size)) {
            let (gates, new) = sums.split_at_mut(2 * size);
            self.activate(1, new);
            for ((h, z), new) in state.iter_mut().zip(gates).zip(new) {
                *h = (1.0 - *z) * *new + *z * *h;
            }
        }
    }

    /// The memory becomes f · memory + i · new, and the state o · h(memory).
    fn lstm(&self, input_forget: bool, state: &mut [f32], memory: &mut [f32], sums: &mut [f32]) {
        let size = self.layer.size;
        self.add_product(state, 0..4, sums);
        // Without weights of the memory, this adds nothing.
        let see = |gate: &mut [f32], index: usize, memory: &[f32]| {
            let weights = self.beside.get(index * size..).unwrap_or_default();
            gate.iter_mut().zip(weights).zip(memory).for_each(|((x, weight), c)| *x += weight * c);
        };
        let pixels = sums.chunks_exact_mut(4 * size).zip(state.chunks_exact_mut(size));
        for ((sums, state), memory) in pixels.zip(memory.chunks_exact_mut(size)) {
            let (i, rest) = sums.split_at_mut(size);
            let (o, rest) = rest.split_at_mut(size);
            let (f, new) = rest.split_at_mut(size);
            see(i, 0, memory);
            self.activate(0, i);
            if input_forget {
                f.iter_mut().zip(&*i).for_each(|(f, i)| *f = 1.0 - i);
            } else {
                see(f, 2, memory);
                self.activate(0, f);
            }
            self.activate(1, new);
            for (((c, f), i), new) in memory.iter_mut().zip(f).zip(i).zip(new) {
                *c = *f * *c + *i * *new;
            }
            see(o, 1, memory);
            self.activate(0, o);
            // As in ONNX Runtime, the memory is not clipped.
            state.copy_from_slice(memory);
            self.layer.activations[2].apply_all(self.isa, state, &[]);
            state.iter_mut().zip(o).for_each(|(h, o)| *h *= *o);
        }
    }
}
