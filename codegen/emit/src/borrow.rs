//! What a kernel's call borrows of the arena: the rings that it reads, the one that it writes, its workspace, and the block
//! that its weights are in.

use csdfc_plan::check::CnnIndex;

use super::access::{Part, caller, first, ring};
use super::call::{Operand, Slots};
use super::in_place::Window;
use super::model::Model;
use super::source::Source;

/// From this number of rings on, they have no names of their own.
const MANY: usize = 3;

/// What a call reads.
pub(super) struct Reads {
    /// The operands, as the call names them.
    pub operands: Vec<Operand>,
    /// The rings among them.
    pub rings: Vec<String>,
    /// The names of these.
    pub names: Vec<String>,
}

impl Reads {
    /// What a part of a layer reads; of the tensors of `follows`, the rows of a window alone.
    pub fn new(model: &Model<'_>, layer: usize, part: &Part<'_>, follows: &[Window]) -> Self {
        let cnn: &CnnIndex<'_> = model.cnn();
        let entry = &cnn.layers[layer];
        let (mut operands, mut rings, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let many = entry.inputs.iter().filter(|&&tensor| model.read(layer, tensor).is_some()).count() >= MANY;
        for (operand, &tensor) in entry.inputs.iter().enumerate() {
            let name =
                if entry.inputs.len() == 1 { "input".to_owned() } else { format!("input_{}", operand + 1) };
            let is_tiled = part.call.is_tiled_operand(operand);
            let Some(allocation) = model.read(layer, tensor) else {
                let field = model.inputs.iter().find(|field| field.layer == tensor);
                let field = field.map(|field| field.name.as_str()).unwrap_or_default();
                let elements = cnn.layers[tensor].tensor.shape.elements() as u64;
                let data = format!("Span::new({}inputs.{field}())", caller(model));
                let data = part.channels(data, is_tiled, &elements);
                operands.push(Operand { data, slots: Slots::Ring("0".into()) });
                continue;
            };
            let data = if many { format!("inputs[{}]", rings.len()) } else { name.clone() };
            let ring = ring(model, layer, allocation);
            let (ring, slots) = match follows.iter().find(|window| window.tensor == tensor) {
                Some(window) => {
                    let rows = &window.name;
                    let counted =
                        if model.cnn().is_over_time(layer) { window.counted() } else { rows.clone() };
                    (format!("{ring}.part(&{rows})"), Slots::Only(counted))
                }
                None => (ring, Slots::Ring(first(model, layer, allocation))),
            };
            rings.push(ring);
            names.push(name);
            let elements = model.allocations()[allocation].ring_bytes() / part.call.elements()[0].bytes();
            operands.push(Operand { data: part.channels(data, is_tiled, &elements), slots });
        }
        Reads { operands, rings, names }
    }
}

/// What a call borrows besides the ring that it writes.
pub(super) struct Borrow {
    /// The rings that it reads, and their names.
    pub rings: Vec<String>,
    pub names: Vec<String>,
    /// Whether the rings are listed before, however few they are.
    pub is_listed: bool,
    /// The ring of its workspace.
    pub workspace: Option<String>,
    /// The block of its weights, and the tile that is in it.
    pub block: Option<(String, String)>,
}

impl Borrow {
    /// Writes the statement that borrows all, and the ring `written`.
    pub fn write(&self, source: &mut Source, written: Option<String>) {
        let Borrow { rings, names, .. } = self;
        let read = match rings.len() {
            0 => "_".into(),
            1..MANY => format!("[{}]", names.join(", ")),
            _ => "inputs".into(),
        };
        let is_listed = rings.len() >= MANY || self.is_listed;
        let list = if is_listed { "rings".into() } else { format!("[{}]", rings.join(", ")) };
        if is_listed {
            source.list("let rings = [", rings, ";");
        }
        let output = written.map(|ring| ("output", ring));
        let room = self.workspace.as_ref().map(|ring| ("mut workspace", ring.clone()));
        let none = || ("_", "Ring::none()".to_owned());
        let (method, others) = match (output, room, &self.block) {
            (output, room, Some((block, _))) => {
                let (output, room) = (output.unwrap_or_else(none), room.unwrap_or_else(none));
                ("slices_and_block", vec![output, room, ("block", block.clone())])
            }
            (None, None, None) if rings.is_empty() => return,
            (None, None, None) => ("read", Vec::new()),
            (Some(output), Some(room), None) => ("slices_and_workspace", vec![output, room]),
            (Some(one), None, None) | (None, Some(one), None) => ("slices", vec![one]),
        };
        let places: Vec<&str> =
            [read.as_str()].into_iter().chain(others.iter().map(|(name, _)| *name)).collect();
        let place = if others.is_empty() { read.clone() } else { format!("({})", places.join(", ")) };
        // Without a ring, the compiler cannot infer an element type.
        let method = if rings.is_empty() { format!("{method}::<f32, _, _>") } else { method.to_owned() };
        let arguments: Vec<String> =
            [list].into_iter().chain(others.iter().map(|(_, ring)| ring.clone())).collect();
        source.list(&format!("let {place} = self.memory.{method}("), &arguments, ";");
        if let Some((_, tile)) = &self.block {
            source.line(format!("let weights = self.loads.weights({tile}, block);"));
        }
    }
}
