//! The baselines of the papers. All of them choose only the primitives of convolutions. Then the other layers take the
//! layouts that cost least.
//!
//! ```
//! use csdfc_select::baselines::{SUM2D, everywhere, family};
//! use csdfc_select::{Instance, Problem};
//!
//! let instance = Instance::parse(
//!     r#"{"layers": [{"name": "conv1", "kind": "conv", "options": [
//!             {"primitive": "sum2d", "in": "CHW", "out": "CHW", "time": 90, "memory": 10},
//!             {"primitive": "im2row-hwc", "in": "HWC", "out": "HWC", "time": 40, "memory": 80}]}],
//!         "edges": []}"#,
//! )?;
//! let problem = Problem::new(&instance, false)?;
//! let selection = everywhere(&problem, &problem.all(), SUM2D)?;
//! assert_eq!(problem.cost(&selection).map(|cost| problem.times.value(cost.time)), Some(90.0));
//! assert_eq!(family("im2row-hwc"), "im2row");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::budget::{self, Nothing};
use crate::instance::LayerKind;
use crate::problem::{Allowed, Candidate, Problem, Selection};
use crate::quantity::Axis;

/// The canonical layout of the PBQP paper (section 5.5).
const CANONICAL: &str = "CHW";

/// The part of a primitive's name that says that it is the sum of single channels.
pub const SUM2D: &str = "sum2d";

/// Why a baseline gives no selection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoBaseline {
    /// A layer has no candidate of the baseline's kind.
    #[error("layer `{layer}` has no primitive {what}")]
    Missing {
        /// The layer.
        layer: String,
        /// What the baseline requires of it.
        what: String,
    },
    /// No conversions lead from a layout to the next.
    #[error("no conversions connect the layouts that it chooses")]
    NoPath,
    /// Nothing is left to replace.
    #[error("no convolution has a smaller primitive left")]
    NothingSmaller,
    /// Somebody asked for the end.
    #[error("interrupted before it was known")]
    Stopped,
}

/// A selection of a family's primitives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FamilyBaseline {
    /// The family: a primitive's name up to the first `-`.
    pub family: String,
    /// Its selection.
    pub selection: Result<Selection, NoBaseline>,
}

/// The family of a primitive.
pub fn family(primitive: &str) -> &str {
    primitive.split('-').next().unwrap_or(primitive)
}

/// Candidates that keep all tensors in CHW (PBQP paper, section 5.5, *local optimal*). Among these, taking the fastest
/// for each layer is also the fastest in sum.
///
/// # Errors
/// When a convolution has none.
pub fn canonical(problem: &Problem<'_>, allowed: &Allowed) -> Result<Allowed, NoBaseline> {
    let is_canonical = |candidate: &Candidate| {
        [candidate.input, candidate.output]
            .iter()
            .all(|layout| problem.instance.layout(*layout).eq_ignore_ascii_case(CANONICAL))
    };
    let mut kept = problem.filtered(allowed, |_, candidate| is_canonical(candidate));
    for (layer, kept) in kept.iter_mut().enumerate().filter(|(_, kept)| kept.is_empty()) {
        if problem.instance.layers[layer].kind == LayerKind::Conv {
            return Err(missing(problem, layer, format!("that reads and writes {CANONICAL}")));
        }
        kept.clone_from(&allowed[layer]);
    }
    Ok(kept)
}

/// The selection in which a primitive with this part in its name computes every convolution. With [`SUM2D`], it is the
/// baseline of both papers (PBQP paper, section 5.2).
///
/// # Errors
/// When a convolution has no such primitive, or its layouts cannot be converted.
pub fn everywhere(problem: &Problem<'_>, allowed: &Allowed, name: &str) -> Result<Selection, NoBaseline> {
    legalised(problem, allowed, |layer| {
        named(problem, allowed, layer, name).ok_or_else(|| missing(problem, layer, format!("named {name}")))
    })
}

/// For each family, the fastest of its primitives for each convolution, or the primitive with this part in its name if
/// that is not slower: [`SUM2D`] in the PBQP paper, section 5.5. This choice ignores conversions, but the cost includes
/// them.
pub fn families(problem: &Problem<'_>, allowed: &Allowed, plain: &str) -> Vec<FamilyBaseline> {
    let convolutions = problem.instance.layers.iter().filter(|layer| layer.kind == LayerKind::Conv);
    let mut families: Vec<&str> =
        convolutions.flat_map(|layer| &layer.options).map(|option| family(&option.primitive)).collect();
    families.sort_unstable();
    families.dedup();
    let bar = |name: &str| {
        let selection = legalised(problem, allowed, |layer| {
            let of_family = allowed[layer].iter().copied();
            let of_family = of_family.filter(|place| family(primitive(problem, layer, *place)) == name);
            let time = |place: &usize| problem.candidates[layer][*place].time;
            let found = named(problem, allowed, layer, plain).into_iter().chain(of_family).min_by_key(time);
            found.ok_or_else(|| missing(problem, layer, format!("of family {name}, and none named {plain}")))
        });
        FamilyBaseline { family: name.into(), selection }
    };
    families.into_iter().map(bar).collect()
}

/// TASO paper, section 5.3.2: from a selection of least time, the primitive of the largest footprint is replaced by the
/// fastest of a smaller footprint, until the budget `holds`.
///
/// The paper leaves two things open. Here *fastest* means the primitive's own time, without conversions. And among the
/// layers that still have a smaller primitive, the one with the largest footprint is changed.
///
/// # Errors
/// When nothing can be replaced any more, or layouts cannot be converted.
pub fn greedy(
    problem: &Problem<'_>,
    allowed: &Allowed,
    start: Selection,
    holds: impl Fn(&Selection) -> bool,
) -> Result<Selection, NoBaseline> {
    let mut selection = start;
    while !holds(&selection) {
        while !holds(&selection) {
            let (layer, place) =
                replacement(problem, allowed, &selection).ok_or(NoBaseline::NothingSmaller)?;
            selection[layer] = place;
        }
        // Other layers may have memories too. So the budget may be exceeded again.
        selection = legalised(problem, allowed, |layer| Ok(selection[layer]))?;
    }
    Ok(selection)
}

/// The convolution of most memory that has a smaller candidate, and the fastest of these.
fn replacement(problem: &Problem<'_>, allowed: &Allowed, selection: &Selection) -> Option<(usize, usize)> {
    let mut largest: Option<(u64, usize, usize)> = None;
    for (layer, of_layer) in problem.instance.layers.iter().enumerate() {
        let memory = problem.taken(selection, layer).memory;
        if of_layer.kind != LayerKind::Conv || largest.is_some_and(|(most, ..)| memory <= most) {
            continue;
        }
        let candidate = |place: &usize| &problem.candidates[layer][*place];
        let smaller = allowed[layer].iter().filter(|place| candidate(place).memory < memory);
        let fastest = smaller.min_by_key(|place| (candidate(place).time, candidate(place).memory));
        if let Some(fastest) = fastest {
            largest = Some((memory, layer, *fastest));
        }
    }
    largest.map(|(_, layer, place)| (layer, place))
}

/// The fastest of the selections with these candidates for convolutions.
fn legalised(
    problem: &Problem<'_>,
    allowed: &Allowed,
    chosen: impl Fn(usize) -> Result<usize, NoBaseline>,
) -> Result<Selection, NoBaseline> {
    let mut fixed = allowed.clone();
    for (layer, places) in fixed.iter_mut().enumerate() {
        if problem.instance.layers[layer].kind == LayerKind::Conv {
            *places = vec![chosen(layer)?];
        }
    }
    match budget::least_within_budget(problem, &fixed, Axis::Time, None) {
        Ok(least) => Ok(least.selection),
        Err(Nothing::Stopped) => Err(NoBaseline::Stopped),
        Err(Nothing::NoPath | Nothing::Unknown | Nothing::OverBudget(_)) => Err(NoBaseline::NoPath),
    }
}

/// The candidate of a layer with this part in its name, if there is one.
fn named(problem: &Problem<'_>, allowed: &Allowed, layer: usize, name: &str) -> Option<usize> {
    let is_named = |place: &usize| primitive(problem, layer, *place).split('-').any(|part| part == name);
    allowed[layer].iter().copied().find(is_named)
}

fn primitive<'p>(problem: &'p Problem<'_>, layer: usize, place: usize) -> &'p str {
    let option = problem.candidates[layer][place].option;
    &problem.instance.layers[layer].options[option].primitive
}

fn missing(problem: &Problem<'_>, layer: usize, what: String) -> NoBaseline {
    NoBaseline::Missing { layer: problem.instance.layers[layer].name.clone(), what }
}
