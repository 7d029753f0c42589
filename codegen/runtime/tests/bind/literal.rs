//! Parameters of kernels as Rust writes them.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::pad::{Pad, PadMode};
use csdfc_runtime::bind::Literal;

fn scalar(text: &str) -> Literal {
    Literal::Scalar(text.into())
}

#[test]
fn numbers_are_those_of_rust() {
    let clip = Activation::Clip { min: f32::NEG_INFINITY, max: 6.0 };
    assert_eq!(
        Literal::new(&clip),
        Literal::Type {
            name: "Activation",
            variant: Some("Clip"),
            fields: vec![("min", scalar("f32::NEG_INFINITY")), ("max", scalar("6.0"))],
            inner: None,
        }
    );
    let pad = Pad { mode: PadMode::Constant(-1e-12), before: [0, 1, -2], after: [0; 3] };
    let Literal::Type { name: "Pad", variant: None, fields, inner: None } = Literal::new(&pad) else {
        panic!("no structure");
    };
    let constant = Some(Box::new(scalar("-1e-12")));
    let mode = Literal::Type { name: "PadMode", variant: Some("Constant"), fields: vec![], inner: constant };
    assert_eq!(fields[0], ("mode", mode));
    assert_eq!(fields[1], ("before", Literal::Array(["0", "1", "-2"].map(scalar).into())));
}
