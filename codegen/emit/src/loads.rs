//! Loads of paged weights: when each begins in a frame, and the tables that say which bytes it reads.
//!
//! A frame waits for loads in the order in which they begin. So it only keeps the loads that are under way
//! (`template/store.rs`).

use csdfc_plan::check::Begin;
use csdfc_runtime::paged::Paged;

use super::model::Model;
use super::paged_layer::PagedLayer;
use super::reach::ring_path;
use super::source::Source;

/// The loads that may start when the frame of these partitions begins: layers and slices.
fn at_start(model: &Model<'_>, group: &[usize]) -> Vec<(usize, usize)> {
    starting(model, |l, begin| begin == Begin::Frame && group.contains(&model.cnn().layers[l].partition))
}

/// The loads that may start at the end of a firing.
fn after(model: &Model<'_>, layer: usize, firing: u64) -> Vec<(usize, usize)> {
    starting(model, |_, begin| begin == Begin::After { layer, firing })
}

fn starting(model: &Model<'_>, may: impl Fn(usize, Begin) -> bool) -> Vec<(usize, usize)> {
    let mut loads = Vec::new();
    for (l, layer) in model.paged.iter().enumerate() {
        let Some(PagedLayer { paged, .. }) = layer else { continue };
        let now = paged.blocks.iter().enumerate().filter(|(_, block)| may(l, block.begin));
        loads.extend(now.map(|(slice, _)| (l, slice)));
    }
    loads
}

/// Writes the code that starts the loads at the beginning of a frame of these partitions.
pub(super) fn write_at_start(source: &mut Source, model: &Model<'_>, group: &[usize]) {
    for (layer, slice) in at_start(model, group) {
        write_start(source, model, layer, &slice.to_string(), &slice.to_string());
    }
}

/// Whether some loads start at the ends of a layer's firings.
pub(super) fn starts_some(model: &Model<'_>, layer: usize) -> bool {
    let stated = &model.cnn().layers[layer].layer;
    stated.times_read() > 1 || (0..stated.firings).any(|firing| !after(model, layer, firing).is_empty())
}

/// Writes the code that starts the loads at the end of a firing, whose rows are `y`.
pub(super) fn write_after(source: &mut Source, model: &Model<'_>, layer: usize) {
    let entry = &model.cnn().layers[layer];
    for firing in 0..entry.layer.firings {
        let loads = after(model, layer, firing);
        if loads.is_empty() {
            continue;
        }
        let several = entry.layer.firings > 1;
        if several {
            source.open(format!("if y.start == {} {{", firing * entry.layer.rows_per_firing));
        }
        for (layer, slice) in loads {
            write_start(source, model, layer, &slice.to_string(), &slice.to_string());
        }
        if several {
            source.close("}");
        }
    }
    if let (2.., Some(PagedLayer { paged, .. })) = (entry.layer.times_read(), &model.paged[layer]) {
        // The layer's next firing reads its weights again.
        source.open(format!("if y.end < {} {{", entry.rows()));
        for slice in 0..paged.blocks.len() {
            write_start(source, model, layer, &slice.to_string(), &slice.to_string());
        }
        source.close("}");
    }
}

/// Writes the start of the load of a slice into a block, both expressions.
pub(super) fn write_start(source: &mut Source, model: &Model<'_>, layer: usize, block: &str, slice: &str) {
    let Some(PagedLayer { paged, .. }) = &model.paged[layer] else { return };
    let arguments =
        ["&mut self.memory".into(), self::block(model, paged, block), self::slice(model, layer, slice)];
    source.list("self.loads.start(", &arguments, ";");
}

/// A slice of a layer, by an expression.
pub(super) fn slice(model: &Model<'_>, layer: usize, number: &str) -> String {
    format!("&slices::{}[{number}]", model.methods[layer].to_uppercase())
}

/// A block of a layer, by an expression.
pub(super) fn block(model: &Model<'_>, paged: &Paged, number: &str) -> String {
    let Some(block) = paged.blocks.first() else { return String::new() };
    let place = ring_path(model, model.stores()[block.store].tensor);
    format!("{place}::{}[{number}]", model.rings[block.store])
}

/// Writes the table of slices.
pub(super) fn write_table(source: &mut Source, model: &Model<'_>) {
    source.line("/// Weights in `store.bin`, as slices of layers.");
    source.open("mod slices {");
    source.line("use crate::store::Slice;");
    for (l, layer) in model.paged.iter().enumerate() {
        let Some(PagedLayer { paged, checksums }) = layer else { continue };
        let (count, name) = (paged.slices.len(), &model.methods[l]);
        source.gap();
        let what = match paged.slices.first() {
            Some(slice) if !slice.filters.is_empty() => {
                format!("`{name}`, {} output channels a slice.", slice.filters.len())
            }
            _ => format!("`{name}`."),
        };
        source.comment("///", &what);
        let slices = paged.slices.iter().zip(checksums).map(|(slice, checksum)| {
            let (at, bytes) = (slice.at, slice.bytes);
            format!("Slice {{ at: {at}, bytes: {bytes}, checksum: 0x{checksum:08x} }}")
        });
        let head = format!("pub static {}: [Slice; {count}] = [", name.to_uppercase());
        source.list(&head, &slices.collect::<Vec<String>>(), ";");
    }
    source.close("}");
    source.gap();
}
