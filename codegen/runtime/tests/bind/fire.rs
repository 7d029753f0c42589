//! What kernels do besides making rows.

use csdfc_kernels::kernel::Context;
use csdfc_kernels::span::SpanMut;
use csdfc_plan::operator::{ElementWise, Function, Operator};
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::{Primitive, Site, Slots, Source, Target, bind};
use csdfc_runtime::bytes::Bytes;
use csdfc_runtime::weights;

/// Slopes for each channel of a view whose channels are the pixels of the tensor.
#[test]
fn slopes_are_those_of_the_channels_seen() {
    let (own, seen) = (Shape::image(1, 8, 3), Shape::image(24, 1, 1));
    let operator = Operator::ElementWise(ElementWise { function: Function::PRelu { slope: vec![24, 1, 1] } });
    let primitive = Primitive::new(&operator, &[&seen]);
    let call = bind(primitive, &Site::whole(&operator, [(&own, &seen)].into_iter(), &seen)).unwrap();
    let slopes: Vec<f32> = (1..=24).map(|i| i as f32).collect();
    let [mut weights, mut x, mut made] = [0; 3].map(|_| Bytes::zeros(4 * 24).unwrap());
    weights::pack(&call, &|_| Ok(slopes.as_slice().into()), &mut weights).unwrap();
    SpanMut::of_bytes(&mut x).all().fill(-1.0f32);
    let x = Source { data: &x, slots: Slots::Ring(0) };
    let output = Target { data: &mut made, slots: Slots::Ring(0) };
    let context = &mut Context::alone(csdfc_kernels::arch::Isa::compiled());
    call.fire(context, 0..1, &[x], &weights, output);
    let expected: Vec<f32> = slopes.iter().map(|slope| -slope).collect();
    assert_eq!(SpanMut::<f32>::of_bytes(&mut made).all(), expected);
}
