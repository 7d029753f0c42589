//! Frames on which networks run: from files, or drawn at random.

use std::path::{Path, PathBuf};

use csdfc_network::Network;
use csdfc_plan::operator::{Input, InputElement};
use csdfc_plan::shape::Shape;
use csdfc_planner::error::Error;
use csdfc_precision::quantize::inputs;
use csdfc_runtime::file_name::file_name;
use csdfc_runtime::run::{Data, Value, batch_dims, input_dims};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::npy;

/// `count` random frames.
pub(super) fn random(network: &Network, count: u64, seed: u64) -> Vec<Vec<Value>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut frame = || inputs(network).map(|(layer, input)| draw(input, &layer.shape, &mut random)).collect();
    (0..count).map(|_| frame()).collect()
}

/// A random tensor for an input: floats from -1 to 1, or any bytes.
pub(super) fn draw(input: &Input, shape: &Shape, random: &mut ChaCha8Rng) -> Value {
    let elements = 0..shape.elements();
    let data = match input.element {
        InputElement::F32 => Data::F32(elements.map(|_| random.random_range(-1.0f32..1.0)).collect()),
        InputElement::U8 => Data::U8(elements.map(|_| random.random_range(0..=u8::MAX)).collect()),
        InputElement::I8 => Data::I8(elements.map(|_| random.random_range(i8::MIN..=i8::MAX)).collect()),
    };
    Value { dims: input_dims(input, shape), data }
}

/// A tensor of a file for an input. Floats that are whole numbers will do for integers.
pub(super) fn taken(input: &Input, value: Value) -> Value {
    let Data::F32(floats) = &value.data else { return value };
    let all = |least: f32, most: f32| floats.iter().all(|x| x.fract() == 0.0 && (least..=most).contains(x));
    let data = match input.element {
        InputElement::U8 if input.is_of_integers() && all(0.0, 255.0) => {
            Data::U8(floats.iter().map(|x| *x as u8).collect())
        }
        InputElement::I8 if all(-128.0, 127.0) => Data::I8(floats.iter().map(|x| *x as i8).collect()),
        _ => return value,
    };
    Value { data, ..value }
}

/// The frames of a file for an input of this shape, of which a call takes a batch.
pub(super) fn of_batch(
    file: &Path,
    input: &Input,
    shape: &Shape,
    value: Value,
    batch: u64,
) -> Result<Vec<Value>, Error> {
    let (dims, batch) = (input_dims(input, shape), batch as usize);
    value.frames(batch, dims.len()).ok_or_else(|| Error::Input {
        message: format!(
            "{} has the dimensions {:?}, not {:?}",
            file.display(),
            value.dims,
            batch_dims(&dims, batch)
        ),
        help: Some(format!("a call takes {batch} frames, one after another along the first dimension")),
    })
}

/// The frames of files and folders, those of a folder by name. A frame is a file or, if there are several inputs, a folder
/// with a file for each.
pub(super) fn read(network: &Network, paths: &[PathBuf]) -> Result<Vec<Vec<Value>>, Error> {
    let files: Vec<String> = inputs(network).map(|(layer, _)| file_name(&layer.name) + ".npy").collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_will_do_for_integers() {
        let of = |element| Input { element, camera: None };
        let floats = |values: &[f32]| Value { dims: vec![values.len()], data: Data::F32(values.to_vec()) };
        let taken = |element, values: &[f32]| taken(&of(element), floats(values)).data;
        assert_eq!(taken(InputElement::I8, &[-128.0, 0.0, 127.0]), Data::I8(vec![-128, 0, 127]));
        assert_eq!(taken(InputElement::U8, &[255.0, 0.0]), Data::U8(vec![255, 0]));
        for (element, values) in [
            (InputElement::I8, [0.5]),
            (InputElement::I8, [128.0]),
            (InputElement::I8, [f32::NAN]),
            (InputElement::U8, [-1.0]),
            (InputElement::F32, [1.0]),
        ] {
            assert_eq!(format!("{:?}", taken(element, &values)), format!("{:?}", floats(&values).data));
        }
    }
}
