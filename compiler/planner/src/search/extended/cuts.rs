//! Cuts: the places in a network after which later layers need few bytes of earlier tensors.

use csdfc_network::{LayerId, Network};

/// The places in `layers`, which are in topological order, after which later layers read only the tensor made at that
/// place and no earlier one. The last place is one of them. Between two such places lies a block: a layer, or a
/// residual block, for example.
pub fn cuts(network: &Network, layers: &[LayerId]) -> Vec<usize> {
    let mut open_until = 0;
    let is_cut = |(at, last): (usize, usize)| {
        // Of the tensors made before this place, none is read after it.
        let is_cut = open_until <= at;
        open_until = open_until.max(last);
        is_cut.then_some(at)
    };
    last_reads(network, layers).into_iter().enumerate().filter_map(is_cut).collect()
}

/// The cuts, and places after which later layers read several tensors, such as the parts of an image. At such a place,
/// fewer bytes are kept than somewhere on the way to each of its neighbours, by a fifth or more. Places after which
/// more than `most` bytes are kept are left out.
pub fn low(network: &Network, layers: &[LayerId], most: u64) -> Vec<usize> {
    let mut change = vec![0i128; layers.len()];
    for (at, last) in last_reads(network, layers).into_iter().enumerate() {
        let layer = network.layer(layers[at]);
        let bytes = i128::from(layer.tensor_bytes());
        change[at] += bytes;
        change[last] -= bytes;
    }
    let sum = |sum: &mut i128, change: &i128| {
        *sum += change;
        Some(*sum)
    };
    let kept: Vec<i128> = change.iter().scan(0, sum).collect();
    let single = cuts(network, layers);
    let mut low = Vec::new();
    let mut falls = false;
    for at in 0..layers.len() {
        falls = change[at] < 0 || falls && change[at] == 0;
        if single.binary_search(&at).is_ok()
            || falls && kept.get(at + 1).is_some_and(|after| *after > kept[at])
        {
            low.push(at);
        }
    }
    let fullest = |from: usize, to: usize| kept[from..=to].iter().copied().max().unwrap_or(0);
    let is_low = |index: &usize| {
        let at = low[*index];
        let before = index.checked_sub(1).map_or(0, |before| low[before]);
        let after = low.get(index + 1).copied().unwrap_or(at);
        let falls = || 4 * fullest(before, at).min(fullest(at, after)) >= 5 * kept[at];
        kept[at] <= i128::from(most) && (single.binary_search(&at).is_ok() || falls())
    };
    (0..low.len()).filter(is_low).map(|index| low[index]).collect()
}

/// For each of `layers`, the place of the last layer that reads its tensor, or its own place if none does.
fn last_reads(network: &Network, layers: &[LayerId]) -> Vec<usize> {
    let mut place = vec![None; network.layers.len()];
    for (at, id) in layers.iter().enumerate() {
        place[id.0] = Some(at);
    }
    let mut last_read: Vec<usize> = (0..layers.len()).collect();
    for (at, id) in layers.iter().enumerate() {
        for operand in &network.layer(*id).inputs {
            if let Some(from) = place[operand.layer.0] {
                last_read[from] = last_read[from].max(at);
            }
        }
    }
    last_read
}

#[cfg(test)]
mod tests {
    use csdfc_input::builtin::{self, Builder, BuilderError, ConvOptions};
    use csdfc_network::Operand;
    use csdfc_network::pass::{self, Fusion};

    use super::*;
    use crate::search::extended::tests::points;

    /// Names of the layers after which there are cuts, and of those after which at most `most` bytes are kept.
    fn check(network: Network, fusion: Fusion, most: u64, expected: [&[&str]; 2]) {
        let network = pass::normalise(network, fusion);
        let layers: Vec<LayerId> = network.ids().collect();
        let found = [cuts(&network, &layers), low(&network, &layers, most)];
        let names = |places: Vec<usize>| -> Vec<String> {
            places.into_iter().map(|at| network.layers[at].name.clone()).collect()
        };
        assert_eq!(found.map(names), expected.map(|list| list.to_vec()));
    }

    /// A layer of 16 channels, two branches of `branch` channels, a layer of 16 channels that reads both, and an end.
    fn module(branch: usize) -> Result<Network, BuilderError> {
        let mut builder = Builder::new(1);
        let b = &mut builder;
        let point = |b: &mut Builder, name: &str, image: &Operand, filters| {
            b.named(name).conv(image, filters, [1, 1], ConvOptions::default())
        };
        let input = b.input("input", [1, 3, 8, 8])?;
        let stem = point(b, "stem", &input, 16)?;
        let (left, right) = (point(b, "left", &stem, branch)?, point(b, "right", &stem, branch)?);
        let both = b.named("both").concat(&[&left, &right])?;
        let next = point(b, "next", &both, 16)?;
        let end = point(b, "end", &next, 1)?;
        b.output("output", &end)?;
        Ok(builder.finish())
    }

    #[test]
    fn blocks_lie_between_cuts() {
        let cuts = ["input", "stem", "next", "end"];
        let with_branches = ["input", "stem", "right", "next", "end"];
        for (branch, most, low) in [
            (4, u64::MAX, &with_branches[..]),
            (6, u64::MAX, &with_branches),
            // Not a fifth less than the 16 channels before and after.
            (7, u64::MAX, &cuts),
            // As much as both branches of four channels, and less.
            (4, 8 * 64 * 4, &["input", "right", "end"]),
            (4, 8 * 64 * 4 - 1, &["input", "end"]),
        ] {
            check(module(branch).unwrap(), Fusion::Full, most, [&cuts, low]);
        }
        let with_concat = ["input", "stem", "both", "next", "end"];
        check(module(4).unwrap(), Fusion::Paper, u64::MAX, [&with_concat; 2]);
        let blocks =
            ["input", "conv", "stack1_add", "stack2_add", "stack3_add", "avg_pool", "dense", "softmax"];
        check(builtin::network("resnet8").unwrap(), Fusion::Paper, u64::MAX, [&blocks; 2]);
    }

    /// A place counts if fewer bytes are kept there than on the way to its neighbours, however the bytes change in
    /// between.
    #[test]
    fn several_tensors_are_cut_at_the_last_of_the_lowest_places() {
        for (layers, low) in [
            // As much is kept after 2 as after 3.
            (
                &[(1, &[][..]), (2, &[0]), (1, &[1]), (1, &[2]), (4, &[0, 3]), (1, &[4])][..],
                &["0", "3", "4", "5"][..],
            ),
            // After 4, it rises in two steps, with as much after 5 as after 6.
            (
                &[
                    (1, &[]),
                    (8, &[0]),
                    (4, &[1]),
                    (4, &[2]),
                    (1, &[3]),
                    (2, &[2, 4]),
                    (2, &[5]),
                    (8, &[0, 2]),
                    (1, &[6, 7]),
                ],
                &["0", "2", "4", "8"],
            ),
        ] {
            let network = pass::normalise(points(layers), Fusion::Full);
            let ids: Vec<LayerId> = network.ids().collect();
            let found: Vec<&str> = super::low(&network, &ids, u64::MAX)
                .into_iter()
                .map(|at| network.layers[at].name.as_str())
                .collect();
            assert_eq!(found, low);
        }
    }
}
