//! Arguments of `csdfc quantize`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use csdfc_precision::quantize::Ranges;

use super::load::InputShape;
use super::{Format, values};

/// Arguments of `csdfc quantize`.
#[derive(Debug, Clone, Args)]
pub struct QuantizeArgs {
    /// FILE.onnx, FILE.tflite or builtin:NAME
    pub model: String,
    /// The quantized model, an ONNX file with QuantizeLinear and DequantizeLinear
    #[arg(short, long, value_name = "FILE.onnx")]
    pub output: PathBuf,
    /// Numbers of the written model. csdfc writes no models of mixed and half precision: `csdfc plan --precision` plans
    /// the model of floats itself
    #[arg(long, value_enum, default_value_t)]
    pub scheme: Scheme,
    /// Frames to calibrate with, or folders of frames
    #[arg(long, value_name = "FILE.npy|DIR", num_args = 1.., required_unless_present = "random")]
    pub calibrate: Vec<PathBuf>,
    /// Calibrate with N random frames of floats from -1 to 1. Frames from real use are better
    #[arg(long, value_name = "N", conflicts_with = "calibrate", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub random: Option<u64>,
    /// Seed of random frames
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The range of numbers that the integers of a tensor stand for
    #[arg(long, default_value = "min-max", value_parser = values::ranges())]
    pub ranges: Ranges,
    /// Keep floats in each layer whose own error, relative to its tensor, is above this, and in the layers before it,
    /// so that it reads numbers that were not rounded
    #[arg(long, value_name = "ERROR")]
    pub keep_above: Option<f64>,
    /// Shape of an input whose dimensions the model leaves open, by its name, by that of one dimension (`height=224`), or by
    /// none where there is one input
    #[arg(long = "shape", value_name = "[INPUT=]1,3,224,224")]
    pub shapes: Vec<InputShape>,
    /// What to print
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// What a quantized model is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Scheme {
    /// 8-bit integers
    #[default]
    Int8,
    /// W8A16, weights of 8-bit integers and tensors of 16-bit floats: planned, not written
    #[value(alias = "w8a16")]
    Mixed,
    /// 16-bit floats: planned, not written
    Half,
}
