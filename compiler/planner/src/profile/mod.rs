//! Measures a processor: how long each layer of a network takes with each primitive that computes it.
//!
//! A layer is timed *in place*, in a network that runs. The layers before it have filled the caches, as in every frame
//! of an application. Each *trial* is the network with some primitive for every layer; layers of the same scenario get
//! different primitives. Conversions are inserted where two layouts meet, and are timed as well. The time of a firing
//! begins at the end of the firing before it, so the times of all firings add up to the time of the frame.
//!
//! The speed of a machine drifts, by 1.8 times within minutes on a shared one. So trials are interleaved, in rounds,
//! with frames of a *reference*: the network with its first primitives. A layer's time is the least of a few frames.
//! Its unit is a frame of the reference that ran just before, as the sum of the least times of its layers. In the end,
//! this time is multiplied by the median of all frames of the reference, so the times of a plan add up to the usual
//! time of a frame.
//!
//! Most of a hundred primitives are far from the fastest. One that takes three times as long as the fastest is timed
//! once.
//!
//! ```
//! use csdfc_input::device::measured::scenario;
//! use csdfc_planner::open::open;
//! use csdfc_planner::profile::{Request, measure};
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let request = Request { threads: 1, rounds: 1, only: Some("im2row".into()) };
//! let mut known = Vec::new();
//! measure(&application, 0, &request, &mut known, &mut |_, _| Ok(true))?;
//!
//! // The first convolution with its first primitive and with others, row by row and in one firing.
//! let of_conv = scenario(&application.cnns[0].network.layers[1]);
//! let measured = known.iter().find(|measured| measured.scenario == of_conv).ok_or("not measured")?;
//! assert!(measured.times.contains_key("indirect-gemm-hwc-hwc"));
//! assert!(measured.times.contains_key("im2row-strip-hwc-hwc"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod board;
mod frames;
/// The processor of this machine, and its caches.
///
/// ```
/// use csdfc_planner::profile::machine;
///
/// assert_eq!(machine::named("processor\t: 0\nmodel name\t: Cortex-A57\n"), Some("Cortex-A57"));
/// assert_eq!(machine::named("processor\t: 0\n"), None);
/// ```
// The example stands here, since a crate that measures a board has a copy of the file.
pub mod machine;
mod rates;
mod speeds;
mod store;
mod tally;
mod trial;

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::device::measured::{Measured, scenario};
use csdfc_network::pass;
use csdfc_network::{Layer, Network};
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::Primitive;

use self::tally::{Key, Mode, Tally};
use self::trial::Trial;
use crate::error::Error;

pub use board::{Board, board};
pub use rates::processor;
pub use store::{Reading, store};

/// How layers fire in trials, and the rows with which such trials are planned.
const MODES: [(Mode, RowsChoice); 2] = [(Mode::Whole, RowsChoice::None), (Mode::ByRows, RowsChoice::All)];

/// What to measure.
#[derive(Debug, Clone)]
pub struct Request {
    /// Workers that share each firing.
    pub threads: usize,
    /// How often each layer is timed with each primitive.
    pub rounds: usize,
    /// If given, only primitives whose name contains this are tried, in addition to the first one of each layer.
    pub only: Option<String>,
}

/// How far a measurement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Times taken, of layers with primitives.
    pub done: usize,
    /// Times still to be taken, at most.
    pub left: usize,
}

/// Is told how far a measurement is and what is known by now, and says whether to go on.
pub type Tell<'a> = &'a mut dyn FnMut(Progress, &[Measured]) -> Result<bool, Error>;

/// Measures the layers of a CNN, and adds what it finds to `known`. What is known is not measured again. `tell` is told
/// after each trial.
///
/// # Errors
/// When the network cannot be planned or run.
pub fn measure(
    application: &Application,
    cnn: usize,
    request: &Request,
    known: &mut Vec<Measured>,
    tell: Tell<'_>,
) -> Result<(), Error> {
    let network = application.cnns[cnn].network.clone().in_memory();
    let network = &network.map_err(|(layer, error)| Error::weights(&layer, &error))?;
    let mut tally = Tally::new(request.threads as u64, request.rounds, known);
    expect(network, request, &mut tally);
    let planned = Trial::plan(application, cnn, network.clone(), RowsChoice::None, request.threads)?;
    let mut reference = Trial::new(&planned)?;
    for (mode, rows) in MODES {
        while tally.left(mode) > 0 {
            let variant = with_primitives(network, &choices(network, &mut tally, mode));
            let planned = Trial::plan(application, cnn, variant, rows.clone(), request.threads)?;
            let mut trial = Trial::new(&planned)?;
            let frames = reference.frames()?;
            tally.reference(&frames.whole);
            let undisturbed: f64 = frames.least.iter().sum();
            let frames = trial.frames()?;
            for (layer, rows, ns) in trial.layers(&frames) {
                let key = Key { scenario: scenario(layer), primitive: layer.primitive() };
                tally.add(key, rows, ns / undisturbed);
            }
            tally.publish(known);
            let left = tally.left(Mode::Whole) + tally.left(Mode::ByRows);
            if !tell(Progress { done: tally.done(), left }, known)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Notes what is to be timed of a network.
fn expect(network: &Network, request: &Request, tally: &mut Tally) {
    for layer in network.layers.iter().filter(|layer| !layer.is_input()) {
        let scenario = scenario(layer);
        for primitive in alternatives(network, layer, request.only.as_deref()) {
            tally.expect(Key { scenario: scenario.clone(), primitive });
        }
    }
}

/// The primitives that are tried for a layer: the first that computes it, and others. If the layer sees an operand in
/// other dimensions than the tensor has, only the first is tried.
pub(crate) fn alternatives<'a>(
    network: &'a Network,
    layer: &'a Layer,
    only: Option<&'a str>,
) -> impl Iterator<Item = Primitive> + 'a {
    let first = layer.primitive();
    let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
    let sees_views = layer.inputs.iter().any(|operand| network.layer(operand.layer).shape != operand.shape);
    let suits = move |primitive: &Primitive| {
        !sees_views
            && primitive.elements() == first.elements()
            && primitive.is_mixed() == first.is_mixed()
            && primitive.scaled_weight() == first.scaled_weight()
            && primitive.computes(&layer.operator, &inputs)
            && only.is_none_or(|only| primitive.name().contains(only))
    };
    Primitive::all().filter(move |primitive| *primitive == first || suits(primitive))
}

/// For each layer of the network, the alternative that was tried least often; `None` if none is left to try.
fn choices(network: &Network, tally: &mut Tally, mode: Mode) -> Vec<Option<Primitive>> {
    let choose = |layer: &Layer| if layer.is_input() { None } else { tally.choose(&scenario(layer), mode) };
    network.layers.iter().map(choose).collect()
}

/// The network with the chosen primitive of each layer, or its first primitive, and with conversions where layouts
/// meet.
fn with_primitives(network: &Network, choices: &[Option<Primitive>]) -> Network {
    let mut variant = network.clone();
    for (layer, chosen) in variant.layers.iter_mut().zip(choices) {
        if let Some(chosen) = chosen.filter(|chosen| *chosen != layer.primitive()) {
            layer.primitive = Some(chosen);
        }
    }
    pass::legalise(variant)
}
