//! Which kinds of convolutions a crate uses. The file `conv/features.rs` of its kernels states this, so that the compiler
//! leaves out the code for other kinds.

use csdfc_runtime::bind::{Call, Form, Literal};

/// The file, from the kernels' `src`.
pub(super) const FILE: &str = "conv/features.rs";

/// The constants of [`FILE`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Features {
    depthwise: bool,
    width_3: bool,
    width_5: bool,
    prologues: bool,
    parts: bool,
}

impl Features {
    /// The features that these calls need.
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

    /// The features of both.
    pub fn or(self, other: Self) -> Self {
        Features {
            depthwise: self.depthwise || other.depthwise,
            width_3: self.width_3 || other.width_3,
            width_5: self.width_5 || other.width_5,
            prologues: self.prologues || other.prologues,
            parts: self.parts || other.parts,
        }
    }

    /// Adds the convolution that a kernel with `operands` operands is, or that it contains.
    fn add(&mut self, kernel: &Literal, operands: usize) {
        let Literal::Type { name, fields, inner, .. } = kernel else { return };
        if *name != "Conv" {
            let fields = fields.iter().map(|(_, field)| field);
            return fields.chain(inner.as_deref()).for_each(|field| self.add(field, operands));
        }
        let field = |name: &str| fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value);
        let is_alike = |a: &str, b: &str| field(a) == field(b);
        if is_alike("groups", "channels") && is_alike("groups", "filters") {
            self.depthwise = true;
            let width = match field("kernel") {
                Some(Literal::Array(sides)) => sides.last(),
                _ => None,
            };
            let is_wide = |columns: &str| width == Some(&Literal::Scalar(columns.into()));
            self.width_3 |= is_wide("3");
            self.width_5 |= is_wide("5");
        }
        self.prologues |= field("pre").is_some_and(|pre| *pre != Literal::Option(None));
        let has_residual = field("residual") == Some(&Literal::Scalar("true".into()));
        self.parts |= operands > 1 + usize::from(has_residual);
    }

    /// The file's text.
    pub fn text(self) -> String {
        let Features { depthwise, width_3, width_5, prologues, parts } = self;
        let mut text =
            String::from("//! What the convolutions are; the compiler leaves out the code for others.\n\n");
        for (what, name, is_so) in [
            ("Some are depthwise.", "DEPTHWISE", depthwise),
            ("Some depthwise ones have filters 3 wide.", "WIDTH_3", width_3),
            ("Some depthwise ones have filters 5 wide.", "WIDTH_5", width_5),
            ("Some change their input as they read it: [`super::Conv::pre`].", "PROLOGUES", prologues),
            ("Some read their input as several operands.", "PARTS", parts),
        ] {
            text += &format!("/// {what}\npub(super) const {name}: bool = {is_so};\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use csdfc_kernels::Activation;
    use csdfc_kernels::conv::Conv;
    use csdfc_kernels::conv::mixed::MixedConv;
    use csdfc_kernels::conv::pre::Pre;
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

    /// The constants for a kernel with `operands` operands: depthwise, 3 wide, 5 wide, prologues, parts.
    fn features(kernel: &Literal, operands: usize) -> [bool; 5] {
        let mut features = Features::default();
        features.add(kernel, operands);
        let Features { depthwise, width_3, width_5, prologues, parts } = features;
        [depthwise, width_3, width_5, prologues, parts]
    }

    #[test]
    fn convolutions_are_known_by_their_parameters() {
        let of = |conv: Conv, operands: usize| features(&Literal::new(&conv), operands);
        assert_eq!(of(PLAIN, 1), [false; 5]);
        assert_eq!(of(Conv { groups: 4, ..PLAIN }, 1), [false; 5]);
        assert_eq!(of(Conv { groups: 8, ..PLAIN }, 1), [true, true, false, false, false]);
        assert_eq!(of(Conv { groups: 8, kernel: [3, 5], ..PLAIN }, 1), [true, false, true, false, false]);
        let pre = Some(Pre { affine: false, activation: Activation::Relu });
        assert_eq!(of(Conv { pre, ..PLAIN }, 1), [false, false, false, true, false]);
        assert_eq!(of(PLAIN, 2), [false, false, false, false, true]);
        assert_eq!(of(Conv { residual: true, ..PLAIN }, 2), [false; 5]);
        assert_eq!(of(Conv { residual: true, ..PLAIN }, 3), [false, false, false, false, true]);
        // A convolution that is contained in another kernel.
        let mixed = Literal::new(&MixedConv { conv: Conv { groups: 8, kernel: [5, 5], pre, ..PLAIN } });
        assert_eq!(features(&mixed, 1), [true, false, true, true, false]);
    }

    /// The kernels' own file, in which all constants are true, has the same text.
    #[test]
    fn the_text_is_the_kernels_own_but_for_its_head() {
        let (_, own) = SOURCES.iter().find(|(path, _)| *path == FILE).unwrap();
        let all = Features { depthwise: true, width_3: true, width_5: true, prologues: true, parts: true };
        let constants = |text: &str| text.split_once("\n\n").unwrap().1.to_owned();
        assert_eq!(constants(&all.text()), constants(own));
    }
}
