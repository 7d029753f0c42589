"""Whole models beside ONNX Runtime."""

import json
import re

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from csdfc import Failed, file_name
from summary import FAILED

# By precision, how far an output may be from ONNX Runtime's at fp32, as a share of its largest element.
TOLERANCES = {"fp32": 1e-4, "half": 2e-2}
ROWS = [["--rows", "none"], ["--rows", "all"], ["--mem", "min"]]
STORAGE = ["tensors", "edges"]
# Models of which the device profile has layers.
JOINT = ["mobilenet_v2_embed", "nsfw_mobilenet_v2"]
DEVICE = "epyc-vm"


def run(tool, summary, folder, only, seed):
    files = sorted(folder.glob("*.onnx"))
    if not files:
        summary.add("models", str(folder), FAILED, "there is no .onnx file in the folder")
    for file in files:
        if not re.search(only, file.stem):
            continue
        precisions = lambda: [note for at in TOLERANCES for note in beside_runtime(tool, file, seed, at)]
        summary.check("models", file.stem, precisions)


def run_emitted(tool, summary, folder, only, seed):
    for file in sorted(folder.glob("*.onnx")):
        if re.search(only, file.stem):
            summary.check("emitted", file.stem, lambda: emitted(tool, file, seed))


def emitted(tool, file, seed):
    """The crate of the smallest plan gives the bytes that `run` gives."""
    session = start(file)
    feeds, names = draw_inputs(session, seed), [output.name for output in session.get_outputs()]
    plan = tool.work / f"{file.stem}.json"
    tool.plan(file, ["--mem", "min"], plan)
    expected = tool.run(plan, feeds, names, tool.work / file.stem)
    made = tool.run_crate(plan, feeds.values(), tool.work / f"{file.stem}-crate")
    for name, one, other in zip(names, expected, made, strict=True):
        if one.shape != other.shape or one.tobytes() != other.tobytes():
            raise Failed(f"{name} is not byte for byte that of run")


def run_joint(tool, summary, folder, only, seed):
    """Plans on a measured device, whose primitives are chosen within little memory, give ONNX Runtime's numbers."""
    for name in JOINT:
        file = folder / f"{name}.onnx"
        if re.search(only, name):
            summary.check("joint", name, lambda: [joint_beside_runtime(tool, file, seed)])


def joint_beside_runtime(tool, file, seed):
    session = start(file)
    feeds, names = draw_inputs(session, seed), [output.name for output in session.get_outputs()]
    plan = tool.work / f"{file.stem}-joint.json"

    def primitives(options):
        tool.plan(file, ["--device", DEVICE, *options], plan)
        made = json.loads(plan.read_text())
        return made["memory"]["total"], {layer["primitive"] for layer in made["cnns"][0]["layers"] if "primitive" in layer}

    least, first = primitives(["--primitives", "fixed", "--mem", "min"])
    budget = least + least // 20
    _, chosen = primitives(["--primitives", "auto", "--mem", str(budget)])
    if chosen <= first:
        raise Failed(f"within {budget} bytes nothing but the first primitives is chosen")
    outputs = tool.run(plan, feeds, names, tool.work / f"{file.stem}-joint")
    differences = [_compare(name, ours, theirs, f"--mem {budget}", "fp32")
                   for name, ours, theirs in zip(names, outputs, session.run(names, feeds), strict=True)]
    return f"{file.stem}, joint: largest difference {max(differences):.1e} of the largest element, with {', '.join(sorted(chosen - first))}"


def beside_runtime(tool, file, seed, precision):
    """Every choice of rows and storage gives the same bytes, and ONNX Runtime's numbers.

    Storage model `edges` makes one layer of fewer operators. So halves are rounded at other places there.
    """
    session = start(file)
    feeds = draw_inputs(session, seed)
    names = [output.name for output in session.get_outputs()]
    expected = session.run(names, feeds)
    first = None
    worst = 0.0
    for storage in STORAGE:
        first = None if precision == "half" else first
        for rows in ROWS:
            options = [*rows, "--storage", storage, "--precision", precision]
            said = " ".join(options)
            plan = tool.work / f"{file.stem}.json"
            tool.plan(file, options, plan)
            if tool.plan_only:
                continue
            outputs = tool.run(plan, feeds, names, tool.work / file.stem)
            if first is not None:
                for name, one, other in zip(names, first, outputs, strict=True):
                    if one.tobytes() != other.tobytes():
                        raise Failed(f"{said}: {name} is not byte for byte that of other rows")
                continue
            first = outputs
            for name, ours, theirs in zip(names, outputs, expected, strict=True):
                worst = max(worst, _compare(name, ours, theirs, said, precision))
    return [] if tool.plan_only else [f"{file.stem}, {precision}: largest difference {worst:.1e} of the largest element"]


def _compare(name, ours, theirs, said, precision):
    if ours.shape != theirs.shape:
        raise Failed(f"{said}: {name} is {list(ours.shape)}, ONNX Runtime's {list(theirs.shape)}")
    if not np.isfinite(ours).all():
        raise Failed(f"{said}: {name} has elements that are not finite")
    largest = float(np.abs(theirs).max())
    difference = float(np.abs(ours - theirs).max()) / max(largest, np.finfo(np.float32).tiny)
    if not difference <= TOLERANCES[precision]:
        raise Failed(f"{said}: {name} differs by {difference:.2e} of its largest element")
    # Scores of classes; of an image or an embedding the greatest element says something all the same.
    axis = -1 if theirs.ndim <= 3 else None
    if precision == "half" and theirs.ndim > 2:
        # Of many places, some have scores that halves do not tell apart.
        return difference
    if not np.array_equal(ours.argmax(axis), theirs.argmax(axis)):
        raise Failed(f"{said}: the greatest element of {name} is another")
    return difference


def write_layers(file, folder, seed):
    """Every tensor of a model that ONNX Runtime can show, under its name, and the inputs."""
    model = onnx.load(file)
    known = {output.name for output in model.graph.output}
    inferred = onnx.shape_inference.infer_shapes(model)
    types = {value.name: value.type.tensor_type.elem_type for value in inferred.graph.value_info}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in known and types.get(name, TensorProto.FLOAT) in (TensorProto.FLOAT, TensorProto.INT64):
                model.graph.output.append(helper.make_tensor_value_info(name, types.get(name, TensorProto.FLOAT), None))
    session = start(model.SerializeToString(), optimise=False)
    feeds = draw_inputs(session, seed)
    names = [output.name for output in session.get_outputs()]
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in [*feeds.items(), *zip(names, session.run(names, feeds), strict=True)]:
        np.save(folder / file_name(name), array)
    for name in feeds:
        print(f"--input {name}={folder / file_name(name)}")


# How ONNX Runtime says that a model is none that it can read.
Unread = onnxruntime.capi.onnxruntime_pybind11_state.Fail


def start(model, optimise=True, threads=0):
    """A session of ONNX Runtime's, with its own fusions or without."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def draw_inputs(session, seed):
    """Inputs from -1 to 1; a dimension left open is 1, as csdfc takes a batch."""
    random = np.random.default_rng(seed)
    feeds = {}
    for value in session.get_inputs():
        dims = [dim if isinstance(dim, int) and dim > 0 else 1 for dim in value.shape]
        feeds[value.name] = random.uniform(-1, 1, dims).astype(np.float32)
    return feeds
