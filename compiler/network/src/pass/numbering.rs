//! Where each element of a tensor comes from, if layers have only moved the elements of an image.
//!
//! The number of an element in the tensor's row-major order is written in digits, the most significant first. Each digit
//! counts along one dimension of the image in steps of equal length, or it counts copies of an element. A reshape only
//! puts the digits into other groups, a transposition puts them into another order, and a repetition adds one.

use csdfc_plan::operator::{
    Coordinates, DepthToSpace, Operator, Ratio, Resize, ResizeMode, Rounding, Scale, SpaceToDepth,
};

/// A dimension of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    Channels,
    Rows,
    Columns,
}

/// Channels, height and width of an image.
pub(super) type Size = [usize; 3];

/// A digit: it counts from 0 to `size` − 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digit {
    pub size: usize,
    /// The dimension of the image along which it counts, and how many places one step goes. `None` for a digit that
    /// counts copies of an element.
    pub along: Option<(Axis, usize)>,
}

/// The digits of one or more dimensions, the most significant first. There are none of size 1.
pub(super) type Digits = Vec<Digit>;

/// The digits of a whole dimension of an image.
pub(super) fn whole(axis: Axis, size: usize) -> Digits {
    if size > 1 { vec![Digit { size, along: Some((axis, 1)) }] } else { Vec::new() }
}

/// The digits of each dimension of a view with these dimensions, if none of them has a part of a digit.
pub(super) fn view(mut digits: Digits, dims: &[usize]) -> Option<Vec<Digits>> {
    let mut groups = Vec::new();
    for &dim in dims.iter().rev() {
        let (mut group, mut left) = (Vec::new(), dim);
        while left > 1 {
            let digit = digits.pop()?;
            if left.is_multiple_of(digit.size) {
                left /= digit.size;
                group.push(digit);
            } else if digit.size.is_multiple_of(left) {
                let (size, along) = (digit.size / left, digit.along.map(|(axis, step)| (axis, step * left)));
                digits.push(Digit { size, along });
                group.push(Digit { size: left, ..digit });
                left = 1;
            } else {
                return None;
            }
        }
        group.reverse();
        groups.push(group);
    }
    groups.reverse();
    digits.is_empty().then_some(groups)
}

/// The same number in as few digits as can be.
fn joined(digits: &[Digit]) -> Digits {
    let mut joined: Digits = Vec::new();
    for digit in digits {
        let follows = |outer: &Digit| match (outer.along, digit.along) {
            (Some((a, outer)), Some((b, inner))) => a == b && outer == inner * digit.size,
            (outer, inner) => outer == inner,
        };
        match joined.last_mut() {
            Some(outer) if follows(outer) => {
                (outer.size, outer.along) = (outer.size * digit.size, digit.along);
            }
            _ => joined.push(*digit),
        }
    }
    joined
}

/// A step from one image to another, each row of which comes from a few rows of the first.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// These channels, in this order.
    Channels(Vec<usize>),
    /// An operator of one operand.
    Operator(Operator),
}

/// The steps from an image of size `from` to the image whose channels, rows and columns have these digits, if there are
/// such steps.
pub(super) fn steps(image: [Digits; 3], from: Size) -> Option<Vec<Step>> {
    let [channels, rows, columns] = image.map(|digits| joined(&digits));
    let [_, height, width] = from;
    match (inner(&rows, Axis::Rows, height), inner(&columns, Axis::Columns, width)) {
        (Some([]), Some([])) => reordered(&channels, from),
        (Some([i]), Some([j])) if i.along.is_some() && j.along.is_some() => {
            pixel_shuffle(&channels, [*i, *j], from)
        }
        (Some(i), Some(j)) => {
            let mut steps = reordered(&channels, from)?;
            steps.push(Step::Operator(repetition([height, width], [copies(i)?, copies(j)?])?));
            Some(steps)
        }
        _ => space_to_depth(&channels, [&rows, &columns], from),
    }
}

/// The digits behind those of a whole dimension of the image.
fn inner(digits: &[Digit], axis: Axis, size: usize) -> Option<&[Digit]> {
    digits.strip_prefix(&whole(axis, size)[..])
}

/// How many copies there are of an element.
fn copies(digits: &[Digit]) -> Option<usize> {
    match digits {
        [] => Some(1),
        [Digit { size, along: None }] => Some(*size),
        _ => None,
    }
}

/// An image of this height and width, with each row and each pixel repeated this number of times.
fn repetition([height, width]: [usize; 2], times: [usize; 2]) -> Option<Operator> {
    let scale = |times| Some(Scale::Ratio(Ratio { over: u32::try_from(times).ok()?, under: 1 }));
    Some(Operator::Resize(Resize {
        mode: ResizeMode::Nearest { rounding: Rounding::Floor },
        coordinates: Coordinates::Asymmetric,
        scales: [scale(times[0])?, scale(times[1])?],
        size: [height.checked_mul(times[0])?, width.checked_mul(times[1])?],
    }))
}

/// The step that reorders channels, if they are not in order.
fn reordered(channels: &[Digit], [count, ..]: Size) -> Option<Vec<Step>> {
    let places = places(channels, |axis, step| (axis == Axis::Channels).then_some(step))?;
    Some(if is_in_order(&places, count) { Vec::new() } else { vec![Step::Channels(places)] })
}

/// Channels become the inner digits `i` of rows and `j` of columns.
fn pixel_shuffle(channels: &[Digit], [i, j]: [Digit; 2], from: Size) -> Option<Vec<Step>> {
    if i.size != j.size {
        return None;
    }
    let to =
        |depth_first| Step::Operator(Operator::DepthToSpace(DepthToSpace { block: i.size, depth_first }));
    let mut steps = reordered(&[channels, &[i, j]].concat(), from)?;
    if steps.is_empty() {
        return Some(vec![to(false)]);
    }
    steps = reordered(&[&[i, j], channels].concat(), from)?;
    steps.push(to(true));
    Some(steps)
}

/// The inner digits of rows and columns become channels.
fn space_to_depth(channels: &[Digit], outer: [&[Digit]; 2], from: Size) -> Option<Vec<Step>> {
    let [count, height, width] = from;
    let block = |digits: &[Digit], axis, size: usize| match digits {
        [] => Some(size),
        [digit] => {
            let (along, block) = digit.along?;
            (along == axis && digit.size * block == size).then_some(block)
        }
        _ => None,
    };
    let side = block(outer[0], Axis::Rows, height)?;
    if block(outer[1], Axis::Columns, width)? != side {
        return None;
    }
    // Channel c of row i and column j of a square becomes channel (i · side + j) · count + c.
    let places = places(channels, |axis, step| match axis {
        Axis::Rows => (step < side).then_some(step * side * count),
        Axis::Columns => (step < side).then_some(step * count),
        Axis::Channels => Some(step),
    })?;
    let mut steps = vec![Step::Operator(Operator::SpaceToDepth(SpaceToDepth { block: side }))];
    if !is_in_order(&places, count * side * side) {
        steps.push(Step::Channels(places));
    }
    Some(steps)
}

/// Maximum number of channels that are listed.
const MAX_CHANNELS: usize = 1 << 16;

/// The channels that digits count, in order, where a digit counts in steps of `step`.
fn places(digits: &[Digit], step: impl Fn(Axis, usize) -> Option<usize>) -> Option<Vec<usize>> {
    let mut places = vec![0];
    for digit in digits {
        let step = digit.along.map_or(Some(0), |(axis, along)| step(axis, along))?;
        if places.len() * digit.size > MAX_CHANNELS {
            return None;
        }
        places = places.iter().flat_map(|place| (0..digit.size).map(move |i| place + i * step)).collect();
    }
    Some(places)
}

fn is_in_order(places: &[usize], count: usize) -> bool {
    places.iter().copied().eq(0..count)
}
