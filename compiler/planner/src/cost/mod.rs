//! The time that a layer takes on a device.
//!
//! The rates of a profile are those of one core. A layer's time is the larger of two times, arithmetic and traffic,
//! plus a cost for each firing. Three things come on top:
//!
//! - *Parts.* Weights that exceed the cache are read again at every firing. That is the price of processing by parts.
//! - *Rows one by one.* Filters that exceed the nearest cache are read again for every row that is made one by one,
//!   at four times the speed of memory. On the profile `generic`, a convolution of W pixels a row takes 1 + 1/W times
//!   as long. Measured: 1.02 to 1.04 at 28 to 35 pixels, 1.06 at 17, 1.09 to 1.29 at 7. If a row is
//!   a single pixel, or a line of fewer than 8 pixels of integers, the call for it counts, too.
//! - *Workers.* N workers make a firing with enough work 1 + (N − 1) · efficiency times as fast: a firing of several
//!   rows, or any firing of a convolution. Each such firing costs a hand-over per worker. One core makes every other
//!   firing. Cores share the bandwidth of memory, so it is divided by the number of cores that may be busy.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_network::LayerId;
//! use csdfc_planner::cost::ProcessorShare;
//! use csdfc_planner::open::open;
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let network = &application.cnns[0].network;
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let share = ProcessorShare::alone(device.processor("cpu")?, 1);
//!
//! // The first convolution, by parts and in one firing.
//! let (conv, height) = (LayerId(1), network.layer(LayerId(1)).rows() as u64);
//! let [by_parts, whole] = [1, height].map(|rows| share.layer(network, conv, rows, false));
//! assert!(by_parts.wall_ns > whole.wall_ns);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod measured;
mod stages;
pub mod timing;
pub mod traffic;

use csdfc_input::device::Processor;
use csdfc_network::operators;
use csdfc_network::{LayerId, Network};
use csdfc_plan::format::Element;
use csdfc_plan::operator::Operator;

use crate::frame::lower;
use crate::frame::occupancy;

/// The speed of the caches that hold filters between two rows, in multiples of the speed of memory. With m
/// multiplications and b bytes of memory a second, a convolution of W pixels a row takes 1 + 4 m / (4 b W) times as
/// long.
const CACHE_SPEED: f64 = 4.0;
/// A convolution's firing of several rows and of at least this many multiplications is shared (csdfc_kernels::share). In a
/// smaller one, it takes longer to wake the other workers than to do the work.
const MIN_SHARED: f64 = (1 << 17) as f64;
/// The same limit for a firing of a single row.
const MIN_SHARED_ROW: f64 = (1 << 19) as f64;
/// The same limit for firings of several rows of other layers, in elements of the output.
const MIN_ELEMENTS: f64 = (1 << 14) as f64;

/// A partition's place on its processor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProcessorShare<'d> {
    /// The processor.
    pub processor: &'d Processor,
    /// Workers that share its firings, its own thread among them; no more than there are cores.
    pub workers: u64,
    /// Workers of all partitions that may run on the processor at the same time, its own among them.
    pub busy: u64,
}

/// The time of a layer in a frame, with as many cores as it can use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerTime {
    /// Nanoseconds from begin to end, without waits for other partitions.
    pub wall_ns: f64,
    /// Nanoseconds of cores, the sum over all workers.
    pub core_ns: f64,
}

impl<'d> ProcessorShare<'d> {
    /// The processor share of a partition with a processor to itself, of this many workers.
    pub fn alone(processor: &'d Processor, threads: usize) -> Self {
        let workers = match processor.workers {
            Some(_) => (threads as u64).clamp(1, processor.cores),
            None => 1,
        };
        ProcessorShare { processor, workers, busy: workers }
    }

    /// The same with the processor to itself.
    pub fn undisturbed(&self) -> Self {
        ProcessorShare { busy: self.workers, ..*self }
    }

    /// The factor by which everything takes longer, at most, because other partitions run on the processor. While there
    /// are more workers with work than cores, all of them are slowed down alike.
    pub fn stretch(&self) -> f64 {
        (self.busy as f64 / self.processor.cores as f64).max(1.0)
    }

    /// The time of a layer in one frame, at `rows` rows per firing: the larger of its arithmetic and its traffic, plus
    /// the cost of its firings. If weights are too large for the cache, every firing reads them again. This is the
    /// price of processing by parts, in addition to the cost of the firings themselves. Workers share the firings that
    /// are work enough: those of several rows, and large rows of a convolution. A layer that makes the rows of a firing
    /// one by one reads its filters again for every row but the first, from a cache that is `CACHE_SPEED` times as fast
    /// as memory. So does a recurrent layer, however many rows a firing makes. A layer hands each row to its workers, if a
    /// row is work enough.
    pub fn layer(&self, network: &Network, id: LayerId, rows: u64, one_by_one: bool) -> LayerTime {
        let layer = network.layer(id);
        if layer.is_input() {
            return LayerTime { wall_ns: 0.0, core_ns: 0.0 };
        }
        let Processor { core, cache_bytes, .. } = self.processor;
        let firings = lower::firings(network, id, rows) as f64;
        let inputs = layer.input_shapes();
        let macs = operators::macs(&layer.operator, &inputs, &layer.shape) as f64;
        let elements = layer.shape.elements() as f64;
        let at_once = if one_by_one { 1 } else { rows };
        let is_shared = match &layer.operator {
            Operator::Conv(_) | Operator::Gemm(_) if at_once == 1 => {
                macs / layer.rows() as f64 >= MIN_SHARED_ROW
            }
            Operator::Conv(_) | Operator::Gemm(_) => macs / firings >= MIN_SHARED,
            Operator::Recurrent(_) => false,
            _ => at_once > 1 && elements / firings >= MIN_ELEMENTS,
        };
        let crew = self.processor.workers.filter(|_| is_shared && self.workers > 1);
        let workers = if crew.is_some() { self.workers } else { 1 };
        let others = (workers - 1) as f64;
        let speed = crew.map_or(1.0, |sharing| 1.0 + others * sharing.efficiency);
        let firing_ns = core.firing_ns + crew.map_or(0.0, |sharing| others * sharing.handover_ns);

        let rate = match &layer.operator {
            Operator::Conv(conv) if conv.groups > 1 => core.macs_per_second * core.depthwise_efficiency,
            _ => core.macs_per_second,
        };
        // Nobody has published how much faster integers and mixed precision are.
        let is_half = layer.format().element == Element::F16 && !layer.primitive().is_mixed();
        let speed_up = if is_half { core.half_speed } else { 1.0 };
        let arithmetic = if macs > 0.0 { macs / rate } else { elements / core.elements_per_second };
        let arithmetic = arithmetic / speed_up;
        let parameters = layer.parameter_bytes();
        // A step of a recurrent layer needs all weights, and the state that the step before has made.
        let has_state = layer.operator.has_state();
        let steps = if has_state { layer.rows() as f64 } else { firings };
        let loads = if parameters > *cache_bytes { steps } else { 1.0 };
        let read: u64 = layer.inputs.iter().map(|operand| network.layer(operand.layer).tensor_bytes()).sum();
        let bytes = (read + layer.tensor_bytes()) as f64 + parameters as f64 * loads;
        let traffic = bytes / self.bytes_per_second(workers);
        let again = if one_by_one { layer.rows() as f64 - firings } else { 0.0 };
        let reread = if has_state { steps - 1.0 } else { again };
        let filters = reread * occupancy::filter_bytes(layer) as f64 / (CACHE_SPEED * core.bytes_per_second);
        let calls = if occupancy::has_narrow_rows(layer) { again * core.firing_ns } else { 0.0 };
        let handovers = again * crew.map_or(0.0, |sharing| others * sharing.handover_ns);
        let wall_ns = arithmetic.max(traffic) / speed * 1e9
            + firings * firing_ns
            + filters / speed * 1e9
            + handovers
            + calls;
        LayerTime { wall_ns, core_ns: wall_ns * workers as f64 }
    }

    /// Bytes per second from memory for one core, while this partition keeps `workers` cores busy and the other
    /// partitions keep theirs busy.
    fn bytes_per_second(&self, workers: u64) -> f64 {
        let alone = self.processor.core.bytes_per_second;
        let busy = (self.busy - self.workers + workers).min(self.processor.cores);
        self.processor.memory_bytes_per_second.map_or(alone, |all| alone.min(all / busy as f64))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use csdfc_input::builtin::Builder;
    use csdfc_input::device::DeviceProfile;
    use csdfc_network::pass::{self, Fusion};
    use csdfc_plan::format::Quantization;

    use super::*;

    /// The first convolution of MobileNetV2, 3×3×3×32 at 112×112, and the classifier: 1280 by 1000.
    #[test]
    fn workers_share_firings_by_the_stated_law() {
        let profile = DeviceProfile::find("jetson-tx2-cpu", Path::new(".")).unwrap();
        let cpu = profile.processor("cpu").unwrap();
        let network = pass::normalise(csdfc_input::builtin::network("mobilenet_v2").unwrap(), Fusion::Full);
        let first = network.ids().nth(1).unwrap();
        let last = network.ids().filter(|id| network.layer(*id).parameter_elements() > 0).last().unwrap();
        let macs = 112.0 * 112.0 * 32.0 * 27.0;
        let near = |found: LayerTime, wall_ns: f64, cores: f64| {
            assert!((found.wall_ns / wall_ns - 1.0).abs() < 1e-12, "{found:?}, {wall_ns}");
            assert!((found.core_ns / (cores * wall_ns) - 1.0).abs() < 1e-12, "{found:?}, {wall_ns}");
        };
        let (one, four, nine) =
            (ProcessorShare::alone(cpu, 1), ProcessorShare::alone(cpu, 4), ProcessorShare::alone(cpu, 9));
        near(one.layer(&network, first, 112, false), macs / 4e9 * 1e9 + 500.0, 1.0);
        near(four.layer(&network, first, 112, false), macs / (4e9 * 3.7) * 1e9 + 2000.0, 4.0);
        // A row alone is too little work, and so are rows that are made one by one.
        assert_eq!(four.layer(&network, first, 1, false), one.layer(&network, first, 1, false));
        assert_eq!(four.layer(&network, first, 112, true), one.layer(&network, first, 112, true));
        assert_eq!(nine, four);
        // Memory is what the classifier waits for. One core has half of what four have together.
        let bytes = 4.0 * (1280.0 + 1000.0 + 1280.0 * 1000.0 + 1000.0);
        near(one.layer(&network, last, 1, false), bytes / 7.5e9 * 1e9 + 500.0, 1.0);
        near(four.layer(&network, last, 1, false), bytes / (3.75e9 * 3.7) * 1e9 + 2000.0, 4.0);
        // Beside three others it has a quarter.
        let crowded = ProcessorShare { busy: 4, ..one };
        near(crowded.layer(&network, last, 1, false), bytes / 3.75e9 * 1e9 + 500.0, 1.0);
        assert_eq!((crowded.stretch(), ProcessorShare { busy: 6, ..one }.stretch()), (1.0, 1.5));
    }

    /// A layer of five rows that makes them one by one is called four times more.
    #[test]
    fn calls_for_rows_of_few_pixels_take_time() {
        let profile = DeviceProfile::find("generic", Path::new(".")).unwrap();
        let cpu = profile.processor("cpu").unwrap();
        let share = ProcessorShare::alone(cpu, 1);
        let bytes = Some(Quantization { scale: 0.1, zero_point: 3 });
        for (width, quantization, calls) in
            [(1, bytes, 4.0), (7, bytes, 4.0), (8, bytes, 0.0), (7, None, 0.0)]
        {
            let mut builder = Builder::new(1);
            let x = builder.input("x", [1, 3, 5, width]).unwrap();
            let y = builder.softmax(&x).unwrap();
            builder.output("y", &y).unwrap();
            let mut network = builder.finish();
            network.layers[y.layer.0].quantization = quantization;
            let [at_once, one_by_one] =
                [false, true].map(|one_by_one| share.layer(&network, y.layer, 5, one_by_one).wall_ns);
            assert_eq!(one_by_one, at_once + calls * cpu.core.firing_ns, "{width}, {quantization:?}");
        }
    }

    /// The residuals that targets/jetson-tx2.ron lists, in per cent: no parts, and all by parts.
    #[test]
    fn the_jetson_tx2_deviates_as_it_says() {
        let profile = DeviceProfile::find("jetson-tx2", Path::new(".")).unwrap();
        let gpu = profile.processor("gpu").unwrap();
        assert_eq!(
            DeviceProfile::find("jetson-tx2-paper", Path::new(".")).unwrap().processor("gpu").unwrap(),
            gpu
        );
        let gpu = ProcessorShare::alone(gpu, 4);
        for (name, published, stated) in [
            ("mobilenet_v2", [46.0, 40.0], [24, 18]),
            ("efficientnet_b0", [168.35, 98.0], [-80, -70]),
            ("inception_v2", [94.0, 67.0], [8, 10]),
            ("mobilenet_v1_0.25", [432.0, 183.0], [-36, -3]),
            ("resnet50", [55.0, 46.0], [-9, -11]),
            ("densenet121", [52.0, 37.0], [26, 14]),
            ("mobilenet_v1", [59.0, 50.0], [7, 12]),
        ] {
            let network = pass::normalise(csdfc_input::builtin::network(name).unwrap(), Fusion::Paper);
            let fps = |rows: &dyn Fn(LayerId) -> u64| {
                1e9 / network.ids().map(|id| gpu.layer(&network, id, rows(id), false).wall_ns).sum::<f64>()
            };
            let modelled = [fps(&|id| network.layer(id).rows() as u64), fps(&|_| 1)];
            let deviation = [0, 1].map(|i| (100.0 * (modelled[i] / published[i] - 1.0)).round() as i64);
            assert_eq!(deviation, stated, "{name}: {modelled:?}");
        }
    }
}
