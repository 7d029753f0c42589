"""How each operator is drawn: functions that add a layer to a network (`networks.Network`), or give None where it does not
fit. They know the operators' forms in every opset."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Callable

import numpy as np


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def image(make):
    """A layer of images only."""
    def made(net, operator, x):
        dims = net.shapes[x]
        return make(net, operator, x) if len(dims) == 4 else None
    return made


def spatial(make):
    """A layer of images or lines."""
    def made(net, operator, x):
        return make(net, operator, x) if len(net.shapes[x]) in (3, 4) else None
    return made


def above(net, x):
    """The tensor if all is above zero, else one of it that is."""
    if x in net.positive:
        return x
    y = net.node("Abs", [x], net.shapes[x])
    y = y and net.node("Add", [y, net.constant(1, least=0.25, most=1.0)], net.shapes[x])
    if y:
        net.positive.add(y)
    return y


# Functions of one element.

def function(net, operator, x):
    attributes = {}
    if operator in ("Log", "Sqrt", "Reciprocal"):
        x = above(net, x)
    if operator in ("Elu", "LeakyRelu", "ThresholdedRelu") and net.one_in(2):
        attributes["alpha"] = net.choice([0.1, 0.3, 0.75])
    if operator == "HardSigmoid" and net.one_in(2):
        attributes |= {"alpha": 0.3, "beta": 0.4}
    if operator == "Selu" and net.one_in(2):
        attributes |= {"alpha": 1.5, "gamma": 0.9}
    if operator == "Gelu" and net.one_in(2):
        attributes["approximate"] = "tanh"
    if operator == "Swish" and net.one_in(2):
        attributes["alpha"] = net.choice([1.0, 1.5])
    return net.node(operator, [x], net.shapes[x], **attributes)


def clip(net, operator, x):
    low, high = net.choice([(-0.5, 0.75), (0.0, 6.0), (-0.25, None), (None, 0.5)])
    if net.opset < 11:
        bounds = {"min": low, "max": high}
        return net.node(operator, [x], net.shapes[x], **{k: v for k, v in bounds.items() if v is not None})
    bounds = ["" if bound is None else net.store(np.float32(bound)) for bound in (low, high)]
    return net.node(operator, [x, *bounds], net.shapes[x])


def p_relu(net, operator, x):
    dims = net.shapes[x]
    # One slope, one a channel, or one an element of the last dimensions.
    slope = net.choice([[1], [dims[1], *[1] * (len(dims) - 2)], dims[-1:]])
    return net.node(operator, [x, net.constant(*slope)], dims)


# Functions of two elements.

def partner(net, x):
    """What broadcasts with a tensor: another, one made of it, or a constant."""
    dims = net.shapes[x]
    alike = [name for name in net.floats if net.shapes[name] == dims and name != x]
    if alike and net.count(0, 2):
        return net.choice(alike)
    if net.opset >= 8 and net.one_in(3):
        axes = net.random.sample(range(len(dims)), net.count(1, len(dims) - 1))
        mean = reduced(net, "ReduceMean", x, sorted(axes), True)
        if mean:
            return mean
    own = [dim if net.count(0, 2) else 1 for dim in dims]
    cut = net.count(0, len(dims) - 1) if net.one_in(2) else 0
    return net.constant(*own[cut:])


def binary(net, operator, x):
    dims = net.shapes[x]
    y = partner(net, x)
    if operator == "Div":
        y = above(net, y) if y in net.shapes else net.constant(*dims[-1:], least=0.5, most=2.0)
    if operator == "Pow":
        power = net.store(np.array([net.choice([1.0, 2.0, 3.0, 0.5, 1.5])], np.float32))
        x = above(net, x)
        return x and net.node(operator, [x, power], dims)
    operands = [x, y] if operator == "Div" or net.one_in(2) else [y, x]
    return y and net.node(operator, operands, dims)


def several(net, operator, x):
    """Min, Max and Sum of one to three."""
    dims = net.shapes[x]
    count = net.choice([1, 2, 2, 3])
    alike = [name for name in net.floats if net.shapes[name] == dims]
    others = [net.choice(alike) for _ in range(count - 1)]
    if others and net.opset >= 8:
        others[0] = partner(net, x)
    operands = [x, *others]
    net.random.shuffle(operands)
    return net.node(operator, operands, dims)


# Windows.

def window(net, size, largest=4, dilations=True):
    """Kernel, stride, dilation and padding of one axis, and the size of the output; every window sees an element."""
    for _ in range(100):
        k, s = net.count(1, largest), net.choice([1, 1, 1, 2, 2, 3])
        d = net.choice([1, 1, 1, 2, 3]) if dilations else 1
        before, after = net.count(0, k - 1), net.count(0, k - 1)
        out = (size + before + after - (k - 1) * d - 1) // s + 1 if size + before + after > (k - 1) * d else 0
        taps = [[o * s - before + i * d for i in range(k)] for o in range(out)]
        if out > 0 and all(any(0 <= tap < size for tap in of) for of in taps):
            return k, s, d, before, after, out
    return 1, 1, 1, 0, 0, size


def windows(net, x, largest=4, dilations=True):
    """Attributes of a window on an image, and the size of the output; sometimes with automatic padding."""
    both = [window(net, size, largest, dilations) for size in net.shapes[x][2:]]
    k, s, d, before, after, out = zip(*both, strict=True)
    attributes = {"kernel_shape": list(k), "strides": list(s)}
    if dilations:
        attributes["dilations"] = list(d)
    if net.one_in(6) and set(d) == {1}:
        sizes = net.shapes[x][2:]
        same = [-(-size // step) for size, step in zip(sizes, s, strict=True)]
        # ONNX Runtime refuses what would have to be cropped.
        if all((o - 1) * step + kernel >= size for o, step, kernel, size in zip(same, s, k, sizes, strict=True)):
            return attributes | {"auto_pad": net.choice(["SAME_UPPER", "SAME_LOWER"])}, same
    return attributes | {"pads": [*before, *after]}, list(out)


@spatial
def convolution(net, operator, x):
    batch, channels = net.shapes[x][:2]
    group = net.choice([1, 1, 1, channels, *divisors(channels)])
    attributes, size = windows(net, x)
    units = group * net.count(1, 12 // group + 1)
    kernel = attributes["kernel_shape"]
    weights = net.weights(units, channels // group, *kernel, sums=channels // group * math.prod(kernel))
    bias = [net.constant(units)] if net.one_in(2) else []
    return net.node(operator, [x, weights, *bias], [batch, units, *size], group=group, **attributes)


@spatial
def transposed(net, operator, x):
    batch, channels, *sizes = net.shapes[x]
    group = net.choice([1, 1, channels, *divisors(channels)])
    units = net.count(1, 8 // group + 1)
    axes = []
    for size in sizes:
        k, s, d = net.count(1, 4), net.count(1, 3), net.choice([1, 1, 2])
        b, a, e = net.count(0, k - 1), net.count(0, k - 1), net.count(0, s - 1)
        total = (size - 1) * s + (k - 1) * d + 1 + e
        b, a = (b, a) if total > b + a else (0, 0)
        axes.append((k, s, d, b, a, e, total - b - a))
    k, s, d, b, a, e, out = (list(values) for values in zip(*axes, strict=True))
    weights = net.weights(channels, units, *k, sums=channels // group * math.prod(k))
    bias = [net.constant(units * group)] if net.one_in(2) else []
    return net.node(operator, [x, weights, *bias], [batch, units * group, *out], kernel_shape=k, strides=s, dilations=d,
                    pads=b + a, output_padding=e, group=group)


@spatial
def pool(net, operator, x):
    dims = net.shapes[x]
    attributes, size = windows(net, x, dilations=operator == "MaxPool" and net.opset >= 10)
    if operator == "AveragePool" and net.one_in(2):
        attributes["count_include_pad"] = 1
    if operator == "LpPool":
        attributes["p"] = net.choice([1, 2, 3])
    return net.node(operator, [x], [*dims[:2], *size], **attributes)


@spatial
def global_pool(net, operator, x):
    attributes = {"p": net.choice([1, 2, 3])} if operator == "GlobalLpPool" else {}
    return net.node(operator, [x], [*net.shapes[x][:2], *[1] * len(net.shapes[x][2:])], **attributes)


def exact_in_runtime(size, made, spot, nearest):
    """Whether ONNX Runtime, which computes coordinates in 32-bit floats, takes the pixels that ONNX defines."""
    def pixels(number):
        scale = number(made) / number(size)
        half = number(1) / number(2)
        for y in range(made):
            if size == made or spot in ("align_corners", "pytorch_half_pixel") and made == 1:
                at = number(y)
            elif spot == "align_corners":
                at = number(y) * number(size - 1) / number(made - 1)
            else:
                at = number(y) / scale if spot == "asymmetric" else (number(y) + half) / scale - half
            rounded = {"floor": math.floor(at), "ceil": math.ceil(at),
                       "round_prefer_floor": math.ceil(at - half), "round_prefer_ceil": math.floor(at + half)}
            yield min(max(rounded[nearest], 0), size - 1)
    return list(pixels(np.float32)) == list(pixels(Fraction))


@image
def resize(net, operator, x):
    *outer, h, w = net.shapes[x]
    if operator == "Upsample" or net.opset == 10:
        scales = [1.0, 1.0, float(net.count(1, 3)), float(net.count(1, 3))]
        size = [int(h * scales[2]), int(w * scales[3])]
        mode = net.choice(["nearest", "linear"])
        if operator == "Upsample" and net.opset < 9:
            return net.node(operator, [x], [*outer, *size], mode=mode, scales=scales)
        return net.node(operator, [x, net.store(np.array(scales, np.float32))], [*outer, *size], mode=mode)
    size = [net.count(max(1, h // 2), 2 * h), net.count(max(1, w // 2), 2 * w)]
    attributes = {"mode": net.choice(["nearest", "linear"] + ["cubic"] * (net.opset >= 11)),
                  "coordinate_transformation_mode": net.choice(["asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"])}
    if attributes["mode"] == "nearest":
        attributes["nearest_mode"] = net.choice(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    if attributes["mode"] == "cubic":
        attributes |= {"cubic_coeff_a": net.choice([-0.75, -0.5]), "exclude_outside": net.choice([0, 1])}
    if net.opset >= 18 and attributes["mode"] != "nearest" and net.one_in(3):
        attributes["antialias"] = 1
    # Before opset 13 what is not given is an empty tensor.
    none = "" if net.opset >= 13 else net.store(np.zeros(0, np.float32))
    spot = attributes["coordinate_transformation_mode"]
    if net.one_in(2):
        scales = [1.0, 1.0, net.choice([0.5, 1.0, 2.0, 1.5, 3.0]), net.choice([0.5, 1.0, 2.0, 1.5])]
        size = [int(np.floor(n * scale)) for n, scale in zip((h, w), scales[2:], strict=True)]
        # ONNX takes the size that is not rounded, ONNX Runtime the one that is.
        if size != [h * scales[2], w * scales[3]] and spot in ("align_corners", "pytorch_half_pixel"):
            return None
        return net.node(operator, [x, none, net.store(np.array(scales, np.float32))], [*outer, *size], **attributes)
    if "nearest_mode" in attributes and not all(
            exact_in_runtime(*axis, spot, attributes["nearest_mode"]) for axis in zip((h, w), size, strict=True)):
        return None
    return net.node(operator, [x, none, none, net.store(np.array([*outer, *size], np.int64))], [*outer, *size], **attributes)


@image
def grid_sample(net, operator, x):
    n, c, _, _ = net.shapes[x]
    h, w = net.count(1, 6), net.count(1, 6)
    # Around the image. What is nearest jumps, so it is not drawn.
    mode = net.choice(["linear", "cubic"] if net.opset >= 20 else ["bilinear", "bicubic"])
    padding = net.choice(["zeros", "border", "reflection"])
    places = net.constant(n, h, w, 2, least=-1.5, most=1.5)
    return net.node(operator, [x, places], [n, c, h, w], mode=mode, padding_mode=padding, align_corners=net.count(0, 1))


@image
def blocks(net, operator, x):
    n, c, h, w = net.shapes[x]
    side = net.choice([2, 2, 3])
    if operator == "SpaceToDepth":
        if h % side or w % side:
            return None
        return net.node(operator, [x], [n, c * side * side, h // side, w // side], blocksize=side)
    if c % (side * side):
        return None
    mode = {"mode": net.choice(["DCR", "CRD"])} if net.opset >= 11 else {}
    return net.node(operator, [x], [n, c // (side * side), h * side, w * side], blocksize=side, **mode)


# Norms.

@image
def lrn(net, operator, x):
    return net.node(operator, [x], net.shapes[x], size=net.choice([1, 3, 5]), alpha=0.3, beta=0.75, bias=1.5)


def batch_norm(net, operator, x):
    channels = net.shapes[x][1]
    parts = [net.constant(channels) for _ in range(3)] + [net.constant(channels, least=0.5)]
    return net.node(operator, [x, *parts], net.shapes[x])


@image
def instance_norm(net, operator, x):
    channels = net.shapes[x][1]
    attributes = {"epsilon": 0.01} if net.one_in(2) else {}
    return net.node(operator, [x, net.constant(channels), net.constant(channels)], net.shapes[x], **attributes)


def layer_norm(net, operator, x):
    dims = net.shapes[x]
    axis = net.count(0, len(dims) - 1)
    bias = [net.constant(*dims[axis:])] if net.one_in(2) else []
    attributes = {"epsilon": 0.01} if net.one_in(2) else {}
    axis -= len(dims) if net.one_in(2) else 0
    return net.node(operator, [x, net.constant(*dims[axis:]), *bias], dims, axis=axis, **attributes)


@spatial
def group_norm(net, operator, x):
    channels = net.shapes[x][1]
    attributes = {"epsilon": 0.01} if net.one_in(2) else {}
    inputs = [x, net.constant(channels), net.constant(channels)]
    return net.node(operator, inputs, net.shapes[x], num_groups=net.choice(divisors(channels)), **attributes)


def lp_norm(net, operator, x):
    x = above(net, x)
    rank = len(net.shapes[x]) if x else 0
    return x and net.node(operator, [x], net.shapes[x], axis=net.count(-rank, rank - 1), p=net.choice([1, 2]))


def softmax(net, operator, x):
    rank = len(net.shapes[x])
    axis = net.count(-rank, rank - 1)
    attributes = {} if net.one_in(5) else {"axis": axis}
    return net.node(operator, [x], net.shapes[x], **attributes)


# Sums.

def reduced(net, operator, x, axes, keep):
    dims = net.shapes[x]
    out = [1 if at in axes else dim for at, dim in enumerate(dims) if keep or at not in axes]
    if len(out) < 1:
        return None
    since = 13 if operator == "ReduceSum" else 18
    if net.opset >= since:
        return net.node(operator, [x, net.ints(axes)], out, keepdims=int(keep))
    return net.node(operator, [x], out, axes=axes, keepdims=int(keep))


def reduction(net, operator, x):
    rank = len(net.shapes[x])
    axes = sorted(net.random.sample(range(rank), net.count(1, rank)))
    if operator == "ReduceLogSum":
        x = above(net, x)
    keep = bool(net.count(0, 3)) or rank - len(axes) < 2
    return x and reduced(net, operator, x, axes, keep)


def arg_max(net, operator, x):
    dims = net.shapes[x]
    axis, keep = net.count(0, len(dims) - 1), net.count(0, 1)
    attributes = {"select_last_index": 1} if net.opset >= 12 and net.one_in(2) else {}
    y = net.node(operator, [x], dims, axis=axis, keepdims=keep, **attributes)
    if y:
        net.floats.remove(y)
        net.indices.append(y)
        del net.shapes[y]
    return y


def top_k(net, operator, x):
    dims = net.shapes[x]
    axis = net.count(0, len(dims) - 1)
    count = net.count(1, dims[axis])
    attributes = {"axis": axis}
    if net.opset >= 11:
        attributes["largest"] = net.count(0, 1)
    if net.opset < 10:
        inputs, attributes["k"] = [x], count
    else:
        inputs = [x, net.ints([count])]
    elements, indices = (f"t{len(net.nodes)}_{part}" for part in range(2))
    net.parts(operator, inputs, [elements, indices], 2 * [[*dims[:axis], count, *dims[axis + 1:]]], **attributes)
    net.floats.remove(indices)
    net.indices.append(indices)
    del net.shapes[indices]
    return elements


def suppression(net, operator, x):
    """The elements are the scores of boxes that are constants."""
    size = int(np.prod(net.shapes[x]))
    boxes = net.choice(divisors(size))
    scores = net.node("Reshape", [x, net.ints([1, size // boxes, boxes])], [1, size // boxes, boxes])
    most = net.count(1, boxes + 1)
    limits = [net.constant(1, least=0), *([net.constant(1)] if net.one_in(2) else [])]
    attributes = {"center_point_box": 1} if net.one_in(2) else {}
    inputs = [net.constant(1, boxes, 4), scores, net.ints([most]), *limits]
    y = net.node(operator, inputs, [size // boxes * min(most, boxes), 3], **attributes)
    if y:
        net.floats.remove(y)
        net.indices.append(y)
        net.kept[y] = net.shapes.pop(y)[0]
    return y


def gemm(net, operator, x):
    dims = net.shapes[x]
    if len(dims) != 2:
        return None
    flip, flip_weights = net.one_in(6), net.count(0, 1)
    rows, inner = dims[::-1] if flip else dims
    units = net.count(1, 12)
    weights = net.weights(*([units, inner] if flip_weights else [inner, units]), sums=inner)
    added = [net.constant(*net.choice([[units], [1, units], [1]]))] if net.opset < 11 or net.count(0, 1) else []
    scales = {"alpha": 0.5, "beta": 1.5} if net.one_in(4) else {}
    return net.node(operator, [x, weights, *added], [rows, units], transA=int(flip), transB=flip_weights, **scales)


def mat_mul(net, operator, x):
    dims = net.shapes[x]
    kind = net.count(0, 3)
    if kind == 0:
        # With another tensor, or itself the other way round.
        fits = [name for name in net.floats
                if len(net.shapes[name]) == len(dims) and net.shapes[name][:-2] == dims[:-2] and net.shapes[name][-2] == dims[-1]]
        perm = [*range(len(dims) - 2), len(dims) - 1, len(dims) - 2]
        other = net.choice(fits) if fits else net.node("Transpose", [x], [dims[axis] for axis in perm], perm=perm)
        return other and net.node(operator, [x, other], [*dims[:-1], net.shapes[other][-1]])
    units = net.count(1, 12)
    if kind == 1:
        return net.node(operator, [net.weights(units, dims[-2], sums=dims[-2]), x], [*dims[:-2], units, dims[-1]])
    outer = dims[:-2] if kind == 2 else []
    return net.node(operator, [x, net.weights(*outer, dims[-1], units, sums=dims[-1])], [*dims[:-1], units])


def recurrent(net, operator, x):
    """Steps of lines or of the rows of an image; its first output, or its last state, or for an LSTM its last memory."""
    dims = net.shapes[x]
    if len(dims) == 4 and dims[0] == 1:
        # Each row's channels one after another.
        x = net.node("Transpose", [x], [dims[axis] for axis in (2, 0, 1, 3)], perm=[2, 0, 1, 3])
        dims = [dims[2], 1, dims[1] * dims[3]]
        x = x and net.node("Reshape", [x, net.store(np.array(dims, np.int64))], dims)
    elif len(dims) == 3 and net.count(0, 2):
        dims = [dims[1], dims[0], dims[2]]
        x = net.node("Transpose", [x], dims, perm=[1, 0, 2])
    elif len(dims) != 3:
        return None
    steps, batch, inner = dims
    size, gates = net.count(1, 9), {"RNN": 1, "GRU": 3, "LSTM": 4}[operator]
    direction = net.choice(["forward", "forward", "reverse", "bidirectional"])
    directions = 1 + (direction == "bidirectional")
    attributes = {"hidden_size": size, "direction": direction}
    inputs = [x, net.weights(directions, gates * size, inner, sums=inner),
              net.weights(directions, gates * size, size, sums=size)]
    inputs.append(net.constant(directions, 2 * gates * size) if net.count(0, 2) else "")
    inputs.append(net.store(np.full(batch, steps, np.int32)) if net.one_in(4) else "")
    for _ in range(2 if operator == "LSTM" else 1):
        inputs.append(net.constant(directions, batch, size) if net.one_in(4) else "")
    if operator == "LSTM" and net.one_in(3):
        inputs.append(net.constant(directions, 3 * size))
    while not inputs[-1]:
        inputs.pop()
    if operator == "GRU" and net.one_in(2):
        attributes["linear_before_reset"] = 1
    if operator == "LSTM" and net.one_in(4):
        attributes["input_forget"] = 1
    if net.one_in(4):
        attributes["clip"] = net.choice([0.5, 2.0])
    if net.one_in(3):
        # States that grow from step to step become infinite.
        names = ["Sigmoid", "Softsign", "HardSigmoid", "Tanh", *(["Relu", "LeakyRelu", "Elu"] if steps <= 16 else [])]
        chosen = [net.choice(names[:3] if at == 0 else names) for at in range({"RNN": 1, "GRU": 2, "LSTM": 3}[operator])]
        attributes["activations"] = chosen * directions
        alphas = {"HardSigmoid": 0.3, "LeakyRelu": 0.1, "Elu": 0.75}
        if given := [alphas[name] for name in attributes["activations"] if name in alphas]:
            attributes["activation_alpha"] = given
            attributes["activation_beta"] = [0.4] * len(given)
    made = [[steps, directions, batch, size], *[[directions, batch, size]] * (2 if operator == "LSTM" else 1)]
    if min(*made[0]) < 1 or np.prod(made[0]) > 4096 or x is None:
        return None
    names = [f"t{len(net.nodes)}_{part}" for part in range(len(made))]
    kept = net.count(1, len(made))
    return net.parts(operator, inputs, names[:kept], made[:kept], **attributes)


# What moves elements.

def concat(net, operator, x):
    dims = net.shapes[x]
    axis = net.count(0, len(dims) - 1) if net.one_in(4) else net.count(1, len(dims) - 1)
    fits = [name for name in net.floats if len(net.shapes[name]) == len(dims) and all(
        at == axis or a == b for at, (a, b) in enumerate(zip(net.shapes[name], dims, strict=True)))]
    parts = [x, *(net.choice(fits) for _ in range(net.count(1, 2)))]
    sizes = sum(net.shapes[part][axis] for part in parts)
    if net.one_in(3):
        size = net.count(1, 3)
        parts.append(net.constant(*dims[:axis], size, *dims[axis + 1:]))
        sizes += size
    net.random.shuffle(parts)
    out = list(dims)
    out[axis] = sizes
    return net.node(operator, parts, out, axis=axis)


def split(net, operator, x):
    dims = net.shapes[x]
    axis = net.count(0, len(dims) - 1)
    count = net.count(2, 3)
    if dims[axis] < count:
        return None
    is_even = dims[axis] % count == 0 and net.one_in(2)
    cuts = [0, *sorted(net.random.sample(range(1, dims[axis]), count - 1)), dims[axis]]
    lengths = [dims[axis] // count] * count if is_even else [b - a for a, b in zip(cuts, cuts[1:])]
    names = [f"t{len(net.nodes)}_{part}" for part in range(count)]
    attributes, inputs = {"axis": axis}, [x]
    if is_even and net.opset >= 18:
        attributes["num_outputs"] = count
    elif not is_even and net.opset < 13:
        attributes["split"] = lengths
    elif not is_even:
        inputs.append(net.ints(lengths))
    return net.parts(operator, inputs, names, [[*dims[:axis], length, *dims[axis + 1:]] for length in lengths], **attributes)


def expand(net, operator, x):
    dims = net.shapes[x]
    out = [net.count(1, 4) if dim == 1 and at else dim for at, dim in enumerate(dims)]
    shape = [1 if net.one_in(3) else dim for dim in out]
    out = [max(dim, to) for dim, to in zip(dims, shape, strict=True)]
    return net.node(operator, [x, net.ints(shape)], out)


def gather(net, operator, x):
    dims = net.shapes[x]
    axis = net.count(0, len(dims) - 1)
    if len(dims) > 2 and net.one_in(4):
        index = net.store(np.array(net.count(-dims[axis], dims[axis] - 1), np.int64))
        return net.node(operator, [x, index], dims[:axis] + dims[axis + 1:], axis=axis)
    size = net.count(1, 4)
    if net.one_in(2):
        start = net.count(0, dims[axis] - 1)
        places = list(range(start, min(dims[axis], start + size)))
    else:
        places = [net.count(-dims[axis], dims[axis] - 1) for _ in range(size)]
    return net.node(operator, [x, net.ints(places)], [*dims[:axis], len(places), *dims[axis + 1:]], axis=axis)


def pad(net, operator, x):
    dims = net.shapes[x]
    modes = ["constant", "constant", "edge", "reflect"] + ["wrap"] * (net.opset >= 19)
    mode = net.choice(modes)
    count = 2 if len(dims) > 2 and net.count(0, 3) else len(dims)
    axes = sorted(net.random.sample(range(len(dims)), net.count(1, count)))
    before, after = [0] * len(dims), [0] * len(dims)
    for axis in axes:
        most = min(3, dims[axis] - (mode == "reflect")) if mode in ("reflect", "wrap") else 3
        before[axis], after[axis] = net.count(0, most), net.count(0, most)
        if mode == "constant" and dims[axis] > 2 and net.one_in(4):
            before[axis] = -1
    out = [size + b + a for size, b, a in zip(dims, before, after, strict=True)]
    if net.opset < 11:
        value = {"value": 0.5} if mode == "constant" and net.one_in(2) else {}
        return net.node(operator, [x], out, mode=mode, pads=before + after, **value)
    if net.opset >= 18 and net.one_in(2):
        pads = [before[axis] for axis in axes] + [after[axis] for axis in axes]
        return net.node(operator, [x, net.ints(pads), "", net.ints(axes)], out, mode=mode)
    value = [net.store(np.float32(0.5))] if mode == "constant" and net.one_in(2) else []
    return net.node(operator, [x, net.ints(before + after), *value], out, mode=mode)


def slice_(net, operator, x):
    dims = net.shapes[x]
    axes = sorted(net.random.sample(range(len(dims)), net.count(1, 2)))
    starts, ends, steps, out = [], [], [], list(dims)
    for axis in axes:
        size, step = dims[axis], net.choice([1, 1, 2, 3, -1, -2]) if net.opset >= 10 else 1
        start = net.count(0, size - 1)
        length = net.count(1, -(-(size - start) // step) if step > 0 else -(-(start + 1) // -step))
        end = start + length * step
        starts.append(start)
        # Before the first element only a number far below says so.
        ends.append(min(end, size) if end >= 0 else -1000)
        steps.append(step)
        out[axis] = length
    if net.opset < 10:
        return net.node(operator, [x], out, starts=starts, ends=ends, axes=axes)
    return net.node(operator, [x, *(net.ints(values) for values in (starts, ends, axes, steps))], out)


def transpose(net, operator, x):
    dims = net.shapes[x]
    perm = list(range(len(dims)))
    net.random.shuffle(perm)
    return net.node(operator, [x], [dims[axis] for axis in perm], perm=perm)


@dataclass
class Row:
    """How an operator is drawn, how often beside others, in which opsets (that ONNX Runtime has it in, too)."""

    make: Callable
    weight: int = 2
    since: int = 7
    until: int = 99


FUNCTIONS = {
    "Abs": 7, "Ceil": 7, "Cosh": 9, "Elu": 7, "Erf": 9, "Exp": 7, "Floor": 7, "Gelu": 20, "HardSigmoid": 7, "HardSwish": 14, "LeakyRelu": 7,
    "Log": 7, "Mish": 18, "Neg": 7, "Reciprocal": 7, "Relu": 7, "Selu": 7, "Sigmoid": 7, "Sinh": 9, "Softplus": 7, "Softsign": 7,
    "Round": 11, "Sqrt": 7, "Swish": 24, "Tanh": 7, "ThresholdedRelu": 10,
}
REDUCTIONS = ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
              "ReduceSum", "ReduceSumSquare"]

# The operators that layers are drawn of. Views and what only constants have are in networks.py.
OPERATORS = (
    {name: Row(function, 2 if since < 18 else since - 14, since) for name, since in FUNCTIONS.items()}
    | {name: Row(binary, 4) for name in ("Add", "Div", "Mul", "Pow", "Sub")}
    | {name: Row(several, 3) for name in ("Max", "Mean", "Min", "Sum")}
    | {name: Row(reduction, 1) for name in REDUCTIONS}
    | {name: Row(pool, 8) for name in ("AveragePool", "LpPool", "MaxPool")}
    | {name: Row(global_pool, 1, until=21) for name in ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")}
    | {name: Row(softmax) for name in ("LogSoftmax", "Softmax")}
    | {name: Row(recurrent, 3) for name in ("GRU", "LSTM", "RNN")}
    | {name: Row(blocks, 12) for name in ("DepthToSpace", "SpaceToDepth")}
    | {
        "ArgMax": Row(arg_max, 1), "ArgMin": Row(arg_max, 1), "BatchNormalization": Row(batch_norm, 3), "Clip": Row(clip), "Concat": Row(concat, 8),
        "Conv": Row(convolution, 24), "ConvTranspose": Row(transposed, 10), "Expand": Row(expand, 3, since=8), "Gather": Row(gather), "Gemm": Row(gemm, 12), "GridSample": Row(grid_sample, 4, since=16),
        "GroupNormalization": Row(group_norm, 8, since=21),
        "InstanceNormalization": Row(instance_norm), "LRN": Row(lrn, 4), "LayerNormalization": Row(layer_norm, 8, since=17),
        "LpNormalization": Row(lp_norm), "MatMul": Row(mat_mul, 6), "PRelu": Row(p_relu),
        "NonMaxSuppression": Row(suppression, 4, since=11), "Pad": Row(pad, 8), "Resize": Row(resize, 8, since=10), "Slice": Row(slice_, 6), "Split": Row(split, 6), "TopK": Row(top_k),
        "Transpose": Row(transpose, 4), "Upsample": Row(resize, 24, until=9),
    }
)
