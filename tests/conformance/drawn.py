"""Small networks drawn from a seed, beside ONNX Runtime: shapes and attributes that the suite does not have."""

import random
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import models
from csdfc import Failed, Refused
from summary import FAILED, PASSED, REFUSED

OPSET = 13


def run(tool, summary, only, seed, count):
    names = [f"drawn{seed + i}" for i in range(count)]
    names = [name for name in names if re.search(only, name)]
    with ThreadPoolExecutor() as pool:
        for name, (state, why) in zip(names, pool.map(lambda name: _network(tool, name), names), strict=True):
            summary.add("drawn", name, state, why)


def _network(tool, name):
    file = tool.work / f"{name}.onnx"
    drawn = Drawn(int(name.removeprefix("drawn")))
    onnx.save(drawn.model(), file)
    try:
        models.beside_runtime(tool, file, 1, is_drawn=True)
    except Refused as why:
        return REFUSED, f"{why} ({drawn.words()})"
    except Failed as why:
        return FAILED, f"{why} ({drawn.words()})"
    return PASSED, ""


class Drawn:
    """One network: a chain of a few layers with branches, on one image."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.nodes, self.constants, self.shapes = [], [], {}
        self.shapes["x"] = [1, self._count(1, 9), self._count(5, 23), self._count(5, 23)]
        last = "x"
        for _ in range(self._count(1, 5)):
            last = self._layer(last)
        self.last = last

    def words(self):
        return " ".join(node.op_type for node in self.nodes) + " on " + "x".join(map(str, self.shapes["x"]))

    def model(self):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shapes["x"])
        y = helper.make_tensor_value_info(self.last, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "drawn", [x], [y], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)

    def _count(self, least, most):
        return self.random.randint(least, most)

    def _constant(self, *dims, least=-1.0, most=1.0):
        return self._store(self.numbers.uniform(least, most, dims).astype(np.float32))

    def _store(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def _node(self, operator, inputs, dims, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        self.shapes[name] = dims
        return name

    def _layer(self, x):
        kinds = [self._conv, self._conv, self._depthwise, self._pool, self._transposed, self._activation, self._shortcut,
                 self._concat, self._resize, self._pad, self._slice, self._normalise, self._squeeze_excite, self._reduce]
        return self.random.choice(kinds)(x)

    def _window(self, size, largest=5):
        """Kernel, stride, dilation and padding of one axis, and the size of the output."""
        while True:
            k, s, d = self._count(1, largest), self._count(1, 4), self.random.choice([1, 1, 1, 2, 3])
            before, after = self._count(0, k - 1), self._count(0, k - 1)
            out = (size + before + after - (k - 1) * d - 1) // s + 1
            if out > 0 and size + before + after > (k - 1) * d:
                return k, s, d, before, after, out

    def _windows(self, x, largest=5):
        y, x = (self._window(size, largest) for size in self.shapes[x][2:])
        both = {"kernel_shape": [y[0], x[0]], "strides": [y[1], x[1]], "dilations": [y[2], x[2]],
                "pads": [y[3], x[3], y[4], x[4]]}
        return both, [y[5], x[5]]

    def _conv(self, x):
        channels = self.shapes[x][1]
        group = self.random.choice([g for g in range(1, channels + 1) if channels % g == 0] if self._count(0, 3) == 0 else [1])
        window, size = self._windows(x)
        units = group * self._count(1, 20 // group + 1)
        inputs = [x, self._constant(units, channels // group, *window["kernel_shape"])]
        if self._count(0, 1):
            inputs.append(self._constant(units))
        y = self._node("Conv", inputs, [1, units, *size], group=group, **window)
        return self._activation(y) if self._count(0, 1) else y

    def _depthwise(self, x):
        channels = self.shapes[x][1]
        window, size = self._windows(x)
        units = channels * self.random.choice([1, 1, 2])
        weights = self._constant(units, 1, *window["kernel_shape"])
        return self._node("Conv", [x, weights, self._constant(units)], [1, units, *size], group=channels, **window)

    def _transposed(self, x):
        _, channels, *sizes = self.shapes[x]
        if max(sizes) > 30:
            return self._activation(x)
        units = self._count(1, 9)
        ks, ss, ds, before, after, extra, out = [], [], [], [], [], [], []
        for size in sizes:
            k, s, d = self._count(1, 5), self._count(1, 3), self.random.choice([1, 1, 2])
            b, a, e = self._count(0, k - 1), self._count(0, k - 1), self._count(0, s - 1)
            total = (size - 1) * s + (k - 1) * d + 1 + e - b - a
            if total < 1:
                b = a = 0
                total = (size - 1) * s + (k - 1) * d + 1 + e
            for values, value in zip((ks, ss, ds, before, after, extra, out), (k, s, d, b, a, e, total), strict=True):
                values.append(value)
        return self._node("ConvTranspose", [x, self._constant(channels, units, *ks), self._constant(units)],
                          [1, units, *out], kernel_shape=ks, strides=ss, dilations=ds, pads=before + after,
                          output_padding=extra)

    def _pool(self, x):
        operator = self.random.choice(["MaxPool", "AveragePool"])
        window, size = self._windows(x, largest=4)
        if operator == "AveragePool":
            del window["dilations"]
            window["count_include_pad"] = self._count(0, 1)
            size = [(n + b + a - k) // s + 1 for n, k, s, b, a in zip(
                self.shapes[x][2:], window["kernel_shape"], window["strides"], window["pads"][:2], window["pads"][2:],
                strict=True)]
            if min(size) < 1:
                return self._activation(x)
        return self._node(operator, [x], [*self.shapes[x][:2], *size], **window)

    def _activation(self, x):
        operator = self.random.choice(["Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "Elu", "Softplus", "Clip", "PRelu"])
        inputs = [x]
        if operator == "Clip":
            inputs += [self._store(np.float32(-0.5)), self._store(np.float32(0.75))]
        if operator == "PRelu":
            inputs.append(self._constant(self.shapes[x][1], 1, 1))
        return self._node(operator, inputs, self.shapes[x])

    def _shortcut(self, x):
        """x and a layer of it added, both the same size."""
        channels = self.shapes[x][1]
        y = self._node("Conv", [x, self._constant(channels, channels, 3, 3)], self.shapes[x], pads=[1] * 4)
        return self._node(self.random.choice(["Add", "Mul", "Sub", "Max"]), self.random.choice([[x, y], [y, x]]), self.shapes[x])

    def _concat(self, x):
        axis = self._count(1, 3)
        dims = list(self.shapes[x])
        dims[axis] *= 2
        return self._node("Concat", [x, self._activation(x)], dims, axis=axis)

    def _resize(self, x):
        _, c, h, w = self.shapes[x]
        size = [self._count(max(1, h // 2), 2 * h), self._count(max(1, w // 2), 2 * w)]
        mode = self.random.choice(["nearest", "linear"])
        spot = self.random.choice(["asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"])
        sizes = self._store(np.array([1, c, *size], np.int64))
        nearest = self.random.choice(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
        return self._node("Resize", [x, "", "", sizes], [1, c, *size], mode=mode, coordinate_transformation_mode=spot,
                          nearest_mode=nearest)

    def _pad(self, x):
        mode = self.random.choice(["constant", "edge", "reflect"])
        dims = self.shapes[x]
        pads = [0, 0] + [self._count(0, min(3, size - 1)) for size in dims[2:]]
        pads += [0, 0] + [self._count(0, min(3, size - 1)) for size in dims[2:]]
        out = [size + b + a for size, b, a in zip(dims, pads[:4], pads[4:], strict=True)]
        return self._node("Pad", [x, self._store(np.array(pads, np.int64))], out, mode=mode)

    def _slice(self, x):
        axis = self._count(1, 3)
        size = self.shapes[x][axis]
        start, step = self._count(0, size - 1), self._count(1, 3)
        end = self._count(start + 1, size)
        dims = list(self.shapes[x])
        dims[axis] = -(-(end - start) // step)
        bounds = [self._store(np.array([value], np.int64)) for value in (start, end, axis, step)]
        return self._node("Slice", [x, *bounds], dims)

    def _normalise(self, x):
        channels = self.shapes[x][1]
        if self._count(0, 1):
            return self._node("Softmax", [x], self.shapes[x], axis=self._count(1, 3))
        parts = [self._constant(channels) for _ in range(3)] + [self._constant(channels, least=0.5)]
        return self._node("BatchNormalization", [x, *parts], self.shapes[x])

    def _squeeze_excite(self, x):
        channels = self.shapes[x][1]
        pooled = self._node("GlobalAveragePool", [x], [1, channels, 1, 1])
        gate = self._node("Conv", [pooled, self._constant(channels, channels, 1, 1)], [1, channels, 1, 1])
        return self._node("Mul", [x, self._node("Sigmoid", [gate], [1, channels, 1, 1])], self.shapes[x])

    def _reduce(self, x):
        axis = self._count(1, 3)
        dims = list(self.shapes[x])
        dims[axis] = 1
        mean = self._node("ReduceMean", [x], dims, axes=[axis], keepdims=1)
        return self._node("Sub", [x, mean], self.shapes[x])
