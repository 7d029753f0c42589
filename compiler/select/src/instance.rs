//! A selection problem as plain data, and its JSON form.
//!
//! ```json
//! {"layers": [{"name": "conv1", "kind": "conv", "options": [
//!     {"primitive": "im2col-nn-chw-hwc", "in": "CHW", "out": "HWC", "time": 120.5, "memory": 64}]}],
//!  "edges": [{"from": "conv1", "to": "pool1", "conversions": [{"in": "HWC", "out": "CHW", "time": 8}]}],
//!  "memory_budget": 4096, "time_budget": 5000}
//! ```
//!
//! Times are in µs and memories in KiB. A layer of kind `pass` is not a convolution; it has one option for each layout
//! that it can keep. A conversion that is missing is impossible, but conversions may follow one another.
//!
//! ```
//! use csdfc_select::Instance;
//! use csdfc_select::instance::LayerKind;
//!
//! let instance = Instance::parse(
//!     r#"{"layers": [{"name": "pool1", "kind": "pass", "options": [
//!             {"primitive": "max", "in": "CHW", "out": "CHW", "time": 8, "memory": 0}]}],
//!         "edges": [], "memory_budget": 4096}"#,
//! )?;
//! assert_eq!((instance.layers[0].kind, instance.memory_budget), (LayerKind::Pass, Some(4096.0)));
//! assert_eq!(instance.layout(instance.layers[0].options[0].output), "CHW");
//! assert!(Instance::parse(r#"{"layers": [], "edges": []}"#).is_err());
//! # Ok::<(), csdfc_select::InstanceError>(())
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Maximum number of layouts of an instance.
pub const MAX_LAYOUTS: usize = 64;

/// A layout, as its place among an instance's layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Layout(pub u8);

/// Layers, edges and budgets.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// The layers.
    pub layers: Vec<Layer>,
    /// The tensors between them; the graph is acyclic.
    pub edges: Vec<Edge>,
    /// Maximum memory, summed over layers, in KiB.
    pub memory_budget: Option<f64>,
    /// Maximum time, in µs.
    pub time_budget: Option<f64>,
    /// Names of the layouts.
    pub layouts: Vec<String>,
}

/// A layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Its name, which no other layer has.
    pub name: String,
    /// Its kind.
    pub kind: LayerKind,
    /// The primitives that compute it; never empty.
    pub options: Vec<PrimitiveOption>,
}

/// Kinds of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LayerKind {
    /// A convolution.
    Conv,
    /// Any other layer.
    Pass,
}

/// A primitive that computes a layer.
#[derive(Debug, Clone, PartialEq)]
pub struct PrimitiveOption {
    /// Its name.
    pub primitive: String,
    /// The layout that it reads.
    pub input: Layout,
    /// The layout that it writes.
    pub output: Layout,
    /// In µs, at least 0.
    pub time: f64,
    /// In KiB, at least 0.
    pub memory: f64,
}

/// A tensor between two layers.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// The layer that writes it.
    pub from: usize,
    /// The layer that reads it.
    pub to: usize,
    /// The routines that convert a tensor of its size.
    pub conversions: Vec<Conversion>,
}

/// A routine that converts a tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conversion {
    /// The layout that it reads.
    pub input: Layout,
    /// The layout that it writes.
    pub output: Layout,
    /// In µs, at least 0.
    pub time: f64,
}

/// What is wrong with an instance.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// The text is not JSON, or not of this form.
    #[error("{0}")]
    Json(String),
    /// There is no layer.
    #[error("`layers` is empty")]
    NoLayers,
    /// Two layers of one name.
    #[error("layer {index} has the name of an earlier one, `{name}`")]
    DuplicateName {
        /// The later one, counted from 1.
        index: usize,
        /// Their name.
        name: String,
    },
    /// A layer that nothing computes.
    #[error("layer `{0}` has no options")]
    NoOptions(String),
    /// An edge to or from no layer.
    #[error("edge {edge}: there is no layer `{name}`")]
    UnknownLayer {
        /// The edge, counted from 1.
        edge: usize,
        /// The name.
        name: String,
    },
    /// A time, memory or budget that is negative or not finite.
    #[error("{place}: {value} is no {what}: give a number of at least 0")]
    BadNumber {
        /// Where it stands.
        place: String,
        /// `time` or `memory`.
        what: &'static str,
        /// The number.
        value: f64,
    },
    /// More layouts than [`MAX_LAYOUTS`].
    #[error("there are more than {MAX_LAYOUTS} layouts")]
    TooManyLayouts,
    /// The edges close a cycle.
    #[error("the edges close a cycle through layer `{0}`")]
    Cycle(String),
    /// A layer that is not a convolution changes the layout.
    #[error(
        "layer `{layer}`: its option {option} reads {input} and writes {output}, but a layer of kind `pass` keeps its layout"
    )]
    PassConverts {
        /// The layer.
        layer: String,
        /// The option, counted from 1.
        option: usize,
        /// The layout that it reads.
        input: String,
        /// The layout that it writes.
        output: String,
    },
    /// Sums would not be exact.
    #[error("the sum of all {0} is too large: it must be below 9e15")]
    TooLarge(&'static str),
}

impl InstanceError {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            InstanceError::Json(_) | InstanceError::NoLayers => {
                "an instance is {\"layers\": [{\"name\", \"kind\", \"options\": [{\"primitive\", \"in\", \"out\", \"time\", \
                 \"memory\"}]}], \"edges\": [{\"from\", \"to\", \"conversions\": [{\"in\", \"out\", \"time\"}]}]}"
            }
            InstanceError::DuplicateName { .. } => "give each layer a name of its own",
            InstanceError::NoOptions(_) => {
                "list the primitives that compute it, with their layouts, times and memories"
            }
            InstanceError::UnknownLayer { .. } => "`from` and `to` are names of layers",
            InstanceError::BadNumber { .. } => "times are in µs, memories in KiB",
            InstanceError::TooManyLayouts => "a layout is a name such as CHW or HWC",
            InstanceError::Cycle(_) => "edges lead from a layer to those that read its output",
            InstanceError::PassConverts { .. } => {
                "give it one option for each layout, or let such layers convert for nothing with --pass-converts"
            }
            InstanceError::TooLarge(_) => "leave out options that nobody would take",
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct InstanceText {
    layers: Vec<LayerText>,
    edges: Vec<EdgeText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_budget: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_budget: Option<f64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerText {
    name: String,
    kind: LayerKind,
    options: Vec<OptionText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OptionText {
    primitive: String,
    #[serde(rename = "in")]
    input: String,
    #[serde(rename = "out")]
    output: String,
    time: f64,
    memory: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EdgeText {
    from: String,
    to: String,
    conversions: Vec<ConversionText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConversionText {
    #[serde(rename = "in")]
    input: String,
    #[serde(rename = "out")]
    output: String,
    time: f64,
}

/// Layouts get numbers in the order in which they appear.
#[derive(Default)]
struct Layouts {
    numbers: BTreeMap<String, Layout>,
    names: Vec<String>,
}

impl Layouts {
    fn number(&mut self, name: String) -> Result<Layout, InstanceError> {
        if let Some(layout) = self.numbers.get(&name) {
            return Ok(*layout);
        }
        if self.names.len() == MAX_LAYOUTS {
            return Err(InstanceError::TooManyLayouts);
        }
        let layout = Layout(self.names.len() as u8);
        self.names.push(name.clone());
        self.numbers.insert(name, layout);
        Ok(layout)
    }
}

impl Instance {
    /// Reads an instance from JSON.
    ///
    /// # Errors
    /// When it is not in the form, or contradicts itself.
    pub fn parse(text: &str) -> Result<Instance, InstanceError> {
        let text: InstanceText =
            serde_json::from_str(text).map_err(|error| InstanceError::Json(error.to_string()))?;
        let mut layouts = Layouts::default();
        let mut names = BTreeMap::new();
        let mut layers = Vec::new();
        for (index, layer) in text.layers.into_iter().enumerate() {
            if names.insert(layer.name.clone(), index).is_some() {
                return Err(InstanceError::DuplicateName { index: index + 1, name: layer.name });
            }
            layers.push(bind_layer(layer, &mut layouts)?);
        }
        let mut edges = Vec::new();
        for (index, edge) in text.edges.into_iter().enumerate() {
            let layer = |name: &str| {
                let unknown = || InstanceError::UnknownLayer { edge: index + 1, name: name.into() };
                names.get(name).copied().ok_or_else(unknown)
            };
            let (from, to) = (layer(&edge.from)?, layer(&edge.to)?);
            let place = || format!("edge {} → {}", edge.from, edge.to);
            let mut conversions = Vec::new();
            for conversion in edge.conversions {
                let (input, output) = (layouts.number(conversion.input)?, layouts.number(conversion.output)?);
                let time = number("time", conversion.time, place)?;
                conversions.push(Conversion { input, output, time });
            }
            edges.push(Edge { from, to, conversions });
        }
        let budget = |what, value: Option<f64>| {
            value.map(|value| number(what, value, || format!("{what}_budget"))).transpose()
        };
        let instance = Instance {
            memory_budget: budget("memory", text.memory_budget)?,
            time_budget: budget("time", text.time_budget)?,
            layers,
            edges,
            layouts: layouts.names,
        };
        instance.check_graph()?;
        Ok(instance)
    }

    /// The instance as JSON, which [`parse`](Instance::parse) reads.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn to_json(&self) -> Result<String, InstanceError> {
        let name = |layout: Layout| self.layout(layout).to_owned();
        let option = |option: &PrimitiveOption| OptionText {
            primitive: option.primitive.clone(),
            input: name(option.input),
            output: name(option.output),
            time: option.time,
            memory: option.memory,
        };
        let layer = |layer: &Layer| LayerText {
            name: layer.name.clone(),
            kind: layer.kind,
            options: layer.options.iter().map(option).collect(),
        };
        let conversion = |conversion: &Conversion| ConversionText {
            input: name(conversion.input),
            output: name(conversion.output),
            time: conversion.time,
        };
        let edge = |edge: &Edge| EdgeText {
            from: self.layers[edge.from].name.clone(),
            to: self.layers[edge.to].name.clone(),
            conversions: edge.conversions.iter().map(conversion).collect(),
        };
        let text = InstanceText {
            layers: self.layers.iter().map(layer).collect(),
            edges: self.edges.iter().map(edge).collect(),
            memory_budget: self.memory_budget,
            time_budget: self.time_budget,
        };
        serde_json::to_string_pretty(&text).map_err(|error| InstanceError::Json(error.to_string()))
    }

    /// The name of a layout.
    pub fn layout(&self, layout: Layout) -> &str {
        &self.layouts[usize::from(layout.0)]
    }

    fn check_graph(&self) -> Result<(), InstanceError> {
        if self.layers.is_empty() {
            return Err(InstanceError::NoLayers);
        }
        let mut readers = vec![Vec::new(); self.layers.len()];
        let mut waits = vec![0_usize; self.layers.len()];
        for edge in &self.edges {
            readers[edge.from].push(edge.to);
            waits[edge.to] += 1;
        }
        let mut ready: Vec<usize> = (0..waits.len()).filter(|layer| waits[*layer] == 0).collect();
        while let Some(layer) = ready.pop() {
            for &reader in &readers[layer] {
                waits[reader] -= 1;
                if waits[reader] == 0 {
                    ready.push(reader);
                }
            }
        }
        match waits.iter().position(|waits| *waits > 0) {
            None => Ok(()),
            Some(mut layer) => {
                // Each layer that still waits has a writer that still waits. So enough steps back lead into a cycle.
                let mut writers = vec![layer; self.layers.len()];
                for edge in self.edges.iter().filter(|edge| waits[edge.from] > 0) {
                    writers[edge.to] = edge.from;
                }
                for _ in 0..self.layers.len() {
                    layer = writers[layer];
                }
                Err(InstanceError::Cycle(self.layers[layer].name.clone()))
            }
        }
    }
}

fn bind_layer(text: LayerText, layouts: &mut Layouts) -> Result<Layer, InstanceError> {
    if text.options.is_empty() {
        return Err(InstanceError::NoOptions(text.name));
    }
    let mut options = Vec::new();
    for option in text.options {
        let place = || format!("layer `{}`, option `{}`", text.name, option.primitive);
        let (time, memory) = (number("time", option.time, place)?, number("memory", option.memory, place)?);
        let (input, output) = (layouts.number(option.input)?, layouts.number(option.output)?);
        options.push(PrimitiveOption { primitive: option.primitive, input, output, time, memory });
    }
    Ok(Layer { name: text.name, kind: text.kind, options })
}

fn number(what: &'static str, value: f64, place: impl Fn() -> String) -> Result<f64, InstanceError> {
    match value.is_finite() && value >= 0.0 {
        true => Ok(value),
        false => Err(InstanceError::BadNumber { place: place(), what, value }),
    }
}
