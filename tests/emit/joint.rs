//! Crates of plans whose primitives are chosen together with rows and segments.

use std::collections::BTreeSet;

use csdfc_input::app::MemoryGoal;
use csdfc_network::{Network, NetworkOutput};
use csdfc_plan::check;
use csdfc_plan::shape::Shape;
use csdfc_tests::generate;

use super::{Emitted, check_crate};
use crate::joint;

/// The fastest primitive of each convolution, one of each family and in other layouts than its neighbours.
const FASTEST: [&str; 8] = [
    "im2col-lines-hwc-chw",
    "winograd-f4x4-3x3-chw-chw",
    "mec-b-chw-hwc",
    "winograd-f2-3-hwc-hwc",
    "kn2col-panels-hwc-hwc",
    "direct-row-hcw-hcw",
    "fft1d-kept-chw-chw",
    "im2row-strip-hcw-hwc",
];

/// A chain of convolutions with a second reader of the third tensor, each fast by one primitive alone.
#[test]
fn primitives_of_all_families() {
    let mut network = Network::default();
    let mut x = generate::input(&mut network, Shape::new([1, 3, 18, 18]));
    for at in 0..FASTEST.len() {
        x = joint::convolution(&mut network, x, 5 + at);
    }
    network.outputs.push(NetworkOutput::new("out", x));
    let primitives = [&["indirect-gemm-hwc-hwc"], &FASTEST[..]].concat();
    let device = joint::device_of(&network, &primitives, |place, primitive, _| {
        let is_fastest = FASTEST[place - 1] == primitive.name();
        if is_fastest { [20_000.0, 30_000.0] } else { [2_000_000.0, 2_500_000.0] }
    });
    let mut application = joint::case(network);
    let largest = joint::planned(&application, &device).plan;
    let named = |plan: &csdfc_plan::plan::Plan| -> BTreeSet<String> {
        plan.cnns[0].layers.iter().map(|layer| layer.primitive.clone()).collect()
    };
    let found = named(&largest);
    assert!(FASTEST.iter().all(|name| found.contains(*name)), "{found:?}");
    assert!(found.iter().any(|name| name.starts_with("convert-")), "{found:?}");

    // Within less memory, some of these primitives are replaced, and layers go by rows.
    application.constraints.memory = Some(MemoryGoal::Bytes(largest.memory.total * 3 / 4));
    let smaller = joint::planned(&application, &device).plan;
    assert!(smaller.constraints.met);
    assert_ne!(named(&smaller), found);
    for plan in [largest, smaller] {
        check::check(&plan).expect("a safe plan");
        let planned = joint::as_planned(&application, &plan);
        check_crate(&Emitted::of(&planned, plan));
    }
}
