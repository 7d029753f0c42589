//! Binds how the caller hands over a network's inputs: as the model states them, or as camera bytes.

use csdfc_plan::operator::{Camera, CameraLayout, ColorOrder, Input, Operator};

use super::fault::AppFault;
use super::locate::PathStep;
use super::spec::{CnnSpec, ElementSpec, InputSpec, Numbers};
use csdfc_network::suggest::{self, clip};
use csdfc_network::{Network, pass};

/// The network with the inputs of a CNN's specification. `path` is that of the CNN.
pub(super) fn bind(mut network: Network, spec: &CnnSpec, path: &[PathStep]) -> Result<Network, AppFault> {
    let path = [path, &["inputs".into()]].concat();
    for (name, input) in &spec.inputs {
        // The only input needs no name.
        let is_only = network.layers.iter().filter(|layer| layer.is_input()).count() == 1;
        let is_named = |layer: &csdfc_network::Layer| layer.name == *name || layer.output == *name;
        let known = |layer: &csdfc_network::Layer| {
            layer.is_input() && (is_named(layer) || name.is_empty() && is_only)
        };
        let Some(id) = network.ids().find(|id| known(network.layer(*id))) else {
            let inputs =
                network.layers.iter().filter(|layer| layer.is_input()).map(|layer| layer.name.as_str());
            let at = [&path[..], &[PathStep::Key(name.clone())]].concat();
            return Err(AppFault::new(
                &at,
                format!("the model has no input `{}`", clip(name)),
                "no such input",
            )
            .help(suggest::help(name, "its inputs are", inputs)));
        };
        let at = [&path[..], &[PathStep::from(name.as_str())]].concat();
        let is_of_integers = network.layer(id).quantization.is_some();
        if is_of_integers && input.element == Some(ElementSpec::F32) {
            let message = "the model takes 8-bit integers here, not floats";
            return Err(AppFault::new(&at, message, "not f32")
                .help("leave `type` out; `csdfc run` also takes floats that are whole numbers"));
        }
        if let Some(camera) = camera(input, &network.layer(id).shape, &at)? {
            network = pass::camera(network, id, camera);
            if !is_finite(&network.layer(id).operator) {
                let message =
                    "`mean` less 128 / `scale`, where the model's integers begin, leaves what floats hold";
                return Err(AppFault::new(&at, message.to_string(), "too large or too small"));
            }
        }
    }
    Ok(network)
}

/// Whether an input's camera makes numbers of bytes.
fn is_finite(input: &Operator) -> bool {
    let Operator::Input(Input { camera: Some(Camera { mean, scale, .. }), .. }) = input else { return true };
    mean.iter().chain(scale).all(|number| number.is_finite()) && !scale.contains(&0.0)
}

/// The camera that hands over an input of this shape, if one does.
fn camera(
    spec: &InputSpec,
    shape: &csdfc_plan::shape::Shape,
    path: &[PathStep],
) -> Result<Option<Camera>, AppFault> {
    if spec.element != Some(ElementSpec::U8) {
        let camera_only = [
            ("layout", spec.layout.is_some()),
            ("order", spec.order.is_some()),
            ("mean", spec.mean.is_some()),
            ("scale", spec.scale.is_some()),
        ];
        return match camera_only.iter().find(|(_, given)| *given) {
            None => Ok(None),
            Some((field, _)) => {
                let at = [path, &[PathStep::from(*field)]].concat();
                Err(AppFault::new(&at, format!("`{field}` is for camera bytes only"), "not for f32")
                    .help("add `type: u8`; an f32 input is taken as the network expects it"))
            }
        };
    }
    if !shape.is_image() {
        let message = format!("camera bytes need an input of 4 dimensions and batch 1; this one is {shape}");
        return Err(AppFault::new(path, message, "not an image"));
    }
    let channels = shape.channels();
    let per_channel = |field: &str, given: &Option<Numbers>, default: f32| -> Result<Vec<f32>, AppFault> {
        let values = match given {
            None => vec![default; channels],
            Some(Numbers::One(value)) => vec![*value; channels],
            Some(Numbers::Each(values)) if values.len() == 1 => vec![values[0]; channels],
            Some(Numbers::Each(values)) => values.clone(),
        };
        let at = [path, &[PathStep::from(field)]].concat();
        if values.len() != channels {
            let message =
                format!("`{field}` has {} numbers, but the input has {channels} channels", values.len());
            return Err(
                AppFault::new(&at, message, "wrong length").help("give one number, or one per channel")
            );
        }
        if values.iter().any(|value| !value.is_finite() || (field == "scale" && *value == 0.0)) {
            let rule = if field == "scale" { "finite and not 0" } else { "finite" };
            return Err(AppFault::new(&at, format!("`{field}` must be {rule}"), "not usable"));
        }
        Ok(values)
    };
    let order = spec.order.unwrap_or(ColorOrder::Rgb);
    if order == ColorOrder::Bgr && channels != 3 {
        let at = [path, &["order".into()]].concat();
        let message = format!("only an input of 3 channels can be BGR; this one has {channels}");
        return Err(AppFault::new(&at, message, "not a color image"));
    }
    Ok(Some(Camera {
        layout: spec.layout.unwrap_or(CameraLayout::Hwc),
        order,
        mean: per_channel("mean", &spec.mean, 0.0)?,
        scale: per_channel("scale", &spec.scale, 1.0)?,
    }))
}

#[cfg(test)]
mod tests {
    use csdfc_network::Layer;
    use csdfc_plan::format::Quantization;
    use csdfc_plan::operator::InputElement;
    use csdfc_plan::shape::Shape;

    use super::*;

    #[test]
    fn cameras_and_floats_of_integers() {
        let mut network = Network::default();
        network.add(Layer {
            name: "image".into(),
            onnx_nodes: Vec::new(),
            operator: Operator::Input(Input { element: InputElement::I8, camera: None }),
            inputs: Vec::new(),
            parameters: Vec::new(),
            output: "image".into(),
            shape: Shape::image(3, 4, 4),
            primitive: None,
            quantization: Some(Quantization { scale: 1e-20, zero_point: 3 }),
        });
        let bind = |input: &str| {
            let text = format!("(model: \"m\", inputs: {{\"image\": ({input})}})");
            let spec: CnnSpec = ron::Options::default()
                .with_default_extension(ron::extensions::Extensions::IMPLICIT_SOME)
                .from_str(&text)
                .unwrap();
            bind(network.clone(), &spec, &[]).map(|network| network.layers.len())
        };
        assert_eq!(bind("type: u8, scale: 0.5").ok(), Some(1));
        assert_eq!(bind("").ok(), Some(1));
        for (input, why) in [
            ("type: u8, scale: 1e-38", "leaves what floats hold"),
            ("type: u8, mean: -3e38, scale: 4e-37", "leaves what floats hold"),
            ("type: f32", "takes 8-bit integers here"),
        ] {
            let message = format!("{:?}", bind(input).unwrap_err());
            assert!(message.contains(why), "{input}: {message}");
        }
    }
}
