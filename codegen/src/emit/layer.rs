//! A layer as a method: which rows it makes, where they lie, and the kernel that makes them.

use crate::bind::{Call, Kernel};
use crate::check::Kind;
use crate::operator::{ColourOrder, Input, InputElement, Operator};

use super::call::{self, Operand};
use super::model::{InputField, Model, summary};
use super::source::Source;

/// From so many rings on they have no names of their own.
const MANY: usize = 3;

/// Writes the method of a layer.
pub(super) fn write(source: &mut Source, model: &Model<'_>, layer: usize) {
    source.comment("///", &summary(model.cnn(), layer));
    let head = format!("fn {}(&mut self) {{", model.methods[layer]);
    if model.is_idle(layer) {
        source.line(head + "}");
        return;
    }
    source.open(head);
    match (&model.cnn().layers[layer].layer.operator, &model.calls[layer]) {
        (Operator::Input(input), _) => write_input(source, model, layer, input),
        (_, Some(call)) => write_call(source, model, layer, call),
        // Nothing reads it.
        (_, None) => {}
    }
    source.close("}");
}

fn write_input(source: &mut Source, model: &Model<'_>, layer: usize, input: &Input) {
    let entry = &model.cnn().layers[layer];
    let Some(field) = model.inputs.iter().find(|field| field.layer == layer) else { return };
    let written = model.written(layer);
    let outputs: Vec<_> = model.outputs.iter().filter(|output| output.layer == layer).collect();
    let Some(&own) = written.first() else {
        // Layers read the caller's frame in place.
        for output in outputs {
            source.line("let y = 0..1;");
            source.line(format!(
                "self.outputs.{}(y).copy_from_slice(self.inputs.{}());",
                output.name, field.name
            ));
        }
        return;
    };
    write_rows(source, model, layer);
    let ring = ring(model, own);
    let row = entry.tensor.shape.row_elements();
    let y = slot(model, own, "y");
    source.open("for y in y {");
    let name = &field.name;
    match input.element {
        InputElement::F32 => {
            source.line(format!("self.inputs.{name}(y, self.memory.row_mut({ring}, {y}));"));
        }
        InputElement::U8 => {
            source.line(format!("let row: &mut [f32; {row}] = self.memory.row_mut({ring}, {y});"));
            write_conversion(source, field, entry.tensor.shape.channels());
        }
    }
    write_copies(source, model, layer, &written);
    source.close("}");
}

/// Bytes of a camera as the network's floats: `(byte − mean) · scale` per channel.
fn write_conversion(source: &mut Source, field: &InputField<'_>, channels: usize) {
    let Some(camera) = &field.input.camera else { return };
    let numbers = |values: &[f32]| values.iter().map(|value| format!("{value:?}")).collect::<Vec<String>>();
    source.list(&format!("const MEAN: [f32; {channels}] = ["), &numbers(&camera.mean), ";");
    source.list(&format!("const SCALE: [f32; {channels}] = ["), &numbers(&camera.scale), ";");
    let from = match camera.order {
        ColourOrder::Rgb => "channel".to_owned(),
        ColourOrder::Bgr => format!("{} - channel", channels - 1),
    };
    let name = &field.name;
    if field.planar() {
        source.open(format!("for channel in 0..{channels} {{"));
        source.line(format!("let bytes = self.inputs.{name}(y, {from});"));
        source.open(format!("for (pixel, byte) in row.chunks_exact_mut({channels}).zip(bytes) {{"));
        source.line("pixel[channel] = (f32::from(*byte) - MEAN[channel]) * SCALE[channel];");
        source.close("}");
        source.close("}");
    } else {
        source.line(format!("let bytes = self.inputs.{name}(y);"));
        source.open(format!(
            "for (pixel, bytes) in row.chunks_exact_mut({channels}).zip(bytes.chunks_exact({channels})) {{"
        ));
        source.open(format!("for channel in 0..{channels} {{"));
        source.line(format!("pixel[channel] = (f32::from(bytes[{from}]) - MEAN[channel]) * SCALE[channel];"));
        source.close("}");
        source.close("}");
    }
}

fn write_call(source: &mut Source, model: &Model<'_>, layer: usize, call: &Call) {
    let entry = &model.cnn().layers[layer];
    let written = model.written(layer);
    let is_handed_on = written.is_empty() || written.len() > 1 || model.is_output(layer);
    if is_handed_on || !matches!(call.kernel, Kernel::ReduceFrame(_) | Kernel::MatMul) {
        write_rows(source, model, layer);
    }
    let (mut rings, mut names) = (Vec::new(), Vec::new());
    let many = entry.inputs.iter().filter(|&&tensor| model.read(layer, tensor).is_some()).count() >= MANY;
    let mut operands = Vec::new();
    for (operand, &tensor) in entry.inputs.iter().enumerate() {
        let name =
            if entry.inputs.len() == 1 { "input".to_owned() } else { format!("input_{}", operand + 1) };
        match model.read(layer, tensor) {
            Some(store) => {
                let data = if many { format!("inputs[{}]", rings.len()) } else { name.clone() };
                rings.push(ring(model, store));
                names.push(name);
                operands.push(Operand { data, first: first(model, store) });
            }
            None => {
                let field = model.inputs.iter().find(|field| field.layer == tensor);
                let field = field.map(|field| field.name.as_str()).unwrap_or_default();
                operands.push(Operand { data: format!("self.inputs.{field}()"), first: "0".into() });
            }
        }
    }
    let read = |source: &mut Source, method: &str, after: &str, output: &str| {
        let place = match rings.len() {
            0 => "_".into(),
            1..MANY => format!("[{}]", names.join(", ")),
            _ => "inputs".into(),
        };
        let place = if output.is_empty() { place } else { format!("({place}, {output})") };
        let list = if rings.len() < MANY { format!("[{}]", rings.join(", ")) } else { "rings".into() };
        if rings.len() >= MANY {
            source.list("let rings = [", &rings, ";");
        }
        source.list(&format!("let {place} = self.memory.{method}("), &[format!("{list}{after}")], ";");
    };
    match written.first() {
        Some(&own) => {
            read(source, "slices", &format!(", {}", ring(model, own)), "output");
            let output = Operand { data: "output".into(), first: first(model, own) };
            call::write(source, call, &operands, &output, model.weights[layer].start);
            if is_handed_on {
                source.open("for y in y {");
                write_copies(source, model, layer, &written);
                source.close("}");
            }
        }
        None => {
            for output in model.outputs.iter().filter(|output| output.layer == layer) {
                if !rings.is_empty() {
                    read(source, "read", "", "");
                }
                source.line(format!("let output = self.outputs.{}(y.clone());", output.name));
                let room = Operand { data: "output".into(), first: "0".into() };
                call::write(source, call, &operands, &room, model.weights[layer].start);
            }
        }
    }
}

/// Which rows this firing makes.
fn write_rows(source: &mut Source, model: &Model<'_>, layer: usize) {
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
    let (from, y) = (ring(model, own), slot(model, own, "y"));
    for &other in others {
        let (to, other_y) = (ring(model, other), slot(model, other, "y"));
        source.line(format!("self.memory.copy_row({from}, {y}, {to}, {other_y});"));
    }
    for output in model.outputs.iter().filter(|output| output.layer == layer) {
        source.line(format!("self.outputs.{}(y, self.memory.row({from}, {y}));", output.name));
    }
}

/// The ring of a store, in this frame.
fn ring(model: &Model<'_>, store: usize) -> String {
    let name = &model.rings[store];
    match model.stores()[store].kind {
        Kind::Halves => format!("ring::{name}[self.frame % 2]"),
        Kind::Restarts | Kind::RunsOn => format!("ring::{name}"),
    }
}

/// The slot of row 0 of this frame.
fn first(model: &Model<'_>, store: usize) -> String {
    let Some(rows) = runs_on(model, store) else { return "0".into() };
    format!("self.frame * {rows} % {}", model.stores()[store].ring_rows)
}

/// The row of a ring, counted over frames where its count runs on, that row `y` of the frame is.
fn slot(model: &Model<'_>, store: usize, y: &str) -> String {
    match runs_on(model, store) {
        Some(rows) => format!("self.frame * {rows} + {y}"),
        None => y.into(),
    }
}

fn runs_on(model: &Model<'_>, store: usize) -> Option<u64> {
    let store = &model.stores()[store];
    (store.kind == Kind::RunsOn).then(|| model.cnn().layers[store.tensor].rows())
}
