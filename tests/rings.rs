//! Rings of plans, compared with the smallest that the dataflow engine proves: with every layer by rows, and for
//! Algorithm 2's smallest plan of application 3 of Table 12.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use csdf::{Goal, StorageOptions, Unit, smallest, verify_storage};
use csdfc_input::app::spec::{Method, RowsSpec};
use csdfc_input::builtin;
use csdfc_input::units::MemoryGoal;
use csdfc_plan::plan::StorageModel;
use csdfc_planner::frame::choice::Choice;
use csdfc_planner::frame::lower::{RateTable, lower};
use csdfc_planner::frame::task;
use csdfc_planner::open;
use csdfc_tests::{app, plan};

/// Rows and bytes of all rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    rows: u64,
    bytes: u64,
}

/// The size of a plan's rings, and of the engine's smallest capacities, by rows and by bytes.
fn sizes(source: &str) -> (Size, Size) {
    let mut opened = open::open(source).unwrap();
    opened.spec.storage = Some(StorageModel::Tensors);
    opened.spec.rows = RowsSpec::All;
    let application = opened.resolve().unwrap();
    let planned = plan(&application);
    let rings = planned.tensors.iter().filter_map(|tensor| tensor.ring.as_ref());
    let planned = Size {
        rows: rings.clone().map(|ring| ring.ring_rows).sum(),
        bytes: rings.map(|ring| ring.bytes).sum(),
    };
    let mut proven = Size { rows: 0, bytes: 0 };
    for task in task::tasks(&application) {
        let rates = RateTable::new(task.network);
        for partition in &task.partitions {
            let rows = Choice::all(task.network).rows;
            let graph = lower(&rates, &partition.layers, &rows, StorageModel::Tensors).unwrap().graph;
            for (unit, total) in [(Unit::Tokens, &mut proven.rows), (Unit::Bytes, &mut proven.bytes)] {
                let options = StorageOptions { unit, ..StorageOptions::default() };
                let storage = smallest(&graph, Goal::DeadlockFree, &options).unwrap();
                assert!(storage.proven, "{source}, {unit:?}");
                verify_storage(&graph, Goal::DeadlockFree, &options, &storage).unwrap();
                *total += storage.total;
            }
        }
    }
    (planned, proven)
}

#[test]
fn rings_of_plans_are_the_smallest() {
    for name in builtin::NAMES {
        let (planned, proven) = sizes(&format!("builtin:{name}"));
        println!("{name:<20} rows {:>5}, bytes {:>9}", proven.rows, proven.bytes);
        // A plan counts bytes; the rings of fewest bytes need not be those of fewest rows.
        assert_eq!(planned.bytes, proven.bytes, "{name}");
        assert!(planned.rows >= proven.rows, "{name}");
    }
}

/// Algorithm 2's plan of application 3. Within each partition, the rings of all edges take the bytes that the engine
/// proves to be the least for the chosen rows per firing, over all orders of firings.
#[test]
fn rings_of_algorithm_2_are_the_smallest() {
    let mut opened = app("table12/app3.ron");
    opened.spec.search.method = Some(Method::Paper);
    // A short search chooses as many kinds of rows as a long one.
    (opened.spec.search.population, opened.spec.search.generations) = (20, 10);
    opened.spec.constraints.memory = Some(MemoryGoal::Min);
    let application = opened.resolve().unwrap();
    let planned = plan(&application);
    let rows: Vec<u64> = planned.cnns[0].layers.iter().map(|layer| layer.rows_per_firing).collect();
    let edges = planned.buffers.iter().flat_map(|buffer| &buffer.holds);
    let own: u64 = edges.filter(|edge| edge.half.is_none()).map(|edge| edge.bytes).sum();
    let task = &task::tasks(&application)[0];
    let rates = RateTable::new(task.network);
    let mut proven = 0;
    for partition in &task.partitions {
        let graph = lower(&rates, &partition.layers, &rows, StorageModel::Edges).unwrap().graph;
        let options = StorageOptions { unit: Unit::Bytes, ..StorageOptions::default() };
        let storage = smallest(&graph, Goal::DeadlockFree, &options).unwrap();
        assert!(storage.proven);
        proven += storage.total;
    }
    println!("the engine's {proven}, the plan's {own}");
    assert_eq!(own, proven);
}

/// Between the stages of a pipeline: a few rows where both stages go by rows, one frame where they do not; two frames are
/// the worst case, which full speed does not need here.
#[test]
fn rings_between_stages_are_as_small_as_full_speed_allows() {
    for (rows, expected) in [(RowsSpec::All, 3), (RowsSpec::None, 56)] {
        let mut opened = app("pipeline.ron");
        opened.spec.rows = rows;
        let planned = plan(&opened.resolve().unwrap());
        let cut = planned.tensors.iter().find(|tensor| tensor.producer == "block_1_project").unwrap();
        assert_eq!((cut.shape.rows(), cut.ring.map(|ring| ring.ring_rows)), (56, Some(expected)));
    }
}
