//! Products of matrices: fully connected layers, and products of two tensors.

use csdfc_plan::operator::{
    Binary, BinaryFunction, Concat, ConstantOperand, Conv, Gemm, Operator, Slice, Transpose,
};

use crate::import::builder::{Builder, is_channels_last};
use crate::import::constant::{Constant, count};
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, Value};
use csdfc_network::operators::broadcast;
use csdfc_network::weights::Weights;

/// `Gemm`: `alpha · A · B + beta · C`, with B a constant or a tensor.
pub(super) fn gemm(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let mut a = node.tensor(0)?.clone();
    let &[rows, columns] = a.dims() else {
        return fault!("its first operand has rank {} ({}), not 2", a.rank(), a.operand.shape);
    };
    if node.flag("transA", false)? {
        a = builder.transpose(node, &a, vec![1, 0])?;
    }
    let inner = if node.flag("transA", false)? { rows } else { columns };
    let (alpha, beta) = (node.float("alpha", 1.0)?, node.float("beta", 1.0)?);
    let transposed = node.flag("transB", false)?;
    let (product, bias_is_in) = match node.input(1) {
        Some(Value::Constant(b)) => {
            let mut weights = b.weights()?;
            let &[first, second] = weights.dims.as_slice() else {
                return fault!("its weights have dimensions {:?}, not two", weights.dims);
            };
            let (stored, units) = if transposed { (second, first) } else { (first, second) };
            if stored != inner {
                return fault!("its weights take {stored} elements, but its input has {inner}");
            }
            if alpha != 1.0 || node.input(2).is_some() {
                builder.charge(units)?;
            }
            if alpha != 1.0 {
                weights = weights.scaled(usize::from(!transposed), &vec![alpha; units]);
            }
            let bias = match node.input(2) {
                Some(Value::Constant(c)) => bias(c, units, beta)?,
                _ => None,
            };
            let has_bias = bias.is_some();
            let operator =
                Operator::Gemm(Gemm { inner, units, transposed, bias: has_bias, activation: None });
            let parameters = [weights].into_iter().chain(bias).collect();
            (builder.layer(node, operator, &[&a], parameters)?, has_bias)
        }
        _ => {
            let mut b = node.tensor(1)?.clone();
            if transposed {
                b = builder.layer(node, Operator::Transpose(Transpose::new([1, 0])), &[&b], Vec::new())?;
            }
            let product = builder.layer(node, Operator::MatMul, &[&a, &b], Vec::new())?;
            (times(builder, node, product, alpha)?, false)
        }
    };
    let add = Binary { function: BinaryFunction::Add, constant: None, activation: None };
    match node.input(2) {
        _ if bias_is_in => Ok(product),
        None => Ok(product),
        Some(Value::Constant(c)) => {
            let weights = scaled(c, beta)?;
            let constant =
                Some(ConstantOperand { dims: weights.dims.clone(), left: false, quantization: None });
            let operator = Operator::Binary(Binary { constant, ..add });
            builder.layer(node, operator, &[&product], vec![weights])
        }
        Some(Value::Tensor(c)) => {
            let c = times(builder, node, c.clone(), beta)?;
            builder.layer(node, Operator::Binary(add), &[&product, &c], Vec::new())
        }
    }
}

/// `MatMul`: fully connected by a constant matrix, or a product of two tensors.
pub(super) fn mat_mul(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let (Some(a), Some(b)) = (node.input(0), node.input(1)) else { return fault!("it needs two operands") };
    match (a, b) {
        (Value::Tensor(a), Value::Constant(b)) => by_constant(builder, node, a, b),
        (Value::Tensor(a), Value::Tensor(b)) => of_tensors(builder, node, a, b),
        (Value::Constant(a), Value::Tensor(b)) => of_constant(builder, node, a, b),
        (Value::Constant(_), Value::Constant(_)) => fault!("both its operands are constants"),
    }
}

/// A constant matrix, or several, times a tensor, computed as (Bᵀ · Aᵀ)ᵀ: the tensor's matrices are transposed, multiplied by
/// the transposed constant, and the product is transposed.
fn of_constant(builder: &mut Builder, node: &Node, a: &Constant, b: &Tensor) -> Result<Tensor, Fault> {
    // The last two dimensions exchanged.
    let turned = |rank: usize| {
        let mut perm: Vec<usize> = (0..rank).collect();
        perm.swap(rank - 2, rank - 1);
        perm
    };
    if a.dims.len() > 2 && b.rank() > 1 {
        let columns = builder.transpose(node, b, turned(b.rank()))?;
        let product = by_constant(builder, node, &columns, &a.transposed(&turned(a.dims.len()))?)?;
        let perm = turned(product.rank());
        return builder.transpose(node, &product, perm);
    }
    let weights = a.weights()?;
    let (&[units, inner], true) = (weights.dims.as_slice(), b.rank() > 1) else {
        return Err(Fault::new(format!(
            "its left operand is a constant of dimensions {:?}, and its right one has rank {}",
            a.dims,
            b.rank()
        ))
        .help("csdfc multiplies a constant matrix by tensors of two dimensions or more"));
    };
    let columns = builder.transpose(node, b, turned(b.rank()))?;
    let operator = Operator::Gemm(Gemm { inner, units, transposed: true, bias: false, activation: None });
    let product = builder.layer(node, operator, &[&columns], vec![weights])?;
    let perm = turned(product.rank());
    builder.transpose(node, &product, perm)
}

fn by_constant(builder: &mut Builder, node: &Node, a: &Tensor, b: &Constant) -> Result<Tensor, Fault> {
    let mut weights = b.weights()?;
    // Leading dimensions of 1 mean nothing if the tensor has as many dimensions.
    let leading = weights.dims.iter().take_while(|dim| **dim == 1).count();
    let spare = weights.dims.len().saturating_sub(2).min(leading);
    if a.rank() >= weights.dims.len() {
        weights.dims.drain(..spare);
    }
    let vector = weights.dims.len() == 1;
    if vector {
        weights.dims.push(1);
    }
    let &[inner, units] = weights.dims.as_slice() else { return by_matrices(builder, node, a, b) };
    if !vector
        && is_channels_last(&a.operand.shape)
        && let Some(image) = builder.reordered(a)
    {
        let filters = b.reshaped(vec![inner, units]).transposed(&[1, 0])?;
        return of_pixels(builder, node, &image, &filters);
    }
    let operator = Operator::Gemm(Gemm { inner, units, transposed: false, bias: false, activation: None });
    // A vector is seen as one row.
    let row = match a.dims() {
        &[length] => Some(builder.reshape(node, a, vec![1, length])?),
        _ => None,
    };
    let pixels = builder.pixels(a);
    let x = row.as_ref().or(pixels.as_ref()).unwrap_or(a);
    let mut dims = a.dims().to_vec();
    dims.pop();
    if !vector {
        dims.push(units);
    }
    let product = builder.layer(node, operator, &[x], vec![weights])?;
    if dims == product.dims() { Ok(product) } else { builder.reshape(node, &product, dims) }
}

/// A constant matrix of units times the channels of each pixel, which is a convolution. The result is seen channels-last.
fn of_pixels(builder: &mut Builder, node: &Node, image: &Tensor, matrix: &Constant) -> Result<Tensor, Fault> {
    let mut filters = matrix.weights()?;
    let units = filters.dims[0];
    filters.dims.extend([1, 1]);
    let operator = Operator::Conv(Conv {
        filters: units,
        kernel: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        pads: [0; 4],
        groups: 1,
        bias: false,
        pre: None,
        residual: false,
        activation: None,
    });
    let product = builder.layer(node, operator, &[image], vec![filters])?;
    Ok(builder.reordered(&product).unwrap_or(product))
}

/// Maximum number of matrices of a constant.
const MAX_MATRICES: usize = 256;

/// A product by several constant matrices, one for each index of the leading dimensions. It becomes a product of slices
/// for each matrix.
fn by_matrices(builder: &mut Builder, node: &Node, a: &Tensor, b: &Constant) -> Result<Tensor, Fault> {
    let &[ref b_batch @ .., inner, units] = b.dims.as_slice() else {
        return fault!("its right operand is a constant of dimensions {:?}", b.dims);
    };
    // A vector is seen as one row.
    let is_vector = a.rank() == 1;
    let a = if is_vector { builder.reshape(node, a, vec![1, a.dims()[0]])? } else { a.clone() };
    let (a_batch, matrix) = a.dims().split_at(a.rank() - 2);
    let (a_batch, rows) = (a_batch.to_vec(), matrix[0]);
    let batch = broadcast(&a_batch, b_batch)?;
    let matrices = count(&batch)?;
    if matrices > MAX_MATRICES {
        return fault!("it has {matrices} products by constant matrices; csdfc takes at most {MAX_MATRICES}");
    }
    let values = b.to_floats()?;
    builder.charge(values.len())?;
    let mut products = Vec::new();
    for index in 0..matrices {
        let place = place_of(index, &batch, b_batch);
        // A constant has as many elements as its dimensions say.
        let weights = Weights::new([inner, units], &values[place * inner * units..][..inner * units]);
        let x = sub_matrix(builder, node, &a, place_of(index, &batch, &a_batch))?;
        let operator =
            Operator::Gemm(Gemm { inner, units, transposed: false, bias: false, activation: None });
        products.push(builder.layer(node, operator, &[&x], vec![weights])?);
    }
    let product = match products.as_slice() {
        [product] => product.clone(),
        _ => {
            let products: Vec<&Tensor> = products.iter().collect();
            builder.layer(node, Operator::Concat(Concat { axis: 0 }), &products, Vec::new())?
        }
    };
    let rows = if is_vector { None } else { Some(rows) };
    builder.reshape(node, &product, batch.into_iter().chain(rows).chain([units]).collect())
}

/// The index in a tensor of dimensions `dims`, which broadcasts to `batch`, of element `index` of `batch`.
fn place_of(index: usize, batch: &[usize], dims: &[usize]) -> usize {
    let (mut rest, mut place, mut stride) = (index, 0, 1);
    for (i, size) in batch.iter().rev().enumerate() {
        let own = dims.len().checked_sub(i + 1).map_or(1, |axis| dims[axis]);
        place += if own == 1 { 0 } else { rest % size * stride };
        (rest, stride) = (rest / size, stride * own);
    }
    place
}

/// One of the matrices in the last two dimensions of a tensor, as `[rows, columns]`.
fn sub_matrix(builder: &mut Builder, node: &Node, x: &Tensor, place: usize) -> Result<Tensor, Fault> {
    let rank = x.rank();
    let mut slice = Slice { starts: vec![0; rank], steps: vec![1; rank], lengths: x.dims().to_vec() };
    let mut rest = place;
    for axis in (0..rank - 2).rev() {
        (slice.starts[axis], slice.lengths[axis]) = (rest % x.dims()[axis], 1);
        rest /= x.dims()[axis];
    }
    let matrix = x.dims()[rank - 2..].to_vec();
    let is_all = slice.lengths == x.dims();
    let taken =
        if is_all { x.clone() } else { builder.layer(node, Operator::Slice(slice), &[x], Vec::new())? };
    builder.reshape(node, &taken, matrix)
}

fn of_tensors(builder: &mut Builder, node: &Node, a: &Tensor, b: &Tensor) -> Result<Tensor, Fault> {
    let (row, column) = (a.rank() == 1, b.rank() == 1);
    let left = if row { builder.reshape(node, a, vec![1, a.dims()[0]])? } else { a.clone() };
    let right = if column { builder.reshape(node, b, vec![b.dims()[0], 1])? } else { b.clone() };
    let product = builder.layer(node, Operator::MatMul, &[&left, &right], Vec::new())?;
    let mut dims = product.dims().to_vec();
    if column {
        dims.pop();
    }
    if row {
        // The row's dimension is the last, or the last but one before a column's.
        dims.remove(dims.len() - if column { 1 } else { 2 });
    }
    if dims == product.dims() { Ok(product) } else { builder.reshape(node, &product, dims) }
}

/// A constant addend as one bias per unit, if it is one.
fn bias(c: &Constant, units: usize, beta: f32) -> Result<Option<Weights>, Fault> {
    let elements = count(&c.dims)?;
    let per_unit = elements == units && c.dims.last().is_none_or(|last| *last == units);
    if elements == 1 {
        return Ok(Some(Weights::new([units], vec![c.scalar()? * beta; units])));
    }
    if !per_unit {
        return Ok(None);
    }
    let mut weights = scaled(c, beta)?;
    weights.dims = vec![units];
    Ok(Some(weights))
}

fn scaled(c: &Constant, beta: f32) -> Result<Weights, Fault> {
    if beta == 1.0 {
        return c.weights();
    }
    Ok(Weights::new(c.dims.clone(), c.to_floats()?.iter().map(|v| v * beta).collect::<Vec<_>>()))
}

/// The tensor multiplied by a number.
fn times(builder: &mut Builder, node: &Node, tensor: Tensor, factor: f32) -> Result<Tensor, Fault> {
    if factor == 1.0 {
        return Ok(tensor);
    }
    let constant = Some(ConstantOperand { dims: Vec::new(), left: false, quantization: None });
    let operator = Operator::Binary(Binary { function: BinaryFunction::Mul, constant, activation: None });
    builder.layer(node, operator, &[&tensor], vec![Weights::new([], vec![factor])])
}
