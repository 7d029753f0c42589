//! `csdfc quantize`: frames from files or a seed, a quantized model, and a report of its errors.

use std::path::Path;

use csdfc_input::export::export;
use csdfc_planner::open;
use csdfc_precision::quantize::{self, Options, Quantized};

use super::{frames, output, watcher};
use crate::cli::Format;
use crate::cli::load::LoadArgs;
use crate::cli::quantize::{QuantizeArgs, Scheme};
use crate::error::{Error, Outcome};
use crate::report::quantize as report;

/// Quantizes a model. Ctrl-C ends it, and nothing is written.
///
/// # Errors
/// When csdfc cannot write the scheme, the model or a frame cannot be read or does not fit, the model cannot be
/// quantized, or a result cannot be written.
pub fn quantize(args: &QuantizeArgs) -> Result<Outcome, Error> {
    output::expect_apart([args.output.as_path()], [Path::new(&args.model)])?;
    let task = args.clone();
    let (onnx, result) = watcher::unless_stopped(watcher::ctrl_c(), move || {
        let quantized = quantized(&task)?;
        Ok((export(&quantized.network)?, quantized.report))
    })?;
    output::write_file(&args.output, &onnx)?;
    output::print(&match args.format {
        Format::Text => report::text(&result),
        Format::Json => output::json(&result)?,
        Format::Ron => output::ron(&result)?,
    })?;
    Ok(Outcome::Yes)
}

/// The quantized network, and its errors. Nothing is written.
///
/// # Errors
/// As [`quantize`].
pub(crate) fn quantized(args: &QuantizeArgs) -> Result<Quantized, Error> {
    let precision = match args.scheme {
        Scheme::Int8 => None,
        Scheme::Mixed => Some("mixed"),
        Scheme::Half => Some("half"),
    };
    if let Some(precision) = precision {
        let (message, model) =
            (format!("csdfc cannot write an ONNX file of precision {precision}"), &args.model);
        let help = format!("plan the model as it is: csdfc plan {model} --precision {precision}");
        return Err(Error::Input { message, help: Some(help) });
    }
    let mut app = open::open(&args.model)?;
    let load = LoadArgs { shapes: args.shapes.clone(), ..LoadArgs::default() };
    load.apply(&mut app.spec, &mut app.origin)?;
    let network = app.network_as_stated()?;
    let frames = match args.random {
        Some(count) => frames::random(&network, count, args.seed),
        None => frames::read(&network, &args.calibrate)?,
    };
    let options = Options { ranges: args.ranges, keep_above: args.keep_above };
    Ok(quantize::quantize(network, &frames, options)?)
}
