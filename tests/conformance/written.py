"""Models that csdfc writes, beside ONNX Runtime: built-in networks, and models that csdfc quantized."""

import re
import subprocess

import numpy as np
import onnx
from onnx import TensorProto, helper

import models
from csdfc import Failed, Refused

# Every operator that built-in networks have.
BUILT_IN = ["lenet5", "resnet8", "mobilenet_v1_0.25", "squeezenet1_0", "googlenet", "densenet121", "efficientnet_b0"]
# Frames that a model is calibrated with.
FRAMES = 4
# The least share of 8-bit elements that are the same; the others differ by a step.
SAME = 0.999


def run(tool, summary, folder, only, seed):
    cases = [(f"builtin:{name}", lambda name=name: built_in(tool, name, seed)) for name in BUILT_IN]
    cases += [(f"{file.stem}, quantized by csdfc", lambda file=file: quantized(tool, file, seed))
              for file in sorted(folder.glob("*.onnx"))]
    for case, check in cases:
        if re.search(only, case):
            summary.check("written", case, check)


def call(tool, *arguments):
    ended = subprocess.run([tool.program, "-q", *map(str, arguments)], capture_output=True, text=True, check=False)
    if ended.returncode == 1:
        raise Refused(ended.stderr)
    if ended.returncode != 0:
        raise Failed(f"{arguments[0]} ends with {ended.returncode}: {ended.stderr}")


def checked(file):
    try:
        onnx.checker.check_model(str(file), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as why:
        raise Failed(f"onnx.checker refuses it: {why}") from why


def built_in(tool, name, seed):
    """The written file is valid, and csdfc and ONNX Runtime compute the same from it."""
    file = tool.work / f"{name}.onnx"
    call(tool, "inspect", f"builtin:{name}", "--onnx", file)
    checked(file)
    return models.beside_runtime(tool, file, seed, "fp32")


def quantized(tool, file, seed):
    """The written file is valid, and from csdfc's integers before a layer ONNX Runtime makes csdfc's integers after it.

    It computes with floats between conversions here: its products of 8-bit weights saturate on processors without
    instructions for them.
    """
    made = tool.work / f"{file.stem}.csdfc.onnx"
    call(tool, "quantize", file, "-o", made, "--random", FRAMES)
    checked(made)
    feeds = models.draw_inputs(models.start(made), seed)
    plan = tool.work / "written.json"
    tool.plan(made, ["--rows", "none"], plan)
    ours = {name: array for name, array in tool.dump(plan, feeds, tool.work / "written").items() if array.dtype == np.uint8}
    same = total = 0
    for tensor, theirs in from_integers(made, feeds, ours).items():
        difference = np.abs(ours[tensor].astype(int).reshape(theirs.shape) - theirs.astype(int))
        if difference.max() > 1:
            raise Failed(f"{tensor} differs by {difference.max()} steps")
        same, total = same + np.count_nonzero(difference == 0), total + difference.size
    if not total or same < SAME * total:
        raise Failed(f"{total - same} of {total} 8-bit elements differ")
    return [f"{file.stem}, quantized by csdfc: {total - same} of {total} 8-bit elements differ, by a step"]


def from_integers(made, feeds, given):
    """The tensors of integers as ONNX Runtime makes each from those given."""
    model = onnx.load(made)
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
              for value in onnx.shape_inference.infer_shapes(model).graph.value_info}
    wanted = [node.output[0] for node in model.graph.node if node.op_type == "QuantizeLinear" and node.output[0] in given]
    feeds = dict(feeds)
    for tensor in wanted:
        for node in model.graph.node:
            node.input[:] = [f"{name}, given" if name == tensor else name for name in node.input]
        # csdfc makes an image of one row as one of one column.
        array = given[tensor].reshape(shapes.get(tensor, given[tensor].shape))
        feeds[f"{tensor}, given"] = array
        model.graph.input.append(
            helper.make_tensor_value_info(f"{tensor}, given", TensorProto.UINT8, array.shape))
        model.graph.output.append(helper.make_empty_tensor_value_info(tensor))
    session = models.start(model.SerializeToString(), optimise=False)
    feeds = {value.name: feeds[value.name] for value in session.get_inputs()}
    return dict(zip(wanted, session.run(wanted, feeds), strict=True))
