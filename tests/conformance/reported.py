"""Small models that failed in users' hands, in `../shared/cases`, and the right numbers beside them."""

import json
import re
from pathlib import Path

import numpy as np

from csdfc import Failed, file_name

# Errors as a share of the largest element; of what is computed on 16-bit floats or 8-bit integers, by folder.
ALLOWED = 1e-4
ROUNDED = {"09_float16_bfloat16_weights": 5e-3, "15_weight_only_int8": 5e-3, "14_uint8_weights_zero_point_not_128": 2e-2,
           "21_missing_tflite_operators": 5e-3}
# The most bytes that `--mem min` may take, by case: 1.2 times those of a friendlier spelling.
MAX = {
    "11_lines_as_images_of_one_row/image_1xL": 11_755,
    "11_lines_as_images_of_one_row/keras_conv1d_tflite": 11_755,
    "11_lines_as_images_of_one_row/unsqueeze_conv_squeeze": 11_755,
    "12_reshape_transpose_idioms/channel_shuffle": 100_000,
    "12_reshape_transpose_idioms/space_to_depth": 69_000,
    "12_reshape_transpose_idioms/upsample_by_expand": 349_000,
    "13_matmul_on_channels_last_image/convnext_matmul": 136_473,
    "14_uint8_weights_zero_point_not_128/conv_zp121": 27_000,
    "25_global_pool_keeps_the_whole_map/conv_conv_gap": 40_000,
    "27_mem_argmax_keepdims0/seg_argmax": 27_700,
    "28_mem_line_over_4096/audio5000": 132_710,
    "33_shared_initialisers_stored_twice/head_over_three_levels": 60_000,
    "33_shared_initialisers_stored_twice/siamese": 100_000,
}


def run(tool, summary, folder, only):
    for model in sorted([*folder.rglob("*.onnx"), *folder.rglob("*.tflite")]):
        case = str(model.relative_to(folder).with_suffix("")).removesuffix("/model")
        if re.search(only, case) and not case.startswith("00_"):
            summary.check("reported", case, lambda model=model, case=case: _right(tool, model, case))


def _right(tool, model, case):
    given, wanted = _arrays(model, "in"), _arrays(model, "out" if model.stem == "model" else "want")
    plan, folder = tool.work / "reported.json", tool.work / "reported"
    tool.plan(model, ["--mem", "min"], plan)
    planned = json.loads(plan.read_text())
    total, most = planned["memory"]["total"], MAX.get(case, float("inf"))
    if total > most:
        raise Failed(f"--mem min takes {total} bytes; {most:.0f} are enough")
    if not wanted:
        return
    (network,) = planned["cnns"]
    inputs, names = network["inputs"], [output["name"] for output in network["outputs"]]
    feeds = dict(zip(inputs, _in_order(inputs, given), strict=True))
    outputs = tool.run(plan, feeds, names, folder)
    allowed = ROUNDED.get(case.split("/")[0], ALLOWED)
    for name, ours, theirs in zip(names, outputs, _in_order(names, wanted), strict=True):
        if ours.shape != theirs.shape:
            raise Failed(f"{name} is {list(ours.shape)}, and should be {list(theirs.shape)}")
        error = np.abs(ours.astype(np.float64) - theirs).max() / max(np.abs(theirs).max(), 1e-9)
        if not error <= allowed:
            raise Failed(f"{name} differs by {error:.1e} of its largest element")


def _arrays(model, kind):
    """The arrays beside a model, by the name or the number and name that their files have."""
    if model.stem == "model":
        files = sorted(model.parent.glob(f"{kind}_*.npy"))
        return {file.stem.removeprefix(f"{kind}_"): np.load(file) for file in files}
    files = sorted(model.parent.glob(f"{model.stem}.{kind}.*.npy"))
    return {file.stem.removeprefix(f"{model.stem}.{kind}."): np.load(file) for file in files}


def _in_order(names, arrays):
    """The arrays of these names; as their files are ordered where the names do not say."""
    if len(names) != len(arrays):
        raise Failed(f"it has {', '.join(names)}, and not {', '.join(arrays)}")
    labels = [Path(file_name(name)).stem for name in names]
    by_name = [arrays[label] for label in labels if label in arrays]
    return by_name if len(by_name) == len(names) else list(arrays.values())
