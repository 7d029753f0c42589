//! Corruptions of the primitives and attributes of layers.

use csdfc_plan::format::{Element, Layout};
use csdfc_plan::plan::{Layer, Plan, Workspace};
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::Primitive;
use rand::RngExt;
use serde_json::Value;

use super::{Random, pick};

/// Any layer.
fn layer(plan: &Plan, random: &mut Random) -> (usize, usize) {
    let c = random.random_range(0..plan.cnns.len());
    (c, random.random_range(0..plan.cnns[c].layers.len()))
}

/// Invalid because the primitive does not exist. The sum of stored bytes agrees with it.
pub fn primitive_unknown(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let name = *pick(&["no such thing", "winograd", "im2col-CHW-CHW", "Generic", "generic ", ""], random)?;
    if random.random_range(0..2) == 0 {
        let (c, l) = layer(plan, random);
        plan.cnns[c].layers[l].primitive = name.into();
    } else {
        let all = plan.cnns.iter_mut().flat_map(|cnn| &mut cnn.layers);
        all.for_each(|layer| layer.primitive = name.into());
    }
    if random.random_range(0..2) == 0 {
        store(plan, random.random_range(0..9));
    }
    Some(())
}

/// Invalid because each primitive computes some operators only, in its own layouts and its own workspace, and keeps its own
/// bytes of parameters: the layer says which these are, and another primitive that it might be taken for.
pub fn primitive_of_another_layer(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let (c, l) = layer(plan, random);
    let cnn = plan.cnns[c].name.clone();
    let own = |name: &str| plan.tensors.iter().find(|tensor| tensor.cnn == cnn && tensor.name == name);
    let stated = &plan.cnns[c].layers[l];
    let seen: Option<Vec<Shape>> = stated
        .inputs
        .iter()
        .map(|input| input.view.clone().or_else(|| Some(own(&input.tensor)?.shape.clone())))
        .collect();
    let (seen, output) = (seen?, stated.output_shape.clone());
    let seen: Vec<&Shape> = seen.iter().collect();
    let layer = &mut plan.cnns[c].layers[l];
    // One that does the same in the same memory is another primitive that the layer may have.
    let stored = |primitive: &Primitive| primitive.stored_bytes(&layer.operator, &seen, layer.parameters / 4);
    let keeps = Primitive::find(&layer.primitive).as_ref().map(stored);
    let may_have = |other: &Primitive| {
        other.computes(&layer.operator, &seen)
            && other.layouts() == [layer.layout_in, layer.layout_out]
            && other.workspace_bytes(&layer.operator, &seen, &output) == layer.workspace.bytes
            && Some(stored(other)) == keeps
    };
    let others: Vec<Primitive> = Primitive::all().filter(|other| !may_have(other)).collect();
    let other = pick(&others, random)?;
    layer.primitive = other.name().into();
    if random.random_range(0..2) == 0 {
        [layer.layout_in, layer.layout_out] = other.layouts();
    }
    Some(())
}

/// Invalid because a ring, or a buffer, lies at a multiple of its elements.
pub fn offset_between_elements(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let shift = random.random_range(1..4);
    let rings: Vec<usize> = (0..plan.tensors.len()).filter(|t| plan.tensors[*t].ring.is_some()).collect();
    match pick(&rings, random) {
        Some(&t) => plan.tensors[t].ring.as_mut()?.offset += shift,
        None => {
            let b = random.random_range(0..plan.buffers.len());
            plan.buffers[b].offset += shift;
        }
    }
    // The arena ends behind it.
    plan.memory.arena += 4;
    plan.memory.total += 4;
    Some(())
}

/// Invalid because the primitives say how many bytes they keep: the totals agree.
pub fn stored_bytes_off(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let stored = plan.memory.parameters_stored;
    let other = match random.random_range(0..4) {
        0 => 1,
        1 => plan.memory.parameters,
        2 => stored + 64 * random.random_range(1..100),
        _ => stored.saturating_sub(64 * random.random_range(1..100)),
    };
    store(plan, other);
    (other != stored).then_some(())
}

/// States other bytes of parameters, and the total that follows.
fn store(plan: &mut Plan, bytes: u64) {
    plan.memory.parameters_stored = bytes;
    plan.memory.total = bytes + plan.memory.arena;
}

/// Invalid because no kernel reads or writes these layouts: of one layer or tensor, or of all of them, in agreement.
pub fn layout_of_no_kernel(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let layout = *pick(&[Layout::Chw, Layout::Hcw], random)?;
    let (c, l) = layer(plan, random);
    let t = random.random_range(0..plan.tensors.len());
    match random.random_range(0..4) {
        0 => plan.cnns[c].layers[l].layout_in = layout,
        1 => plan.cnns[c].layers[l].layout_out = layout,
        2 => plan.tensors[t].format.layout = layout,
        _ => {
            for layer in plan.cnns.iter_mut().flat_map(|cnn| &mut cnn.layers) {
                (layer.layout_in, layer.layout_out) = (layout, layout);
            }
            plan.tensors.iter_mut().for_each(|tensor| tensor.format.layout = layout);
        }
    }
    Some(())
}

/// Invalid because the primitives that make and read a tensor say what its elements are: other ones, all that follows
/// adapted.
pub fn element_of_no_kernel(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let t = random.random_range(0..plan.tensors.len());
    let tensor = &mut plan.tensors[t];
    let others = [Element::F32, Element::F16, Element::I64].into_iter();
    let others: Vec<Element> = others.filter(|element| *element != tensor.format.element).collect();
    tensor.format.element = *pick(&others, random)?;
    tensor.row_bytes = tensor.format.row_bytes(&tensor.shape)?;
    if let Some(ring) = &mut tensor.ring {
        ring.bytes = ring.ring_rows * tensor.row_bytes;
    }
    Some(())
}

/// Invalid because a layer that its windows are copied for has its own place for them, of the size that they need, in
/// the arena and apart from all that lives while it fires.
pub fn workspace_wrong(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let with_workspace = |layer: &&mut Layer| layer.workspace.bytes > 0;
    let mut all: Vec<&mut Layer> =
        plan.cnns.iter_mut().flat_map(|cnn| &mut cnn.layers).filter(with_workspace).collect();
    let at = random.random_range(0..all.len().max(1));
    let layer = all.get_mut(at)?;
    let room = layer.workspace;
    let tensors = plan.tensors.iter().filter(|tensor| {
        tensor.producer == layer.name || layer.inputs.iter().any(|input| input.tensor == tensor.name)
    });
    let rings: Vec<u64> = tensors.filter_map(|tensor| Some(tensor.ring?.offset)).collect();
    match random.random_range(0..6) {
        0 => layer.workspace.offset += random.random_range(1..4),
        1 => layer.workspace.offset = plan.memory.arena - room.bytes + 4,
        2 => layer.workspace.bytes -= 4,
        3 => layer.workspace.bytes += 4,
        4 => layer.workspace = Workspace::default(),
        _ => {
            layer.workspace.offset =
                *pick(&rings, random).filter(|offset| **offset + room.bytes <= plan.memory.arena)?
        }
    }
    Some(())
}

/// Not the model's: an attribute of a layer, or the shape in which it sees something, has another value. Many such plans
/// are safe.
pub fn attribute_of_another_model(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let (c, l) = layer(plan, random);
    let mut value = serde_json::to_value(&*plan).ok()?;
    let layer = value.pointer_mut(&format!("/cnns/{c}/layers/{l}"))?;
    if layer.get("op")? == "input" {
        return None;
    }
    let mut paths = Vec::new();
    leaves("/attributes", layer.get("attributes")?, &mut paths);
    let leaf = layer.pointer_mut(pick(&paths, random)?)?;
    *leaf = match &*leaf {
        Value::Bool(flag) => (!flag).into(),
        Value::Number(number) => match number.as_u64() {
            Some(whole) => (whole + random.random_range(1..3)).into(),
            None => (number.as_f64()? + 0.5).into(),
        },
        Value::String(text) => match text.as_str() {
            "max" => "relu".into(),
            "relu" => "sigmoid".into(),
            "add" => "mul".into(),
            "mean" => "max".into(),
            _ => return None,
        },
        _ => return None,
    };
    let edited = Plan::from_json(&value.to_string()).ok()?;
    let differs = edited != *plan;
    *plan = edited;
    differs.then_some(())
}

fn leaves(path: &str, value: &Value, paths: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| leaves(&format!("{path}/{key}"), value, paths))
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, value)| leaves(&format!("{path}/{i}"), value, paths));
        }
        _ => paths.push(path.to_owned()),
    }
}
