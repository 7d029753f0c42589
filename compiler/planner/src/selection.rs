//! The selection problem of a network on a device, as the bare table of costs that `csdfc-select` solves.
//!
//! - Layers. A convolution has an option for each primitive whose time for the whole layer was measured. If there is
//!   none, it has its first primitive, with the modelled time. Any other layer has an option for each primitive that
//!   computes it, with the measured time or, without one, the modelled time. So a layer that is only computed in HWC
//!   has only HWC, and every selection can be executed. (In the PBQP paper, section 5.2, such layers take all layouts.)
//!   A layer that sees an operand in other dimensions than the tensor has keeps its first primitive, which reads HWC.
//! - Memory of an option: inputs, output, stored weights and workspace (TASO paper, Eq. 9 and 15).
//! - Ends. An input is a layer in HWC that costs nothing. An output of the network is such a layer, too: `output NAME`.
//! - Edges. Each pair of a tensor and a layer that reads it has all conversions for which there are primitives, on the
//!   processor of the layer that writes. If the time of a conversion is not measured, it is the bytes read and written,
//!   divided by the bytes per second of a core.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::open::open;
//! use csdfc_planner::selection::cost_table;
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let table = cost_table(&application, &application.cnns[0], &device)?;
//!
//! // On a device that was not measured, a convolution has an option, with a modelled time.
//! let conv = table.instance.layers.iter().find(|layer| layer.name == "C1").ok_or("no such layer")?;
//! assert_eq!(conv.options.len(), 1);
//! assert!(table.modelled.layers.contains(&conv.name));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

use csdfc_input::app::resolve::{Application, Cnn};
use csdfc_input::device::{DeviceError, DeviceProfile};
use csdfc_network::pass;
use csdfc_network::{Layer, LayerId, Network, Operand};
use csdfc_plan::format::Layout;
use csdfc_plan::operator::Operator;
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::Primitive;
use csdfc_select::instance::{self, Conversion, Edge, LayerKind, PrimitiveOption};
use csdfc_select::problem::Selection;
use csdfc_select::{Answer, Instance, Method, Problem, Quantity, Query, answer};
use serde::Serialize;

use crate::cost::{ProcessorShare, measured};
use crate::profile::alternatives;

/// Bytes of a KiB, in which instances state memories.
const KIB: f64 = 1024.0;
/// Nanoseconds of a microsecond, in which instances state times.
const MICROSECOND: f64 = 1000.0;

/// A network's table of costs.
#[derive(Debug, Clone, PartialEq)]
pub struct CostTable {
    /// The costs.
    pub instance: Instance,
    /// Which costs are not measured.
    pub modelled: Modelled,
}

/// What was not measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Modelled {
    /// Layers of which some time is modelled.
    pub layers: Vec<String>,
    /// Edges on which some conversion is modelled: the layer that writes, and the one that reads.
    pub edges: Vec<[String; 2]>,
}

impl Modelled {
    /// Whether everything was measured.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty() && self.edges.is_empty()
    }
}

/// The table of costs of a CNN of an application, on a device.
///
/// # Errors
/// When the device lacks the processor of a partition.
pub fn cost_table(
    application: &Application,
    cnn: &Cnn,
    device: &DeviceProfile,
) -> Result<CostTable, DeviceError> {
    let network = &cnn.network;
    let processor_share =
        |name: &str| Ok(ProcessorShare::alone(device.processor(name)?, application.threads));
    let mut costs =
        Costs { network, max_error: application.max_primitive_error, processor_shares: Vec::new() };
    costs.processor_shares = vec![processor_share(&cnn.partitions[0].processor)?; network.layers.len()];
    for partition in &cnn.partitions {
        let processor_share = processor_share(&partition.processor)?;
        partition.layers.iter().for_each(|id| costs.processor_shares[id.0] = processor_share);
    }
    let mut modelled = Modelled::default();
    let mut layers = Vec::new();
    for id in network.ids() {
        let Layer { name, operator, .. } = network.layer(id);
        let (options, is_modelled) = costs.options(id);
        let kind = if matches!(operator, Operator::Conv(_)) { LayerKind::Conv } else { LayerKind::Pass };
        modelled.layers.extend(is_modelled.then(|| name.clone()));
        layers.push(instance::Layer { name: name.clone(), kind, options });
    }
    let mut ends = Vec::new();
    for id in network.ids() {
        let read = tensors(network.layer(id));
        ends.extend(read.into_iter().map(|operand| (operand.layer, id.0)));
    }
    for output in &network.outputs {
        let mut name = format!("output {}", output.name);
        while layers.iter().any(|layer| layer.name == name) {
            name.push('\'');
        }
        ends.push((output.operand.layer, layers.len()));
        layers.push(instance::Layer { name, kind: LayerKind::Pass, options: vec![free("output")] });
    }
    let mut edges = Vec::new();
    for (from, to) in ends {
        let written = layers[from.0].options.iter().map(|option| option.output);
        let read = layers[to].options.iter().map(|option| option.input);
        let met: Vec<instance::Layout> = written.chain(read).collect();
        let mut conversions = Vec::new();
        if met.iter().any(|layout| *layout != met[0]) {
            let is_modelled;
            (conversions, is_modelled) = costs.conversions(from);
            let ends = || [from.0, to].map(|layer| layers[layer].name.clone());
            modelled.edges.extend(is_modelled.then(ends));
        }
        edges.push(Edge { from: from.0, to, conversions });
    }
    let layouts = Layout::ALL.iter().map(Layout::to_string).collect();
    let instance = Instance { layers, edges, memory_budget: None, time_budget: None, layouts };
    Ok(CostTable { instance, modelled })
}

/// A CNN with a selection of its table of costs.
#[derive(Debug, Clone)]
pub struct Selected {
    /// The CNN, with conversions where layouts meet.
    pub cnn: Cnn,
    /// Bytes that it stores of its parameters.
    pub stored: u64,
    /// Whether the selection changed the CNN.
    pub is_other: bool,
}

impl CostTable {
    /// The CNN of this table, with the primitives of the least time if a stored byte costs `price` nanoseconds. `None`
    /// if some edge has no conversion.
    pub fn optimum(&self, cnn: &Cnn, price: f64) -> Option<Selected> {
        let network = &cnn.network;
        let mut instance = self.instance.clone();
        for id in network.ids() {
            for option in &mut instance.layers[id.0].options {
                // An input has no primitive that the table of primitives names.
                let bytes =
                    Primitive::find(&option.primitive).map_or(0, |primitive| stored(network, id, primitive));
                option.time += price * bytes as f64 / MICROSECOND;
            }
        }
        let (minimise, method) = (Quantity::Time, Method::Exact);
        let query = Query { minimise, time: None, memory: None, workspace: None, method };
        // The table is ours and consistent, and no integer program is asked for.
        let problem = Problem::new(&instance, false).ok()?;
        let Answer::Met(chosen) = answer(&problem, &query).ok()? else { return None };
        Some(self.selected(cnn, &problem, &chosen.selection))
    }

    /// The CNN of this table, with the primitives of a selection. `problem` is that of the table, at any price.
    pub fn selected(&self, cnn: &Cnn, problem: &Problem<'_>, selection: &Selection) -> Selected {
        let network = &cnn.network;
        let mut selected = Selected { cnn: cnn.clone(), stored: 0, is_other: false };
        for id in network.ids().filter(|id| !network.layer(*id).is_input()) {
            let taken = problem.taken(selection, id.0).option;
            let own = network.layer(id).primitive();
            let primitive =
                Primitive::find(&self.instance.layers[id.0].options[taken].primitive).unwrap_or(own);
            selected.stored += stored(network, id, primitive);
            if primitive != own {
                selected.cnn.network.layers[id.0].primitive = Some(primitive);
                selected.is_other = true;
            }
        }
        selected.cnn = legalised(selected.cnn);
        selected
    }
}

/// Bytes that a layer stores of its parameters if this primitive computes it.
fn stored(network: &Network, id: LayerId, primitive: Primitive) -> u64 {
    let layer = network.layer(id);
    let shapes: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
    primitive.stored_bytes(&layer.operator, &shapes, layer.parameter_elements())
}

/// The CNN with conversions where its primitives read other layouts than their operands have. A conversion belongs to
/// the partition, and to the step of a given schedule, of the layer that it was made for. This is the next layer that
/// is no conversion.
pub fn legalised(cnn: Cnn) -> Cnn {
    // The partition of each layer by name, and the step of its schedule, if it has one.
    let mut place_of: BTreeMap<String, (usize, Option<usize>)> = BTreeMap::new();
    for (place, partition) in cnn.partitions.iter().enumerate() {
        for id in &partition.layers {
            let steps = partition.schedule.iter().flatten();
            let step = steps.into_iter().position(|step| step.contains(id));
            place_of.insert(cnn.network.layer(*id).name.clone(), (place, step));
        }
    }
    let network = pass::legalise(cnn.network);
    let mut partitions = cnn.partitions;
    for partition in &mut partitions {
        partition.layers.clear();
        partition.schedule.iter_mut().flatten().for_each(Vec::clear);
    }
    let mut place = (partitions.len() - 1, None);
    for id in (0..network.layers.len()).rev().map(LayerId) {
        if let Some(of) = place_of.get(&network.layer(id).name) {
            place = *of;
        }
        let (partition, step) = place;
        let partition = &mut partitions[partition];
        partition.layers.insert(0, id);
        if let Some(schedule) = &mut partition.schedule {
            let last = schedule.len() - 1;
            schedule[step.unwrap_or(last)].insert(0, id);
        }
    }
    Cnn { network, partitions, ..cnn }
}

/// What the costs follow from.
struct Costs<'a> {
    network: &'a Network,
    max_error: f64,
    /// By layer.
    processor_shares: Vec<ProcessorShare<'a>>,
}

impl Costs<'_> {
    /// The options of a layer, and whether some of their times are modelled.
    fn options(&self, id: LayerId) -> (Vec<PrimitiveOption>, bool) {
        let layer = self.network.layer(id);
        if layer.is_input() {
            return (vec![free("input")], false);
        }
        let first = layer.primitive();
        let suits = |primitive: &Primitive| *primitive == first || primitive.error() <= self.max_error;
        let modelled =
            || self.processor_shares[id.0].layer(self.network, id, layer.rows() as u64, false).wall_ns;
        let mut options = Vec::new();
        let mut is_modelled = false;
        for primitive in alternatives(self.network, layer, None).filter(suits) {
            let by = Layer { primitive: Some(primitive), ..layer.clone() };
            match whole(&self.processor_shares[id.0], &by) {
                Some(ns) => options.push(self.option(&by, primitive, ns)),
                None if matches!(layer.operator, Operator::Conv(_)) => {}
                None => {
                    is_modelled = true;
                    options.push(self.option(&by, primitive, modelled()));
                }
            }
        }
        if options.is_empty() {
            is_modelled = true;
            let by = Layer { primitive: Some(first), ..layer.clone() };
            options.push(self.option(&by, first, modelled()));
        }
        (options, is_modelled)
    }

    /// The option of a layer that this primitive computes in this time.
    fn option(&self, layer: &Layer, primitive: Primitive, ns: f64) -> PrimitiveOption {
        let shapes: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
        let read: u64 =
            tensors(layer).iter().map(|operand| self.network.layer(operand.layer).tensor_bytes()).sum();
        let stored = primitive.stored_bytes(&layer.operator, &shapes, layer.parameter_elements());
        let bytes = read + layer.tensor_bytes() + stored + layer.workspace_bytes();
        let [input, output] = primitive.layouts().map(place);
        let (time, memory) = (ns / MICROSECOND, bytes as f64 / KIB);
        PrimitiveOption { primitive: primitive.name().into(), input, output, time, memory }
    }

    /// The conversions of a tensor, and whether some of their times are modelled.
    fn conversions(&self, tensor: LayerId) -> (Vec<Conversion>, bool) {
        let (layer, processor_share) = (self.network.layer(tensor), &self.processor_shares[tensor.0]);
        let mut conversions = Vec::new();
        let mut is_modelled = false;
        let element = layer.format().element;
        let moves = |primitive: &Primitive| {
            primitive.elements() == [element; 2] && primitive.computes(&Operator::Convert, &[])
        };
        for primitive in Primitive::all().filter(moves) {
            let convert = Layer {
                operator: Operator::Convert,
                inputs: vec![Operand { layer: tensor, shape: layer.shape.clone() }],
                parameters: Vec::new(),
                primitive: Some(primitive),
                ..layer.clone()
            };
            let ns = whole(processor_share, &convert).unwrap_or_else(|| {
                is_modelled = true;
                2.0 * layer.tensor_bytes() as f64 / processor_share.processor.core.bytes_per_second * 1e9
            });
            let [input, output] = primitive.layouts().map(place);
            conversions.push(Conversion { input, output, time: ns / MICROSECOND });
        }
        (conversions, is_modelled)
    }
}

/// Nanoseconds of a layer in one firing, if they were measured.
fn whole(processor_share: &ProcessorShare<'_>, layer: &Layer) -> Option<f64> {
    let sample = measured::samples(processor_share.processor, layer, processor_share.workers).last()?;
    (sample.rows >= layer.rows() as u64).then_some(sample.ns)
}

/// The operands of a layer, each tensor once.
fn tensors(layer: &Layer) -> Vec<&Operand> {
    let mut tensors: Vec<&Operand> = Vec::new();
    for operand in &layer.inputs {
        if tensors.iter().all(|known| known.layer != operand.layer) {
            tensors.push(operand);
        }
    }
    tensors
}

/// An option that costs nothing, in HWC.
fn free(name: &str) -> PrimitiveOption {
    let hwc = place(Layout::Hwc);
    PrimitiveOption { primitive: name.into(), input: hwc, output: hwc, time: 0.0, memory: 0.0 }
}

/// A layout as an instance counts it.
fn place(layout: Layout) -> instance::Layout {
    instance::Layout(layout as u8)
}
