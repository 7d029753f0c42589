//! What the kernels of a crate do. The file `features.rs` of its kernels states this, so that the compiler leaves out the code
//! for the rest.

use std::collections::BTreeSet;

use csdfc_runtime::bind::{Call, Form, Literal};

/// The file, from the kernels' `src`.
pub(super) const FILE: &str = "features.rs";

/// A constant of [`FILE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Feature {
    Depthwise,
    Width3,
    Width5,
    Prologues,
    Parts,
    QuantizedDense,
    TapByTap,
    Exponentials,
    Logarithms,
    Sines,
}

/// Each constant, its name in the file, and what it says there.
const FEATURES: [(Feature, &str, &str); 10] = [
    (Feature::Depthwise, "DEPTHWISE", "Some convolutions are depthwise."),
    (Feature::Width3, "WIDTH_3", "Some depthwise ones have filters 3 wide."),
    (Feature::Width5, "WIDTH_5", "Some depthwise ones have filters 5 wide."),
    (Feature::Prologues, "PROLOGUES", "Some convolutions change their input as they read it: `Conv::pre`."),
    (Feature::Parts, "PARTS", "Some convolutions read their input as several operands."),
    (Feature::QuantizedDense, "QUANTIZED_DENSE", "Some convolutions of bytes are not depthwise."),
    (
        Feature::TapByTap,
        "TAP_BY_TAP",
        "Some depthwise convolutions of bytes add a number to each weight, or have the largest filters.",
    ),
    (Feature::Exponentials, "EXPONENTIALS", "Some activations have exponential functions."),
    (Feature::Logarithms, "LOGARITHMS", "Some activations have logarithms."),
    (Feature::Sines, "SINES", "Some activations are sines or cosines."),
];

/// Rows of a filter, and taps, up to which a depthwise convolution of bytes takes taps together on every processor.
const TOGETHER: [usize; 2] = [8, 32];

/// What some kernels do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Features(BTreeSet<Feature>);

impl Features {
    /// What these calls need.
    pub fn new<'a>(calls: impl Iterator<Item = &'a Call>) -> Self {
        let mut features = Features::default();
        for call in calls {
            let operands = match &call.form {
                Form::Rows(form) => form.inputs.len(),
                Form::Elements(form) => form.inputs.len(),
            };
            features.add(call.literal(), operands);
        }
        features
    }

    /// What both do.
    pub fn or(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Adds what a kernel with `operands` operands does, and everything that it contains.
    fn add(&mut self, kernel: &Literal, operands: usize) {
        match kernel {
            Literal::Scalar(_) | Literal::Option(None) => {}
            Literal::Array(items) => items.iter().for_each(|item| self.add(item, operands)),
            Literal::Option(Some(value)) => self.add(value, operands),
            Literal::Type { name, variant, fields, inner } => {
                let of = Fields(fields);
                match *name {
                    "Conv" => self.add_convolution(of, operands),
                    "QConv" => self.add_convolution_of_bytes(of),
                    // It is a convolution of one pixel.
                    "QGemm" => {
                        let gemm = of.of("gemm");
                        let is_depthwise = gemm.is("inner", "1") && gemm.is("units", "1");
                        self.add_kind_of_bytes(is_depthwise, [1, 1], of.is("has_offset", "true"));
                    }
                    "Activation" => self.0.extend(variant.and_then(of_activation)),
                    _ => {}
                }
                fields.iter().for_each(|(_, field)| self.add(field, operands));
                inner.iter().for_each(|inner| self.add(inner, operands));
            }
        }
    }

    fn add_convolution(&mut self, conv: Fields<'_>, operands: usize) {
        if conv.is_depthwise() {
            self.0.insert(Feature::Depthwise);
            match conv.kernel()[1] {
                3 => self.0.extend([Feature::Width3]),
                5 => self.0.extend([Feature::Width5]),
                _ => {}
            }
        }
        if conv.has("pre") {
            self.0.insert(Feature::Prologues);
        }
        if operands > 1 + usize::from(conv.is("residual", "true")) {
            self.0.insert(Feature::Parts);
        }
    }

    fn add_convolution_of_bytes(&mut self, of: Fields<'_>) {
        let conv = of.of("conv");
        self.add_kind_of_bytes(conv.is_depthwise(), conv.kernel(), of.is("has_offset", "true"));
        if of.has("pre") {
            self.0.insert(Feature::Prologues);
        }
    }

    fn add_kind_of_bytes(&mut self, is_depthwise: bool, kernel: [usize; 2], has_offset: bool) {
        if !is_depthwise {
            self.0.insert(Feature::QuantizedDense);
            return;
        }
        self.0.insert(Feature::Depthwise);
        if has_offset || kernel[0] > TOGETHER[0] || kernel[0] * kernel[1] > TOGETHER[1] {
            self.0.insert(Feature::TapByTap);
        }
    }

    /// The names of the constants that are true.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        FEATURES.into_iter().filter(|(feature, ..)| self.0.contains(feature)).map(|(_, name, _)| name)
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let mut text =
            String::from("//! What the kernels do; the compiler leaves out the code for the rest.\n\n");
        for (feature, name, what) in FEATURES {
            let is_so = self.0.contains(&feature);
            text += &format!("/// {what}\npub(crate) const {name}: bool = {is_so};\n");
        }
        text
    }
}

/// What an activation needs, by its name among the kernels' `Activation`.
fn of_activation(name: &str) -> Option<Feature> {
    match name {
        "Elu" | "Selu" | "Sigmoid" | "Swish" | "Tanh" | "Erf" | "Gelu" | "Mish" | "Exp" => {
            Some(Feature::Exponentials)
        }
        "Softplus" | "Log" => Some(Feature::Logarithms),
        "Sin" | "Cos" => Some(Feature::Sines),
        _ => None,
    }
}

/// The fields of a structure.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [(&'static str, Literal)]);

impl<'a> Fields<'a> {
    fn get(self, name: &str) -> Option<&'a Literal> {
        self.0.iter().find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    /// The fields of a field.
    fn of(self, name: &str) -> Fields<'a> {
        match self.get(name) {
            Some(Literal::Type { fields, .. }) => Fields(fields),
            _ => Fields(&[]),
        }
    }

    fn is(self, name: &str, text: &str) -> bool {
        matches!(self.get(name), Some(Literal::Scalar(value)) if value == text)
    }

    /// Whether an optional field is there.
    fn has(self, name: &str) -> bool {
        self.get(name).is_some_and(|value| *value != Literal::Option(None))
    }

    /// Of a convolution.
    fn is_depthwise(self) -> bool {
        let groups = self.get("groups");
        groups == self.get("channels") && groups == self.get("filters")
    }

    /// The height and width of a convolution's filters.
    fn kernel(self) -> [usize; 2] {
        let side = |literal: &Literal| match literal {
            Literal::Scalar(text) => text.parse().ok(),
            _ => None,
        };
        match self.get("kernel") {
            Some(Literal::Array(sides)) => {
                [sides.first(), sides.last()].map(|of| of.and_then(side).unwrap_or(1))
            }
            _ => [1, 1],
        }
    }
}

#[cfg(test)]
mod tests {
    use csdfc_kernels::Activation;
    use csdfc_kernels::conv::Conv;
    use csdfc_kernels::conv::mixed::MixedConv;
    use csdfc_kernels::conv::pre::Pre;
    use csdfc_kernels::gemm::Gemm;
    use csdfc_kernels::quantized::Requantize;
    use csdfc_kernels::quantized::conv::QConv;
    use csdfc_kernels::quantized::gemm::QGemm;
    use csdfc_kernels::sources::SOURCES;

    use super::*;

    /// A 3×3 convolution of 8 channels, which is never run.
    const PLAIN: Conv = Conv {
        channels: 8,
        filters: 8,
        kernel: [3, 3],
        stride: [1, 1],
        dilation: [1, 1],
        pads: [1; 4],
        groups: 1,
        pre: None,
        residual: false,
        activation: Activation::None,
    };
    const REQUANTIZE: Requantize = Requantize { zero_point: 0, low: 0, high: 255 };

    /// The names of the constants that are true for a kernel with `operands` operands.
    fn features(kernel: &Literal, operands: usize) -> Vec<&'static str> {
        let mut features = Features::default();
        features.add(kernel, operands);
        features.names().collect()
    }

    #[test]
    fn convolutions_are_known_by_their_parameters() {
        let of = |conv: Conv, operands: usize| features(&Literal::new(&conv), operands);
        let none: [&str; 0] = [];
        assert_eq!(of(PLAIN, 1), none);
        assert_eq!(of(Conv { groups: 4, ..PLAIN }, 1), none);
        assert_eq!(of(Conv { groups: 8, ..PLAIN }, 1), ["DEPTHWISE", "WIDTH_3"]);
        assert_eq!(of(Conv { groups: 8, kernel: [3, 5], ..PLAIN }, 1), ["DEPTHWISE", "WIDTH_5"]);
        let pre = Some(Pre { affine: false, activation: Activation::Relu });
        assert_eq!(of(Conv { pre, ..PLAIN }, 1), ["PROLOGUES"]);
        assert_eq!(of(PLAIN, 2), ["PARTS"]);
        assert_eq!(of(Conv { residual: true, ..PLAIN }, 2), none);
        assert_eq!(of(Conv { residual: true, ..PLAIN }, 3), ["PARTS"]);
        // A convolution that is contained in another kernel.
        let mixed = Literal::new(&MixedConv { conv: Conv { groups: 8, kernel: [5, 5], pre, ..PLAIN } });
        assert_eq!(features(&mixed, 1), ["DEPTHWISE", "WIDTH_5", "PROLOGUES"]);
    }

    #[test]
    fn activations_are_known_wherever_they_are() {
        let of = |activation| features(&Literal::new(&Conv { activation, ..PLAIN }), 1);
        assert_eq!(of(Activation::Tanh), ["EXPONENTIALS"]);
        assert_eq!(of(Activation::Softplus), ["LOGARITHMS"]);
        assert_eq!(features(&Literal::new(&Activation::Cos), 1), ["SINES"]);
        let pre = Some(Pre { affine: false, activation: Activation::Swish });
        assert_eq!(features(&Literal::new(&Conv { pre, ..PLAIN }), 1), ["PROLOGUES", "EXPONENTIALS"]);
    }

    #[test]
    fn kinds_of_convolutions_of_bytes() {
        let conv = QConv { conv: PLAIN, pre: None, zero_point: 0, has_offset: false, requantize: REQUANTIZE };
        assert_eq!(features(&Literal::new(&conv), 1), ["QUANTIZED_DENSE"]);
        let depthwise = |kernel, has_offset| {
            let conv = QConv { conv: Conv { groups: 8, kernel, ..PLAIN }, has_offset, ..conv };
            features(&Literal::new(&conv), 1).contains(&"TAP_BY_TAP")
        };
        assert!(!depthwise([3, 3], false) && depthwise([3, 3], true));
        assert!(depthwise([9, 1], false) && depthwise([3, 11], false));
        let gemm = |inner, units| {
            let gemm = Gemm { inner, units, activation: Activation::None };
            let gemm = QGemm { gemm, zero_point: 0, has_offset: true, requantize: REQUANTIZE };
            features(&Literal::new(&gemm), 1)
        };
        assert_eq!(gemm(1, 2), ["QUANTIZED_DENSE"]);
        assert_eq!(gemm(1, 1), ["DEPTHWISE", "TAP_BY_TAP"]);
    }

    /// The kernels' own file, in which all constants are true, has the same text.
    #[test]
    fn the_text_is_the_kernels_own_but_for_its_head() {
        let (_, own) = SOURCES.iter().find(|(path, _)| *path == FILE).unwrap();
        let all = Features(FEATURES.into_iter().map(|(feature, ..)| feature).collect());
        let constants = |text: &str| text.split_once("\n\n").unwrap().1.to_owned();
        assert_eq!(constants(&all.text()), constants(own));
    }
}
