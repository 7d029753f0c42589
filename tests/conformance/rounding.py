"""How far rounding may move each element of a network's outputs.

A sum is right to some roundings of what it adds up, Σ|x||w|, however much of that cancels; and so is what later layers make
of it. So each element of each tensor and each constant is moved by a small part of itself, up or down at random, and what
that does to the outputs, as ONNX Runtime computes them, is the measure: the largest of a few times, and twice that is
allowed. Functions that ONNX Runtime has to 1e-7 of 1, however small the result, are moved by that as well, and a norm is taken
apart, since its mean is a sum that its own result may cancel.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import models

# How far an element is moved, of itself: 2^-18, some sixty roundings.
MOVED = 2.0 ** -18
TIMES = 6
# How far what is right to 1e-7 of 1 is moved.
INEXACT = {"Elu", "Erf", "GRU", "Gelu", "LSTM", "LogSoftmax", "Mish", "RNN", "Selu", "Sigmoid", "Softplus", "Tanh"}
BY = 2.0 ** -22
# How far what is interpolated is moved: ONNX Runtime has coordinates of up to 64 pixels in 24 bits, and so is up to 2^-18 of
# the way between two pixels off, which differ by some units.
INTERPOLATED_BY = 2.0 ** -15
# Whose constants say what is computed, not of what.
SETTINGS = {"Clip", "Expand", "NonMaxSuppression", "Pad", "Resize", "Upsample"}


def allowed(drawn, model, feeds, expected):
    """By output, how far its elements may be from what ONNX Runtime gives for the model."""
    moved = _Moved(model, drawn.shapes)
    session = models.start(moved.model.SerializeToString(), optimise=False, threads=1)
    names = [output.name for output in moved.graph.output]
    numbers = np.random.default_rng(1)
    most = [np.zeros(theirs.shape) for theirs in expected]
    for _ in range(TIMES):
        by = {name: np.asarray(start + size * numbers.choice([-1.0, 1.0], dims), np.float32)
              for name, (start, size, dims) in moved.inputs.items()}
        for largest, theirs, other in zip(most, expected, session.run(names, feeds | by), strict=True):
            np.fmax(largest, np.abs(other.astype(np.float64) - theirs), out=largest)
    return [2 * largest + 1e-6 * np.abs(theirs) + 1e-30 for largest, theirs in zip(most, expected, strict=True)]


def _apart(node):
    """How a node's outputs are moved beside a part of themselves."""
    if node.op_type in INEXACT:
        return [("Add", 0.0, BY)]
    if node.op_type in {"Resize", "Upsample"} and any(a.name == "mode" and a.s != b"nearest" for a in node.attribute):
        return [("Add", 0.0, INTERPOLATED_BY)]
    return []


class _Moved:
    """The model, each tensor and constant read as moved by inputs of its own."""

    def __init__(self, model, shapes):
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self.graph, self.shapes = self.model.graph, dict(shapes)
        # Of each new input, what its elements are about, how far from that, and its dimensions.
        self.inputs, self.renamed, self.nodes = {}, {}, []
        settings = {name for node in model.graph.node if node.op_type in SETTINGS for name in node.input}
        for constant in model.graph.initializer:
            if constant.data_type == TensorProto.FLOAT and constant.name not in settings:
                self.shapes[constant.name] = list(constant.dims)
                self._move(constant.name)
        self._move("x")
        for node in model.graph.node:
            if node.op_type in ("GroupNormalization", "InstanceNormalization", "LayerNormalization"):
                self._norm(node)
            else:
                self._add(node)
        del self.graph.node[:]
        self.graph.node.extend(self.nodes)
        for output in self.graph.output:
            output.name = self.renamed.get(output.name, output.name)

    def _add(self, node):
        read = [self.renamed.get(name, name) for name in node.input]
        self.nodes.append(onnx.NodeProto())
        self.nodes[-1].CopyFrom(node)
        self.nodes[-1].input[:] = read
        for name in node.output:
            self._move(name, _apart(node))

    def _move(self, name, apart=()):
        if name not in self.shapes:
            return
        for operator, start, size in [("Mul", 1.0, MOVED), *apart]:
            by, last = f"{name}.{operator}", self.renamed.get(name, name)
            self.inputs[by] = (start, size, self.shapes[name])
            # Without dimensions: ONNX Runtime infers wrong ones after a reshape to what is computed, and would refuse these.
            self.graph.input.append(helper.make_tensor_value_info(by, TensorProto.FLOAT, None))
            self.renamed[name] = f"{by}.moved"
            self.nodes.append(helper.make_node(operator, [last, by], [self.renamed[name]]))

    def _norm(self, node):
        """A normalisation in the steps of its definition: of a view whose last dimensions are normalised together."""
        (x, *parts), (y,) = node.input, node.output
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        dims, is_layer = self.shapes[x], node.op_type == "LayerNormalization"
        first = attributes.get("axis", -1) % len(dims) if is_layer else 2
        groups = attributes.get("num_groups")
        seen = [1, groups, int(np.prod(dims)) // groups] if groups else dims
        one = [*seen[:first], *[1] * len(seen[first:])]
        self._store(f"{y}.epsilon", np.array([attributes.get("epsilon", 1e-5)], np.float32))
        for name in parts:
            array = numpy_helper.to_array(next(c for c in self.graph.initializer if c.name == name))
            self._store(f"{y}.{name}", array if is_layer else array.reshape(1, -1, *[1] * len(dims[2:])))
        for name, shape in [("seen", seen), ("dims", dims)]:
            self._store(f"{y}.{name}", np.array(shape, np.int64))
        mean, axes = ("ReduceMean", list(range(first, len(seen)))) if is_layer or groups else ("GlobalAveragePool", None)
        opset = next(each.version for each in self.model.opset_import if each.domain == "")
        # Since opset 18 they are an operand.
        more = [f"{y}.axes"] if axes and opset >= 18 else []
        said = {"axes": axes} if axes and opset < 18 else {}
        if more:
            self._store(more[0], np.array(axes, np.int64))
        view = f"{y}.view" if groups else x
        steps = [("Reshape", [x, f"{y}.seen"], view, seen)] if groups else []
        steps += [
            (mean, [view, *more], f"{y}.mean", one),
            ("Sub", [view, f"{y}.mean"], f"{y}.apart", seen),
            ("Mul", [f"{y}.apart"] * 2, f"{y}.squares", seen),
            (mean, [f"{y}.squares", *more], f"{y}.variance", one),
            ("Add", [f"{y}.variance", f"{y}.epsilon"], f"{y}.above", one),
            ("Sqrt", [f"{y}.above"], f"{y}.deviation", one),
            ("Div", [f"{y}.apart", f"{y}.deviation"], f"{y}.normal", seen),
            ("Reshape", [f"{y}.normal", f"{y}.dims"], f"{y}.back", dims),
        ]
        scaled = f"{y}.scaled" if parts[1:] else y
        steps.append(("Mul", [f"{y}.back", f"{y}.{parts[0]}"], scaled, dims))
        if parts[1:]:
            steps.append(("Add", [scaled, f"{y}.{parts[1]}"], y, dims))
        for operator, inputs, output, made in steps:
            self.shapes[output] = made
            self._add(helper.make_node(operator, inputs, [output], **(said if operator == mean else {})))

    def _store(self, name, array):
        self.graph.initializer.append(numpy_helper.from_array(array, name))
