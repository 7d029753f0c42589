//! Corruptions of weights that are read from a store: tiles, blocks, and when loads may start.

use csdfc_input::app::resolve::{Application, RowsChoice, Streamed};
use csdfc_plan::plan::{FiringName, Plan, Ring, StorageModel, StreamedWeights};
use csdfc_tests::together::settle;
use csdfc_tests::{application, generate, plan, random, rates, tiled};
use rand::RngExt;

use super::analysis::expand;
use super::{Edit, Random, pick};

pub const CORRUPTIONS: &[(&str, Edit)] = &[
    ("load too late", load_too_late),
    ("load missing", load_missing),
    ("load into a live ring", load_into_a_live_ring),
    ("load over another's block", load_over_another_block),
    ("load over another stage's", load_over_another_stage),
    ("wrong tile", wrong_tile),
    ("block dropped early", block_dropped_early),
    ("sum of weights off", sum_off),
    ("tiles of what has none", tiles_of_what_has_none),
    ("read again, but counted once", counted_once),
    ("read again, over another's block", read_again_over_another_block),
    ("read again, over a live row", read_again_over_a_live_row),
];

/// Plans with streamed weights: small and large, by parts and not, of several CNNs, and of pipelines with one stage streamed and with both.
pub fn subjects() -> Vec<(String, Plan)> {
    let one = |name: &str, more: &str| format!("cnns: [(model: \"builtin:{name}\")], {more}");
    let two = r#"cnns: [(model: "builtin:lenet5"), (model: "builtin:resnet8")], constraints: (memory: min)"#;
    let beside = r#"cnns: [(model: "builtin:lenet5"), (model: "builtin:resnet8")],
        parallel: [["lenet5", "resnet8"]], rows: all"#;
    let piped = r#"cnns: [(model: "builtin:lenet5", partitions: [(name: "a", upto: "S2"), (name: "b")])],
        parallel: [["a", "b"]], rows: all, resident: ["C1"]"#;
    let both = r#"cnns: [(model: "builtin:resnet8", partitions: [(name: "a", upto: "stack2_conv1"), (name: "b")])],
        parallel: [["a", "b"]], constraints: (memory: "250kB")"#;
    let list = [
        ("lenet5, by parts", one("lenet5", "rows: all")),
        ("resnet8, whole", one("resnet8", "rows: none")),
        ("resnet8, least", one("resnet8", "constraints: (memory: min)")),
        ("squeezenet, least", one("squeezenet1_0", "constraints: (memory: min)")),
        ("mobilenet, whole", one("mobilenet_v1_0.25", "rows: none")),
        (
            "mobilenet, least",
            one("mobilenet_v1_0.25", "constraints: (memory: min), resident: [\"conv_preds\"]"),
        ),
        ("two in turn", two.into()),
        ("two at once", beside.into()),
        ("pipeline", piped.into()),
        ("pipeline, both", both.into()),
    ];
    let streamed = |text: String| plan(&application(&format!("({text}, weights: streamed)")));
    let mut all: Vec<(String, Plan)> =
        list.into_iter().map(|(name, text)| (name.into(), streamed(text))).collect();
    for stream in 0..3 {
        let network = tiled::of_integers(&tiled::network(&mut random(stream)));
        let application = generate::of_one(network, StorageModel::Tensors, RowsChoice::None);
        let application = Application { streamed: Some(Streamed::default()), ..application };
        all.push((format!("integers, {stream}"), plan(&application)));
        let network = tiled::convolutions(&mut random(stream));
        let application = generate::of_one(network, StorageModel::Tensors, RowsChoice::All);
        all.push((format!("read again, {stream}"), plan(&tiled::read_again(&application))));
    }
    for (name, more) in [("resnet8", "rows: all"), ("squeezenet1_0", "constraints: (memory: min)")] {
        let application = application(&format!("({}, weights: streamed)", one(name, more)));
        all.push((format!("{name}, read again"), plan(&tiled::read_again(&application))));
    }
    all
}

/// The layers that read their weights again.
fn again(plan: &Plan) -> Vec<(usize, usize)> {
    layers(plan).into_iter().filter(|(c, l)| plan.cnns[*c].layers[*l].times_read() > 1).collect()
}

/// The streamed layers, CNN and index.
fn layers(plan: &Plan) -> Vec<(usize, usize)> {
    let of = |c: usize| (0..plan.cnns[c].layers.len()).map(move |l| (c, l));
    let all = (0..plan.cnns.len()).flat_map(of);
    all.filter(|(c, l)| plan.cnns[*c].layers[*l].streamed.is_some()).collect()
}

fn weights(plan: &mut Plan, (c, l): (usize, usize)) -> Option<&mut StreamedWeights> {
    plan.cnns[c].layers[l].streamed.as_mut()
}

/// Invalid because the first load of a layer ends after its first firing. The load waits for that firing, for a firing
/// of a layer that reads the layer's output, or for a firing of another partition.
fn load_too_late(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let (c, l) = *pick(&layers(plan), random)?;
    let layer = &plan.cnns[c].layers[l];
    let later = plan.cnns[c].layers.iter().find(|other| {
        other.partition == layer.partition && other.inputs.iter().any(|input| input.tensor == layer.output)
    });
    let after = match random.random_range(0..4) {
        0 => FiringName { layer: layer.name.clone(), firing: random.random_range(0..layer.firings) },
        1 => FiringName { layer: later?.name.clone(), firing: later?.firings - 1 },
        2 => FiringName { layer: layer.name.clone(), firing: layer.firings },
        _ => FiringName { layer: "none of these".into(), firing: 0 },
    };
    weights(plan, (c, l))?.blocks[0].after = Some(after);
    settle(plan);
    Some(())
}

/// Invalid because a tile has no place, or a streamed layer has no tile.
fn load_missing(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let place = *pick(&layers(plan), random)?;
    let streamed = weights(plan, place)?;
    match random.random_range(0..3) {
        0 => streamed.blocks.clear(),
        1 => streamed.tiles = streamed.tiles.rsplit_once(',').map_or("1".into(), |(first, _)| first.into()),
        // The weights would stay in memory, where nobody counts them.
        _ => plan.cnns[place.0].layers[place.1].streamed = None,
    }
    Some(())
}

/// The ring of a tensor.
fn ring_of(plan: &Plan, c: usize, name: &str) -> Option<Ring> {
    plan.tensors.iter().find(|tensor| tensor.cnn == plan.cnns[c].name && tensor.name == name)?.ring
}

/// Invalid because weights are read over the first row that the layer's first firing reads or makes: each is in use then. All
/// sums are made right.
fn load_into_a_live_ring(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let (c, l) = *pick(&layers(plan), random)?;
    let layer = &plan.cnns[c].layers[l];
    let names: Vec<&String> = layer.inputs.iter().map(|input| &input.tensor).chain([&layer.output]).collect();
    let ring = ring_of(plan, c, pick(&names, random)?)?;
    let bytes = layer.streamed.as_ref()?.blocks[0].bytes;
    // From a block whose last bytes meet the row to one that begins there.
    let low = ring.offset.saturating_sub(bytes - 4).next_multiple_of(4);
    let offset = low + random.random_range(0..=(ring.offset - low) / 4) * 4;
    weights(plan, (c, l))?.blocks[0].offset = offset;
    settle(plan);
    Some(())
}

/// Invalid because the block of a layer, which may be written from the beginning of the frame on, has bytes of the block of one
/// that fires before it. All sums are made right.
fn load_over_another_block(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let streamed = layers(plan);
    let (c, l) = *pick(&streamed, random)?;
    let partition = &plan.cnns[c].layers[l].partition;
    let before: Vec<(usize, usize)> = streamed
        .iter()
        .copied()
        .filter(|(d, m)| *d == c && *m < l && plan.cnns[c].layers[*m].partition == *partition)
        .collect();
    let other = weights(plan, *pick(&before, random)?)?.blocks[0].clone();
    let block = &mut weights(plan, (c, l))?.blocks[0];
    (block.after, block.offset) = (None, other.offset);
    settle(plan);
    Some(())
}

/// Invalid because a block has bytes of one of another stage, whose loads come at any time. All sums are made right.
fn load_over_another_stage(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let streamed = layers(plan);
    let (c, l) = *pick(&streamed, random)?;
    let stage = |(c, l): (usize, usize)| &plan.cnns[c].layers[l].partition;
    let runs_too = |other: &String| {
        let mut elements = plan.parallel.iter();
        other != stage((c, l)) && elements.any(|names| names.contains(other) && names.contains(stage((c, l))))
    };
    let others: Vec<(usize, usize)> = streamed.iter().copied().filter(|at| runs_too(stage(*at))).collect();
    let offset = weights(plan, *pick(&others, random)?)?.blocks[0].offset;
    weights(plan, (c, l))?.blocks[0].offset = offset;
    settle(plan);
    Some(())
}

/// Invalid because a tile does not begin where its bytes are, or has another number of bytes.
fn wrong_tile(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let place = *pick(&layers(plan), random)?;
    let streamed = weights(plan, place)?;
    match random.random_range(0..4) {
        0 => streamed.at += 64 * random.random_range(1..20),
        1 => {
            let mut tiles = rates(&streamed.tiles);
            let at = random.random_range(0..tiles.len());
            tiles[at] += 64;
            let tiles: Vec<String> = tiles.iter().map(u64::to_string).collect();
            streamed.tiles = tiles.join(",");
        }
        2 => *streamed.filters.as_mut()? += 16,
        _ => *streamed.filters.as_mut()? -= random.random_range(1..16),
    }
    Some(())
}

/// Invalid because a tile does not fit its block, or the block ends beyond the arena.
fn block_dropped_early(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let place = *pick(&layers(plan), random)?;
    let arena = plan.memory.arena;
    let block = &mut weights(plan, place)?.blocks[0];
    match random.random_range(0..3) {
        0 => block.bytes -= 4 * random.random_range(1..=block.bytes / 4),
        1 => block.offset = arena - block.bytes + 4,
        _ => block.offset += random.random_range(1..4),
    }
    Some(())
}

/// Invalid because a sum is another than that of its parts, or is not stated.
fn sum_off(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let by = 64 * random.random_range(1..100);
    match random.random_range(0..6) {
        0 => plan.store.as_mut()?.bytes += by,
        1 => plan.store = None,
        2 => {
            plan.memory.parameters_resident = Some(plan.memory.parameters_resident? + by);
            plan.memory.total += by;
        }
        3 => {
            plan.memory.parameters_resident = None;
            plan.memory.total = plan.memory.parameters_stored + plan.memory.arena;
        }
        4 => plan.cnns.iter_mut().find_map(|cnn| cnn.bytes_read.as_mut()).map(|read| *read += by)?,
        _ => plan.cnns.iter_mut().find(|cnn| cnn.bytes_read.is_some())?.bytes_read = None,
    }
    Some(())
}

/// Invalid because only dense convolutions are computed in tiles, and because a layer that reads its weights once for
/// several firings has one tile.
fn tiles_of_what_has_none(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let none: Vec<(usize, usize)> = layers(plan)
        .into_iter()
        .filter(|(c, l)| {
            let layer = &plan.cnns[*c].layers[*l];
            layer.firings > 1 && layer.times_read() == 1 || layer.primitive.starts_with("depthwise")
        })
        .collect();
    weights(plan, *pick(&none, random)?)?.filters = Some(16 * random.random_range(1..4));
    Some(())
}

/// Invalid because a frame reads tiles as often as their layer fires, and neither once nor in other firings.
fn counted_once(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let (c, l) = *pick(&again(plan), random)?;
    let layer = &plan.cnns[c].layers[l];
    let own: u64 = rates(&layer.streamed.as_ref()?.tiles).iter().sum();
    let others = plan.cnns[c].bytes_read? - layer.firings * own;
    let times = [1, layer.firings - 1, layer.firings + 1][random.random_range(0..3)];
    plan.cnns[c].bytes_read = Some(others + own * times);
    Some(())
}

/// The firings of the frame of a layer's partition, and the places of the layer's own among them.
fn places(plan: &Plan, (c, l): (usize, usize)) -> Option<(Vec<&str>, Vec<usize>)> {
    let layer = &plan.cnns[c].layers[l];
    let partition = plan.partitions.iter().find(|partition| partition.name == layer.partition)?;
    let firings = expand(&partition.schedule);
    let own = (0..firings.len()).filter(|at| firings[*at] == layer.name).collect();
    Some((firings, own))
}

/// Invalid because the weights that a layer reads again, between two of its firings, may come while another layer by parts uses
/// what it has read into the same bytes. All sums are made right.
fn read_again_over_another_block(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let place = *pick(&again(plan), random)?;
    let (firings, own) = places(plan, place)?;
    let between = own[0] + 1..*own.last()?;
    let names: Vec<&str> =
        firings.get(between)?.iter().copied().filter(|name| *name != firings[own[0]]).collect();
    let name = *pick(&names, random)?;
    let layers = &plan.cnns[place.0].layers;
    let offset = layers.iter().find(|layer| layer.name == name)?.streamed.as_ref()?.blocks[0].offset;
    weights(plan, place)?.blocks[0].offset = offset;
    settle(plan);
    Some(())
}

/// Invalid because the weights that a layer reads again come between two firings of its own, over the first row that a layer
/// between these makes: it is in use then. All sums are made right.
fn read_again_over_a_live_row(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let place = *pick(&again(plan), random)?;
    let (firings, own) = places(plan, place)?;
    let between = own[0] + 1..*own.last()?;
    let is_first = |at: &usize| firings[..*at].iter().all(|name| *name != firings[*at]);
    let begun: Vec<&str> = between.filter(is_first).map(|at| firings[at]).collect();
    let name = *pick(&begun, random)?;
    let output = &plan.cnns[place.0].layers.iter().find(|layer| layer.name == name)?.output;
    let offset = ring_of(plan, place.0, output)?.offset;
    weights(plan, place)?.blocks[0].offset = offset;
    settle(plan);
    Some(())
}
