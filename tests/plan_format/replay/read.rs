//! Sections 2, 3, 7 and 8: reads a plan, and checks what must hold of each layer and ring alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::families;
use super::model::{
    Block, Cnn, Kind, Layer, Operand, Partition, Plan, Ring, Streamed, Tiles, floats, rows, tiles,
};
use super::parameters;
use super::rows::{Held, Shape, rates};
use super::schedule::schedule;
use super::spans::spans;
use super::state;
use super::stream;
use super::{Refusal, list, names, number, same, text};

impl<'a> Plan<'a> {
    pub fn read(value: &'a Value) -> Result<Plan<'a>, Refusal> {
        same("format", text(value, "format")?, "csdfc-plan/3")?;
        let stated = list(value, "partitions")?;
        let mut places = BTreeMap::new();
        for (i, partition) in stated.iter().enumerate() {
            if places.insert(text(partition, "name")?, i).is_some() {
                return Err("two partitions of one name".into());
            }
        }
        let mut elements = Vec::new();
        for element in list(value, "parallel")? {
            let members = element.as_array().ok_or("an element of `parallel` that is no list")?;
            let place = |name: &Value| name.as_str().and_then(|name| places.get(name).copied());
            let members = members.iter().map(|name| place(name).ok_or("an unknown partition"));
            let members = members.collect::<Result<Vec<usize>, _>>()?;
            if members.is_empty() || members.iter().collect::<BTreeSet<_>>().len() < members.len() {
                return Err("an element of `parallel` that is empty, or names a partition twice".into());
            }
            elements.push(members);
        }
        if !(0..stated.len()).all(|p| elements.iter().any(|element| element.contains(&p))) {
            return Err("a partition that nothing runs".into());
        }
        let mut together = vec![vec![false; stated.len()]; stated.len()];
        for (p, q) in
            elements.iter().flat_map(|e| e.iter().flat_map(move |p| e.iter().map(move |q| (*p, *q))))
        {
            together[p][q] = p != q;
        }
        let is_edges = match text(value, "storage_model")? {
            "edges" => true,
            "tensors" => false,
            other => return Err(format!("no storage model `{other}`")),
        };
        let mut plan = Plan { value, is_edges, cnns: Vec::new(), partitions: Vec::new(), elements, together };
        let cnns = list(value, "cnns")?;
        for partition in stated {
            let of = text(partition, "cnn")?;
            let cnn = cnns.iter().position(|cnn| cnn["name"] == of).ok_or("an unknown CNN")?;
            plan.partitions.push(Partition { cnn, schedule: Vec::new() });
        }
        for (c, cnn) in cnns.iter().enumerate() {
            let own: Vec<usize> = (0..stated.len()).filter(|&p| plan.partitions[p].cnn == c).collect();
            let groups = groups(&own, &mut plan.together);
            let layers = layers(value, cnn, &places)?;
            for &p in &own {
                plan.partitions[p].schedule = schedule(&stated[p], p, &layers)?;
            }
            let number_of = |tensor: &str| tensor_of(cnn, tensor);
            let outputs = list(cnn, "outputs")?.iter().map(|output| number_of(text(output, "tensor")?));
            let outputs = outputs.collect::<Result<_, _>>()?;
            state::check(value, cnn, &state::read(cnn)?, &layers)?;
            let inputs = layers.iter().filter(|layer| layer.op == "input" && !layer.is_state);
            let inputs = inputs.map(|layer| layer.name.as_str());
            same("inputs", names(cnn, "inputs")?, inputs.collect())?;
            for layer in layers.iter().filter(|layer| layer.op == "input") {
                check_delivery(layer)?;
            }
            let name = text(cnn, "name")?.to_owned();
            let mut new = Cnn { name, layers, rings: Vec::new(), groups, outputs };
            new.rings = plan.rings(&new, &own)?;
            plan.cnns.push(new);
        }
        Ok(plan)
    }

    /// Section 7.
    fn rings(&self, cnn: &Cnn, own: &[usize]) -> Result<Vec<Ring>, Refusal> {
        let line = self.line(own);
        let first = |l: usize| line.iter().position(|&other| other == l);
        let last = |l: usize| line.iter().rposition(|&other| other == l);
        let layers = &cnn.layers;
        let is_cut = |l: usize, reader: usize| self.together[layers[l].partition][layers[reader].partition];
        let ring = |l: usize, readers: Vec<usize>, bases: Vec<u64>, rows: u64, kind: Kind| {
            let users = || readers.iter().copied().chain([l]);
            let life = [first(l), users().filter_map(last).max()];
            let [Some(begin), Some(end)] = life else { return Err("a layer that never fires".to_owned()) };
            let partitions: BTreeSet<usize> = users().map(|user| layers[user].partition).collect();
            let meanwhile = line[begin..=end].iter().map(|&l| layers[l].partition);
            let stored_in = partitions.iter().copied().chain(meanwhile).collect();
            let life = match kind {
                Kind::Persists | Kind::State | Kind::Recurrent => [0, line.len() - 1],
                Kind::Kept => [begin, line.len() - 1],
                _ => [begin, end],
            };
            let name = format!("{}/{}", cnn.name, self.tensor_name(cnn, l)?);
            let row_bytes = layers[l].row_bytes;
            Ok(Ring { name, tensor: l, bases, rows, row_bytes, kind, life, stored_in, partitions, readers })
        };
        let mut rings = Vec::new();
        for (l, layer) in layers.iter().enumerate() {
            let [offset, bytes] = layer.workspace;
            if bytes > 0 {
                let kind = match layer.op == "recurrent" && layer.in_time {
                    true => Kind::Recurrent,
                    false => Kind::Workspace,
                };
                let room = ring(l, Vec::new(), vec![offset], 1, kind)?;
                let name = format!("workspace of {}/{}", cnn.name, layer.name);
                rings.push(Ring { name, row_bytes: bytes, ..room });
            }
            for (b, block) in layer.streamed.iter().flat_map(|streamed| streamed.blocks.iter().enumerate()) {
                let begun = self.begun(cnn, l, block)?;
                let window: usize = own
                    .iter()
                    .take_while(|&&p| p != layer.partition)
                    .map(|&p| self.partitions[p].schedule.len())
                    .sum();
                let room = ring(l, Vec::new(), vec![block.offset], 1, Kind::Block(begun))?;
                let name = format!("block {b} of {}/{}", cnn.name, layer.name);
                let life = [window + begun, room.life[1]];
                if block.offset % 4 != 0 || life[0] > room.life[0] {
                    return Err(format!("{name} cannot be, or is loaded too late"));
                }
                rings.push(Ring { name, row_bytes: block.bytes, life, ..room });
            }
        }
        for (l, layer) in layers.iter().enumerate() {
            let height = layer.rows();
            let kind = |rows: u64| if rows < height { Kind::Wraps } else { Kind::Whole };
            if self.is_edges {
                for &reader in &layer.readers {
                    let held = self.edge(cnn, l, reader)?;
                    let cut = is_cut(l, reader);
                    let halves: Vec<Option<u64>> = held.iter().map(|edge| edge.half).collect();
                    same("halves", halves, if cut { vec![Some(1), Some(2)] } else { vec![None] })?;
                    if cut && (held.iter().any(|edge| edge.rows != height) || held[0].base == held[1].base) {
                        return Err("a double buffer that is not two buffers of a frame each".into());
                    }
                    let bases = held.iter().map(|edge| edge.base).collect();
                    // An edge has all its bytes to itself, even if it is of all rows.
                    let kind = if cut { Kind::Halves } else { Kind::Wraps };
                    rings.push(ring(l, vec![reader], bases, held[0].rows, kind)?);
                }
                continue;
            }
            let tensor = self.tensor(cnn, l)?;
            let cut = layer.readers.iter().any(|&reader| is_cut(l, reader));
            let is_read = !layer.readers.is_empty();
            if tensor.get("ring_rows").is_none() {
                let is_read_there = layer.op == "input"
                    && layer.history == 0
                    && layer.r == height
                    && layer.attributes["element"] != "u8";
                if !layer.external
                    || cut
                    || layer.op == "input" && layer.r < height
                    || is_read && !is_read_there
                {
                    return Err(format!("{} has no ring", layer.name));
                }
                continue;
            }
            if layer.external && !(cnn.outputs.contains(&l) && (is_read || layer.is_kept)) {
                return Err(format!("only the caller needs what {} makes, but it has a ring", layer.name));
            }
            let (rows, offset) = (number(tensor, "ring_rows")?, number(tensor, "offset")?);
            same("bytes of a ring", number(tensor, "bytes")?, rows * layer.row_bytes)?;
            if rows == 0 || offset % element_bytes(tensor)? != 0 {
                return Err(format!("{} has a ring that cannot be", layer.name));
            }
            let kind = match (cut, layer.history) {
                (true, _) => Kind::Cut,
                _ if layer.is_state => Kind::State,
                _ if layer.is_kept => Kind::Kept,
                (false, 0) => kind(rows),
                (false, _) => Kind::Persists,
            };
            rings.push(ring(l, layer.readers.clone(), vec![offset], rows, kind)?);
        }
        Ok(rings)
    }

    /// The firing of its partition from whose beginning on a block may be written.
    fn begun(&self, cnn: &Cnn, l: usize, block: &Block) -> Result<usize, Refusal> {
        let Some((layer, firing)) = &block.after else { return Ok(0) };
        let schedule = &self.partitions[cnn.layers[l].partition].schedule;
        let of_layer = schedule.iter().enumerate().filter(|(_, other)| cnn.layers[**other].name == *layer);
        let place = of_layer.map(|(at, _)| at + 1).nth(*firing as usize);
        place.ok_or_else(|| format!("{layer} does not fire {firing} times before {}", cnn.layers[l].name))
    }

    fn tensor_name(&self, cnn: &Cnn, l: usize) -> Result<&'a str, Refusal> {
        text(self.tensor(cnn, l)?, "name")
    }

    fn tensor(&self, cnn: &Cnn, l: usize) -> Result<&'a Value, Refusal> {
        let tensors = list(self.value, "tensors")?.iter();
        let mut of =
            tensors.filter(|t| t["cnn"] == cnn.name.as_str() && t["producer"] == cnn.layers[l].name.as_str());
        of.next().ok_or_else(|| format!("{} writes no tensor", cnn.layers[l].name))
    }

    /// Where the buffers hold an edge, by half.
    fn edge(&self, cnn: &Cnn, l: usize, reader: usize) -> Result<Vec<Held1>, Refusal> {
        let tensor = self.tensor_name(cnn, l)?;
        let mut found = Vec::new();
        for buffer in list(self.value, "buffers")? {
            for edge in list(buffer, "holds")? {
                if text(edge, "cnn")? == cnn.name
                    && text(edge, "tensor")? == tensor
                    && text(edge, "consumer")? == cnn.layers[reader].name
                {
                    let rows = number(edge, "ring_rows")?;
                    same("bytes of an edge", number(edge, "bytes")?, rows * cnn.layers[l].row_bytes)?;
                    let base = number(buffer, "offset")?;
                    found.push(Held1 { half: edge["half"].as_u64(), base, rows });
                }
            }
        }
        found.sort_by_key(|edge| edge.half);
        Ok(found)
    }
}

/// An edge in a buffer.
struct Held1 {
    half: Option<u64>,
    base: u64,
    rows: u64,
}

/// Section 5, `input`: bytes come from a camera, and only they do.
fn check_delivery(layer: &Layer) -> Result<(), Refusal> {
    let (element, camera) = (text(&layer.attributes, "element")?, &layer.attributes["camera"]);
    let is_right = match (element, camera.is_null()) {
        ("f32", is_absent) => is_absent,
        ("u8", false) => {
            let channels = layer.shape.channels();
            let per_channel = ["mean", "scale"].map(|field| camera[field].as_array().map(Vec::as_slice));
            let fits =
                per_channel.iter().all(|numbers| numbers.map(<[Value]>::len) == Some(channels as usize));
            let is_scaled =
                per_channel[1].unwrap_or_default().iter().all(|scale| scale.as_f64() != Some(0.0));
            layer.shape.is_image() && fits && is_scaled && (camera["order"] != "BGR" || channels == 3)
        }
        _ => false,
    };
    if is_right { Ok(()) } else { Err(format!("{} cannot be handed over so", layer.name)) }
}

/// Partitions of a CNN that run at the same time, over others too.
fn groups(own: &[usize], together: &mut [Vec<bool>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &p in own {
        let (mut joined, rest): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| group.iter().any(|&q| together[p][q]));
        let mut group: Vec<usize> = joined.drain(..).flatten().chain([p]).collect();
        group.sort_unstable();
        groups = rest;
        groups.push(group);
    }
    groups.sort();
    for group in &groups {
        for (&p, &q) in group.iter().flat_map(|p| group.iter().map(move |q| (p, q))) {
            together[p][q] = p != q;
        }
    }
    groups
}

fn tensor_of(cnn: &Value, name: &str) -> Result<usize, Refusal> {
    let place = list(cnn, "layers")?.iter().position(|layer| layer["output"] == name);
    place.ok_or_else(|| format!("nothing writes `{name}`"))
}

fn element_bytes(tensor: &Value) -> Result<u64, Refusal> {
    match text(tensor, "element")? {
        "f32" => Ok(4),
        "f16" => Ok(2),
        "u8" => Ok(1),
        "i64" => Ok(8),
        element => Err(format!("no element `{element}`")),
    }
}

/// Weights that are read from the store.
fn streamed(stated: &Value) -> Result<Streamed, Refusal> {
    let block = |block: &Value| {
        let after = match block.get("after") {
            Some(after) => Some((text(after, "layer")?.to_owned(), number(after, "firing")?)),
            None => None,
        };
        Ok::<_, Refusal>(Block { offset: number(block, "offset")?, bytes: number(block, "bytes")?, after })
    };
    Ok(Streamed {
        at: number(stated, "at")?,
        filters: stated.get("filters").map(|_| number(stated, "filters")).transpose()?,
        tiles: rates(text(stated, "tiles")?)?,
        blocks: list(stated, "blocks")?.iter().map(block).collect::<Result<_, _>>()?,
    })
}

fn layers(plan: &Value, cnn: &Value, partitions: &BTreeMap<&str, usize>) -> Result<Vec<Layer>, Refusal> {
    let mut layers: Vec<Layer> = Vec::new();
    let mut elements: BTreeMap<String, String> = BTreeMap::new();
    let mut quantizations: BTreeMap<String, Value> = BTreeMap::new();
    let tensors = list(plan, "tensors")?;
    let (is_stream, states) = (stream::is_stream(plan, cnn)?, state::read(cnn)?);
    let batch = if cnn.get("batch").is_some() { number(cnn, "batch")? } else { 1 };
    if !(1..=65536).contains(&batch) || batch > 1 && (is_stream || !states.is_empty()) {
        return Err(format!("a batch of {batch}"));
    }
    let mut histories = Vec::new();
    for (l, stated) in list(cnn, "layers")?.iter().enumerate() {
        let name = text(stated, "name")?.to_owned();
        let mut of = tensors.iter().filter(|t| t["cnn"] == cnn["name"] && t["name"] == stated["output"]);
        let tensor = of.next().ok_or_else(|| format!("no tensor of {name}"))?;
        same("producer", text(tensor, "producer")?, name.as_str())?;
        let shape = Shape::read(&stated["output_shape"])?;
        same("shape of a tensor", Shape::read(&tensor["shape"])?, shape.clone())?;
        let (r, firings) = (number(stated, "rows_per_firing")?, number(stated, "firings")?);
        let layout = text(tensor, "layout")?.to_owned();
        if layout != "HWC" && (!shape.is_image() || tensor["external"] == true) {
            return Err(format!("{name} cannot lie as {layout}"));
        }
        if r == 0 || r > rows(&shape, &layout) {
            return Err(format!("{name} makes {r} rows a firing"));
        }
        same("firings", firings, rows(&shape, &layout).div_ceil(r))?;
        let row_bytes = shape.elements() / rows(&shape, &layout) * element_bytes(tensor)?;
        same("bytes of a row", number(tensor, "row_bytes")?, row_bytes)?;
        let mut operands = Vec::new();
        for input in list(stated, "inputs")? {
            let of = tensor_of(cnn, text(input, "tensor")?)?;
            if of >= l {
                return Err(format!("{name} reads what is not yet there"));
            }
            let seen = match input.get("view") {
                Some(view) => Shape::read(view)?,
                None => layers[of].shape.clone(),
            };
            same("elements of a view", seen.elements(), layers[of].shape.elements())?;
            let [acquire, release] = ["acquire", "release"].map(|field| rates(text(input, field)?));
            operands.push(Operand { tensor: of, seen, acquire: acquire?, release: release? });
        }
        let partition = *partitions.get(text(stated, "partition")?).ok_or("an unknown partition")?;
        let room = stated.get("workspace").ok_or("no workspace")?;
        let workspace = [number(room, "offset")?, number(room, "bytes")?];
        let primitive = text(stated, "primitive")?;
        let needed = match primitive {
            name if name.starts_with("winograd") => {
                let Tiles { high, m, r, v } = tiles(name)?;
                let rows = stated["attributes"]["kernel"].get(0).and_then(Value::as_u64);
                let k = if high == 1 { rows.ok_or("a kernel without rows")? } else { 1 };
                let seen: &Operand = operands.first().ok_or("a convolution of nothing")?;
                let side_by_side = shape.dims[3].div_ceil(m);
                let s = 32_u64.div_ceil(side_by_side).min(shape.dims[2].div_ceil(high));
                let filters = number(&stated["attributes"], "filters")?;
                let rows = (s + k - 1) * seen.seen.channels() + s * filters.min(64);
                4 * (v * side_by_side * rows + v / (m + r - 1) * (8 * m + r - 1) * 16)
            }
            "im2row-strip-hwc-hwc" => {
                let seen: &Operand = operands.first().ok_or("a convolution of nothing")?;
                let kernel = list(&stated["attributes"], "kernel")?.iter().filter_map(Value::as_u64);
                4 * shape.dims[3] * kernel.product::<u64>() * seen.seen.channels()
            }
            "own-kernel-hwc-hwc" if text(stated, "op")? == "non_max_suppression" => {
                4 * number(&stated["attributes"], "most")?
            }
            "own-kernel-hwc-hwc" if text(stated, "op")? == "recurrent" => {
                let (a, axis) = (&stated["attributes"], shape.row_axis().ok_or("steps that are no rows")?);
                let [gates, kept] = parameters::cell(a)?;
                4 * shape.dims[axis + 1] * number(a, "size")? * (gates + kept)
            }
            _ => match operands.first() {
                Some(image) => {
                    let floats = families::workspace(primitive, &stated["attributes"], &image.seen, &shape)?;
                    4 * floats.unwrap_or(0)
                }
                None => 0,
            },
        };
        same("bytes of a workspace", workspace[1], needed * number(plan, "threads")?)?;
        if workspace[0] % 4 != 0 || needed == 0 && workspace[0] != 0 {
            return Err(format!("{name} has a workspace that cannot be"));
        }
        let op = text(stated, "op")?;
        let [reads, makes] = floats(primitive);
        let (a, finds) = (&stated["attributes"], ["arg_max", "non_max_suppression"].contains(&op));
        let is_index = (finds || a["indices"] == true) && a["floats"] != true;
        let made = if is_index { "i64" } else { makes };
        let is_held = tensor["external"] == true;
        if text(tensor, "element")? != made || ["f16", "u8"].contains(&made) && is_held {
            return Err(format!("{name} makes {made}"));
        }
        let quantization = &tensor["quantization"];
        let scale = quantization["scale"].as_f64().filter(|scale| *scale > 0.0);
        if (made == "u8") != scale.is_some() || quantization.is_null() != scale.is_none() {
            return Err(format!("{name} makes {made}, but `quantization` is {quantization}"));
        }
        let moves = ["concat", "slice", "pad", "resize", "transpose", "depth_to_space", "space_to_depth"];
        let is_max = op == "pool" && stated["attributes"]["kind"] == "max";
        let mode = &stated["attributes"]["mode"];
        let is_weighted = mode.get("filter").is_some() || stated["attributes"]["coordinates"].is_object();
        if op == "resize" && is_weighted && makes == "u8" {
            return Err(format!("{name} makes weighted means of integers"));
        }
        let before = &stated["attributes"]["pre"];
        let is_rounded = before["quantization"]["scale"].as_f64().is_some_and(|scale| scale > 0.0);
        if !before.is_null() && is_rounded != (reads == "u8") {
            return Err(format!("{name} reads {reads}, but has a `pre` that is {before}"));
        }
        let moves_integers = reads == "u8" && makes == "u8" && (moves.contains(&op) || is_max);
        let mut parts = None;
        for operand in list(stated, "inputs")? {
            let read = text(operand, "tensor")?;
            let part = quantizations.get(read);
            if op == "conv" && parts.replace(part).is_some_and(|other| other != part) {
                return Err(format!("{name} reads integers of `{read}`, which stand for other numbers"));
            }
            if elements.get(read).is_none_or(|element| element != reads) {
                return Err(format!("{name} reads {reads}, which `{read}` has not"));
            }
            if moves_integers && quantizations.get(read) != Some(quantization) {
                return Err(format!("{name} moves integers of `{read}`, which stand for other numbers"));
            }
        }
        elements.insert(text(tensor, "name")?.to_owned(), made.to_owned());
        quantizations.insert(text(tensor, "name")?.to_owned(), quantization.clone());
        let [delay, history] = stream::stated(tensor, is_stream)?;
        let mut layer = Layer {
            op: op.to_owned(),
            primitive: primitive.to_owned(),
            attributes: stated.get("attributes").cloned().unwrap_or_default(),
            operands,
            shape,
            r,
            firings,
            partition,
            parameters: number(stated, "parameters")?,
            parameters_of: stated["parameters_of"].as_str().map(str::to_owned),
            quantization: quantization.clone(),
            row_bytes,
            workspace,
            streamed: stated.get("streamed").map(streamed).transpose()?,
            layout,
            external: tensor["external"] == true,
            in_time: false,
            is_state: states.iter().any(|state| state.input == name),
            is_kept: states.iter().any(|state| stated["output"] == state.tensor),
            delay,
            history,
            held: Vec::new(),
            readers: Vec::new(),
            name,
        };
        let in_time = if is_stream { stream::reads(&layer, &layers)? } else { None };
        layer.in_time = in_time.is_some() || is_stream && op == "input";
        histories.push(0);
        for operand in 0..layer.operands.len() {
            let of = layer.operands[operand].tensor;
            let tensor = &layers[of];
            let is_planes = layer.layout == "CHW" || tensor.layout == "CHW";
            let spans = match &in_time {
                Some(reads) => {
                    histories[of] = histories[of].max(reads[operand].top);
                    Some((0..layer.rows()).map(|row| reads[operand].span(row)).collect())
                }
                None if is_planes => None,
                None => spans(&layer, &tensor.shape, operand)?,
            };
            // Of the rows of hops before, those that this operand is made from count. Others are held along with them.
            let history = in_time.as_ref().map_or(0, |reads| reads[operand].history());
            let held = Held::new(of, [tensor.rows(), history], spans.as_deref(), r, firings)
                .after(tensor.history.saturating_sub(history));
            same("acquire", &layer.operands[operand].acquire, &held.acquire())?;
            same("release", &layer.operands[operand].release, &held.release())?;
            match layer.held.iter_mut().find(|other| other.tensor == of) {
                Some(other) => other.joined(&held),
                None => layer.held.push(held),
            }
        }
        if layer.streamed.as_ref().is_some_and(|streamed| streamed.filters.is_some()) {
            layer.held.iter_mut().for_each(|held| held.keep_1 = None);
        }
        for held in &layer.held {
            layers[held.tensor].readers.push(l);
        }
        layers.push(layer);
    }
    for (layer, history) in layers.iter().zip(histories) {
        same("history", layer.history as i64, history)?;
        let tensor = tensors.iter().find(|t| t["cnn"] == cnn["name"] && t["producer"] == layer.name.as_str());
        let readers: BTreeSet<&str> =
            layer.readers.iter().map(|&reader| layers[reader].name.as_str()).collect();
        same(
            "consumers",
            names(tensor.unwrap_or(&Value::Null), "consumers")?.into_iter().collect(),
            readers,
        )?;
    }
    Ok(layers)
}
