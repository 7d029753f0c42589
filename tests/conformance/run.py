#!/usr/bin/env python3
"""csdfc beside ONNX Runtime, the ONNX operator suite and LiteRT. See README.md in this folder.

Needs Python 3.11 or later and nothing else: packages that are missing come from PyPI into target/conformance/venv.
"""

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "conformance"
PARTS = ["models", "emitted", "joint", "quantized", "trained", "written", "graphs", "light", "suite", "drawn", "spelled", "streams", "tflite", "states", "reported"]
PACKAGES = ["numpy==2.4.6", "onnx==1.23.2", "onnxruntime==1.31.1", "ai-edge-litert==2.3.0", "pillow==13.0.0"]
# Cases that pass at least where a whole part runs: one that is no longer looked at is a failure too.
FLOORS = {"light": {"light (plans)": 9}, "tflite": {"tflite operators": 288, "tflite integers": 30}, "states": {"states": 44},
          "suite": {"node": 1230, "pytorch-converted": 69, "pytorch-operator": 35}}
# How `--prepare` ends where the packages cannot be had.
UNAVAILABLE = 75


def enter_environment(packages=tuple(PACKAGES), name="venv"):
    """Goes on in an environment that has the packages at their versions, made if need be."""
    if all(installed(*package.split("==")) for package in packages):
        return
    venv = WORK / name
    python = venv / "bin" / "python"
    if Path(sys.prefix) == venv:
        sys.exit(f"{venv} lacks packages: remove it and start again")
    complete = venv / "complete"
    # An environment of other packages, made before, is made anew.
    if not complete.exists() or complete.read_text().split() != list(packages):
        subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
        if subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=False).returncode != 0:
            sys.exit(UNAVAILABLE)
        complete.write_text("\n".join(packages) + "\n")
    os.execv(python, [str(python), *sys.argv])


def installed(package, version):
    try:
        return importlib.metadata.version(package) == version
    except importlib.metadata.PackageNotFoundError:
        return False


def arguments():
    parser = argparse.ArgumentParser(description="csdfc beside ONNX Runtime and the ONNX operator suite")
    parser.add_argument("--csdfc", type=Path, metavar="PATH", help="the command; built in release if not given")
    parser.add_argument("--csdfc-many", type=Path, metavar="PATH",
                        help="the command many times in one process, for networks that are drawn; built if not given")
    parser.add_argument("--models", type=Path, metavar="DIR", default=ROOT.parent / "shared" / "models",
                        help="folder of .onnx models that are run beside ONNX Runtime")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; repeatable")
    parser.add_argument("--only", metavar="REGEX", default="", help="only models and cases whose name matches")
    parser.add_argument("--prepare", action="store_true",
                        help=f"only make the environment that the others run in; {UNAVAILABLE} if it cannot be had")
    parser.add_argument("--plan-only", action="store_true", help="plan and check, run nothing")
    parser.add_argument("--update", action="store_true", help="write refused.json anew from what is refused now")
    parser.add_argument("--layers", type=Path, metavar="MODEL",
                        help="only write every tensor of this model, as ONNX Runtime computes it, for --compare-layers")
    parser.add_argument("--seed", type=int, default=1, help="of inputs and of half the networks that are drawn (default 1)")
    parser.add_argument("--fresh-seed", type=int, metavar="SEED",
                        help="of the other half of the networks (a new one each time, which is printed)")
    parser.add_argument("--count", type=int, default=500, help="networks that are drawn (default 500); a fourth of it in two spellings")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where --layers writes")
    given = parser.parse_args()
    if given.layers and not given.output:
        parser.error("--layers needs --output DIR")
    return given


def command(given):
    """The csdfc to test."""
    if given.csdfc:
        if not given.csdfc.exists():
            sys.exit(f"{given.csdfc}: there is no such file")
        return given.csdfc.resolve()
    subprocess.run(["cargo", "build", "--release", "--locked", "--package", "csdfc"], cwd=ROOT, check=True)
    return ROOT / "target" / "release" / "csdfc"


def many():
    """The command many times in one process, from the sources that are here."""
    subprocess.run(["cargo", "build", "--release", "--locked", "--package", "csdfc-tests", "--bin", "csdfc-many"],
                   cwd=ROOT, check=True)
    return ROOT / "target" / "release" / "csdfc-many"


def main():
    given = arguments()
    enter_environment()
    import drawn
    import graphs
    import litert
    import models
    import quantized
    import reported
    import spelled
    import states
    import streams
    import suite
    import trained
    import written
    from csdfc import Csdfc
    from summary import Summary

    if given.prepare:
        return 0
    if given.layers:
        models.write_layers(given.layers, given.output, given.seed)
        return 0
    given.models = given.models.resolve()
    tool = Csdfc(command(given), WORK / "work", given.plan_only)
    parts = given.part or PARTS
    floors = {} if given.only else {name: floor for part in parts for name, floor in FLOORS.get(part, {}).items()}
    summary = Summary(Path(__file__).parent / "refused.json", given.update and not given.only and not given.part, floors)
    if "models" in parts:
        models.run(tool, summary, given.models, given.only, given.seed)
    if "emitted" in parts and not given.plan_only:
        models.run_emitted(tool, summary, given.models, given.only, given.seed)
    if "joint" in parts and not given.plan_only:
        models.run_joint(tool, summary, given.models, given.only, given.seed)
    if "quantized" in parts and not given.plan_only:
        quantized.run(tool, summary, given.models, given.only, given.seed)
    if "trained" in parts and not given.plan_only:
        trained.run(tool, summary, given.models, given.only, given.seed)
    if "written" in parts and not given.plan_only:
        written.run(tool, summary, given.models, given.only, given.seed)
    if "graphs" in parts:
        graphs.run(tool, summary, given.only, given.seed)
    if "light" in parts:
        suite.run_light(tool, summary, given.only)
    if "suite" in parts:
        suite.run(tool, summary, given.only)
    if {"drawn", "spelled", "streams"} & set(parts):
        tool.many = given.csdfc_many.resolve() if given.csdfc_many else many()
    if "drawn" in parts:
        drawn.run(tool, summary, given.only, given.seed, given.fresh_seed, given.count)
    if "spelled" in parts:
        # Each network is two, planned in five ways, and larger than those of `drawn`.
        spelled.run(tool, summary, given.only, given.seed, given.fresh_seed, given.count // 4)
    if "streams" in parts:
        streams.run(tool, summary, given.only, given.seed, given.fresh_seed, given.count)
    if "reported" in parts:
        reported.run(tool, summary, ROOT.parent / "shared" / "cases", given.only)
    if "states" in parts and not given.plan_only:
        states.run(tool, summary, given.only, given.seed)
    if "tflite" in parts:
        litert.run(tool, summary, given.only, given.seed)
    (WORK / "summary.json").write_text(json.dumps(summary.data(), indent=1) + "\n")
    (WORK / "summary.md").write_text(summary.markdown())
    print(summary.markdown())
    # Last, since the end of a long output is what is read.
    for line in summary.failures():
        print(line)
    return 0 if summary.is_good() else 1


if __name__ == "__main__":
    sys.exit(main())
