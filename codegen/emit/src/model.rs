//! The data of a model that is emitted: names, calls, places.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use csdfc_plan::check::{Allocation, CnnIndex, LayerIndex, Resolved, RowOrder};
use csdfc_plan::operator::{Input, InputElement, Operator};
use csdfc_plan::plan::{Layer, State};
use csdfc_plan::shape::Shape;
use csdfc_runtime::LayerError;
use csdfc_runtime::bind::{self, Call};
use csdfc_runtime::bytes::Bytes;
use csdfc_runtime::run::{Parameters, batch_dims};
use csdfc_runtime::stream::Hops;
use csdfc_runtime::streamed::Streamed;
use csdfc_runtime::weights;

use super::call;
use super::error::{EmitError, names_of};
use super::features::Features;
use super::names::Names;
use super::pipeline::{self, Layers, Link, Stage};
use super::regions::{self, NamedRegion};
use super::streamed_layer::StreamedLayer;

/// A model as it is emitted.
pub(super) struct Model<'r> {
    pub resolved: &'r Resolved<'r>,
    /// Index of its CNN.
    pub c: usize,
    /// Name of its module.
    pub module: String,
    /// The name of each layer's method.
    pub methods: Vec<String>,
    /// The name of the constant of each allocation's ring.
    pub rings: Vec<String>,
    /// The call that computes each layer; `None` for network inputs, and for layers that nothing reads.
    pub calls: Vec<Option<Call>>,
    /// Each layer's parameters among the weights that stay in memory, in bytes.
    pub weights: Vec<Range<usize>>,
    /// Each layer's tiles in the store, if its weights are streamed.
    pub streamed: Vec<Option<StreamedLayer>>,
    /// Maximum number of loads that are under way at once.
    pub loads_at_once: usize,
    /// Network inputs.
    pub inputs: Vec<InputField<'r>>,
    /// Network outputs.
    pub outputs: Vec<OutputField<'r>>,
    /// The stages of a pipeline; none if partitions run one after another.
    pub stages: Vec<Stage>,
    /// The rings between them.
    pub links: Vec<Link>,
    /// The memory regions that share the arena; none if it is one block.
    pub regions: Vec<NamedRegion<'r>>,
    /// Whether it may run at the same time as other models.
    pub is_shared: bool,
    /// Whether its firings are noted if the crate has the feature `trace`.
    pub is_traceable: bool,
    /// How hops are counted, if it is a stream.
    pub hops: Hops,
}

/// The packed weights of all models.
#[derive(Debug, Default)]
pub(super) struct Packed {
    /// The weights that stay in memory.
    pub weights: Vec<u8>,
    /// Their bytes, even if they have only places and are not packed.
    pub len: usize,
    /// The weights that are read from the store, as tiles.
    pub store: Vec<u8>,
}

impl Packed {
    /// The place of the parameters of one more layer.
    fn place(&mut self, call: &Call) -> Range<usize> {
        let start = self.len;
        self.len += weights::stored_len(call);
        start..start + weights::packed_len(call)
    }
}

/// A network input.
pub(super) struct InputField<'r> {
    pub name: String,
    /// Its layer.
    pub layer: usize,
    pub input: &'r Input,
    /// Whether it is handed over row by row. Otherwise the caller holds the frame, and layers read it in place.
    pub by_rows: bool,
}

/// A network output.
pub(super) struct OutputField<'r> {
    pub name: String,
    /// Its name in the model.
    pub label: &'r str,
    /// The layer that makes it.
    pub layer: usize,
    /// The shape in which the model states it.
    pub seen: &'r Shape,
}

impl<'r> Model<'r> {
    /// The most loads from one store that are under way at once.
    fn most_loads(&self) -> usize {
        let blocks = |partitions: &[usize]| {
            let layers = self.cnn().layers.iter().zip(&self.streamed);
            let fire = layers.filter(|(entry, _)| partitions.contains(&entry.partition));
            fire.filter_map(|(_, layer)| layer.as_ref()).map(|layer| layer.streamed.blocks.len()).sum()
        };
        let of_group = self.cnn().groups.iter().map(|group| blocks(group));
        let of_stage = self.stages.iter().map(|stage| blocks(&[stage.partition]));
        let most = if self.stages.is_empty() { of_group.max() } else { of_stage.max() };
        most.unwrap_or(0)
    }

    /// The CNN.
    pub fn cnn(&self) -> &'r CnnIndex<'r> {
        &self.resolved.index.cnns[self.c]
    }

    /// Frames that a call takes, one after another.
    pub fn batch(&self) -> usize {
        self.cnn().cnn.batch as usize
    }

    /// The dimensions of a call's frames, each of which has these dimensions.
    pub fn call_dims(&self, frame: &[usize]) -> Vec<usize> {
        match self.batch() {
            1 => frame.to_vec(),
            batch => batch_dims(frame, batch),
        }
    }

    /// Whether a frame is a hop of a stream.
    pub fn is_stream(&self) -> bool {
        self.cnn().cnn.stream.is_some()
    }

    /// Whether the program takes files of images for one of its inputs.
    pub fn takes_images(&self) -> bool {
        self.inputs.iter().any(|field| field.takes_images(&self.cnn().layers[field.layer].tensor.shape))
    }

    /// Whether it takes turns in its arena with other models, while some keep rows there from frame to frame.
    pub fn takes_turns(&self) -> bool {
        let cnns = &self.resolved.index.cnns;
        cnns.len() > 1 && self.resolved.allocations.iter().flatten().any(Allocation::persists)
    }

    /// Whether it has states and, as it is made anew for each turn, goes on with those that are in the arena.
    pub fn resumes_states(&self) -> bool {
        self.takes_turns() && !self.states().is_empty()
    }

    /// Whether it keeps rows from frame to frame: those of a stream, or states.
    pub fn keeps_state(&self) -> bool {
        self.is_stream() || self.allocations().iter().any(Allocation::persists)
    }

    /// Of each state, the ring of its output, the ring of its input to which it is copied, and what all elements of the
    /// input are in the first frame.
    pub fn states(&self) -> Vec<([usize; 2], f32)> {
        let ring_of = |is: &dyn Fn(&LayerIndex<'_>) -> bool| {
            let layer = self.cnn().layers.iter().position(is)?;
            self.written(layer).first().copied()
        };
        let rings = |state: &State| {
            let from = ring_of(&|entry| entry.tensor.name == state.tensor)?;
            let to = ring_of(&|entry| entry.layer.name == state.input)?;
            Some(([from, to], state.initial))
        };
        self.cnn().cnn.states.iter().filter_map(rings).collect()
    }

    /// Workers that share a firing.
    pub fn threads(&self) -> usize {
        self.resolved.index.plan.threads
    }

    /// Where its rows lie.
    pub fn allocations(&self) -> &'r [Allocation] {
        &self.resolved.allocations[self.c]
    }

    /// Number of the allocations that a layer writes, the first by its kernel.
    pub fn written(&self, layer: usize) -> Vec<usize> {
        bind::written_by(self.allocations(), layer)
    }

    /// The allocation from which a layer reads a tensor; none for the caller's copy.
    pub fn read(&self, layer: usize, tensor: usize) -> Option<usize> {
        bind::read_from(self.allocations(), layer, tensor)
    }

    /// The workspace of a layer, if it has one.
    pub fn workspace(&self, layer: usize) -> Option<usize> {
        bind::workspace_of(self.allocations(), layer)
    }

    /// The number of frames after which all rings that are counted on from frame to frame are again at their first slot.
    pub fn period(&self) -> u64 {
        let period = |allocation: &Allocation| match allocation.kind {
            RowOrder::Restarts
            | RowOrder::Persists
            | RowOrder::State
            | RowOrder::Kept
            | RowOrder::Workspace
            | RowOrder::Recurrent
            | RowOrder::Block(_) => 1,
            RowOrder::Halves => 2,
            RowOrder::RunsOn => {
                let rows = self.cnn().layers[allocation.tensor].rows();
                allocation.ring_rows / gcd(allocation.ring_rows, rows)
            }
        };
        self.allocations().iter().map(period).fold(1, |all, one| all / gcd(all, one) * one)
    }

    /// Names a CNN's parts, binds its layers to kernels and packs their weights. Without parameters, weights only get
    /// their places, and no weights are streamed.
    ///
    /// # Errors
    /// When a layer cannot be computed or parameters cannot be read.
    pub fn bind(
        resolved: &'r Resolved<'r>,
        c: usize,
        module: String,
        parameters: Option<&Parameters<'_>>,
        packed: &mut Packed,
    ) -> Result<Self, EmitError> {
        let mut model = Model::named(resolved, c, module)?;
        for l in 0..model.methods.len() {
            // The caller's room is for the rows of one firing at a time.
            let room = model.cnn().layers[l].layer.rows_per_firing;
            let call = bind::bind_layer(model.cnn(), model.allocations(), l, room);
            model.calls.push(call.map_err(|why| EmitError::layer(model.cnn(), l, why))?);
        }
        let keepers = weights::keepers(model.cnn(), |l| model.calls[l].is_some());
        for (l, keeper) in keepers.into_iter().enumerate() {
            let fail = |why| EmitError::layer(&resolved.index.cnns[c], l, why);
            let (mut weights, mut layer) = (0..0, None);
            let streamed = |call| match parameters {
                Some(_) => Streamed::new(resolved, c, l, call),
                None => Ok(None),
            };
            let values = |parameter: usize| match parameters {
                Some(parameters) => parameters(c, l, parameter),
                None => Ok(Vec::new().into()),
            };
            if let Some(call) = &model.calls[l] {
                match (streamed(call).map_err(fail)?, model.weights.get(keeper)) {
                    (Some(streamed), Some(_)) => {
                        let checksums = model.streamed[keeper].as_ref().map(|kept| kept.checksums.clone());
                        layer = Some(StreamedLayer { streamed, checksums: checksums.unwrap_or_default() });
                    }
                    (Some(streamed), None) => {
                        let pack = StreamedLayer::pack(streamed, call, &values, &mut packed.store);
                        layer = Some(pack.map_err(fail)?);
                    }
                    (None, Some(kept)) => weights = kept.clone(),
                    (None, None) => {
                        if parameters.is_some() {
                            append(call, &values, &mut packed.weights).map_err(fail)?;
                        }
                        weights = packed.place(call);
                    }
                }
            }
            model.weights.push(weights);
            model.streamed.push(layer);
        }
        let words = ["memory", "weights", "isa", "workers", "loads", "frame", "run"];
        let fields = words.into_iter().chain(model.methods.iter().map(String::as_str));
        let fields = Names::except(&fields.collect::<Vec<&str>>());
        let known = Layers {
            methods: &model.methods,
            takes_inputs: &|l| model.takes_inputs(l),
            is_output: &|l| model.is_output(l),
        };
        (model.stages, model.links) = pipeline::find(resolved, c, &known, fields);
        model.loads_at_once = model.most_loads();
        for (l, layer) in model.streamed.iter().enumerate() {
            let outputs = model.outputs.iter().filter(|output| output.layer == l).count();
            let tiles = layer.as_ref().map_or(1, |layer| layer.streamed.tiles.len());
            if tiles > 1 && outputs > 1 && model.written(l).is_empty() {
                let [cnn, layer] = names_of(model.cnn(), l);
                return Err(EmitError::TiledOutputs { cnn, layer });
            }
        }
        Ok(model)
    }

    /// Whether there is nothing to do for a layer: an input that is read in place or that is a state, or a tensor that
    /// nothing reads.
    pub fn is_idle(&self, layer: usize) -> bool {
        let makes_nothing = self.written(layer).is_empty() && !self.is_output(layer);
        self.calls[layer].is_none() && (makes_nothing || self.cnn().layers[layer].is_state)
    }

    /// Whether a layer makes a network output.
    pub fn is_output(&self, layer: usize) -> bool {
        self.outputs.iter().any(|output| output.layer == layer)
    }

    /// Whether a layer reads what the caller hands over.
    pub fn takes_inputs(&self, l: usize) -> bool {
        let entry = &self.cnn().layers[l];
        match entry.layer.operator {
            Operator::Input(_) => !self.is_idle(l),
            _ => self.calls[l].is_some() && entry.inputs.iter().any(|&tensor| self.read(l, tensor).is_none()),
        }
    }

    /// Whether a layer reads or writes a ring between stages.
    pub fn is_linked(&self, l: usize) -> bool {
        self.links
            .iter()
            .any(|link| link.readers.contains(&l) || self.allocations()[link.allocation].tensor == l)
    }

    /// Whether some weights are read from a store.
    pub fn is_streamed(&self) -> bool {
        self.streamed.iter().any(Option::is_some)
    }

    /// Whether weights are read in a stage.
    pub fn is_streamed_stage(&self, stage: &Stage) -> bool {
        (0..self.methods.len())
            .any(|l| self.streamed[l].is_some() && self.cnn().layers[l].partition == stage.partition)
    }

    /// The stages whose weights are read. Each has a store of its own.
    pub fn streamed_stages(&self) -> Vec<&Stage> {
        self.stages.iter().filter(|stage| self.is_streamed_stage(stage)).collect()
    }

    /// The stores of the model, if some weights are read: their type, where each has the type `one`.
    pub fn stores_of(&self, one: &str) -> String {
        match self.streamed_stages().len() {
            0 | 1 => one.into(),
            several => format!("[{one}; {several}]"),
        }
    }

    /// Which convolutions it calls.
    pub fn features(&self) -> Features {
        Features::new(self.calls.iter().flatten())
    }

    /// The modules of the kernels that it calls.
    pub fn kernel_modules(&self) -> impl Iterator<Item = &'static str> {
        let checksum = self.is_streamed().then_some("checksum");
        let share = (self.threads() > 1).then_some("share");
        self.calls.iter().flatten().flat_map(call::modules).chain(checksum).chain(share)
    }

    fn named(resolved: &'r Resolved<'r>, c: usize, module: String) -> Result<Self, EmitError> {
        let cnn = &resolved.index.cnns[c];
        let allocations = &resolved.allocations[c];
        let mut names = Names::except(&[
            "memory", "weights", "isa", "workers", "loads", "frame", "hop", "inputs", "outputs", "run",
        ]);
        let methods: Vec<String> = cnn.layers.iter().map(|entry| names.give(&entry.layer.name)).collect();
        let mut names = Names::default();
        let mut blocks: BTreeMap<usize, String> = BTreeMap::new();
        let rings = allocations.iter().map(|allocation| {
            let tensor = &methods[allocation.tensor];
            let others =
                allocations.iter().filter(|other| other.tensor == allocation.tensor && other.is_ring());
            let of_edge = others.count() > 1;
            let name = match allocation.readers.first() {
                _ if allocation.begin().is_some() => {
                    let name = || names.give(&format!("{tensor}_blocks")).to_uppercase();
                    return blocks.entry(allocation.tensor).or_insert_with(name).clone();
                }
                _ if allocation.is_workspace() => format!("{tensor}_workspace"),
                Some(&reader) if of_edge => format!("{tensor}_to_{}", methods[reader]),
                _ => tensor.clone(),
            };
            names.give(&name).to_uppercase()
        });
        let rings = rings.collect();
        let find = |name: &String| cnn.layers.iter().position(|entry| entry.layer.name == *name);
        let mut names = Names::except(&["next_frame", "end_frame"]);
        let inputs = cnn.cnn.inputs.iter().filter_map(find).filter_map(|layer| {
            match &cnn.layers[layer].layer.operator {
                Operator::Input(input) => Some(InputField {
                    name: names.give(&cnn.layers[layer].layer.name),
                    layer,
                    input,
                    by_rows: allocations.iter().any(|allocation| allocation.tensor == layer),
                }),
                _ => None,
            }
        });
        let inputs: Vec<InputField<'_>> = inputs.collect();
        for field in &inputs {
            if field.input.element != InputElement::F32 && !field.by_rows {
                let [cnn, layer] = names_of(cnn, field.layer);
                return Err(EmitError::InputWithoutRing { cnn, layer });
            }
        }
        let outputs = cnn.cnn.outputs.iter().filter_map(|output| {
            let layer = cnn.layers.iter().position(|entry| entry.tensor.name == output.tensor)?;
            let seen = output.view.as_ref().unwrap_or(&cnn.layers[layer].tensor.shape);
            Some(OutputField { name: names.give(&output.name), label: &output.name, layer, seen })
        });
        let outputs = outputs.collect();
        let (calls, weights, streamed) = (Vec::new(), Vec::new(), Vec::new());
        let is_shared = together(resolved).iter().any(|cnns| cnns.contains(&c));
        let (stages, links) = (Vec::new(), Vec::new());
        let hops = Hops::new(cnn, &resolved.allocations[c]).map_err(|why| EmitError::layer(cnn, 0, why))?;
        Ok(Model {
            resolved,
            c,
            module,
            methods,
            rings,
            calls,
            weights,
            streamed,
            loads_at_once: 0,
            inputs,
            outputs,
            stages,
            links,
            regions: regions::of(resolved.index.plan),
            is_shared,
            is_traceable: false,
            hops,
        })
    }
}

/// CNNs that may run at the same time as a whole: all their partitions are in one element of J.
pub(super) fn together(resolved: &Resolved<'_>) -> BTreeSet<Vec<usize>> {
    let index = &resolved.index;
    let whole = |element: &Vec<String>, cnn: &CnnIndex<'_>| {
        cnn.partitions.iter().all(|&p| element.contains(&index.partitions[p].partition.name))
    };
    let elements = index.plan.parallel.iter().map(|element| {
        (0..index.cnns.len()).filter(|&c| whole(element, &index.cnns[c])).collect::<Vec<usize>>()
    });
    elements.filter(|cnns| cnns.len() > 1).collect()
}

/// A line that says what a layer computes, and how often.
pub(super) fn summary(cnn: &CnnIndex<'_>, layer: usize) -> String {
    let entry = &cnn.layers[layer];
    let Layer { name, operator, rows_per_firing, firings, parameters, .. } = entry.layer;
    let from: Vec<String> = cnn.seen_all(layer).iter().map(|shape| shape.to_string()).collect();
    let arrow = if from.is_empty() { String::new() } else { format!("{} → ", from.join(", ")) };
    let mut text = format!("`{name}`: {} {arrow}{}", operator.kind().replace('_', " "), entry.tensor.shape);
    if *firings > 1 {
        let rows = if *rows_per_firing == 1 { "1 row".into() } else { format!("{rows_per_firing} rows") };
        text += &format!("; {firings} firings of {rows}");
    }
    if *parameters > 0 {
        text += &format!("; {parameters} bytes of parameters");
    }
    text + "."
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Appends the packed parameters of a layer to the bytes of the layers before it. At most one layer's parameters are in
/// memory twice.
fn append(call: &Call, values: &weights::Values<'_>, bytes: &mut Vec<u8>) -> Result<(), LayerError> {
    let len = weights::stored_len(call);
    let mut packed = Bytes::zeros(len).ok_or(LayerError::Memory { bytes: len })?;
    weights::pack(call, values, &mut packed)?;
    bytes.reserve_exact(packed.len());
    bytes.extend_from_slice(&packed);
    Ok(())
}
