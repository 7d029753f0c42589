//! Corruptions of the layers, tensors and sums of a plan.

use csdfc_plan::format::Element;
use csdfc_plan::operator::{Operator, Pre};
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_plan::shape::Shape;
use rand::RngExt;

use super::{Random, pick};

/// A number other than `value`: one off, or any.
fn other(value: u64, random: &mut Random) -> u64 {
    match random.random_range(0..4) {
        0 => value + 1,
        1 => value.checked_sub(1).unwrap_or(1),
        2 => value + 4 * random.random_range(1..1000),
        _ => value.checked_sub(random.random_range(1..=value.max(1))).unwrap_or(7),
    }
}

/// Invalid because every sum is what its parts add up to.
pub fn sum_off(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let kind = random.random_range(0..10);
    let memory = &mut plan.memory;
    let sum = match kind {
        0 => &mut memory.parameters,
        1 => &mut memory.parameters_stored,
        2 => &mut memory.workspace,
        3 => &mut memory.total,
        4 => &mut memory.naive,
        5 => &mut memory.bound,
        6 => &mut memory.external.inputs,
        7 => &mut memory.external.outputs,
        8 => &mut memory.buffers,
        _ => &mut plan.certificate.bound.as_mut()?.bytes,
    };
    *sum = other(*sum, random);
    // All figures that follow from it are adapted, so that it alone is off.
    memory.total = match kind {
        3 => memory.total,
        _ => memory.parameters_stored + memory.arena,
    };
    memory.proven = memory.arena == memory.bound;
    Some(())
}

/// Invalid because the operator says how many parameters a layer has.
pub fn layer_parameters_off(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let c = random.random_range(0..plan.cnns.len());
    let l = random.random_range(0..plan.cnns[c].layers.len());
    let layer = &mut plan.cnns[c].layers[l];
    layer.parameters = other(layer.parameters, random);
    // The sums agree with the layer: it alone is off.
    let sum = plan.cnns.iter().flat_map(|cnn| &cnn.layers).map(|layer| layer.parameters).sum();
    (plan.memory.parameters, plan.memory.parameters_stored) = (sum, sum);
    plan.memory.total = sum + plan.memory.arena;
    Some(())
}

/// Invalid because `proven` means that the buffers equal the bound, and `met` that the constraints hold.
pub fn claim_false(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let total = plan.memory.total;
    let cnn = plan.cnns[0].name.clone();
    let fps = plan.cnns[0].fps;
    match random.random_range(0..6) {
        0 => plan.memory.proven = !plan.memory.proven,
        1 => plan.constraints.met = !plan.constraints.met,
        2 => (plan.constraints.memory, plan.constraints.met) = (Some(total - 1), true),
        3 => (plan.constraints.memory, plan.constraints.met) = (Some(total), false),
        4 => {
            plan.constraints.fps = [(cnn, fps * 1.01)].into();
            plan.constraints.met = true;
        }
        _ => {
            plan.constraints.fps = [("nobody".to_string(), fps)].into();
            plan.constraints.met = true;
        }
    }
    Some(())
}

/// Invalid because a view has as many elements as its tensor, and a fully connected layer sees its inner size last.
pub fn view_wrong(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let mut views = Vec::new();
    for (c, cnn) in plan.cnns.iter().enumerate() {
        for (l, layer) in cnn.layers.iter().enumerate() {
            views.extend(
                (0..layer.inputs.len()).filter(|i| layer.inputs[*i].view.is_some()).map(|i| (c, l, i)),
            );
        }
    }
    let kind = random.random_range(0..4);
    if kind == 3 {
        let c = random.random_range(0..plan.cnns.len());
        let cnn = &mut plan.cnns[c];
        let shape = &cnn.layers.iter().find(|layer| layer.output == cnn.outputs[0].tensor)?.output_shape;
        cnn.outputs[0].view = Some(Shape::new([shape.elements() + 1]));
        return Some(());
    }
    let &(c, l, i) = pick(&views, random)?;
    let cnn = &mut plan.cnns[c];
    let layer = &mut cnn.layers[l];
    let Operator::Gemm(gemm) = &layer.operator else { return None };
    match kind {
        0 => layer.inputs[i].view.as_mut()?.dims.push(2),
        1 => *layer.inputs[i].view.as_mut()?.dims.last_mut()? += 1,
        _ => {
            let of = |t: &&csdfc_plan::plan::Tensor| t.cnn == cnn.name && t.name == layer.inputs[i].tensor;
            let tensor = plan.tensors.iter().find(of)?;
            if tensor.shape.dims.last() == Some(&gemm.inner) {
                return None;
            }
            layer.inputs[i].view = None;
        }
    }
    Some(())
}

/// Invalid because a layer's output is what its operator makes of its inputs, and its tensor has that shape.
pub fn output_shape_wrong(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let c = random.random_range(0..plan.cnns.len());
    let cnn = &mut plan.cnns[c];
    let l = random.random_range(0..cnn.layers.len());
    let layer = &mut cnn.layers[l];
    let axis = random.random_range(0..layer.output_shape.rank());
    layer.output_shape.dims[axis] += 1;
    let both = !matches!(layer.operator, Operator::Input(_)) && random.random_range(0..2) == 0;
    if both {
        let of = |t: &&mut csdfc_plan::plan::Tensor| t.cnn == cnn.name && t.name == layer.output;
        let tensor = plan.tensors.iter_mut().find(of)?;
        tensor.shape = layer.output_shape.clone();
        tensor.row_bytes = tensor.format.row_bytes(&tensor.shape)?;
        if let Some(ring) = &mut tensor.ring {
            ring.bytes = ring.ring_rows * tensor.row_bytes;
        }
    }
    Some(())
}

/// Invalid because a tensor states who writes and reads it, and its sizes.
pub fn tensor_misstated(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let i = random.random_range(0..plan.tensors.len());
    let count = plan.tensors.len();
    let tensor = &mut plan.tensors[i];
    match random.random_range(0..9) {
        0 => tensor.producer.push('x'),
        1 => tensor.consumers.push("nobody".into()),
        2 => tensor.consumers.pop().map(drop)?,
        3 => tensor.consumers.push(tensor.consumers.first()?.clone()),
        4 => tensor.row_bytes = other(tensor.row_bytes, random),
        5 => tensor.format.element = Element::I64,
        6 => tensor.cnn.push('x'),
        7 => tensor.name.push('x'),
        _ => drop(plan.tensors.remove(random.random_range(0..count))),
    }
    Some(())
}

/// Invalid because names are unique and mean something.
pub fn name_wrong(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let c = random.random_range(0..plan.cnns.len());
    let cnn = &mut plan.cnns[c];
    let l = random.random_range(0..cnn.layers.len());
    match random.random_range(0..10) {
        0 => cnn.layers[l].name = cnn.layers[(l + 1) % cnn.layers.len()].name.clone(),
        1 => cnn.layers[l].output.push('x'),
        2 => cnn.layers[l].inputs.first_mut()?.tensor.push('x'),
        3 => cnn.inputs.push("nobody".into()),
        4 => cnn.inputs.clear(),
        5 => cnn.outputs[0].tensor = "nothing".into(),
        6 => plan.partitions.first_mut()?.cnn = "nobody".into(),
        7 => plan.partitions.push(plan.partitions[0].clone()),
        8 => plan.parallel[0].push("nobody".into()),
        _ => drop(plan.parallel.remove(0)),
    }
    Some(())
}

/// Invalid because layers are in topological order: here a reader stands before what it reads.
pub fn layers_out_of_order(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let c = random.random_range(0..plan.cnns.len());
    let layers = &mut plan.cnns[c].layers;
    let reads: Vec<usize> = (1..layers.len())
        .filter(|l| layers[*l].inputs.iter().any(|input| input.tensor == layers[*l - 1].output))
        .collect();
    let l = *pick(&reads, random)?;
    layers.swap(l, l - 1);
    Some(())
}

/// Invalid because another filter size, number of filters, groups, bias or norm of the input means other parameters or another shape; and
/// because a window that lies or steps differently makes another shape or needs other rows.
pub fn convolution_changed(plan: &mut Plan, random: &mut Random) -> Option<()> {
    let mut convolutions = Vec::new();
    for (c, cnn) in plan.cnns.iter().enumerate() {
        let is_conv = |l: &usize| matches!(cnn.layers[*l].operator, Operator::Conv(_));
        convolutions.extend((0..cnn.layers.len()).filter(is_conv).map(|l| (c, l)));
    }
    let &(c, l) = pick(&convolutions, random)?;
    let cnn = &mut plan.cnns[c];
    let tensor = cnn.layers[l].inputs[0].tensor.clone();
    let input_rows = cnn.layers.iter().find(|layer| layer.output == tensor)?.output_shape.rows();
    let layer = &mut cnn.layers[l];
    let (rows, firings, height) = (layer.rows_per_firing as i64, layer.firings, layer.output_shape.rows());
    let Operator::Conv(conv) = &mut layer.operator else { return None };
    let [kernel, stride, dilation, top] =
        [conv.kernel[0], conv.stride[0], conv.dilation[0], conv.pads[0]].map(|n| n as i64);
    let made = |kernel: usize, stride: usize, dilation: usize, pads: usize| {
        Some((input_rows + pads).checked_sub((kernel - 1) * dilation + 1)? / stride + 1)
    };
    let pads = conv.pads[0] + conv.pads[2];
    match random.random_range(0..9) {
        0 => conv.kernel[random.random_range(0..2)] += 1,
        1 => conv.filters += 1,
        2 => conv.bias = !conv.bias,
        3 => conv.groups = if conv.groups == 1 { 2 } else { 1 },
        4 if made(conv.kernel[0], conv.stride[0] + 1, conv.dilation[0], pads) != Some(height) => {
            conv.stride[0] += 1;
        }
        5 if made(conv.kernel[0], conv.stride[0], conv.dilation[0] + 1, pads) != Some(height) => {
            conv.dilation[0] += 1;
        }
        6 if made(conv.kernel[0], conv.stride[0], conv.dilation[0], pads + conv.stride[0])
            != Some(height) =>
        {
            conv.pads[2] += conv.stride[0];
        }
        8 => {
            conv.pre = match &conv.pre {
                Some(pre) if pre.affine => None,
                _ => Some(Pre { affine: true, ..Pre::default() }),
            };
        }
        7 => {
            // The window moves up by a row: the shape stays, and the first firing needs `need` rows, then one less.
            let need = (rows - 1) * stride - top + (kernel - 1) * dilation + 1;
            if conv.pads[2] == 0 || firings < 2 || !(1..=input_rows as i64).contains(&need) {
                return None;
            }
            conv.pads[0] += 1;
            conv.pads[2] -= 1;
        }
        _ => return None,
    }
    Some(())
}

/// Invalid because no such format is known, no plan runs on no worker, and the other storage model keeps rows otherwise.
pub fn header_wrong(plan: &mut Plan, random: &mut Random) -> Option<()> {
    match random.random_range(0..4) {
        0 => plan.format = "csdfc-plan/4".into(),
        1 => plan.format.clear(),
        2 => plan.threads = 0,
        _ => {
            plan.storage_model = match plan.storage_model {
                StorageModel::Edges => StorageModel::Tensors,
                StorageModel::Tensors => StorageModel::Edges,
            }
        }
    }
    Some(())
}
