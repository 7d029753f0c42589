//! Hints on how a tensor that is in use at the peak could become smaller.

use csdfc_plan::plan::{Layer, Plan, StorageModel};
use csdfc_plan::timeline::{Place, PlaceKind};

/// With at least this many layers between it and the writer, a reader counts as far away.
const FAR: usize = 4;

/// What a place would need to shrink, as a sentence. `segments` are those of its CNN's layers.
pub fn hint(plan: &Plan, segments: &[Option<usize>], place: &Place) -> String {
    let cnn = &plan.cnns[place.cnn];
    let layers = &cnn.layers;
    let name = |layer: &Layer| match plan.cnns.len() {
        1 => layer.name.clone(),
        _ => format!("{}/{}", cnn.name, layer.name),
    };
    let layer = &layers[place.layer];
    let last = place.readers.iter().max().map(|&reader| (&layers[reader], reader - place.layer));
    match place.kind {
        PlaceKind::Workspace => format!(
            "Primitive {} needs it{}. Another primitive needs less or none.",
            layer.primitive,
            match plan.threads {
                1 => String::new(),
                threads => format!(", once for each of {threads} workers"),
            }
        ),
        PlaceKind::Block => "Smaller weight tiles need a smaller block.".into(),
        PlaceKind::Cut => format!(
            "It lets stages run at the same time. It shrinks if {} goes by fewer rows, or if the stages become one.",
            last.map_or(name(layer), |(reader, _)| format!("{} or {}", name(layer), name(reader)))
        ),
        _ if plan.storage_model == StorageModel::Edges => {
            "Storage model edges shares only whole buffers. Storage model tensors also shares parts of them."
                .into()
        }
        PlaceKind::State => format!(
            "The next hop needs its rows. With fewer rows a hop, fewer of {} bytes lie here.",
            place.row_bytes
        ),
        PlaceKind::Wraps => wraps(layer, layers, place, name),
        PlaceKind::Whole => match last {
            None => "Nothing reads it.".into(),
            Some((reader, distance)) => {
                let segments = [segments[place.layer], segments[place.layer + distance]];
                whole([layer, reader], name, distance, segments)
            }
        },
    }
}

fn wraps(layer: &Layer, layers: &[Layer], place: &Place, name: impl Fn(&Layer) -> String) -> String {
    let readers = place.readers.iter().map(|&reader| &layers[reader]);
    let most = readers.chain([layer]).max_by_key(|layer| layer.rows_per_firing);
    match most {
        Some(most) if most.rows_per_firing > 1 => format!(
            "{} goes by {} rows a firing. With fewer rows a firing, fewer rows of {} bytes each lie here.",
            name(most),
            most.rows_per_firing,
            place.row_bytes
        ),
        _ if place.rows == 1 => "All its layers go row by row, and it has room for one row.".into(),
        _ => format!("All its layers go row by row, and its readers need {} rows at a time.", place.rows),
    }
}

fn whole(
    [layer, reader]: [&Layer; 2],
    name: impl Fn(&Layer) -> String,
    distance: usize,
    segments: [Option<usize>; 2],
) -> String {
    let [made, read] = [layer, reader].map(name);
    match (layer.firings, reader.firings, segments) {
        (1, 1, _) => format!(
            "{made} makes it in one firing, and {read} reads it in one. Both would have to go by rows."
        ),
        (1, ..) => format!("{made} makes it in one firing. It would have to go by rows."),
        (_, 1, _) => {
            format!("{read} reads it in one firing. It would have to go by rows, if its operator can.")
        }
        (_, _, [Some(a), Some(b)]) if a != b => {
            format!(
                "Segment {a} makes it, and segment {b} reads it later. As one segment they would need some of its rows."
            )
        }
        _ if distance >= FAR => {
            format!(
                "It is kept until {read} reads it, {distance} layers later, though both layers go by rows."
            )
        }
        _ => format!("{read} needs rows from all over it."),
    }
}
