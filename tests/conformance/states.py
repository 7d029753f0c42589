"""Models whose state goes out of a frame and comes into the next: csdfc keeps it, ONNX Runtime gets it handed back."""

import re

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from csdfc import Failed
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
    for number, kind in enumerate(["float32", "int8"] * 4):
        case = f"variables of {kind} {number}"
        if re.search(only, case):
            summary.check("states", case, lambda: _variables(tool, kind, [seed, number]))
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


def _variables(tool, kind, seed):
    """A TFLite model that keeps the frames before in a variable, as streaming Keras layers do, beside LiteRT."""
    random = np.random.default_rng(seed)
    rows, width = int(random.integers(2, 6)), int(random.integers(1, 7))
    model, about = Model(), {}
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
    scaled = model.constant(np.array([0.5], dtype=np.float32)) if kind == "float32" else after
    model.operator("MUL" if kind == "float32" else "MAXIMUM", [after, scaled], [y], "Mul" if kind == "float32" else "MaximumMinimum")
    content = model.write([y])
    file = tool.work / "variables.tflite"
    file.write_bytes(content)
    made = interpreter(content)
    if kind == "int8":
        frames = random.integers(-128, 128, (FRAMES, 1, 1, width)).astype(np.int8)
    else:
        frames = random.uniform(-1, 1, (FRAMES, 1, 1, width)).astype(np.float32)
    (name,) = (detail["name"] for detail in made.get_output_details())
    wanted = [computed(made, {"x": frame})[name] for frame in frames]
    _compare(tool, file, [], {"x": frames.astype(np.float32)}, {name: np.array(wanted, dtype=np.float32)})


def _compare(tool, file, options, feeds, wanted):
    """Plans in two ways, and runs all frames of each in one call."""
    plan, first = tool.work / "states.json", None
    for rows in [["--rows", "none"], ["--mem", "min"]]:
        tool.plan(file, [*options, *rows], plan)
        words = []
        for name, frames in feeds.items():
            frames.tofile(tool.work / f"{name}.f32")
            words += ["--input", f"{name}={tool.work / name}.f32"]
        for name in wanted:
            words += ["--output", f"{name}={tool.work / name}.f32"]
        tool._call("run", plan, *words)
        ours = {name: np.fromfile(tool.work / f"{name}.f32", np.float32) for name in wanted}
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
