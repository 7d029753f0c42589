"""TFLite models beside LiteRT: networks of public packages, and small random models of each operator."""

import re

import numpy as np

from csdfc import Failed
from flat import Model
from wheels import fetched

# How far a float may be from LiteRT's, as a share of the largest element of its tensor.
TOLERANCE = 1e-4
# An output whose largest element is less counts as if that were this: a segmentation of noise is all but 0, the sigmoid of
# about -20, and a sigmoid makes of what its operand was rounded by twenty times as large a share.
LEAST = 1e-2
# Of a whole network in noise, LiteRT's own kernels may differ by more: then twice that.
OWN = 2
# Small models of each operator, and of each of integers for each type.
DRAWN = 4
# The least share of an operator's integers that are the same, and the most steps by which the others may differ.
SAME, STEPS = 0.99, 1
# Where more differ, the share that must be the same, and why.
APART = {
    "AVERAGE_POOL_2D": (0.85, "averages that lie between two integers: csdfc rounds them to the even one, LiteRT up"),
    "MUL": (0.98, "products that lie all but between two integers"),
    "MEAN": (0.7, "LiteRT rounds the zero points' part by itself"),
    "network": (0.9, "what differs once spreads through all that follows"),
}

# Where networks come from: the package and its version, its wheel's digest, and the networks. Those of the last list are
# emitted too.
WHEELS = [
    ("mediapipe==0.10.14", "a807328339e7356fda0bb14df12fedbf1d33bdf81649c5f8666b0026b1cc30b4",
     ["face_detection_short_range", "face_detection_full_range_sparse", "face_landmark", "hand_landmark_full",
      "hand_landmark_lite", "hand_recrop", "iris_landmark", "palm_detection_full", "palm_detection_lite",
      "pose_detection", "pose_landmark_full", "selfie_segmentation", "selfie_segmentation_landscape"]),
]
EMITTED = ["face_detection_short_range", "face_landmark", "hand_recrop", "iris_landmark", "selfie_segmentation"]


def run(tool, summary, only, seed):
    for number, (name, make) in enumerate(CASES.items()):
        for draw in range(DRAWN):
            case = f"tflite {name} {draw}"
            if re.search(only, case):
                summary.check("tflite operators", case, lambda: drawn(tool, make, [seed, number, draw]))
    for number, (name, make) in enumerate(QUANTIZED.items()):
        for kind in ["int8", "uint8"]:
            case = f"tflite {name} {kind}"
            if re.search(only, case):
                summary.check("tflite integers", case, lambda: drawn_integers(tool, name, make, kind, [seed, number]))
    for package, digest, networks in WHEELS:
        chosen = [name for name in networks if re.search(only, name)]
        if not chosen:
            continue
        files = fetched(tool, package, digest, ".tflite")
        if files is None:
            print(f"SKIPPED: networks of {package}: the package cannot be had")
            continue
        for name in chosen:
            summary.check("tflite networks", name, lambda: network(tool, files[name], name, seed))


def interpreter(model, reference=False):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kernels = OpResolverType.BUILTIN_REF if reference else OpResolverType.AUTO
    about = {"model_content": model} if isinstance(model, bytes) else {"model_path": str(model)}
    try:
        made = Interpreter(**about, num_threads=1, experimental_op_resolver_type=kernels)
        made.allocate_tensors()
    except (ValueError, RuntimeError) as why:
        raise Failed(f"LiteRT: {why}") from why
    return made


def computed(made, feeds):
    for detail in made.get_input_details():
        made.set_tensor(detail["index"], feeds[detail["name"]])
    try:
        made.invoke()
    except RuntimeError as why:
        raise Failed(f"LiteRT: {why}") from why
    return {detail["name"]: made.get_tensor(detail["index"]) for detail in made.get_output_details()}


def fed(made, random):
    """Floats from -1 to 1, or any integers."""
    feeds = {}
    for detail in made.get_input_details():
        kind = detail["dtype"]
        if kind == np.float32:
            feeds[detail["name"]] = random.uniform(-1, 1, detail["shape"]).astype(np.float32)
        else:
            bounds = np.iinfo(kind)
            feeds[detail["name"]] = random.integers(bounds.min, bounds.max + 1, detail["shape"]).astype(kind)
    return feeds


def ours(tool, file, feeds, names):
    """The outputs, of which every choice of rows gives the same bytes."""
    plan, first = tool.work / "tflite.json", None
    floats = {name: array.astype(np.float32) for name, array in feeds.items()}
    for rows in [["--rows", "none"], ["--rows", "all"]]:
        tool.plan(file, rows, plan)
        if tool.plan_only:
            continue
        outputs = tool.run(plan, floats, names, tool.work / "tflite")
        first = first or outputs
        if any(one.tobytes() != other.tobytes() for one, other in zip(first, outputs, strict=True)):
            raise Failed(f"{' '.join(rows)}: not byte for byte what other rows give")
    return first


def apart(name, own, theirs):
    """The greatest difference, as a share of the largest element."""
    if own.shape != theirs.shape:
        raise Failed(f"{name} is {list(own.shape)}, LiteRT's {list(theirs.shape)}")
    if not np.isfinite(own).all():
        raise Failed(f"{name} has elements that are not finite")
    largest = max(float(np.abs(theirs).max()), LEAST)
    return float(np.abs(own.astype(np.float64) - theirs).max()) / largest


def network(tool, file, name, seed):
    """Plans, checks and runs equal to LiteRT. The crate of its smallest plan gives the bytes of `run`."""
    made = interpreter(file)
    feeds = fed(made, np.random.default_rng(seed))
    theirs = computed(made, feeds)
    found = ours(tool, file, feeds, list(theirs))
    if found is None:
        return None
    other, worst = None, 0.0
    for own, (output, expected) in zip(found, theirs.items(), strict=True):
        difference = apart(output, own, expected)
        worst = max(worst, difference)
        if difference <= TOLERANCE:
            continue
        other = other or computed(interpreter(file, reference=True), feeds)
        allowed = OWN * apart(output, other[output], expected)
        if not difference <= allowed:
            raise Failed(f"{output} differs by {difference:.2e} of its largest element, where {allowed:.2e} may be")
    if name in EMITTED:
        plan = tool.work / "tflite.json"
        tool.plan(file, ["--mem", "min"], plan)
        outputs = tool.run(plan, feeds, list(theirs), tool.work / "tflite")
        made = tool.run_crate(plan, feeds.values(), tool.work / "tflite-crate")
        if any(one.tobytes() != two.tobytes() for one, two in zip(outputs, made, strict=True)):
            raise Failed("the crate does not give the bytes of run")
    crate = ", and its crate" if name in EMITTED else ""
    return [f"{name}: largest difference {worst:.1e} of the largest element{crate}"]


def drawn(tool, make, seed):
    model, outputs = Model(), None
    outputs = make(model, np.random.default_rng(seed))
    outputs = outputs if isinstance(outputs, list) else [outputs]
    file = tool.work / "tflite-drawn.tflite"
    file.write_bytes(model.write(outputs))
    made = interpreter(file.read_bytes())
    feeds = fed(made, np.random.default_rng([*seed, 1]))
    theirs = computed(made, feeds)
    found = ours(tool, file, feeds, list(theirs))
    if found and make is detections:
        found, theirs = those_found(found, theirs)
    for own, (output, expected) in zip(found or [], theirs.items(), strict=bool(found)):
        if np.issubdtype(expected.dtype, np.integer):
            if not np.array_equal(own, expected):
                raise Failed(f"{output} has other indices")
        elif not (difference := apart(output, own, expected)) <= TOLERANCE:
            raise Failed(f"{output} differs by {difference:.2e} of its largest element")


def drawn_integers(tool, name, make, kind, seed):
    """Models of one operator: integers are LiteRT's, but for some."""
    differ = total = most = 0
    for draw in range(DRAWN):
        model = Model()
        outputs = make(model, np.random.default_rng([*seed, draw]), kind)
        outputs = outputs if isinstance(outputs, list) else [outputs]
        file = tool.work / "tflite-drawn.tflite"
        file.write_bytes(model.write(outputs))
        made = interpreter(file.read_bytes(), reference=True)
        feeds = fed(made, np.random.default_rng([*seed, draw, 1]))
        expected = computed(made, feeds)
        found = ours(tool, file, feeds, list(expected))
        for own, (tensor, theirs) in zip(found or [], expected.items(), strict=bool(found)):
            if own.shape != theirs.shape:
                raise Failed(f"{tensor} is {list(own.shape)}, LiteRT's {list(theirs.shape)}")
            difference = np.abs(own.astype(int) - theirs.astype(int))
            most = max(most, int(difference.max()))
            differ, total = differ + np.count_nonzero(difference), total + difference.size
    least, why = APART.get(name, (SAME, ""))
    if most > STEPS and name != "network":
        raise Failed(f"integers differ by {most} steps")
    if differ > (1 - least) * total:
        raise Failed(f"{differ} of {total} integers differ")
    because = f" ({why})" if differ and why else ""
    return [f"{name}, {kind}: {differ} of {total} integers differ, by {most} steps at most{because}"]


# Models of one operator of floats. Each takes a model and a generator, and gives the output.

NONE, RELU, RELU_N1_TO_1, RELU6 = range(4)
SAME_PADDING, VALID_PADDING = range(2)


def side(random, least=3, most=9):
    return int(random.integers(least, most + 1))


def picture(model, random, least=3, channels=None):
    shape = [1, side(random, least), side(random, least), channels or side(random, 1, 6)]
    return shape, model.input(shape)


def floats(random, *shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def windows(size, kernel, stride, dilation, padding):
    extent = (kernel - 1) * dilation + 1
    return -(-size // stride) if padding == SAME_PADDING else (size - extent) // stride + 1


def of_window(random, size, most=3):
    kernel, padding = random.integers(1, most + 1, 2).tolist(), int(random.integers(2))
    stride = random.integers(1, 3, 2).tolist()
    dilation = random.integers(1, 3, 2).tolist() if stride == [1, 1] else [1, 1]
    if any((k - 1) * d + 1 > s for k, d, s in zip(kernel, dilation, size)):
        dilation, kernel = [1, 1], [1, 1]
    made = [windows(*each, padding) for each in zip(size, kernel, stride, dilation)]
    return kernel, stride, dilation, padding, made


def conv(model, random):
    (_, *size, channels), x = picture(model, random)
    kernel, stride, dilation, padding, made = of_window(random, size)
    filters = side(random, 1, 7)
    weights = floats(random, filters, *kernel, channels)
    # Halves that are widened first, as converters write them.
    if random.integers(2):
        half, wide = model.constant(weights.astype(np.float16)), model.tensor(weights.shape)
        model.operator("DEQUANTIZE", [half], [wide])
    else:
        wide = model.constant(weights)
    y = model.tensor([1, *made, filters])
    model.operator("CONV_2D", [x, wide, model.constant(floats(random, filters))], [y], "Conv2D", padding=padding,
                   strideH=stride[0], strideW=stride[1], dilationHFactor=dilation[0], dilationWFactor=dilation[1],
                   fusedActivationFunction=int(random.integers(4)))
    return y


def depthwise(model, random):
    (_, *size, channels), x = picture(model, random)
    kernel, stride, dilation, padding, made = of_window(random, size)
    stride = [stride[0]] * 2
    made = [windows(*each, padding) for each in zip(size, kernel, stride, dilation)]
    times = side(random, 1, 2)
    y = model.tensor([1, *made, channels * times])
    weights, bias = floats(random, 1, *kernel, channels * times), floats(random, channels * times)
    model.operator("DEPTHWISE_CONV_2D", [x, model.constant(weights), model.constant(bias)], [y], "DepthwiseConv2D",
                   padding=padding, strideH=stride[0], strideW=stride[1], dilationHFactor=dilation[0],
                   dilationWFactor=dilation[1], depthMultiplier=times, fusedActivationFunction=int(random.integers(4)))
    return y


def transpose_conv(model, random):
    (_, *size, channels), x = picture(model, random)
    kernel, stride, padding = random.integers(1, 5, 2).tolist(), random.integers(1, 4, 2).tolist(), int(random.integers(2))
    filters = side(random, 1, 5)
    if padding == SAME_PADDING:
        made = [s * t - int(random.integers(t)) for s, t in zip(size, stride)]
    else:
        made = [(s - 1) * t + max(k, t) for s, t, k in zip(size, stride, kernel)]
        kernel = [max(k, t) for k, t in zip(kernel, stride)]
    y = model.tensor([1, *made, filters])
    operands = [model.constant(np.array([1, *made, filters], np.int32)),
                model.constant(floats(random, filters, *kernel, channels)), x]
    if random.integers(2):
        operands.append(model.constant(floats(random, filters)))
    model.operator("TRANSPOSE_CONV", operands, [y], "TransposeConv", padding=padding, strideH=stride[0],
                   strideW=stride[1])
    return y


def pool(name):
    def make(model, random):
        (_, *size, channels), x = picture(model, random)
        kernel, stride, _, padding, _ = of_window(random, size)
        made = [windows(*each, 1, padding) for each in zip(size, kernel, stride)]
        y = model.tensor([1, *made, channels])
        model.operator(name, [x], [y], "Pool2D", padding=padding, strideH=stride[0], strideW=stride[1],
                       filterHeight=kernel[0], filterWidth=kernel[1], fusedActivationFunction=int(random.integers(4)))
        return y
    return make


def some_shape(random):
    """An image, rows, or a list."""
    return [1, *random.integers(2, 6, int(random.integers(1, 4))).tolist()]


def function(name, options=None, positive=False, **fields):
    def make(model, random):
        shape = some_shape(random)
        x = model.input(shape)
        if positive:
            square = model.tensor(shape)
            model.operator("MUL", [x, x], [square], "Mul")
            x = model.tensor(shape)
            model.operator("ADD", [square, model.constant(np.array([0.5], np.float32))], [x], "Add")
        y = model.tensor(shape)
        model.operator(name, [x], [y], options, **fields)
        return y
    return make


def of_two(name, options=None, fused=False):
    def make(model, random):
        shape = some_shape(random)
        x, other = model.input(shape), random.integers(3)
        if name == "POW":
            positive = model.tensor(shape)
            model.operator("EXP", [x], [positive], "Exp")
            x = positive
        if other == 0:
            operand = model.input(shape)
            if name in ("DIV", "POW"):
                made = model.tensor(shape)
                model.operator("EXP", [operand], [made], "Exp")
                operand = made
        else:
            part = shape[-1:] if other == 1 else [1] * (len(shape) - 1) + shape[-1:]
            operand = model.constant(random.uniform(0.5, 2, part).astype(np.float32))
        y = model.tensor(shape)
        operands = [x, operand] if random.integers(2) or other == 0 else [operand, x]
        fields = {"fusedActivationFunction": int(random.integers(4))} if fused else {}
        model.operator(name, operands, [y], options, **fields)
        return y
    return make


def add_n(model, random):
    shape = some_shape(random)
    y = model.tensor(shape)
    model.operator("ADD_N", [model.input(shape) for _ in range(3)], [y], "AddN")
    return y


def p_relu(model, random):
    shape, x = picture(model, random)
    y = model.tensor(shape)
    model.operator("PRELU", [x, model.constant(floats(random, 1, 1, shape[-1]))], [y])
    return y


def reduction(name):
    def make(model, random):
        shape = some_shape(random)
        x = model.input(shape)
        axes = sorted(random.choice(np.arange(1, len(shape)), int(random.integers(1, len(shape))), replace=False).tolist())
        keep = bool(random.integers(2))
        made = [1 if axis in axes else dim for axis, dim in enumerate(shape) if keep or axis not in axes]
        stated = [axis - len(shape) if random.integers(2) else axis for axis in axes]
        y = model.tensor(made)
        model.operator(name, [x, model.constant(np.array(stated, np.int32))], [y], "Reducer", keepDims=keep)
        return y
    return make


def place_of(name):
    def make(model, random):
        shape = some_shape(random)
        x, axis = model.input(shape), int(random.integers(1, len(shape)))
        y = model.tensor(shape[:axis] + shape[axis + 1:], "int64")
        options = "ArgMax" if name == "ARG_MAX" else "ArgMin"
        model.operator(name, [x, model.constant(np.array(axis, np.int32))], [y], options, outputType=4)
        return y
    return make


def top_k(model, random):
    shape = [1, side(random, 4, 20)]
    x, count = model.input(shape), int(random.integers(1, 4))
    values, places = model.tensor([1, count]), model.tensor([1, count], "int32")
    model.operator("TOPK_V2", [x, model.constant(np.array(count, np.int32))], [values, places], "TopKV2")
    return [values, places]


def lrn(model, random):
    shape, x = picture(model, random)
    y = model.tensor(shape)
    model.operator("LOCAL_RESPONSE_NORMALIZATION", [x], [y], "LocalResponseNormalization", radius=int(random.integers(1, 3)),
                   bias=1.0, alpha=0.5, beta=0.75)
    return y


def resize(name, options):
    def make(model, random):
        shape, x = picture(model, random)
        size = random.integers(1, 15, 2).tolist()
        aligned, half = [(False, False), (True, False), (False, True)][random.integers(3)]
        y = model.tensor([1, *size, shape[-1]])
        model.operator(name, [x, model.constant(np.array(size, np.int32))], [y], options, alignCorners=aligned,
                       halfPixelCenters=half)
        return y
    return make


def fully_connected(model, random):
    shape, units = some_shape(random), side(random, 1, 7)
    keep = bool(random.integers(2))
    inner = shape[-1] if keep else int(np.prod(shape))
    x = model.input(shape)
    y = model.tensor([*shape[:-1], units] if keep else [1, units])
    model.operator("FULLY_CONNECTED", [x, model.constant(floats(random, units, inner)), model.constant(floats(random, units))],
                   [y], "FullyConnected", keepNumDims=keep, fusedActivationFunction=int(random.integers(2)))
    return y


def batch_mat_mul(model, random):
    batch, rows, inner, columns = 1, side(random), side(random), side(random)
    adj = [bool(random.integers(2)) for _ in range(2)]
    x = model.input([batch, inner, rows] if adj[0] else [batch, rows, inner])
    other = model.input([batch, columns, inner] if adj[1] else [batch, inner, columns])
    y = model.tensor([batch, rows, columns])
    model.operator("BATCH_MATMUL", [x, other], [y], "BatchMatMul", adjX=adj[0], adjY=adj[1])
    return y


def concatenation(model, random):
    shape = some_shape(random)
    axis, parts = int(random.integers(1, len(shape))), []
    for _ in range(int(random.integers(2, 4))):
        own = list(shape)
        own[axis] = int(random.integers(1, 5))
        parts.append((own[axis], model.input(own)))
    y = model.tensor([*shape[:axis], sum(size for size, _ in parts), *shape[axis + 1:]])
    stated = axis - len(shape) if random.integers(2) else axis
    model.operator("CONCATENATION", [part for _, part in parts], [y], "Concatenation", axis=stated)
    return y


def pack(model, random):
    shape = some_shape(random)[:3]
    axis = int(random.integers(1, len(shape) + 1))
    y = model.tensor([*shape[:axis], 2, *shape[axis:]])
    model.operator("PACK", [model.input(shape), model.input(shape)], [y], "Pack", valuesCount=2, axis=axis)
    return y


def unpack(model, random):
    shape = [1, *random.integers(2, 5, int(random.integers(2, 4))).tolist()]
    x, axis = model.input(shape), int(random.integers(1, len(shape)))
    parts = [model.tensor(shape[:axis] + shape[axis + 1:]) for _ in range(shape[axis])]
    model.operator("UNPACK", [x], parts, "Unpack", num=shape[axis], axis=axis)
    return parts


def split(model, random):
    shape = some_shape(random)
    axis = int(random.integers(1, len(shape)))
    shape[axis] = 2 * int(random.integers(1, 4))
    x = model.input(shape)
    parts = [model.tensor([*shape[:axis], shape[axis] // 2, *shape[axis + 1:]]) for _ in range(2)]
    model.operator("SPLIT", [model.constant(np.array(axis, np.int32)), x], parts, "Split", numSplits=2)
    return parts


def split_v(model, random):
    shape = some_shape(random)
    axis = int(random.integers(1, len(shape)))
    sizes = random.integers(1, 4, 3).tolist()
    shape[axis] = sum(sizes)
    x = model.input(shape)
    parts = [model.tensor([*shape[:axis], size, *shape[axis + 1:]]) for size in sizes]
    stated = [*sizes[:2], -1] if random.integers(2) else sizes
    model.operator("SPLIT_V", [x, model.constant(np.array(stated, np.int32)), model.constant(np.array(axis, np.int32))],
                   parts, "SplitV", numSplits=3)
    return parts


def slice_(model, random):
    shape = some_shape(random)
    x, begin = model.input(shape), [int(random.integers(dim)) for dim in shape]
    size = [int(random.integers(1, dim - at + 1)) for dim, at in zip(shape, begin)]
    y = model.tensor(size)
    stated = [-1 if at + own == dim else own for at, own, dim in zip(begin, size, shape)]
    model.operator("SLICE", [x, model.constant(np.array(begin, np.int32)), model.constant(np.array(stated, np.int32))],
                   [y], "Slice")
    return y


def strided_slice(model, random):
    shape = some_shape(random)
    x = model.input(shape)
    begin, end, strides, begins, ends, taken, made = [], [], [], 0, 0, 0, []
    for axis, dim in enumerate(shape):
        way = int(random.integers(5)) if axis else 0
        at, past, step = int(random.integers(dim)), dim, int(random.integers(1, 3))
        if way == 0:
            begins, ends, at, step = begins | 1 << axis, ends | 1 << axis, 0, 1
        elif way == 1:
            taken, past, step = taken | 1 << axis, at + 1, 1
        elif way == 2:
            at, past, step, ends = dim - 1, 0, -1, ends | 1 << axis
        elif way == 3:
            at -= dim
        begin, end, strides = begin + [at], end + [past], strides + [step]
        bound = slice(None, None, step) if way == 0 else slice(at, None if ends >> axis & 1 else past, step)
        if not taken >> axis & 1:
            made.append(len(range(dim)[bound]))
    y = model.tensor(made)
    operands = [x, *(model.constant(np.array(each, np.int32)) for each in (begin, end, strides))]
    model.operator("STRIDED_SLICE", operands, [y], "StridedSlice", beginMask=begins, endMask=ends, shrinkAxisMask=taken)
    return y


def gather(model, random):
    shape = some_shape(random)
    x, axis = model.input(shape), int(random.integers(1, len(shape)))
    places = random.integers(0, shape[axis], int(random.integers(1, 5))).astype(np.int32)
    y = model.tensor([*shape[:axis], len(places), *shape[axis + 1:]])
    model.operator("GATHER", [x, model.constant(places)], [y], "Gather", axis=axis)
    return y


def gather_nd(model, random):
    shape = some_shape(random)
    x, depth, count = model.input(shape), int(random.integers(1, len(shape) + 1)), side(random, 1, 5)
    places = np.stack([random.integers(0, dim, count) for dim in shape[:depth]], 1).astype(np.int32)
    y = model.tensor([count, *shape[depth:]])
    model.operator("GATHER_ND", [x, model.constant(places)], [y], "GatherNd")
    return y


def reverse(model, random):
    shape = some_shape(random)
    axes = random.choice(np.arange(1, len(shape)), int(random.integers(1, len(shape))), replace=False).astype(np.int32)
    x, y = model.input(shape), model.tensor(shape)
    model.operator("REVERSE_V2", [x, model.constant(axes)], [y], "ReverseV2")
    return y


def cumulative_sum(model, random):
    shape = some_shape(random)
    axis = np.array(random.integers(1, len(shape)), np.int32)
    x, y = model.input(shape), model.tensor(shape)
    model.operator("CUMSUM", [x, model.constant(axis)], [y], "Cumsum", exclusive=bool(random.integers(2)),
                   reverse=bool(random.integers(2)))
    return y


def tile(model, random):
    shape = some_shape(random)
    repeats = np.array([1, *random.integers(1, 4, len(shape) - 1)], np.int32)
    x, y = model.input(shape), model.tensor((repeats * shape).tolist())
    model.operator("TILE", [x, model.constant(repeats)], [y], "Tile")
    return y


def comparison(name, options):
    """The one or the other operand, as they compare."""
    def make(model, random):
        shape = some_shape(random)
        # Of few numbers, so that some are the same.
        a, b = (model.tensor(shape) for _ in range(2))
        for x in (a, b):
            model.operator("ROUND", [model.input(shape)], [x])
        chosen, y = model.tensor(shape, "bool"), model.tensor(shape)
        model.operator(name, [a, b], [chosen], options)
        model.operator("SELECT_V2", [chosen, a, b], [y], "SelectV2")
        return y
    return make


def pad(name):
    def make(model, random):
        shape, x = picture(model, random)
        most = 1 if name == "MIRROR_PAD" else 3
        pads = np.array([[0, 0], *random.integers(0, most + 1, [3, 2]).tolist()], np.int32)
        if name == "MIRROR_PAD":
            pads[3] = 0
        y = model.tensor((np.array(shape) + pads.sum(1)).tolist())
        operands = [x, model.constant(pads)]
        if name == "PADV2":
            operands.append(model.constant(np.array(0.75, np.float32)))
        model.operator(name, operands, [y], {"PAD": "Pad", "PADV2": "PadV2", "MIRROR_PAD": "MirrorPad"}[name])
        return y
    return make


def depth_to_space(model, random):
    block = int(random.integers(2, 4))
    shape = [1, side(random), side(random), block * block * side(random, 1, 3)]
    y = model.tensor([1, shape[1] * block, shape[2] * block, shape[3] // block**2])
    model.operator("DEPTH_TO_SPACE", [model.input(shape)], [y], "DepthToSpace", blockSize=block)
    return y


def space_to_depth(model, random):
    block = int(random.integers(2, 4))
    shape = [1, block * side(random, 1, 4), block * side(random, 1, 4), side(random, 1, 4)]
    y = model.tensor([1, shape[1] // block, shape[2] // block, shape[3] * block**2])
    model.operator("SPACE_TO_DEPTH", [model.input(shape)], [y], "SpaceToDepth", blockSize=block)
    return y


def reshape(model, random):
    """What a convolution makes, in other dimensions, and an operator on that."""
    y = conv(model, random)
    shape = model.graph.tensors[y].shape
    made = [[1, -1], [1, shape[1] * shape[2], shape[3]], [1, shape[2], shape[1], shape[3]]][random.integers(3)]
    whole = [int(np.prod(shape)) if dim == -1 else dim for dim in made]
    seen, z = model.tensor(whole), model.tensor(whole)
    if random.integers(2):
        model.operator("RESHAPE", [y, model.constant(np.array(made, np.int32))], [seen], "Reshape")
    else:
        model.operator("RESHAPE", [y], [seen], "Reshape", newShape=made)
    model.operator("LOGISTIC", [seen], [z])
    return z


def squeeze(model, random):
    shape = [1, 1, 1, side(random)]
    x, out, back = model.input(shape), model.tensor([1, shape[3]]), model.tensor([1, 1, shape[3]])
    model.operator("SQUEEZE", [x], [out], "Squeeze", squeezeDims=[1, 2])
    model.operator("EXPAND_DIMS", [out, model.constant(np.array(1, np.int32))], [back], "ExpandDims")
    y = model.tensor(back and [1, 1, shape[3]])
    model.operator("TANH", [back], [y])
    return y


def transpose(model, random):
    y = conv(model, random)
    shape = model.graph.tensors[y].shape
    perm = [0, *(1 + random.permutation(3)).tolist()]
    z = model.tensor([shape[axis] for axis in perm])
    model.operator("TRANSPOSE", [y, model.constant(np.array(perm, np.int32))], [z], "Transpose")
    return z


def shape_of(model, random):
    """A shape that operators compute."""
    shape, x = picture(model, random)
    whole, first, second = model.tensor([4], "int32"), model.tensor([], "int32"), model.tensor([2], "int32")
    model.operator("SHAPE", [x], [whole], "Shape", outType=2)
    bounds = [model.constant(np.array([each], np.int32)) for each in (0, 1, 1)]
    model.operator("STRIDED_SLICE", [whole, *bounds], [first], "StridedSlice", shrinkAxisMask=1)
    rest = model.constant(np.array(-1, np.int32))
    model.operator("PACK", [first, rest], [second], "Pack", valuesCount=2)
    y, z = model.tensor([1, int(np.prod(shape))]), model.tensor([1, int(np.prod(shape))])
    model.operator("RESHAPE", [x, second], [y], "Reshape")
    model.operator("RELU", [y], [z])
    return z


def broadcast_to(model, random):
    shape = [1, side(random), 1, side(random)]
    made = [1, shape[1], side(random), shape[3]]
    y = model.tensor(made)
    model.operator("BROADCAST_TO", [model.input(shape), model.constant(np.array(made, np.int32))], [y], "BroadcastTo")
    return y


def cast(model, random):
    """A constant of integers, as floats."""
    shape, x = picture(model, random)
    made, y = model.tensor([shape[3]]), model.tensor(shape)
    model.operator("CAST", [model.constant(random.integers(-5, 5, shape[3]).astype(np.int32))], [made], "Cast",
                   inDataType=2, outDataType=0)
    model.operator("MUL", [x, made], [y], "Mul")
    return y


def detections(model, random):
    """The end of a detector. Every second one suppresses the boxes of each class by themselves."""
    anchors, classes, boxes = side(random, 5, 40), side(random, 1, 5), side(random, 1, 12)
    distances, scores = model.input([1, anchors, 4]), model.input([1, anchors, classes + int(random.integers(2))])
    middles, sizes = random.uniform(0, 1, [anchors, 2]), random.uniform(0.1, 0.6, [anchors, 2])
    outputs = [model.tensor([1, boxes, 4]), model.tensor([1, boxes]), model.tensor([1, boxes]), model.tensor([1])]
    operands = [distances, scores, model.constant(np.hstack([middles, sizes]).astype(np.float32))]
    model.custom("TFLite_Detection_PostProcess", operands, outputs, max_detections=boxes, max_classes_per_detection=1,
                 detections_per_class=side(random, 1, 12), use_regular_nms=bool(random.integers(2)),
                 nms_score_threshold=float(random.uniform(-0.5, 0.8)), nms_iou_threshold=float(random.uniform(0.1, 0.9)),
                 num_classes=classes, y_scale=10.0, x_scale=10.0, h_scale=5.0, w_scale=5.0)
    return outputs


def those_found(own, theirs):
    """The outputs of a detector without what follows the boxes that it found. LiteRT leaves that as it was."""
    (*_, count), names = theirs.values(), list(theirs)
    if own[-1].tolist() != count.tolist():
        raise Failed(f"{own[-1]} boxes, LiteRT's {count}")
    if any(each[0, int(count[0]):].any() for each in own[:-1]):
        raise Failed("what follows the boxes that were found is not 0")
    cut = [[each[:, :int(count[0])] for each in outputs[:-1]] for outputs in (own, list(theirs.values()))]
    return [*cut[0], own[-1]], dict(zip(names, [*cut[1], count], strict=True))


CASES = {
    "ABS": function("ABS", "Abs"), "ADD": of_two("ADD", "Add", True), "ADD_N": add_n, "ARG_MAX": place_of("ARG_MAX"),
    "ARG_MIN": place_of("ARG_MIN"), "AVERAGE_POOL_2D": pool("AVERAGE_POOL_2D"), "BATCH_MATMUL": batch_mat_mul,
    "BROADCAST_TO": broadcast_to, "CAST": cast, "CEIL": function("CEIL"), "COS": function("COS"), "CUMSUM": cumulative_sum,
    "EQUAL": comparison("EQUAL", "Equal"), "CONCATENATION": concatenation, "CONV_2D": conv,
    "DEPTHWISE_CONV_2D": depthwise, "DEPTH_TO_SPACE": depth_to_space, "DIV": of_two("DIV", "Div", True),
    "ELU": function("ELU"), "EXP": function("EXP", "Exp"), "FLOOR": function("FLOOR"),
    "FLOOR_MOD": of_two("FLOOR_MOD", "FloorMod"), "GATHER_ND": gather_nd, "GREATER": comparison("GREATER", "Greater"),
    "GREATER_EQUAL": comparison("GREATER_EQUAL", "GreaterEqual"), "L2_POOL_2D": pool("L2_POOL_2D"),
    "LESS": comparison("LESS", "Less"), "LESS_EQUAL": comparison("LESS_EQUAL", "LessEqual"),
    "NOT_EQUAL": comparison("NOT_EQUAL", "NotEqual"), "REVERSE_V2": reverse, "SIGN": function("SIGN", "Sign"),
    "SIN": function("SIN"), "TILE": tile,
    "FULLY_CONNECTED": fully_connected, "GATHER": gather, "GELU": function("GELU", "Gelu"),
    "GELU tanh": function("GELU", "Gelu", approximate=True), "HARD_SWISH": function("HARD_SWISH", "HardSwish"),
    "L2_NORMALIZATION": function("L2_NORMALIZATION", "L2Norm"),
    "LEAKY_RELU": function("LEAKY_RELU", "LeakyRelu", alpha=0.3), "LOCAL_RESPONSE_NORMALIZATION": lrn,
    "LOG": function("LOG", positive=True), "LOGISTIC": function("LOGISTIC"), "LOG_SOFTMAX": function("LOG_SOFTMAX", "LogSoftmax"),
    "MAXIMUM": of_two("MAXIMUM", "MaximumMinimum"), "MAX_POOL_2D": pool("MAX_POOL_2D"), "MEAN": reduction("MEAN"),
    "MINIMUM": of_two("MINIMUM", "MaximumMinimum"), "MIRROR_PAD": pad("MIRROR_PAD"), "MUL": of_two("MUL", "Mul", True),
    "NEG": function("NEG", "Neg"), "PACK": pack, "PAD": pad("PAD"), "PADV2": pad("PADV2"), "POW": of_two("POW", "Pow"),
    "PRELU": p_relu, "REDUCE_MAX": reduction("REDUCE_MAX"), "REDUCE_MIN": reduction("REDUCE_MIN"),
    "REDUCE_PROD": reduction("REDUCE_PROD"), "RELU": function("RELU"), "RELU6": function("RELU6"),
    "RELU_0_TO_1": function("RELU_0_TO_1"), "RELU_N1_TO_1": function("RELU_N1_TO_1"), "RESHAPE": reshape,
    "RESIZE_BILINEAR": resize("RESIZE_BILINEAR", "ResizeBilinear"),
    "RESIZE_NEAREST_NEIGHBOR": resize("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighbor"), "ROUND": function("ROUND"),
    "RSQRT": function("RSQRT", positive=True), "SHAPE": shape_of, "SLICE": slice_, "SOFTMAX": function("SOFTMAX", "Softmax", beta=1.0),
    "SOFTMAX beta": function("SOFTMAX", "Softmax", beta=0.5), "SPACE_TO_DEPTH": space_to_depth, "SPLIT": split, "SPLIT_V": split_v,
    "SQRT": function("SQRT", positive=True), "SQUARE": function("SQUARE", "Square"),
    "SQUARED_DIFFERENCE": of_two("SQUARED_DIFFERENCE", "SquaredDifference"), "SQUEEZE": squeeze,
    "STRIDED_SLICE": strided_slice, "SUB": of_two("SUB", "Sub", True), "SUM": reduction("SUM"), "TANH": function("TANH"),
    "TFLite_Detection_PostProcess": detections, "TOPK_V2": top_k, "TRANSPOSE": transpose, "TRANSPOSE_CONV": transpose_conv, "UNPACK": unpack,
}


# Models of one operator of 8-bit integers: each takes their type too.

def scale(random):
    return float(random.uniform(0.01, 0.05))


def point(random, kind):
    bounds = np.iinfo(kind)
    return int(random.integers(bounds.min // 4, bounds.max // 2 + 1))


def integer_input(model, random, kind, shape):
    about = {"scales": scale(random), "points": point(random, kind)}
    return model.input(shape, kind, **about), about


def integer_conv(model, random, kind):
    shape = [1, side(random, 5), side(random, 5), side(random, 1, 6)]
    x, about = integer_input(model, random, kind, shape)
    kernel, stride, dilation, padding, made = of_window(random, shape[1:3])
    filters = side(random, 1, 7)
    weights = random.integers(-127, 128, [filters, *kernel, shape[3]])
    scales = random.uniform(0.002, 0.01, filters if kind == "int8" else 1)
    filter_points = np.zeros(len(scales), int) if kind == "int8" else np.array([128 + int(random.integers(-9, 10))])
    stored = weights if kind == "int8" else np.clip(weights + 128, 0, 255)
    w = model.constant(stored.astype(kind), scales=scales, points=filter_points)
    b = model.constant(random.integers(-900, 900, filters).astype(np.int32), scales=about["scales"] * scales)
    y = model.tensor([1, *made, filters], kind, scales=scale(random) * 2, points=point(random, kind))
    model.operator("CONV_2D", [x, w, b], [y], "Conv2D", padding=padding, strideH=stride[0], strideW=stride[1],
                   dilationHFactor=dilation[0], dilationWFactor=dilation[1], fusedActivationFunction=int(random.integers(4)))
    return y


def integer_depthwise(model, random, kind):
    shape = [1, side(random, 5), side(random, 5), side(random, 1, 6)]
    x, about = integer_input(model, random, kind, shape)
    channels = shape[3]
    weights = random.integers(-127, 128, [1, 3, 3, channels])
    scales = random.uniform(0.002, 0.01, channels if kind == "int8" else 1)
    filter_points = np.zeros(len(scales), int) if kind == "int8" else np.array([120])
    stored = weights if kind == "int8" else np.clip(weights + 128, 0, 255)
    w = model.constant(stored.astype(kind), scales=scales, points=filter_points, axis=3 if kind == "int8" else 0)
    b = model.constant(random.integers(-900, 900, channels).astype(np.int32), scales=about["scales"] * scales)
    y = model.tensor(shape, kind, scales=scale(random) * 2, points=point(random, kind))
    model.operator("DEPTHWISE_CONV_2D", [x, w, b], [y], "DepthwiseConv2D", padding=SAME_PADDING, strideH=1, strideW=1,
                   depthMultiplier=1, fusedActivationFunction=RELU6)
    return y


def integer_fully_connected(model, random, kind):
    inner, units = side(random, 4, 60), side(random, 3, 9)
    x, about = integer_input(model, random, kind, [1, inner])
    weights = random.integers(-127, 128, [units, inner])
    scales = random.uniform(0.002, 0.01, 1)
    stored, zero = (weights, 0) if kind == "int8" else (np.clip(weights + 128, 0, 255), 125)
    w = model.constant(stored.astype(kind), scales=scales, points=zero)
    b = model.constant(random.integers(-900, 900, units).astype(np.int32), scales=about["scales"] * scales)
    y = model.tensor([1, units], kind, scales=scale(random) * 2, points=point(random, kind))
    model.operator("FULLY_CONNECTED", [x, w, b], [y], "FullyConnected", fusedActivationFunction=int(random.integers(2)))
    return y


def integers_of_two(name, options):
    def make(model, random, kind):
        shape = [1, side(random), side(random), side(random, 1, 6)]
        x, _ = integer_input(model, random, kind, shape)
        if random.integers(2):
            other, _ = integer_input(model, random, kind, shape)
        else:
            bounds = np.iinfo(kind)
            other = model.constant(random.integers(bounds.min, bounds.max + 1, shape[3:]).astype(kind),
                                   scales=scale(random), points=point(random, kind))
        y = model.tensor(shape, kind, scales=scale(random) * 2, points=point(random, kind))
        model.operator(name, [x, other], [y], options, fusedActivationFunction=int(random.integers(4)))
        return y
    return make


def integer_pool(name):
    def make(model, random, kind):
        shape = [1, side(random, 4), side(random, 4), side(random, 1, 6)]
        x, about = integer_input(model, random, kind, shape)
        y = model.tensor([1, shape[1] // 2, shape[2] // 2, shape[3]], kind, **about)
        model.operator(name, [x], [y], "Pool2D", padding=VALID_PADDING, strideH=2, strideW=2, filterHeight=2, filterWidth=2)
        return y
    return make


def integer_mean(model, random, kind):
    shape = [1, side(random), side(random), side(random, 1, 6)]
    x, _ = integer_input(model, random, kind, shape)
    y = model.tensor([1, shape[3]], kind, scales=scale(random), points=point(random, kind))
    model.operator("MEAN", [x, model.constant(np.array([1, 2], np.int32))], [y], "Reducer")
    return y


def integer_function(name, a_scale, a_point):
    """A function whose output's scale is fixed; `a_point` is of int8."""
    def make(model, random, kind):
        shape = [1, side(random), side(random), side(random, 2, 6)]
        x, _ = integer_input(model, random, kind, shape)
        y = model.tensor(shape, kind, scales=a_scale, points=a_point + (128 if kind == "uint8" else 0))
        options = {"options": "Softmax", "beta": 1.0} if name == "SOFTMAX" else {}
        model.operator(name, [x], [y], **options)
        return y
    return make


def integer_movement(model, random, kind):
    """Padding, a concat, a reshape: integers stay the same."""
    shape = [1, side(random), side(random), side(random, 1, 4)]
    x, about = integer_input(model, random, kind, shape)
    padded = [1, shape[1] + 1, shape[2] + 2, shape[3]]
    y, twice = model.tensor(padded, kind, **about), model.tensor([*padded[:3], 2 * padded[3]], kind, **about)
    model.operator("PAD", [x, model.constant(np.array([[0, 0], [1, 0], [1, 1], [0, 0]], np.int32))], [y], "Pad")
    model.operator("CONCATENATION", [y, y], [twice], "Concatenation", axis=3)
    flat = model.tensor([1, int(np.prod(padded)) * 2], kind, **about)
    model.operator("RESHAPE", [twice, model.constant(np.array([1, -1], np.int32))], [flat], "Reshape")
    return flat


def integer_requantize(model, random, kind):
    """From floats, to other integers, and to floats and back."""
    shape = [1, side(random), side(random), side(random, 1, 4)]
    x = model.input(shape)
    one = model.tensor(shape, kind, scales=0.0079, points=point(random, kind))
    two = model.tensor(shape, kind, scales=0.013, points=point(random, kind))
    model.operator("QUANTIZE", [x], [one], "Quantize")
    model.operator("QUANTIZE", [one], [two], "Quantize")
    return two


def integer_network(model, random, kind):
    """Convolutions, an addition, a mean and a classifier."""
    x, _ = integer_input(model, random, kind, [1, 16, 16, 3])
    shape = [1, 16, 16, 8]

    def layer(x, before, kernel, name):
        deep = name == "DEPTHWISE_CONV_2D"
        weights = random.integers(-127, 128, [1, *kernel, 8] if deep else [8, *kernel, before])
        scales = random.uniform(0.5, 1, 8 if kind == "int8" else 1) / (40 * np.sqrt(weights[..., 0].size))
        read = model.graph.tensors[x].quantization.scale[0]
        stored, zero = (weights, np.zeros(len(scales), int)) if kind == "int8" else (np.clip(weights + 128, 0, 255), 128)
        w = model.constant(stored.astype(kind), scales=scales, points=zero, axis=3 if deep and kind == "int8" else 0)
        b = model.constant(random.integers(-100, 100, 8).astype(np.int32), scales=read * scales)
        y = model.tensor(shape, kind, scales=0.02, points=point(random, kind))
        fields = {"depthMultiplier": 1} if deep else {}
        model.operator(name, [x, w, b], [y], "DepthwiseConv2D" if deep else "Conv2D", padding=SAME_PADDING, strideH=1,
                       strideW=1, fusedActivationFunction=RELU6 if deep else NONE, **fields)
        return y

    first = layer(x, 3, [3, 3], "CONV_2D")
    second = layer(layer(first, 8, [3, 3], "DEPTHWISE_CONV_2D"), 8, [1, 1], "CONV_2D")
    total = model.tensor(shape, kind, scales=0.03, points=point(random, kind))
    model.operator("ADD", [first, second], [total], "Add")
    third = layer(total, 8, [3, 3], "CONV_2D")
    mean = model.tensor([1, 8], kind, scales=0.02, points=model.graph.tensors[third].quantization.zeroPoint[0])
    model.operator("MEAN", [third, model.constant(np.array([1, 2], np.int32))], [mean], "Reducer")
    y = model.tensor([1, 8], kind, scales=1 / 256, points=-128 if kind == "int8" else 0)
    model.operator("SOFTMAX", [mean], [y], "Softmax", beta=1.0)
    return [y, third]


QUANTIZED = {
    "CONV_2D": integer_conv, "DEPTHWISE_CONV_2D": integer_depthwise, "FULLY_CONNECTED": integer_fully_connected,
    "ADD": integers_of_two("ADD", "Add"), "SUB": integers_of_two("SUB", "Sub"), "MUL": integers_of_two("MUL", "Mul"),
    "AVERAGE_POOL_2D": integer_pool("AVERAGE_POOL_2D"), "MAX_POOL_2D": integer_pool("MAX_POOL_2D"), "MEAN": integer_mean,
    "SOFTMAX": integer_function("SOFTMAX", 1 / 256, -128), "LOGISTIC": integer_function("LOGISTIC", 1 / 256, -128),
    "TANH": integer_function("TANH", 1 / 128, 0), "movement": integer_movement, "QUANTIZE": integer_requantize, "network": integer_network,
}
