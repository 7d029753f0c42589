//! The option that says how the caller hands over an input.

use std::str::FromStr;

use clap::Args;
use csdfc_input::app::Origin;
use csdfc_input::app::spec::{AppSpec, ElementSpec, InputSpec, Numbers};
use csdfc_plan::operator::{CameraLayout, ColorOrder};

use crate::error::Error;

/// Options of inputs.
#[derive(Debug, Clone, Default, Args)]
pub struct InputArgs {
    /// The caller hands over an input as bytes of a camera or an image: u8, then the order of dimensions (hwc, chw) and of
    /// colors (rgb, bgr). A byte b becomes (b - mean) * scale: one number, or one for each channel with `:` between them.
    /// The only input needs no name
    #[arg(long = "input", value_name = "[[CNN/]INPUT=]u8[:hwc|chw][:rgb|bgr][,mean=N:…][,scale=N:…]")]
    pub given: Vec<GivenInput>,
}

/// `[CNN/]INPUT=u8:hwc:rgb,mean=127.5,scale=0.0078`.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenInput {
    /// The input, perhaps `CNN/INPUT`; empty for the only one.
    pub input: String,
    /// How it is handed over.
    pub spec: InputSpec,
}

impl FromStr for GivenInput {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "give the bytes of an input: `image=u8:hwc:rgb,mean=127.5,scale=0.0078`".to_string();
        let mut spec = InputSpec { element: Some(ElementSpec::U8), ..InputSpec::default() };
        // A name may have commas: the fields after it are taken off from the end.
        let mut head = text;
        while let Some((before, field)) = head.rsplit_once(',') {
            let (place, numbers) = match field.split_once('=') {
                Some(("mean", numbers)) => (&mut spec.mean, numbers),
                Some(("scale", numbers)) => (&mut spec.scale, numbers),
                _ => break,
            };
            let numbers = numbers.split(':').map(|number| number.trim().parse().ok());
            if place.replace(Numbers::Each(numbers.collect::<Option<_>>().ok_or_else(wrong)?)).is_some() {
                return Err(wrong());
            }
            head = before;
        }
        let (input, kind) = match head.rsplit_once('=') {
            Some(("", _)) => return Err(wrong()),
            Some(named) => named,
            None => ("", head),
        };
        let mut words = kind.split(':');
        if words.next() != Some("u8") {
            return Err(wrong());
        }
        for word in words {
            let is_new = match word {
                "hwc" => spec.layout.replace(CameraLayout::Hwc).is_none(),
                "chw" => spec.layout.replace(CameraLayout::Chw).is_none(),
                "rgb" => spec.order.replace(ColorOrder::Rgb).is_none(),
                "bgr" => spec.order.replace(ColorOrder::Bgr).is_none(),
                _ => false,
            };
            if !is_new {
                return Err(wrong());
            }
        }
        Ok(GivenInput { input: input.into(), spec })
    }
}

impl InputArgs {
    /// Writes the options over what the application file says.
    ///
    /// # Errors
    /// When an input does not say which CNN's it is.
    pub fn apply(&self, spec: &mut AppSpec, origin: &mut Origin) -> Result<(), Error> {
        for given in &self.given {
            let (cnn, name) = super::cnn_of(spec, &given.input, "--input", "INPUT=…")?;
            cnn.inputs.insert(name, given.spec.clone());
            origin.replaced.push(("inputs", "--input"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_read() {
        let bytes = || InputSpec { element: Some(ElementSpec::U8), ..InputSpec::default() };
        let given = |input: &str, spec| Ok(GivenInput { input: input.into(), spec });
        assert_eq!("u8".parse(), given("", bytes()));
        let (layout, order) = (Some(CameraLayout::Chw), Some(ColorOrder::Bgr));
        assert_eq!("a,b=u8:chw:bgr".parse(), given("a,b", InputSpec { layout, order, ..bytes() }));
        let (mean, scale) = (Some(Numbers::Each(vec![1.0, 2.5, 3.0])), Some(Numbers::Each(vec![0.5])));
        assert_eq!("x=u8,mean=1:2.5:3,scale=0.5".parse(), given("x", InputSpec { mean, scale, ..bytes() }));
        for text in [
            "",
            "x",
            "=u8",
            "x=f32",
            "u8:hwc:chw",
            "u8:yuv",
            "u8,mean=",
            "u8,mean=1,mean=2",
            "u8,gain=2",
            "u8,",
        ] {
            assert!(text.parse::<GivenInput>().is_err(), "{text}");
        }
    }
}
