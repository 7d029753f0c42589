//! Partitions and precisions of a built-in network.

use csdfc_input::builtin;
use csdfc_network::component::{components, gather, stops};
use csdfc_network::pass::{Fusion, Precision, in_precisions, normalise};
use csdfc_network::{LayerId, Network};

/// LeNet-5 is a chain of layers.
#[test]
fn partitions_that_wait_for_each_other() {
    let network = builtin::network("lenet5").unwrap();
    let rest = network.layers.len() - 6;
    let of = |first: [usize; 6], last: usize| [&first[..], &vec![last; rest]].concat();
    let ids = |ids: &[usize]| ids.iter().copied().map(LayerId).collect::<Vec<_>>();
    for (partition_of, count, expected, stop) in [
        (of([0; 6], 0), 1, vec![vec![0]], vec![]),
        // A pipeline whose partitions are named in any order.
        (of([1, 1, 0, 0, 2, 2], 2), 3, vec![vec![1], vec![0], vec![2]], vec![]),
        // There and back.
        (of([0, 0, 1, 1, 0, 0], 0), 2, vec![vec![0, 1]], vec![1, 3]),
        (of([0, 1, 0, 1, 2, 2], 3), 4, vec![vec![0, 1], vec![2], vec![3]], vec![0, 1, 2]),
        // Over a third.
        (of([0, 1, 2, 0, 0, 3], 3), 4, vec![vec![0, 1, 2], vec![3]], vec![0, 1, 2]),
    ] {
        let found = components(&network, &partition_of, count);
        assert_eq!(found, expected, "{partition_of:?}");
        assert_eq!(stops(&network, &partition_of, &found), ids(&stop), "{partition_of:?}");
        let (_, gathered) = gather(network.clone(), &partition_of, &found);
        assert_eq!(gathered, partition_of, "a chain stays as it is");
    }
}

fn primitives(network: &Network) -> Vec<&str> {
    network.layers.iter().map(|layer| layer.primitive().name()).collect()
}

#[test]
fn conversions_stand_where_elements_meet() {
    let network = normalise(builtin::network("lenet5").unwrap(), Fusion::Full);
    let names: Vec<&str> = network.layers.iter().map(|layer| layer.name.as_str()).collect();
    let whole = in_precisions(network.clone(), &vec![Precision::Half; names.len()]);
    let bytes: u64 = whole.layers.iter().map(|layer| layer.parameter_elements() * 2).sum();
    assert_eq!((whole.parameter_bytes(), network.parameter_bytes()), (bytes, 2 * bytes));
    let [input, narrow, .., widen] = primitives(&whole)[..] else { panic!("{names:?}") };
    assert_eq!(
        [input, narrow, widen],
        ["own-kernel-hwc-hwc", "convert-narrow-hwc-hwc", "convert-widen-hwc-hwc"]
    );
    assert!(primitives(&whole)[2..whole.layers.len() - 1].iter().all(|name| name.contains("-half-")));
    assert_eq!(whole.layers.len(), names.len() + 2);
    // The output is the last conversion's, of 32-bit floats.
    assert_eq!(whole.outputs[0].operand.layer.0, whole.layers.len() - 1);

    // A layer of 32-bit floats between others has conversions on both sides.
    let middle = names.len() / 2;
    let but_one: Vec<Precision> =
        (0..names.len()).map(|l| if l == middle { Precision::Fp32 } else { Precision::Half }).collect();
    let mixed = in_precisions(network.clone(), &but_one);
    assert_eq!(mixed.layers.len(), names.len() + 4);
    let at = mixed.find(names[middle]).unwrap().0;
    let around = [at - 1, at, at + 1].map(|l| primitives(&mixed)[l].contains("-half-"));
    assert_eq!(around, [false; 3]);

    assert_eq!(
        primitives(&in_precisions(network.clone(), &vec![Precision::Fp32; names.len()])),
        primitives(&network)
    );
}

/// LeNet-5 in mixed precision: a byte of each weight, four of each scale, two of each bias.
#[test]
fn layers_with_weights_keep_integers() {
    let network = normalise(builtin::network("lenet5").unwrap(), Fusion::Full);
    let mixed = in_precisions(network.clone(), &vec![Precision::Mixed; network.layers.len()]);
    let mut bytes = 0;
    for layer in mixed.layers.iter().filter(|layer| !layer.parameters.is_empty()) {
        assert!(layer.primitive().is_mixed(), "{}", layer.name);
        let [weights, biases] = [0, 1].map(|at| layer.parameters[at].elements() as u64);
        bytes += weights + 4 * biases + 2 * biases;
    }
    assert_eq!(mixed.parameter_bytes(), bytes);
    let others = mixed.layers.iter().filter(|layer| layer.parameters.is_empty() && !layer.is_input());
    let names: Vec<&str> = others.map(|layer| layer.primitive().name()).collect();
    assert_eq!([names[0], names[names.len() - 1]], ["convert-narrow-hwc-hwc", "convert-widen-hwc-hwc"]);
    assert!(names[1..names.len() - 1].iter().all(|name| name.contains("-half-")), "{names:?}");
}
