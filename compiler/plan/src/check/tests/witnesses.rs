//! What a certificate says about the moment of the most bytes.

use crate::check::{Violation, check};
use crate::plan::{PeakWitness, Plan};

use super::plans::{branch, double_buffered, edges, pair, pipelined, two};

/// A certificate names a moment of the most bytes, exactly what is stored then, and a firing of each partition that runs.
#[test]
fn witnesses() {
    type Wrong = (&'static str, fn() -> Plan, fn(&mut PeakWitness));
    let table: &[Wrong] = &[
        ("more bytes", branch, |w| w.bytes += 1),
        ("a ring too few", branch, |w| drop(w.tensors.pop())),
        ("a ring twice", branch, |w| w.tensors.push("branch/t_a".into())),
        ("a ring that is not stored then", branch, |w| w.tensors.push("branch/t_z".into())),
        ("no ring", branch, |w| w.tensors.push("branch/t_d".into())),
        ("another firing", branch, |w| w.firing = vec!["branch/d".into()]),
        ("no layer", branch, |w| w.firing = vec!["branch/x".into()]),
        ("no firing", branch, |w| w.firing.clear()),
        ("a firing twice", branch, |w| w.firing.push("branch/c".into())),
        ("a firing of one of two partitions", pipelined, |w| drop(w.firing.pop())),
        ("two firings of one partition", pipelined, |w| w.firing[1] = "pair/in".into()),
        ("a firing of a CNN that does not run then", two, |w| w.firing.push("branch/c".into())),
        ("an edge too few", edges, |w| drop(w.tensors.pop())),
        ("an edge that is not stored then", edges, |w| w.tensors.push("branch/t_z".into())),
        ("a double buffer as two", double_buffered, |w| w.tensors.push("relus/t_a".into())),
    ];
    for &(name, plan, change) in table {
        let mut plan = plan();
        change(plan.certificate.bound.as_mut().unwrap());
        let found = check(&plan).expect_err(name);
        let [Violation::Witness { moment }] = &found[..] else { panic!("{name}: {found:?}") };
        plan.certificate.bound = Some(moment.clone());
        assert_eq!(check(&plan).err(), None, "{name}");
    }
    let mut plan = branch();
    plan.certificate.bound = None;
    assert!(matches!(check(&plan).expect_err("no witness")[..], [Violation::Witness { .. }]));
    // Another firing of the same layer, and another layer, may be as full.
    let mut plan = pair();
    plan.certificate.bound.as_mut().unwrap().firing = vec!["pair/l2".into()];
    assert_eq!(check(&plan).err(), None);
}
