//! Plans of layers on 8-bit integers that misstate the numbers for which the integers stand.

use csdfc_input::app::resolve::RowsChoice;
use csdfc_network::pass::{Fusion, fuse_integers};
use csdfc_plan::format::Quantization;
use csdfc_plan::operator::{Conv, Operator};
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_tests::quantized::dense_block;
use csdfc_tests::{generate, plan, random};
use rand::RngExt;

use super::{Edit, Random, pick};

pub const CORRUPTIONS: &[(&str, Edit)] = &[
    ("prologue without its integers", prologue_without_its_integers),
    ("prologue of no scale", prologue_of_no_scale),
    ("parts of other integers", parts_of_other_integers),
    ("prologue of integers among floats", prologue_of_integers_among_floats),
    ("prologue's constants off", prologue_constants_off),
];

/// Dense blocks whose convolutions read concats where they lie, by way of batch norms.
pub fn subjects() -> Vec<(String, Plan)> {
    let rows = [RowsChoice::None, RowsChoice::All];
    let all = (0..6).zip(rows.into_iter().cycle()).map(|(stream, rows)| {
        let network = fuse_integers(dense_block(&mut random(stream)), Fusion::Full);
        (format!("dense block {stream}"), plan(&generate::of_one(network, StorageModel::Tensors, rows)))
    });
    all.collect()
}

/// A convolution of integers that suits.
fn conv<'p>(plan: &'p mut Plan, random: &mut Random, suits: fn(&Conv) -> bool) -> Option<&'p mut Conv> {
    let mut all: Vec<&mut Conv> = plan.cnns[0]
        .layers
        .iter_mut()
        .filter_map(|layer| match &mut layer.operator {
            Operator::Conv(conv) if suits(conv) => Some(conv),
            _ => None,
        })
        .collect();
    let at = (!all.is_empty()).then(|| random.random_range(0..all.len()))?;
    Some(all.swap_remove(at))
}

/// Invalid because the sums would be of floats.
fn prologue_without_its_integers(plan: &mut Plan, random: &mut Random) -> Option<()> {
    conv(plan, random, |conv| conv.pre.is_some())?.pre.as_mut()?.quantization.take().map(|_| ())
}

/// Invalid because nothing can be divided by such a scale.
fn prologue_of_no_scale(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let quantization = conv(plan, random, |conv| conv.pre.is_some())?.pre.as_mut()?.quantization.as_mut()?;
    quantization.scale = [0.0, -quantization.scale, f32::NAN, f32::INFINITY][random.random_range(0..4)];
    Some(())
}

/// Invalid because an image has one scale and one zero point.
fn parts_of_other_integers(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let layers = &plan.cnns[0].layers;
    let all: Vec<&str> = layers
        .iter()
        .filter(|layer| layer.inputs.len() > 1)
        .flat_map(|layer| &layer.inputs)
        .map(|input| input.tensor.as_str())
        .collect();
    let name = (*pick(&all, random)?).to_owned();
    let tensor = plan.tensors.iter_mut().find(|tensor| tensor.name == name)?;
    let Quantization { scale, zero_point } = tensor.quantization.as_mut()?;
    if random.random_range(0..2) == 0 {
        *scale *= 2.0;
    } else {
        *zero_point ^= 1;
    }
    Some(())
}

/// Invalid because kernels of floats round nothing to integers.
fn prologue_of_integers_among_floats(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let cnn = &mut plan.cnns[0];
    let all: Vec<usize> = (0..cnn.layers.len())
        .filter(|l| matches!(&cnn.layers[*l].operator, Operator::Conv(conv) if conv.pre.is_some()))
        .collect();
    cnn.layers[*pick(&all, random)?].primitive = "indirect-gemm-hwc-hwc".into();
    Some(())
}

/// Invalid because the parameters would be others.
fn prologue_constants_off(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let pre = conv(plan, random, |conv| conv.pre.is_some())?.pre.as_mut()?;
    pre.affine = !pre.affine;
    Some(())
}
