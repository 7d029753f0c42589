//! Section 5: families of primitives.

use serde_json::Value;

use super::model::Layer;
use super::rows::Shape;
use super::{Refusal, list, number};

/// Two numbers, of y and x.
fn pair(attributes: &Value, field: &str) -> Result<[u64; 2], Refusal> {
    match list(attributes, field)? {
        [y, x] => Ok([y, x].map(|number| number.as_u64().unwrap_or(0))),
        _ => Err(format!("no pair `{field}`")),
    }
}

/// The family of a primitive, if it is of one.
fn family(primitive: &str) -> Option<&str> {
    let family = primitive.rsplitn(3, '-').nth(2)?;
    let all = [
        "direct-sum2d",
        "direct-shift",
        "direct-row",
        "direct-columns",
        "direct-filters",
        "direct-pixel",
        "direct-dot",
        "im2col-lines",
        "im2col-steps",
        "im2col-panels",
        "im2col-strip",
        "im2row-steps",
        "im2row-panels",
        "im2row-strip",
        "kn2row-lines",
        "kn2row-steps",
        "kn2row-separate",
        "kn2col-steps",
        "kn2col-panels",
        "mec-a",
        "mec-b",
        "mec-strip",
        "fft1d-kept",
        "fft1d-made",
        "fft2d-kept",
        "fft2d-made",
        "pointwise-lines",
        "pointwise-steps",
        "pointwise-panels",
    ];
    (all.contains(&family) && primitive != "im2row-strip-hwc-hwc").then_some(family)
}

/// m and n of transforms.
fn points(attributes: &Value, image: &Shape) -> Result<[u64; 2], Refusal> {
    let (kernel, dilation) = (pair(attributes, "kernel")?, pair(attributes, "dilation")?);
    Ok([0, 1]
        .map(|axis| (image.dims[2 + axis] + (kernel[axis] - 1) * dilation[axis]).next_power_of_two().max(2)))
}

/// Floats of workspace of a convolution of such an image and output by this primitive; none if it is of no family.
pub fn workspace(
    primitive: &str,
    attributes: &Value,
    image: &Shape,
    output: &Shape,
) -> Result<Option<u64>, Refusal> {
    let Some(family) = family(primitive) else { return Ok(None) };
    let ([kernel_y, kernel_x], [stride_y, _]) = (pair(attributes, "kernel")?, pair(attributes, "stride")?);
    let (c, [h, w], [oh, ow]) =
        (image.channels(), [image.dims[2], image.dims[3]], [output.dims[2], output.dims[3]]);
    let pads: Vec<u64> = list(attributes, "pads")?.iter().filter_map(Value::as_u64).collect();
    let (padded, r) = (h + pads[0] + pads[2], oh.min(64u64.div_ceil(ow)));
    let [m, n] = points(attributes, image)?;
    Ok(Some(match family {
        "im2col-strip" | "im2row-strip" => c * kernel_y * kernel_x * r * ow,
        "mec-strip" if r < oh => ow * ((r - 1) * stride_y + kernel_y) * kernel_x * c,
        "fft1d-kept" => (n + 2) * (c * h + 1) + 2 * n,
        "fft1d-made" => (n + 2) * (c * (h + kernel_y) + 1) + 2 * n,
        "fft2d-kept" => m * (n + 2) * (c + 1) + 2 * m.max(n),
        "fft2d-made" => m * (n + 2) * (c + 2) + 2 * m.max(n),
        "kn2row-separate" => kernel_x * number(attributes, "filters")? * w,
        _ if family.starts_with("mec-") => ow * padded * kernel_x * c,
        _ if family.starts_with("im2") => c * kernel_y * kernel_x * oh * ow,
        _ => 0,
    }))
}

/// Bytes that a layer stores if its primitive is of a family.
pub fn stored(layer: &Layer) -> Result<Option<u64>, Refusal> {
    let Some(family) = family(&layer.primitive) else { return Ok(None) };
    let [y, x] = pair(&layer.attributes, "kernel")?;
    let (image, filters) = (&layer.operands[0].seen, number(&layer.attributes, "filters")?);
    let [m, n] = points(&layer.attributes, image)?;
    let [rows, line] = match family {
        "fft1d-kept" => [y, n + 2],
        "fft2d-kept" => [m, n + 2],
        _ => [y, x],
    };
    let turns = match family {
        "fft1d-kept" | "fft1d-made" => n,
        "fft2d-kept" | "fft2d-made" => m.max(n),
        _ => 0,
    };
    Ok(Some((4 * (filters * (1 + image.channels() * rows * line) + turns)).next_multiple_of(64)))
}
