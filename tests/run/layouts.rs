//! Every primitive but those of transformed tiles (`tiles`), executed. Random networks compute the textbook's results,
//! whichever primitives compute their layers, and the same bytes however they are planned. If the chosen primitives sum
//! in the same order as the default ones, the bytes are also those of the default ones. So the checker's table of
//! primitives is compared with the kernels: debug builds put guards around the arena, and fill with NaN each released
//! row, and each workspace before it is used.

use std::collections::BTreeMap;

use csdfc_input::app::partition::Partition;
use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_network::pass::legalise;
use csdfc_network::{LayerId, Network};
use csdfc_plan::format::Element;
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::StorageModel;
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::Primitive;
use csdfc_tests::{generate, plan, random, until_all_are_tested};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::{Value, bits, compare, run_plan};

/// Networks drawn.
const NETWORKS: u64 = 200;

/// Primitives of 32-bit floats: `halves` executes those of 16.
fn of_floats() -> impl Iterator<Item = Primitive> {
    Primitive::all()
        .filter(|primitive| primitive.elements() == [Element::F32; 2] && primitive.scaled_weight().is_none())
}

/// Chooses a primitive for each layer among the named ones that compute it: the one that was executed least often.
fn chosen(mut network: Network, random: &mut ChaCha8Rng, executed: &mut BTreeMap<&str, u64>) -> Network {
    for layer in &mut network.layers {
        let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
        let suits = |primitive: &Primitive| {
            executed.contains_key(primitive.name()) && primitive.computes(&layer.operator, &inputs)
        };
        let all: Vec<Primitive> = Primitive::all().filter(suits).collect();
        let least = all.iter().map(|primitive| executed[primitive.name()]).min().unwrap();
        let least: Vec<Primitive> =
            all.into_iter().filter(|primitive| executed[primitive.name()] == least).collect();
        let primitive = least[random.random_range(0..least.len())];
        layer.primitive = Some(primitive);
        *executed.entry(primitive.name()).or_default() += 1;
    }
    let network = legalise(network);
    for layer in network.layers.iter().filter(|layer| matches!(layer.operator, Operator::Convert)) {
        *executed.entry(layer.primitive().name()).or_default() += 1;
    }
    network
}

/// The network in one partition, or cut into two that run at the same time.
pub(super) fn application(
    network: &Network,
    cut: bool,
    storage: StorageModel,
    rows: RowsChoice,
) -> Application {
    let ids: Vec<LayerId> = network.ids().collect();
    let middle = if cut { ids.len() / 2 } else { ids.len() };
    let (first, second) = ids.split_at(middle);
    let partition = |(name, layers): (&str, &[LayerId])| Partition {
        name: name.into(),
        layers: layers.to_vec(),
        processor: "cpu".into(),
        schedule: None,
    };
    let parts = [("first", first), ("second", second)].into_iter().filter(|(_, layers)| !layers.is_empty());
    let partitions: Vec<Partition> = parts.map(partition).collect();
    let names = partitions.iter().map(|partition| partition.name.clone()).collect();
    let cnn = generate::of_network("layouts", network.clone(), partitions);
    generate::of_cnns(vec![cnn], vec![names], storage, rows)
}

/// A random network, and the same with other primitives.
fn drawn(random: &mut ChaCha8Rng, executed: &mut BTreeMap<&str, u64>) -> [Network; 2] {
    let bytes: Vec<u8> = (0..random.random_range(20..200)).map(|_| random.random()).collect();
    let drawn = generate::application(&bytes, StorageModel::Tensors).cnns[0].network.clone();
    let chosen = chosen(drawn.clone(), random, executed);
    [drawn, chosen]
}

/// The outputs of a network by several plans.
pub(super) fn outputs(network: &Network) -> Vec<Vec<Vec<Value>>> {
    let plans = [
        (RowsChoice::None, StorageModel::Tensors, false),
        (RowsChoice::All, StorageModel::Tensors, false),
        (RowsChoice::All, StorageModel::Tensors, network.layers.len() > 3),
        (RowsChoice::All, StorageModel::Edges, false),
    ];
    let run = |(rows, storage, cut)| {
        let planned = application(network, cut, storage, rows);
        run_plan(&planned, &plan(&planned)).unwrap()
    };
    plans.into_iter().map(run).collect()
}

#[test]
fn other_layouts_change_no_byte() {
    // All other primitives of convolutions are generic over layouts, and sum in other orders.
    let others =
        ["direct", "im2col", "im2row", "kn2row", "kn2col", "mec", "fft1d", "fft2d", "pointwise", "winograd"];
    let is_other = |name: &str| others.iter().any(|family| name.split('-').next() == Some(family));
    let names = of_floats().map(Primitive::name);
    let names = names.filter(|name| !is_other(name) || *name == "im2row-strip-hwc-hwc");
    let executed: BTreeMap<&str, u64> = names.map(|name| (name, 0)).collect();
    until_all_are_tested(NETWORKS, 2, executed, |stream, executed| {
        let [drawn, chosen] = drawn(&mut random(stream), executed);
        let expected = application(&drawn, false, StorageModel::Tensors, RowsChoice::None);
        let expected = run_plan(&expected, &plan(&expected)).unwrap();
        for (i, found) in outputs(&chosen).iter().enumerate() {
            assert_eq!(bits(&expected), bits(found), "stream {stream}, plan {i}");
        }
    });
}

#[test]
fn any_primitives_compute_the_same() {
    let names = of_floats().map(Primitive::name).filter(|name| !name.starts_with("winograd"));
    let executed: BTreeMap<&str, u64> = names.map(|name| (name, 0)).collect();
    until_all_are_tested(NETWORKS, 2, executed, |stream, executed| {
        let [drawn, chosen] = drawn(&mut random(stream), executed);
        let outputs = outputs(&chosen);
        for (i, found) in outputs.iter().enumerate() {
            assert_eq!(bits(&outputs[0]), bits(found), "stream {stream}, plan {i}");
        }
        let drawn = application(&drawn, false, StorageModel::Tensors, RowsChoice::None);
        compare(&drawn, &outputs[0]).unwrap_or_else(|error| panic!("stream {stream}: {error}"));
    });
}
