"""Models that ONNX Runtime's quantizer made, beside ONNX Runtime: integer for integer."""

import re

import numpy as np
import onnx
import onnxruntime
from onnx import helper, version_converter
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

import models
from csdfc import Failed

# How a model is quantized: format, type of activations, whether weights have a scale for each channel. Weights have 7 bits:
# of 8, ONNX Runtime's products saturate on processors without instructions for them. Signed activations come with operators
# of integers only: between conversions ONNX Runtime computes some of their convolutions with floats.
SCHEMES = {
    "qdq-u8": (QuantFormat.QDQ, QuantType.QUInt8, True),
    "operators-u8": (QuantFormat.QOperator, QuantType.QUInt8, False),
    "operators-i8": (QuantFormat.QOperator, QuantType.QInt8, True),
}
FRAMES = 4
# The least share of all 8-bit elements that are the same; the others differ by a step at most from what ONNX Runtime makes of
# the same integers. A step of a sum may be two of the product behind it, whose scale is finer.
SAME = 0.999
# Where more differ, the share that must be the same, and why. What differs once spreads through all that follows.
APART = {
    "ocr_cls, operators-i8": (0.995, "sums with one constant that lie between two integers: csdfc moves signed zero points by 128"),
    "ocr_det, operators-u8": (0.98, "ONNX Runtime's ConvTranspose is 5e-3 from the exact sum here, and csdfc's is not"),
    "ocr_det, operators-i8": (0.98, "as operators-u8"),
    "ocr_rec, qdq-u8": (0.98, "averages that lie between two integers: ONNX Runtime sums them as floats"),
}
# What makes integers whose layer csdfc runs under the same name.
MAKERS = {"QuantizeLinear", "QLinearConv", "QLinearAdd", "QLinearMul", "QLinearMatMul", "QGemm"}


class Frames(CalibrationDataReader):
    """Frames as those that models are compared with."""

    def __init__(self, session):
        self.frames = iter([models.draw_inputs(session, seed) for seed in range(100, 100 + FRAMES)])

    def get_next(self):
        return next(self.frames, None)


def run(tool, summary, folder, only, seed):
    for file in sorted(folder.glob("*.onnx")):
        for name, scheme in SCHEMES.items():
            case = f"{file.stem}, {name}"
            if re.search(only, case):
                note = lambda: [f"{case}: {beside_runtime(tool, file, name, scheme, seed)}"]
                summary.check("quantized", case, note)


def quantize(tool, file, name, scheme):
    """The model as ONNX Runtime's quantizer writes it."""
    form, activations, per_channel = scheme
    source, made = prepared(tool, file), tool.work / f"{file.stem}.{name}.onnx"
    quantize_static(str(source), str(made), Frames(models.start(source)), quant_format=form, reduce_range=True,
                    activation_type=activations, weight_type=QuantType.QInt8, per_channel=per_channel)
    return made


def prepared(tool, file):
    """The model as ONNX Runtime's quantizer asks for it: batch norms in convolutions, and the like."""
    model = onnx.load(file)
    if model.opset_import[0].version < 13:
        model = version_converter.convert_version(model, 13)
    source = tool.work / f"{file.stem}.13.onnx"
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(source)
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return source


def beside_runtime(tool, file, name, scheme, seed):
    case, made = f"{file.stem}, {name}", quantize(tool, file, name, scheme)
    session = models.start(made)
    feeds = models.draw_inputs(session, seed)
    names = [output.name for output in session.get_outputs()]
    plan = tool.work / "quantized.json"
    first = None
    for rows in models.ROWS:
        tool.plan(made, rows, plan)
        outputs = tool.run(plan, feeds, names, tool.work / "quantized")
        first = first or outputs
        if any(one.tobytes() != other.tobytes() for one, other in zip(first, outputs, strict=True)):
            raise Failed(f"{' '.join(rows)}: not byte for byte what other rows give")
    tool.plan(made, ["--rows", "none"], plan)
    ours = tool.dump(plan, feeds, tool.work / "quantized")
    found = integers(made, feeds, set(ours))
    own = {tensor: as_theirs(ours[tensor], theirs) for tensor, theirs in found.items()}
    same = total = most = 0
    for tensor, theirs in found.items():
        difference = steps(own[tensor], theirs)
        most = max(most, int(difference.max()))
        if difference.max() > 1 and case not in APART:
            operator = int(steps(own[tensor], made_of(made, feeds, own, tensor)).max())
            if operator > 1:
                raise Failed(f"{tensor} differs by {operator} steps")
        same, total = same + np.count_nonzero(difference == 0), total + difference.size
    least, why = APART.get(case, (SAME, ""))
    if not total or same < least * total:
        raise Failed(f"{total - same} of {total} 8-bit elements differ")
    for one, output, theirs in zip(first, names, session.run(names, feeds), strict=True):
        # Of many places, some have scores that 8 bits do not tell apart.
        if theirs.ndim <= 2 and not np.array_equal(one.argmax(-1), theirs.argmax(-1)):
            raise Failed(f"the greatest element of {output} is another")
    return f"{total - same} of {total} 8-bit elements differ, by {most} steps at most" + (why and f" ({why})")


def as_theirs(ours, theirs):
    """A tensor of csdfc's bytes with the zero point and the dimensions that ONNX Runtime's has."""
    shift = 128 if theirs.dtype == np.int8 else 0
    return (ours.astype(int).reshape(theirs.shape) - shift).astype(theirs.dtype)


def steps(ours, theirs):
    return np.abs(ours.astype(int) - theirs.astype(int))


def made_of(made, feeds, own, tensor):
    """A tensor as ONNX Runtime computes it from the integers that csdfc computed before it."""
    model = onnx.load(made)
    makers = {out: node for node in model.graph.node for out in node.output}
    given, wanted, names = {}, set(), [tensor]
    while names:
        name = names.pop()
        if name != tensor and name in own:
            given[name] = own[name]
        elif name in feeds:
            given[name] = feeds[name]
        elif name in makers and name not in wanted:
            wanted.add(name)
            names.extend(makers[name].input)
    nodes = [node for node in model.graph.node if wanted.intersection(node.output)]
    values = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
              for name, array in given.items()]
    output = helper.make_empty_tensor_value_info(tensor)
    graph = helper.make_graph(nodes, "part", values, [output], model.graph.initializer)
    part = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    return models.start(part.SerializeToString()).run([tensor], given)[0]


def integers(made, feeds, known):
    """The tensors of integers that csdfc has too, as ONNX Runtime computes each from what it computed before."""
    model = onnx.load(made)
    # ONNX Runtime's softmax of integers is by a table of its own.
    soft = {out for node in model.graph.node if node.op_type == "Softmax" for out in node.output}
    nodes = [node for node in model.graph.node if node.op_type in MAKERS and not soft.intersection(node.input)]
    wanted = [out for node in nodes for out in node.output if out in known]
    for tensor in wanted:
        model.graph.output.append(helper.make_empty_tensor_value_info(tensor))
    session = models.start(model.SerializeToString())
    found = dict(zip(wanted, session.run(wanted, feeds), strict=True))
    return {name: array for name, array in found.items() if array.dtype in (np.uint8, np.int8)}
