//! How many weight tiles must be in flight, so that reading them hides behind computing. The dataflow engine
//! answers this, as it does for any ring.
//!
//! The store is one actor; each of its phases reads a tile. Computing is the other actor; its phases are the firings
//! of a frame, in their order. The tokens of the channel between them are tiles. A firing acquires the tiles that it
//! is the first to use, and releases the tiles that it is the last to use. A second channel carries a token that says
//! that a frame begins. So the capacity of the first channel is the number of tiles that are being read or kept at a
//! time, and [`csdf::pareto`] trades it for time. This analysis does not count bytes: tiles differ in size, and the
//! planner decides where each finds room.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::app::spec::WeightsPlace;
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_plan::timeline::timeline;
//! use csdfc_planner::driver;
//! use csdfc_planner::explain::flight::flights;
//! use csdfc_planner::open::open;
//!
//! let mut opened = open("builtin:lenet5")?;
//! opened.spec.weights = WeightsPlace::Streamed;
//! let application = opened.resolve()?;
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let plan = driver::plan(&application, &device, vec!["builtin:lenet5".into()])?.plan;
//! let timeline = timeline(&plan).map_err(|violations| violations[0].to_string())?;
//! let flights = flights(&plan, &timeline, 0);
//!
//! // Each tile more in flight makes the frame shorter.
//! assert!(flights.len() > 1);
//! assert!(flights.windows(2).all(|pair| pair[0].tiles < pair[1].tiles && pair[0].ns > pair[1].ns));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use csdf::{Actor, Budget, Channel, Graph, Rates, Reader, StorageOptions, Throughput};
use csdfc_plan::plan::Plan;
use csdfc_plan::timeline::Timeline;

/// Steps of the analysis, at most: some tenths of a second, which come after the time that a search was given.
const WORK: u64 = 1 << 24;

/// The time of a frame with a number of tiles in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flight {
    /// Tiles that are being read or are kept for a firing, at most.
    pub tiles: u64,
    /// Nanoseconds of a frame.
    pub ns: u64,
}

/// The trade-off of a CNN between tiles in flight and the time of a frame. It reaches from the least number of tiles
/// to the number beyond which more tiles gain nothing. Empty if the CNN reads no weights, if it is a pipeline, or if
/// the analysis takes too long.
pub fn flights(plan: &Plan, timeline: &Timeline, cnn: usize) -> Vec<Flight> {
    let work = |frame: Frame| {
        let budget = Budget { work: WORK, ..Budget::default() };
        csdf::pareto(&frame.graph()?, &StorageOptions { budget, ..StorageOptions::default() })
    };
    let front = Frame::new(plan, timeline, cnn).map(work).and_then(Result::ok).filter(|front| front.complete);
    let points = front.into_iter().flat_map(|front| front.points);
    let flight = |point: csdf::Storage| match point.throughput {
        // One token says that a frame begins.
        Throughput::Finite(rate) => {
            let ns = rate.inverse()?.to_f64().round() as u64;
            Some(Flight { tiles: point.total.checked_sub(1)?, ns })
        }
        Throughput::Unbounded => None,
    };
    points.filter_map(flight).collect()
}

/// A frame, as the two actors see it. Times are in nanoseconds.
#[derive(Default)]
struct Frame {
    /// The time to read each tile, in the order in which tiles are read.
    reads: Vec<u64>,
    /// For each phase of computing, its time, and how many tiles it acquires and releases.
    computes: Vec<u64>,
    acquires: Vec<u64>,
    releases: Vec<u64>,
}

impl Frame {
    fn new(plan: &Plan, timeline: &Timeline, cnn: usize) -> Option<Frame> {
        let layers = &plan.cnns[cnn].layers;
        let loads = timeline.loads.iter().filter(|load| load.cnn == cnn);
        let mut frame = Frame::default();
        let mut tiles = vec![Vec::new(); layers.len()];
        for load in loads {
            if load.frame > 0 {
                return None;
            }
            frame.reads.push((load.end_ns - load.start_ns).round() as u64);
            tiles[load.layer].push(load.bytes);
        }
        for firing in timeline.firings.iter().filter(|firing| firing.cnn == cnn) {
            let layer = &layers[firing.layer];
            let ns = layer.time.map_or(0.0, |time| time.ns) / layer.firings.max(1) as f64;
            let (is_first, is_last) = (firing.firing == 0, firing.firing + 1 == layer.firings);
            match tiles[firing.layer].as_slice() {
                // Each firing of a layer in tiles uses all its tiles, one after another.
                all @ [_, _, ..] => {
                    let own = all.len() / layer.times_read().max(1) as usize;
                    let own = all.get(own * firing.firing as usize..own * (firing.firing as usize + 1))?;
                    let sum: u64 = own.iter().sum();
                    for bytes in own {
                        frame.phase(ns * *bytes as f64 / sum.max(1) as f64, 1, 1);
                    }
                }
                [_] if is_first || is_last => frame.phase(ns, u64::from(is_first), u64::from(is_last)),
                _ => frame.phase(ns, 0, 0),
            }
        }
        (!frame.reads.is_empty()).then_some(frame)
    }

    /// Adds a phase, or time to the one before it if neither acquires or releases anything.
    fn phase(&mut self, ns: f64, acquires: u64, releases: u64) {
        let ns = ns.round() as u64;
        match (self.computes.last_mut(), self.acquires.last(), self.releases.last()) {
            (Some(before), Some(0), Some(0)) if acquires + releases == 0 => *before += ns,
            _ => {
                self.computes.push(ns);
                self.acquires.push(acquires);
                self.releases.push(releases);
            }
        }
    }

    fn graph(&self) -> Result<Graph, csdf::Error> {
        let mut graph = Graph::new();
        let mut actor = |name: &str, times: &[u64]| {
            let execution_times = Rates::from_sequence(times);
            graph.add_actor(Actor { execution_times, ..Actor::new(name, times.len() as u64) })
        };
        let [store, computing] = [actor("store", &self.reads)?, actor("computing", &self.computes)?];
        let reader = Reader {
            actor: computing,
            acquire: Rates::from_sequence(&self.acquires),
            release: Rates::from_sequence(&self.releases),
        };
        let each = Rates::constant(self.reads.len() as u64, 1);
        graph.add_channel(Channel::new("tiles", store, each, vec![reader]))?;
        let at = |place: usize, phases: usize| {
            let mut once = vec![0; phases];
            once[place] = 1;
            Rates::from_sequence(&once)
        };
        let ended = at(self.computes.len() - 1, self.computes.len());
        let begins = Reader::consuming(store, at(0, self.reads.len()));
        let frames = Channel::new("frames", computing, ended, vec![begins]);
        graph.add_channel(Channel { initial_tokens: 1, capacity: Some(1), ..frames })?;
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(frame: &Frame) -> Vec<(u64, String)> {
        let front = csdf::pareto(&frame.graph().unwrap(), &StorageOptions::default()).unwrap();
        assert!(front.complete);
        front.points.iter().map(|point| (point.total - 1, point.throughput.to_string())).collect()
    }

    #[test]
    fn each_tile_in_flight_hides_more_until_nothing_is_left_to_hide() {
        // Reads of 10; 30 are computed before the first is used, and 2 with each.
        let mut frame = Frame { reads: vec![10; 4], ..Frame::default() };
        frame.phase(20.0, 0, 0);
        frame.phase(10.0, 0, 0);
        for _ in 0..4 {
            frame.phase(2.0, 1, 1);
        }
        // One: a read begins when the tile before has been used, 30 + 2 + 3 (10 + 2). Two: the second is read by then, and
        // the third and fourth begin after the first: 30 + 2 + 10 + 10 + 2. Three: 30 + 2 + 2 + 2 and the fourth, which
        // begins at 32. Four: it is read in 40, and used then.
        let expected = [(1, "1/68"), (2, "1/54"), (3, "1/44"), (4, "1/42")];
        assert_eq!(front(&frame), expected.map(|(tiles, rate)| (tiles, rate.to_owned())));
    }

    #[test]
    fn a_tile_is_kept_until_its_last_firing() {
        let mut frame = Frame { reads: vec![10, 10], ..Frame::default() };
        // Two layers by parts, that fire by turns.
        for (acquires, releases) in [(1, 0), (1, 0), (0, 1), (0, 1)] {
            frame.phase(5.0, acquires, releases);
        }
        assert_eq!(front(&frame), [(2, "1/35".to_owned())]);
    }
}
