//! Weights that are narrower than the tensors, as the model's file has them: the results are the textbook's for the numbers
//! that they stand for, however the network is planned.

use std::collections::BTreeMap;

use csdfc_input::app::resolve::RowsChoice;
use csdfc_plan::plan::StorageModel;
use csdfc_runtime::bind::Primitive;
use csdfc_tests::quantized::narrow;
use csdfc_tests::{plan, random, until_all_are_tested};

use super::integers::drawn;
use super::layouts::{application, outputs};
use super::{bits, compare};

/// Networks drawn.
const NETWORKS: u64 = 120;

#[test]
fn narrow_weights_stand_for_their_numbers() {
    let all = Primitive::all().filter(|primitive| primitive.scaled_weight().is_some());
    let executed: BTreeMap<&str, u64> = all.map(|primitive| (primitive.name(), 0)).collect();
    assert_eq!(executed.len(), 6);
    until_all_are_tested(NETWORKS, 2, executed, |stream, executed| {
        let wide = drawn(&mut random(stream));
        let network = narrow(&wide, stream % 2 == 0);
        for layer in &network.layers {
            executed.entry(layer.primitive().name()).and_modify(|count| *count += 1);
        }
        let planned = application(&network, false, StorageModel::Tensors, RowsChoice::None);
        let outputs = outputs(&network);
        for (i, found) in outputs.iter().enumerate() {
            assert_eq!(bits(&outputs[0]), bits(found), "stream {stream}, plan {i}");
        }
        compare(&planned, &outputs[0]).unwrap();
        let of_floats = application(&wide, false, StorageModel::Tensors, RowsChoice::None);
        let [narrow, wide] = [planned, of_floats].map(|planned| plan(&planned).memory.parameters);
        assert!(narrow <= wide + 4 * 16 * network.layers.len() as u64, "{narrow} bytes of {wide}");
    });
}
