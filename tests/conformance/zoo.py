#!/usr/bin/env python3
"""csdfc beside ONNX Runtime on architectures that people bring: which of them plan, pass the check and give the same numbers.

    python3 tests/conformance/zoo.py --csdfc PATH [--only REGEX]

Needs Python 3.11 or later and nothing else: packages that are missing come from PyPI into target/conformance/zoo-venv (about
5 GB, since PyPI's torch has CUDA with it). `architectures.py` makes the networks, and torch writes each with both of its
exporters. The files are kept in target/conformance/zoo/models, and made anew if they are removed. The exit code is 1 if fewer
architectures pass than `--least` says, with each exporter that can write them.
"""

import argparse
import json
import os
import re
import resource
import statistics
import sys
import time
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from run import WORK, enter_environment

PACKAGES = ("numpy==2.4.6", "onnx==1.23.2", "onnxruntime==1.31.1", "onnxscript==0.7.2", "torch==2.15.0", "torchvision==0.29.2",
            "timm==1.0.31")
EXPORTERS = {"dynamo": True, "script": False}
# How a model is planned: the first plan gives the numbers that are compared, the others must give its bytes.
PLANS = {"default": [], "rows": ["--rows", "all"], "least": ["--mem", "min"]}
# The most by which an element may differ, as a share of the largest.
ALLOWED = 1e-4
# The longest that a call of csdfc may take, in seconds.
SECONDS = 120


@dataclass
class Result:
    """What became of one model of one exporter. `why` is empty if all is well."""

    name: str
    exporter: str
    why: str = ""
    error: float = 0.0
    bytes: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    # Median milliseconds of a frame, the crate's and ONNX Runtime's.
    frame: tuple[float, float] | None = None

    def line(self) -> str:
        said = [f"{self.name:20} {self.exporter:7} {'FAILED' if self.why else 'ok':6}"]
        if self.bytes:
            said.append(f"error {self.error:.1e}  bytes {'/'.join(map(str, self.bytes.values()))}")
        if self.seconds:
            said.append(f"seconds {'/'.join(f'{seconds:.1f}' for seconds in self.seconds.values())}")
        return "  ".join([*said, self.why])


def export(name: str, exporter: str, file: Path) -> None:
    """Writes an architecture as ONNX, once."""
    import torch
    from architectures import ARCHITECTURES, seeded

    torch.set_num_threads(1)
    if file.exists():
        return
    # Some layers have a form of one operator, for inference, which the older exporter does not know.
    torch.backends.mha.set_fastpath_enabled(False)
    net, inputs = seeded(ARCHITECTURES[name])
    options = {"external_data": False, "verbose": False} if EXPORTERS[exporter] else {}
    beside = file.with_suffix(".part")
    with warnings.catch_warnings(), torch.no_grad(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(net, inputs, str(beside), dynamo=EXPORTERS[exporter], **options)
    beside.rename(file)


def compare(tool, file: Path, result: Result, emit: bool = False) -> None:
    """Plans, checks and runs a model in each way, beside ONNX Runtime. With `emit`, the crate of the fastest plan is built,
    gives the same bytes, and is timed."""
    import numpy as np
    from csdfc import Failed, Refused
    from models import draw_inputs, start

    session = start(file, threads=1)
    feeds, names = draw_inputs(session, 1), [output.name for output in session.get_outputs()]
    wanted, first, whys = session.run(names, feeds), None, []
    for kind, options in PLANS.items():
        plan = tool.work / f"{file.stem}-{kind}.json"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            tool.plan(file, options, plan)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            result.seconds[kind] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            result.bytes[kind] = json.loads(plan.read_text())["memory"]["total"]
            outputs = tool.run(plan, feeds, names, tool.work / file.stem)
            for output, ours, theirs in zip(names, outputs, wanted, strict=True):
                if ours.shape != theirs.shape:
                    raise Failed(f"{output} is {list(ours.shape)}, ONNX Runtime's {list(theirs.shape)}")
                error = difference(ours, theirs.astype(np.float64))
                # What is not a number is larger than anything that is allowed.
                result.error = error if not error <= result.error else result.error
                if not error <= ALLOWED:
                    raise Failed(f"{output} differs by {error:.1e} of its largest element")
            if first is None:
                first = outputs
            if emit and kind == "default":
                inputs = json.loads(plan.read_text())["cnns"][0]["inputs"]
                outputs = [*outputs, *tool.run_crate(plan, [feeds[name] for name in inputs], tool.work / "crate", optimisation=3)]
                result.frame = frame(tool, tool.work / "crate", session, names, feeds)
            if any(one.tobytes() != other.tobytes() for one, other in zip([*first, *first], outputs, strict=False)):
                raise Failed("other bytes than those of the first plan")
        except (Refused, Failed) as why:
            why = str(why)
            # A model that csdfc cannot read is refused in each way with the same words.
            if all(not said.endswith(why) for said in whys):
                whys.append(f"{kind}: {why}")
    result.why = "; ".join(whys)


def pin(file: Path, folder: Path) -> None:
    """Keeps a model for the tests of the repository, with what ONNX Runtime makes of inputs that are easy to write down."""
    import numpy as np
    import onnx
    from models import draw_inputs, start

    session = start(file, threads=1)
    feeds = {name: numbered(array.shape) for name, array in draw_inputs(session, 1).items()}
    names = [output.name for output in session.get_outputs()]
    name = file.stem.rsplit("-", 1)[0]
    folder.mkdir(parents=True, exist_ok=True)
    model = onnx.load(file)
    # Where in its program a node comes from.
    for part in [*model.graph.node, *model.graph.value_info]:
        del part.metadata_props[:]
    onnx.save(model, folder / f"{name}.onnx")
    for number, array in enumerate(session.run(names, feeds)):
        np.save(folder / f"{name}.{number}.npy", array.astype(np.float32))


def numbered(dims):
    """Numbers from -1 to 1 that follow from their places. The tests in tests/command/exported.rs make the same."""
    import numpy as np

    places = np.arange(np.prod(dims), dtype=np.int64)
    return ((places * 7919 % 2003) / 1001.0 - 1.0).astype(np.float32).reshape(dims)


def frame(tool, crate: Path, session, names, feeds) -> tuple[float, float]:
    """The median times of a frame, the crate's and ONNX Runtime's, one worker each, in turns."""
    ours, theirs = [], []
    for _ in range(5):
        ours.append(tool.time_crate(crate, 9))
        for _ in range(9):
            before = time.perf_counter()
            session.run(names, feeds)
            theirs.append(1e3 * (time.perf_counter() - before))
    return statistics.median(ours), statistics.median(theirs)


def grouped(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def table(results: list[Result], machine: str) -> str:
    """A page of what was found."""
    lines = ["# A zoo of architectures", "",
             "Made by `python3 tests/conformance/zoo.py --csdfc PATH --emit --table docs/zoo/README.md`. The architectures are those of",
             "`tests/conformance/architectures.py`, with seeded weights, as PyTorch's two exporters write them. Each is planned in three",
             "ways, checked, and run beside ONNX Runtime. *Error* is the largest difference, as a share of the largest element. *Memory*",
             "is all that a plan takes, its parameters included: the fastest plan, and the smallest. *Planning* is the time for the",
             "smallest, which the search takes most of. *Frame*: the crate of the fastest plan is built, gives the same bytes, and",
             f"takes this many times as long as ONNX Runtime, on one thread of this processor: {machine}.",
             "Crates are built of one exporter's models.", "",
             "| architecture | exporter | error | memory, fastest | memory, smallest | planning | frame |",
             "| --- | --- | ---: | ---: | ---: | ---: | ---: |"]
    for result in results:
        if result.why:
            lines.append(f"| {result.name} | {result.exporter} | {result.why[:100]} | | | | |")
            continue
        ratio = f"{result.frame[0] / result.frame[1]:.2f}" if result.frame else ""
        lines.append(f"| {result.name} | {result.exporter} | {result.error:.0e} | {grouped(result.bytes['default'])} | {grouped(result.bytes['least'])} | "
                     f"{result.seconds['least']:.1f} s | {ratio} |")
    ratios = [result.frame[0] / result.frame[1] for result in results if result.frame]
    names = {result.name for result in results}
    failed = {result.name for result in results if result.why}
    median = f" The median of *frame* is {statistics.median(ratios):.2f}." if ratios else ""
    lines += ["", f"{len(names - failed)} of {len(names)} architectures pass.{median}"]
    return "\n".join(lines) + "\n"


def difference(ours, theirs) -> float:
    """The largest difference, as a share of the largest element. The rows of a detector's output, of at most 8 numbers, may be
    in another order, since rows of almost equal scores change places: then each row counts with the nearest of the other's."""
    import numpy as np

    largest = max(np.abs(theirs).max(), 1e-30)
    error = np.abs(ours - theirs).max()
    if not error <= ALLOWED * largest and theirs.ndim >= 2 and theirs.shape[-1] <= 8 and len(theirs) <= 1000:
        rows = [each.reshape(-1, theirs.shape[-1]) for each in (ours, theirs)]
        apart = np.abs(rows[0][:, None] - rows[1][None]).max(-1)
        error = max(apart.min(0).max(), apart.min(1).max())
    return float(error / largest)


def machine() -> str:
    """What the processor calls itself."""
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else "processor without a name"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csdfc", type=Path, metavar="PATH", required=True, help="the command to test")
    parser.add_argument("--only", metavar="REGEX", default="", help="only architectures whose name matches")
    parser.add_argument("--exporter", action="append", choices=EXPORTERS, help="only this exporter; repeatable")
    parser.add_argument("--folder", type=Path, metavar="DIR", default=WORK / "zoo", help="where models and plans are written")
    parser.add_argument("--emit", action="store_true", help="build the crate of each fastest plan, compare its bytes and time it")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write a page of what was found")
    parser.add_argument("--pin", type=Path, metavar="DIR", help="only keep models in this folder, with ONNX Runtime's outputs")
    parser.add_argument("--least", type=int, default=0, metavar="N", help="fail if fewer architectures pass")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    enter_environment(PACKAGES, "zoo-venv")
    os.environ["OMP_NUM_THREADS"] = "1"
    import csdfc
    from architectures import ARCHITECTURES

    csdfc.SECONDS = SECONDS
    folder = given.folder.resolve()
    models = folder / "models"
    models.mkdir(parents=True, exist_ok=True)
    tool = csdfc.Csdfc(given.csdfc.resolve(), folder / "work", plan_only=False)
    results: list[Result] = []
    for name in ARCHITECTURES:
        if not re.search(given.only, name):
            continue
        for exporter in given.exporter or EXPORTERS:
            result, file = Result(name, exporter), models / f"{name}-{exporter}.onnx"
            try:
                export(name, exporter, file)
            except Exception as why:  # Exporters fail in many ways, which are no fault of csdfc's.
                print(f"{name:20} {exporter:7} not exported: {type(why).__name__}: {str(why).splitlines()[0][:200]}", flush=True)
                continue
            if given.pin:
                pin(file, given.pin)
                continue
            compare(tool, file, result, given.emit and exporter == next(iter(given.exporter or EXPORTERS)))
            results.append(result)
            print(result.line(), flush=True)
    if given.pin:
        return 0
    (folder / "zoo.json").write_text(json.dumps([vars(result) for result in results], indent=1) + "\n")
    if given.table:
        given.table.parent.mkdir(parents=True, exist_ok=True)
        given.table.write_text(table(results, machine()))
    names = {result.name for result in results}
    failed = {result.name for result in results if result.why}
    print(f"\n{len(names) - len(failed)} of {len(names)} architectures pass; failed: {', '.join(sorted(failed)) or 'none'}")
    return 0 if len(names) - len(failed) >= given.least else 1


if __name__ == "__main__":
    sys.exit(main())
