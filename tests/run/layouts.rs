//! Every primitive, executed: random networks compute the same bytes, whichever primitives compute their layers. So the
//! checker's table of primitives is held against the kernels: debug builds put guards around the arena, and fill with
//! what is not a number each row that is released and each workspace before it is used.

use std::collections::BTreeMap;

use csdfc::app::partition::Partition;
use csdfc::app::resolve::{Application, RowsChoice};
use csdfc::network::{LayerId, Network};
use csdfc::pass::legalise;
use csdfc_codegen::bind::Primitive;
use csdfc_codegen::plan::StorageModel;
use csdfc_codegen::shape::Shape;
use csdfc_tests::{generate, plan, random};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{bits, run_plan};

/// Networks drawn.
const NETWORKS: u64 = 160;

/// Chooses a primitive for each layer among those that compute it.
fn chosen(mut network: Network, random: &mut ChaCha8Rng) -> Network {
    for layer in &mut network.layers {
        let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
        let suits = |primitive: &Primitive| primitive.computes(&layer.operator, &inputs);
        let all: Vec<Primitive> = Primitive::all().filter(suits).collect();
        layer.primitive = Some(all[random.random_range(0..all.len())]);
    }
    legalise(network)
}

/// The network in one partition, or cut into two that run at the same time.
fn application(network: &Network, cut: bool, storage: StorageModel, rows: RowsChoice) -> Application {
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
fn other_layouts_change_no_byte() {
    let mut executed: BTreeMap<&str, u64> = Primitive::all().map(|primitive| (primitive.name(), 0)).collect();
    for stream in 0..NETWORKS {
        let mut random = random(stream);
        let bytes: Vec<u8> = (0..random.random_range(20..200)).map(|_| random.random()).collect();
        let network = generate::application(&bytes, StorageModel::Tensors).cnns[0].network.clone();
        let expected = application(&network, false, StorageModel::Tensors, RowsChoice::None);
        let expected = run_plan(&expected, &plan(&expected)).unwrap();
        let network = chosen(network, &mut random);
        for layer in &network.layers {
            *executed.entry(layer.primitive().name()).or_default() += 1;
        }
        for (rows, storage, cut) in [
            (RowsChoice::None, StorageModel::Tensors, false),
            (RowsChoice::All, StorageModel::Tensors, false),
            (RowsChoice::All, StorageModel::Tensors, network.layers.len() > 3),
            (RowsChoice::All, StorageModel::Edges, false),
        ] {
            let application = application(&network, cut, storage, rows);
            let outputs = run_plan(&application, &plan(&application)).unwrap();
            assert_eq!(bits(&expected), bits(&outputs), "stream {stream}, {storage}, {cut}");
        }
    }
    assert!(executed.values().all(|count| *count > 2), "{executed:?}");
}
