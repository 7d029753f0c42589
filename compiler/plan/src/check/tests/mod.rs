//! Right plans are accepted, wrong ones refused for the right reason, and nothing makes the checker panic or hang.

mod hostile;
mod limits;
pub(crate) mod plans;
mod refused;
mod shapes;
mod witnesses;

use super::check;
use crate::plan::Plan;

#[test]
fn right_plans_are_accepted() {
    for (name, plan) in plans::all() {
        let report = check(&plan).unwrap_or_else(|violations| panic!("{name}: {violations:#?}"));
        assert!(report.firings > 0 && report.rows_read > 0 && report.rows_written > 0, "{name}");
        assert_eq!(report.peak_bytes, plan.memory.bound, "{name}");
    }
}

/// An output may be seen in other dimensions, and may have a ring for those who read it.
#[test]
fn outputs_may_be_more_than_delivered() {
    let mut plan = plans::branch();
    plan.cnns[0].outputs[0].view = Some(crate::shape::Shape::new([1, 64]));
    assert_eq!(check(&plan).err(), None);
    let mut plan = plans::pair();
    plan.output("t_l1");
    plan.memory.external.outputs *= 2;
    assert_eq!(check(&plan).err(), None);
}

#[test]
fn everything_is_replayed() {
    let report = check(&plans::pair()).unwrap();
    // Two frames of 3 · 32 firings, a row each; a window holds 3, 4, 5, …, 5, 4, 3 rows.
    assert_eq!((report.replays, report.firings, report.rows_written), (1, 192, 192));
    assert_eq!(report.rows_read, 2 * 2 * (3 + 4 + 28 * 5 + 4 + 3));
    let report = check(&plans::pipelined()).unwrap();
    assert_eq!((report.replays, report.firings), (6, 6 * 3 * 96));
}

/// Rings may lie elsewhere among those that they follow: the other side, or further away.
#[test]
fn rings_that_stay_apart_are_accepted() {
    type Case = (fn() -> Plan, &'static [(usize, u64)]);
    let table: &[Case] = &[
        (plans::follow, &[(1, 196)]),
        (plans::follow, &[(1, 288)]),
        (plans::follow, &[(1, 32)]),
        (plans::follow, &[(3, 292)]),
        (plans::drain, &[(4, 352)]),
        (plans::drain, &[(2, 352)]),
        // Where the first row was that is gone.
        (plans::drain, &[(3, 0), (4, 352)]),
    ];
    for &(plan, moved) in table {
        let mut plan = plan();
        for &(tensor, offset) in moved {
            plan.tensors[tensor].ring.as_mut().unwrap().offset = offset;
        }
        let ends = plan.tensors.iter().filter_map(|tensor| tensor.ring).map(|ring| ring.offset + ring.bytes);
        let memory = &mut plan.memory;
        memory.buffers = ends.max().unwrap();
        memory.arena = memory.buffers;
        memory.total = memory.parameters_stored + memory.arena;
        memory.proven = memory.arena == memory.bound;
        check(&plan).unwrap_or_else(|violations| panic!("{moved:?}: {violations:#?}"));
    }
}
