//! Corruptions of regions: the parts of the arena that lie in the memories of a board.

use csdfc_plan::plan::{Content, Plan};
use csdfc_tests::{application, plan};
use rand::RngExt;

use super::{Edit, Random, pick};

pub const CORRUPTIONS: &[(&str, Edit)] = &[
    ("region of other bytes", region_of_other_bytes),
    ("region elsewhere", region_elsewhere),
    ("region lost", region_lost),
    ("all regions lost", all_regions_lost),
    ("regions swapped", regions_swapped),
    ("region without a name", region_without_a_name),
    ("region named twice", region_named_twice),
    ("time of a byte that is none", time_that_is_none),
    ("ring across two regions", ring_across_regions),
    ("buffers where none may lie", buffers_where_none_may_lie),
    ("stack where it does not lie", stack_elsewhere),
    ("stack in two regions", stack_in_two),
    ("no room for the stack", no_room_for_the_stack),
    ("limit of a memory not kept", limit_not_kept),
    ("limit of the flash not kept", flash_not_kept),
    ("limits said to be missed", limits_said_to_be_missed),
    ("limit on all memory", limit_on_all_memory),
    ("parameters counted as memory", parameters_counted),
];

/// Plans with two and three regions: of one network and several, by rows and whole.
pub fn subjects() -> Vec<(String, Plan)> {
    [
        ("lenet5", "cnns: [(model: \"builtin:lenet5\")]", "5kB@near,16kB@far"),
        ("lenet5, three", "cnns: [(model: \"builtin:lenet5\")], rows: all", "1kB@a:0ns,2kB@b:1ns,64kB@c:9ns"),
        ("resnet8", "cnns: [(model: \"builtin:resnet8\")], rows: none", "40kB@near:0ns,1MB@far:3ns"),
        (
            "a pipeline",
            "cnns: [(model: \"builtin:lenet5\", partitions: [(name: \"a\", upto: \"S2\"), (name: \"b\")])],
             parallel: [[\"a\", \"b\"]], rows: all",
            "6kB@near,1MB@far",
        ),
        (
            "two at once",
            "cnns: [(model: \"builtin:lenet5\"), (model: \"builtin:paper_pair\")],
             parallel: [[\"lenet5\", \"paper_pair\"]], rows: none",
            "10kB@near,1MB@far",
        ),
    ]
    .into_iter()
    .map(|(name, text, ram)| {
        let text = format!("({text}, constraints: (ram: \"{ram}\", flash: \"1MB\"))");
        (name.to_owned(), plan(&application(&text)))
    })
    .collect()
}

fn any(plan: &Plan, random: &mut Random) -> usize {
    random.random_range(0..plan.regions.len())
}

/// Its bytes are those to the end of what lies highest in it, and the next region begins there.
fn region_of_other_bytes(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let region = any(plan, random);
    let bytes = &mut plan.regions[region].bytes;
    *bytes = match random.random_range(0..3) {
        0 => bytes.checked_sub(random.random_range(1..=8))?,
        1 => *bytes + random.random_range(1..=64),
        _ => u64::MAX - *bytes,
    };
    Some(())
}

fn region_elsewhere(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let region = any(plan, random);
    plan.regions[region].offset += 8 * random.random_range(1..=1000);
    Some(())
}

/// What lies in it lies in no region then.
fn region_lost(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let region = any(plan, random);
    (plan.regions[region].bytes > 0).then(|| plan.regions.remove(region))?;
    (!plan.regions.is_empty()).then_some(())
}

/// The parameters are counted in the total of a plan without regions.
fn all_regions_lost(plan: &mut Plan, _: &mut Random) -> Option<()> {
    plan.regions.clear();
    Some(())
}

fn regions_swapped(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let region = any(plan, random);
    let differ = plan.regions.get(region + 1)?.offset != plan.regions[region].offset;
    plan.regions.swap(region, region + 1);
    differ.then_some(())
}

fn region_without_a_name(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let region = any(plan, random);
    plan.regions[region].name = (*pick(&["", "DTCM", "1a", "a-b", "a b", "é", "_a"], random)?).into();
    Some(())
}

fn region_named_twice(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let region = any(plan, random);
    let other = (region + 1) % plan.regions.len();
    plan.regions[region].name = plan.regions[other].name.clone();
    Some(())
}

fn time_that_is_none(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let region = any(plan, random);
    plan.regions[region].ns_per_byte = Some(*pick(&[-1.0, f64::NAN, f64::INFINITY], random)?);
    Some(())
}

/// A ring begins before a region, and ends in it.
fn ring_across_regions(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let (tensor, region) = (random.random_range(0..plan.tensors.len()), any(plan, random));
    let boundary = plan.regions[region].offset;
    let element = plan.tensors[tensor].format.element.bytes();
    let ring = plan.tensors[tensor].ring.as_mut()?;
    let before = element * random.random_range(1..ring.bytes / element);
    ring.offset = boundary.checked_sub(before)?;
    let end = ring.offset + ring.bytes;
    // The region before may have had room for it, if this one is empty.
    (end > boundary && end <= plan.memory.arena).then_some(())
}

fn buffers_where_none_may_lie(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let region = any(plan, random);
    let region = &mut plan.regions[region];
    region.holds.remove(&Content::Buffers);
    (region.bytes > 0).then_some(())
}

fn stack_elsewhere(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let region = any(plan, random);
    let region = &mut plan.regions[region];
    region.stack = random.random_range(1..=1000);
    region.limit += 1000;
    Some(())
}

fn stack_in_two(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let region = any(plan, random);
    let other = (region + 1) % plan.regions.len();
    for region in [region, other] {
        plan.regions[region].holds.insert(Content::Stack);
    }
    (region != other).then_some(())
}

/// The plan says that all limits are kept.
fn no_room_for_the_stack(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let region = any(plan, random);
    let region = &mut plan.regions[region];
    region.holds.insert(Content::Stack);
    region.stack = region.limit - region.bytes + random.random_range(1..=1000);
    Some(())
}

fn limit_not_kept(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let region = any(plan, random);
    let region = &mut plan.regions[region];
    region.limit = region.bytes.checked_sub(random.random_range(1..=region.bytes.max(1)))?;
    Some(())
}

fn flash_not_kept(plan: &mut Plan, random: &mut Random) -> Option<()> {
    plan.constraints.flash = Some(random.random_range(0..plan.memory.parameters_stored));
    Some(())
}

fn limits_said_to_be_missed(plan: &mut Plan, _: &mut Random) -> Option<()> {
    plan.constraints.met = false;
    Some(())
}

fn limit_on_all_memory(plan: &mut Plan, random: &mut Random) -> Option<()> {
    plan.constraints.memory = Some(plan.memory.total + random.random_range(0..1000));
    Some(())
}

fn parameters_counted(plan: &mut Plan, _: &mut Random) -> Option<()> {
    plan.memory.total += plan.memory.parameters_stored;
    Some(())
}
