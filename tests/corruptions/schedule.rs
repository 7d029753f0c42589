//! Corruptions of schedules and of rates.

use csdfc_plan::plan::{Layer, Plan, Step};
use rand::RngExt;

use super::analysis::{expand, notation, rates_text, set_schedule};
use super::{Random, pick};
use csdfc_tests::rates;

/// The firings of a random partition.
fn any_schedule(plan: &Plan, random: &mut Random) -> (usize, Vec<String>) {
    let p = random.random_range(0..plan.partitions.len());
    (p, schedule(plan, p))
}

fn schedule(plan: &Plan, p: usize) -> Vec<String> {
    expand(&plan.partitions[p].schedule).into_iter().map(str::to_string).collect()
}

/// Invalid because a layer then does not make all its rows.
pub fn firing_dropped(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let (p, mut firings) = any_schedule(plan, random);
    firings.remove(random.random_range(0..firings.len()));
    set_schedule(&mut plan.partitions[p], &firings);
    Some(())
}

/// Invalid because a layer then makes rows that it does not have.
pub fn firing_repeated(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let (p, mut firings) = any_schedule(plan, random);
    let i = random.random_range(0..firings.len());
    firings.insert(i, firings[i].clone());
    set_schedule(&mut plan.partitions[p], &firings);
    Some(())
}

/// Invalid because one layer then fires too often and another too rarely, or in a partition to which it does not
/// belong.
pub fn firing_of_another_layer(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let (p, mut firings) = any_schedule(plan, random);
    let i = random.random_range(0..firings.len());
    let others: Vec<&Layer> =
        plan.cnns.iter().flat_map(|cnn| &cnn.layers).filter(|layer| layer.name != firings[i]).collect();
    firings[i] = match random.random_range(0..4) {
        0 => "nobody".into(),
        _ => pick(&others, random)?.name.clone(),
    };
    set_schedule(&mut plan.partitions[p], &firings);
    Some(())
}

/// Rows that a layer needs of a tensor up to and including each firing, all its operands of that tensor together.
fn needs(layer: &Layer, tensor: &str) -> Vec<u64> {
    let mut all = vec![0; layer.firings as usize];
    for input in layer.inputs.iter().filter(|input| input.tensor == tensor) {
        let mut sum = 0;
        for (need, acquired) in all.iter_mut().zip(rates(&input.acquire)) {
            sum += acquired;
            *need = sum.max(*need);
        }
    }
    all
}

/// A firing of a producer at `at`, and the first firing of a reader after it that needs a row of it: the reader's
/// firing number p needs more rows than are written before `at`.
struct Dependence {
    partition: usize,
    at: usize,
    reader_at: usize,
}

fn dependences(plan: &Plan, p: usize, firings: &[String]) -> Vec<Dependence> {
    let partition = &plan.partitions[p];
    let Some(cnn) = plan.cnns.iter().find(|cnn| cnn.name == partition.cnn) else { return Vec::new() };
    let mut found = Vec::new();
    for producer in cnn.layers.iter().filter(|layer| layer.partition == partition.name) {
        let reads = |layer: &&Layer| {
            layer.partition == partition.name && layer.inputs.iter().any(|i| i.tensor == producer.output)
        };
        for reader in cnn.layers.iter().filter(reads) {
            let needs = needs(reader, &producer.output);
            let (mut written, mut fired) = (0, 0);
            let mut last: Option<(usize, u64)> = None;
            for (i, name) in firings.iter().enumerate() {
                if *name == producer.name {
                    last = Some((i, written));
                    written += producer.rows_per_firing;
                } else if *name == reader.name {
                    if let Some((at, before)) = last
                        && needs[fired] > before
                    {
                        found.push(Dependence { partition: p, at, reader_at: i });
                    }
                    fired += 1;
                }
            }
        }
    }
    found
}

/// Invalid because the firing moved needs a row that is not written yet where it now stands: it is the same firing,
/// number p of its layer, since none of that layer lies between.
pub fn firing_moved_before_its_producer(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let (p, mut firings) = any_schedule(plan, random);
    let all = dependences(plan, p, &firings);
    // The last of the producer's firings before the reader's: other firings of the reader may lie between, and
    // then it is the first of them that lacks its row.
    let moved: Vec<&Dependence> =
        all.iter().filter(|d| !firings[d.at..d.reader_at].contains(&firings[d.reader_at])).collect();
    let Dependence { partition, at, reader_at } = **pick(&moved, random)?;
    let reader = firings.remove(reader_at);
    firings.insert(at, reader);
    set_schedule(&mut plan.partitions[partition], &firings);
    Some(())
}

/// Invalid because the second of two neighbours reads what the first writes, and now stands before it.
pub fn dependent_firings_swapped(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let (p, mut firings) = any_schedule(plan, random);
    let all = dependences(plan, p, &firings);
    let next: Vec<&Dependence> = all.iter().filter(|d| d.at + 1 == d.reader_at).collect();
    let Dependence { partition, at, reader_at } = **pick(&next, random)?;
    firings.swap(at, reader_at);
    set_schedule(&mut plan.partitions[partition], &firings);
    Some(())
}

/// Invalid because no loop repeats 0 times or is empty, and a schedule beyond every machine fires too often.
pub fn loop_of_nothing(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let p = random.random_range(0..plan.partitions.len());
    let partition = &mut plan.partitions[p];
    let fire = Step::Fire { fire: expand(&partition.schedule)[0].to_string() };
    partition.schedule.push(match random.random_range(0..4) {
        0 => Step::Repeat { repeat: 0, body: vec![fire] },
        1 => Step::Repeat { repeat: random.random_range(1..9), body: Vec::new() },
        2 => Step::Repeat { repeat: u64::MAX, body: vec![fire] },
        _ => {
            Step::Repeat { repeat: u64::MAX, body: vec![Step::Repeat { repeat: u64::MAX, body: vec![fire] }] }
        }
    });
    partition.notation = notation(&partition.schedule);
    Some(())
}

/// Invalid because the notation is that of another schedule.
pub fn notation_of_another_schedule(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let p = random.random_range(0..plan.partitions.len());
    let partition = &mut plan.partitions[p];
    match random.random_range(0..3) {
        0 => partition.notation = String::new(),
        1 => partition.notation.push_str(",[x]"),
        _ => {
            let cut = partition.notation.char_indices().next_back()?.0;
            partition.notation.truncate(cut);
        }
    }
    Some(())
}

/// An operand with its rates written out: CNN, layer, operand.
fn any_operand(plan: &Plan, random: &mut Random, firings: u64) -> Option<(usize, usize, usize)> {
    let mut all = Vec::new();
    for (c, cnn) in plan.cnns.iter().enumerate() {
        for (l, layer) in cnn.layers.iter().enumerate().filter(|(_, layer)| layer.firings >= firings) {
            all.extend((0..layer.inputs.len()).map(|i| (c, l, i)));
        }
    }
    pick(&all, random).copied()
}

/// Invalid because the rates of an operand follow from its operator: any other sequence is wrong, here one row moved
/// between two firings, one row more or less, or one firing more or less.
pub fn rate_off(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let kind = random.random_range(0..4);
    let (c, l, i) = any_operand(plan, random, if kind == 0 { 2 } else { 1 })?;
    let input = &mut plan.cnns[c].layers[l].inputs[i];
    let text = if random.random_range(0..2) == 0 { &mut input.acquire } else { &mut input.release };
    let mut sequence = rates(text);
    let some: Vec<usize> = (0..sequence.len()).filter(|p| sequence[*p] > 0).collect();
    let from = *pick(&some, random)?;
    match kind {
        0 => {
            let to = (from + random.random_range(1..sequence.len())) % sequence.len();
            sequence[from] -= 1;
            sequence[to] += 1;
        }
        1 => sequence[from] -= 1,
        2 => sequence[from] += 1,
        _ if random.random_range(0..2) == 0 => sequence.push(0),
        _ => drop(sequence.remove(from)),
    }
    *text = rates_text(&sequence);
    Some(())
}

/// Invalid because this is no list of rates.
pub fn rate_garbled(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let (c, l, i) = any_operand(plan, random, 1)?;
    let input = &mut plan.cnns[c].layers[l].inputs[i];
    let text = if random.random_range(0..2) == 0 { &mut input.acquire } else { &mut input.release };
    match random.random_range(0..6) {
        0 => text.clear(),
        1 => text.push(','),
        2 => text.insert(0, '('),
        3 => text.insert(0, '-'),
        4 => text.push('*'),
        _ => *text = format!("99999999999*{text}"),
    }
    Some(())
}

/// Invalid because Φ = ⌈H / r⌉ does not hold.
pub fn firings_off(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let c = random.random_range(0..plan.cnns.len());
    let l = random.random_range(0..plan.cnns[c].layers.len());
    let layer = &mut plan.cnns[c].layers[l];
    let height = layer.output_shape.rows() as u64;
    match random.random_range(0..4) {
        0 => layer.firings += 1,
        1 => layer.firings -= 1,
        2 => layer.rows_per_firing = 0,
        _ => {
            let other = random.random_range(1..=height);
            if height.div_ceil(other) == layer.firings {
                return None;
            }
            layer.rows_per_firing = other;
        }
    }
    Some(())
}
