//! A textbook interpreter of the operators that passes touch, in 64-bit floats: the oracle of their tests.

use csdfc_plan::operator::{
    BinaryFunction, DepthToSpace, Function, Operator, PadMode, PoolKind, ReduceFunction, SpaceToDepth,
};
use csdfc_plan::shape::Order;

use crate::{Layer, Network, Operand};

/// Outputs of the network for these inputs, one vector each, in row-major order of the dimensions in which they are seen.
pub(super) fn run(network: &Network, inputs: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut inputs = inputs.iter();
    let mut tensors: Vec<Vec<f64>> = Vec::new();
    for layer in &network.layers {
        let tensor = match &layer.operator {
            Operator::Input(_) => inputs.next().unwrap().clone(),
            _ => {
                let operands: Vec<Vec<f64>> =
                    layer.inputs.iter().map(|operand| seen(network, &tensors, operand)).collect();
                compute(layer, &operands.iter().map(Vec::as_slice).collect::<Vec<_>>())
            }
        };
        assert_eq!(tensor.len(), layer.shape.elements(), "{}", layer.name);
        tensors.push(tensor);
    }
    network.outputs.iter().map(|output| seen(network, &tensors, &output.operand)).collect()
}

/// A tensor as a layer sees it.
fn seen(network: &Network, tensors: &[Vec<f64>], operand: &Operand) -> Vec<f64> {
    let (own, tensor) = (&network.layer(operand.layer).shape, &tensors[operand.layer.0]);
    let perm = match (own.order, operand.shape.order) {
        _ if own.rank() != 4 || operand.shape.rank() != 4 => return tensor.clone(),
        (Order::ChannelsFirst, Order::ChannelsLast) => [0, 2, 3, 1],
        (Order::ChannelsLast, Order::ChannelsFirst) => [0, 3, 1, 2],
        _ => return tensor.clone(),
    };
    transposed(tensor, &own.dims, &perm)
}

fn transposed(tensor: &[f64], dims: &[usize], perm: &[usize]) -> Vec<f64> {
    each(&perm.iter().map(|axis| dims[*axis]).collect::<Vec<_>>(), |o| {
        let mut at = vec![0; dims.len()];
        perm.iter().zip(o).for_each(|(axis, i)| at[*axis] = *i);
        tensor[index(dims, &at)]
    })
}

fn compute(layer: &Layer, operands: &[&[f64]]) -> Vec<f64> {
    let parameters: Vec<Vec<f64>> = layer
        .parameters
        .iter()
        .map(|weights| weights.values().unwrap().into_iter().map(f64::from).collect())
        .collect();
    let x = operands[0];
    let dims = &layer.inputs[0].shape.dims;
    let out = &layer.shape.dims;
    let mut result = match &layer.operator {
        Operator::Conv(conv) => {
            let place = 1 + usize::from(conv.bias);
            let parts = operands.len() - usize::from(conv.residual);
            let mut dims = dims.clone();
            dims[1] = layer.inputs[..parts].iter().map(|part| part.shape.dims[1]).sum();
            let x = together(layer, &operands[..parts]);
            let x = match &conv.pre {
                None => x,
                Some(pre) => each(&dims, |i| {
                    let x = at(&x, &dims, i);
                    let x = if pre.affine {
                        x * parameters[place][i[1]] + parameters[place + 1][i[1]]
                    } else {
                        x
                    };
                    pre.activation.as_ref().map_or(x, |function| apply(function, x, i, None))
                }),
            };
            each(out, |o| {
                let (c_in, c_out) = (dims[1] / conv.groups, conv.filters / conv.groups);
                let mut sum = if conv.bias { parameters[1][o[1]] } else { 0.0 };
                for i in indices(&[c_in, conv.kernel[0], conv.kernel[1]]) {
                    let row = (o[2] * conv.stride[0] + i[1] * conv.dilation[0]) as i64 - conv.pads[0] as i64;
                    let column =
                        (o[3] * conv.stride[1] + i[2] * conv.dilation[1]) as i64 - conv.pads[1] as i64;
                    let channel = o[1] / c_out * c_in + i[0];
                    let filter = at(&parameters[0], &layer.parameters[0].dims, &[o[1], i[0], i[1], i[2]]);
                    sum += filter * padded(&x, &dims, &[0, channel as i64, row, column], 0.0);
                }
                sum + if conv.residual { at(operands[parts], out, o) } else { 0.0 }
            })
        }
        Operator::ConvTranspose(conv) => {
            let (c_in, c_out) = (dims[1] / conv.groups, conv.filters / conv.groups);
            let mut y = each(out, |o| if conv.bias { parameters[1][o[1]] } else { 0.0 });
            for i in indices(&[dims[1], dims[2], dims[3], c_out, conv.kernel[0], conv.kernel[1]]) {
                let row = (i[1] * conv.stride[0] + i[4] * conv.dilation[0]) as i64 - conv.pads[0] as i64;
                let column = (i[2] * conv.stride[1] + i[5] * conv.dilation[1]) as i64 - conv.pads[1] as i64;
                if (0..out[2] as i64).contains(&row) && (0..out[3] as i64).contains(&column) {
                    let filter = i[0] / c_in * c_out + i[3];
                    let target = (filter * out[2] + row as usize) * out[3] + column as usize;
                    let weight = at(&parameters[0], &layer.parameters[0].dims, &[i[0], i[3], i[4], i[5]]);
                    y[target] += weight * at(x, dims, &[0, i[0], i[1], i[2]]);
                }
            }
            y
        }
        Operator::Gemm(gemm) => each(out, |o| {
            let (row, unit) = (index(&out[..out.len() - 1], &o[..o.len() - 1]), o[o.len() - 1]);
            let bias = if gemm.bias { parameters[1][unit] } else { 0.0 };
            let product = |k: usize| {
                let weight = if gemm.transposed { unit * gemm.inner + k } else { k * gemm.units + unit };
                x[row * gemm.inner + k] * parameters[0][weight]
            };
            bias + (0..gemm.inner).map(product).sum::<f64>()
        }),
        Operator::BatchNorm(_) => each(out, |o| at(x, dims, o) * parameters[0][o[1]] + parameters[1][o[1]]),
        Operator::ElementWise(element_wise) => {
            each(out, |o| apply(&element_wise.function, at(x, dims, o), o, parameters.last()))
        }
        Operator::Binary(binary) => each(out, |o| {
            let input = broadcast(x, dims, o);
            let (a, b) = match &binary.constant {
                Some(constant) => {
                    let value = broadcast(&parameters[0], &constant.dims, o);
                    if constant.left { (value, input) } else { (input, value) }
                }
                None => (input, broadcast(operands[1], &layer.inputs[1].shape.dims, o)),
            };
            match binary.function {
                BinaryFunction::Add => a + b,
                BinaryFunction::Sub => a - b,
                BinaryFunction::Mul => a * b,
                BinaryFunction::Div => a / b,
                BinaryFunction::Max => a.max(b),
                BinaryFunction::Min => a.min(b),
                BinaryFunction::Pow => a.powf(b),
                BinaryFunction::Mod => a - b * (a / b).floor(),
                BinaryFunction::Fmod => a % b,
                BinaryFunction::Equal => f64::from(a == b),
                BinaryFunction::Greater => f64::from(a > b),
                BinaryFunction::GreaterOrEqual => f64::from(a >= b),
            }
        }),
        Operator::Pad(pad) => each(out, |o| {
            let source: Vec<i64> = o.iter().zip(&pad.before).map(|(&o, before)| o as i64 - before).collect();
            let PadMode::Constant { value: Some(value) } = pad.mode else { panic!("{:?}", pad.mode) };
            padded(x, dims, &source, f64::from(value))
        }),
        Operator::Pool(pool) => each(out, |o| {
            let (mut sum, mut inside, mut with_padding, mut largest) = (0.0, 0.0, 0.0, f64::NEG_INFINITY);
            let mut squares = 0.0;
            for i in indices(&pool.kernel) {
                let row = (o[2] * pool.stride[0] + i[0] * pool.dilation[0]) as i64 - pool.pads[0] as i64;
                let column = (o[3] * pool.stride[1] + i[1] * pool.dilation[1]) as i64 - pool.pads[1] as i64;
                // Where the size is rounded up, a window may reach beyond the padding too.
                if row < (dims[2] + pool.pads[2]) as i64 && column < (dims[3] + pool.pads[3]) as i64 {
                    with_padding += 1.0;
                }
                let value = padded(x, dims, &[0, o[1] as i64, row, column], f64::NAN);
                if !value.is_nan() {
                    (sum, inside, largest) = (sum + value, inside + 1.0, value.max(largest));
                    squares += value * value;
                }
            }
            match pool.kind {
                PoolKind::Max => largest,
                PoolKind::Average { count_include_pad: true } => sum / with_padding,
                PoolKind::Average { count_include_pad: false } => sum / inside,
                PoolKind::Lp { p: 2 } => squares.sqrt(),
                PoolKind::Lp { .. } | PoolKind::MaxIndex => panic!("no test has one"),
            }
        }),
        Operator::Reduce(reduce) if reduce.keep_dims => each(out, |o| {
            let mut sizes = dims.clone();
            sizes
                .iter_mut()
                .enumerate()
                .filter(|(axis, _)| !reduce.axes.contains(axis))
                .for_each(|(_, size)| *size = 1);
            let values = indices(&sizes)
                .map(|i| at(x, dims, &i.iter().zip(o).map(|(i, o)| i + o).collect::<Vec<_>>()));
            match reduce.function {
                ReduceFunction::Mean => values.sum::<f64>() / sizes.iter().product::<usize>() as f64,
                ReduceFunction::Max => values.fold(f64::NEG_INFINITY, f64::max),
                ReduceFunction::Lp { p: 2 } => values.map(|value| value * value).sum::<f64>().sqrt(),
                _ => panic!("no test has one"),
            }
        }),
        Operator::Concat(concat) if concat.axis == 1 => together(layer, operands),
        Operator::Transpose(transpose) => transposed(x, dims, &transpose.perm),
        Operator::Slice(slice) => each(out, |o| {
            let from = o.iter().zip(&slice.starts).zip(&slice.steps);
            let from = from.map(|((&o, &start), step)| (start as i64 + o as i64 * step) as usize);
            at(x, dims, &from.collect::<Vec<_>>())
        }),
        Operator::DepthToSpace(DepthToSpace { block, depth_first }) => each(out, |o| {
            let within = o[2] % block * block + o[3] % block;
            let channel = if *depth_first { within * out[1] + o[1] } else { o[1] * block * block + within };
            at(x, dims, &[0, channel, o[2] / block, o[3] / block])
        }),
        Operator::SpaceToDepth(SpaceToDepth { block }) => each(out, |o| {
            let (within, channel) = (o[1] / dims[1], o[1] % dims[1]);
            at(x, dims, &[0, channel, o[2] * block + within / block, o[3] * block + within % block])
        }),
        // The tests' own repeat rows and columns.
        Operator::Resize(_) => {
            each(out, |o| at(x, dims, &[o[0], o[1], o[2] * dims[2] / out[2], o[3] * dims[3] / out[3]]))
        }
        other => panic!("no test has a {}", other.kind()),
    };
    if let Some(activation) = layer.operator.activation() {
        let values = result.iter().copied().enumerate();
        result = values.map(|(i, v)| apply(activation, v, &position(out, i), parameters.last())).collect();
    }
    result
}

/// The channels of all operands, one after another: of one image they lie so.
fn together(layer: &Layer, operands: &[&[f64]]) -> Vec<f64> {
    assert!(layer.inputs.iter().all(|x| x.shape.rank() == 4 && x.shape.dims[0] == 1));
    operands.concat()
}

fn apply(function: &Function, x: f64, position: &[usize], slope: Option<&Vec<f64>>) -> f64 {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    match function {
        Function::Relu => x.max(0.0),
        Function::Clip { min, max } => {
            x.max(min.map_or(f64::MIN, f64::from)).min(max.map_or(f64::MAX, f64::from))
        }
        Function::PRelu { slope: dims } => {
            if x < 0.0 {
                x * broadcast(slope.unwrap(), dims, position)
            } else {
                x
            }
        }
        Function::Sigmoid => sigmoid(x),
        Function::HardSigmoid { alpha, beta } => (f64::from(*alpha) * x + f64::from(*beta)).clamp(0.0, 1.0),
        Function::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
        Function::Swish => x * sigmoid(x),
        Function::Tanh => x.tanh(),
        Function::Softplus => (1.0 + x.exp()).ln(),
        Function::Mish => x * (1.0 + x.exp()).ln().tanh(),
        Function::Erf => erf(x),
        Function::Gelu { tanh: false } => 0.5 * x * (1.0 + erf(x * 0.5f64.sqrt())),
        Function::Gelu { tanh: true } => {
            let argument = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            0.5 * x * (1.0 + argument.tanh())
        }
        other => panic!("no test has {other:?}"),
    }
}

/// The Taylor series; beyond 4 the function is 1 but for 2e-8.
fn erf(x: f64) -> f64 {
    if x.abs() > 4.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}

fn indices(dims: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let dims = dims.to_vec();
    (0..dims.iter().product()).map(move |i| position(&dims, i))
}

fn each(dims: &[usize], value: impl Fn(&[usize]) -> f64) -> Vec<f64> {
    indices(dims).map(|position| value(&position)).collect()
}

fn position(dims: &[usize], mut index: usize) -> Vec<usize> {
    let mut position = vec![0; dims.len()];
    for (p, dim) in position.iter_mut().zip(dims).rev() {
        (*p, index) = (index % dim, index / dim);
    }
    position
}

fn index(dims: &[usize], position: &[usize]) -> usize {
    dims.iter().zip(position).fold(0, |index, (dim, p)| index * dim + p)
}

fn at(tensor: &[f64], dims: &[usize], position: &[usize]) -> f64 {
    tensor[index(dims, position)]
}

fn padded(tensor: &[f64], dims: &[usize], position: &[i64], outside: f64) -> f64 {
    let inside = position.iter().zip(dims).all(|(&p, &dim)| (0..dim as i64).contains(&p));
    if inside { at(tensor, dims, &position.iter().map(|&p| p as usize).collect::<Vec<_>>()) } else { outside }
}

fn broadcast(tensor: &[f64], dims: &[usize], position: &[usize]) -> f64 {
    let position = &position[position.len() - dims.len()..];
    let position: Vec<usize> = position.iter().zip(dims).map(|(&p, &dim)| p.min(dim - 1)).collect();
    at(tensor, dims, &position)
}
