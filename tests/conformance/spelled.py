"""The same network in two spellings: the operators that go by rows, and what exporters write in their place. Both give
ONNX Runtime's numbers however they are planned, and the second takes hardly more memory than the first."""

import json
import random
import re
import secrets
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import models
from csdfc import Failed, Refused
from layers import divisors
from summary import FAILED, PASSED

# How much more memory the exporters' spelling may take.
MORE = 1.2
# Errors as a share of the largest element, by precision; of integers, some steps of 1/255.
ALLOWED = {"fp32": 1e-4, "half": 2e-2, "int8": 5e-2}
OPSET = 18


def run(tool, summary, only, seed, fresh, count):
    """Half the networks from one seed, half from another, fresh unless it is given."""
    fresh = secrets.randbits(40) if fresh is None else fresh
    half = count - count // 2
    print(f"spelled: {half} networks from seed {seed} on, {count // 2} from {fresh} on (--seed, --fresh-seed)", flush=True)
    names = [f"spelled{seed + i}" for i in range(half)] + [f"spelled{fresh + i}" for i in range(count // 2)]
    names = [name for name in names if re.search(only, name)]
    with ThreadPoolExecutor(2) as pool:
        every = pool.map(lambda name: _network(tool, name), names)
        for number, (name, (state, why)) in enumerate(zip(names, every, strict=True), 1):
            summary.add("spelled", name, state, why)
            if state == FAILED:
                print(f"{name}: {why}", flush=True)
            if number % 500 == 0:
                print(f"spelled: {number} of {len(names)}", flush=True)


def _network(tool, name):
    drawn = Drawn(int(name.removeprefix("spelled")))
    try:
        _beside(tool, name, drawn)
    except Refused as why:
        return FAILED, f"refused: {why} ({drawn.words()})"
    except Failed as why:
        return FAILED, f"{why} ({drawn.words()})"
    return PASSED, ""


def _beside(tool, name, drawn):
    csdfc = tool.in_one_process()
    files = {}
    for spelling in ("plain", drawn.spelling):
        files[spelling] = tool.work / f"{name}-{spelling}.onnx"
        onnx.save(Speller(drawn, spelling).model(), files[spelling])
    plan, folder, application = (tool.work / f"{name}{end}" for end in (".json", "", ".ron"))
    session = models.start(files[drawn.spelling], threads=1)
    feeds = models.draw_inputs(session, 1)
    names = [output.name for output in session.get_outputs()]
    expected = session.run(names, feeds)
    first = None
    for mode in drawn.modes():
        said = " ".join(mode)
        source, options = files[drawn.spelling], mode
        if mode[0] == "--partitions":
            application.write_text(_partitioned(csdfc, plan, source, int(mode[1])))
            source, options = application, mode[2:]
        try:
            csdfc.plan_alone(source, options, plan)
            outputs = csdfc.run(plan, feeds, list(dict.fromkeys(names)), folder)
        except Failed as why:
            raise Failed(f"{said}: {why}") from why
        precision = "half" if "half" in mode else "fp32"
        outputs = dict(zip(dict.fromkeys(names), outputs, strict=True))
        for output, theirs in zip(names, expected, strict=True):
            _compare(said, output, outputs[output], theirs, ALLOWED[precision])
        if precision == "fp32":
            first = first or outputs
            if any(first[output].tobytes() != outputs[output].tobytes() for output in names):
                raise Failed(f"{said}: not byte for byte what {' '.join(drawn.modes()[0])} gives")
    if drawn.seed % 4 == 0:
        _quantized(csdfc, files[drawn.spelling], plan, feeds, names, folder)
    least = {}
    for spelling, file in files.items():
        csdfc.plan_alone(file, ["--mem", "min", "--budget", "200"], plan)
        least[spelling] = json.loads(plan.read_text())["memory"]["total"]
    if least[drawn.spelling] > MORE * least["plain"]:
        raise Failed(f"--mem min takes {least[drawn.spelling]} bytes, and {least['plain']} in operators that go by rows")
    shutil.rmtree(folder)
    for file in [*files.values(), plan, application]:
        file.unlink(missing_ok=True)


def _quantized(csdfc, file, plan, feeds, names, folder):
    """The network as csdfc quantizes it gives the same however it is planned, and what ONNX Runtime makes of it."""
    made = file.with_suffix(".int8.onnx")
    csdfc.quantize(file, made)
    expected = models.start(made, optimise=False, threads=1).run(names, feeds)
    first = None
    for mode in (["--rows", "none"], ["--mem", "min", "--budget", "50"]):
        csdfc.plan_alone(made, mode, plan)
        outputs = dict(zip(dict.fromkeys(names), csdfc.run(plan, feeds, list(dict.fromkeys(names)), folder), strict=True))
        for output, theirs in zip(names, expected, strict=True):
            _compare("quantized", output, outputs[output], theirs, ALLOWED["int8"])
        first = first or outputs
        if any(first[output].tobytes() != outputs[output].tobytes() for output in names):
            raise Failed(f"quantized, {' '.join(mode)}: not byte for byte what --rows none gives")
    made.unlink()


def _compare(said, name, ours, theirs, allowed):
    if ours.shape != theirs.shape:
        raise Failed(f"{said}: {name} is {list(ours.shape)}, ONNX Runtime's {list(theirs.shape)}")
    if not np.isfinite(ours).all():
        raise Failed(f"{said}: {name} has elements that are not finite")
    if theirs.dtype != np.float32:
        # Where two elements are as good as equal, rounding says which one is the greater.
        if (ours != theirs).mean() > (0.2 if allowed > 1e-3 else 0.01):
            raise Failed(f"{said}: {name} has other indices")
        return
    difference = np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-6)
    if not difference <= allowed:
        raise Failed(f"{said}: {name} differs by {difference:.1e} of its largest element")


def _partitioned(csdfc, plan, source, parts):
    """An application of the network as a pipeline of so many partitions, cut behind layers that a plan of it names."""
    csdfc.plan_alone(source, ["--rows", "none"], plan)
    layers = [layer["name"] for layer in json.loads(plan.read_text())["cnns"][0]["layers"] if layer["op"] != "input"]
    parts = min(parts, len(layers))
    ends = [layers[len(layers) * part // parts - 1] for part in range(1, parts)]
    partitions = [f'(name: "p{at}", upto: {json.dumps(end)})' for at, end in enumerate(ends)] + ['(name: "last")']
    names = ", ".join(f'"p{at}"' for at in range(len(ends))) + (", " if ends else "") + '"last"'
    return (f'(cnns: [(name: "net", model: {json.dumps(source.name)}, partitions: [{", ".join(partitions)}])], '
            f'parallel: [[{names}]])')


class Drawn:
    """Blocks of layers, the shape that they begin from, and the spelling of an exporter; the same for the same seed."""

    def __init__(self, seed):
        self.seed, self.random = seed, random.Random(seed)
        self.is_line = self.random.randrange(2) == 0
        # A line of images of one row or one column, or each of its convolutions as one; and images whose channels move.
        self.spelling = self.random.choice(["flat", "tall", "squeezed"]) if self.is_line else "moved"
        channels = self.random.choice([2, 4, 6, 8])
        sizes = [[500, 1000, 3000, 4097, 6000, 10000, 20000]] if self.is_line else [[24, 32, 48], [16, 24, 32]]
        self.dims = [1, channels, *(self.random.choice(size) for size in sizes)]
        self.blocks, dims = [], self.dims
        for _ in range(self.random.randint(2, 5)):
            self.blocks.append(self._block(dims))
            dims = self.blocks[-1][-1]
        tail = self.random.choice(["none", "none", "mean", "arg_max", "reduce_max"])
        if tail != "none":
            self.blocks.append((tail, None, dims, dims))
        self.is_listed_twice = self.random.randrange(6) == 0

    def words(self):
        return f"{'x'.join(map(str, self.dims))}, {self.spelling}: {', '.join(block[0] for block in self.blocks)}"

    def modes(self):
        """How it is planned: as it is, by rows, and in two of the other ways."""
        short = ["--mem", "min", "--budget", "50"]
        others = [["--precision", "half", *short], ["--weights", "streamed"], ["--partitions", "2"],
                  ["--partitions", "3", *short], ["--storage", "edges", *short]]
        by_rows = ["--rows", "all"] if self.dims[2] <= 1000 else short
        return [["--rows", "none"], by_rows, *random.Random(self.seed).sample(others, 2)]

    def _block(self, dims):
        """What a block does, how, and the shapes that it reads and makes."""
        rng, channels, sizes = self.random, dims[1], dims[2:]
        kinds = ["conv", "conv", "conv", "depthwise", "pool", "residual", "shuffle", "pointwise", "row_concat"]
        if not self.is_line:
            kinds += ["space_to_depth", "depth_to_space", "upsample", "shuffle", "pointwise"]
        kind = rng.choice(kinds)
        groups = [group for group in divisors(channels) if 1 < group < channels]
        if kind == "shuffle" and groups:
            return kind, rng.choice(groups), dims, dims
        if kind == "space_to_depth" and all(size % 2 == 0 for size in sizes) and channels <= 8:
            return kind, None, dims, [1, channels * 4, *(size // 2 for size in sizes)]
        if kind == "depth_to_space" and channels % 4 == 0 and max(sizes) <= 48:
            return kind, rng.choice(["DCR", "CRD"]), dims, [1, channels // 4, *(size * 2 for size in sizes)]
        if kind == "upsample" and max(sizes) <= 48:
            return kind, None, dims, [1, channels, *(size * 2 for size in sizes)]
        if kind == "pool" and min(sizes) >= 4:
            return kind, rng.choice(["MaxPool", "AveragePool"]), dims, [1, channels, *(size // 2 for size in sizes)]
        if kind == "row_concat" and sizes[0] <= 4097:
            return kind, None, dims, [1, channels, 2 * sizes[0], *sizes[1:]]
        units = rng.choice([2, 4, 8, 12])
        if kind == "pointwise":
            return kind, rng.choice(["Relu", "Sigmoid", None]), dims, [1, units, *sizes]
        if kind in ("depthwise", "residual"):
            return kind, rng.choice([3, 5]), dims, dims
        stride = rng.choice([1, 1, 2]) if min(sizes) >= 8 else 1
        return "conv", stride, dims, [1, units, *(-(-size // stride) for size in sizes)]


class Speller:
    """Writes the blocks of a network as a model: `plain`, in operators that go by rows, or in another spelling."""

    def __init__(self, drawn, spelling):
        self.drawn, self.spelling = drawn, spelling
        self.numbers = np.random.default_rng(drawn.seed)
        self.nodes, self.constants = [], []

    def model(self):
        x = "x"
        for kind, how, dims, made in self.drawn.blocks:
            x = getattr(self, kind)(x, how, dims, made)
        outputs = [x, x] if self.drawn.is_listed_twice and self.spelling != "plain" else [x]
        kind = TensorProto.INT64 if self.drawn.blocks[-1][0] == "arg_max" else TensorProto.FLOAT
        graph = helper.make_graph(
            self.nodes, "spelled", [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.seen(self.drawn.dims))],
            [helper.make_tensor_value_info(name, kind, None) for name in outputs], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)

    # How a line is seen.

    def seen(self, dims, one=1):
        """The dimensions of a tensor or a filter, or numbers of its axes; `one` is that of the axis that a line lacks."""
        if self.spelling == "flat":
            return [*dims[:2], one, *dims[2:]]
        return [*dims, one] if self.spelling == "tall" else list(dims)

    def windows(self, k, stride, sides, pad):
        """Attributes of windows on that many sides."""
        shape, strides, pads = (self._sides([value] * sides, one) for value, one in [(k, 1), (stride, 1), (pad, 0)])
        return {"kernel_shape": shape, "strides": strides, "pads": 2 * pads}

    def _sides(self, values, one):
        if self.spelling == "squeezed":
            return [one, *values]
        return self.seen([0, 0, *values], one)[2:]

    def window(self, operator, x, filters=(), **attributes):
        """A node of windows; squeezed, a line is an image for this node only."""
        if self.spelling != "squeezed":
            return self.node(operator, [x, *(self.store(array.reshape(self.seen(array.shape)) if array.ndim > 1 else array)
                                             for array in filters)], **attributes)
        read = [self.store(array[:, :, None] if array.ndim > 1 else array) for array in filters]
        y = self.node(operator, [self.node("Unsqueeze", [x, self.ints(2)]), *read], **attributes)
        return self.node("Squeeze", [y, self.ints(2)])

    # Constants and nodes.

    def store(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, operator, inputs, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def ints(self, *values):
        return self.store(np.array(values, np.int64))

    def filters(self, *dims):
        return self.numbers.uniform(-1.5, 1.5, dims).astype(np.float32) / np.float32(np.prod(dims[1:]) ** 0.5)

    # Blocks.

    def conv(self, x, stride, dims, made):
        sides = len(dims) - 2
        filters = [self.filters(made[1], dims[1], *[3] * sides), self.filters(made[1], 1)[:, 0]]
        y = self.window("Conv", x, filters, **self.windows(3, stride, sides, 1))
        return self.node("Relu", [y])

    def depthwise(self, x, k, dims, _):
        sides = len(dims) - 2
        filters = [self.filters(dims[1], 1, *[k] * sides)]
        return self.window("Conv", x, filters, group=dims[1], **self.windows(k, 1, sides, k // 2))

    def residual(self, x, k, dims, made):
        return self.node("Add", [x, self.depthwise(x, k, dims, made)])

    def pool(self, x, operator, dims, _):
        return self.window(operator, x, **self.windows(2, 2, len(dims) - 2, 0))

    def row_concat(self, x, _, dims, made):
        return self.node("Concat", [x, self.node("Tanh", [x])], axis=3 if self.spelling == "flat" else 2)

    def pointwise(self, x, activation, dims, made):
        sides = len(dims) - 2
        filters, bias = self.filters(made[1], dims[1], *[1] * sides), self.filters(made[1], 1)[:, 0]
        if self.spelling == "moved":
            last = self.node("Transpose", [x], perm=[0, 2, 3, 1])
            y = self.node("MatMul", [last, self.store(filters.reshape(made[1], dims[1]).T.copy())])
            y = self.node("Add", [y, self.store(bias)])
            y = self.node(activation, [y]) if activation else y
            return self.node("Transpose", [y], perm=[0, 3, 1, 2])
        y = self.window("Conv", x, [filters, bias], **self.windows(1, 1, sides, 0))
        return self.node(activation, [y]) if activation else y

    def reshaped(self, x, dims, perm, made):
        """Reshape, Transpose and Reshape."""
        x = self.node("Reshape", [x, self.ints(*dims)])
        return self.node("Reshape", [self.node("Transpose", [x], perm=perm), self.ints(*made)])

    def shuffle(self, x, groups, dims, _):
        channels = dims[1]
        if self.spelling == "plain":
            order = np.arange(channels).reshape(groups, -1).T.reshape(-1)
            return self.node("Gather", [x, self.ints(*order)], axis=1)
        seen = self.seen(dims)
        perm = [0, 2, 1, *range(3, len(seen) + 1)]
        return self.reshaped(x, [1, groups, channels // groups, *seen[2:]], perm, seen)

    def space_to_depth(self, x, _, dims, made):
        if self.spelling == "plain":
            return self.node("SpaceToDepth", [x], blocksize=2)
        _, channels, height, width = dims
        return self.reshaped(x, [1, channels, height // 2, 2, width // 2, 2], [0, 3, 5, 1, 2, 4], made)

    def depth_to_space(self, x, mode, dims, made):
        if self.spelling == "plain":
            return self.node("DepthToSpace", [x], blocksize=2, mode=mode)
        blocks, perm = ([2, 2, made[1]], [0, 3, 4, 1, 5, 2]) if mode == "DCR" else ([made[1], 2, 2], [0, 1, 4, 2, 5, 3])
        return self.reshaped(x, [1, *blocks, *dims[2:]], perm, made)

    def upsample(self, x, _, dims, made):
        if self.spelling == "plain":
            scales = self.store(np.array([1, 1, 2, 2], np.float32))
            return self.node("Resize", [x, "", scales], mode="nearest", coordinate_transformation_mode="asymmetric",
                             nearest_mode="floor")
        _, channels, height, width = dims
        x = self.node("Reshape", [x, self.ints(1, channels, height, 1, width, 1)])
        x = self.node("Expand", [x, self.ints(1, channels, height, 2, width, 2)])
        return self.node("Reshape", [x, self.ints(*made)])

    # Tails.

    def mean(self, x, _, dims, made):
        if self.spelling == "plain":
            return self.node("GlobalAveragePool", [x])
        axes = range(2, len(self.seen(dims)))
        return self.node("ReduceMean", [x, self.ints(*axes)], keepdims=0)

    def arg_max(self, x, *_):
        return self.node("ArgMax", [x], axis=1, keepdims=1 if self.spelling == "plain" else 0)

    def reduce_max(self, x, *_):
        return self.node("ReduceMax", [x, self.ints(1)], keepdims=1 if self.spelling == "plain" else 0)
