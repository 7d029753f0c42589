//! `csdfc quantize`: frames from files or a seed, a quantised model, and a report of what that costs.

use std::path::{Path, PathBuf};

use csdfc::app::open;
use csdfc::error::{Ending, Error};
use csdfc::export::export;
use csdfc::network::{Layer, Network};
use csdfc::quantise::{Options, quantise};
use csdfc_codegen::file_name::file_name;
use csdfc_codegen::run::{Data, Value};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{npy, output};
use crate::cli::quantize::{QuantizeArgs, Scheme};
use crate::cli::{Format, LoadArgs};
use crate::report::quantize as report;

/// Quantises a model.
///
/// # Errors
/// When the scheme is none of those that are written, the model or a frame cannot be read or does not fit, the model cannot
/// be quantised, or a result cannot be written.
pub fn quantize(args: &QuantizeArgs) -> Result<Ending, Error> {
    let precision = match args.scheme {
        Scheme::Int8 => None,
        Scheme::Mixed => Some("mixed"),
        Scheme::Half => Some("half"),
    };
    if let Some(precision) = precision {
        let (message, model) = (format!("no ONNX file of precision {precision} is written"), &args.model);
        let help = format!("plan the model as it is: csdfc plan {model} --precision {precision}");
        return Err(Error::Input { message, help: Some(help) });
    }
    let mut app = open::open(&args.model)?;
    let load = LoadArgs { no_fuse: false, shapes: args.shapes.clone() };
    load.apply(&mut app.spec, &mut app.origin)?;
    let network = app.network_as_stated()?;
    let frames = match args.random {
        Some(count) => random(&network, count, args.seed),
        None => read(&network, &args.calibrate)?,
    };
    let quantised = quantise(network, &frames, Options { ranges: args.ranges, keep_above: args.keep_above })?;
    output::write_file(&args.output, &export(&quantised.network)?)?;
    output::print(&match args.format {
        Format::Text => report::text(&quantised.report),
        Format::Json => output::json(&quantised.report)?,
        Format::Ron => output::ron(&quantised.report)?,
    })?;
    Ok(Ending::Yes)
}

fn inputs(network: &Network) -> impl Iterator<Item = &Layer> {
    network.layers.iter().filter(|layer| layer.is_input())
}

fn random(network: &Network, count: u64, seed: u64) -> Vec<Vec<Value>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut value = |layer: &Layer| {
        let elements = 0..layer.shape.elements();
        let data = Data::F32(elements.map(|_| random.random_range(-1.0f32..1.0)).collect());
        Value { dims: layer.shape.dims.clone(), data }
    };
    (0..count).map(|_| inputs(network).map(&mut value).collect()).collect()
}

/// The frames of files and folders, those of a folder by name. A frame is a file or, if there are several inputs, a folder
/// with a file for each.
fn read(network: &Network, paths: &[PathBuf]) -> Result<Vec<Vec<Value>>, Error> {
    let files: Vec<String> = inputs(network).map(|layer| file_name(&layer.name) + ".npy").collect();
    let is_frame = |path: &Path| match files.len() {
        1 => !path.is_dir(),
        _ => files.iter().any(|file| path.join(file).exists()),
    };
    let mut frames = Vec::new();
    for path in paths {
        let mut found = vec![path.clone()];
        if !is_frame(path) {
            let entries = std::fs::read_dir(path).and_then(|entries| {
                entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>()
            });
            found = entries.map_err(|error| Error::read(path, error))?;
            let is_npy = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "npy");
            found.retain(|path| if files.len() == 1 { is_npy(path) } else { is_frame(path) });
            found.sort();
        }
        if found.is_empty() {
            return Err(Error::Input {
                message: format!("{} has no frame", path.display()),
                help: Some(match files.as_slice() {
                    [_] => "a frame is a .npy file".into(),
                    files => format!("a frame is a folder with {}", files.join(", ")),
                }),
            });
        }
        for frame in found {
            frames.push(match files.as_slice() {
                [_] => vec![npy::read(&frame)?],
                files => files.iter().map(|file| npy::read(&frame.join(file))).collect::<Result<_, _>>()?,
            });
        }
    }
    Ok(frames)
}
