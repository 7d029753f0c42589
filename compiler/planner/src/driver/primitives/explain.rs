//! Why a plan computes a layer with this primitive and not with another.

use csdfc_input::app::resolve::{Application, Cnn};
use csdfc_input::app::spec::Primitives;
use csdfc_input::device::DeviceProfile;
use csdfc_network::{Layer, LayerId};
use csdfc_plan::format::Layout;
use csdfc_plan::plan::{Plan, TimeBasis};
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::Primitive;
use csdfc_select::{Problem, instance};
use serde::Serialize;

use super::with_primitives;
use crate::cost::{ProcessorShare, measured};
use crate::driver::Context;
use crate::driver::candidate::Candidate;
use crate::error::Error;
use crate::objective::{Least, Objective};
use crate::profile::alternatives;
use crate::search::watch::Watch;
use crate::selection::{self, CostTable, cost_table};

/// The primitives that could compute a layer of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The CNN.
    pub cnn: String,
    /// The layer.
    pub layer: String,
    /// Rows that it makes per firing. (An image in CHW is one row.)
    pub rows_per_firing: u64,
    /// Bytes of the memory limit that the plan leaves free. `None` without a limit.
    pub bytes_left: Option<u64>,
    /// The primitive of the plan; then, the fastest first, all others that were measured, and the first primitive that
    /// computes the layer.
    pub alternatives: Vec<Alternative>,
    /// The primitives that were not measured.
    pub not_measured: Vec<String>,
}

/// A primitive that could compute a layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alternative {
    /// Its name.
    pub primitive: String,
    /// Layout that it reads, and layout that it writes.
    pub layouts: [Layout; 2],
    /// Nanoseconds of the layer in a frame at its rows per firing, on a processor that it has to itself.
    pub ns: f64,
    /// Where the time comes from.
    pub basis: TimeBasis,
    /// Nanoseconds that conversions take more than with the layouts of the plan. `None` if a layout cannot be
    /// converted.
    pub conversions_ns: Option<f64>,
    /// Bytes of workspace of all workers.
    pub workspace: u64,
    /// Bytes that it keeps of the layer's parameters.
    pub stored: u64,
    /// Why it was chosen, or why not.
    pub verdict: String,
}

/// Explains the primitive of a layer of a plan. `application` is the application that was planned, and `model_paths`
/// are the paths of models as the plan states them. `None` if there is no such layer.
///
/// # Errors
/// When the device lacks a processor, or an analysis refuses the graph.
pub fn explain(
    plan: &Plan,
    application: &Application,
    device: &DeviceProfile,
    cnn: &str,
    layer: &str,
) -> Result<Option<Explanation>, Error> {
    let Some(c) = application.cnns.iter().position(|known| known.name == cnn) else { return Ok(None) };
    let planned = as_planned(application, plan);
    let Some(id) = planned.cnns[c].network.find(layer) else { return Ok(None) };
    let network = &planned.cnns[c].network;
    let (of, stated) = (network.layer(id), &plan.cnns[c].layers[id.0]);
    let partition = planned.cnns[c].partitions.iter().find(|partition| partition.layers.contains(&id));
    let Some(partition) = partition.filter(|_| !of.is_input()) else { return Ok(None) };
    let processor_share = ProcessorShare::alone(device.processor(&partition.processor)?, application.threads);
    let conversions = Conversions::new(application, &planned, c, layer, device)?;
    let base = Candidate { application: planned.clone(), planned: plan.clone().into() };
    let own = of.primitive();
    let at = |primitive: Primitive| -> Option<Alternative> {
        let by = Layer { primitive: Some(primitive), ..of.clone() };
        let rows = if by.rows() == of.rows() { stated.rows_per_firing } else { by.rows() as u64 };
        let mut only = network.clone();
        only.layers[id.0] = by.clone();
        let samples = measured::samples(processor_share.processor, &by, processor_share.workers);
        let time = measured::time(samples, &processor_share, &only, id, rows);
        let is_first = primitive == own || primitive == first(of);
        let modelled = || processor_share.layer(&only, id, rows, false).wall_ns;
        let (ns, basis) = time.or_else(|| is_first.then(|| (modelled(), TimeBasis::Modelled)))?;
        let inputs: Vec<&Shape> = of.inputs.iter().map(|operand| &operand.shape).collect();
        Some(Alternative {
            primitive: primitive.name().into(),
            layouts: primitive.layouts(),
            ns,
            basis,
            conversions_ns: conversions.additional_time(own, primitive),
            workspace: by.workspace_bytes() * processor_share.workers,
            stored: primitive.stored_bytes(&of.operator, &inputs, of.parameter_elements()),
            verdict: String::new(),
        })
    };
    let mut found: Vec<(Primitive, Alternative)> = Vec::new();
    let mut not_measured = Vec::new();
    for primitive in alternatives(network, of, None) {
        match at(primitive) {
            Some(alternative) => found.push((primitive, alternative)),
            None => not_measured.push(primitive.name().to_owned()),
        }
    }
    found.sort_by(|(a, first), (b, other)| (*b == own).cmp(&(*a == own)).then(first.ns.total_cmp(&other.ns)));
    let bytes_left = Objective::new(application).limit.map(|limit| limit.saturating_sub(plan.memory.total));
    let Some((_, chosen)) = found.first().cloned() else { return Ok(None) };
    let fastest = found.iter().map(|(_, known)| known.ns).fold(f64::INFINITY, f64::min);
    for (primitive, alternative) in &mut found {
        let validate = Verdict { application, device, base: &base, cnn: c, id, chosen: &chosen, bytes_left };
        alternative.verdict = match *primitive == own {
            true if application.primitives != Primitives::Auto => "chosen, as asked for".into(),
            true if fastest < chosen.ns => "chosen".into(),
            true => "chosen: the fastest".into(),
            false => validate.sentence(*primitive, alternative)?,
        };
    }
    let alternatives = found.into_iter().map(|(_, alternative)| alternative).collect();
    let (cnn, layer, rows_per_firing) = (cnn.into(), layer.into(), stated.rows_per_firing);
    Ok(Some(Explanation { cnn, layer, rows_per_firing, bytes_left, alternatives, not_measured }))
}

/// The first primitive that computes a layer.
fn first(layer: &Layer) -> Primitive {
    Layer { primitive: None, ..layer.clone() }.primitive()
}

/// The application with the primitives of a plan, and with its conversions.
fn as_planned(application: &Application, plan: &Plan) -> Application {
    let mut planned = application.clone();
    for (cnn, stated) in planned.cnns.iter_mut().zip(&plan.cnns) {
        for layer in cnn.network.layers.iter_mut().filter(|layer| !layer.is_input()) {
            let name = stated.layers.iter().find(|stated| stated.name == layer.name);
            let primitive = name.and_then(|stated| Primitive::find(&stated.primitive));
            layer.primitive =
                primitive.filter(|primitive| *primitive != layer.primitive()).or(layer.primitive);
        }
        *cnn = selection::legalised(cnn.clone());
    }
    planned
}

/// What conversions around a layer cost.
struct Conversions {
    /// For each edge of the layer: the layout at its other end, whether the layer reads there, and the time by pair of
    /// layouts.
    ends: Vec<(Layout, bool, Vec<Option<f64>>)>,
}

impl Conversions {
    /// The conversions around a layer of a CNN, from the application without conversions and from the one with the
    /// conversions of a plan.
    fn new(
        application: &Application,
        planned: &Application,
        cnn: usize,
        layer: &str,
        device: &DeviceProfile,
    ) -> Result<Self, Error> {
        let source: &Cnn = &application.cnns[cnn];
        let mut ends = Vec::new();
        let CostTable { instance, .. } = cost_table(application, source, device)?;
        let (Some(id), Ok(problem)) = (source.network.find(layer), Problem::new(&instance, false)) else {
            return Ok(Conversions { ends });
        };
        let primitive = |at: usize| {
            let name = source.network.layers.get(at).map(|layer| &layer.name);
            let of = name.and_then(|name| planned.cnns[cnn].network.find(name));
            of.map(|of| planned.cnns[cnn].network.layer(of).primitive())
        };
        for (edge, paths) in instance.edges.iter().zip(&problem.paths) {
            let (other, reads) = match () {
                () if edge.to == id.0 => (edge.from, true),
                () if edge.from == id.0 => (edge.to, false),
                () => continue,
            };
            // An output of the network is read in HWC.
            let layouts = primitive(other).map_or([Layout::Hwc; 2], Primitive::layouts);
            let layout = layouts[usize::from(reads)];
            let place = |layout: Layout| instance::Layout(layout as u8);
            let time = |own: Layout| {
                let (from, to) = if reads { (layout, own) } else { (own, layout) };
                if from == to {
                    return Some(0.0);
                }
                paths.time(place(from), place(to)).map(|time| problem.times.value(time) * 1e3)
            };
            ends.push((layout, reads, Layout::ALL.map(time).to_vec()));
        }
        Ok(Conversions { ends })
    }

    /// Nanoseconds of all these conversions with a primitive.
    fn time_with(&self, primitive: Primitive) -> Option<f64> {
        let [read, written] = primitive.layouts();
        let place = |layout| Layout::ALL.iter().position(|known| *known == layout).unwrap_or(0);
        let each =
            self.ends.iter().map(|(_, reads, times)| times[place(if *reads { read } else { written })]);
        each.sum()
    }

    fn additional_time(&self, own: Primitive, other: Primitive) -> Option<f64> {
        if own.layouts() == other.layouts() {
            return Some(0.0);
        }
        Some(self.time_with(other)? - self.time_with(own)?)
    }
}

/// What is known when a primitive is compared with the chosen one.
struct Verdict<'a> {
    application: &'a Application,
    device: &'a DeviceProfile,
    base: &'a Candidate,
    cnn: usize,
    id: LayerId,
    chosen: &'a Alternative,
    bytes_left: Option<u64>,
}

impl Verdict<'_> {
    fn sentence(&self, primitive: Primitive, alternative: &Alternative) -> Result<String, Error> {
        let Verdict { application, chosen, .. } = *self;
        if application.primitives != Primitives::Auto {
            return Ok("not asked for".into());
        }
        if primitive.error() > application.max_primitive_error {
            return Ok(format!(
                "error above --max-primitive-error: {:e} > {:e}",
                primitive.error(),
                application.max_primitive_error
            ));
        }
        let bytes = |of: &Alternative| i128::from(of.stored) + i128::from(of.workspace);
        let more = bytes(alternative) - bytes(chosen);
        if alternative.ns >= chosen.ns {
            return Ok(match more {
                more if more < 0 => format!("slower, though it needs {} bytes less", -more),
                _ => "slower".into(),
            });
        }
        let Some(conversions) = alternative.conversions_ns else {
            return Ok("its layouts cannot be converted".into());
        };
        if alternative.ns + conversions >= chosen.ns {
            return Ok("conversions cost more than it saves".into());
        }
        if primitive.layouts().map(|layout| layout as u8) != chosen.layouts.map(|layout| layout as u8) {
            return Ok(match self.bytes_left {
                Some(left) if more > i128::from(left) => self.too_many(more, left),
                _ => "csdfc found no better plan with its layouts".into(),
            });
        }
        let changes = [(self.cnn, self.id, primitive)];
        let Some(with) = with_primitives(&self.base.application, &changes) else {
            return Ok("chosen".into());
        };
        let model_paths = &vec![String::new(); with.cnns.len()];
        let watch = &Watch::unwatched();
        let context = Context { device: self.device, model_paths, watch, validate: &|_| Ok(()) };
        let planned = context.plan_picked(self.base.choices(), &with)?;
        let objective = Objective::new(application);
        let left = self.bytes_left.unwrap_or(u64::MAX);
        let more = i128::from(planned.plan.memory.total) - i128::from(self.base.planned.plan.memory.total);
        Ok(match () {
            () if more > i128::from(left) => self.too_many(more, left),
            () if objective.least == Least::Memory && more > 0 => {
                format!("needs {more} bytes more, and the least memory is asked for")
            }
            () if !planned.is_better(&self.base.planned, &objective) => {
                "the layer is faster, but the frame is not".into()
            }
            () => "faster, and the search did not find it".into(),
        })
    }

    fn too_many(&self, more: i128, left: u64) -> String {
        format!("needs {more} bytes more, and the plan leaves {left}")
    }
}
