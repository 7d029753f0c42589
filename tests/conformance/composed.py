"""How operators are drawn that become several layers of csdfc, and chains that exporters write: heads of attention, choices,
sums, classes and places. As in layers.py, each function adds to a network, or gives None where it does not fit."""

import numpy as np

from layers import Row, divisors, reduced


def heads(net, _, x):
    """Attention of several heads: the tokens are lines."""
    dims = net.shapes[x]
    if len(dims) != 3 or dims[0] != 1 or dims[1] < 2:
        return None
    _, tokens, units = dims
    count = net.choice(divisors(units))
    parted = [1, tokens, count, units // count]

    def part(perm):
        y = net.node("MatMul", [x, net.weights(units, units, sums=units)], dims)
        y = y and net.node("Reshape", [y, net.ints(parted)], parted)
        return y and net.node("Transpose", [y], [parted[axis] for axis in perm], perm=perm)

    queries, keys, values = part([0, 2, 1, 3]), part([0, 2, 3, 1]), part([0, 2, 1, 3])
    if not (queries and keys and values):
        return None
    y = net.node("MatMul", [queries, keys], [1, count, tokens, tokens])
    y = y and net.node("Softmax", [y], [1, count, tokens, tokens], axis=3)
    y = y and net.node("MatMul", [y, values], [1, count, tokens, units // count])
    y = y and net.node("Transpose", [y], parted, perm=[0, 2, 1, 3])
    return y and net.node("Reshape", [y, net.ints(dims)], dims)


def pixels(net, _, x):
    """Layers of tokens that are the pixels of an image, of dimensions `[1, H, W, C]`, and then an image or tokens again."""
    dims = net.shapes[x]
    if dims[0] != 1 or len(dims) not in (3, 4):
        return None
    if len(dims) == 4:
        image = [1, dims[2], dims[3], dims[1]]
        y = net.node("Transpose", [x], image, perm=[0, 2, 3, 1])
    else:
        height = net.choice(divisors(dims[1]))
        image = [1, height, dims[1] // height, dims[2]]
        y = net.node("Reshape", [x, net.ints(image)], image)
    units = image[3]
    for _ in range(net.count(1, 3)):
        step = net.choice(["norm", "dense", "sum", "softmax"])
        if step == "norm" and y:
            mean = reduced(net, "ReduceMean", y, [3], True)
            y = mean and net.node("Sub", [y, mean], image)
        elif step == "dense" and y:
            y = net.node("MatMul", [y, net.weights(units, units, sums=units)], image)
        elif step == "sum" and y:
            y = net.node("Add", [y, net.constant(units)], image)
        elif y:
            y = net.node("Softmax", [y], image, axis=3)
    if y and net.one_in(2):
        return net.node("Transpose", [y], [1, units, *image[1:3]], perm=[0, 3, 1, 2])
    tokens = [1, image[1] * image[2], units]
    return y and net.node("Reshape", [y, net.ints(tokens)], tokens)


def attention(net, operator, x):
    dims = net.shapes[x]
    if len(dims) != 3 or dims[0] != 1:
        return None
    count = net.choice(divisors(dims[2]))
    attributes = {"is_causal": 1} if net.one_in(2) else {}
    return net.node(operator, [x, x, x], dims, q_num_heads=count, kv_num_heads=count, **attributes)


def rotated(net, operator, x):
    dims = net.shapes[x]
    if len(dims) != 4 or dims[3] % 2:
        return None
    angles = net.numbers.uniform(-3, 3, (dims[0], dims[2], dims[3] // 2)).astype(np.float32)
    tables = [net.store(np.cos(angles)), net.store(np.sin(angles))]
    return net.node(operator, [x, *tables], dims, interleaved=net.count(0, 1))


def bent(net, operator, x):
    """By a condition, one of two functions that meet where it changes: rounding may fall on either side."""
    dims = net.shapes[x]
    limit = net.choice([-0.25, 0.0, 0.5])
    steeper = net.node("Mul", [x, net.store(np.float32(2.0))], dims)
    steeper = steeper and net.node("Sub", [steeper, net.store(np.float32(limit))], dims)
    if not steeper:
        return None
    above = net.hidden(net.choice(["Greater", "Less"]), [x, net.store(np.float32(limit))])
    if net.one_in(3):
        above = net.hidden("Not", [above])
    return net.node(operator, [above, *net.choice([[x, steeper], [steeper, x]])], dims)


def cumulative(net, operator, x):
    rank = len(net.shapes[x])
    axis = net.store(np.array(net.count(-rank, rank - 1), np.int64))
    return net.node(operator, [x, axis], net.shapes[x], exclusive=net.count(0, 1), reverse=net.count(0, 1))


def triangle(net, operator, x):
    diagonal = [net.store(np.array(net.count(-2, 2), np.int64))] if net.one_in(2) else []
    return net.node(operator, [x, *diagonal], net.shapes[x], upper=net.count(0, 1))


def classes(net, operator, x):
    """What is made of the greatest elements' indices: vectors, rows of a table, or numbers."""
    dims = net.shapes[x]
    axis = net.count(0, len(dims) - 1)
    if dims[axis] < 2 or len(dims) > 3:
        return None
    left = dims[:axis] + dims[axis + 1:]
    indices = net.hidden("ArgMax", [x], axis=axis, keepdims=0)
    if operator == "OneHot":
        at = net.count(0, len(left))
        depth, values = net.ints([dims[axis]]), net.constant(2)
        return net.node(operator, [indices, depth, values], [*left[:at], dims[axis], *left[at:]], axis=at)
    if operator == "Gather":
        size = net.count(1, 4)
        return net.node(operator, [net.constant(dims[axis], size), indices], [*left, size])
    by = net.store(np.array(net.count(1, 3), np.int64))
    if len(left) < 2:
        return None
    return net.node("Cast", [net.hidden(operator, [indices, by])], left, to=1)


def places(net, operator, x):
    """Elements, rows or more at places that are constants."""
    dims = net.shapes[x]
    depth = net.count(1, len(dims))
    size = net.count(1, 5)
    at = np.stack([net.numbers.integers(-dim, dim, size) for dim in dims[:depth]], -1)
    return net.node(operator, [x, net.store(at[None])], [1, size, *dims[depth:]]) if len(dims) - depth <= 2 else None


def elements(net, operator, x):
    dims = net.shapes[x]
    axis = net.count(0, len(dims) - 1)
    made = [*dims[:axis], net.count(1, dims[axis] + 1), *dims[axis + 1:]]
    if np.prod(made) > 3000:
        return None
    at = net.numbers.integers(-dims[axis], dims[axis], made)
    return net.node(operator, [x, net.store(at)], made, axis=axis)


def einsum(net, operator, x):
    dims = net.shapes[x]
    units = net.count(1, 6)
    rows = "abcd"[:len(dims) - 1]
    weights = net.weights(dims[-1], units, sums=dims[-1])
    return net.node(operator, [x, weights], [*dims[:-1], units], equation=f"{rows}x,xy->{rows}y")


OPERATORS = {
    "heads of attention": Row(heads, 8), "tokens as pixels": Row(pixels, 4, since=13), "Attention": Row(attention, 16, since=23), "RotaryEmbedding": Row(rotated, 16, since=23),
    "Where": Row(bent, 3, since=9), "CumSum": Row(cumulative, 3, since=11), "Trilu": Row(triangle, 3, since=14),
    "OneHot": Row(classes, 2, since=11), "Gather of a table": Row(lambda net, _, x: classes(net, "Gather", x), 2, since=11),
    "Div of indices": Row(lambda net, _, x: classes(net, "Div", x), 1, since=13), "Mod": Row(classes, 1, since=13), "GatherND": Row(places, 2, since=12),
    "GatherElements": Row(elements, 3, since=11), "Einsum": Row(einsum, 2, since=12),
}
