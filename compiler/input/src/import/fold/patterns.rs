//! Constants that masks and positions are made of.

use rten_onnx::onnx::DataType;

use super::arithmetic::cast_to;
use super::index::strides;
use crate::import::builder::Builder;
use crate::import::constant::{Constant, Data, count};
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, axis};

/// `CumSum` along a dimension.
pub(in crate::import) fn cumulative_sum(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let x = node.constant(0, "operand")?;
    let along = axis(node.constant(1, "axis")?.scalar_int()?, x.dims.len())?;
    let (exclusive, reverse) = (node.flag("exclusive", false)?, node.flag("reverse", false)?);
    builder.charge(x.elements())?;
    let (stride, size) = (strides(&x.dims)[along], x.dims[along]);
    fn sums<T: Copy + Default>(
        values: &[T],
        [stride, size]: [usize; 2],
        [exclusive, reverse]: [bool; 2],
        add: impl Fn(T, T) -> T,
    ) -> Vec<T> {
        let mut sums = values.to_vec();
        for start in (0..values.len()).filter(|at| at / stride % size == 0) {
            let mut sum = T::default();
            for step in 0..size {
                let place = start + stride * if reverse { size - 1 - step } else { step };
                let next = add(sum, values[place]);
                sums[place] = if exclusive { sum } else { next };
                sum = next;
            }
        }
        sums
    }
    let ways = [exclusive, reverse];
    Ok(match &x.data {
        Data::Ints(values) => {
            let values = sums(values, [stride, size], ways, i64::wrapping_add);
            Constant { stored: x.stored, ..Constant::ints(x.dims.clone(), values) }
        }
        _ => Constant::floats(x.dims.clone(), sums(&x.to_floats()?, [stride, size], ways, |a, b| a + b)),
    })
}

/// `EyeLike`: ones on a diagonal of a matrix, of the type that is asked for or of the operand's.
pub(in crate::import) fn eye_like(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let dims = super::operand_dims(node)?;
    let &[rows, columns] = dims else { return fault!("its operand has {} dimensions, not 2", dims.len()) };
    builder.charge(count(dims)?)?;
    let diagonal = node.int("k", 0)?;
    let is_one = |at: usize| (at % columns) as i64 == (at / columns) as i64 + diagonal;
    let ones = Constant::ints([rows, columns], (0..rows * columns).map(|at| is_one(at).into()).collect());
    let of_operand = node.constant(0, "operand").ok().and_then(|x| x.stored).unwrap_or(DataType::FLOAT);
    let to = match node.int("dtype", 0)? {
        0 => of_operand,
        stated => DataType(i32::try_from(stated).unwrap_or(0)),
    };
    cast_to(builder, &ones, to)
}

/// `NonZero`: the indices of all elements that are not 0, a row for each dimension.
pub(in crate::import) fn non_zero(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let x = node.constant(0, "operand")?;
    let strides = strides(&x.dims);
    let values = x.to_floats()?;
    let places: Vec<usize> = (0..values.len()).filter(|at| values[*at] != 0.0).collect();
    builder.charge(x.elements() + places.len() * x.dims.len())?;
    let row = |(stride, size): (usize, usize)| places.iter().map(move |at| (at / stride % size) as i64);
    let rows = strides.into_iter().zip(x.dims.iter().copied()).flat_map(row);
    Ok(Constant::ints([x.dims.len(), places.len()], rows.collect()))
}

/// `OneHot`: a new dimension, along which only the element of an index has the second of two values.
pub(in crate::import) fn one_hot(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let (indices, values) = (node.constant(0, "indices")?, node.constant(2, "values")?);
    let depth = node.constant(1, "depth")?.to_floats()?;
    let &[depth] = depth.as_slice() else { return fault!("its depth has {} elements", depth.len()) };
    let depth = depth as usize;
    let along = axis(node.int("axis", -1)?, indices.dims.len() + 1)?;
    let mut dims = indices.dims.clone();
    dims.insert(along, depth);
    let elements = count(&dims)?;
    builder.charge(elements)?;
    let stride: usize = dims[along + 1..].iter().product();
    let wanted: Vec<i64> = indices.to_floats()?.iter().map(|index| *index as i64).collect();
    let is_hot = |at: usize| {
        let index = wanted[at / (stride * depth) * stride + at % stride];
        let index = if index < 0 { index + depth as i64 } else { index };
        (at / stride % depth) as i64 == index
    };
    fn chosen<T: Copy>(values: &[T], hot: impl Iterator<Item = bool>) -> Result<Vec<T>, Fault> {
        match values {
            &[off, on] => Ok(hot.map(|hot| if hot { on } else { off }).collect()),
            _ => fault!("it has {} values, not 2", values.len()),
        }
    }
    let hot = (0..elements).map(is_hot);
    Ok(match &values.data {
        Data::Ints(values) => Constant::ints(dims, chosen(values, hot)?),
        Data::Bools(values) => Constant::bools(dims, chosen(values, hot)?),
        Data::Floats(_) => Constant::floats(dims, chosen(&values.to_floats()?, hot)?),
    })
}

/// `Trilu`: matrices whose elements on one side of a diagonal are 0.
pub(in crate::import) fn triangle(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let x = node.constant(0, "operand")?;
    let &[.., rows, columns] = x.dims.as_slice() else { return fault!("its operand is no matrix") };
    builder.charge(x.elements())?;
    let diagonal = node.optional(1, "k")?.map_or(Ok(0), Constant::scalar_int)?;
    let is_upper = node.flag("upper", true)?;
    let stays = |at: usize| {
        let (row, column) = (at / columns % rows, at % columns);
        let beyond = (column as i64 - row as i64).cmp(&diagonal);
        if is_upper { beyond.is_ge() } else { beyond.is_le() }
    };
    fn kept<T: Copy + Default>(values: &[T], stays: impl Fn(usize) -> bool) -> Vec<T> {
        values.iter().enumerate().map(|(at, value)| if stays(at) { *value } else { T::default() }).collect()
    }
    let dims = x.dims.clone();
    Ok(match &x.data {
        Data::Ints(values) => Constant { stored: x.stored, ..Constant::ints(dims, kept(values, stays)) },
        Data::Bools(values) => Constant::bools(dims, kept(values, stays)),
        Data::Floats(_) => Constant::floats(dims, kept(&x.to_floats()?, stays)),
    })
}
