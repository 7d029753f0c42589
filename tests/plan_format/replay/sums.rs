//! Sections 7, 10 and 11: figures that follow from others.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::arena::check_apart;
use super::bound::{bound, is_moment};
use super::model::{Kind, Plan, Ring};
use super::parameters::{channels, is_of_integers, parameter_bytes, slopes, stored, stored_with};
use super::regions;
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
        same(&format!("parameters of {}", layer.name), layer.parameters, parameter_bytes(layer)?)?;
    }
    shared::check(plan)?;
    let keep = || layers().filter(|layer| layer.parameters_of.is_none());
    same("parameters", stated("parameters")?, keep().map(|layer| layer.parameters).sum())?;
    let kept = keep().map(stored).sum::<Result<u64, _>>()?;
    same("parameters_stored", stated("parameters_stored")?, kept)?;
    let resident = kept - check_streamed(plan)?;
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
    same(
        "workspace",
        stated("workspace")?,
        bound(plan, &|ring| matches!(ring.kind, Kind::Workspace | Kind::Recurrent)),
    )?;
    let (is_divided, in_regions) = regions::check(plan)?;
    let total = if is_divided { arena } else { resident + arena };
    same("total", stated("total")?, total)?;
    let naive = plan.cnns.iter().flat_map(|cnn| {
        cnn.rings.iter().filter(|ring| ring.is_ring()).map(|ring| {
            let layer = &cnn.layers[ring.tensor];
            let frame = (layer.rows() + layer.history) * ring.row_bytes;
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
    if is_divided && !constraints["memory"].is_null() {
        return Err("a limit on all memory, beside those of regions".into());
    }
    let in_flash = constraints["flash"].as_u64().is_none_or(|most| kept <= most);
    let in_memory = constraints["memory"].as_u64().is_none_or(|most| total <= most);
    let fits = in_memory && in_flash && in_regions;
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

/// Section 7, streamed weights: tiles, blocks and their sums. Gives what streamed layers keep.
fn check_streamed(plan: &Plan<'_>) -> Result<u64, Refusal> {
    let (mut at, mut kept) = (0, 0);
    for (c, cnn) in plan.cnns.iter().enumerate() {
        let mut read = 0;
        for layer in &cnn.layers {
            let Some(streamed) = &layer.streamed else { continue };
            let mut tiles = Vec::new();
            match streamed.filters {
                None => tiles.push(stored(layer)?),
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
                        return Err(format!("{} is not tiled so", layer.name));
                    }
                    for first in (0..all).step_by(each as usize) {
                        let mut attributes = layer.attributes.clone();
                        attributes[field] = each.min(all - first).into();
                        tiles.push(stored_with(layer, &attributes)?);
                    }
                }
            }
            same("tiles", &streamed.tiles, &tiles)?;
            let bytes = tiles.iter().sum::<u64>();
            if layer.parameters_of.is_none() {
                kept += stored(layer)?;
                same("place in the store", streamed.at, at)?;
                at += bytes;
            }
            read += bytes * if streamed.filters.is_some() { layer.firings } else { 1 };
            let n = streamed.blocks.len();
            if n == 0 || n > tiles.len() || plan.is_edges || tiles.contains(&0) {
                return Err(format!("{} has {n} blocks", layer.name));
            }
            for (b, block) in streamed.blocks.iter().enumerate() {
                let largest = tiles.iter().skip(b).step_by(n).max();
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
