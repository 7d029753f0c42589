//! Makes the plan, which is plain data with names, from the chosen design points. Only its part `search` depends on how the
//! plan was found.
//!
//! ```
//! use csdfc_planner::driver::assemble::parameters_resident;
//! use csdfc_planner::frame::task;
//! use csdfc_planner::open::open;
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let tasks = task::tasks(&application);
//! let bytes = parameters_resident(&tasks);
//! // At least 4 bytes each.
//! assert!(bytes >= 4 * application.cnns[0].network.parameters());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ops::Range;

use csdf::Rates;
use csdfc_input::app::resolve::Application;
use csdfc_input::device::DeviceProfile;
use csdfc_input::device::memory::Memory;
use csdfc_network::state::State;
use csdfc_network::stream::Streams;
use csdfc_network::{Layer, LayerId, Network, sharing};
use csdfc_plan::plan;
use csdfc_plan::shape::Shape;

use crate::cost::timing::Timing;
use crate::frame::lower;
use crate::frame::request::{FiringOrder, Request, RequestKind};
use crate::frame::task::PartitionedCnn;
use crate::search::DesignPoint;
use crate::storage::{Arrangement, Item, Storage, Stored};
use crate::streaming;

/// All that a plan is made of.
#[derive(Debug)]
pub struct Parts<'a> {
    /// The application.
    pub application: &'a Application,
    /// Its CNNs, cut into partitions.
    pub tasks: &'a [PartitionedCnn<'a>],
    /// How the frames of each are timed.
    pub timings: &'a [Timing<'a>],
    /// The design point chosen for each.
    pub chosen: &'a [&'a DesignPoint],
    /// What runs at the same time.
    pub storage: &'a Storage<'a>,
    /// Where every ring lies.
    pub arrangement: &'a Arrangement,
    /// The device that the frame rates are modelled on.
    pub device: &'a DeviceProfile,
    /// How the plan was found.
    pub search: plan::Search,
    /// The front that was seen.
    pub pareto: Vec<plan::ParetoPoint>,
    /// Maximum number of bytes in total that were asked for.
    pub memory_limit: Option<u64>,
    /// By CNN and layer, how many nanoseconds longer a frame takes because of the memories in which the layer reads and
    /// writes; empty if there is one memory.
    pub waits: &'a [Vec<f64>],
    /// Path of each CNN's model, as the plan shall state it.
    pub model_paths: Vec<String>,
}

/// Writes the plan.
pub fn assemble(parts: Parts<'_>) -> plan::Plan {
    let application = parts.application;
    let items = parts.storage.items();
    let tensors: Vec<plan::Tensor> =
        (0..parts.tasks.len()).flat_map(|cnn| parts.tensors(cnn, &items)).collect();
    let bytes_per_second = parts.device.store.as_ref().map(|store| store.bytes_per_second);
    let mut read = 0;
    let mut cnns = Vec::new();
    for cnn in 0..parts.tasks.len() {
        cnns.push(parts.cnn(cnn, &items, &mut read));
    }
    let memory = parts.memory(&items, &tensors, &cnns);
    let (fps, latency_ns) = (application.constraints.fps.clone(), application.constraints.latency_ns.clone());
    let reaches = |(cnn, design_point): (&csdfc_input::app::resolve::Cnn, &&DesignPoint)| {
        application.constraints.demand_of(&cnn.name).is_met(design_point.fps(), design_point.latency())
    };
    let flash = application.constraints.flash;
    let regions = parts.regions();
    let met = parts.memory_limit.is_none_or(|limit| memory.total <= limit)
        && flash.is_none_or(|most| memory.parameters_stored <= most)
        && regions.iter().all(|region| region.taken() <= region.limit)
        && application.cnns.iter().zip(parts.chosen).all(reaches);
    plan::Plan {
        format: plan::FORMAT.into(),
        csdfc: env!("CARGO_PKG_VERSION").into(),
        application: application.name.clone(),
        device: parts.device(),
        storage_model: application.storage,
        constraints: plan::Constraints {
            memory: parts.memory_limit,
            flash,
            fps,
            latency_ns,
            met,
            remedies: Vec::new(),
        },
        threads: application.threads,
        parallel: application.parallel.clone(),
        store: (read > 0).then_some(plan::Store { bytes: read, bytes_per_second }),
        cnns,
        partitions: (0..parts.tasks.len()).flat_map(|cnn| parts.partitions(cnn)).collect(),
        buffers: parts.buffers(&items),
        certificate: parts.certificate(&items),
        search: parts.search,
        pareto: parts.pareto,
        memory,
        regions,
        tensors,
    }
}

impl Parts<'_> {
    /// The device, with the cores of each processor that is used.
    fn device(&self) -> plan::Device {
        let partitions = self.application.cnns.iter().zip(self.timings);
        let cores = partitions.flat_map(|(cnn, timing)| {
            let names = cnn.partitions.iter().map(|partition| partition.processor.clone());
            names.zip(timing.processor_shares.iter().map(|processor_share| processor_share.processor.cores))
        });
        plan::Device {
            name: self.device.name.clone(),
            basis: self.device.basis.clone(),
            cores: cores.collect(),
        }
    }

    /// The parts of the arena in the memories of the board.
    fn regions(&self) -> Vec<plan::Region> {
        let memories = &self.application.constraints.memories;
        let region = |(memory, addresses): (&Memory, &Range<u64>)| plan::Region {
            name: memory.name.clone(),
            offset: addresses.start,
            bytes: addresses.end - addresses.start,
            holds: memory.holds.clone(),
            stack: memory.stack,
            limit: memory.bytes,
            ns_per_byte: memory.ns_per_byte,
        };
        memories.iter().zip(&self.arrangement.regions).map(region).collect()
    }

    fn network(&self, cnn: usize) -> &Network {
        self.tasks[cnn].network
    }

    /// A CNN, whose streamed weights follow those of the CNNs before it in the store.
    fn cnn(&self, cnn: usize, items: &[Item<'_>], store: &mut u64) -> plan::Cnn {
        let (source, network) = (&self.application.cnns[cnn], self.network(cnn));
        let design_point = self.chosen[cnn];
        let is_callers = |layer: &&Layer| layer.is_input() && network.state_of_input(&layer.name).is_none();
        let inputs = network.layers.iter().filter(is_callers);
        let outputs = network.callers_outputs().map(|output| {
            let tensor = network.layer(output.operand.layer);
            let shape = &output.operand.shape;
            plan::Output {
                name: output.name.clone(),
                tensor: tensor.output.clone(),
                view: (*shape != tensor.shape).then(|| shape.clone()),
            }
        });
        let tiles: Vec<_> = network.ids().map(|id| self.tiles(cnn, id, items)).collect();
        let owners = sharing::owners(network, |a, b| tiles[a.0] == tiles[b.0]);
        let mut layers: Vec<plan::Layer> = Vec::new();
        for id in network.ids() {
            let owner = owners[id.0].map(|owner| &layers[owner.0]);
            layers.push(self.layer(cnn, id, items, owner, store));
        }
        let read = streaming::bytes_read(&self.tasks[cnn], &design_point.execution);
        let is_timed = read > 0 && self.device.store.is_some();
        plan::Cnn {
            name: source.name.clone(),
            model: plan::Model {
                path: self.model_paths[cnn].clone(),
                bytes: source.model.bytes,
                sha256: source.model.sha256.clone(),
                values: source.model.values.clone(),
                part: source.model.part.clone(),
            },
            batch: source.model.batch as u64,
            fps: design_point.fps(),
            latency_ns: design_point.latency(),
            bytes_read: (read > 0).then_some(read),
            read_ns: is_timed.then(|| {
                let read = streaming::read_ns(&self.tasks[cnn], &self.timings[cnn], &design_point.execution);
                read.iter().sum::<f64>().round() as u64
            }),
            computing_ns: is_timed.then(|| {
                let execution = &design_point.execution;
                let (task, timing) = (&self.tasks[cnn], &self.timings[cnn]);
                let frame = timing.frame_with(task, &execution.rows, &execution.one_by_one, |_, _| 0.0);
                frame.latency_ns.round() as u64
            }),
            stream: network.stream,
            states: states(network),
            inputs: inputs.map(|layer| layer.name.clone()).collect(),
            outputs: outputs.collect(),
            layers,
        }
    }

    /// A layer, and the one whose parameters it uses.
    fn layer(
        &self,
        cnn: usize,
        id: LayerId,
        items: &[Item<'_>],
        owner: Option<&plan::Layer>,
        store: &mut u64,
    ) -> plan::Layer {
        let network = self.network(cnn);
        let layer = network.layer(id);
        let rows = self.chosen[cnn].execution.rows[id.0].min(layer.rows() as u64);
        let inputs = layer.inputs.iter().enumerate().map(|(index, operand)| {
            let tensor = network.layer(operand.layer);
            let rates = lower::operand_rates(network, id, index, rows);
            plan::LayerInput {
                tensor: tensor.output.clone(),
                view: (operand.shape != tensor.shape).then(|| operand.shape.clone()),
                acquire: Rates::from_sequence(&rates.acquire).to_string(),
                release: Rates::from_sequence(&rates.release).to_string(),
            }
        });
        let partitions = &self.application.cnns[cnn].partitions;
        let place = partitions.iter().position(|partition| partition.layers.contains(&id));
        let one_by_one = self.chosen[cnn].execution.one_by_one.binary_search(&id).is_ok();
        let wait = self.waits.get(cnn).map_or(0.0, |waits| waits[id.0]);
        let time = place.map(|partition| {
            let time = self.timings[cnn].stated(&self.tasks[cnn], partition, id, rows, one_by_one);
            plan::LayerTime { ns: time.ns + wait, ..time }
        });
        let primitive = layer.primitive();
        let [layout_in, layout_out] = primitive.layouts();
        plan::Layer {
            name: layer.name.clone(),
            onnx_nodes: layer.onnx_nodes.clone(),
            operator: layer.operator.clone(),
            inputs: inputs.collect(),
            output: layer.output.clone(),
            output_shape: layer.shape.clone(),
            rows_per_firing: rows,
            firings: lower::firings(network, id, rows),
            parameters: layer.parameter_bytes(),
            parameters_of: owner.map(|owner| owner.name.clone()),
            primitive: primitive.name().into(),
            layout_in,
            layout_out,
            partition: place.map(|place| partitions[place].name.clone()).unwrap_or_default(),
            workspace: self.workspace(cnn, id, items),
            streamed: self.streamed(cnn, id, items, owner, store),
            time: time.filter(|_| !layer.is_input()),
        }
    }

    fn workspace(&self, cnn: usize, id: LayerId, items: &[Item<'_>]) -> plan::Workspace {
        let of_layer = |item: &Item<'_>| {
            item.cnn == cnn && item.request.kind == RequestKind::Workspace && item.request.tensor == id
        };
        items.iter().position(of_layer).map_or_else(plan::Workspace::default, |i| plan::Workspace {
            offset: self.arrangement.offsets[i],
            bytes: items[i].request.bytes,
        })
    }

    /// The blocks of a layer whose weights are read, with their places among all items.
    fn blocks<'i>(&self, cnn: usize, id: LayerId, items: &'i [Item<'i>]) -> Vec<(usize, &'i Item<'i>)> {
        if self.tasks[cnn].streaming(id).is_none() {
            return Vec::new();
        }
        let of_layer = |(_, item): &(usize, &Item<'_>)| {
            item.cnn == cnn && item.request.kind == RequestKind::Block && item.request.tensor == id
        };
        items.iter().enumerate().filter(of_layer).collect()
    }

    /// The tiles in which the weights of a layer are read, as [`PartitionedCnn::tiles`].
    fn tiles(&self, cnn: usize, id: LayerId, items: &[Item<'_>]) -> Option<(Option<u64>, Vec<u64>)> {
        let (_, block) = *self.blocks(cnn, id, items).first()?;
        Some(self.tasks[cnn].tiles(id, self.chosen[cnn].execution.rows[id.0], block.request.bytes))
    }

    /// How the weights of a layer are read. In the store, its tiles follow those of the layers before it, unless it uses
    /// those of another layer.
    fn streamed(
        &self,
        cnn: usize,
        id: LayerId,
        items: &[Item<'_>],
        owner: Option<&plan::Layer>,
        store: &mut u64,
    ) -> Option<plan::StreamedWeights> {
        let (filters, tiles) = self.tiles(cnn, id, items)?;
        let (execution, own) = (&self.chosen[cnn].execution, self.blocks(cnn, id, items));
        let at = match owner.and_then(|owner| owner.streamed.as_ref()) {
            Some(owner) => owner.at,
            None => std::mem::replace(store, *store + tiles.iter().sum::<u64>()),
        };
        let after = |start: usize| {
            let is_first = execution.windows.iter().any(|window| window.start == start);
            let before = start.checked_sub(1).filter(|_| !is_first)?;
            let order = || execution.orders.iter().flat_map(FiringOrder::order);
            let layer = order().nth(before)?;
            let firing = order().take(before).filter(|other| *other == layer).count() as u64;
            Some(plan::FiringName { layer: self.network(cnn).layer(layer).name.clone(), firing })
        };
        let block = |(place, item): &(usize, &Item<'_>)| {
            let Request { bytes, live, .. } = item.request;
            plan::Block { offset: self.arrangement.offsets[*place], bytes: *bytes, after: after(live.0) }
        };
        let blocks = own.iter().map(block).collect();
        Some(plan::StreamedWeights { at, filters, tiles: Rates::from_sequence(&tiles).to_string(), blocks })
    }

    fn partitions(&self, cnn: usize) -> Vec<plan::Partition> {
        let source = &self.application.cnns[cnn];
        let network = self.network(cnn);
        let orders = &self.chosen[cnn].execution.orders;
        let frame =
            streaming::blocks::frame(&self.tasks[cnn], &self.timings[cnn], &self.chosen[cnn].execution);
        let partition =
            |((partition, run), load): ((&csdfc_input::app::partition::Partition, &FiringOrder), f64)| {
                let names: Vec<&str> = run.layers.iter().map(|id| network.layer(*id).name.as_str()).collect();
                let steps = csdf::compress(&run.firings);
                plan::Partition {
                    name: partition.name.clone(),
                    cnn: source.name.clone(),
                    processor: partition.processor.clone(),
                    load: Some(load),
                    notation: csdf::notation(&steps, &names),
                    schedule: steps.iter().map(|step| plan_step(step, &names)).collect(),
                }
            };
        source.partitions.iter().zip(orders).zip(frame.loads).map(partition).collect()
    }

    fn tensors(&self, cnn: usize, items: &[Item<'_>]) -> Vec<plan::Tensor> {
        let network = self.network(cnn);
        let readers = network.readers();
        let streams = Streams::new(network);
        let in_tensors = self.application.storage == plan::StorageModel::Tensors;
        network
            .ids()
            .map(|id| {
                let layer = network.layer(id);
                let item = items.iter().position(|item| item.is_ring_of(cnn, id));
                let ring = item.filter(|_| in_tensors).map(|i| plan::Ring {
                    ring_rows: items[i].request.ring_rows,
                    offset: self.arrangement.offsets[i],
                    bytes: items[i].request.bytes,
                });
                let is_output = network.callers_outputs().any(|output| output.operand.layer == id);
                let consumers = readers[id.0].iter().map(|reader| network.layer(*reader).name.clone());
                plan::Tensor {
                    name: layer.output.clone(),
                    cnn: self.application.cnns[cnn].name.clone(),
                    producer: layer.name.clone(),
                    consumers: consumers.collect(),
                    shape: layer.shape.clone(),
                    format: layer.format(),
                    quantization: layer.quantization,
                    row_bytes: layer.row_bytes(),
                    external: is_output || (in_tensors && ring.is_none()),
                    stream: streams.as_ref().map(|streams| streams.rows[id.0]),
                    ring,
                }
            })
            .collect()
    }

    fn memory(&self, items: &[Item<'_>], tensors: &[plan::Tensor], cnns: &[plan::Cnn]) -> plan::Memory {
        let keep = |cnn: usize| {
            let layers = cnns[cnn].layers.iter().enumerate();
            layers.filter(|(_, layer)| layer.parameters_of.is_none())
        };
        let parameters = (0..cnns.len()).flat_map(keep).map(|(_, layer)| layer.parameters).sum();
        let streamed = |(cnn, task): (usize, &PartitionedCnn<'_>)| {
            keep(cnn).filter_map(|(l, _)| Some(task.streaming(LayerId(l))?.stored)).sum::<u64>()
        };
        let streamed: u64 = self.tasks.iter().enumerate().map(streamed).sum();
        let whole = |item: &Item<'_>| {
            let layer = self.network(item.cnn).layer(item.request.tensor);
            // The two halves of a double buffer are items of their own. A ring that runs on from frame to frame has two
            // frames.
            let frames = if item.request.pipelined && item.request.half.is_none() { 2 } else { 1 };
            frames * layer.tensor_bytes() + item.request.history * layer.row_bytes()
        };
        let end =
            |(item, offset): (&Item<'_>, &u64)| item.request.is_ring().then(|| offset + item.request.bytes);
        let arena = self.arrangement.bytes;
        let buffers = match self.application.storage {
            plan::StorageModel::Tensors => {
                items.iter().zip(&self.arrangement.offsets).filter_map(end).max().unwrap_or(0)
            }
            plan::StorageModel::Edges => self.arrangement.buffers.iter().map(|buffer| buffer.bytes).sum(),
        };
        let is_input = |tensor: &&plan::Tensor| {
            self.application.cnns.iter().zip(self.tasks).any(|(cnn, task)| {
                cnn.name == tensor.cnn
                    && task.network.find(&tensor.producer).is_some_and(|id| task.network.layer(id).is_input())
            })
        };
        let bytes = |tensor: &plan::Tensor| tensor.rows() as u64 * tensor.row_bytes;
        let inputs =
            tensors.iter().filter(|tensor| tensor.external && tensor.ring.is_none()).filter(is_input);
        let outputs = self.tasks.iter().flat_map(|task| {
            task.network.callers_outputs().map(|output| task.network.layer(output.operand.layer))
        });
        let external = plan::External {
            inputs: inputs.map(bytes).sum(),
            outputs: outputs.map(Layer::tensor_bytes).sum(),
        };
        let resident = parameters_resident(self.tasks);
        plan::Memory {
            parameters,
            parameters_stored: resident + streamed,
            parameters_resident: (streamed > 0).then_some(resident),
            arena,
            buffers,
            workspace: self.storage.workspaces(items),
            total: if self.arrangement.regions.is_empty() { resident + arena } else { arena },
            naive: items.iter().filter(|item| item.request.is_ring()).map(whole).sum(),
            bound: self.arrangement.bound.bytes,
            proven: arena == self.arrangement.bound.bytes,
            external,
        }
    }

    fn buffers(&self, items: &[Item<'_>]) -> Vec<plan::Buffer> {
        let edge = |i: &usize| {
            let Item { cnn, request } = items[*i];
            let network = self.network(cnn);
            plan::Edge {
                cnn: self.application.cnns[cnn].name.clone(),
                tensor: network.layer(request.tensor).output.clone(),
                consumer: request.consumer.map(|id| network.layer(id).name.clone()).unwrap_or_default(),
                ring_rows: request.ring_rows,
                bytes: request.bytes,
                half: request.half,
            }
        };
        let buffers = self.arrangement.buffers.iter().enumerate();
        buffers
            .map(|(i, buffer)| plan::Buffer {
                name: format!("B{}", i + 1),
                offset: buffer.edges.first().map_or(0, |edge| self.arrangement.offsets[*edge]),
                bytes: buffer.bytes,
                holds: buffer.edges.iter().map(edge).collect(),
            })
            .collect()
    }

    fn certificate(&self, items: &[Item<'_>]) -> plan::Certificate {
        let peak = &self.arrangement.bound;
        let firing = |(cnn, at): &(usize, usize)| {
            let layer = self.chosen[*cnn].execution.orders.iter().flat_map(FiringOrder::order).nth(*at)?;
            Some(format!("{}/{}", self.application.cnns[*cnn].name, self.network(*cnn).layer(layer).name))
        };
        let tensor = |stored: &Stored| {
            let Item { cnn, request } = items[stored.item];
            let of = cnn;
            let (cnn, layer) = (&self.application.cnns[cnn].name, self.network(cnn).layer(request.tensor));
            match request.kind {
                RequestKind::Workspace => format!("workspace of {cnn}/{}", layer.name),
                RequestKind::Block => {
                    let is_one = |item: &&Item<'_>| {
                        let (one, this) = (item.request, request);
                        item.cnn == of && one.kind == this.kind && one.tensor == this.tensor
                    };
                    let before = items[..stored.item].iter().filter(is_one).count();
                    format!("block {before} of {cnn}/{}", layer.name)
                }
                RequestKind::Ring => format!("{cnn}/{}", layer.output),
            }
        };
        // Edges of one tensor, and the halves of an edge, are the tensor.
        let mut tensors: Vec<String> = Vec::new();
        for name in peak.stored.iter().map(tensor) {
            if !tensors.contains(&name) {
                tensors.push(name);
            }
        }
        plan::Certificate {
            bound: (peak.bytes > 0).then(|| plan::PeakWitness {
                firing: peak.firings.iter().filter_map(firing).collect(),
                tensors,
                bytes: peak.bytes,
            }),
            claimed: (self.arrangement.least > peak.bytes).then_some(self.arrangement.least),
            rings: "peaks of the on-demand schedule stated here: least on chains, enough on every graph"
                .into(),
        }
    }
}

/// Bytes of the packed parameters that stay in memory.
pub fn parameters_resident(tasks: &[PartitionedCnn<'_>]) -> u64 {
    let bytes = |layer: &Layer| {
        let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
        layer.primitive().stored_bytes(&layer.operator, &inputs, layer.parameter_elements())
    };
    let of_task = |task: &PartitionedCnn<'_>| {
        let is_resident = |id: LayerId| task.streaming(id).is_none();
        let owners = sharing::owners(task.network, |a, b| is_resident(a) == is_resident(b));
        let keeps = |id: &LayerId| is_resident(*id) && owners[id.0].is_none();
        task.network.ids().filter(keeps).map(|id| bytes(task.network.layer(id))).sum::<u64>()
    };
    tasks.iter().map(of_task).sum()
}

/// The states of a network.
fn states(network: &Network) -> Vec<plan::State> {
    let state = |state: &State| {
        let output = network.outputs.iter().find(|output| output.name == state.output)?;
        let tensor = network.layer(output.operand.layer).output.clone();
        let (input, output) = (state.input.clone(), state.output.clone());
        Some(plan::State { input, output, tensor, initial: state.initial })
    };
    network.states.iter().filter_map(state).collect()
}

fn plan_step(step: &csdf::Step, names: &[&str]) -> plan::Step {
    match step {
        csdf::Step::Fire(actor) => plan::Step::Fire { fire: names[actor.index()].to_owned() },
        csdf::Step::Repeat { times, body } => plan::Step::Repeat {
            repeat: *times,
            body: body.iter().map(|step| plan_step(step, names)).collect(),
        },
    }
}
