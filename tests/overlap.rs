//! Rings that share addresses row by row, compared with a replay that lists the rows in use one by one.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::ops::Range;

use csdfc_input::app::resolve::Application;
use csdfc_network::{LayerId, Network};
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::StorageModel;
use csdfc_planner::frame::choice::Choice;
use csdfc_planner::frame::execution::{self, Execution, Rings};
use csdfc_planner::frame::lower::RateTable;
use csdfc_planner::frame::request::{FiringOrder, Request};
use csdfc_planner::frame::task;
use csdfc_planner::open;
use csdfc_planner::storage::{Effort, Storage, arrange};
use csdfc_tests::generate;
use csdfc_tests::moments::{Moment, Ring, moments};
use proptest::prelude::*;

/// Whether a layer is not made row by row only to save time.
fn is_costly(network: &Network, layer: LayerId) -> bool {
    let layer = network.layer(layer);
    matches!(layer.operator, Operator::Conv(_) | Operator::ConvTranspose(_) | Operator::Gemm(_))
        && layer.parameters[0].elements() * 4 > 64 * 1024
}

fn check(network: &Network, execution: &Execution, name: &str) {
    let storage = Storage { executions: vec![execution], elements: &[] };
    let packed = arrange(&storage, StorageModel::Tensors, Effort::Candidate);
    let ring = |request: &Request| Ring {
        tensor: request.tensor,
        bytes: request.bytes,
        live: request.live,
        is_exclusive: request.pipelined || request.ring_rows < network.layer(request.tensor).rows() as u64,
    };
    let rings: Vec<Ring> = execution.requests.iter().map(ring).collect();
    let order: Vec<LayerId> = execution.orders.iter().flat_map(FiringOrder::order).collect();
    let moments = moments(network, &order, &execution.rows, &rings);
    let total = |moment: &Moment| moment.in_use.iter().map(|(_, bytes)| bytes.end - bytes.start).sum::<u64>();
    assert_eq!(packed.bound.bytes, moments.iter().map(total).max().unwrap_or(0), "{name}");
    let witness: u64 = packed.bound.stored.iter().map(|stored| stored.bytes.end - stored.bytes.start).sum();
    assert_eq!(witness, packed.bound.bytes, "{name}");
    assert!(packed.bound.bytes <= packed.least && packed.least <= packed.bytes, "{name}");
    let ends = packed.offsets.iter().zip(&execution.requests).map(|(at, request)| at + request.bytes);
    assert_eq!(ends.max().unwrap_or(0), packed.bytes, "{name}");
    let lies = |(index, bytes): &(usize, Range<u64>)| {
        let at = packed.offsets[*index];
        (at + bytes.start, at + bytes.end, *index)
    };
    let apart = |places: &mut Vec<(u64, u64, usize)>, layer: LayerId| {
        places.sort_unstable();
        for pair in places.windows(2) {
            let names = [pair[0].2, pair[1].2].map(|i| &network.layer(execution.requests[i].tensor).output);
            let firing = &network.layer(layer).name;
            assert!(pair[0].1 <= pair[1].0, "{name}: {names:?} overlap while {firing} fires: {pair:?}");
        }
    };
    let mut start: Vec<(usize, Range<u64>)> = Vec::new();
    for moment in &moments {
        apart(&mut moment.in_use.iter().map(lies).collect(), moment.layer);
        // Rows made at once: all that the layer reads stays until all its rows are made.
        if moment.is_first {
            start.clone_from(&moment.in_use);
        }
        if moment.is_last && is_costly(network, moment.layer) {
            let mut all = start.clone();
            for (index, bytes) in &moment.in_use {
                match all.iter_mut().find(|(other, _)| other == index) {
                    Some((_, other)) => other.end = bytes.end,
                    None => all.push((*index, bytes.clone())),
                }
            }
            apart(&mut all.iter().map(lies).collect(), moment.layer);
        }
    }
}

fn check_application(application: &Application, choices: &[Choice]) {
    for (cnn, task) in task::tasks(application).iter().enumerate() {
        let rates = RateTable::new(task.network);
        let given = Choice::given(application, cnn);
        for choice in given.iter().chain(choices) {
            let model = StorageModel::Tensors;
            let execution = execution::execute(task, &rates, choice, model, Rings::OnDemand).unwrap();
            check(task.network, &execution, &format!("{} {}", application.name, choice.name));
        }
    }
}

#[test]
fn rings_of_networks_share_addresses() {
    for name in ["lenet5", "squeezenet1_0", "mobilenet_v1_0.25", "mobilenet_v2"] {
        let application = open::open(&format!("builtin:{name}")).unwrap().resolve().unwrap();
        let network = &application.cnns[0].network;
        let some = Choice {
            name: "some".into(),
            barriers: None,
            one_by_one: None,
            rows: network
                .layers
                .iter()
                .zip(0..)
                .map(|(layer, i)| match i % 3 {
                    0 => layer.rows() as u64,
                    r => (r * 3).min(layer.rows() as u64),
                })
                .collect(),
        };
        let prefix = Choice::prefix(network, network.layers.len() / 4);
        check_application(&application, &[Choice::none(network), prefix, some]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rings_of_any_network_share_addresses(bytes in prop::collection::vec(any::<u8>(), 20..300)) {
        check_application(&generate::application(&bytes, StorageModel::Tensors), &[]);
    }
}
