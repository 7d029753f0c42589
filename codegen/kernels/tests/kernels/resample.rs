//! Resampling by weights, and at places.

use core::ops::Range;

use csdfc_kernels::arch::Isa;
use csdfc_kernels::elements::{Elements, ElementsMut};
use csdfc_kernels::grid_sample::{GridSample, SampleMode, SamplePadding};
use csdfc_kernels::kernel::{Context, ElementKernel, RowKernel};
use csdfc_kernels::resample::{Axis, Resample, Weight};
use csdfc_kernels::resize::{Line, Rounding};

use crate::cases::{Case, Image, alone};
use crate::testing::{Random, rounds};

/// The definition in one direction: pairs of index and weight, or none if the place is outside and not weighed.
fn taps(p: &Resample, axis: &Axis, position: usize, size: usize) -> Option<Vec<(usize, f64)>> {
    let Line { start, step, over } = axis.line;
    let at = (start + position as i64 * step) as f64 / over as f64;
    let last = size as i64 - 1;
    if p.outside.is_some() && !(0.0..=last as f64).contains(&at) {
        return None;
    }
    let weigh = |i: i64| {
        let d = (i as f64 - at).abs() * f64::from(axis.scale);
        match p.weight {
            Weight::Nearest(_) => f64::from(u8::from(i as f64 == (at - 0.5).ceil())),
            Weight::Linear => (1.0 - d).max(0.0),
            Weight::Cubic(a) if d < 1.0 => {
                (f64::from(a) + 2.0) * d.powi(3) - (f64::from(a) + 3.0) * d * d + 1.0
            }
            Weight::Cubic(a) if d < 2.0 => f64::from(a) * (d.powi(3) - 5.0 * d * d + 8.0 * d - 4.0),
            Weight::Cubic(_) => 0.0,
        }
    };
    let all: Vec<(i64, f64)> =
        (-60..60).filter(|i| !p.exclude_outside || (0..=last).contains(i)).map(|i| (i, weigh(i))).collect();
    let sum: f64 = all.iter().map(|(_, weight)| weight).sum();
    Some(all.iter().map(|(i, weight)| ((*i).clamp(0, last) as usize, weight / sum)).collect())
}

/// The rows that a planner gives it: all that may have a weight.
fn around(p: &Resample, y: usize, size: usize) -> Range<usize> {
    let Line { start, step, over } = p.rows.line;
    let below = (start + y as i64 * step).div_euclid(over);
    let inside = |at: i64| at.clamp(0, size as i64 - 1) as usize;
    inside(below + 1 - p.rows.reach)..inside(below + p.rows.reach) + 1
}

#[test]
fn weighted_resizes_are_those_of_the_textbook() {
    let mut random = Random(7);
    for round in rounds(60) {
        let size = [random.within(1, 8), random.within(1, 8), *random.pick(&[1, 3, 9])];
        let out = [random.within(1, 9), random.within(1, 9)];
        let weight = [
            Weight::Linear,
            Weight::Cubic(-0.75),
            Weight::Cubic(-0.5),
            Weight::Nearest(Rounding::RoundPreferFloor),
        ][round % 4];
        let radius = if let Weight::Cubic(_) = weight { 2.0 } else { 1.0 };
        let [rows, columns] = [0, 1].map(|axis: usize| {
            let over = *random.pick(&[1, 2, 3, 4, 7]);
            let most = 2 * (over * size[axis]) / out[axis];
            let (start, step) = (random.within(0, 2 * over), random.within(0, most));
            let scale: f32 = *random.pick(&[1.0, 0.5, 0.3]);
            Axis {
                line: Line { start: start as i64 - over as i64, step: step as i64, over: over as i64 },
                reach: (radius / f64::from(scale)).ceil() as i64,
                scale,
            }
        });
        let outside = (round % 3 == 0).then_some(0.75);
        // Something has a weight wherever the place is.
        let exclude_outside = round % 5 == 0 && outside.is_some();
        let p = Resample { weight, exclude_outside, outside, rows, columns };
        let input = Image::random(&mut random, size);
        let case = Case {
            what: &format!("{p:?} of {size:?}"),
            inputs: &[&input],
            output: [out[0], out[1], size[2]],
            need: |_, y| around(&p, y, size[0]),
            want: |y, x, c| match (taps(&p, &p.rows, y, size[0]), taps(&p, &p.columns, x, size[1])) {
                (Some(rows), Some(columns)) => {
                    let row = |y: usize| columns.iter().map(|(x, w)| w * input.at(y, *x, c)).sum::<f64>();
                    rows.iter().map(|(y, w)| w * row(*y)).sum()
                }
                _ => 0.75,
            },
        };
        for isa in Isa::all() {
            case.by_rows(&mut random, |y, inputs, output| {
                p.rows(&mut Context::alone(isa), y, inputs, &[], output)
            });
        }
        case.by_elements(&mut random, |y, inputs, output| p.elements(&mut alone(), y, inputs, &[], output));
    }
}

/// The element of a line at a whole place, by walking there and turning at the ends, which are `low` and `high` halves.
fn walked(line: &[f64], to: i64, [low, high]: [i64; 2]) -> f64 {
    let (mut at, mut step) = (0i64, to.signum());
    for _ in 0..2 * to.abs() {
        if at + step < low || at + step > high {
            step = -step;
        }
        at += step;
    }
    line[(at / 2) as usize]
}

/// Of one line, which is as wide as an image is high: the definition in each direction.
fn sampled(p: &GridSample, line: &[f64], place: f64) -> f64 {
    let size = line.len() as f64;
    let last = line.len() as i64 - 1;
    let at =
        if p.align_corners { (place + 1.0) / 2.0 * (size - 1.0) } else { ((place + 1.0) * size - 1.0) / 2.0 };
    let element = |i: i64| match p.padding {
        SamplePadding::Zeros if !(0..=last).contains(&i) => 0.0,
        SamplePadding::Zeros | SamplePadding::Border => line[i.clamp(0, last) as usize],
        SamplePadding::Reflection if p.align_corners => walked(line, i, [0, 2 * last]),
        SamplePadding::Reflection => walked(line, i, [-1, 2 * last + 1]),
    };
    let weight = |d: f64| match p.mode {
        SampleMode::Nearest => f64::from(u8::from(d < 0.5)),
        SampleMode::Linear => (1.0 - d).max(0.0),
        SampleMode::Cubic if d < 1.0 => 1.25 * d.powi(3) - 2.25 * d * d + 1.0,
        SampleMode::Cubic => {
            (-0.75 * (d.powi(3) - 5.0 * d * d + 8.0 * d - 4.0)) * f64::from(u8::from(d < 2.0))
        }
    };
    (-40..40).map(|i| weight((i as f64 - at).abs()) * element(i)).sum()
}

/// The definition in all directions, outermost first: `places` are those of the innermost first.
fn sampled_in_all(p: &GridSample, data: &[f64], sizes: &[usize], places: &[f32]) -> f64 {
    let [_, inner @ ..] = sizes else { return data[0] };
    let (place, places) = places.split_last().expect("one for each direction");
    let parts = data.chunks(inner.iter().product());
    let line: Vec<f64> = parts.map(|part| sampled_in_all(p, part, inner, places)).collect();
    sampled(p, &line, f64::from(*place))
}

/// Each element around a place is padded, not the place: so does ONNX Runtime.
#[test]
fn samples_are_those_of_the_textbook() {
    use SampleMode::{Cubic, Linear, Nearest};
    use SamplePadding::{Border, Reflection, Zeros};
    let mut random = Random(11);
    for round in rounds(360) {
        let (mode, padding) =
            ([Nearest, Linear, Cubic][round % 3], [Zeros, Border, Reflection][round / 3 % 3]);
        let p = GridSample { mode, padding, align_corners: round % 2 == 0 };
        let directions = 2 + round / 180;
        let channels = random.within(1, 3);
        let sizes = [(); 3].map(|()| random.within(4, 7));
        let (sizes, made) = (&sizes[..directions], &[2, 1, 3][3 - directions..]);
        let data = random.floats(channels * sizes.iter().product::<usize>());
        let image = Elements::dense(&data, &[&[1, channels], sizes].concat());
        let count = made.iter().product::<usize>();
        let places: Vec<f32> = random.floats(count * directions).iter().map(|place| place * 3.0).collect();
        let grid = Elements::dense(&places, &[&[1], made, &[directions]].concat());
        let mut samples = vec![f32::NAN; channels * count];
        let output = &mut ElementsMut::dense(&mut samples, &[&[1, channels], made].concat());
        p.elements(&mut alone(), 0..1, &[image, grid], &[], output);
        let data: Vec<f64> = data.iter().map(|x| f64::from(*x)).collect();
        for (i, got) in samples.iter().enumerate() {
            let place = &places[i % count * directions..][..directions];
            let channel = data.chunks(data.len() / channels).nth(i / count).expect("a channel");
            let want = sampled_in_all(&p, channel, sizes, place);
            assert!((f64::from(*got) - want).abs() < 1e-4, "{p:?} at {place:?}: {got}, not {want}");
        }
    }
}
