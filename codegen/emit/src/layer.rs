//! A layer as a method: which rows it makes, where they lie, and the kernel that makes them.

use csdfc_plan::check::{Held, RowOrder};
use csdfc_plan::format::Element;
use csdfc_plan::operator::{ColorOrder, Input, InputElement, Operator};
use csdfc_plan::plan::Tensor;
use csdfc_runtime::bind::Call;
use csdfc_runtime::streamed::Streamed;

use super::access::{Part, caller, first, ring, slot};
use super::borrow::{Borrow, Reads};
use super::call::{self, Operand, Slots};
use super::in_place;
use super::loads;
use super::model::{InputField, Model, OutputField, summary};
use super::pipeline::Link;
use super::source::Source;
use super::stream;
use super::streamed_layer::StreamedLayer;

/// Writes the method of a layer.
pub(super) fn write(source: &mut Source, model: &Model<'_>, layer: usize) {
    source.comment("///", &summary(model.cnn(), layer));
    let staged = !model.stages.is_empty();
    let (idle, linked) = (model.is_idle(layer), model.is_linked(layer));
    let inputs = staged && model.takes_inputs(layer);
    let parameters = parameters(inputs, staged && !idle && model.is_output(layer));
    let result = match can_fail(model, layer) {
        true if staged => "-> Result<(), Closed> ",
        true => "-> Result<(), StoreError> ",
        false => "",
    };
    // So the stack of a frame is that of its layers one at a time, and not that of all of them.
    source.line("#[inline(never)]");
    let head = format!("fn {}({parameters}) {result}{{", model.methods[layer]);
    if idle && !loads::starts_some(model, layer) {
        source.line(head + "}");
        return;
    }
    source.open(head);
    if idle && model.cnn().layers[layer].layer.firings > 1 {
        write_rows(source, model, layer);
    }
    match (&model.cnn().layers[layer].layer.operator, &model.calls[layer]) {
        (Operator::Input(input), _) => write_input(source, model, layer, input),
        (_, Some(call)) => write_call(source, model, layer, call),
        // Nothing reads it.
        (_, None) => {}
    }
    loads::write_after(source, model, layer);
    if linked {
        write_handover(source, model, layer);
    }
    if !result.is_empty() {
        source.line("Ok(())");
    }
    source.close("}");
}

/// Whether a layer's method may end the frame: it waits for another stage, or for its weights.
pub(super) fn can_fail(model: &Model<'_>, layer: usize) -> bool {
    model.is_linked(layer) || model.streamed[layer].is_some()
}

/// The parameters of a method that takes inputs or makes outputs.
pub(super) fn parameters(inputs: bool, outputs: bool) -> String {
    let mut parameters = String::from("&mut self");
    parameters += if inputs { ", inputs: &mut impl InputRows" } else { "" };
    parameters += if outputs { ", outputs: &mut impl OutputRows" } else { "" };
    parameters
}

/// Waits for the rows of rings between stages that a firing needs, and for room for those that it makes.
fn write_wait(source: &mut Source, model: &Model<'_>, layer: usize) {
    let cnn = model.cnn();
    let several = cnn.layers[layer].layer.firings > 1;
    let reads = |link: &&Link| link.readers.contains(&layer);
    if several && model.links.iter().any(|link| reads(&link)) {
        source.line(match cnn.layers[layer].layer.rows_per_firing {
            1 => "let firing = y.start;".to_owned(),
            rows => format!("let firing = y.start / {rows};"),
        });
    }
    for link in model.links.iter().filter(reads) {
        let Some(held) = held_rows(model, layer, link) else { continue };
        let need: Vec<String> = held.need.iter().map(ToString::to_string).collect();
        if several {
            let name = link.reader.to_uppercase();
            source.list(&format!("const {name}_NEED: [usize; {}] = [", need.len()), &need, ";");
            source.line(format!("self.{}.arrived({name}_NEED[firing])?;", link.reader));
        } else {
            source.line(format!("self.{}.arrived({})?;", link.reader, need.join("")));
        }
    }
    for link in model.links.iter().filter(|link| model.allocations()[link.allocation].tensor == layer) {
        let end = match model.allocations()[link.allocation].kind {
            // A half has room once the frame before the last one is released.
            RowOrder::Halves => "0".into(),
            _ => row_end(model, layer),
        };
        source.line(format!("self.{}.room({end})?;", link.writer));
    }
}

/// Writes code that notes the firing, once it need not wait for other stages, if somebody traces.
fn write_trace(source: &mut Source, model: &Model<'_>, layer: usize) {
    if !model.is_traceable {
        return;
    }
    let entry = &model.cnn().layers[layer];
    let partition = model.resolved.index.partitions[entry.partition].partition;
    let names = [&partition.processor, &partition.name, &entry.layer.name];
    source.line("#[cfg(feature = \"trace\")]");
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    source.list("let _firing = crate::trace::Firing::begin(", &names, ";");
}

/// Hands the rows that a firing has made to other stages, and gives back the rows that it no longer needs.
fn write_handover(source: &mut Source, model: &Model<'_>, layer: usize) {
    let several = model.cnn().layers[layer].layer.firings > 1;
    for link in model.links.iter().filter(|link| model.allocations()[link.allocation].tensor == layer) {
        source.line(format!("self.{}.publish({});", link.writer, row_end(model, layer)));
    }
    for link in &model.links {
        let Some(place) = link.readers.iter().position(|&reader| reader == layer) else { continue };
        let Some(held) = held_rows(model, layer, link) else { continue };
        let keep: Vec<String> = held.keep.iter().skip(1).map(ToString::to_string).collect();
        if several {
            let name = link.reader.to_uppercase();
            source.list(&format!("const {name}_KEEP: [usize; {}] = [", keep.len()), &keep, ";");
            source.line(format!("self.{}.release({place}, {name}_KEEP[firing]);", link.reader));
        } else {
            source.line(format!("self.{}.release({place}, {});", link.reader, keep.join("")));
        }
    }
}

fn held_rows<'m>(model: &'m Model<'_>, layer: usize, link: &Link) -> Option<&'m Held> {
    let tensor = model.allocations()[link.allocation].tensor;
    model.resolved.rates[model.c][layer].iter().find(|held| held.tensor == tensor)
}

/// The row after the last that a firing makes.
fn row_end(model: &Model<'_>, layer: usize) -> String {
    let entry = &model.cnn().layers[layer];
    if entry.layer.firings == 1 { entry.rows().to_string() } else { "y.end".into() }
}

fn write_input(source: &mut Source, model: &Model<'_>, layer: usize, input: &Input) {
    let entry = &model.cnn().layers[layer];
    let Some(field) = model.inputs.iter().find(|field| field.layer == layer) else { return };
    let written = model.written(layer);
    let outputs: Vec<_> = outputs(model, layer).collect();
    let Some(&own) = written.first() else {
        // Layers read the caller's frame in place.
        for output in outputs {
            source.line("let y = 0..1;");
            let caller = caller(model);
            source.line(format!(
                "{caller}outputs.{}(y).copy_from_slice({caller}inputs.{}());",
                output.name, field.name
            ));
        }
        return;
    };
    write_rows(source, model, layer);
    write_wait(source, model, layer);
    write_trace(source, model, layer);
    let ring = ring(model, layer, own);
    let row = entry.tensor.shape.row_elements();
    let y = slot(model, own, "y");
    let y_rows = if keeps_rows(model, layer) { "y.clone()" } else { "y" };
    source.open(format!("for y in {y_rows} {{"));
    let (name, caller) = (&field.name, caller(model));
    match input.element {
        InputElement::F32 => {
            source.line(format!("{caller}inputs.{name}(y, self.memory.row_mut({ring}, {y}));"));
        }
        InputElement::U8 if input.camera.is_some() => {
            let element = if entry.tensor.format.element == Element::U8 { "u8" } else { "f32" };
            source.line(format!("let row: &mut [{element}; {row}] = self.memory.row_mut({ring}, {y});"));
            write_conversion(source, field, caller, entry.tensor);
        }
        InputElement::U8 => {
            source.line(format!("let row: &mut [u8; {row}] = self.memory.row_mut({ring}, {y});"));
            source.line(format!("*row = *{caller}inputs.{name}(y);"));
        }
        InputElement::I8 => {
            source.line(format!("let row: &mut [u8; {row}] = self.memory.row_mut({ring}, {y});"));
            source.line(format!("let integers = {caller}inputs.{name}(y);"));
            source.line("// They are stored with 128 added.");
            source.line("row.iter_mut().zip(integers).for_each(|(to, q)| *to = q.cast_unsigned() ^ 0x80);");
        }
    }
    write_copies(source, model, layer, &written);
    source.close("}");
}

/// Bytes of a camera as the network's elements: `(byte − mean) · scale` per channel.
fn write_conversion(source: &mut Source, field: &InputField<'_>, caller: &str, tensor: &Tensor) {
    let Some(camera) = &field.input.camera else { return };
    let (channels, is_of_integers) = (tensor.shape.channels(), tensor.format.element == Element::U8);
    let keeps_bytes = is_of_integers && camera.keeps_bytes();
    if !keeps_bytes {
        let numbers =
            |values: &[f32]| values.iter().map(|value| format!("{value:?}")).collect::<Vec<String>>();
        source.list(&format!("const MEAN: [f32; {channels}] = ["), &numbers(&camera.mean), ";");
        source.list(&format!("const SCALE: [f32; {channels}] = ["), &numbers(&camera.scale), ";");
    }
    let element = |byte: &str| {
        let number = format!("(f32::from({byte}) - MEAN[channel]) * SCALE[channel]");
        match (keeps_bytes, is_of_integers) {
            (true, _) => byte.to_owned(),
            (_, true) => format!("kernels::quantized::Requantize::BYTES.round({number})"),
            _ => number,
        }
    };
    let from = match camera.order {
        ColorOrder::Rgb => "channel".to_owned(),
        ColorOrder::Bgr => format!("{} - channel", channels - 1),
    };
    let name = &field.name;
    if keeps_bytes && !field.planar() && camera.order == ColorOrder::Rgb {
        source.line(format!("row.copy_from_slice({caller}inputs.{name}(y));"));
    } else if field.planar() {
        source.open(format!("for channel in 0..{channels} {{"));
        source.line(format!("let bytes = {caller}inputs.{name}(y, {from});"));
        source.open(format!("for (pixel, byte) in row.chunks_exact_mut({channels}).zip(bytes) {{"));
        source.line(format!("pixel[channel] = {};", element("*byte")));
        source.close("}");
        source.close("}");
    } else {
        source.line(format!("let bytes = {caller}inputs.{name}(y);"));
        source.open(format!(
            "for (pixel, bytes) in row.chunks_exact_mut({channels}).zip(bytes.chunks_exact({channels})) {{"
        ));
        source.open(format!("for channel in 0..{channels} {{"));
        source.line(format!("pixel[channel] = {};", element(&format!("bytes[{from}]"))));
        source.close("}");
        source.close("}");
    }
}

fn write_call(source: &mut Source, model: &Model<'_>, layer: usize, call: &Call) {
    write_rows(source, model, layer);
    write_wait(source, model, layer);
    write_trace(source, model, layer);
    match &model.streamed[layer] {
        None => write_kernel(source, model, layer, &Part::whole(call)),
        Some(layer_streamed) => write_tiles(source, model, layer, call, &layer_streamed.streamed),
    }
    let written = model.written(layer);
    if written.len() > 1 || !written.is_empty() && model.is_output(layer) {
        let y = if keeps_rows(model, layer) { "y.clone()" } else { "y" };
        source.open(format!("for y in {y} {{"));
        write_copies(source, model, layer, &written);
        source.close("}");
    }
}

/// Writes the code that makes a layer whose weights are streamed, tile by tile.
fn write_tiles(source: &mut Source, model: &Model<'_>, layer: usize, call: &Call, streamed: &Streamed) {
    let (tiles, blocks) = (streamed.tiles.len(), streamed.blocks.len());
    let is_tiled = tiles > 1;
    // There is only one output then, as `Model::bind` has checked.
    let room = outputs(model, layer).next().filter(|_| is_tiled && model.written(layer).is_empty());
    if let Some(output) = room {
        write_room(source, model, output, "let mut output");
    }
    // All tiles but the last make as many channels.
    let channels = |tile: usize| streamed.tiles[tile].filters.len();
    let alike = (0..tiles).take_while(|&tile| channels(tile) == channels(0)).count();
    for range in [0..alike, alike..tiles] {
        let number = if range.len() > 1 { "tile".to_owned() } else { range.start.to_string() };
        match range.len() {
            0 => continue,
            1 if is_tiled => source.open("{"),
            1 => {}
            _ => source.open(format!("for tile in {}..{} {{", range.start, range.end)),
        }
        let closed = if model.stages.is_empty() { "" } else { ".map_err(|_| Closed)" };
        source.line(format!("self.loads.wait({}){closed}?;", loads::tile(model, layer, &number)));
        if is_tiled {
            source.line(match range.len() {
                1 => format!("let first = {};", streamed.tiles[range.start].filters.start),
                _ => format!("let first = tile * {};", channels(0)),
            });
        }
        let call = streamed.call(range.start).unwrap_or(call);
        write_kernel(source, model, layer, &Part { call, tile: Some(&number), is_tiled });
        // The block is free for its next tile.
        let start = |source: &mut Source, block: &str, next: &str| {
            loads::write_start(source, model, layer, block, next);
        };
        match range.len() {
            1 if range.start + blocks < tiles => {
                start(source, &(range.start % blocks).to_string(), &(range.start + blocks).to_string());
            }
            2.. if blocks < tiles => {
                source.open(format!("if tile + {blocks} < {tiles} {{"));
                start(source, &format!("tile % {blocks}"), &format!("tile + {blocks}"));
                source.close("}");
            }
            _ => {}
        }
        if is_tiled {
            source.close("}");
        }
    }
}

/// The network outputs that a layer makes.
fn outputs<'m>(model: &'m Model<'_>, layer: usize) -> impl Iterator<Item = &'m OutputField<'m>> {
    model.outputs.iter().filter(move |output| output.layer == layer)
}

/// Writes the caller's room for an output whose layer writes no ring.
fn write_room(source: &mut Source, model: &Model<'_>, output: &OutputField<'_>, variable: &str) {
    let (caller, name) = (caller(model), &output.name);
    source.line(format!("{variable} = SpanMut::new({caller}outputs.{name}(y.clone()));"));
}

/// Writes the call of a kernel.
fn write_kernel(source: &mut Source, model: &Model<'_>, layer: usize, part: &Part<'_>) {
    let call = part.call;
    let written = model.written(layer);
    let is_handed_on = written.is_empty() || written.len() > 1 || model.is_output(layer);
    let follows = in_place::windows(model, layer);
    if !follows.is_empty() {
        let y = if is_handed_on || keeps_rows(model, layer) { "y.clone()" } else { "y" };
        source.line("// The layer writes over rows that it reads, so it makes one row at a time, from these rows alone.");
        source.open(format!("for y in {y} {{"));
        in_place::write(source, model, layer, &follows);
    }
    let Reads { operands, rings, names } = Reads::new(model, layer, part, &follows);
    let workspace = model.workspace(layer).map(|allocation| {
        let elements = model.allocations()[allocation].bytes() / Element::F32.bytes();
        (ring(model, layer, allocation), elements)
    });
    let block =
        part.tile.zip(model.streamed[layer].as_ref()).map(|(tile, StreamedLayer { streamed, .. })| {
            let blocks = streamed.blocks.len();
            let number = match tile.parse::<usize>() {
                Ok(tile) => (tile % blocks).to_string(),
                Err(_) => format!("{tile} % {blocks}"),
            };
            (loads::block(model, streamed, &number), loads::tile(model, layer, tile))
        });
    let context = call::CallContext {
        weights: if block.is_some() { ("weights", 0) } else { ("self.weights", model.weights[layer].start) },
        threads: model.threads(),
        workspace: workspace.as_ref().map(|(_, elements)| *elements),
        rows: kernel_rows(model, layer),
    };
    let workspace = workspace.map(|(ring, _)| ring);
    let borrow = Borrow { rings, names, is_listed: !follows.is_empty(), workspace, block };
    let Some(&own) = written.first() else {
        return write_handed_on(source, model, layer, part, &operands, &borrow, context);
    };
    let own_ring = ring(model, layer, own);
    let (ring, slots) = match follows.is_empty() {
        true => (own_ring, Slots::Ring(first(model, layer, own))),
        false => {
            source.line(format!("let row = {own_ring}.part(&y);"));
            ("row".to_owned(), Slots::Only(kernel_rows(model, layer).into()))
        }
    };
    borrow.write(source, Some(ring));
    let elements = model.allocations()[own].ring_bytes() / call.elements()[1].bytes();
    let output = Operand { data: part.channels("output".into(), true, &elements), slots };
    call::write(source, call, &operands, &output, context);
    if !follows.is_empty() {
        source.close("}");
    }
}

/// Writes a call whose output no ring holds: it is made where the caller or the next stage wants it, for each of these by
/// itself.
fn write_handed_on(
    source: &mut Source,
    model: &Model<'_>,
    layer: usize,
    part: &Part<'_>,
    operands: &[Operand],
    borrow: &Borrow,
    context: call::CallContext,
) {
    let entry = &model.cnn().layers[layer];
    let shape = &entry.tensor.shape;
    let elements = match entry.layer.firings {
        1 if !model.is_stream() => shape.elements().to_string(),
        _ => format!("y.len() * {}", shape.row_elements()),
    };
    let data = if part.is_tiled { "output.reborrow()" } else { "output" };
    let slots = match model.cnn().is_over_time(layer) {
        true => Slots::Only(stream::COUNTED.into()),
        false => Slots::Ring("0".into()),
    };
    let room = Operand { data: part.channels(data.into(), true, &elements), slots };
    let several = outputs(model, layer).count() > 1;
    for output in outputs(model, layer) {
        if several {
            source.open("{");
        }
        borrow.write(source, None);
        if !part.is_tiled {
            write_room(source, model, output, "let output");
        }
        call::write(source, part.call, operands, &room, context);
        if several {
            source.close("}");
        }
    }
}

/// Whether the rows of a firing are asked for once its kernel has been called.
fn keeps_rows(model: &Model<'_>, layer: usize) -> bool {
    let several = model.cnn().layers[layer].layer.firings > 1;
    model.is_linked(layer) || several && loads::starts_some(model, layer)
}

/// The variable with the rows that the kernel of a layer makes.
fn kernel_rows(model: &Model<'_>, layer: usize) -> &'static str {
    if model.cnn().is_over_time(layer) { stream::COUNTED } else { "y" }
}

/// Which rows this firing makes.
fn write_rows(source: &mut Source, model: &Model<'_>, layer: usize) {
    write_rows_of_frame(source, model, layer);
    if model.is_stream() && !model.is_idle(layer) {
        stream::write_existing(source, model, layer, "y");
        if stream::lags(model, layer) {
            source.open("if y.is_empty() {");
            source.line("return;");
            source.close("}");
        }
        if model.cnn().is_over_time(layer) && in_place::windows(model, layer).is_empty() {
            source.line(format!("let {} = {};", stream::COUNTED, stream::counted(model, layer, "y")));
        }
    }
}

fn write_rows_of_frame(source: &mut Source, model: &Model<'_>, layer: usize) {
    let entry = &model.cnn().layers[layer];
    let (rows, height, name) = (entry.layer.rows_per_firing, entry.rows(), &model.methods[layer]);
    if entry.layer.firings == 1 {
        source.line(format!("let y = 0..{height};"));
        return;
    }
    source.line(match height % rows {
        0 => format!("let y = self.{name}..self.{name} + {rows};"),
        _ => format!("let y = self.{name}..(self.{name} + {rows}).min({height});"),
    });
    source.line(format!("self.{name} = y.end;"));
}

/// Hands row `y` on from the first ring written to the others and to the caller.
fn write_copies(source: &mut Source, model: &Model<'_>, layer: usize, written: &[usize]) {
    let Some((&own, others)) = written.split_first() else { return };
    let (from, y) = (ring(model, layer, own), slot(model, own, "y"));
    for &other in others {
        let (to, other_y) = (ring(model, layer, other), slot(model, other, "y"));
        source.line(format!("self.memory.copy_row({from}, {y}, {to}, {other_y});"));
    }
    for output in outputs(model, layer) {
        let caller = caller(model);
        source.line(format!("{caller}outputs.{}(y, self.memory.row({from}, {y}));", output.name));
    }
}
