"""Small networks drawn from a seed, beside ONNX Runtime: operators, views, branches, opsets and ways to plan."""

import re
import secrets
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import models
import rounding
from csdfc import Failed, Refused
from networks import Network
from summary import FAILED, PASSED, REFUSED

MODES = [["--rows", "none"], ["--rows", "all"], ["--mem", "min"]]
# The search is nearly all the time that a network takes: most have a short one.
SHORT = ["--budget", "100"]

# So many pass at least; what is refused is seldom drawn.
MAX = 0.9
UNREAD = "ONNX Runtime cannot read it"
# What is not compared, and what the guide does not claim, by the words in which it is refused.
UNCLAIMED = [UNREAD, r"csdfc takes at most 256", r"its input is a batch of \d+ images"]


def run(tool, summary, only, seed, fresh, count):
    """Half the networks from one seed, half from another, fresh unless it is given."""
    fresh = secrets.randbits(40) if fresh is None else fresh
    half = count - count // 2
    print(f"drawn: {half} networks from seed {seed} on, {count // 2} from {fresh} on (--seed, --fresh-seed)", flush=True)
    names = [f"drawn{seed + i}" for i in range(half)] + [f"drawn{fresh + i}" for i in range(count // 2)]
    names = [name for name in names if re.search(only, name)]
    operators, passed = Counter(), 0
    with ThreadPoolExecutor(2) as pool:
        every = pool.map(lambda name: _network(tool, name), names)
        for number, (name, (state, why, drawn)) in enumerate(zip(names, every, strict=True), 1):
            summary.add("drawn", name, state, why)
            if state == PASSED:
                operators.update(set(drawn.operators()))
                passed += 1
            elif state == FAILED:
                print(f"{name}: {why}", flush=True)
            if number % 500 == 0:
                print(f"drawn: {number} of {len(names)}", flush=True)
    if passed < MAX * len(names):
        summary.add("drawn", "all", FAILED, f"of {len(names)} networks {passed} pass; the others are refused or fail")
    summary.count("Networks drawn, of each operator", operators)


def _network(tool, name):
    drawn = Network(int(name.removeprefix("drawn")))
    try:
        beside_runtime(tool, name, drawn)
    except Refused as why:
        if any(re.search(words, str(why)) for words in UNCLAIMED):
            return REFUSED, str(why), drawn
        return FAILED, f"refused: {why} ({drawn.words()})", drawn
    except Failed as why:
        return FAILED, f"{why} ({drawn.words()})", drawn
    return PASSED, "", drawn


def beside_runtime(tool, name, drawn):
    """Every mode gives the same bytes, and ONNX Runtime's numbers."""
    file = tool.work / f"{name}.onnx"
    model = drawn.model()
    onnx.save(model, file)
    # ONNX Runtime's own fusions refuse some networks (a Pad into a pool).
    runtime_model = _for_runtime(model, drawn)
    try:
        session = models.start(runtime_model.SerializeToString(), optimise=False, threads=1)
    except models.Unread as why:
        # It infers wrong dimensions after a reshape to what is computed.
        raise Refused(f"{UNREAD}: {why}") from why
    feeds = models.draw_inputs(session, 1)
    expected = session.run(drawn.outputs, feeds)
    modes = [*MODES, []] if drawn.seed % 16 == 0 else [*MODES[:2], MODES[2] + SHORT]
    storage = ["--storage", "edges"] if drawn.seed % 3 == 0 else []
    first = None
    csdfc = tool.in_one_process()
    plan, folder = tool.work / f"{name}.json", tool.work / name
    for mode in modes:
        said = " ".join([*mode, *storage])
        try:
            csdfc.plan_alone(file, [*mode, *storage], plan)
            outputs = csdfc.run(plan, feeds, drawn.outputs, folder)
        except Failed as why:
            raise Failed(f"{said}: {why}") from why
        if first is None:
            first = outputs
            compare(drawn, runtime_model, feeds, outputs, expected)
        for output, one, other in zip(drawn.outputs, first, outputs, strict=True):
            if one.tobytes() != other.tobytes():
                raise Failed(f"{said}: {output} is not byte for byte that of {' '.join(MODES[0])}")
    # What passed leaves nothing.
    shutil.rmtree(folder)
    file.unlink()
    plan.unlink()


def _for_runtime(model, drawn):
    """The model in operators that ONNX Runtime has: its Swish is x · sigmoid(αx) in three, whose tensors get shapes like
    those drawn. What a NonMaxSuppression keeps is followed by rows of -1, up to as many as `drawn.kept` says."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    for node in model.graph.node:
        if node.op_type == "NonMaxSuppression":
            made.graph.node.extend(_with_more_rows(made.graph, node, drawn.kept[node.output[0]]))
            continue
        if node.op_type != "Swish":
            made.graph.node.append(node)
            continue
        (x,), (y,) = node.input, node.output
        drawn.shapes |= {f"{y}.scaled": drawn.shapes[y], f"{y}.gate": drawn.shapes[y]}
        alpha = [attribute.f for attribute in node.attribute] or [1.0]
        made.graph.initializer.append(helper.make_tensor(f"{y}.alpha", TensorProto.FLOAT, [1], alpha))
        made.graph.node.extend([
            helper.make_node("Mul", [x, f"{y}.alpha"], [f"{y}.scaled"]),
            helper.make_node("Sigmoid", [f"{y}.scaled"], [f"{y}.gate"]),
            helper.make_node("Mul", [x, f"{y}.gate"], [y]),
        ])
    return made


def _with_more_rows(graph, node, rows):
    (y,) = node.output
    for name, values in [("rows", [rows, 3]), ("none", [0, 0]), ("more", -1)]:
        graph.initializer.append(numpy_helper.from_array(np.array(values, np.int64), f"{y}.{name}"))
    suppressed = helper.make_node(node.op_type, node.input, [f"{y}.kept"])
    suppressed.attribute.extend(node.attribute)
    return [
        suppressed,
        helper.make_node("Shape", [f"{y}.kept"], [f"{y}.shape"]),
        helper.make_node("Sub", [f"{y}.rows", f"{y}.shape"], [f"{y}.after"]),
        helper.make_node("Concat", [f"{y}.none", f"{y}.after"], [f"{y}.pads"], axis=0),
        helper.make_node("Pad", [f"{y}.kept", f"{y}.pads", f"{y}.more"], [y]),
    ]


def compare(drawn, model, feeds, outputs, expected):
    """Every element is as near as rounding explains."""
    allowed = None
    np.seterr(invalid="ignore")
    for at, (name, ours, theirs) in enumerate(zip(drawn.outputs, outputs, expected, strict=True)):
        if ours.shape != theirs.shape:
            raise Failed(f"{name} is {list(ours.shape)}, ONNX Runtime's {list(theirs.shape)}")
        wrong = ~(np.abs(ours - theirs) <= 1e-5 * np.abs(theirs))
        # What is no number, or beyond all, is so in both.
        wrong &= ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
        if not wrong.any():
            continue
        allowed = allowed or rounding.allowed(drawn, model, feeds, expected)
        wrong &= ~(np.abs(ours - theirs) <= allowed[at])
        if wrong.any():
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise Failed(f"{name}{list(place)} is {ours[place]}, ONNX Runtime's {theirs[place]}, allowed {allowed[at][place]:.1e}; "
                         f"{wrong.sum()} of {wrong.size} elements")
