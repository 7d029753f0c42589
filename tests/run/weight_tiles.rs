//! Layers whose weights are read in weight tiles, executed: the same bytes as with all weights in memory, for weights
//! that are floats of 32 or 16 bits, integers for tensors of floats, and integers for tensors of integers, with an
//! offset or without.

use std::collections::{BTreeMap, BTreeSet};

use csdfc_input::app::resolve::{Application, Constraints, RowsChoice, Streamed};
use csdfc_input::units::MemoryGoal;
use csdfc_network::pass::{Precision, in_precisions};
use csdfc_plan::plan::StorageModel;
use csdfc_tests::quantized::narrow;
use csdfc_tests::{plan, random, rates, tiled, until_all_are_tested};

use super::layouts::application;
use super::{bits, run_plan};

/// Networks drawn.
const NETWORKS: u64 = 12;

#[test]
fn tiles_change_no_byte() {
    let families = ["indirect-gemm", "gemm-panels"];
    let kinds = ["", "-half", "-mixed", "-w8", "-w16", "-int8", "-uint8"];
    let names = families.iter().flat_map(|family| kinds.map(|kind| format!("{family}{kind}-hwc-hwc")));
    let sizes = ["one panel", "several panels", "different sizes"].map(String::from);
    let executed: BTreeMap<String, u64> = names.chain(sizes).map(|name| (name, 0)).collect();
    until_all_are_tested(NETWORKS, 10, executed, |stream, executed| {
        let drawn = tiled::network(&mut random(stream));
        let of = |precision| in_precisions(drawn.clone(), &vec![precision; drawn.layers.len()]);
        let [half, mixed] = [Precision::Half, Precision::Mixed].map(of);
        let [bytes, halves] = [false, true].map(|are_halves| narrow(&drawn, are_halves));
        let floats = [drawn.clone(), half, mixed, bytes, halves].map(|network| (network, true));
        for (network, is_floats) in floats.into_iter().chain([(tiled::of_integers(&drawn), false)]) {
            let resident = application(&network, false, StorageModel::Tensors, RowsChoice::None);
            let expected = bits(&run_plan(&resident, &plan(&resident)).unwrap());
            // If tiles were exchanged, the outputs would show it, since no two panels are equal. Integers have few
            // values, so only floats must vary.
            let panels: BTreeSet<&[u32]> = expected[0].chunks(16).collect();
            assert_eq!(panels.len(), expected[0].len().div_ceil(16), "stream {stream}");
            let distinct: BTreeSet<u32> = expected[0].iter().copied().collect();
            let is_varied = distinct.len() > expected[0].len() / 4;
            assert!(is_varied || !is_floats, "stream {stream}: {distinct:?}");
            for (memory, threads) in [(None, 1), (Some(MemoryGoal::Min), 1), (Some(MemoryGoal::Min), 3)] {
                let constraints = Constraints { memory, ..Constraints::default() };
                let streamed = Some(Streamed::default());
                let streamed = Application { streamed, constraints, threads, ..resident.clone() };
                let plan = plan(&streamed);
                let layers = plan.cnns[0].layers.iter();
                for (layer, streamed) in layers.filter_map(|layer| Some((layer, layer.streamed.as_ref()?))) {
                    let Some(filters) = streamed.filters else { continue };
                    let panels = if filters > 16 { "several panels" } else { "one panel" };
                    let tiles = rates(&streamed.tiles);
                    let differ = tiles.first() != tiles.last();
                    for tested in
                        [&layer.primitive, panels].into_iter().chain(differ.then_some("different sizes"))
                    {
                        *executed.get_mut(tested).unwrap() += 1;
                    }
                }
                let found = bits(&run_plan(&streamed, &plan).unwrap());
                assert_eq!(expected, found, "stream {stream}, {:?}, {threads} workers", streamed.constraints);
            }
        }
    });
}

/// Each firing of a layer by parts reads its tiles anew: the last convolution makes rows of a ring, or of the caller's. All
/// tiles are read as often as the plan says (`run_plan`).
#[test]
fn tiles_that_are_read_again_change_no_byte() {
    let kinds = ["", "-half", "-mixed", "-w8", "-w16", "-int8", "-uint8"];
    let executed: BTreeMap<String, u64> =
        kinds.map(|kind| (format!("indirect-gemm{kind}-hwc-hwc"), 0)).into();
    until_all_are_tested(NETWORKS, 10, executed, |stream, executed| {
        let drawn = match stream % 2 {
            0 => tiled::network(&mut random(stream)),
            _ => tiled::convolutions(&mut random(stream)),
        };
        let of = |precision| in_precisions(drawn.clone(), &vec![precision; drawn.layers.len()]);
        let [half, mixed] = [Precision::Half, Precision::Mixed].map(of);
        let [bytes, halves] = [false, true].map(|are_halves| narrow(&drawn, are_halves));
        for network in [drawn.clone(), half, mixed, bytes, halves, tiled::of_integers(&drawn)] {
            let resident = application(&network, false, StorageModel::Tensors, RowsChoice::All);
            let expected = bits(&run_plan(&resident, &plan(&resident)).unwrap());
            let goals = [(RowsChoice::All, None, 1), (RowsChoice::Default, Some(MemoryGoal::Min), 3)];
            for (rows, memory, threads) in goals {
                let constraints = Constraints { memory, ..Constraints::default() };
                let again =
                    tiled::read_again(&Application { rows, constraints, threads, ..resident.clone() });
                let plan = plan(&again);
                for layer in plan.cnns[0].layers.iter().filter(|layer| layer.times_read() > 1) {
                    *executed.entry(layer.primitive.clone()).or_default() += 1;
                }
                assert_eq!(expected, bits(&run_plan(&again, &plan).unwrap()), "stream {stream}, {threads}");
            }
        }
    });
}
