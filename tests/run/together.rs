//! Rings that share addresses while both live: the same bytes as if they were apart.

use csdfc_input::app::partition::Partition;
use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::builtin::{Builder, ConvOptions, Padding, PoolWindow};
use csdfc_network::LayerId;
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_tests::{generate, outcome, random, together};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::{bits, run_plan};

/// Networks drawn.
const NETWORKS: u64 = 60;

/// Has some rings hold all rows of their tensors.
fn grow(plan: &mut Plan, random: &mut ChaCha8Rng) {
    let end = plan.memory.buffers;
    for tensor in &mut plan.tensors {
        let rows = tensor.shape.rows() as u64;
        if let Some(ring) = &mut tensor.ring
            && ring.ring_rows < rows
            && random.random_range(0..2) == 0
        {
            (ring.ring_rows, ring.bytes, ring.offset) = (rows, rows * tensor.row_bytes, end);
        }
    }
}

#[test]
fn rings_that_share_addresses_hold_the_same() {
    let (mut followers, mut saved, mut all) = (0, 0, 0);
    for stream in 0..NETWORKS {
        let mut random = random(stream);
        let bytes: Vec<u8> = (0..random.random_range(20..200)).map(|_| random.random()).collect();
        let drawn = generate::application(&bytes, StorageModel::Tensors);
        for (threads, rows) in (1..).zip([drawn.rows.clone(), RowsChoice::None]) {
            let application = Application { rows, threads, ..drawn.clone() };
            let mut apart = outcome(&application).plan;
            together::settle(&mut apart);
            let expected = run_plan(&application, &apart).unwrap();
            grow(&mut apart, &mut random);
            let pushed = together::pushed(&apart, &mut |n| random.random_range(0..n));
            let outputs = run_plan(&application, &pushed).unwrap();
            assert_eq!(bits(&expected), bits(&outputs), "stream {stream}, {:?}", application.rows);
            assert!(pushed.memory.bound <= pushed.memory.buffers, "stream {stream}");
            followers += together::followers(&pushed).len();
            (saved, all) = (saved + apart.memory.naive - pushed.memory.buffers, all + 1);
        }
    }
    assert!(4 * followers > all, "{followers} layers follow their operands in {all} plans");
    assert!(saved > 0);
}

/// A ring between stages that a later group reads, too: once it has, the arena is free for larger tensors of that group.
#[test]
fn later_groups_end_the_life_of_rings_between_stages() {
    let mut builder = Builder::new(1);
    let padded = |pads| ConvOptions { pads: Padding::Each(pads), ..ConvOptions::default() };
    let x = builder.input("x", [1, 2, 8, 8]).unwrap();
    let cut = builder.conv(&x, 4, [3, 3], padded(1)).unwrap();
    let small = builder.max_pool(&cut, PoolWindow::new(2, 2)).unwrap();
    let last = builder.average_pool(&cut, PoolWindow::new(2, 2), false).unwrap();
    let sum = builder.add(&small, &last).unwrap();
    let large = builder.conv(&sum, 64, [3, 3], padded(1)).unwrap();
    let y = builder.conv(&large, 4, [3, 3], padded(1)).unwrap();
    builder.output("y", &y).unwrap();
    let partition = |(name, layers): (&str, std::ops::Range<usize>)| Partition {
        name: name.into(),
        layers: layers.map(LayerId).collect(),
        processor: "cpu".into(),
        schedule: None,
    };
    let partitions = [("p", 0..2), ("q", 2..3), ("r", 3..7)].map(partition).into();
    let cnn = generate::of_network("late", builder.finish(), partitions);
    let parallel = vec![vec!["p".into(), "q".into()], vec!["r".into()]];
    let application = generate::of_cnns(vec![cnn], parallel, StorageModel::Tensors, RowsChoice::None);
    let plan = outcome(&application).plan;
    let ring = |name: &str| plan.tensors.iter().find(|tensor| tensor.producer == name).unwrap().ring.unwrap();
    let [cut, large] = [cut, large].map(|x| ring(&application.cnns[0].network.layer(x.layer).name));
    assert!(cut.offset < large.offset + large.bytes && large.offset < cut.offset + cut.bytes);
    assert!(plan.memory.proven && plan.memory.arena < cut.bytes + large.bytes, "{:?}", plan.memory);
    let apart = run_plan(&application, &together::apart(&plan)).unwrap();
    assert_eq!(bits(&run_plan(&application, &plan).unwrap()), bits(&apart));
}
