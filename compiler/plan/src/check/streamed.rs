//! Rule 4, weights that are read from a store: which tiles are read, into which bytes of the arena, and from which
//! moment on.
//!
//! A tile has the bytes that the layer's primitive would keep for a layer of only its output channels. Only layers
//! whose primitive keeps panels of output channels come in several tiles. Each of their firings reads all of them.

use crate::operator::{Conv, Function, Gemm, Operator};
use crate::plan::{Content, Layer, StorageModel, StreamedWeights};
use crate::shape::Shape;

use super::allocation::{Allocation, Begin, RowOrder};
use super::index::{CnnIndex, Index};
use super::parameters::channels;
use super::rates::compare;
use super::{Findings, Violation, primitives, regions};

/// Primitives that can make some output channels of a layer, in whole panels.
const TILED: [&str; 14] = [
    "indirect-gemm-hwc-hwc",
    "indirect-gemm-half-hwc-hwc",
    "indirect-gemm-mixed-hwc-hwc",
    "indirect-gemm-int8-hwc-hwc",
    "indirect-gemm-uint8-hwc-hwc",
    "indirect-gemm-w8-hwc-hwc",
    "indirect-gemm-w16-hwc-hwc",
    "gemm-panels-hwc-hwc",
    "gemm-panels-half-hwc-hwc",
    "gemm-panels-mixed-hwc-hwc",
    "gemm-panels-int8-hwc-hwc",
    "gemm-panels-uint8-hwc-hwc",
    "gemm-panels-w8-hwc-hwc",
    "gemm-panels-w16-hwc-hwc",
];

/// Output channels of a panel.
const PANEL: u64 = 16;

/// Maximum number of tiles of a layer.
const MAX_TILES: u64 = 1 << 14;

/// Bytes that a layer keeps of its parameters, of `filters` output channels if that is given.
fn stored(layer: &Layer, inputs: &[&Shape], filters: Option<u64>) -> Option<u64> {
    let primitive = primitives::find(layer, inputs)?;
    let Some(filters) = filters else { return (primitive.stored)(&layer.operator, inputs) };
    let filters = usize::try_from(filters).ok()?;
    let part = match &layer.operator {
        Operator::Conv(conv) => Operator::Conv(Conv { filters, ..conv.clone() }),
        Operator::Gemm(gemm) => Operator::Gemm(Gemm { units: filters, ..gemm.clone() }),
        _ => return None,
    };
    (primitive.stored)(&part, inputs)
}

/// Output channels of a layer that may be computed in tiles.
fn tileable(layer: &Layer, inputs: &[&Shape]) -> Option<u64> {
    let filters = match &layer.operator {
        // A depthwise convolution of one channel has one filter.
        Operator::Conv(conv) if conv.groups == 1 && channels(&layer.operator, inputs)? > 1 => conv.filters,
        // With integers, such a product would be a depthwise convolution too.
        Operator::Gemm(gemm) if gemm.inner > 1 || !layer.primitive.contains("int8-") => gemm.units,
        _ => return None,
    };
    let has_slopes = matches!(layer.operator.activation(), Some(Function::PRelu { .. }));
    let is_one = TILED.contains(&layer.primitive.as_str()) && !has_slopes;
    is_one.then_some(filters as u64)
}

/// Why the weights of a layer cannot come in the tiles that the plan states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TilesError {
    /// There is nothing to read.
    #[error("it keeps no parameters")]
    NoParameters,
    /// Its primitive cannot compute some of its output channels.
    #[error("it cannot be computed in tiles of output channels")]
    NotByChannels,
    /// Tiles are whole panels, and fewer than all output channels.
    #[error("a tile has {each} output channels, not a multiple of {PANEL} below the {filters} of the layer")]
    Channels {
        /// Output channels of a tile.
        each: u64,
        /// Output channels of the layer.
        filters: u64,
    },
    /// There are too many.
    #[error("it has more than {MAX_TILES} tiles")]
    TooMany,
    /// Their bytes do not fit 64 bits.
    #[error("its tiles are beyond 64 bits")]
    TooLarge,
}

/// Bytes of the tiles of a layer.
///
/// # Errors
/// When it cannot have those that it states.
pub fn tiles(layer: &Layer, streamed: &StreamedWeights, inputs: &[&Shape]) -> Result<Vec<u64>, TilesError> {
    let Some(each) = streamed.filters else {
        let bytes = stored(layer, inputs, None).ok_or(TilesError::TooLarge)?;
        return if bytes > 0 { Ok(vec![bytes]) } else { Err(TilesError::NoParameters) };
    };
    let Some(filters) = tileable(layer, inputs) else {
        return Err(TilesError::NotByChannels);
    };
    if each == 0 || each % PANEL != 0 || each >= filters {
        return Err(TilesError::Channels { each, filters });
    }
    if filters.div_ceil(each) > MAX_TILES {
        return Err(TilesError::TooMany);
    }
    let tile = |filters: u64| stored(layer, inputs, Some(filters)).ok_or(TilesError::TooLarge);
    let mut tiles = vec![tile(each)?; (filters / each) as usize];
    if filters % each > 0 {
        tiles.push(tile(filters % each)?);
    }
    Ok(tiles)
}

/// Adds the blocks: as large as the largest tile that they take, aligned, and within the arena.
pub(super) fn blocks(index: &Index<'_>, allocations: &mut [Vec<Allocation>], findings: &mut Findings) {
    for (cnn, allocations) in index.cnns.iter().zip(allocations) {
        for (l, entry) in cnn.layers.iter().enumerate() {
            let Some(streamed) = &entry.layer.streamed else { continue };
            let mut wrong = |why: String| {
                let (cnn, layer) = (cnn.cnn.name.clone(), entry.layer.name.clone());
                findings.push(Violation::Streamed { cnn, layer, why });
            };
            if index.plan.storage_model != StorageModel::Tensors {
                wrong("weights are streamed in storage model `tensors` only".into());
                continue;
            }
            let tiles = match tiles(entry.layer, streamed, &cnn.seen_all(l)) {
                Ok(tiles) => tiles,
                Err(error) => {
                    wrong(error.to_string());
                    continue;
                }
            };
            if compare(&streamed.tiles, &mut tiles.iter().copied()).is_err() {
                let stated: String = streamed.tiles.chars().take(200).collect();
                wrong(format!("its tiles have {} bytes, not `{stated}`", list(&tiles)));
            }
            if streamed.blocks.is_empty() || streamed.blocks.len() > tiles.len() {
                wrong(format!("it has {} blocks for {} tiles", streamed.blocks.len(), tiles.len()));
                continue;
            }
            for (b, block) in streamed.blocks.iter().enumerate() {
                let largest = tiles.iter().skip(b).step_by(streamed.blocks.len()).max().copied();
                let (offset, bytes) = (block.offset, block.bytes);
                if largest != Some(bytes) {
                    wrong(format!(
                        "block {b} has {bytes} bytes, but the largest tile in it has {}",
                        largest.unwrap_or(0)
                    ));
                } else if offset % 4 != 0 {
                    wrong(format!("the offset {offset} of block {b} is no multiple of 4 bytes"));
                } else if let Err(why) = regions::hold(index.plan, Content::Weights, offset, bytes) {
                    wrong(format!("block {b}: {why}"));
                } else if let Some(begin) = begin(cnn, l, block.after.as_ref()) {
                    allocations.push(Allocation {
                        name: format!("block {b} of {}/{}", cnn.cnn.name, entry.layer.name),
                        tensor: l,
                        readers: Vec::new(),
                        bases: vec![offset],
                        ring_rows: 1,
                        row_bytes: bytes,
                        kind: RowOrder::Block(begin),
                        exclusive: true,
                    });
                } else {
                    wrong(format!("block {b} waits for a firing that its partition does not have"));
                }
            }
        }
    }
}

/// The moment from which on a block of a layer may be written, if its partition has that firing.
fn begin(cnn: &CnnIndex<'_>, l: usize, after: Option<&crate::plan::FiringName>) -> Option<Begin> {
    let Some(after) = after else { return Some(Begin::Frame) };
    let layer = cnn.layers.iter().position(|entry| entry.layer.name == after.layer)?;
    let entry = &cnn.layers[layer];
    let is_there = entry.partition == cnn.layers[l].partition && after.firing < entry.layer.firings;
    is_there.then_some(Begin::After { layer, firing: after.firing })
}

/// The firing of the CNN's frame, with its partitions one after another, from the beginning of which a block may be
/// written.
pub(super) fn begun_at(
    begin: Begin,
    block: &Allocation,
    cnn: &CnnIndex<'_>,
    schedules: &[Vec<u32>],
) -> Option<usize> {
    let own = cnn.layers[block.tensor].partition;
    let before = cnn.partitions.iter().take_while(|&&p| p != own).map(|&p| schedules[p].len()).sum::<usize>();
    let Begin::After { layer, firing } = begin else { return Some(before) };
    let of_layer = schedules[own].iter().enumerate().filter(|(_, other)| **other as usize == layer);
    let (place, _) = of_layer.map(|(at, _)| (at, ())).nth(usize::try_from(firing).ok()?)?;
    Some(before + place + 1)
}

/// Checks that every block may be written before its layer fires for the first time.
pub(super) fn check_events(
    index: &Index<'_>,
    allocations: &[Vec<Allocation>],
    schedules: &[Vec<u32>],
) -> Result<(), Vec<Violation>> {
    let mut findings = Findings::default();
    for (cnn, allocations) in index.cnns.iter().zip(allocations) {
        for (allocation, begin) in
            allocations.iter().filter_map(|allocation| Some((allocation, allocation.begin()?)))
        {
            let entry = &cnn.layers[allocation.tensor];
            let before = cnn.partitions.iter().take_while(|&&p| p != entry.partition);
            let before: usize = before.map(|&p| schedules[p].len()).sum();
            let first = schedules[entry.partition].iter().position(|&l| l as usize == allocation.tensor);
            let begun = begun_at(begin, allocation, cnn, schedules);
            if begun.zip(first).is_none_or(|(begun, first)| begun > before + first) {
                let (cnn, layer) = (cnn.cnn.name.clone(), entry.layer.name.clone());
                let why =
                    format!("{} waits for a firing that is not before the layer's own", allocation.name);
                findings.push(Violation::Streamed { cnn, layer, why });
            }
        }
    }
    findings.or(())
}

/// Checks that tiles follow each other in the store, layer by layer, and all sums of their bytes.
pub(super) fn check_sums(index: &Index<'_>, findings: &mut Findings) {
    let plan = index.plan;
    let mut end = Some(0u64);
    for cnn in &index.cnns {
        let mut read = Some(0u64);
        for (l, entry) in cnn.layers.iter().enumerate() {
            let Some(streamed) = &entry.layer.streamed else { continue };
            let what = format!("the place in the store of layer `{}/{}`", cnn.cnn.name, entry.layer.name);
            let owner = entry.parameters_of.and_then(|owner| cnn.layers[owner].layer.streamed.as_ref());
            findings.sum(what, streamed.at, owner.map_or(end, |owner| Some(owner.at)));
            let bytes = tiles(entry.layer, streamed, &cnn.seen_all(l)).ok();
            let bytes =
                bytes.and_then(|tiles| tiles.iter().try_fold(0u64, |sum, tile| sum.checked_add(*tile)));
            let again = if entry.is_tiled() { entry.layer.firings } else { 1 };
            let of_frame = bytes.and_then(|bytes| bytes.checked_mul(again));
            read = read.zip(of_frame).and_then(|(read, bytes)| read.checked_add(bytes));
            if owner.is_some() {
                continue;
            }
            end = end.zip(bytes).and_then(|(end, bytes)| end.checked_add(bytes));
        }
        optional(format!("bytes_read of CNN `{}`", cnn.cnn.name), cnn.cnn.bytes_read, read, findings);
    }
    optional("store.bytes".into(), plan.store.as_ref().map(|store| store.bytes), end, findings);
    let all = index.cnns.iter().flat_map(|cnn| (0..cnn.layers.len()).map(move |l| (cnn, l)));
    let streamed = all.filter(|(cnn, l)| {
        let entry = &cnn.layers[*l];
        entry.layer.streamed.is_some() && entry.parameters_of.is_none()
    });
    let streamed = streamed.map(|(cnn, l)| stored(cnn.layers[l].layer, &cnn.seen_all(l), None));
    let streamed = streamed.into_iter().try_fold(0u64, |sum, bytes| sum.checked_add(bytes?));
    let resident = streamed.and_then(|streamed| plan.memory.parameters_stored.checked_sub(streamed));
    match (end, plan.memory.parameters_resident) {
        (Some(0), None) => {}
        (_, Some(stated)) if end != Some(0) => findings.sum("memory.parameters_resident", stated, resident),
        (_, stated) => findings.push(Violation::Sum {
            what: "memory.parameters_resident".into(),
            stated: stated.map_or("absent".into(), |bytes| bytes.to_string()),
            expected: if end == Some(0) { "absent".into() } else { resident.unwrap_or(0).to_string() },
        }),
    }
}

/// Checks that a sum is stated if it is not 0, and is absent otherwise.
fn optional(what: String, stated: Option<u64>, expected: Option<u64>, findings: &mut Findings) {
    let is_absent = stated.is_none() && expected == Some(0);
    let is_empty = stated == Some(0);
    if !is_absent && (stated.is_none() || is_empty || stated != expected) {
        let name = |value: Option<u64>| match value {
            None | Some(0) => "absent".to_owned(),
            Some(value) => value.to_string(),
        };
        findings.push(Violation::Sum { what, stated: name(stated), expected: name(expected) });
    }
}

/// Some sizes as text, at most a line.
fn list(bytes: &[u64]) -> String {
    let shown: Vec<String> = bytes.iter().take(8).map(u64::to_string).collect();
    if bytes.len() > shown.len() { format!("{}, …", shown.join(", ")) } else { shown.join(", ") }
}
