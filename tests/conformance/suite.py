"""The ONNX operator suite: the cases that the onnx package makes and ships, and its networks of constants."""

import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.loader import load_model_tests
from onnx.numpy_helper import to_array

from cases import Unclaimed, as_runtime, prepare
from csdfc import Failed, Refused, Wrong
from summary import FAILED, PASSED, REFUSED, UNCLAIMED

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
ROWS = [["--rows", "none"], ["--rows", "all"]]
STORAGE = ["tensors", "edges"]


def run(tool, summary, only):
    """Every case of the suite gets a line in the summary."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [(f"{case.name}", "node", case, case.model, case.data_sets) for case in collect_testcases(None)]
        for kind in ("pytorch-converted", "pytorch-operator"):
            for case in load_model_tests(kind=kind):
                cases.append((case.name, kind, case, onnx.load(f"{case.model_dir}/model.onnx"), None))
    cases = [case for case in cases if re.search(only, case[0])]
    with ThreadPoolExecutor() as pool:
        every = pool.map(lambda number: _case(tool, f"case{number}", *cases[number]), range(len(cases)))
        for (name, kind, *_), states in zip(cases, every, strict=True):
            for form, state, why, notes in states:
                summary.add(kind, name + form, state, why, notes)


def run_light(tool, summary, only):
    """Parsing, planning and checking alone: these networks give a constant whatever their input."""
    for file in sorted(LIGHT.glob("*.onnx")):
        if re.search(only, file.stem):
            summary.check("light (plans)", file.stem, lambda: _light(tool, file))


def _light(tool, file):
    for options in _choices():
        tool.plan(file, options, tool.work / "light.json")


def _choices():
    return [[*rows, "--storage", storage] for storage in STORAGE for rows in ROWS]


def _case(tool, file, name, kind, case, model, data_sets):
    """What came of each form in which the case is run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            forms = prepare(model, _data(model, case) if data_sets is None else data_sets, case.rtol, case.atol)
    except Unclaimed as why:
        return [("", UNCLAIMED, str(why), [])]
    states = []
    for number, form in enumerate(forms):
        state, why = PASSED, ""
        try:
            try:
                _form(tool, f"{file}_{number}", form, case)
            except Wrong:
                other = as_runtime(form)
                if other is None:
                    raise
                _form(tool, f"{file}_{number}", other, case)
                form = other
        except Refused as refusal:
            state, why = REFUSED, str(refusal)
        except Failed as failure:
            state, why = FAILED, f"{failure} (work/{file}_{number})"
        states.append((form.name, state, why, form.notes))
    return states


def _form(tool, name, form, case):
    """Plans and runs every step in every way. What failed stays in the work folder."""
    for number, step in enumerate(form.steps):
        file = tool.work / f"{name}.{number}.onnx"
        onnx.save(step.model, file)
        first = None
        for options in _choices():
            said = " ".join(options)
            plan = file.with_suffix(".json")
            tool.plan(file, options, plan)
            if tool.plan_only:
                continue
            held = [{name: array.astype(np.float32) for name, array in feeds.items()} for feeds in step.feeds]
            outputs = [tool.run(plan, feeds, step.outputs, tool.work / name) for feeds in held]
            for ours, theirs in zip(outputs, step.expected, strict=True):
                for output, a, b in zip(step.outputs, ours, theirs, strict=True):
                    _compare(output, a, b, case, said)
            every = [array.tobytes() for arrays in outputs for array in arrays]
            if first is not None and every != first:
                raise Failed(f"{said}: not byte for byte that of {' '.join(_choices()[0])}")
            first = every
        file.unlink()
        plan.unlink()


def _compare(name, ours, theirs, case, said):
    # Integers but indices are floats.
    if ours.dtype == np.float32:
        theirs = theirs.astype(np.float32)
    if case.name.startswith("test_nonmaxsuppression"):
        # After the boxes that are kept, csdfc has rows of -1.
        more = len(ours) - len(theirs)
        theirs = np.concatenate([theirs, np.full((max(more, 0), 3), -1)])
    if ours.shape != theirs.shape:
        raise Failed(f"{said}: {name} is {list(ours.shape)}, not {list(theirs.shape)}")
    atol = case.atol
    if case.name.startswith(("test_dft", "test_stft")):
        # Sums of what cancels.
        atol = max(atol, 1e-6 * np.abs(theirs).max())
    if not np.allclose(ours, theirs, rtol=case.rtol, atol=atol, equal_nan=True):
        with np.errstate(invalid="ignore"):
            wrong = ~np.isclose(ours, theirs, rtol=case.rtol, atol=atol, equal_nan=True)
        index = tuple(int(i[0]) for i in np.nonzero(wrong))
        raise Wrong(f"{said}: {name} is wrong in {wrong.sum()} of {wrong.size} elements, "
                    f"first at {index}: {ours[index]}, not {theirs[index]}")


def _data(model, case):
    """The stored data sets of a case: arrays in the order of the graph's inputs and outputs."""
    def arrays(folder, kind, values):
        found = []
        for i in range(len(values)):
            file = folder / f"{kind}_{i}.pb"
            if file.exists():
                found.append(to_array(onnx.load_tensor(file)))
        return found

    folders = sorted(Path(case.model_dir).glob("test_data_set_*"))
    return [(arrays(folder, "input", model.graph.input), arrays(folder, "output", model.graph.output))
            for folder in folders]
