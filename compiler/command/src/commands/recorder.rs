//! The measurements of a frame by `csdfc run`, as the data of a trace.

use std::time::{Duration, Instant};

use csdfc_plan::plan::Plan;
use csdfc_plan::timeline::{Firing, Load};
use csdfc_runtime::run::{Fired, Loaded};

/// The last frame of each CNN, one after another.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// The firings.
    pub firings: Vec<Firing>,
    /// The reads of weights.
    pub loads: Vec<Load>,
    /// Nanoseconds of the frames so far.
    ns: f64,
    /// The firings of the frame under way: layer, start, duration.
    seen: Vec<(usize, Instant, Duration)>,
}

impl Recorder {
    /// A frame begins: forgets the one before it.
    pub fn begin(&mut self) {
        self.seen.clear();
    }

    /// A layer has fired.
    pub fn fired(&mut self, fired: &Fired<'_>) {
        self.seen.push((fired.layer, fired.start, fired.elapsed));
    }

    /// Takes the frame that has just ended as that of a CNN.
    pub fn end(&mut self, plan: &Plan, cnn: usize, start: Instant, loads: &[Loaded]) {
        let layers = &plan.cnns[cnn].layers;
        let at = |instant: Instant| self.ns + nanoseconds(instant.saturating_duration_since(start));
        let mut fired = vec![0; layers.len()];
        for &(layer, start, elapsed) in &self.seen {
            let partition = plan.partitions.iter().position(|other| other.name == layers[layer].partition);
            self.firings.push(Firing {
                cnn,
                layer,
                partition: partition.unwrap_or(0),
                frame: 0,
                firing: fired[layer],
                start_ns: at(start),
                end_ns: at(start) + nanoseconds(elapsed),
            });
            fired[layer] += 1;
        }
        self.loads.extend(loads.iter().map(|load| Load {
            cnn,
            layer: load.layer,
            frame: 0,
            tile: load.tile,
            bytes: load.bytes,
            start_ns: at(load.start),
            end_ns: at(load.start) + nanoseconds(load.elapsed),
        }));
        self.ns += nanoseconds(start.elapsed());
    }
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}
