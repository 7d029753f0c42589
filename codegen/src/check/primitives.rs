//! The primitives that are known: what they compute, in which layouts, and what they keep of a layer's parameters.

use crate::operator::Operator;
use crate::plan::{Layer, Layout};
use crate::shape::Shape;

use super::index::Index;
use super::{Findings, Violation, parameters};

/// A row of the table.
pub(super) struct Primitive {
    name: &'static str,
    computes: fn(&Operator) -> bool,
    /// Layout that it reads, and layout that it writes.
    layouts: [Layout; 2],
    /// Bytes that it keeps of a layer's parameters, from the shapes of what the layer reads; none beyond 64 bits.
    pub stored: fn(&Operator, &[&Shape]) -> Option<u64>,
}

const PRIMITIVES: &[Primitive] = &[Primitive {
    name: "generic",
    computes: |_| true,
    layouts: [Layout::Hwc, Layout::Hwc],
    stored: parameters::stored,
}];

/// The primitive of a layer, if it is one that computes it.
pub(super) fn find(layer: &Layer) -> Option<&'static Primitive> {
    PRIMITIVES.iter().find(|row| row.name == layer.primitive && (row.computes)(&layer.operator))
}

/// That each layer has a primitive that computes it, reads tensors as they lie and writes its own as the plan says.
pub(super) fn check(index: &Index<'_>) -> Result<(), Vec<Violation>> {
    let mut findings = Findings::default();
    for cnn in &index.cnns {
        for entry in &cnn.layers {
            let layer = entry.layer;
            let mut wrong = |why: String| {
                let (cnn, layer) = (cnn.cnn.name.clone(), layer.name.clone());
                findings.push(Violation::Operator { cnn, layer, why });
            };
            let Some(primitive) = find(layer) else {
                wrong(format!("no primitive `{}` computes a {}", layer.primitive, layer.operator.kind()));
                continue;
            };
            let stated = [layer.layout_in, layer.layout_out];
            if stated != primitive.layouts {
                let [[reads, writes], [says_in, says_out]] = [primitive.layouts, stated];
                let name = primitive.name;
                wrong(format!("`{name}` reads {reads} and writes {writes}, not {says_in} and {says_out}"));
            }
            if entry.tensor.layout != primitive.layouts[1] {
                let (tensor, stated) = (&entry.tensor.name, entry.tensor.layout);
                wrong(format!("it writes {}, but `{tensor}` is stored as {stated}", primitive.layouts[1]));
            }
            for &read in &entry.inputs {
                let tensor = cnn.layers[read].tensor;
                if tensor.layout != primitive.layouts[0] {
                    let (name, stated) = (&tensor.name, tensor.layout);
                    wrong(format!("it reads {}, but `{name}` is stored as {stated}", primitive.layouts[0]));
                }
            }
        }
    }
    findings.or(())
}
