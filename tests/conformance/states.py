"""Models whose state goes out of a frame and comes into the next: csdfc keeps it, ONNX Runtime gets it handed back."""

import re

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from csdfc import Failed, taken
from flat import Model
from litert import computed, interpreter
from wheels import fetched

# A public voice-activity network, as it is published and in its other files: how each is planned.
PACKAGE = ("silero-vad==6.2.3", "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8")
SHAPES = ["--shape", "input=1,576", "--shape", "state=2,1,128"]
RATE = ["--value", "sr=16000"]
NETWORKS = {"silero_vad": RATE, "silero_vad_16k_op15": RATE, "silero_vad_op18_ifless": RATE, "silero_vad_half": [],
            "silero_vad_openvino_16k": []}
# Frames of sound, and of each model that is drawn.
HEARD, FRAMES = 120, 25
DRAWN = 24
# The most by which an element may differ, as a share of the largest. The sounds of the network are near 0 and 1.
ALLOWED = 1e-4


def run(tool, summary, only, seed):
    for number in range(DRAWN):
        case = f"states {number}"
        if re.search(only, case):
            summary.check("states", case, lambda: _drawn(tool, [seed, number]))
    kinds = {"variables": lambda *given: _variables("float32", *given), "variables of int8": lambda *given: _variables("int8", *given),
             "SVDF": _svdf, "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm}
    for number, (kind, make) in enumerate(list(kinds.items()) * 5):
        case = f"{kind} {number}"
        if re.search(only, case):
            summary.check("states", case, lambda: _beside_litert(tool, make, np.random.default_rng([seed, number])))
    chosen = [name for name in NETWORKS if re.search(only, name)]
    files = fetched(tool, *PACKAGE, ".onnx") if chosen else {}
    if files is None:
        print(f"SKIPPED: networks of {PACKAGE[0]}: the package cannot be had")
        return
    for name in chosen:
        summary.check("states", name, lambda: _heard(tool, files[name], [*SHAPES, *NETWORKS[name]]))


def _session(file):
    options = onnxruntime.SessionOptions()
    # It warns of constants that no node uses.
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(file, options)


def _heard(tool, file, options):
    """Noise, silence and a voice's harmonics, frame by frame."""
    random = np.random.default_rng(1)
    time = np.arange(HEARD * 576) / 16000
    voice = sum(np.sin(2 * np.pi * 120 * n * time) / n for n in range(1, 9)) * (np.sin(2 * np.pi * 3 * time) > 0)
    sound = (0.02 * random.standard_normal(time.size) + 0.2 * voice).astype(np.float32).reshape(HEARD, 1, 576)
    sound[60:70] = 0
    session = _session(file)
    fixed = {"sr": np.array(16000, np.int64)} if any(i.name == "sr" for i in session.get_inputs()) else {}
    state, wanted = np.zeros((2, 1, 128), np.float32), []
    for frame in sound:
        heard, state = session.run(None, {"input": frame, "state": state, **fixed})[:2]
        wanted.append(heard)
    _compare(tool, file, [*options, "--state", "stateN:state"], {"input": sound}, {"output": np.array(wanted)})


def _drawn(tool, seed):
    """A recurrent layer of one step, whose states are inputs and outputs, between two dense layers."""
    random = np.random.default_rng(seed)
    kind, gates = [("RNN", 1), ("GRU", 3), ("LSTM", 4)][seed[1] % 3]
    inner, size = int(random.integers(1, 9)), int(random.integers(1, 9))
    floats = lambda *dims: random.uniform(-1, 1, dims).astype(np.float32)
    constants = {"a": floats(inner, inner), "w": floats(1, gates * size, inner), "r": floats(1, gates * size, size),
                 "b": floats(1, 2 * gates * size), "d": floats(size, 2)}
    states = ["h", "c"] if kind == "LSTM" else ["h"]
    attributes = {"hidden_size": size}
    if kind == "GRU":
        attributes["linear_before_reset"] = int(random.integers(0, 2))
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["p"]),
        helper.make_node(kind, ["p", "w", "r", "b", "", *states], ["s", *[f"{state}_out" for state in states]], **attributes),
        helper.make_node("MatMul", ["s", "d"], ["y"]),
    ]
    value = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    inputs = [value("x", [1, 1, inner]), *[value(state, [1, 1, size]) for state in states]]
    outputs = [value("y", [1, 1, 1, 2]), *[value(f"{state}_out", [1, 1, size]) for state in states]]
    initializers = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "states", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    file = tool.work / "states.onnx"
    onnx.save(model, file)
    session = _session(file)
    kept = {state: np.zeros((1, 1, size), np.float32) for state in states}
    frames, wanted = floats(FRAMES, 1, 1, inner), []
    for frame in frames:
        y, *after = session.run(None, {"x": frame, **kept})
        kept = dict(zip(states, after, strict=True))
        wanted.append(y)
    pairs = [word for state in states for word in ("--state", f"{state}_out:{state}")]
    _compare(tool, file, pairs, {"x": frames}, {"y": np.array(wanted)})


def _beside_litert(tool, make, random):
    """A TFLite model that keeps something, frame by frame."""
    model = Model()
    y, kind = make(model, random)
    content = model.write([y])
    file = tool.work / "kept.tflite"
    file.write_bytes(content)
    made = interpreter(content)
    (shape,) = (tuple(detail["shape"]) for detail in made.get_input_details())
    (name,) = (detail["name"] for detail in made.get_output_details())
    if kind == "int8":
        frames = random.integers(-128, 128, (FRAMES, *shape)).astype(np.int8)
    else:
        frames = random.uniform(-1, 1, (FRAMES, *shape)).astype(np.float32)
    wanted = [computed(made, {"x": frame})[name] for frame in frames]
    _compare(tool, file, [], {"x": frames.astype(np.float32)}, {name: np.array(wanted, dtype=np.float32)})


def _variables(kind, model, random):
    """The frames before, in a variable, as streaming Keras layers have it."""
    rows, width, about = int(random.integers(2, 6)), int(random.integers(1, 7)), {}
    if kind == "int8":
        about = {"scales": 0.05, "points": int(random.integers(-20, 20))}
    # The integer that stands for 0, or another number that is the same everywhere.
    first = about.get("points", 0.25)
    x = model.input([1, 1, width], kind, name="x", **about)
    handle = model.variable("ring", np.full((1, rows, width), first, dtype=kind))
    before, both, after, y = (model.tensor([1, count, width], kind, **about) for count in (rows, rows + 1, rows, rows))
    model.operator("READ_VARIABLE", [handle], [before], "ReadVariable")
    model.operator("CONCATENATION", [before, x], [both], "Concatenation", axis=1)
    bounds = [model.constant(np.array(bound, dtype=np.int32)) for bound in ([0, 1, 0], [1, rows, width])]
    model.operator("SLICE", [both, *bounds], [after], "Slice")
    model.operator("ASSIGN_VARIABLE", [handle, after], [], "AssignVariable")
    model.operator("MAXIMUM", [after, before], [y], "MaximumMinimum")
    return y, kind


def _svdf(model, random):
    inner, rank, units, memory = (int(random.integers(1, most)) for most in (8, 3, 6, 7))
    floats = lambda *dims: model.constant(random.uniform(-1, 1, dims).astype(np.float32))
    x = model.input([1, inner], name="x")
    weights = [floats(units * rank, inner), floats(units * rank, memory)]
    bias = floats(units) if random.integers(2) else -1
    state = model.tensor([1, units * rank * memory])
    model.graph.tensors[state].isVariable = True
    y = model.tensor([1, units])
    model.operator("SVDF", [x, *weights, bias, state], [y], "SVDF", rank=rank, fusedActivationFunction=int(random.integers(2)))
    return y, "float32"


def _lstm(model, random):
    steps, inner, size = (int(random.integers(1, most)) for most in (5, 7, 7))
    floats = lambda *dims: model.constant(random.uniform(-1, 1, dims).astype(np.float32))
    is_time_major = bool(random.integers(2))
    x = model.input([steps, 1, inner] if is_time_major else [1, steps, inner], name="x")
    weights = [floats(size, inner) for _ in range(4)] + [floats(size, size) for _ in range(4)]
    peepholes = [floats(size) for _ in range(3)] if random.integers(2) else [-1] * 3
    biases = [floats(size) for _ in range(4)]
    states = [model.tensor([1, size]) for _ in range(2)]
    for state in states:
        model.graph.tensors[state].isVariable = True
    y = model.tensor([steps, 1, size] if is_time_major else [1, steps, size])
    model.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *weights, *peepholes, *biases, -1, -1, *states, -1, -1, -1, -1], [y],
                   "UnidirectionalSequenceLSTM", fusedActivationFunction=4, timeMajor=is_time_major)
    return y, "float32"


def _compare(tool, file, options, feeds, wanted):
    """Plans in two ways, and runs all frames of each in one call."""
    plan, first = tool.work / "states.json", None
    for rows in [["--rows", "none"], ["--mem", "min"]]:
        tool.plan(file, [*options, *rows], plan)
        words = []
        for name, frames in feeds.items():
            frames.astype(taken(plan, name)).tofile(tool.work / f"{name}.raw")
            words += ["--input", f"{name}={tool.work / name}.raw"]
        for name in wanted:
            words += ["--output", f"{name}={tool.work / name}.raw"]
        tool._call("run", plan, *words)
        ours = {name: np.fromfile(tool.work / f"{name}.raw", np.float32) for name in wanted}
        for name, array in wanted.items():
            theirs = array.ravel()
            if ours[name].shape != theirs.shape:
                raise Failed(f"{name} has {ours[name].size} elements, and should have {theirs.size}")
            error = np.abs(ours[name] - theirs).max() / np.abs(theirs).max()
            if not error <= ALLOWED:
                raise Failed(f"{name} differs by {error:.1e} of its largest element with {' '.join(rows)}")
        bits = b"".join(array.tobytes() for array in ours.values())
        if first is not None and bits != first:
            raise Failed(f"other bytes with {' '.join(rows)}")
        first = bits
