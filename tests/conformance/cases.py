"""Cases of the operator suite in forms that csdfc can run: one frame in, every other input a constant."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, version_converter
from onnx.reference import ReferenceEvaluator

OLDEST_OPSET = 7
LARGEST_RANK = 6
# Images, and lines.
WINDOW_RANKS = (4, 3, 5)
OPERATORS = Path(__file__).resolve().parents[2] / "docs" / "guide" / "src" / "operators.md"
# Operators with several operands that csdfc takes as tensors of the network.
SEVERAL = {"Add", "Attention", "Concat", "Conv", "Div", "Einsum", "Equal", "Greater", "GreaterOrEqual", "GridSample", "Less",
           "LessOrEqual", "MatMul", "Max", "Mean", "Min", "Mul", "NonMaxSuppression", "PRelu", "Pow", "Sub", "Sum", "Where"}
# Operators that csdfc knows on lines and images alone.
WINDOWS = {"AveragePool", "Conv", "ConvTranspose", "GlobalLpPool", "LpPool", "MaxPool", "MaxUnpool"}
# Operators of which csdfc computes every output.
MANY_OUTPUTS = {"Attention", "DynamicQuantizeLinear", "GRU", "LSTM", "RNN", "Split", "TopK"}
# Operators whose data may be 8-bit integers, and those that make integers.
READ_INTEGERS = {"ConvInteger", "DequantizeLinear", "MatMulInteger", "QLinearConv", "QLinearMatMul"}
MAKE_INTEGERS = {"ConvInteger", "DynamicQuantizeLinear", "MatMulInteger", "QLinearConv", "QLinearMatMul", "QuantizeLinear"}
# Integers and truth values that csdfc has as floats.
WHOLE = ("int32", "int64", "bool")
# Operators that make truth values, which csdfc has as floats.
MAKE_TRUTH = {"And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "Or", "Xor"}


class Unclaimed(Exception):
    """The case is beyond what csdfc says that it does."""


@dataclass
class Step:
    """One model and the frames that it is run on."""
    model: onnx.ModelProto
    outputs: list
    feeds: list
    expected: list


@dataclass
class Form:
    """A case as it is run: under a name of its own where there are several."""
    name: str
    steps: list
    notes: list = field(default_factory=list)


def _table():
    """The operators that the guide lists, and those of constants only."""
    rows = [line for line in OPERATORS.read_text().split("## TFLite")[0].splitlines() if line.startswith("|")]
    words = lambda line: set(re.findall(r"`([A-Z]\w*)`", line))  # noqa: E731
    return set.union(*map(words, rows)), set.union(*(words(row) for row in rows if "constants only" in row))


CLAIMED, CONSTANT_ONLY = _table()


def prepare(model, data_sets, rtol, atol):
    """The forms of a case. Raises Unclaimed with the reason where there is none."""
    _claim(model)
    forms = []
    for number, (inputs, outputs) in enumerate(data_sets):
        more = f"#{number}" if number else ""
        forms += [Form(form.name + more, form.steps, form.notes)
                  for form in _forms(model, inputs, outputs, (rtol, atol))]
    if not forms:
        raise Unclaimed("the case has no data")
    return forms


def as_runtime(form):
    """The form with what ONNX Runtime gives, where that is not what the case has; else None."""
    steps = []
    try:
        for step in form.steps:
            expected = [_by_runtime(Step(step.model, step.outputs, [feed], [])) for feed in step.feeds]
            steps.append(Step(step.model, step.outputs, step.feeds, expected))
    except Exception:  # noqa: BLE001 - as in _is_right
        return None
    return Form(form.name, steps, form.notes + ["as ONNX Runtime, which differs from the suite"])


def _claim(model):
    if model.functions:
        raise Unclaimed("it has functions of its own")
    unknown = set()
    for node in model.graph.node:
        if node.domain not in ("", "ai.onnx"):
            unknown.add(f"{node.domain}.{node.op_type}")
        elif node.op_type not in CLAIMED:
            unknown.add(node.op_type)
    if unknown:
        raise Unclaimed(f"operator {', '.join(sorted(unknown))}")


def _forms(model, inputs, outputs, tolerance):
    model, notes = _modern(model)
    constants = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in constants]
    for value in [*inputs, *outputs]:
        if not isinstance(value, (np.ndarray, np.generic)):
            raise Unclaimed("a value is no tensor")
        if value.dtype.kind not in "fiub" or value.dtype in (np.float16, np.uint64):
            raise Unclaimed(f"a tensor of {value.dtype}")
    values = dict(zip(names, map(np.asarray, inputs), strict=False))
    expected = dict(zip([value.name for value in model.graph.output], map(np.asarray, outputs), strict=True))
    expected, dropped = _computed(model, expected)
    if dropped:
        notes.append("without the outputs after a node's first")
    _claim_tensors(model, values, expected)
    if all(node.op_type in CONSTANT_ONLY for node in model.graph.node):
        return [_of_constants(model, values, expected, notes)]
    limits = {name for node in model.graph.node if node.op_type == "NonMaxSuppression" for name in node.input[2:]}
    floats = [name for name in names if name in values and values[name].dtype == np.float32 and name not in limits]
    if any(node.op_type in READ_INTEGERS for node in model.graph.node):
        if values[names[0]].dtype not in (np.uint8, np.int8):
            raise Unclaimed(f"its data are {values[names[0]].dtype}")
        floats = names[:1]
        notes.append("the input's integers are handed over as floats")
    whole = []
    if not floats:
        whole = [name for name in names if name in values and values[name].dtype in WHOLE]
        floats = whole
        notes.append("the inputs' integers are handed over as floats")
    if not floats:
        raise Unclaimed(f"no input is float32, {', '.join(WHOLE)}")
    for name, array in expected.items():
        is_whole = bool(whole) and array.dtype in WHOLE
        if array.dtype != np.float32 and not is_whole and not _is_index(model, name) and not _is_integer(model, name):
            raise Unclaimed(f"an output is {array.dtype}")
    forms = []
    several = [node for node in model.graph.node if node.op_type in SEVERAL and len(set(node.input) & set(floats)) > 1]
    steps, more = _with_data(model, values, expected, floats[:1], tolerance)
    forms = [Form("", steps, notes + more)]
    if several:
        steps, more = _with_data(model, values, expected, floats, tolerance)
        forms.append(Form(" (all inputs live)", steps, notes + more))
    return forms


def _modern(model):
    """The model in an opset that csdfc reads."""
    opset = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 1)
    if opset >= OLDEST_OPSET:
        return model, []
    _spell_slopes(model)
    try:
        return version_converter.convert_version(model, OLDEST_OPSET), [f"converted from opset {opset}"]
    except (RuntimeError, ValueError) as error:
        raise Unclaimed(f"opset {opset}, which onnx cannot convert: {str(error).splitlines()[0]}") from None


def _spell_slopes(model):
    """Slopes of PRelu as opset 7 wants them, which the converter forgets: with a dimension for each after channels."""
    shapes = {value.name: value.type.tensor_type.shape.dim for value in model.graph.input}
    stored = {tensor.name: tensor.dims for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "PRelu" and list(stored.get(node.input[1], [1])) != [1]:
            for _ in range(len(shapes.get(node.input[0], [])) - 2):
                stored[node.input[1]].append(1)
                shapes[node.input[1]].add().dim_value = 1


def _computed(model, expected):
    """The outputs that csdfc says it computes: of most nodes the first."""
    later = {name for node in model.graph.node if node.op_type not in MANY_OUTPUTS for name in node.output[1:]}
    kept = {name: array for name, array in expected.items() if name not in later}
    if not kept:
        raise Unclaimed("no output is the first of its node")
    return kept, len(kept) < len(expected)


def _claim_tensors(model, values, expected):
    shown = onnx.shape_inference.infer_shapes(model).graph
    known = [*shown.value_info, *shown.input, *shown.output]
    ranks = {value.name: len(value.type.tensor_type.shape.dim) for value in known}
    ranks |= {name: array.ndim for name, array in [*values.items(), *expected.items()]}
    arrays = [*values.values(), *expected.values()]
    if max([0, *ranks.values()]) > LARGEST_RANK:
        raise Unclaimed(f"a tensor of rank above {LARGEST_RANK}")
    for node in shown.node:
        if node.op_type in WINDOWS and ranks.get(node.input[0], WINDOW_RANKS[0]) not in WINDOW_RANKS:
            raise Unclaimed("a window that is not 1-D, 2-D or 3-D")
    if any(array.size == 0 and array.ndim > 1 for array in arrays) or any(a.size == 0 for a in expected.values()):
        raise Unclaimed("a tensor without elements")


def _is_index(model, name):
    """Whether an output may hold integers: that of ArgMax, ArgMin or NonMaxSuppression, and the second of TopK."""
    return any(node.op_type in ("ArgMax", "ArgMin", "NonMaxSuppression") and name in node.output
               or node.op_type == "TopK" and name in node.output[1:] for node in model.graph.node)


def _is_integer(model, name):
    """Whether an output may hold integers that csdfc has as floats, or as bytes."""
    return any(name in node.output and node.op_type in MAKE_INTEGERS | MAKE_TRUTH for node in model.graph.node)


def _of_constants(model, values, expected, notes):
    """Operators of constants only: what they give is added to a tensor of zeros."""
    graph = onnx.GraphProto()
    graph.CopyFrom(model.graph)
    outputs, zeros = {}, {}
    for i, (name, array) in enumerate(expected.items()):
        if array.dtype.kind not in "fiub" or array.dtype == np.float64:
            raise Unclaimed(f"an output is {array.dtype}")
        size = f"{name}_flat"
        graph.node.append(helper.make_node("Cast", [name], [f"{name}_float"], to=TensorProto.FLOAT))
        graph.initializer.append(numpy_helper.from_array(np.array([-1], np.int64), f"{name}_all"))
        graph.node.append(helper.make_node("Reshape", [f"{name}_float", f"{name}_all"], [size]))
        graph.node.append(helper.make_node("Add", [f"zeros{i}", size], [f"{name}_sum"]))
        outputs[f"{name}_sum"] = array.astype(np.float32).reshape(-1)
        zeros[f"zeros{i}"] = np.zeros(array.size, np.float32)
    step = _step(model, graph, zeros, values, outputs)
    return Form("", [step], notes + ["of constants, added to zeros"])


def _with_data(model, values, expected, data, tolerance):
    """The model with these inputs, sample by sample if they are a batch."""
    shape = values[data[0]].shape
    graph = onnx.GraphProto()
    graph.CopyFrom(model.graph)
    feeds = {name: values[name] for name in data}
    constants = {name: array for name, array in values.items() if name not in data}
    # Lines may be a batch for windows alone.
    lines = any(node.op_type in WINDOWS for node in graph.node) and len(shape) == 3 and shape[0] > 1
    if not lines and not any(map(_is_batch, feeds.values())):
        return [_step(model, graph, feeds, constants, expected)], []
    by_sample = lines or _is_batch(values[data[0]])
    steps = _by_sample(model, graph, feeds, constants, expected, shape[0], tolerance) if by_sample else None
    if steps:
        return steps, ["a batch, sample by sample"]
    return [_flattened(model, graph, feeds, constants, expected)], ["no batch: the input is flat, then reshaped"]


def _is_batch(array):
    """Whether csdfc reads the first dimension as a batch above 1."""
    return array.ndim in (2, 4, 5, 6) and array.shape[0] > 1


def _by_sample(model, graph, feeds, constants, expected, batch, tolerance):
    """One model for all samples, or one each where constants have a batch too; None if samples do not stand alone."""
    if any(array.ndim == 0 or array.shape[0] != batch for array in expected.values()):
        return None
    rank = next(iter(feeds.values())).ndim
    part = lambda array, i: array[i:i + 1] if array.ndim == rank and array.shape[0] == batch else array  # noqa: E731
    for sliced in (False, True):
        steps = []
        for i in range(batch):
            own = {name: part(array, i) if sliced else array for name, array in constants.items()}
            feed = {name: part(array, i) for name, array in feeds.items()}
            if any(map(_is_batch, feed.values())):
                return None
            steps.append(_step(model, graph, feed, own, {name: a[i:i + 1] for name, a in expected.items()}))
        if all(_is_right(step, tolerance) for step in steps):
            if sliced:
                return steps
            return [Step(steps[0].model, steps[0].outputs, [f for step in steps for f in step.feeds],
                         [e for step in steps for e in step.expected])]
    return None


def _flattened(model, graph, feeds, constants, expected):
    whole = onnx.GraphProto()
    whole.CopyFrom(graph)
    reshapes, flat = [], {}
    for name, array in feeds.items():
        whole.initializer.append(numpy_helper.from_array(np.array(array.shape, np.int64), f"{name}_dims"))
        reshapes.append(helper.make_node("Reshape", [f"{name}_flat", f"{name}_dims"], [name]))
        flat[f"{name}_flat"] = array.reshape(-1)
    nodes = [*reshapes, *whole.node]
    del whole.node[:]
    whole.node.extend(nodes)
    return _step(model, whole, flat, constants, expected)


def _step(model, graph, feeds, constants, expected):
    """The graph with these inputs and outputs and these constants."""
    step = onnx.ModelProto()
    step.CopyFrom(model)
    step.graph.CopyFrom(graph)
    for values in (step.graph.input, step.graph.output, step.graph.value_info):
        del values[:]
    for name, array in feeds.items():
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        step.graph.input.append(helper.make_tensor_value_info(name, kind, array.shape))
    for name, array in expected.items():
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        step.graph.output.append(helper.make_tensor_value_info(name, kind, None))
    stored = {tensor.name for tensor in step.graph.initializer}
    for name, array in constants.items():
        if name not in stored:
            step.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
    return Step(step, list(expected), [feeds], [list(expected.values())])


def _is_right(step, tolerance):
    """Whether the model itself gives what is expected, by ONNX's own evaluator or ONNX Runtime."""
    rtol, atol = tolerance
    for evaluate in (_by_reference, _by_runtime):
        try:
            got = evaluate(step)
        except Exception:  # noqa: BLE001 - evaluators raise whatever they please at what they cannot do
            continue
        return all(a.shape == b.shape and np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
                   for a, b in zip(got, step.expected[0], strict=True))
    return False


def _by_reference(step):
    return [np.asarray(array) for array in ReferenceEvaluator(step.model).run(step.outputs, step.feeds[0])]


def _by_runtime(step):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(step.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(step.outputs, step.feeds[0])
