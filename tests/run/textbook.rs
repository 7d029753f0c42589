//! A textbook evaluation of networks, whole tensor by whole tensor in 64-bit floats. Runs are compared with it.

use csdfc_network::{Layer, Network};
use csdfc_plan::operator::{
    BinaryFunction, Coordinates, Filter, Function, Operator, PadMode, PoolKind, ReduceFunction, Resize,
    ResizeMode,
};

/// Every tensor of the network for these inputs, in row-major order of its dimensions.
pub fn evaluate(network: &Network, inputs: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut inputs = inputs.iter();
    let mut tensors: Vec<Vec<f64>> = Vec::new();
    for layer in &network.layers {
        let tensor = match &layer.operator {
            Operator::Input(_) => inputs.next().unwrap().clone(),
            _ => {
                let operands: Vec<Tensor<'_>> = layer
                    .inputs
                    .iter()
                    .map(|operand| Tensor { data: &tensors[operand.layer.0], dims: &operand.shape.dims })
                    .collect();
                compute(layer, &operands)
            }
        };
        assert_eq!(tensor.len(), layer.shape.elements(), "{}", layer.name);
        tensors.push(tensor);
    }
    tensors
}

#[derive(Clone, Copy)]
struct Tensor<'a> {
    data: &'a [f64],
    dims: &'a [usize],
}

impl Tensor<'_> {
    fn at(&self, index: &[usize]) -> f64 {
        self.data[index.iter().zip(self.dims).fold(0, |linear, (i, dim)| linear * dim + i)]
    }

    /// The element; `None` outside.
    fn get(&self, index: &[i64]) -> Option<f64> {
        let inside = index.iter().zip(self.dims).all(|(&i, &dim)| (0..dim as i64).contains(&i));
        inside.then(|| self.at(&index.iter().map(|&i| i as usize).collect::<Vec<_>>()))
    }

    fn broadcast(&self, index: &[usize]) -> f64 {
        let own = &index[index.len() - self.dims.len()..];
        self.at(&own.iter().zip(self.dims).map(|(&i, &dim)| i.min(dim - 1)).collect::<Vec<_>>())
    }
}

/// Images of batch 1 one after the other, and their channels.
fn concatenated(parts: &[Tensor<'_>]) -> (Vec<f64>, usize) {
    let data = parts.iter().flat_map(|part| part.data).copied().collect();
    (data, parts.iter().map(|part| part.dims[1]).sum())
}

fn compute(layer: &Layer, operands: &[Tensor<'_>]) -> Vec<f64> {
    let parameters: Vec<Vec<f64>> = layer
        .parameters
        .iter()
        .map(|weights| weights.values().unwrap().into_iter().map(f64::from).collect())
        .collect();
    let x = operands[0];
    let out = &layer.shape.dims;
    let filter = |index: &[usize]| Tensor { data: &parameters[0], dims: &layer.parameters[0].dims }.at(index);
    let mut made = match &layer.operator {
        Operator::Conv(conv) => {
            let place = 1 + usize::from(conv.bias);
            let (parts, residual) = operands.split_at(operands.len() - usize::from(conv.residual));
            let (whole, channels) = concatenated(parts);
            let x = Tensor { data: &whole, dims: &[x.dims[0], channels, x.dims[2], x.dims[3]] };
            let before = each(x.dims, |i| {
                let c = i[1];
                match &conv.pre {
                    Some(pre) if pre.affine => function(
                        pre.activation.as_ref(),
                        x.at(i) * parameters[place][c] + parameters[place + 1][c],
                    ),
                    Some(pre) => function(pre.activation.as_ref(), x.at(i)),
                    None => x.at(i),
                }
            });
            let x = Tensor { data: &before, dims: x.dims };
            each(out, |o| {
                let (c_in, c_out) = (x.dims[1] / conv.groups, conv.filters / conv.groups);
                let mut sum = if conv.bias { parameters[1][o[1]] } else { 0.0 };
                for i in indices(&[c_in, conv.kernel[0], conv.kernel[1]]) {
                    let row = (o[2] * conv.stride[0] + i[1] * conv.dilation[0]) as i64 - conv.pads[0] as i64;
                    let column =
                        (o[3] * conv.stride[1] + i[2] * conv.dilation[1]) as i64 - conv.pads[1] as i64;
                    let channel = (o[1] / c_out * c_in + i[0]) as i64;
                    sum +=
                        filter(&[o[1], i[0], i[1], i[2]]) * x.get(&[0, channel, row, column]).unwrap_or(0.0);
                }
                sum + residual.iter().map(|added| added.at(o)).sum::<f64>()
            })
        }
        Operator::BatchNorm(_) => each(out, |o| x.at(o) * parameters[0][o[1]] + parameters[1][o[1]]),
        Operator::ConvTranspose(conv) => {
            let (c_in, c_out) = (x.dims[1] / conv.groups, conv.filters / conv.groups);
            let mut y = each(out, |o| if conv.bias { parameters[1][o[1]] } else { 0.0 });
            for i in indices(&[x.dims[1], x.dims[2], x.dims[3], c_out, conv.kernel[0], conv.kernel[1]]) {
                let row = (i[1] * conv.stride[0] + i[4] * conv.dilation[0]) as i64 - conv.pads[0] as i64;
                let column = (i[2] * conv.stride[1] + i[5] * conv.dilation[1]) as i64 - conv.pads[1] as i64;
                if (0..out[2] as i64).contains(&row) && (0..out[3] as i64).contains(&column) {
                    let channel = i[0] / c_in * c_out + i[3];
                    let target = (channel * out[2] + row as usize) * out[3] + column as usize;
                    y[target] += filter(&[i[0], i[3], i[4], i[5]]) * x.at(&[0, i[0], i[1], i[2]]);
                }
            }
            y
        }
        Operator::Gemm(gemm) => each(out, |o| {
            let (unit, row) = (o[o.len() - 1], &o[..o.len() - 1]);
            let product = |k: usize| {
                let weight = if gemm.transposed { filter(&[unit, k]) } else { filter(&[k, unit]) };
                x.at(&[row, &[k]].concat()) * weight
            };
            (0..gemm.inner).map(product).sum::<f64>() + if gemm.bias { parameters[1][unit] } else { 0.0 }
        }),
        Operator::MatMul => each(out, |o| {
            // Neither operand is a vector.
            let (batch, [row, column]) = o.split_last_chunk().unwrap();
            let outer = |operand: Tensor<'_>, index: [usize; 2]| {
                operand.broadcast(&[&batch[batch.len() + 2 - operand.dims.len()..], &index[..]].concat())
            };
            (0..x.dims[x.dims.len() - 1])
                .map(|k| outer(x, [*row, k]) * outer(operands[1], [k, *column]))
                .sum()
        }),
        Operator::InstanceNorm(norm) => each(out, |o| {
            let plane = || indices(&x.dims[2..]).map(|i| x.at(&[&o[..2], &i[..]].concat()));
            let count = plane().count() as f64;
            let mean = plane().sum::<f64>() / count;
            let variance = plane().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
            let factor = parameters[0][o[1]] / (variance + f64::from(norm.epsilon)).sqrt();
            (x.at(o) - mean) * factor + parameters[1][o[1]]
        }),
        Operator::ElementWise(element_wise) => each(out, |o| function(Some(&element_wise.function), x.at(o))),
        Operator::Binary(binary) => each(out, |o| {
            let other = match &binary.constant {
                Some(constant) => Tensor { data: &parameters[0], dims: &constant.dims },
                None => operands[1],
            };
            let (a, b) = (x.broadcast(o), other.broadcast(o));
            match binary.function {
                BinaryFunction::Add => a + b,
                BinaryFunction::Mul => a * b,
                _ => unreachable!("no test has another function"),
            }
        }),
        Operator::Pool(pool) => each(out, |o| {
            let (mut sum, mut inside, mut with_padding, mut largest) = (0.0, 0.0, 0.0, f64::NEG_INFINITY);
            for i in indices(&pool.kernel) {
                let row = (o[2] * pool.stride[0] + i[0] * pool.dilation[0]) as i64 - pool.pads[0] as i64;
                let column = (o[3] * pool.stride[1] + i[1] * pool.dilation[1]) as i64 - pool.pads[1] as i64;
                // Where the size is rounded up, a window may reach beyond the padding too.
                if row < (x.dims[2] + pool.pads[2]) as i64 && column < (x.dims[3] + pool.pads[3]) as i64 {
                    with_padding += 1.0;
                }
                if let Some(value) = x.get(&[0, o[1] as i64, row, column]) {
                    (sum, inside, largest) = (sum + value, inside + 1.0, value.max(largest));
                }
            }
            match pool.kind {
                PoolKind::Max => largest,
                PoolKind::Average { count_include_pad: true } => sum / with_padding,
                PoolKind::Average { count_include_pad: false } => sum / inside,
                PoolKind::Lp { .. } | PoolKind::MaxIndex => unreachable!("no test has one"),
            }
        }),
        Operator::Reduce(reduce) => each(out, |o| {
            let sizes: Vec<usize> = reduce.axes.iter().map(|&axis| x.dims[axis]).collect();
            let values = indices(&sizes).map(|i| {
                let mut index = o.to_vec();
                reduce.axes.iter().zip(i).for_each(|(&axis, i)| index[axis] = i);
                x.at(&index)
            });
            match reduce.function {
                ReduceFunction::Mean => values.sum::<f64>() / sizes.iter().product::<usize>() as f64,
                ReduceFunction::Max => values.fold(f64::NEG_INFINITY, f64::max),
                _ => unreachable!("no test has another reduction"),
            }
        }),
        Operator::Convert => operands[0].data.to_vec(),
        Operator::Concat(concat) => each(out, |o| {
            let mut index = o.to_vec();
            for operand in operands {
                if index[concat.axis] < operand.dims[concat.axis] {
                    return operand.at(&index);
                }
                index[concat.axis] -= operand.dims[concat.axis];
            }
            unreachable!("the operands make up the output")
        }),
        Operator::Slice(slice) => each(out, |o| {
            let at = |(axis, &i): (usize, &usize)| slice.starts[axis] as i64 + i as i64 * slice.steps[axis];
            x.get(&o.iter().enumerate().map(at).collect::<Vec<_>>()).unwrap()
        }),
        Operator::Pad(pad) => each(out, |o| {
            let at = |(axis, &i): (usize, &usize)| {
                // Elements are cropped before the mode looks for the edge.
                let low = (-pad.before[axis]).max(0);
                let high = x.dims[axis] as i64 - 1 - (-pad.after[axis]).max(0);
                let at = i as i64 - pad.before[axis];
                match pad.mode {
                    _ if (low..=high).contains(&at) => at,
                    PadMode::Constant { .. } => -1,
                    PadMode::Edge => at.clamp(low, high),
                    PadMode::Reflect if at < low => 2 * low - at,
                    PadMode::Reflect => 2 * high - at,
                }
            };
            x.get(&o.iter().enumerate().map(at).collect::<Vec<_>>()).unwrap_or(0.0)
        }),
        Operator::Resize(resize) => each(out, |o| self::resize(resize, x, o)),
        Operator::Transpose(transpose) => each(out, |o| {
            let mut index = vec![0; o.len()];
            transpose.perm.iter().zip(o).for_each(|(&axis, &i)| index[axis] = i);
            x.at(&index)
        }),
        Operator::Softmax(softmax) => each(out, |o| {
            let [axis] = softmax.axes[..] else { unreachable!("no test has more axes") };
            let exp = |i: usize| x.at(&[&o[..axis], &[i], &o[axis + 1..]].concat()).exp();
            exp(o[axis]) / (0..x.dims[axis]).map(exp).sum::<f64>()
        }),
        Operator::DepthToSpace(blocks) => each(out, |o| {
            let (side, depth) = (blocks.block, out[1]);
            let block = o[2] % side * side + o[3] % side;
            assert!(blocks.depth_first);
            x.at(&[0, block * depth + o[1], o[2] / side, o[3] / side])
        }),
        Operator::SpaceToDepth(blocks) => each(out, |o| {
            let (side, depth) = (blocks.block, x.dims[1]);
            let block = o[1] / depth;
            x.at(&[0, o[1] % depth, o[2] * side + block / side, o[3] * side + block % side])
        }),
        other => unreachable!("no test has a {}", other.kind()),
    };
    made.iter_mut().for_each(|x| *x = function(layer.operator.activation(), *x));
    made
}

fn function(function: Option<&Function>, x: f64) -> f64 {
    match function {
        None => x,
        // NaN stays.
        Some(Function::Relu) if x < 0.0 => 0.0,
        Some(Function::Relu) => x,
        Some(other) => unreachable!("no test has {other:?}"),
    }
}

/// As ONNX defines it, along rows; columns stay.
fn resize(resize: &Resize, x: Tensor<'_>, o: &[usize]) -> f64 {
    // One division of whole numbers below 2^53, so that no tie is lost.
    let (y, own, size) = (o[2] as f64, x.dims[2] as f64, resize.size[0] as f64);
    let at = match resize.coordinates {
        Coordinates::HalfPixel => ((2.0 * y + 1.0) * own - size) / (2.0 * size),
        Coordinates::AlignCorners if size == 1.0 => 0.0,
        Coordinates::AlignCorners => y * (own - 1.0) / (size - 1.0),
        Coordinates::Asymmetric => y * own / size,
        Coordinates::TfCropAndResize(crop) => {
            let [from, to] = [crop.from[0], crop.to[0]].map(f64::from);
            let (part, parts) = if size == 1.0 { (1.0, 2.0) } else { (y, size - 1.0) };
            (own - 1.0) * (from * parts + (to - from) * part) / parts
        }
        _ => unreachable!("no test has other coordinates"),
    };
    let inside = |row: f64| (0.0..=own - 1.0).contains(&row);
    if let Coordinates::TfCropAndResize(crop) = resize.coordinates
        && !inside(at)
    {
        return crop.outside.into();
    }
    let row = |row: f64| x.at(&[o[0], o[1], row.clamp(0.0, own - 1.0) as usize, o[3]]);
    match resize.mode {
        ResizeMode::Nearest { .. } => row((at - 0.5).ceil()),
        ResizeMode::Linear => {
            let below = at.floor();
            row(below) * (1.0 - (at - below)) + row(below + 1.0) * (at - below)
        }
        ResizeMode::Filter(Filter { cubic, antialias, exclude_outside }) => {
            let scale = if antialias { (size / own).min(1.0) } else { 1.0 };
            let weight = |d: f64| match cubic.map(f64::from) {
                None => (1.0 - d).max(0.0),
                Some(a) if d < 1.0 => (a + 2.0) * d.powi(3) - (a + 3.0) * d * d + 1.0,
                Some(a) if d < 2.0 => a * (d.powi(3) - 5.0 * d * d + 8.0 * d - 4.0),
                Some(_) => 0.0,
            };
            let far = own as i64 * 3;
            let taps = (-far..far).map(|i| (i as f64, weight((i as f64 - at).abs() * scale)));
            let taps: Vec<_> = taps.filter(|(i, _)| !exclude_outside || inside(*i)).collect();
            let all: f64 = taps.iter().map(|(_, weight)| weight).sum();
            taps.iter().map(|(i, weight)| weight / all * row(*i)).sum()
        }
    }
}

fn indices(dims: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let dims = dims.to_vec();
    (0..dims.iter().product()).map(move |mut linear| {
        let mut index = vec![0; dims.len()];
        for (i, dim) in index.iter_mut().zip(&dims).rev() {
            (*i, linear) = (linear % dim, linear / dim);
        }
        index
    })
}

fn each(dims: &[usize], value: impl Fn(&[usize]) -> f64) -> Vec<f64> {
    indices(dims).map(|index| value(&index)).collect()
}
