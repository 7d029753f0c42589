//! Runs a plan in this process, with the kernels of the emitted crate, in memory of exactly the planned size.
//!
//! Each layer is bound once to a kernel and to the places that it reads and writes ([`crate::bind`]); then each frame
//! walks the schedules. Partitions that run at the same time take turns here, by the same blocking rule with which the
//! checker replays them. Each frame is finished before the next begins, but rings and double buffers between partitions
//! go on from frame to frame, as in the emitted crate. If a layer's output ring shares bytes with a ring that it reads,
//! the layer is called once per row, with only the rows from which it makes that row. Streamed weights are first written
//! to a file. Each frame reads them into blocks of the arena, as soon as the plan lets a load start. Writes beyond the arena are
//! detected, and a poisoned one ([`Runner::poisoned`]) has NaN for rows that no reader needs any more.
//!
//! The caller's memory lies outside the arena: it hands over inputs and takes outputs row by row ([`FrameRows`]). Only an input
//! that layers read in place is held as a whole. In model `edges`, a layer writes into the buffer of its first edge, and rows are
//! copied to the buffers of its other edges.
//!
//! ```
//! use csdfc_plan::plan::{Plan, Tensor};
//! use csdfc_runtime::run::{Data, Runner, Value};
//!
//! // A 5×5 convolution with same padding of an image of ones. Its weights are ones, too, and its 8 biases are zeros.
//! let text = std::fs::read_to_string("../../tests/plan_format/version_1/pair_5x5.json")?;
//! let plan = Plan::parse(&text)?;
//! let ones = vec![1.0; 8 * 3 * 5 * 5];
//! let parameter = |number| if number == 0 { ones.clone() } else { vec![0.0; 8] };
//! let mut runner = Runner::new(&plan, &|_cnn, _layer, number| Ok(parameter(number).into()))?;
//! let image = Value { dims: vec![1, 3, 32, 32], data: Data::F32(vec![1.0; 3 * 32 * 32]) };
//! let outputs = runner.infer(0, &[image])?;
//! assert_eq!(outputs[0].dims, [1, 8, 32, 32]);
//! let Data::F32(sums) = &outputs[0].data else { panic!("other elements") };
//! // 3·3 pixels of three channels in the corner, 5·5 within.
//! assert_eq!((sums[0], sums[16 * 32 + 16]), (27.0, 75.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arena;
mod batch;
mod error;
mod fired;
mod memory;
mod rows;
mod state;
mod value;
mod weight_stream;
pub mod whole;
mod whole_frame;

use std::ops::Range;
use std::time::Instant;

use csdfc_kernels::arch::Isa;
use csdfc_kernels::kernel::Context;
use csdfc_kernels::quantized::Requantize;
use csdfc_kernels::span::{Plain, Span, SpanMut};
use csdfc_kernels::workers::Workers;

use crate::bind::{Slots, Source, Target};
use crate::bytes::Bytes;
use crate::error::{InputError, LayerError};
use crate::weights::{self, Blob};
use csdfc_plan::check::{self, Begin, CnnIndex, Held, Resolved, RowOrder};
use csdfc_plan::format::Element;
use csdfc_plan::operator::{Input, InputElement, Operator};
use csdfc_plan::plan::{Plan, Tensor};

use arena::Arena;
pub use batch::batch_dims;
pub use error::{Parameters, RunError};
use error::{layer_error, store_error};
pub use fired::Fired;
use memory::{first_slot, ring_bytes, row_bytes};
pub use rows::{FrameRows, InputRow, OutputRow};
use state::{State, external_rows};
pub use value::{Data, Value, element, input_dims, read};
pub use weight_stream::Loaded;
use weight_stream::WeightStream;
pub use whole_frame::WholeFrame;
use whole_frame::WholeOutput;

/// More frames than a runner ever runs; as many rows of all of them fit into 64 bits.
const MAX_FRAMES: u64 = 1 << 40;

/// A plan with its weights packed and its memory allocated, ready to run frames.
pub struct Runner<'p> {
    resolved: Resolved<'p>,
    cnns: Vec<State>,
    weights: Blob,
    weight_stream: Option<WeightStream>,
    arena: Arena,
    isa: Isa,
    workers: Workers,
}

impl<'p> Runner<'p> {
    /// Checks a plan, packs the weights of its CNNs, and allocates its arena.
    ///
    /// # Errors
    /// When the checker refuses the plan, a layer cannot be computed, or parameters cannot be read.
    pub fn new(plan: &'p Plan, parameters: &Parameters<'_>) -> Result<Self, RunError> {
        Self::bound(plan, parameters, false)
    }

    /// The same for tests: bytes that no layer may read are NaN, so figures show it if one is read.
    ///
    /// # Errors
    /// As of [`Runner::new`].
    pub fn poisoned(plan: &'p Plan, parameters: &Parameters<'_>) -> Result<Self, RunError> {
        Self::bound(plan, parameters, true)
    }

    fn bound(plan: &'p Plan, parameters: &Parameters<'_>, is_poisoned: bool) -> Result<Self, RunError> {
        let isa = Isa::detect();
        let resolved = check::resolve(plan).map_err(|violations| RunError::Refused { violations })?;
        let bytes = plan.memory.arena;
        let arena = Arena::new(bytes, is_poisoned).ok_or(RunError::Memory { bytes })?;
        let states = (0..resolved.index.cnns.len()).map(|c| State::new(&resolved, c));
        let mut cnns: Vec<State> = states.collect::<Result<_, _>>()?;
        let weight_stream = match plan.store {
            Some(_) => Some(WeightStream::new(&resolved, &cnns, parameters, isa)?),
            None => None,
        };
        let keepers: Vec<Vec<usize>> = cnns
            .iter()
            .zip(&resolved.index.cnns)
            .map(|(state, cnn)| weights::keepers(cnn, |l| state.calls[l].is_some()))
            .collect();
        let keeps = |c: usize, l: usize| keepers[c][l] == l && cnns[c].streamed[l].is_none();
        let calls = || {
            let of = |c: usize| {
                let calls = cnns[c].calls.iter().enumerate();
                calls.filter(move |(l, _)| keeps(c, *l)).filter_map(|(_, call)| call.as_ref())
            };
            (0..cnns.len()).flat_map(of)
        };
        let bytes = calls().map(|call| weights::stored_len(call) as u64).sum();
        let mut weights = Blob::for_layers(calls()).ok_or(RunError::Memory { bytes })?;
        for (c, state) in cnns.iter_mut().enumerate() {
            for (l, (call, keeper)) in state.calls.iter().zip(&keepers[c]).enumerate() {
                let values = |parameter: usize| parameters(c, l, parameter);
                let packed = match call {
                    Some(call) if state.streamed[l].is_none() => match state.weights.get(*keeper) {
                        Some(kept) => Ok(kept.clone()),
                        None => weights.push(call, &values),
                    },
                    _ => Ok(0..0),
                };
                state.weights.push(packed.map_err(|why| layer_error(&resolved, c, l, why))?);
            }
        }
        let workers = Workers::new(plan.threads);
        let mut runner = Runner { resolved, cnns, weights, weight_stream, arena, isa, workers };
        (0..runner.cnns.len()).for_each(|cnn| runner.reset(cnn));
        Ok(runner)
    }

    /// Runs one frame of a CNN. Inputs are in the order of [`csdfc_plan::plan::Cnn::inputs`], outputs in that of
    /// [`csdfc_plan::plan::Cnn::outputs`], both in the model's dimensions.
    ///
    /// # Errors
    /// When there are not as many inputs as the CNN has, or one is of other dimensions or elements.
    ///
    /// A frame of a stream is a hop: inputs and outputs are its rows. In the first hops, an output that lags behind has
    /// fewer rows, or none.
    pub fn infer(&mut self, cnn: usize, inputs: &[Value]) -> Result<Vec<Value>, RunError> {
        self.infer_observed(cnn, inputs, &mut |_| {})
    }

    /// As [`Runner::infer`], telling after each firing.
    ///
    /// # Errors
    /// As [`Runner::infer`].
    pub fn infer_observed(
        &mut self,
        cnn: usize,
        inputs: &[Value],
        observe: &mut dyn FnMut(&Fired<'_>),
    ) -> Result<Vec<Value>, RunError> {
        let inputs: Vec<Option<&Value>> = inputs.iter().map(Some).collect();
        let mut frame = self.whole_frame(cnn, &inputs)?;
        self.infer_rows(cnn, &mut frame, observe)?;
        Ok(frame.values())
    }

    /// Runs one frame of a CNN whose inputs are asked for, and whose outputs are handed over, row by row as the plan goes
    /// on. Only an input that the plan has layers read in place is held as a whole. Tells after each firing.
    ///
    /// # Errors
    /// When `rows` has no row of an input, or takes none of an output: the frame is lost, and the next one may run.
    pub fn infer_rows(
        &mut self,
        cnn: usize,
        rows: &mut dyn FrameRows,
        observe: &mut dyn FnMut(&Fired<'_>),
    ) -> Result<(), RunError> {
        self.weight_stream.iter_mut().for_each(WeightStream::begin);
        for group in 0..self.resolved.index.cnns[cnn].groups.len() {
            if let Err(error) = self.run_group(cnn, group, rows, observe) {
                self.cnns[cnn].restart(&self.resolved.allocations[cnn]);
                return Err(error);
            }
        }
        for state in &self.cnns[cnn].states {
            let [from, to] =
                [state.from, state.to].map(|s| ring_bytes(&self.resolved.allocations[cnn][s], 0));
            self.arena.copy(from, to.start);
        }
        if !self.arena.is_intact() {
            return Err(RunError::Guard { cnn: self.resolved.index.cnns[cnn].cnn.name.clone() });
        }
        Ok(())
    }

    /// The rows of a frame of a CNN whose inputs are whole, in the order of [`csdfc_plan::plan::Cnn::inputs`] and in the
    /// model's dimensions. Rows of inputs that are not given must not be asked for.
    ///
    /// # Errors
    /// When there are not as many inputs as the CNN has, or one is of other dimensions or elements.
    pub fn whole_frame<'v>(
        &self,
        cnn: usize,
        inputs: &[Option<&'v Value>],
    ) -> Result<WholeFrame<'v>, RunError>
    where
        'p: 'v,
    {
        let (state, cnn) = (&self.cnns[cnn], &self.resolved.index.cnns[cnn]);
        let wrong = |input: &str, why: InputError| {
            Err(RunError::Input { cnn: cnn.cnn.name.clone(), input: input.into(), why: Box::new(why) })
        };
        let mut all = Vec::new();
        for (i, &l) in state.inputs.iter().enumerate() {
            let (layer, shape) = (cnn.layers[l].layer, &cnn.layers[l].tensor.shape);
            let Some(&value) = inputs.get(i) else {
                return wrong(&layer.name, InputError::Missing);
            };
            // The checker has verified that it is an input.
            let Operator::Input(input) = &layer.operator else { continue };
            if let Some(Err(why)) = value.map(|value| value::check_input(input, shape, value)) {
                return wrong(&layer.name, why);
            }
            all.push((input, shape, value));
        }
        if inputs.len() > all.len() {
            return wrong(&format!("{}", all.len() + 1), InputError::TooMany { inputs: all.len() });
        }
        let outputs = cnn.cnn.outputs.iter().zip(&state.outputs).map(|(output, &l)| {
            let tensor = cnn.layers[l].tensor;
            let seen = output.view.as_ref().unwrap_or(&tensor.shape);
            WholeOutput::new(tensor, seen)
        });
        Ok(WholeFrame { inputs: all, outputs: outputs.collect() })
    }

    /// Begins anew: what a CNN keeps of the frames, or hops of a stream, so far is forgotten.
    pub fn reset(&mut self, cnn: usize) {
        self.cnns[cnn].restart(&self.resolved.allocations[cnn]);
        for state in &self.cnns[cnn].states {
            let ring = ring_bytes(&self.resolved.allocations[cnn][state.to], 0);
            let bytes = self.arena.get_mut(ring).unwrap_or_default();
            SpanMut::of_bytes(bytes).all().fill(state.initial);
        }
    }

    /// What a CNN keeps between frames, for [`Runner::restore`]: the number of hops so far, and the rings that live from
    /// frame to frame.
    pub fn save(&self, cnn: usize) -> Vec<u8> {
        let frames = self.cnns[cnn].fired.first().zip(self.resolved.index.cnns[cnn].layers.first());
        let frames = frames.map_or(0, |(fired, entry)| fired / entry.layer.firings);
        let mut saved = frames.to_le_bytes().to_vec();
        for ring in self.kept_rings(cnn) {
            saved.extend_from_slice(self.arena.all().get(ring).unwrap_or_default());
        }
        saved
    }

    /// Goes on from what [`Runner::save`] returned, perhaps of another runner of the same plan.
    ///
    /// # Errors
    /// When there are not as many bytes as it returns.
    pub fn restore(&mut self, cnn: usize, saved: &[u8]) -> Result<(), RunError> {
        let rings = self.kept_rings(cnn);
        let expected = size_of::<u64>() + rings.iter().map(Range::len).sum::<usize>();
        let Some((frames, mut saved)) = saved.split_first_chunk().filter(|_| saved.len() == expected) else {
            return Err(RunError::Saved { bytes: saved.len(), expected });
        };
        let Resolved { index, rates, allocations, .. } = &self.resolved;
        self.cnns[cnn].go_on(
            &index.cnns[cnn],
            &rates[cnn],
            &allocations[cnn],
            u64::from_le_bytes(*frames) % MAX_FRAMES,
        );
        for ring in rings {
            let (own, rest) = saved.split_at(ring.len());
            self.arena.get_mut(ring).unwrap_or_default().copy_from_slice(own);
            saved = rest;
        }
        Ok(())
    }

    /// The rings that live from frame to frame.
    fn kept_rings(&self, cnn: usize) -> Vec<Range<usize>> {
        let persisting = self.resolved.allocations[cnn].iter().filter(|allocation| allocation.persists());
        persisting.map(|allocation| ring_bytes(allocation, 0)).collect()
    }

    /// Bytes of the packed weights in memory, all CNNs together.
    pub fn weight_bytes(&self) -> u64 {
        self.weights.bytes()
    }

    /// Bytes of streamed weights that were read so far.
    pub fn bytes_read(&self) -> u64 {
        self.weight_stream.as_ref().map_or(0, |weight_stream| weight_stream.read)
    }

    /// The reads of streamed weights in the last frame, in turn.
    pub fn loads(&self) -> &[Loaded] {
        self.weight_stream.as_ref().map_or(&[], |weight_stream| &weight_stream.loads)
    }

    /// Lets partitions that run at the same time take turns until each has run one frame.
    fn run_group(
        &mut self,
        c: usize,
        group: usize,
        rows: &mut dyn FrameRows,
        observe: &mut dyn FnMut(&Fired<'_>),
    ) -> Result<(), RunError> {
        let members = self.resolved.index.cnns[c].groups[group].clone();
        let mut done = vec![0; members.len()];
        loop {
            let (mut all_done, mut stuck) = (true, None);
            let mut progress = false;
            for (&p, done) in members.iter().zip(&mut done) {
                while let Some(&layer) = self.resolved.schedules[p].get(*done) {
                    let l = layer as usize;
                    if !self.is_ready(c, l) {
                        (all_done, stuck) = (false, Some(l));
                        break;
                    }
                    if *done == 0 {
                        self.load(c, Begin::Frame, l)?;
                    }
                    self.fire(c, l, rows, observe)?;
                    *done += 1;
                    progress = true;
                }
            }
            match stuck {
                _ if all_done => return Ok(()),
                // The checker has replayed the plan, so this is a mistake of the checker or of this code.
                Some(l) if !progress => {
                    let why = LayerError::Mistake("it waits for rows that never come: a mistake in csdfc");
                    return Err(layer_error(&self.resolved, c, l, why));
                }
                _ => {}
            }
        }
    }

    /// The blocking rule: rows from partitions that run at the same time are written, and there is room for rows that
    /// they read.
    fn is_ready(&self, c: usize, l: usize) -> bool {
        let (index, state) = (&self.resolved.index, &self.cnns[c]);
        let cnn = &index.cnns[c];
        let (entry, rows) = (&cnn.layers[l], cnn.layers[l].rows());
        let (frame, p) = (state.fired[l] / entry.layer.firings, state.fired[l] % entry.layer.firings);
        let mut held = self.resolved.rates[c][l].iter().filter(|held| index.is_cut_edge(c, held.tensor, l));
        let arrived = held.all(|held| {
            let before = frame * cnn.layers[held.tensor].rows();
            before + u64::from(held.need[p as usize]) <= state.written[held.tensor]
        });
        let room = state.places[l].writes.iter().all(|&s| {
            let allocation = &self.resolved.allocations[c][s];
            let end = frame * rows + entry.rows_of_firing(p).end;
            match allocation.kind {
                RowOrder::Restarts
                | RowOrder::Persists
                | RowOrder::State
                | RowOrder::Kept
                | RowOrder::Workspace
                | RowOrder::Recurrent
                | RowOrder::Block(_) => true,
                RowOrder::RunsOn => end <= state.free[s].saturating_add(allocation.ring_rows),
                RowOrder::Halves => frame * rows <= state.free[s].saturating_add(rows),
            }
        });
        arrived && room
    }

    fn fire(
        &mut self,
        c: usize,
        l: usize,
        frame_rows: &mut dyn FrameRows,
        observe: &mut dyn FnMut(&Fired<'_>),
    ) -> Result<(), RunError> {
        let start = Instant::now();
        let (cnn, state) = (&self.resolved.index.cnns[c], &mut self.cnns[c]);
        let entry = &cnn.layers[l];
        let (frame, p) = (state.fired[l] / entry.layer.firings, state.fired[l] % entry.layer.firings);
        let rows = entry.rows_of_firing(p);
        let mut external = std::mem::take(&mut state.externals[l]);
        let made = match self.resolved.follows[c][l] {
            true => rows.clone().try_for_each(|row| {
                self.release(c, l, frame, |held| held.rows.get(row as usize).map(|window| window.start));
                self.make(c, l, row..row + 1, frame_rows, &mut external)
            }),
            false => self.make(c, l, rows.clone(), frame_rows, &mut external),
        };
        self.cnns[c].externals[l] = external;
        made?;

        let Runner { resolved, cnns, arena, .. } = self;
        let (cnn, allocations, state) = (&resolved.index.cnns[c], &resolved.allocations[c], &cnns[c]);
        let entry = &cnn.layers[l];
        if let Some((s, others)) = state.places[l].writes.split_first() {
            for row in rows.clone() {
                let from = row_bytes(&allocations[*s], frame, entry, row);
                for other in others {
                    arena.copy(from.clone(), row_bytes(&allocations[*other], frame, entry, row).start);
                }
            }
        }
        let elapsed = start.elapsed();
        let whole = || state.whole(cnn, allocations, arena, l, frame);
        observe(&Fired {
            layer: l,
            start,
            elapsed,
            whole: if entry.layer.firings == 1 { Some(&whole) } else { None },
        });
        if entry.is_output {
            self.hand_over(c, l, rows.clone(), frame_rows)?;
        }

        let state = &mut self.cnns[c];
        state.written[l] += rows.end - rows.start;
        state.fired[l] += 1;
        self.release(c, l, frame, |held| held.keep.get(p as usize + 1).copied());
        self.load(c, Begin::After { layer: l, firing: p }, l)?;
        self.load_again(c, l, p + 1)
    }

    /// Hands rows of a layer's tensor over to the caller, once for each network output that it is.
    fn hand_over(
        &self,
        c: usize,
        l: usize,
        rows: Range<u64>,
        frame_rows: &mut dyn FrameRows,
    ) -> Result<(), RunError> {
        let Runner { resolved, cnns, arena, .. } = self;
        let (cnn, state) = (&resolved.index.cnns[c], &cnns[c]);
        let entry = &cnn.layers[l];
        let frame = state.fired[l] / entry.layer.firings;
        let mistake = |why| layer_error(resolved, c, l, LayerError::Mistake(why));
        for (o, output) in cnn.cnn.outputs.iter().enumerate().filter(|(o, _)| state.outputs[*o] == l) {
            for y in state.existing(cnn, l, frame, rows.clone()) {
                let made = match (&state.externals[l], state.places[l].writes.first()) {
                    (Some(rows), _) => {
                        let row = rows.len() / external_rows(entry) as usize;
                        rows.get((y % external_rows(entry)) as usize * row..).and_then(|rows| rows.get(..row))
                    }
                    (None, Some(&s)) => {
                        arena.all().get(row_bytes(&resolved.allocations[c][s], frame, entry, y))
                    }
                    (None, None) => None,
                };
                let made = made.ok_or_else(|| mistake("an output is nowhere: a mistake in csdfc"))?;
                let row = match entry.tensor.format.element {
                    Element::F32 => OutputRow::F32(slice_of(made)),
                    Element::I64 => OutputRow::I64(slice_of(made)),
                    Element::U8 => OutputRow::U8(slice_of(made)),
                    Element::F16 => {
                        return Err(mistake(
                            "an output has elements that no caller holds: a mistake in csdfc",
                        ));
                    }
                };
                let y = y as usize;
                frame_rows.output(o, y, row).map_err(|why| row_error(cnn, &output.name, y, why))?;
            }
        }
        Ok(())
    }

    /// Reads the first tiles of a layer for its firing `p` of the frame, if each firing reads them again.
    fn load_again(&mut self, c: usize, l: usize, p: u64) -> Result<(), RunError> {
        let Runner { resolved, cnns, weight_stream: Some(weight_stream), arena, .. } = self else {
            return Ok(());
        };
        let Some(streamed) = &cnns[c].streamed[l] else { return Ok(()) };
        if p < resolved.index.cnns[c].layers[l].layer.times_read() {
            for tile in 0..streamed.blocks.len() {
                weight_stream
                    .load([c, l], streamed, tile, arena)
                    .map_err(|why| store_error(resolved, c, l, why))?;
            }
        }
        Ok(())
    }

    /// Starts the loads that may start at this moment of the partition of layer `l`, and waits for them.
    fn load(&mut self, c: usize, moment: Begin, l: usize) -> Result<(), RunError> {
        let Runner { resolved, cnns, weight_stream: Some(weight_stream), arena, .. } = self else {
            return Ok(());
        };
        let cnn = &resolved.index.cnns[c];
        for (layer, streamed) in cnns[c].streamed.iter().enumerate() {
            let Some(streamed) =
                streamed.as_ref().filter(|_| cnn.layers[layer].partition == cnn.layers[l].partition)
            else {
                continue;
            };
            let blocks = streamed.blocks.iter().enumerate().filter(|(_, block)| block.begin == moment);
            for (tile, _) in blocks {
                weight_stream
                    .load([c, layer], streamed, tile, arena)
                    .map_err(|why| store_error(resolved, c, layer, why))?;
            }
        }
        Ok(())
    }

    /// Notes what a layer has released, and makes it "not a number" if nobody needs it any more.
    fn release(&mut self, c: usize, l: usize, frame: u64, keep: impl Fn(&Held) -> Option<u32>) {
        let Resolved { index, rates, allocations, .. } = &self.resolved;
        for freed in self.cnns[c].release(&index.cnns[c], &rates[c], &allocations[c], l, frame, keep) {
            self.arena.poison(freed);
        }
    }

    /// Makes rows of a firing: one row if the output ring shares bytes with a ring that is read, and otherwise all. If
    /// the layer's weights come in tiles, it reads the tiles and makes their channels one after another.
    fn make(
        &mut self,
        c: usize,
        l: usize,
        rows: Range<u64>,
        frame_rows: &mut dyn FrameRows,
        external: &mut Option<Bytes>,
    ) -> Result<(), RunError> {
        let tiles = self.cnns[c].streamed[l].as_ref().map_or(1, |streamed| streamed.tiles.len());
        for tile in 0..tiles {
            self.make_tile(c, l, tile, rows.clone(), frame_rows, external)?;
            let Runner { resolved, cnns, weight_stream: Some(weight_stream), arena, .. } = self else {
                continue;
            };
            if let Some(streamed) = &cnns[c].streamed[l]
                && tile + streamed.blocks.len() < tiles
            {
                let next = tile + streamed.blocks.len();
                weight_stream
                    .load([c, l], streamed, next, arena)
                    .map_err(|why| store_error(resolved, c, l, why))?;
            }
        }
        Ok(())
    }

    /// Makes the output channels of one tile of weights, or all channels.
    fn make_tile(
        &mut self,
        c: usize,
        l: usize,
        tile: usize,
        rows: Range<u64>,
        frame_rows: &mut dyn FrameRows,
        external: &mut Option<Bytes>,
    ) -> Result<(), RunError> {
        let Runner { resolved, cnns, weights, arena, isa, workers, .. } = self;
        let (cnn, allocations, state) = (&resolved.index.cnns[c], &resolved.allocations[c], &cnns[c]);
        let entry = &cnn.layers[l];
        let frame = state.fired[l] / entry.layer.firings;
        let y = rows.start as usize..rows.end as usize;
        // The rows as the kernel counts them, without those that do not exist yet.
        let row_0 = state.kernel_row_0(cnn, l, l, frame);
        let existing = state.existing(cnn, l, frame, rows.clone());
        if existing.is_empty() {
            return Ok(());
        }
        let kernel_row = |row: u64| (row as i64 + row_0) as usize;
        let made = kernel_row(existing.start)..kernel_row(existing.end);
        let overlap = || {
            layer_error(resolved, c, l, LayerError::Mistake("it writes what it reads: a mistake in csdfc"))
        };
        let own = state.places[l].writes.first().copied();
        let room = state.places[l].workspace.clone();
        let first = |slot: usize, rows: u64| (slot as i64 - row_0).rem_euclid(rows as i64) as usize;
        if !entry.layer.operator.has_state() || made.start == 0 {
            arena.poison(room.clone());
        }
        let (place, slots) = match own {
            Some(s) if resolved.follows[c][l] => {
                (row_bytes(&allocations[s], frame, entry, rows.start), Slots::Only(made.clone()))
            }
            Some(s) => {
                let slot = first_slot(&allocations[s], frame, entry);
                (ring_bytes(&allocations[s], frame), Slots::Ring(first(slot, allocations[s].ring_rows)))
            }
            None => (room.start..room.start, Slots::Ring(first(0, external_rows(entry)))),
        };
        let ([written, workspace], rest) = arena.split([place, room]).ok_or_else(overlap)?;
        let data = match external {
            _ if own.is_some() => written,
            Some(values) => &mut **values,
            // The tensor is stored nowhere.
            None => return Ok(()),
        };
        if let Some(call) = &state.calls[l] {
            let streamed = state.streamed[l].as_ref();
            let call = streamed.and_then(|streamed| streamed.call(tile)).unwrap_or(call);
            // The place of the first channel that is made, in bytes, within the pixels that are written and those that
            // are added.
            let start = streamed.map_or(0, |streamed| streamed.tiles[tile].filters.start)
                * call.elements()[1].bytes() as usize;
            let source = |operand: usize| {
                let whole = state.source(resolved, c, l, operand, &y, rest)?;
                let first = if call.is_tiled_operand(operand) { start } else { 0 };
                Some(Source { data: whole.data.get(first..)?, ..whole })
            };
            let sources: Option<Vec<Source<'_>>> = (0..entry.inputs.len()).map(source).collect();
            let sources = sources.ok_or_else(overlap)?;
            let workspace = SpanMut::of_bytes(workspace).all();
            let mut context = Context { isa: *isa, workers: Some(workers), workspace };
            let weights = match streamed {
                Some(streamed) => {
                    let start = streamed.block(tile).range.start;
                    rest.get(start..start + streamed.tiles[tile].bytes).ok_or_else(overlap)?
                }
                None => weights.layer_bytes(&state.weights[l]),
            };
            let data = data.get_mut(start..).ok_or_else(overlap)?;
            let target = Target { data, slots };
            call.fire(&mut context, made, &sources, weights, target);
        } else if let Operator::Input(input) = &entry.layer.operator
            && let Slots::Ring(first) = slots
            && let Some(i) = state.inputs.iter().position(|&input| input == l)
        {
            let row_bytes = entry.tensor.row_bytes as usize;
            let ring_rows = own.map_or(entry.rows(), |s| allocations[s].ring_rows) as usize;
            for y in y {
                let to = &mut data[(first + y) % ring_rows * row_bytes..][..row_bytes];
                let asked = take_row(input, entry.tensor, to, |row| frame_rows.input(i, y, row));
                asked.map_err(|why| row_error(cnn, &entry.layer.name, y, why))?;
            }
        }
        Ok(())
    }
}

/// Asks for a row of an input and stores it as the network reads it.
fn take_row(
    input: &Input,
    tensor: &Tensor,
    to: &mut [u8],
    ask: impl FnOnce(InputRow<'_>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    match (input.element, &input.camera) {
        (InputElement::F32, _) => ask(InputRow::F32(SpanMut::of_bytes(to).all())),
        (InputElement::U8, None) => ask(InputRow::U8(to)),
        (InputElement::U8, Some(camera)) => {
            let mut bytes = vec![0; tensor.shape.row_elements()];
            ask(InputRow::U8(&mut bytes))?;
            let channels = tensor.shape.channels();
            match tensor.format.element {
                Element::U8 => value::convert(camera, channels, &bytes, to, |x| Requantize::BYTES.round(x)),
                _ => value::convert(camera, channels, &bytes, SpanMut::of_bytes(to).all(), |x| x),
            }
            Ok(())
        }
        (InputElement::I8, _) => {
            let mut integers = vec![0; tensor.shape.row_elements()];
            ask(InputRow::I8(&mut integers))?;
            // Signed integers are stored with 128 added.
            to.iter_mut().zip(integers).for_each(|(to, q)| *to = q.cast_unsigned() ^ 0x80);
            Ok(())
        }
    }
}

fn row_error(cnn: &CnnIndex<'_>, tensor: &str, y: usize, why: std::io::Error) -> RunError {
    RunError::Row { cnn: cnn.cnn.name.clone(), tensor: tensor.into(), y, why }
}

/// The elements of a row.
fn slice_of<T: Plain>(bytes: &[u8]) -> &[T] {
    let elements = bytes.len() / size_of::<T>();
    Span::of_bytes(bytes).slice(0, elements)
}
