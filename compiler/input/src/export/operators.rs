//! What each operator becomes.

use csdfc_plan::operator::{Gemm, Operator, Reduce, ReduceFunction};
use rten_onnx::onnx::DataType;

use super::nodes::Nodes;
use super::{ExportError, constants, functions, movement, windows};
use crate::import::attribute::{flag, float, int, ints, text};
use csdfc_network::pass;

/// Adds the nodes of a layer, which read tensors of these names. Returns the name of the last one's.
pub(super) fn operator(nodes: &mut Nodes, operands: Vec<String>) -> Result<String, ExportError> {
    let layer = nodes.layer;
    // ONNX has operators that move integers. Operators that compute on integers are stated as operators on floats, with
    // conversions around them.
    let moves = matches!(layer.operator, Operator::Convert) || pass::of_moved_integers(layer).is_some();
    if layer.is_of_integers() && !moves {
        return Err(nodes.refused("it computes on 8-bit integers".into()));
    }
    let mut one = operands.clone().into_iter();
    let mut x = || one.next().unwrap_or_default();
    Ok(match &layer.operator {
        // `graph` writes inputs.
        Operator::Input(_) => return Err(nodes.refused("an input is no node".into())),
        Operator::Conv(conv) => windows::conv(nodes, conv, operands)?,
        Operator::ConvTranspose(conv) => windows::conv_transpose(nodes, conv, x())?,
        Operator::Gemm(gemm) => dense(nodes, gemm, x())?,
        Operator::MatMul => nodes.node("MatMul", operands, Vec::new()),
        // ONNX's operators multiply the inputs themselves.
        Operator::Recurrent(_) => {
            return Err(nodes.refused("it takes products of inputs that another layer has made".into()));
        }
        Operator::BatchNorm(norm) => {
            let vectors = [nodes.parameter(0, "scale")?, nodes.parameter(1, "shift")?];
            let y = functions::affine(nodes, x(), vectors, norm.channels);
            functions::activated(nodes, y)?
        }
        Operator::ElementWise(element_wise) => functions::function(nodes, &element_wise.function, x())?,
        Operator::Binary(binary) => {
            let mut inputs = operands;
            if let Some(constant) = &binary.constant {
                let at = if constant.left { 0 } else { inputs.len() };
                inputs.insert(at, nodes.parameter(0, "operand")?);
            }
            let (operator, attributes) = functions::binary(binary.function);
            let mut y = nodes.node(operator, inputs, attributes);
            if binary.function.is_comparison() {
                y = as_floats(nodes, y);
            }
            functions::activated(nodes, y)?
        }
        Operator::Where(choice) => {
            let (mut inputs, mut operands, mut parameter) = (Vec::new(), operands.into_iter(), 0);
            for (constant, what) in [(&choice.condition, "condition"), (&choice.x, "x"), (&choice.y, "y")] {
                inputs.push(match constant {
                    Some(_) => nodes.parameter(parameter, what)?,
                    None => operands.next().unwrap_or_default(),
                });
                parameter += usize::from(constant.is_some());
            }
            let condition = std::mem::take(&mut inputs[0]);
            inputs[0] = nodes.node("Cast", [condition], vec![int("to", DataType::BOOL.0)]);
            nodes.node("Where", inputs, Vec::new())
        }
        Operator::Pool(pool) => windows::pool(nodes, pool, x()),
        Operator::MaxUnpool(unpool) => windows::max_unpool(nodes, unpool, operands),
        Operator::Reduce(reduce) => reduction(nodes, reduce, x())?,
        Operator::ArgMax(max) => {
            let attributes = vec![
                int("axis", max.axis),
                flag("keepdims", max.keep_dims),
                flag("select_last_index", max.select_last),
            ];
            let indices = nodes.node("ArgMax", [x()], attributes);
            if max.floats { as_floats(nodes, indices) } else { indices }
        }
        Operator::NonMaxSuppression(suppression) => {
            let most = nodes.list("most", &[suppression.most]);
            let limits = [Some(suppression.overlap), suppression.score];
            let limits = limits.into_iter().flatten().map(|limit| nodes.number("limit", limit));
            let inputs: Vec<String> = operands.into_iter().chain([most]).chain(limits).collect();
            let attributes = vec![flag("center_point_box", suppression.centred)];
            let indices = nodes.node("NonMaxSuppression", inputs, attributes);
            if suppression.floats { as_floats(nodes, indices) } else { indices }
        }
        Operator::TopK(top) => {
            let count = nodes.list("count", &[top.count]);
            let attributes = vec![int("axis", top.axis), flag("largest", top.largest)];
            let [elements, indices] = nodes.add_with_two_outputs("TopK", [x(), count], attributes);
            match (top.indices, top.floats) {
                (true, true) => as_floats(nodes, indices),
                (true, false) => indices,
                (false, _) => elements,
            }
        }
        Operator::GridSample(sample) => windows::grid_sample(nodes, sample, operands),
        Operator::GatherElements(gather) => {
            let [data, indices] = <[String; 2]>::try_from(operands).unwrap_or_default();
            let indices = nodes.node("Cast", [indices], vec![int("to", DataType::INT64.0)]);
            nodes.node("GatherElements", [data, indices], vec![int("axis", gather.axis)])
        }
        Operator::Concat(concat) => nodes.node("Concat", operands, vec![int("axis", concat.axis)]),
        Operator::Slice(slice) => movement::slice(nodes, slice, x()),
        Operator::Pad(pad) => movement::pad(nodes, pad, x())?,
        Operator::Resize(resize) => windows::resize(nodes, resize, x())?,
        Operator::Transpose(transpose) => {
            nodes.node("Transpose", [x()], vec![ints("perm", transpose.perm.iter().copied())])
        }
        Operator::Softmax(softmax) => functions::softmax(nodes, &softmax.axes, softmax.log, x())?,
        Operator::Lrn(lrn) => {
            let attributes = vec![
                int("size", lrn.size),
                float("alpha", lrn.alpha),
                float("beta", lrn.beta),
                float("bias", lrn.bias),
            ];
            nodes.node("LRN", [x()], attributes)
        }
        Operator::InstanceNorm(norm) => {
            let inputs = [x(), nodes.parameter(0, "scale")?, nodes.parameter(1, "shift")?];
            nodes.node("InstanceNormalization", inputs, vec![float("epsilon", norm.epsilon)])
        }
        Operator::DepthToSpace(depth) => {
            let mode = if depth.depth_first { "DCR" } else { "CRD" };
            nodes.node("DepthToSpace", [x()], vec![int("blocksize", depth.block), text("mode", mode)])
        }
        Operator::SpaceToDepth(space) => {
            nodes.node("SpaceToDepth", [x()], vec![int("blocksize", space.block)])
        }
        Operator::Convert => movement::convert(nodes, x()),
    })
}

/// Truth values or indices as floats.
fn as_floats(nodes: &mut Nodes, x: String) -> String {
    nodes.node("Cast", [x], vec![int("to", DataType::FLOAT.0)])
}

/// Fully connected: a Gemm. ONNX has no Gemm for tensors of another rank than 2; these have MatMul and Add.
fn dense(nodes: &mut Nodes, gemm: &Gemm, x: String) -> Result<String, ExportError> {
    let sum = if nodes.layer.inputs[0].shape.rank() == 2 {
        let inputs = windows::weighted(nodes, x, gemm.bias)?;
        nodes.node("Gemm", inputs, vec![flag("transB", gemm.transposed)])
    } else {
        let mut weights = nodes.parameter(0, "weight")?;
        if gemm.transposed {
            weights = nodes.node("Transpose", [weights], vec![ints("perm", [1, 0])]);
        }
        let product = nodes.node("MatMul", [x, weights], Vec::new());
        match gemm.bias {
            true => {
                let bias = nodes.parameter(1, "bias")?;
                nodes.node("Add", [product, bias], Vec::new())
            }
            false => product,
        }
    };
    functions::activated(nodes, sum)
}

/// A reduction. A reduction over a whole image is a global pool, which runtimes compute faster, and on integers too.
fn reduction(nodes: &mut Nodes, reduce: &Reduce, x: String) -> Result<String, ExportError> {
    let rank = nodes.layer.inputs[0].shape.rank();
    let is_global = rank > 2 && reduce.keep_dims && reduce.axes.iter().copied().eq(2..rank);
    let operator = match reduce.function {
        ReduceFunction::Mean if is_global => return Ok(nodes.node("GlobalAveragePool", [x], Vec::new())),
        ReduceFunction::Max if is_global => return Ok(nodes.node("GlobalMaxPool", [x], Vec::new())),
        ReduceFunction::Lp { p } if is_global => {
            return Ok(nodes.node("GlobalLpPool", [x], vec![int("p", p)]));
        }
        ReduceFunction::Lp { p } => {
            return Err(nodes.refused(format!("a norm of exponent {p} over dimensions {:?}", reduce.axes)));
        }
        ReduceFunction::Mean => "ReduceMean",
        ReduceFunction::Max => "ReduceMax",
        ReduceFunction::Min => "ReduceMin",
        ReduceFunction::Sum => "ReduceSum",
        ReduceFunction::Prod => "ReduceProd",
        ReduceFunction::L1 => "ReduceL1",
        ReduceFunction::L2 => "ReduceL2",
        ReduceFunction::SumSquare => "ReduceSumSquare",
        ReduceFunction::LogSum => "ReduceLogSum",
        ReduceFunction::LogSumExp => "ReduceLogSumExp",
    };
    let axes = constants::of_ints(&nodes.called("axes"), &reduce.axes);
    let axes = nodes.constant(axes);
    Ok(nodes.node(operator, [x, axes], vec![flag("keepdims", reduce.keep_dims)]))
}
