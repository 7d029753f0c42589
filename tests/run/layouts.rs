//! Every primitive but those of transformed tiles (`tiles`), executed: random networks compute what the textbook says,
//! whichever primitives compute their layers, and the same bytes however they are planned. So the checker's table of primitives is held against the kernels: debug
//! builds put guards around the arena, and fill with what is not a number each row that is released and each workspace
//! before it is used.

use std::collections::BTreeMap;

use csdfc::app::partition::Partition;
use csdfc::app::resolve::{Application, RowsChoice};
use csdfc::network::{LayerId, Network};
use csdfc::pass::legalise;
use csdfc_codegen::bind::Primitive;
use csdfc_codegen::operator::Operator;
use csdfc_codegen::plan::StorageModel;
use csdfc_codegen::shape::Shape;
use csdfc_tests::{generate, plan, random};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{Value, bits, compare, run_plan};

/// Networks drawn.
const NETWORKS: u64 = 200;

/// Chooses a primitive for each layer among those that compute it, but for transformed tiles: one that was executed least
/// often.
fn chosen(mut network: Network, random: &mut ChaCha8Rng, executed: &mut BTreeMap<&str, u64>) -> Network {
    for layer in &mut network.layers {
        let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
        let suits = |primitive: &Primitive| {
            !primitive.name().starts_with("winograd") && primitive.computes(&layer.operator, &inputs)
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

#[test]
fn any_primitives_compute_the_same() {
    let names = Primitive::all().map(Primitive::name).filter(|name| !name.starts_with("winograd"));
    let mut executed: BTreeMap<&str, u64> = names.map(|name| (name, 0)).collect();
    for stream in 0..NETWORKS {
        let mut random = random(stream);
        let bytes: Vec<u8> = (0..random.random_range(20..200)).map(|_| random.random()).collect();
        let drawn = generate::application(&bytes, StorageModel::Tensors).cnns[0].network.clone();
        let network = chosen(drawn.clone(), &mut random, &mut executed);
        let mut first: Option<Vec<Vec<Value>>> = None;
        for (rows, storage, cut) in [
            (RowsChoice::None, StorageModel::Tensors, false),
            (RowsChoice::All, StorageModel::Tensors, false),
            (RowsChoice::All, StorageModel::Tensors, network.layers.len() > 3),
            (RowsChoice::All, StorageModel::Edges, false),
        ] {
            let planned = application(&network, cut, storage, rows);
            let outputs = run_plan(&planned, &plan(&planned)).unwrap();
            if let Some(first) = &first {
                assert_eq!(bits(first), bits(&outputs), "stream {stream}, {storage}, {cut}");
                continue;
            }
            let drawn = application(&drawn, false, StorageModel::Tensors, RowsChoice::None);
            compare(&drawn, &outputs).unwrap_or_else(|error| panic!("stream {stream}: {error}"));
            first = Some(outputs);
        }
    }
    assert!(executed.values().all(|count| *count > 2), "{executed:?}");
}
