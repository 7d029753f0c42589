//! How much code a crate has, and how much stack a frame takes, before it is compiled: by tables of what each kernel takes on
//! a processor.
//!
//! A compiler makes the code of a kernel once, however many layers call it, and what several kernels call is there once, too.
//! So the code of a crate is what every crate has, some bytes for each layer, each kernel's own code, and each part that
//! several kernels share and one of these calls. Layers run one after another: the stack is that of the layer that takes most.
//!
//! The tables are measured: `tests/emit/footprint.rs` compiles a crate for each kernel and reads what the linker kept.
//!
//! ```
//! use csdfc_emit::footprint::{KernelCalls, footprints};
//!
//! let (dense, feature) = ("QConv rows u8 u8", "QConv rows u8 u8 +QUANTIZED_DENSE");
//! let footprint = |layers| {
//!     let (kernels, features) = ([(dense.to_owned(), layers)].into(), [feature.to_owned()].into());
//!     footprints(&KernelCalls { kernels, features, ..KernelCalls::default() }).swap_remove(0)
//! };
//! let [few, many] = [1, 30].map(footprint);
//! assert_eq!(few.target, "thumbv7em-none-eabihf");
//! // The kernel's code is there once.
//! assert!(few.code < many.code && many.code < 2 * few.code);
//! assert!(many.small_code < many.code && many.uncounted.is_empty());
//! ```

mod tables;

use std::collections::{BTreeMap, BTreeSet};

use csdfc_plan::format::Element;
use csdfc_plan::plan::Plan;
use csdfc_runtime::bind::{Call, Form, Literal};

use super::error::EmitError;
use super::features::Features;
use super::model::Model;

/// What a crate takes on a processor beside its weights and its arena.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    /// The compiler's name of the target: `thumbv7em-none-eabihf`.
    pub target: &'static str,
    /// The processors that it stands for.
    pub processors: &'static str,
    /// Bytes of code and constants with optimisation for speed.
    pub code: u64,
    /// The same with `opt-level = "s"`, for size.
    pub small_code: u64,
    /// Bytes of stack of a frame, with either optimisation. A kernel that was not measured counts as the one that takes
    /// most.
    pub stack: u64,
    /// Kernels and other things that were not measured, whose code is not counted.
    pub uncounted: BTreeSet<String>,
}

impl Footprint {
    /// What a plan takes on a target, if tables have that.
    ///
    /// # Errors
    /// When the checker refuses the plan, or a layer cannot be computed.
    pub fn of(plan: &Plan, target: &str) -> Result<Option<Self>, EmitError> {
        let all = footprints(&KernelCalls::of(plan)?);
        Ok(all.into_iter().find(|footprint| footprint.target == target))
    }
}

/// Bytes of stack that a frame of a plan takes on a target. None are known of a target without a table, nor of a plan of
/// which no crate can be made: whoever goes on with that says why.
pub fn stack(plan: &Plan, target: Option<&str>) -> u64 {
    let footprint = target.and_then(|target| Footprint::of(plan, target).ok().flatten());
    footprint.map_or(0, |footprint| footprint.stack)
}

/// What precedes the name of a feature that a kernel has.
pub const OF_FEATURE: char = '+';

/// The kernels that a plan calls, which decide about its code and stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelCalls {
    /// The kernels that layers call, by the parameters on which the code depends, and how many layers call each.
    pub kernels: BTreeMap<String, u64>,
    /// The same with each of their features, after [`OF_FEATURE`].
    pub features: BTreeSet<String>,
    /// What else a crate has that no table counts, in words.
    pub uncounted: BTreeSet<&'static str>,
}

impl KernelCalls {
    /// Those of a plan.
    ///
    /// # Errors
    /// When the checker refuses the plan, or a layer cannot be computed.
    pub fn of(plan: &Plan) -> Result<Self, EmitError> {
        super::with_crate(plan, None, String::new(), false, |krate| KernelCalls::of_models(krate.models))
    }

    /// The kernels, and they with their features.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.kernels.keys().chain(&self.features).map(String::as_str)
    }

    pub(super) fn of_models(models: &[Model<'_>]) -> Self {
        let mut all = KernelCalls::default();
        for model in models {
            if model.is_streamed() {
                all.uncounted.insert("weights read from a store");
            }
            if !model.stages.is_empty() || model.threads() > 1 {
                all.uncounted.insert("several workers");
            }
            for (layer, call) in model.calls.iter().enumerate() {
                let Some(call) = call else { continue };
                let kernel = kernel(model, layer, call);
                let features = Features::new(std::iter::once(call));
                all.features
                    .extend(features.names().map(|feature| format!("{kernel} {OF_FEATURE}{feature}")));
                *all.kernels.entry(kernel).or_default() += 1;
            }
        }
        all
    }
}

/// A kernel as the tables name it: its type, its form, the elements that it reads and makes, and the variants among its
/// parameters but for activations, of which [`Features`] tell.
fn kernel(model: &Model<'_>, layer: usize, call: &Call) -> String {
    let layers = &model.cnn().layers;
    let element = |tensor: usize| match layers[tensor].tensor.format.element {
        Element::F32 => "f32",
        Element::F16 => "f16",
        Element::U8 => "u8",
        Element::I64 => "i64",
    };
    let read = layers[layer].inputs.first().map_or("", |&tensor| element(tensor));
    let form = if matches!(call.form, Form::Rows(_)) { "rows" } else { "elements" };
    let kernel = call.literal();
    let mut name = format!("{} {form} {read} {}", kernel.type_name(), element(layer));
    if call.slopes {
        name += " slopes";
    }
    variants(kernel, &mut name);
    name
}

fn variants(literal: &Literal, name: &mut String) {
    match literal {
        Literal::Type { name: "Activation", .. } | Literal::Scalar(_) | Literal::Option(None) => {}
        Literal::Array(items) => items.iter().for_each(|item| variants(item, name)),
        Literal::Option(Some(value)) => variants(value, name),
        Literal::Type { variant, fields, inner, .. } => {
            if let Some(variant) = variant {
                *name += " ";
                *name += variant;
            }
            fields.iter().for_each(|(_, value)| variants(value, name));
            inner.iter().for_each(|inner| variants(inner, name));
        }
    }
}

/// What was measured on a target with one way of optimisation.
#[derive(Debug)]
struct Table {
    /// Bytes of a crate without kernels.
    base: u64,
    /// Bytes of each part that several kernels share.
    shared: &'static [u64],
    /// The kernels, in the order of their names.
    kernels: &'static [(&'static str, Entry)],
}

/// What a kernel takes.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Bytes of code that no other kernel calls.
    own: u64,
    /// Bytes of each layer that calls it.
    layer: u64,
    /// Bytes of stack of a frame of a crate that calls this kernel alone.
    stack: u64,
    /// The shared parts that it calls.
    parts: &'static [u16],
}

impl Table {
    fn entry(&self, kernel: &str) -> Option<Entry> {
        let found = self.kernels.binary_search_by_key(&kernel, |(name, _)| name).ok()?;
        Some(self.kernels[found].1)
    }

    /// Bytes of code, and of stack.
    fn sum(&self, calls: &KernelCalls) -> [u64; 2] {
        let entries: Vec<Entry> = calls.names().filter_map(|kernel| self.entry(kernel)).collect();
        let parts: BTreeSet<u16> = entries.iter().flat_map(|entry| entry.parts).copied().collect();
        let shared: u64 = parts.iter().map(|&part| self.shared[usize::from(part)]).sum();
        let own: u64 = entries.iter().map(|entry| entry.own).sum();
        let known = entries.iter().map(|entry| entry.stack).max();
        let most = self.kernels.iter().map(|(_, entry)| entry.stack).max();
        let is_known = calls.names().all(|kernel| self.entry(kernel).is_some());
        let stack = if is_known { known } else { most };
        let of_layers =
            calls.kernels.iter().filter_map(|(kernel, &count)| Some(self.entry(kernel)?.layer * count));
        let layers: u64 = of_layers.sum();
        [self.base + layers + shared + own, stack.unwrap_or(0)]
    }
}

/// Bytes of stack that the function of a frame may take more in a crate of many layers than in one of a single layer.
const OF_MANY_LAYERS: u64 = 256;

/// What a crate of these takes on each target that was measured.
pub fn footprints(calls: &KernelCalls) -> Vec<Footprint> {
    tables::TARGETS
        .iter()
        .map(|&(target, processors, [fast, small])| {
            let ([code, stack], [small_code, small_stack]) = (fast.sum(calls), small.sum(calls));
            let stack = stack.max(small_stack) + OF_MANY_LAYERS;
            let unknown = calls.names().filter(|kernel| fast.entry(kernel).is_none());
            let uncounted = unknown.chain(calls.uncounted.iter().copied()).map(str::to_owned).collect();
            Footprint { target, processors, code, small_code, stack, uncounted }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Table = Table {
        base: 1000,
        shared: &[200, 300],
        kernels: &[
            ("a", Entry { own: 10, layer: 1, stack: 90, parts: &[0] }),
            ("a +F", Entry { own: 20, layer: 0, stack: 95, parts: &[0, 1] }),
            ("b", Entry { own: 30, layer: 2, stack: 80, parts: &[1] }),
        ],
    };

    fn of(kernels: &[(&str, u64)], features: &[&str]) -> KernelCalls {
        let kernels = kernels.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
        let features = features.iter().map(|&name| name.to_owned()).collect();
        KernelCalls { kernels, features, uncounted: BTreeSet::from(["a store"]) }
    }

    /// A kernel's code is there once, however many layers call it, and so is what two kernels share.
    #[test]
    fn code_is_counted_once() {
        assert_eq!(TABLE.sum(&of(&[("a", 1)], &[])), [1000 + 10 + 200 + 1, 90]);
        assert_eq!(TABLE.sum(&of(&[("a", 5)], &[])), [1000 + 10 + 200 + 5, 90]);
        assert_eq!(TABLE.sum(&of(&[("a", 1), ("b", 1)], &["a +F"])), [1000 + 60 + 500 + 3, 95]);
        // Of a kernel that is not known, the code is not counted.
        assert_eq!(TABLE.sum(&of(&[("c", 1)], &[])), [1000, 95]);
    }

    /// Kernels are looked up by halving.
    #[test]
    fn tables_are_sorted() {
        for (target, _, tables) in tables::TARGETS {
            for table in tables {
                assert!(table.kernels.is_sorted_by(|(a, _), (b, _)| a < b), "{target}");
                let parts = table.kernels.iter().flat_map(|(_, entry)| entry.parts);
                assert!(
                    parts.copied().max().is_none_or(|part| usize::from(part) < table.shared.len()),
                    "{target}"
                );
            }
        }
    }

    #[test]
    fn what_was_not_measured_is_named() {
        let stated = footprints(&of(&[("a kernel of no table", 1)], &[]));
        assert!(!stated.is_empty());
        for footprint in stated {
            let names = ["a kernel of no table", "a store"].map(str::to_owned);
            assert_eq!(footprint.uncounted, BTreeSet::from(names));
        }
    }
}
