//! Rings that share addresses while both live: the same bytes as if they were apart.

use csdfc::app::resolve::{Application, RowsChoice};
use csdfc_codegen::plan::{Plan, StorageModel};
use csdfc_tests::{generate, outcome, random, together};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

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
