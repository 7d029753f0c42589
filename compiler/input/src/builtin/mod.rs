//! Networks without a file: a [`Builder`], and well-known architectures by name.
//!
//! Weights are drawn from fixed seeds, and only when somebody reads them. Convolution, batch norm and activation are
//! layers of their own, as in the source graph of a model; passes fold them. Built-in networks take one fp32 image,
//! `input`. Layers have their original names.
//!
//! ```
//! use csdfc_input::builtin::{Builder, ConvOptions, network};
//! use csdfc_plan::operator::Function;
//!
//! // LeNet-5 has 61706 parameters.
//! assert_eq!(network("lenet5")?.parameters(), 61_706);
//!
//! // A network of one's own: 8 filters of 3×3×1.
//! let mut builder = Builder::new(1);
//! let image = builder.input("image", [1, 1, 28, 28])?;
//! let conv = builder.conv(&image, 8, [3, 3], ConvOptions::default())?;
//! let relu = builder.activation(&conv, Function::Relu)?;
//! builder.output("features", &relu)?;
//! assert_eq!(builder.finish().parameters(), 72);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blocks;
mod builder;
mod classic;
mod densenet;
mod efficientnet;
mod fingerprint;
mod inception;
mod mobilenet;
mod paper;
mod resnet;
mod sound;
mod squeezenet;
mod video;

pub use builder::{Builder, BuilderError, ConvOptions, Padding, PoolWindow, flatten};
pub use fingerprint::fingerprint;

use csdfc_network::Network;

/// The built-in architectures with published figures.
///
/// `mobilenet_v1`, `mobilenet_v2` and `efficientnet_b0` are those of Keras, with TensorFlow's padding; `inception_v2`
/// is BN-Inception by its Caffe model; `resnet8` and `wake_word` are MLPerf Tiny's; `lenet5` is described at its definition; `vgg_b`,
/// `vgg_c`, `vgg16` and `vgg_e` are the columns B to E of VGG's table 1; the others are torchvision's. The number after
/// `mobilenet_v1_` or `mobilenet_v2_` is the width multiplier, and the one after that the height and width of the image.
pub const NAMES: &[&str] = &[
    "alexnet",
    "densenet121",
    "efficientnet_b0",
    "googlenet",
    "inception_v2",
    "inception_v3",
    "lenet5",
    "mobilenet_v1",
    "mobilenet_v1_0.25",
    "mobilenet_v1_0.5",
    "mobilenet_v1_0.75",
    "mobilenet_v2",
    "mobilenet_v2_0.35_144",
    "resnet18",
    "resnet50",
    "resnet8",
    "squeezenet1_0",
    "vgg16",
    "vgg_b",
    "vgg_c",
    "vgg_e",
    "wake_word",
];

/// The small networks of the main paper's examples: CNN1 and CNN2 of its application (section 2.3) and the pair of
/// layers of section 2.5.
pub const PAPER_NAMES: &[&str] = &["paper_cnn1", "paper_cnn2", "paper_pair"];

/// Networks for the frames of a camera or a video: `espcn` makes 960×540 pixels 3840×2160, and `unet` makes a mask of
/// 2000×1500 pixels.
pub const VIDEO_NAMES: &[&str] = &["espcn", "unet"];

/// Networks whose state goes out of a frame and comes into the next: `voice_activity` is a part of RNNoise.
pub const STATE_NAMES: &[&str] = &["voice_activity"];

/// Why a built-in network cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum BuiltinError {
    /// There is no network of this name.
    #[error("no built-in network is called {name:?}")]
    #[diagnostic(code(csdfc::builtin::unknown), help("{}", help(suggestion.as_deref())))]
    Unknown {
        /// The name asked for.
        name: String,
        /// The nearest name, if one is near.
        suggestion: Option<&'static str>,
    },
    /// Its description is wrong: a bug of csdfc.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Build(#[from] BuilderError),
}

/// The built-in network of this name, one of [`NAMES`], [`VIDEO_NAMES`], [`STATE_NAMES`] or [`PAPER_NAMES`].
///
/// ```
/// let network = csdfc_input::builtin::network("mobilenet_v2")?;
/// assert_eq!(network.parameters(), 3_504_872);
/// # Ok::<(), csdfc_input::builtin::BuiltinError>(())
/// ```
///
/// # Errors
/// When there is none of this name.
pub fn network(name: &str) -> Result<Network, BuiltinError> {
    Ok(match name {
        "alexnet" => classic::alexnet(),
        "densenet121" => densenet::densenet121(),
        "efficientnet_b0" => efficientnet::efficientnet_b0(),
        "espcn" => video::espcn(),
        "googlenet" => inception::googlenet(),
        "inception_v2" => inception::inception_v2(),
        "inception_v3" => inception::inception_v3(),
        "lenet5" => classic::lenet5(),
        "mobilenet_v1" => mobilenet::mobilenet_v1(100),
        "mobilenet_v1_0.25" => mobilenet::mobilenet_v1(25),
        "mobilenet_v1_0.5" => mobilenet::mobilenet_v1(50),
        "mobilenet_v1_0.75" => mobilenet::mobilenet_v1(75),
        "mobilenet_v2" => mobilenet::mobilenet_v2(100, 224),
        "mobilenet_v2_0.35_144" => mobilenet::mobilenet_v2(35, 144),
        "paper_cnn1" => paper::cnn1(),
        "paper_cnn2" => paper::cnn2(),
        "paper_pair" => paper::pair(),
        "resnet18" => resnet::resnet18(),
        "resnet50" => resnet::resnet50(),
        "resnet8" => resnet::resnet8(),
        "squeezenet1_0" => squeezenet::squeezenet1_0(),
        "unet" => video::unet(),
        "vgg16" => classic::vgg16(),
        "vgg_b" => classic::vgg_b(),
        "vgg_c" => classic::vgg_c(),
        "vgg_e" => classic::vgg_e(),
        "voice_activity" => sound::voice_activity(),
        "wake_word" => sound::wake_word(),
        _ => return Err(BuiltinError::Unknown { name: name.into(), suggestion: nearest(name) }),
    }?)
}

/// The name that is most like this one, if it is like it at all.
fn nearest(name: &str) -> Option<&'static str> {
    // Similarity costs the product of both lengths: no name is that long.
    if name.len() > 64 {
        return None;
    }
    let lower = name.to_lowercase();
    NAMES
        .iter()
        .chain(VIDEO_NAMES)
        .chain(STATE_NAMES)
        .chain(PAPER_NAMES)
        .map(|&known| (strsim::jaro_winkler(&lower, known), known))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

fn help(suggestion: Option<&str>) -> String {
    let list = [NAMES, VIDEO_NAMES, STATE_NAMES, PAPER_NAMES].concat().join(", ");
    match suggestion {
        Some(name) => format!("did you mean {name}? There are: {list}"),
        None => format!("there are: {list}"),
    }
}

#[cfg(test)]
mod tests;
