"""Random networks over time, beside ONNX Runtime: it computes one long frame, and csdfc the same signal hop by hop."""

import json
import random
import re
import secrets
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import models
from csdfc import Failed, Refused
from drawn import compare
from summary import FAILED, PASSED

# Rows of the signal: a multiple of most hops. Rows that come before an output has any are no more than half of them.
ROWS = 128
MAX_CHANNELS = 12
# How hops are planned, in turn. `--hop` is the smallest, and an odd multiple of it.
WAYS = [["--rows", "all"], ["--rows", "none"], ["--mem", "min", "--budget", "100"]]


def run(tool, summary, only, seed, fresh, count):
    """Half the networks from one seed, half from another. A third of them sees only what came before."""
    fresh = secrets.randbits(40) if fresh is None else fresh
    half = count - count // 2
    print(f"streams: {half} networks from seed {seed} on, {count // 2} from {fresh} on (--seed, --fresh-seed)", flush=True)
    names = [f"stream{seed + i}" for i in range(half)] + [f"stream{fresh + i}" for i in range(count // 2)]
    names = [name for name in names if re.search(only, name)]
    operators, kinds = Counter(), Counter()
    with ThreadPoolExecutor(2) as pool:
        for name, (why, drawn, seen) in zip(names, pool.map(lambda name: _network(tool, name), names), strict=True):
            summary.add("streams", name, FAILED if why else PASSED, why)
            if why:
                print(f"{name}: {why}", flush=True)
            else:
                operators.update(set(node.op_type for node in drawn.nodes))
                kinds.update(seen)
    summary.count("Streams drawn, of each operator", operators)
    summary.count("Streams drawn, of each kind", kinds)
    print("streams: " + ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items())), flush=True)


def _network(tool, name):
    drawn = Network(int(name.removeprefix("stream")))
    try:
        return "", drawn, beside_runtime(tool, name, drawn)
    except (Refused, Failed) as why:
        return f"{why} ({drawn.words()})", drawn, Counter()


def beside_runtime(tool, name, drawn):
    """Hops of two sizes make ONNX Runtime's rows, as far as these need none below the signal. Counts what was seen."""
    csdfc, file, folder = tool.in_one_process(), tool.work / f"{name}.onnx", tool.work / name
    plan = tool.work / f"{name}.json"
    model = drawn.model()
    onnx.save(model, file)
    session = models.start(model.SerializeToString(), optimise=False, threads=1)
    feeds = models.draw_inputs(session, drawn.seed)
    expected = session.run(drawn.outputs, feeds)
    kinds = ["networks", "causal" if drawn.is_causal else "that may look ahead", f"{'1' if drawn.columns == 1 else '2'}-D"]
    seen = Counter(kinds)
    smallest = None
    for hop in ["smallest", "larger"]:
        options = [*WAYS[(drawn.seed + len(hop)) % len(WAYS)], "--stream", "x"]
        if smallest:
            options += ["--hop", str(smallest * drawn.times)]
        csdfc.plan_alone(file, options, plan)
        lags, smallest_now, hops = _hops(plan, drawn.outputs)
        smallest = smallest or smallest_now
        made = csdfc.run_rows(plan, {"x": _rows(feeds["x"])[: hops * smallest_now]}, drawn.outputs, folder)
        outputs = []
        for output, (rows, lag), flat, theirs in zip(drawn.outputs, lags, made, expected, strict=True):
            _, channels, _, columns = theirs.shape
            ours = flat.reshape(-1, columns, channels).transpose(2, 0, 1)
            if ours.shape[1] != max(0, hops * rows - lag):
                raise Failed(f"{' '.join(options)}: {output} has {ours.shape[1]} rows, not {hops * rows} less {lag}")
            if ours.shape[1] > theirs.shape[2]:
                raise Failed(f"{' '.join(options)}: {output} has {ours.shape[1]} rows, ONNX Runtime's {theirs.shape[2]}")
            seen["rows compared"] += ours.shape[1]
            if lag > 0:
                seen["that lag"] = 1
            # The rows of ONNX Runtime that are left have padding below.
            outputs.append(np.concatenate([ours[None], theirs[:, :, ours.shape[1] :]], axis=2))
        try:
            compare(drawn, model, feeds, outputs, expected)
        except Failed as why:
            raise Failed(f"{' '.join(options)}: {why}") from why
    # What passed leaves nothing.
    shutil.rmtree(folder)
    file.unlink()
    plan.unlink()
    return seen


def _hops(plan, outputs):
    """By output, its rows in a hop and by how many it lags; the rows of the input in a hop, and the hops of the signal."""
    plan = json.loads(plan.read_text())
    (cnn,) = plan["cnns"]
    tensors = {tensor["name"]: tensor for tensor in plan["tensors"]}
    hop = next(tensor["shape"][2] for tensor in plan["tensors"] if tensor["producer"] == cnn["inputs"][0])
    of = {output["name"]: tensors[output["tensor"]] for output in cnn["outputs"]}
    return [(of[name]["shape"][2], of[name]["stream"]["delay"]) for name in outputs], hop, ROWS // hop


def _rows(image):
    """An image as rows of pixels of channels."""
    return image[0].transpose(1, 2, 0)


class Network:
    """One network over time, the same for the same seed: rows of an image are time, and each layer sees some around each."""

    def __init__(self, seed):
        self.seed, self.random, self.numbers = seed, random.Random(seed), np.random.default_rng(seed)
        self.is_causal, self.columns = self.one_in(3), self.choice([1, 1, 2, 4, 6])
        self.times = self.choice([3, 5, 7])
        self.nodes, self.constants, self.shapes, self.read = [], [], {"x": [1, self.count(1, 6), ROWS, self.columns]}, set()
        layers = [getattr(self, f"_{layer}") for layer in
                  ["conv", "conv", "conv", "depthwise", "pool", "binary", "concat", "function", "norm", "softmax", "gemm",
                   "slice", "pad", "blocks", "mean"]]
        length = self.count(2, 7)
        while len(self.nodes) < length:
            # Mostly the last tensor, sometimes one before.
            names = list(self.shapes)
            self.choice(layers)(names[-1] if not self.one_in(4) else self.choice(names[-3:]))
        self.outputs = [name for name in self.shapes if name != "x" and (name not in self.read or self.one_in(12))]

    def words(self):
        """What it is, on a line."""
        nodes = [f"{node.op_type} {'x'.join(map(str, self.shapes[node.output[0]]))}" for node in self.nodes]
        return f"{'causal, ' if self.is_causal else ''}{'x'.join(map(str, self.shapes['x']))}: {', '.join(nodes)}"

    def model(self):
        value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        outputs = [value(name, self.shapes[name]) for name in self.outputs]
        graph = helper.make_graph(self.nodes, "drawn", [value("x", self.shapes["x"])], outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def count(self, least, most):
        return self.random.randint(least, most)

    def one_in(self, n):
        return self.random.randrange(n) == 0

    def choice(self, values):
        return self.random.choice(list(values))

    def _constant(self, *dims, least=-1.0, most=1.0):
        return self._store(self.numbers.uniform(least, most, dims).astype(np.float32))

    def _store(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def _node(self, operator, inputs, dims, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        self.read.update(inputs)
        self.shapes[name] = dims

    def _window(self, x, most=4):
        """A window over the rows and columns of a tensor, and the dimensions that it makes; None if it does not fit. Rows that
        a causal one sees are its own and those before."""
        rows, columns = self.shapes[x][2:]
        kernel, dilation = [self.count(1, most), self.count(1, min(3, columns))], [self.count(1, 2), 1]
        stride = [2 if self.one_in(5) else 1, 1]
        all_rows, all_columns = (kernel[0] - 1) * dilation[0], kernel[1] - 1
        top, bottom = (all_rows, 0) if self.is_causal else self.choice(
            [(0, 0), (all_rows, 0), (0, all_rows), (all_rows // 2, all_rows - all_rows // 2)])
        left = self.count(0, all_columns)
        right = self.count(0, all_columns - left)
        made = [(rows + top + bottom - all_rows - 1) // stride[0] + 1, columns + left + right - all_columns]
        # What is left of a signal is to be worth looking at, and a hop not longer than a part of it.
        if made[0] < ROWS // 8:
            return None
        return {"kernel_shape": kernel, "dilations": dilation, "strides": stride, "pads": [top, left, bottom, right]}, made

    def _conv(self, x, depthwise=False):
        channels, window = self.shapes[x][1], self._window(x)
        if not window:
            return
        attributes, made = window
        filters = channels if depthwise else self.count(1, 8)
        groups = channels if depthwise else 1
        kernel = attributes["kernel_shape"]
        sums = channels // groups * kernel[0] * kernel[1]
        most = 1.5 / sums ** 0.5
        inputs = [x, self._constant(filters, channels // groups, *kernel, least=-most, most=most)]
        inputs += [self._constant(filters)] if not self.one_in(3) else []
        self._node("Conv", inputs, [1, filters, *made], group=groups, **attributes)

    def _depthwise(self, x):
        self._conv(x, depthwise=True)

    def _pool(self, x):
        window = self._window(x, most=3)
        if not window:
            return
        attributes, made = window
        if any(pad >= kernel for pad, kernel in zip(attributes["pads"], attributes["kernel_shape"] * 2, strict=True)):
            return
        kinds = [("MaxPool", {}), ("AveragePool", {"count_include_pad": self.count(0, 1)})]
        operator, more = self.choice(kinds if attributes["dilations"] == [1, 1] else kinds[:1])
        if operator == "AveragePool":
            del attributes["dilations"]
        self._node(operator, [x], [1, self.shapes[x][1], *made], **attributes, **more)

    def _alike(self, x, dimension=None):
        """A tensor whose shape is the same, apart from one dimension."""
        def rest(name):
            return [size for i, size in enumerate(self.shapes[name]) if i != dimension]
        return self.choice([name for name in self.shapes if rest(name) == rest(x)])

    def _binary(self, x):
        other = self._alike(x) if not self.one_in(3) else self._constant(1, self.shapes[x][1], 1, 1)
        self._node(self.choice(["Add", "Mul", "Sub", "Max", "Min"]), [x, other], self.shapes[x])

    def _concat(self, x):
        other = self._alike(x, 1)
        channels = self.shapes[x][1] + self.shapes[other][1]
        if channels <= MAX_CHANNELS:
            self._node("Concat", [x, other], [1, channels, *self.shapes[x][2:]], axis=1)

    def _function(self, x):
        operator, attributes = self.choice([("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("LeakyRelu", {"alpha": 0.1}), ("Elu", {}),
                                            ("HardSigmoid", {}), ("Softplus", {}), ("Abs", {}), ("Neg", {})])
        self._node(operator, [x], self.shapes[x], **attributes)

    def _norm(self, x):
        channels = self.shapes[x][1]
        mean, shift = self._constant(channels), self._constant(channels)
        scale, variance = self._constant(channels, least=0.5), self._constant(channels, least=0.5)
        self._node("BatchNormalization", [x, scale, shift, mean, variance], self.shapes[x])

    def _softmax(self, x):
        self._node("Softmax", [x], self.shapes[x], axis=self.choice([1, 3]))

    def _gemm(self, x):
        *before, columns = self.shapes[x]
        units = self.count(1, 6)
        most = 1.5 / columns ** 0.5
        self._node("MatMul", [x, self._constant(columns, units, least=-most, most=most)], [*before, units])

    def _slice(self, x):
        _, channels, *rest = self.shapes[x]
        first = self.count(0, channels - 1)
        last = self.count(first + 1, channels)
        ends = [self._store(np.array([value], np.int64)) for value in (first, last, 1)]
        self._node("Slice", [x, *ends], [1, last - first, *rest])

    def _pad(self, x):
        *before, columns = self.shapes[x]
        left, right = self.count(0, 1), self.count(0, 1)
        pads = self._store(np.array([0, 0, 0, left, 0, 0, 0, right], np.int64))
        if columns < 10:
            self._node("Pad", [x, pads], [*before, columns + left + right], mode=self.choice(["constant", "edge"]))

    def _blocks(self, x):
        _, channels, rows, columns = self.shapes[x]
        if channels % 4 == 0 and rows <= ROWS:
            mode = self.choice(["CRD", "DCR"])
            self._node("DepthToSpace", [x], [1, channels // 4, rows * 2, columns * 2], blocksize=2, mode=mode)
        elif rows % 2 == 0 and columns % 2 == 0 and channels * 4 <= MAX_CHANNELS and rows > ROWS // 4:
            self._node("SpaceToDepth", [x], [1, channels * 4, rows // 2, columns // 2], blocksize=2)

    def _mean(self, x):
        axis = self.choice([1, 3])
        shape = [1 if i == axis else size for i, size in enumerate(self.shapes[x])]
        self._node(self.choice(["ReduceMean", "ReduceMax"]), [x], shape, axes=[axis], keepdims=1)
