"""Random small networks: every operator that csdfc has, on tensors of rank 2, 3 and 4, with views and branches between."""

import random

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import composed
import layers
from layers import divisors

OPERATORS = layers.OPERATORS | composed.OPERATORS

OPSETS = [7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26]
MAX_ELEMENTS = 3000

# What may leave its operand as it is.
MAY_BE_VIEWS = {"Expand", "Gather", "Max", "Mean", "Min", "Pad", "Resize", "Slice", "Sum", "Transpose", "Upsample"}
# What is above zero whatever its operand.
POSITIVE = {"Exp", "Sigmoid", "Softmax", "Softplus"}


class Network:
    """One network, the same for the same seed."""

    def __init__(self, seed):
        self.seed = seed
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.opset = self.random.choice(OPSETS)
        self.nodes, self.constants, self.shapes = [], [], {}
        self.floats, self.indices, self.positive, self.read = [], [], set(), set()
        # Rows for what a NonMaxSuppression keeps.
        self.kept = {}
        # The input and what is seen of it, which cannot be an output.
        self.same = {"x"}
        self._float("x", self._first_shape())
        layers = self.count(2, 7)
        while layers > 0 or all(name in self.same for name in self.floats):
            self._grow()
            layers -= 1
        computed = [name for name in self.floats if name not in self.same]
        leaves = [name for name in computed if name not in self.read]
        inner = [name for name in computed if name in self.read and self.one_in(12)]
        # All may be read where nobody sees what is made of them.
        self.outputs = inner + leaves + self.indices or computed[-1:]

    def words(self):
        """What it is, on a line."""
        def node(n):
            return f"{n.op_type} {'x'.join(map(str, self.shapes[n.output[0]]))}" if n.output[0] in self.shapes else n.op_type
        first = "x".join(map(str, self.shapes["x"]))
        return f"opset {self.opset}, {first}: " + ", ".join(map(node, self.nodes))

    def operators(self):
        return [node.op_type for node in self.nodes]

    def model(self):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shapes["x"])
        kinds = [TensorProto.INT64 if name in self.indices else TensorProto.FLOAT for name in self.outputs]
        outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in zip(self.outputs, kinds, strict=True)]
        graph = helper.make_graph(self.nodes, "drawn", [x], outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)

    # Numbers and names.

    def count(self, least, most):
        return self.random.randint(least, most)

    def one_in(self, n):
        return self.random.randrange(n) == 0

    def choice(self, values):
        return self.random.choice(list(values))

    def _first_shape(self):
        kind = self.count(0, 9)
        if kind == 0:
            return [1, self.count(4, 48)]
        if kind == 1:
            return [1, self.count(2, 10), self.count(2, 16)]
        sizes = [1, 2, 3, 4, 4, 6, 8, 8, 9, 12, 16]
        return [1, self.choice(sizes[:9]), self.choice(sizes[2:]), self.choice(sizes[2:])]

    def _float(self, name, dims):
        self.shapes[name] = list(dims)
        self.floats.append(name)

    def constant(self, *dims, least=-1.0, most=1.0):
        return self.store(self.numbers.uniform(least, most, dims).astype(np.float32))

    def weights(self, *dims, sums):
        """Weights of sums of so many terms, which are then about as large as a term."""
        return self.constant(*dims, least=-1.5 / sums ** 0.5, most=1.5 / sums ** 0.5)

    def store(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, values):
        """A constant list of integers, as a tensor of the file or as what nodes make of constants."""
        array = np.array(values, np.int64)
        made = self._computed(array) if self.one_in(4) and array.ndim == 1 and array.size else None
        return made or self.store(array)

    def _raw(self, operator, inputs, outputs=1, **attributes):
        """A node of constants."""
        name = f"k{len(self.nodes)}"
        names = [name] if outputs == 1 else [f"{name}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, name=name, **attributes))
        return name if outputs == 1 else names

    def node(self, operator, inputs, dims, **attributes):
        """A node that makes one tensor of floats of these dimensions; None where it would be large."""
        if min(dims, default=1) < 1 or np.prod(dims, dtype=np.int64) > MAX_ELEMENTS:
            return None
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        self.read.update(inputs)
        if operator in POSITIVE:
            self.positive.add(name)
        if operator in MAY_BE_VIEWS and all(input in self.same or input not in self.shapes for input in inputs):
            self.same.add(name)
        self._float(name, dims)
        return name

    def hidden(self, operator, inputs, **attributes):
        """A node whose tensor of integers or truth values only the next node reads."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        self.read.update(inputs)
        return name

    def parts(self, operator, inputs, names, dims, **attributes):
        """A node of several tensors."""
        self.nodes.append(helper.make_node(operator, inputs, names, name=names[0], **attributes))
        self.read.update(inputs)
        for name, of in zip(names, dims, strict=True):
            self._float(name, of)
        return names

    # Growth.

    def operand(self):
        latest = self.floats[-3:] if self.count(0, 2) else self.floats
        return self.choice(latest)

    def _grow(self):
        """One more operator, often of a view."""
        x = self.operand()
        if self.count(0, 9) < 5:
            x = self.view(x) or x
        for _ in range(20):
            operator = self.random.choices(list(OPERATORS), [row.weight for row in OPERATORS.values()])[0]
            row = OPERATORS[operator]
            if row.since <= self.opset <= row.until and row.make(self, operator, x) is not None:
                return

    # Constants that nodes compute.

    def _computed(self, array):
        size, first = array.size, int(array[0])
        one = lambda value: self.store(np.array([value], np.int64))
        ways = ["Constant", "Tile", "Neg"]
        if self.opset >= 9:
            ways += ["ConstantOfShape", "Where", "Shape"]
        if self.opset >= 10:
            ways += ["Mod"]
        if self.opset >= 11:
            ways += ["Range"]
        match self.choice(ways):
            case "Constant":
                return self._raw("Constant", [], value=numpy_helper.from_array(array))
            case "ConstantOfShape":
                value = numpy_helper.from_array(np.array([first], np.int64))
                filled = self._raw("ConstantOfShape", [one(size)], value=value)
                return self._raw("Add", [filled, self.store(array - first)])
            case "Range":
                start = [self.store(np.array(value, np.int64)) for value in (first, first + 2 * size, 2)]
                steps = self._raw("Range", start)
                return self._raw("Sub", [steps, self.store(first + 2 * np.arange(size) - array)])
            case "Tile":
                twice = self._raw("Tile", [self.store(array), one(2)])
                if self.opset >= 10:
                    return self._raw("Slice", [twice, one(size), one(2 * size), one(0)])
                return self._raw("Slice", [twice], starts=[size], ends=[2 * size], axes=[0])
            case "Mod":
                large = int(np.abs(array).max()) + 3
                if array.min() < 0:
                    return None
                return self._raw("Mod", [self.store(array + 5 * large), self.store(np.full(size, large, np.int64))])
            case "Shape":
                x = self.choice(self.floats)
                shape = self._raw("Shape", [x])
                self.read.discard(x)
                rank = len(self.shapes[x])
                at = self.count(0, rank - 1)
                dim = self._raw("Gather", [shape, one(at)], axis=0)
                made = self._raw("Add", [dim, self.store(array - self.shapes[x][at])])
                return made
            case "Neg":
                if self.opset < 13:
                    return self._raw("Sub", [self.store(2 * array), self.store(array)])
                size_of = self._raw("Size", [self.choice(self.floats)])
                same = self._raw("Mul", [size_of, self.store(np.array([0], np.int64))])
                return self._raw("Add", [same, self.store(array)])
            case _:
                return self._selected(array)

    def _selected(self, array):
        size = array.size
        a, b = (self.numbers.integers(0, 4, size) for _ in range(2))
        compare = {"Less": np.less, "Greater": np.greater}
        if self.opset >= 11:
            compare["Equal"] = np.equal
        if self.opset >= 12:
            compare |= {"LessOrEqual": np.less_equal, "GreaterOrEqual": np.greater_equal}
        operator = self.choice(compare)
        mask, name = compare[operator](a, b), self._raw(operator, [self.store(a), self.store(b)])
        join = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}
        joined = self.choice([*join, "Not"])
        if joined == "Not":
            mask, name = ~mask, self._raw("Not", [name])
        else:
            other = self.numbers.integers(0, 2, size).astype(bool)
            mask, name = join[joined](mask, other), self._raw(joined, [name, self.store(other)])
        yes, no = np.where(mask, array, array + 7), np.where(mask, array - 7, array)
        return self._raw("Where", [name, self.store(yes), self.store(no)])

    # Views.

    def view(self, x):
        """The same elements seen in other dimensions."""
        y = self._view(x)
        for known in (self.positive, self.same):
            if x in known and y:
                known.add(y)
        return y

    def _view(self, x):
        dims = self.shapes[x]
        match self.count(0, 9):
            case 0 | 1 | 2 | 3:
                to = self._other_dims(dims)
                stated = list(to)
                if self.one_in(3):
                    stated[self.count(0, len(to) - 1)] = -1
                return self.node("Reshape", [x, self.ints(stated)], to)
            case 4:
                axis = self.count(0, len(dims))
                to = [int(np.prod(dims[:axis])), int(np.prod(dims[axis:]))]
                return self.node("Flatten", [x], to, axis=axis)
            case 5:
                return self._squeeze(x)
            case 6:
                return self._unsqueeze(x)
            case 7 if len(dims) == 4:
                perm = self.choice([[0, 2, 3, 1], [0, 3, 1, 2]])
                return self.node("Transpose", [x], [dims[axis] for axis in perm], perm=perm)
            case 8:
                return self.node(self.choice(["Identity", "Dropout"]), [x], dims)
            case _ if self.opset >= 8 and self.one_in(2):
                return self.node("Expand", [x, self.ints([1] * len(dims))], dims)
            case _:
                if self.opset >= 15 and self.one_in(2):
                    return self.node("CastLike", [x, self.constant(1)], dims)
                return self.node("Cast", [x], dims, to=TensorProto.FLOAT)

    def _other_dims(self, dims):
        elements = int(np.prod(dims))
        kind = self.count(0, 4)
        if len(dims) == 4 and dims[0] == 1 and kind < 2:
            # The height stays, and channels and width are dealt anew; or rows and columns are.
            channels, height, width = dims[1:]
            if kind == 0:
                part = self.choice(divisors(channels * width))
                return [1, part, height, channels * width // part]
            part = self.choice(divisors(height * width))
            return [1, channels, part, height * width // part]
        rank = self.choice([2, 3, 4, 4])
        to = [1] if self.count(0, 4) else [self.choice([d for d in divisors(elements) if d <= 4])]
        rest = elements // to[0]
        while len(to) < rank - 1:
            to.append(self.choice(divisors(rest)))
            rest //= to[-1]
        return [*to, rest]

    def _squeeze(self, x):
        dims = self.shapes[x]
        ones = [axis for axis, dim in enumerate(dims) if dim == 1]
        if len(dims) < 3 or not ones:
            return None
        axis = self.choice(ones)
        to = [dim for at, dim in enumerate(dims) if at != axis]
        if self.opset >= 13:
            return self.node("Squeeze", [x, self.ints([axis])], to)
        return self.node("Squeeze", [x], to, axes=[axis])

    def _unsqueeze(self, x):
        dims = self.shapes[x]
        if len(dims) > 3:
            return None
        count = self.count(1, 4 - len(dims))
        axes = sorted(self.random.sample(range(len(dims) + count), count))
        old = iter(dims)
        to = [1 if axis in axes else next(old) for axis in range(len(dims) + count)]
        if self.opset >= 13:
            return self.node("Unsqueeze", [x, self.ints(axes)], to)
        return self.node("Unsqueeze", [x], to, axes=axes)
