//! Loads of streamed weights: when each begins in a frame, and the tables that say which bytes it reads.
//!
//! A frame waits for loads in the order in which they begin. So it only keeps the loads that are under way
//! (`template/store.rs`).

use csdfc_plan::check::Begin;
use csdfc_runtime::streamed::Streamed;

use super::access::ring_path;
use super::model::Model;
use super::source::Source;
use super::streamed_layer::StreamedLayer;

/// The loads that may start when the frame of these partitions begins: layers and tiles.
fn at_start(model: &Model<'_>, group: &[usize]) -> Vec<(usize, usize)> {
    starting(model, |l, begin| begin == Begin::Frame && group.contains(&model.cnn().layers[l].partition))
}

/// The loads that may start at the end of a firing.
fn loads_after(model: &Model<'_>, layer: usize, firing: u64) -> Vec<(usize, usize)> {
    starting(model, |_, begin| begin == Begin::After { layer, firing })
}

fn starting(model: &Model<'_>, may: impl Fn(usize, Begin) -> bool) -> Vec<(usize, usize)> {
    let mut loads = Vec::new();
    for (l, layer) in model.streamed.iter().enumerate() {
        let Some(StreamedLayer { streamed, .. }) = layer else { continue };
        let now = streamed.blocks.iter().enumerate().filter(|(_, block)| may(l, block.begin));
        loads.extend(now.map(|(tile, _)| (l, tile)));
    }
    loads
}

/// Writes the code that starts the loads at the beginning of a frame of these partitions.
pub(super) fn write_at_start(source: &mut Source, model: &Model<'_>, group: &[usize]) {
    for (layer, tile) in at_start(model, group) {
        write_start(source, model, layer, &tile.to_string(), &tile.to_string());
    }
}

/// Whether some loads start at the ends of a layer's firings.
pub(super) fn starts_some(model: &Model<'_>, layer: usize) -> bool {
    let stated = &model.cnn().layers[layer].layer;
    stated.times_read() > 1 || (0..stated.firings).any(|firing| !loads_after(model, layer, firing).is_empty())
}

/// Writes the code that starts the loads at the end of a firing, whose rows are `y`.
pub(super) fn write_after(source: &mut Source, model: &Model<'_>, layer: usize) {
    let entry = &model.cnn().layers[layer];
    for firing in 0..entry.layer.firings {
        let loads = loads_after(model, layer, firing);
        if loads.is_empty() {
            continue;
        }
        let several = entry.layer.firings > 1;
        if several {
            source.open(format!("if y.start == {} {{", firing * entry.layer.rows_per_firing));
        }
        for (layer, tile) in loads {
            write_start(source, model, layer, &tile.to_string(), &tile.to_string());
        }
        if several {
            source.close("}");
        }
    }
    if let (2.., Some(StreamedLayer { streamed, .. })) = (entry.layer.times_read(), &model.streamed[layer]) {
        // The layer's next firing reads its weights again.
        source.open(format!("if y.end < {} {{", entry.rows()));
        for tile in 0..streamed.blocks.len() {
            write_start(source, model, layer, &tile.to_string(), &tile.to_string());
        }
        source.close("}");
    }
}

/// Writes the start of the load of a tile into a block, both expressions.
pub(super) fn write_start(source: &mut Source, model: &Model<'_>, layer: usize, block: &str, tile: &str) {
    let Some(StreamedLayer { streamed, .. }) = &model.streamed[layer] else { return };
    let arguments =
        ["&mut self.memory".into(), self::block(model, streamed, block), self::tile(model, layer, tile)];
    source.list("self.loads.start(", &arguments, ";");
}

/// A tile of a layer, by an expression.
pub(super) fn tile(model: &Model<'_>, layer: usize, number: &str) -> String {
    format!("&tiles::{}[{number}]", model.methods[layer].to_uppercase())
}

/// A block of a layer, by an expression.
pub(super) fn block(model: &Model<'_>, streamed: &Streamed, number: &str) -> String {
    let Some(block) = streamed.blocks.first() else { return String::new() };
    let place = ring_path(model, model.allocations()[block.allocation].tensor);
    format!("{place}::{}[{number}]", model.rings[block.allocation])
}

/// Writes the table of tiles.
pub(super) fn write_table(source: &mut Source, model: &Model<'_>) {
    source.line("/// Weights in `store.bin`, as tiles of layers.");
    source.open("mod tiles {");
    source.line("use crate::store::Tile;");
    for (l, layer) in model.streamed.iter().enumerate() {
        let Some(StreamedLayer { streamed, checksums }) = layer else { continue };
        let (count, name) = (streamed.tiles.len(), &model.methods[l]);
        source.gap();
        let what = match streamed.tiles.first() {
            Some(tile) if !tile.filters.is_empty() => {
                format!("`{name}`, {} output channels a tile.", tile.filters.len())
            }
            _ => format!("`{name}`."),
        };
        source.comment("///", &what);
        let tiles = streamed.tiles.iter().zip(checksums).map(|(tile, checksum)| {
            let (at, bytes) = (tile.at, tile.bytes);
            format!("Tile {{ at: {at}, bytes: {bytes}, checksum: 0x{checksum:08x} }}")
        });
        let head = format!("pub static {}: [Tile; {count}] = [", name.to_uppercase());
        source.list(&head, &tiles.collect::<Vec<String>>(), ";");
    }
    source.close("}");
    source.gap();
}
