//! Sections 7, 10 and 11: figures that follow from others.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::arena::check_apart;
use super::bound::{bound, is_moment};
use super::families;
use super::model::{Kind, Layer, Plan, Ring, Tiles, floats, tiles};
use super::rows::Shape;
use super::shared;
use super::{Refusal, list, names, number, same};

pub fn check(plan: &Plan<'_>) -> Result<(), Refusal> {
    let memory = &plan.value["memory"];
    let stated = |field: &str| number(memory, field);
    let layers = || plan.cnns.iter().flat_map(|cnn| &cnn.layers);
    let rings = || plan.cnns.iter().flat_map(|cnn| &cnn.rings);
    check_buffers(plan)?;
    check_external(plan)?;

    for layer in layers() {
        same(&format!("parameters of {}", layer.name), layer.parameters, parameter_bytes(plan, layer)?)?;
    }
    shared::check(plan)?;
    let keep = || layers().filter(|layer| layer.parameters_of.is_none());
    same("parameters", stated("parameters")?, keep().map(|layer| layer.parameters).sum())?;
    let kept = keep().map(|layer| stored(plan, layer)).sum::<Result<u64, _>>()?;
    same("parameters_stored", stated("parameters_stored")?, kept)?;
    let resident = kept - check_paged(plan)?;
    if resident != kept || memory.get("parameters_resident").is_some() {
        same("parameters_resident", stated("parameters_resident")?, resident)?;
    }
    let is_room = |ring: &Ring| !ring.is_ring();
    let end = |ring: &Ring| ring.bases[0] + ring.bytes();
    let buffers = match plan.is_edges {
        true => {
            list(plan.value, "buffers")?.iter().map(|buffer| number(buffer, "bytes")).sum::<Result<_, _>>()?
        }
        false => rings().filter(|ring| !is_room(ring)).map(end).max().unwrap_or(0),
    };
    same("buffers", stated("buffers")?, buffers)?;
    let mut arena = rings().filter(|ring| is_room(ring)).map(end).fold(buffers, u64::max);
    if plan.is_edges {
        for buffer in list(plan.value, "buffers")? {
            arena = arena.max(number(buffer, "offset")? + number(buffer, "bytes")?);
        }
    }
    same("arena", stated("arena")?, arena)?;
    same("workspace", stated("workspace")?, bound(plan, &|ring| ring.kind == Kind::Workspace))?;
    same("total", stated("total")?, resident + arena)?;
    let naive = plan.cnns.iter().flat_map(|cnn| {
        cnn.rings.iter().filter(|ring| ring.is_ring()).map(|ring| {
            let frame = cnn.layers[ring.tensor].rows() * ring.row_bytes;
            if ring.is_cut() { 2 * frame } else { frame }
        })
    });
    same("naive", stated("naive")?, naive.sum())?;

    check_apart(plan)?;
    let least = bound(plan, &|_| true);
    same("bound", stated("bound")?, least)?;
    let certificate = &plan.value["certificate"];
    check_moment(plan, &certificate["bound"], least)?;
    let proven = memory["proven"].as_bool().ok_or("no `proven`")?;
    same("proven", proven, arena == least)?;
    if let Some(claimed) = certificate["claimed"].as_u64()
        && !(least < claimed && claimed <= arena && !plan.is_edges)
    {
        return Err(format!("it claims {claimed} bytes"));
    }

    let constraints = &plan.value["constraints"];
    let rates: BTreeMap<&str, f64> = list(plan.value, "cnns")?
        .iter()
        .filter_map(|cnn| Some((cnn["name"].as_str()?, cnn["fps"].as_f64()?)))
        .collect();
    let fits = constraints["memory"].as_u64().is_none_or(|most| resident + arena <= most);
    let floors = constraints["fps"].as_object().ok_or("no constraints on rates")?;
    let is_fast = floors.iter().all(|(cnn, floor)| rates.get(cnn.as_str()).copied() >= floor.as_f64());
    let latency = |name: &String| {
        let cnns = plan.value["cnns"].as_array()?;
        cnns.iter().find(|cnn| cnn["name"] == name.as_str())?["latency_ns"].as_u64()
    };
    let mut limits = constraints["latency_ns"].as_object().into_iter().flatten();
    let is_prompt = limits.all(|(cnn, most)| latency(cnn).is_some_and(|ns| Some(ns) <= most.as_u64()));
    check_loads(plan)?;
    same("met", constraints["met"].as_bool().ok_or("no `met`")?, fits && is_fast && is_prompt)
}

/// Checks that the certificate states a moment of the most bytes, if anything is stored.
fn check_moment(plan: &Plan<'_>, stated: &Value, least: u64) -> Result<(), Refusal> {
    same("whether a moment is stated", !stated.is_null(), least > 0)?;
    if stated.is_null() {
        return Ok(());
    }
    same("bytes of the moment", number(stated, "bytes")?, least)?;
    let (firing, tensors) = (names(stated, "firing")?, names(stated, "tensors")?);
    let are_named_once =
        [&firing, &tensors].iter().all(|names| names.iter().collect::<BTreeSet<_>>().len() == names.len());
    if !are_named_once || !is_moment(plan, &firing, &tensors, least) {
        return Err(format!("when {firing:?} fire, not exactly {tensors:?} are stored in {least} bytes"));
    }
    Ok(())
}

/// Checks that partitions which run at the same time on a processor need no more cores than it has.
fn check_loads(plan: &Plan<'_>) -> Result<(), Refusal> {
    let partitions = list(plan.value, "partitions")?;
    for element in &plan.elements {
        for (processor, cores) in plan.value["device"]["cores"].as_object().into_iter().flatten() {
            let own =
                element.iter().map(|&p| &partitions[p]).filter(|p| p["processor"] == processor.as_str());
            let load: f64 = own.filter_map(|partition| partition["load"].as_f64()).sum();
            if load > cores.as_f64().unwrap_or(0.0) * (1.0 + 1e-9) {
                return Err(format!("{load} cores of {processor}, which has {cores}"));
            }
        }
    }
    Ok(())
}

/// Checks that buffers are as large as their largest edges, and do not overlap.
fn check_buffers(plan: &Plan<'_>) -> Result<(), Refusal> {
    if !plan.is_edges {
        return Ok(());
    }
    let mut places = Vec::new();
    for buffer in list(plan.value, "buffers")? {
        let (offset, bytes) = (number(buffer, "offset")?, number(buffer, "bytes")?);
        let held = list(buffer, "holds")?.iter().map(|edge| number(edge, "bytes"));
        same("bytes of a buffer", Some(bytes), held.collect::<Result<Vec<_>, _>>()?.into_iter().max())?;
        places.push((offset, offset + bytes));
    }
    places.sort_unstable();
    let end = places.last().map_or(0, |place| place.1);
    if places.windows(2).any(|pair| pair[1].0 < pair[0].1) || end > number(&plan.value["memory"], "arena")? {
        return Err("buffers overlap, or lie beyond the arena".into());
    }
    Ok(())
}

fn check_external(plan: &Plan<'_>) -> Result<(), Refusal> {
    let external = &plan.value["memory"]["external"];
    let (mut inputs, mut outputs) = (0, 0);
    for cnn in &plan.cnns {
        let bytes = |l: usize| cnn.layers[l].rows() * cnn.layers[l].row_bytes;
        outputs += cnn.outputs.iter().map(|&l| bytes(l)).sum::<u64>();
        for (l, layer) in cnn.layers.iter().enumerate() {
            let is_output = cnn.outputs.contains(&l);
            if is_output && !layer.external || layer.external && !is_output && layer.op != "input" {
                return Err(format!("{} is not where its caller looks", layer.name));
            }
            let has_ring = cnn.rings.iter().any(|ring| ring.tensor == l);
            if layer.op == "input" && layer.external && !has_ring {
                inputs += bytes(l);
            }
        }
    }
    same("external inputs", number(external, "inputs")?, inputs)?;
    same("external outputs", number(external, "outputs")?, outputs)
}

/// Channels of the image that a layer reads; for a convolution, those of all parts together.
fn channels(layer: &Layer) -> u64 {
    let seen = |operand: usize| layer.operands[operand].seen.channels();
    match layer.op.as_str() {
        "conv" => (0..layer.operands.len()).filter(|&i| !layer.is_residual(i)).map(seen).sum(),
        _ if layer.operands.is_empty() => 1,
        _ => seen(0),
    }
}

fn product(dims: &serde_json::Value) -> Result<u64, Refusal> {
    let dims = dims.as_array().ok_or("no dimensions")?;
    dims.iter().map(|dim| dim.as_u64().ok_or_else(|| "no dimension".to_owned())).product()
}

/// The slopes of a `p_relu`.
pub fn slopes(layer: &Layer) -> Result<Option<&serde_json::Value>, Refusal> {
    let function = match layer.op.as_str() {
        "element_wise" => &layer.attributes,
        _ => &layer.attributes["activation"],
    };
    Ok((function["function"] == "p_relu").then_some(&function["slope"]))
}

/// Weights and the like of a layer, in elements.
fn parameters(_: &Plan<'_>, layer: &Layer) -> Result<u64, Refusal> {
    let a = &layer.attributes;
    let bias = |units: &str| Ok::<u64, Refusal>(if a["bias"] == true { number(a, units)? } else { 0 });
    let window = || product(&a["kernel"]);
    let own = match layer.op.as_str() {
        "conv" => {
            let pre = if a["pre"]["affine"] == true { 2 * channels(layer) } else { 0 };
            let filters = number(a, "filters")?;
            filters * (channels(layer) / number(a, "groups")?) * window()? + bias("filters")? + pre
        }
        "conv_transpose" => {
            let filters = number(a, "filters")?;
            channels(layer) * (filters / number(a, "groups")?) * window()? + bias("filters")?
        }
        "gemm" => number(a, "inner")? * number(a, "units")? + bias("units")?,
        "batch_norm" | "instance_norm" => 2 * number(a, "channels")?,
        "binary" if !a["constant"].is_null() => product(&a["constant"]["dims"])?,
        "where" => {
            let constants = ["condition", "x", "y"].into_iter().filter(|name| !a[*name].is_null());
            constants.map(|name| product(&a[name])).sum::<Result<u64, Refusal>>()?
        }
        _ => 0,
    };
    Ok(own + slopes(layer)?.map_or(Ok(0), product)?)
}

/// Whether a layer's weights are integers.
fn is_of_integers(layer: &Layer) -> bool {
    floats(&layer.primitive)[0] == "u8"
}

/// Output channels of a layer that has weights.
fn units(layer: &Layer) -> Option<u64> {
    let field = match layer.op.as_str() {
        "conv" => "filters",
        "gemm" => "units",
        _ => return None,
    };
    layer.attributes[field].as_u64()
}

/// Bytes of weights and the like of a layer.
fn parameter_bytes(plan: &Plan<'_>, layer: &Layer) -> Result<u64, Refusal> {
    let numbers = parameters(plan, layer)?;
    if layer.primitive.contains("-mixed-") {
        let units = units(layer).ok_or("mixed precision without weights")?;
        let weights = units * products(layer, &layer.attributes)?;
        return Ok(weights + 4 * units + 2 * (numbers - weights));
    }
    if let Some(each) = scaled(layer) {
        let units = units(layer).ok_or("scales without weights")?;
        let weights = units * products(layer, &layer.attributes)?;
        return Ok(each * weights + 4 * units + 4 * (numbers - weights));
    }
    if !is_of_integers(layer) {
        return Ok(width(layer) * numbers);
    }
    let has_integers = !layer.attributes["constant"]["quantisation"].is_null();
    Ok(match units(layer) {
        Some(units) => {
            let biases = if layer.attributes["bias"] == true { units } else { 0 };
            let floats = biases + before(layer);
            numbers - floats + 4 * floats + 4 * units + offset(layer)
        }
        None if has_integers => numbers,
        None => 4 * numbers,
    })
}

/// Bytes of a weight, if a scale for each output channel multiplies it.
fn scaled(layer: &Layer) -> Option<u64> {
    let is = |kind: &str| layer.primitive.contains(kind);
    if is("-w8-") { Some(1) } else { is("-w16-").then_some(2) }
}

/// Bytes of the offset of a layer's weights.
fn offset(layer: &Layer) -> u64 {
    if layer.primitive.contains("-uint8-") { 4 } else { 0 }
}

/// Numbers of scales and shifts of a convolution's `pre`.
fn before(layer: &Layer) -> u64 {
    if layer.attributes["pre"]["affine"] == true { 2 * channels(layer) } else { 0 }
}

/// Bytes that a layer of integers keeps.
fn stored_integers(plan: &Plan<'_>, layer: &Layer, a: &Value) -> Result<u64, Refusal> {
    let pairs = |count: u64| count.next_multiple_of(2);
    let sums = |groups: u64, filters: u64, products: u64| {
        groups * filters * (products + 8) + 4 * (filters.next_multiple_of(8) - filters)
    };
    let bytes = match layer.op.as_str() {
        "conv" => {
            let (groups, filters, window) =
                (number(a, "groups")?, number(a, "filters")?, product(&a["kernel"])?);
            let kept = match channels(layer) == groups && filters == groups {
                true => sums(1, filters, window),
                false => sums(groups, filters / groups, pairs(window * channels(layer) / groups)),
            };
            kept + 4 * before(layer)
        }
        "gemm" => sums(1, number(a, "units")?, pairs(number(a, "inner")?)),
        "element_wise" => 256,
        "convert" if layer.primitive.starts_with("convert-requantise") => 256,
        "binary" if !a["constant"].is_null() => match product(&a["constant"]["dims"])? {
            1 => 256,
            _ => parameters(plan, layer)?,
        },
        _ => 0,
    };
    Ok((bytes + offset(layer)).next_multiple_of(64))
}

/// Products of a sum of a layer that has weights.
fn products(layer: &Layer, a: &Value) -> Result<u64, Refusal> {
    match layer.op.as_str() {
        "conv" => Ok(product(&a["kernel"])? * channels(layer) / number(a, "groups")?),
        _ => number(a, "inner"),
    }
}

/// Bytes of a number that a layer keeps.
fn width(layer: &Layer) -> u64 {
    if floats(&layer.primitive)[0] == "f16" { 2 } else { 4 }
}

/// Section 7, paged weights: slices, blocks and their sums. Gives what paged layers keep.
fn check_paged(plan: &Plan<'_>) -> Result<u64, Refusal> {
    let (mut at, mut kept) = (0, 0);
    for (c, cnn) in plan.cnns.iter().enumerate() {
        let mut read = 0;
        for layer in &cnn.layers {
            let Some(paged) = &layer.paged else { continue };
            let mut slices = Vec::new();
            match paged.filters {
                None => slices.push(stored(plan, layer)?),
                Some(each) => {
                    let field = if layer.op == "gemm" { "units" } else { "filters" };
                    let all = number(&layer.attributes, field)?;
                    let is_conv =
                        layer.op == "conv" && layer.attributes["groups"] == 1 && channels(layer) > 1;
                    let of_panels = ["indirect-gemm", "gemm-panels"].iter().any(|family| {
                        [
                            "-hwc-hwc",
                            "-half-hwc-hwc",
                            "-mixed-hwc-hwc",
                            "-int8-hwc-hwc",
                            "-uint8-hwc-hwc",
                            "-w8-hwc-hwc",
                            "-w16-hwc-hwc",
                        ]
                        .iter()
                        .any(|end| layer.primitive == format!("{family}{end}"))
                    });
                    let is_gemm = layer.op == "gemm"
                        && (!is_of_integers(layer) || number(&layer.attributes, "inner")? > 1);
                    let fits = of_panels && (is_conv || is_gemm);
                    if !fits || slopes(layer)?.is_some() || each == 0 || each % 16 != 0 || each >= all {
                        return Err(format!("{} is not sliced so", layer.name));
                    }
                    for first in (0..all).step_by(each as usize) {
                        let mut attributes = layer.attributes.clone();
                        attributes[field] = each.min(all - first).into();
                        slices.push(of_attributes(plan, layer, &attributes)?);
                    }
                }
            }
            same("slices", &paged.slices, &slices)?;
            let bytes = slices.iter().sum::<u64>();
            if layer.parameters_of.is_none() {
                kept += stored(plan, layer)?;
                same("place in the store", paged.at, at)?;
                at += bytes;
            }
            read += bytes * if paged.filters.is_some() { layer.firings } else { 1 };
            let n = paged.blocks.len();
            if n == 0 || n > slices.len() || plan.is_edges || slices.contains(&0) {
                return Err(format!("{} has {n} blocks", layer.name));
            }
            for (b, block) in paged.blocks.iter().enumerate() {
                let largest = slices.iter().skip(b).step_by(n).max();
                same("bytes of a block", Some(&block.bytes), largest)?;
            }
        }
        same(
            "bytes_read",
            list(plan.value, "cnns")?[c]["bytes_read"].as_u64(),
            Some(read).filter(|n| *n > 0),
        )?;
    }
    same("bytes of the store", plan.value["store"]["bytes"].as_u64(), Some(at).filter(|bytes| *bytes > 0))?;
    Ok(kept)
}

/// What a layer keeps of them, in bytes.
fn stored(plan: &Plan<'_>, layer: &Layer) -> Result<u64, Refusal> {
    of_attributes(plan, layer, &layer.attributes)
}

/// The same if it had other attributes.
fn of_attributes(plan: &Plan<'_>, layer: &Layer, a: &Value) -> Result<u64, Refusal> {
    if let Some(bytes) = families::stored(layer)? {
        return Ok(bytes);
    }
    if is_of_integers(layer) {
        return stored_integers(plan, layer, a);
    }
    if layer.primitive.starts_with("winograd") {
        let Tiles { high, v, .. } = tiles(&layer.primitive)?;
        let rows = a["kernel"].get(0).and_then(Value::as_u64).ok_or("a kernel without rows")?;
        let k = if high == 1 { rows } else { 1 };
        return Ok((4 * number(a, "filters")? * (1 + v * k * channels(layer))).next_multiple_of(64));
    }
    let (groups, filters, products) = match layer.op.as_str() {
        "conv" | "conv_transpose" => {
            let (groups, filters, channels) = (number(a, "groups")?, number(a, "filters")?, channels(layer));
            let window = product(&a["kernel"])?;
            match layer.op == "conv" && groups == channels && groups == filters {
                true => (1, filters, window),
                false => (groups, filters / groups, window * channels / groups),
            }
        }
        "gemm" => (1, number(a, "units")?, number(a, "inner")?),
        _ => return Ok((width(layer) * parameters(plan, layer)?).next_multiple_of(64)),
    };
    let (mut in_panels, mut beside) = (0, 0);
    if let Some(slope) = slopes(layer)? {
        let dims = Shape::read(slope)?.dims;
        // Per channel: all in the dimension of the channels, two before the last, of a gemm's units the last.
        let from_end = if layer.op == "gemm" { 1 } else { 3 };
        let all = groups * filters;
        let of_channels = dims.len().checked_sub(from_end).map(|at| dims[at]);
        let count = dims.iter().product::<u64>();
        let suits = count == 1 || of_channels == Some(all) && count == all;
        (in_panels, beside) = if suits { (1, 0) } else { (0, count) };
    }
    if a["pre"]["affine"] == true {
        beside += 2 * channels(layer);
    }
    let zeros = filters.next_multiple_of(16) - filters;
    if layer.primitive.contains("-mixed-") {
        let panels = groups * filters * (products + 6 + 2 * in_panels) + zeros;
        return Ok((panels.next_multiple_of(2) + 2 * beside).next_multiple_of(64));
    }
    if let Some(each) = scaled(layer) {
        let weights = each * (groups * filters * products + zeros);
        let bytes = weights.next_multiple_of(4) + 8 * groups * filters + 4 * beside;
        return Ok(bytes.next_multiple_of(64));
    }
    let panels = groups * filters * (products + 1 + in_panels);
    Ok((width(layer) * (panels + zeros + beside)).next_multiple_of(64))
}
