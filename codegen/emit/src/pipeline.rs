//! Which partitions of a model are stages of a pipeline, and the rings between them.

use csdfc_plan::check::{Allocation, CnnIndex, Resolved, RowOrder};

use super::names::{Names, camel};

/// A partition that runs at the same time as others.
pub(super) struct Stage {
    /// Index in the plan's partitions.
    pub partition: usize,
    /// Its name in the plan.
    pub label: String,
    /// Name of its variables and of its rings' module.
    pub name: String,
    /// Name of its structure.
    pub kind: String,
    /// The allocations that its layers write or read.
    pub allocations: Vec<usize>,
    /// Whether a layer of it takes network inputs.
    pub takes_inputs: bool,
    /// Whether a layer of it makes network outputs.
    pub makes_outputs: bool,
}

/// A ring of rows from one stage to another.
pub(super) struct Link {
    pub allocation: usize,
    /// The stages, by their places in the pipeline.
    pub from: usize,
    pub to: usize,
    /// Field of the stage that writes.
    pub writer: String,
    /// Field of the stage that reads.
    pub reader: String,
    /// The layers that read.
    pub readers: Vec<usize>,
}

/// The data of a CNN's layers from which its stages are found.
pub(super) struct Layers<'a> {
    /// The name of each layer's method.
    pub methods: &'a [String],
    /// Whether a layer reads what the caller hands over.
    pub takes_inputs: &'a dyn Fn(usize) -> bool,
    /// Whether a layer makes a network output.
    pub is_output: &'a dyn Fn(usize) -> bool,
}

/// The stages of a CNN, and the rings between them; none if it is no pipeline. `fields` are the fields of stages that
/// have names already.
pub(super) fn find(
    resolved: &Resolved<'_>,
    c: usize,
    known: &Layers<'_>,
    mut fields: Names,
) -> (Vec<Stage>, Vec<Link>) {
    let (cnn, allocations): (&CnnIndex<'_>, &[Allocation]) =
        (&resolved.index.cnns[c], &resolved.allocations[c]);
    let [group] = cnn.groups.as_slice() else { return (Vec::new(), Vec::new()) };
    if group.len() < 2 {
        return (Vec::new(), Vec::new());
    }
    let mut names = Names::except(&["inputs", "outputs", "links", "parts", "scope", "ended", "ring"]);
    let stage = |&partition: &usize| {
        let label = &resolved.index.partitions[partition].partition.name;
        let name = names.give(label);
        let here = |l: usize| cnn.layers[l].partition == partition;
        let layers = || (0..cnn.layers.len()).filter(|&l| here(l));
        let is_touched = |&s: &usize| {
            let allocation = &allocations[s];
            here(allocation.tensor) || allocation.readers.iter().any(|&reader| here(reader))
        };
        Stage {
            partition,
            label: label.clone(),
            kind: camel(&name) + "Stage",
            name,
            allocations: (0..allocations.len()).filter(is_touched).collect(),
            takes_inputs: layers().any(known.takes_inputs),
            makes_outputs: layers().any(known.is_output),
        }
    };
    let stages: Vec<Stage> = group.iter().map(stage).collect();
    let place = |layer: usize| group.iter().position(|&p| p == cnn.layers[layer].partition);
    let mut links = Vec::new();
    for (s, allocation) in
        allocations.iter().enumerate().filter(|(_, allocation)| allocation.kind != RowOrder::Restarts)
    {
        let Some(from) = place(allocation.tensor) else { continue };
        for to in 0..stages.len() {
            let reads = |&reader: &usize| place(reader) == Some(to);
            let readers: Vec<usize> = allocation.readers.iter().copied().filter(reads).collect();
            if to != from && !readers.is_empty() {
                let method = &known.methods[allocation.tensor];
                let writer = fields.give(&format!("{method}_to_{}", stages[to].name));
                let reader = fields.give(&format!("{method}_from_{}", stages[from].name));
                links.push(Link { allocation: s, from, to, writer, reader, readers });
            }
        }
    }
    (stages, links)
}
