"""Emitted crates beside ONNX Runtime and tract, one thread each: CPU time of a frame, memory, start-up, build time.

    python bench.py MODELS OUT --csdfc PATH [--tract PATH] [--rounds N] [--frames N] [--only NAME,NAME]

MODELS is a folder of .onnx files with one float32 input (export.py makes it). See README.md beside this file for what
is measured and how. It needs numpy, onnx and onnxruntime; cargo for the crates.
"""
import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
HELLO = """fn main() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    println!("{}", status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim());
}
"""


def measured(argv):
    """CPU seconds, wall seconds and output of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(argv, capture_output=True, text=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}\n{done.stdout}{done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, wall, done.stdout


def plan(csdfc, model, path, *options):
    """Makes a plan, and returns its memory."""
    done = subprocess.run([csdfc, "plan", model, *options, "-o", path], capture_output=True, text=True)
    if done.returncode not in (0, 2):
        sys.exit(done.stderr)
    with open(path) as file:
        return json.load(file)["memory"]


def plans(csdfc, model, out, name):
    """The plans of a model: nothing by parts, everything by parts, and halfway between the two by memory."""
    paths = {kind: os.path.join(out, f"{name}-{kind}.json") for kind in ("none", "mid", "all")}
    memory = {kind: plan(csdfc, model, paths[kind], "--rows", kind) for kind in ("none", "all")}
    between = (memory["none"]["total"] + memory["all"]["total"]) // 2
    memory["mid"] = plan(csdfc, model, paths["mid"], "--mem", str(between))
    return {kind: (paths[kind], memory[kind]) for kind in paths}


def crate(csdfc, path, folder):
    """Emits and builds a crate; returns its program and the build's CPU and wall seconds."""
    name = os.path.basename(folder).replace("_", "-")
    name = name if name[0].isalpha() else "net-" + name
    measured([csdfc, "emit", path, "-o", folder, "--crate-name", name])
    target = os.path.join(folder, "target")
    subprocess.run(["rm", "-rf", target], check=True)
    build = ["cargo", "build", "--release", "--quiet", "--manifest-path", os.path.join(folder, "Cargo.toml")]
    cpu, wall, _ = measured([*build, "--target-dir", target])
    return os.path.join(target, "release", name), {"cpu_s": cpu, "wall_s": wall}


def figures(out):
    """Memory in bytes and seconds to the first output, as the programs print them."""
    found = {}
    for key, pattern in (("bare", r"^bare (\d+)"), ("peak", r"^peak(?: memory:)? +(\d+)")):
        match = re.search(pattern, out, re.MULTILINE)
        if match:
            found[key] = int(match[1]) * 1024
    return found


def bench(args, name, bare):
    model = os.path.join(args.models, name + ".onnx")
    image = os.path.join(args.out, name + ".npy")
    import onnx

    dims = onnx.load(model, load_external_data=False).graph.input[0].type.tensor_type.shape.dim
    numpy.save(image, numpy.ones([dim.dim_value for dim in dims], numpy.float32))
    result = {"runners": {}}
    runners = {"onnxruntime": lambda frames: [sys.executable, os.path.join(HERE, "ort.py"), model, str(frames)]}
    if args.tract:
        runners["tract"] = lambda frames: [args.tract, model, str(frames)]
    for kind, (path, memory) in plans(args.csdfc, model, args.out, name).items():
        program, build = crate(args.csdfc, path, os.path.join(args.out, f"{name}-{kind}"))
        runners[kind] = lambda frames, program=program: [program, image, "--frames", str(frames)]
        result["runners"][kind] = {"plan": memory, "build": build}
    rounds = []
    for _ in range(args.rounds):
        times = {}
        for runner, command in runners.items():
            one, wall, out = measured(command(1))
            all_frames, _, out = measured(command(1 + args.frames))
            frame = (all_frames - one) / args.frames
            # The first frame of a process that does nothing else is its start-up and a frame.
            times[runner] = {"frame_s": frame, "start_cpu_s": one - frame, "start_wall_s": wall - frame, **figures(out)}
        rounds.append(times)
    for runner in runners:
        entry = result["runners"].setdefault(runner, {})
        own = [times[runner] for times in rounds]
        entry["frame_ms"] = statistics.median(one["frame_s"] for one in own) * 1e3
        ratios = [times[runner]["frame_s"] / times["onnxruntime"]["frame_s"] for times in rounds]
        entry["ratio"] = statistics.median(ratios)
        entry["start_cpu_ms"] = min(one["start_cpu_s"] for one in own) * 1e3
        entry["start_wall_ms"] = min(one["start_wall_s"] for one in own) * 1e3
        entry["peak_bytes"] = max(one["peak"] for one in own)
        entry["beyond_bytes"] = entry["peak_bytes"] - own[0].get("bare", bare)
        if "plan" in entry:
            plan_memory = entry["plan"]
            external = plan_memory["external"]
            held = plan_memory["total"] + external["inputs"] + external["outputs"]
            entry["over_plan_bytes"] = entry["peak_bytes"] - held
    return result


def table(results):
    lines = []
    for name, result in results["models"].items():
        lines.append(name)
        lines.append("  runner        frame ms   ratio   start ms   peak MB   beyond MB   over plan MB   build s (CPU)")
        for runner, entry in result["runners"].items():
            row = f"  {runner:12} {entry['frame_ms']:9.2f} {entry['ratio']:7.2f} {entry['start_wall_ms']:10.1f}"
            row += f" {entry['peak_bytes'] / 1e6:9.1f} {entry['beyond_bytes'] / 1e6:11.1f}"
            if "plan" in entry:
                build = entry["build"]
                row += f" {entry['over_plan_bytes'] / 1e6:14.2f}   {build['wall_s']:.1f} ({build['cpu_s']:.1f})"
            lines.append(row)
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models")
    parser.add_argument("out")
    parser.add_argument("--csdfc", required=True)
    parser.add_argument("--tract")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--frames", type=int, default=20)
    parser.add_argument("--only", default="mobilenet_v2,resnet50,squeezenet1_0,efficientnet_b0")
    args = parser.parse_args()
    args.out = os.path.abspath(args.out)
    os.makedirs(args.out, exist_ok=True)
    source = os.path.join(args.out, "bare.rs")
    with open(source, "w") as file:
        file.write(HELLO)
    program = os.path.join(args.out, "bare")
    measured(["rustc", "-O", source, "-o", program])
    bare = int(measured([program])[2].split()[0]) * 1024
    results = {"bare_bytes": bare, "rounds": args.rounds, "frames": args.frames, "models": {}}
    for name in args.only.split(","):
        results["models"][name] = bench(args, name, bare)
        with open(os.path.join(args.out, "results.json"), "w") as file:
            json.dump(results, file, indent=2)
        with open(os.path.join(args.out, "results.txt"), "w") as file:
            file.write(table(results))
    print(table(results), end="")


main()
