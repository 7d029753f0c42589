//! The search space: choices as genomes. A genome says, for each layer of a CNN, how often it fires, and whether a
//! segment ends after it.

use csdfc_ga::{Section, Space};
use csdfc_network::{LayerId, Network};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::{cuts, segment};
use crate::frame::choice::Choice;
use crate::frame::task::PartitionedCnn;

/// Rows of the tallest tensor that a firing makes, in the choices looked at.
const ROWS: [u64; 16] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];

/// Maximum number of prefixes that a search starts from.
const MAX_PREFIXES: usize = 250;

/// The choices for one CNN. A genome has two genes for each layer: its step on the ladder, and whether a segment ends
/// after it.
#[derive(Debug)]
pub struct DesignSpace<'a> {
    network: &'a Network,
    /// Numbers of firings in a frame, ascending from 1. A layer with fewer rows than that fires once per row.
    pub ladder: Vec<u64>,
    /// By layer, whether a segment may end after it.
    ends: Vec<bool>,
    /// By layer and step on the ladder, the least step that means the same.
    least: Vec<Vec<i64>>,
    /// Inputs, and the layer that is the first to read each.
    inputs: Vec<(LayerId, Option<LayerId>)>,
    space: Space,
}

impl<'a> DesignSpace<'a> {
    /// The choices for a CNN.
    pub fn new(task: &'a PartitionedCnn<'a>) -> Self {
        let network = task.network;
        let heights: Vec<u64> = network.layers.iter().map(|layer| layer.rows() as u64).collect();
        let ladder = ladder(&heights);
        let mut ends = vec![false; heights.len()];
        for partition in &task.partitions {
            if partition.steps.is_none() {
                for at in cuts::cuts(network, &partition.layers) {
                    ends[partition.layers[at].0] = true;
                }
            }
        }
        let least = |height: &u64| {
            let rows: Vec<u64> = ladder.iter().map(|firings| segment::rows(*height, *firings)).collect();
            let first = |row: &u64| rows.iter().position(|other| other == row).unwrap_or(0) as i64;
            rows.iter().map(first).collect()
        };
        let least = heights.iter().map(least).collect();
        let readers = network.readers();
        let inputs = network.ids().filter(|id| network.layer(*id).is_input());
        let inputs = inputs.map(|id| (id, readers[id.0].first().copied())).collect();
        let top = ladder.len() as i64 - 1;
        let genes = ends.iter().flat_map(|ends| [0..=top, 0..=i64::from(*ends)]).collect();
        let space = Space::new(vec![Section::Integers(genes)]);
        DesignSpace { network, ladder, ends, least, inputs, space }
    }

    /// All genomes.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// What a genome stands for.
    pub fn choice(&self, genome: &[i64]) -> Choice {
        let rows = self.network.ids().map(|id| {
            let step = usize::try_from(genome[2 * id.0]).unwrap_or(0);
            let firings = self.ladder.get(step).copied().unwrap_or(1);
            segment::rows(self.network.layer(id).rows() as u64, firings)
        });
        let rows: Vec<u64> = rows.collect();
        let barriers: Vec<LayerId> = self.network.ids().filter(|id| genome[2 * id.0 + 1] == 1).collect();
        let height = |id: LayerId| self.network.layer(id).rows() as u64;
        let by_parts = self.network.ids().filter(|id| rows[id.0] < height(*id)).count();
        let name = format!("{by_parts} by parts in {} segments", barriers.len() + 1);
        Choice { name, rows, barriers: Some(barriers), one_by_one: None }
    }

    /// The genome of layers with these numbers of firings and these barriers.
    pub fn genome(&self, firings: &[u64], barriers: &[LayerId]) -> Vec<i64> {
        let mut genome = vec![0; 2 * firings.len()];
        for (layer, firings) in firings.iter().enumerate() {
            genome[2 * layer] = self.ladder.partition_point(|step| step < firings) as i64;
        }
        for barrier in barriers {
            genome[2 * barrier.0 + 1] = 1;
        }
        self.settle(&mut genome);
        genome
    }

    /// The genome that is most like this choice. Its layers fire as often as in the choice, or the next number of times
    /// on the ladder. It has the barriers of the choice that a genome can have. A choice without barriers gets one
    /// after each block whose last layer fires once.
    pub fn nearest_genome(&self, choice: &Choice) -> Vec<i64> {
        let height = |layer: usize| self.network.layers[layer].rows() as u64;
        let rows = |layer: usize| choice.rows.get(layer).map_or(height(layer), |rows| (*rows).max(1));
        let firings: Vec<u64> =
            (0..self.least.len()).map(|layer| height(layer).div_ceil(rows(layer))).collect();
        let ends = |id: &LayerId| {
            let asked = choice.barriers.as_ref().map(|barriers| barriers.contains(id));
            self.ends[id.0] && asked.unwrap_or(firings[id.0] == 1)
        };
        let barriers: Vec<LayerId> = self.network.ids().filter(ends).collect();
        self.genome(&firings, &barriers)
    }

    /// The genome in which all layers fire `firings` times, in one segment.
    pub fn steady(&self, firings: u64) -> Vec<i64> {
        self.genome(&vec![firings; self.least.len()], &[])
    }

    /// The genomes of all prefixes, or of [`MAX_PREFIXES`] evenly among them: the layers of the prefix fire once per row,
    /// in one segment, and the others once, block by block.
    pub fn prefixes(&self) -> Vec<Vec<i64>> {
        let most = self.ladder.last().copied().unwrap_or(1);
        let ends: Vec<LayerId> = self.network.ids().filter(|id| self.ends[id.0]).collect();
        let prefix = |at: usize| {
            let firings: Vec<u64> =
                (0..self.least.len()).map(|layer| if layer <= ends[at].0 { most } else { 1 }).collect();
            self.genome(&firings, &ends[at..])
        };
        let count = ends.len().min(MAX_PREFIXES);
        (0..count).map(|at| prefix(at * ends.len() / count)).collect()
    }

    /// Makes genomes with the same meaning equal. An input fires as often as the first layer that reads it, or once if
    /// that layer is in another segment.
    pub fn settle(&self, genome: &mut [i64]) {
        let top = self.ladder.len() - 1;
        for (layer, least) in self.least.iter().enumerate() {
            let step = usize::try_from(genome[2 * layer]).map_or(0, |step| step.min(top));
            genome[2 * layer] = least[step];
        }
        for (input, reader) in &self.inputs {
            let reader = reader.filter(|reader| (input.0..reader.0).all(|layer| genome[2 * layer + 1] == 0));
            let step = reader.map_or(0, |reader| genome[2 * reader.0]);
            genome[2 * input.0] = self.least[input.0][step as usize];
        }
    }

    /// Changes a genome in one of the ways in which plans differ. One layer, a run of layers or a whole segment fires
    /// more or less often. Or the end of a segment is added, removed or moved.
    pub fn mutate(&self, genome: &mut [i64], random: &mut ChaCha8Rng) {
        let layers = self.least.len();
        if layers == 0 {
            return;
        }
        let at = random.random_range(0..layers);
        let segment = self.segment(genome, at);
        match random.random_range(0..8) {
            0 | 1 => self.shift(genome, at..at + 1, random),
            2 => self.shift(genome, segment, random),
            3 => self.shift(genome, segment.start..at + 1, random),
            4 => self.shift(genome, at..segment.end, random),
            5 => {
                let other = random.random_range(0..layers);
                self.shift(genome, at.min(other)..at.max(other) + 1, random);
            }
            6 => self.toggle(genome, at),
            _ => self.move_end(genome, segment.end - 1, random),
        }
        self.settle(genome);
    }

    /// The layers of the segment that a layer is in.
    fn segment(&self, genome: &[i64], layer: usize) -> std::ops::Range<usize> {
        let ends = |at: &usize| genome[2 * at + 1] == 1;
        let start = (0..layer).rev().find(ends).map_or(0, |before| before + 1);
        let end = (layer..self.least.len()).find(ends).map_or(self.least.len(), |last| last + 1);
        start..end
    }

    /// One or two steps up or down for each of these layers.
    fn shift(&self, genome: &mut [i64], layers: std::ops::Range<usize>, random: &mut ChaCha8Rng) {
        let up = random.random_range(0..2) == 0;
        let steps = random.random_range(1..=2);
        for layer in layers {
            let least = &self.least[layer];
            let (gene, top) = (&mut genome[2 * layer], *least.last().unwrap_or(&0));
            for _ in 0..steps {
                *gene = if up {
                    least.iter().copied().find(|step| step > gene).unwrap_or(top)
                } else {
                    least[usize::try_from(*gene - 1).unwrap_or(0)]
                };
            }
        }
    }

    /// Adds or removes a segment's end, at the next place where one may be.
    fn toggle(&self, genome: &mut [i64], layer: usize) {
        if let Some(end) = (layer..self.ends.len()).find(|at| self.ends[*at]) {
            genome[2 * end + 1] = 1 - genome[2 * end + 1];
        }
    }

    /// Moves a segment's end to the place before or after. The layers in between then fire as often as those on their
    /// new side.
    fn move_end(&self, genome: &mut [i64], end: usize, random: &mut ChaCha8Rng) {
        if genome[2 * end + 1] == 0 {
            return;
        }
        let later = random.random_range(0..2) == 0;
        let other = if later {
            (end + 1..self.ends.len()).find(|at| self.ends[*at])
        } else {
            (0..end).rev().find(|at| self.ends[*at])
        };
        let Some(other) = other else { return };
        genome[2 * end + 1] = 0;
        genome[2 * other + 1] = 1;
        let (range, like) = if later { (end + 1..other + 1, end) } else { (other + 1..end + 1, end + 1) };
        if let Some(step) = genome.get(2 * like).copied() {
            range.for_each(|layer| genome[2 * layer] = step);
        }
    }
}

/// The ladder of numbers of firings: the numbers that the rows per firing of the tallest tensor give, and every height.
fn ladder(heights: &[u64]) -> Vec<u64> {
    let tallest = heights.iter().copied().max().unwrap_or(1);
    let firings = ROWS.iter().map(|rows| tallest.div_ceil(*rows));
    let mut ladder: Vec<u64> = firings.chain(heights.iter().copied()).chain([1]).collect();
    ladder.sort_unstable();
    ladder.dedup();
    ladder
}

#[cfg(test)]
mod tests {
    use csdfc_input::builtin::{self, Builder, ConvOptions};
    use rand::SeedableRng;

    use super::*;
    use crate::frame::task::PartitionTask;

    fn task(network: &Network) -> PartitionedCnn<'_> {
        let partitions =
            vec![PartitionTask { layers: network.ids().collect(), steps: None, stops: Vec::new() }];
        PartitionedCnn { network, workers: 1, partitions, together: vec![vec![false]], streaming: Vec::new() }
    }

    /// Without barriers of its own, a choice gets one after each block that ends whole.
    #[test]
    fn a_choice_without_barriers_gets_those_that_it_means() {
        let network = builtin::network("lenet5").unwrap();
        let task = task(&network);
        let design_space = DesignSpace::new(&task);
        let barriers =
            |choice: &Choice| design_space.choice(&design_space.nearest_genome(choice)).barriers.unwrap();
        let layers: Vec<LayerId> = network.ids().collect();
        let single: Vec<LayerId> = network.ids().filter(|id| network.layer(*id).rows() == 1).collect();
        assert_eq!(barriers(&Choice::none(&network)), layers);
        assert_eq!(barriers(&Choice::all(&network)), single);
        assert_eq!(barriers(&Choice::prefix(&network, 3)), layers[3..]);
    }

    /// No layer fires more often than once per row.
    #[test]
    fn more_firings_than_rows_are_one_per_row() {
        let network = builtin::network("lenet5").unwrap();
        let task = task(&network);
        let design_space = DesignSpace::new(&task);
        let tallest = network.layers.iter().map(|layer| layer.rows() as u64).max().unwrap();
        assert_eq!(design_space.steady(u64::MAX), design_space.steady(tallest));
    }

    /// An input goes as the layer that is the first to read it, wherever the two lie.
    #[test]
    fn inputs_go_as_their_readers() {
        let mut b = Builder::new(1);
        let inputs = ["left", "right"].map(|name| b.input(name, [1, 3, 8, 8]).unwrap());
        let [left, right] = inputs.map(|input| b.conv(&input, 4, [1, 1], ConvOptions::default()).unwrap());
        let sum = b.add(&left, &right).unwrap();
        b.output("sum", &sum).unwrap();
        let network = b.finish();
        let task = task(&network);
        let design_space = DesignSpace::new(&task);
        for rows in [[8, 8, 8, 8, 8], [1, 1, 1, 1, 1], [4, 8, 4, 8, 8], [8, 2, 8, 2, 1]] {
            let reads = Choice { rows: [&[8, 8], &rows[2..]].concat(), ..Choice::all(&network) };
            let choice = Choice { barriers: Some(Vec::new()), ..reads };
            assert_eq!(design_space.choice(&design_space.nearest_genome(&choice)).rows, rows);
        }
    }

    /// The layers between the old end and the new one fire as often as those on their new side.
    #[test]
    fn layers_join_the_segment_that_they_are_moved_to() {
        let network = builtin::network("lenet5").unwrap();
        let task = task(&network);
        let design_space = DesignSpace::new(&task);
        let layers = network.layers.len();
        let genome = |steps: &[i64], end: usize| -> Vec<i64> {
            let ends = (0..layers).map(|at| i64::from(at == end));
            steps.iter().zip(ends).flat_map(|(step, end)| [*step, end]).collect()
        };
        // Places 1, 3 and 4 are those where segments may end.
        let design_space =
            DesignSpace { ends: (0..layers).map(|at| [1, 3, 4].contains(&at)).collect(), ..design_space };
        let steps: Vec<i64> = (0..layers as i64).map(|layer| layer + 10).collect();
        let moved = |layers: std::ops::Range<usize>, like: usize, end: usize| {
            let mut steps = steps.clone();
            let step = steps[like];
            steps[layers].fill(step);
            genome(&steps, end)
        };
        for (end, before, after) in [
            (3, moved(2..4, 4, 1), moved(4..5, 3, 4)),
            (1, genome(&steps, 1), moved(2..4, 1, 3)),
            (4, moved(4..5, 5, 3), genome(&steps, 4)),
            // No segment ends there.
            (2, genome(&steps, layers), genome(&steps, layers)),
        ] {
            let mut seen = [false; 2];
            for seed in 0..8 {
                let mut moved = genome(&steps, if end == 2 { layers } else { end });
                design_space.move_end(&mut moved, end, &mut ChaCha8Rng::seed_from_u64(seed));
                seen[0] |= moved == before;
                seen[1] |= moved == after;
                assert!(moved == before || moved == after, "{end}: {moved:?}");
            }
            assert_eq!(seen, [true; 2], "{end}");
        }
    }
}
