"""Selections of primitives, predicted and run: PBQP's optimum, the papers' baselines, and ONNX Runtime, on one thread.

    python selection.py OUT --csdfc PATH [--only NAME,NAME] [--rounds N]

In each round, csdfc measures all primitives of a network on this machine once, into a profile of the round's own, OUT/ROUND.ron,
and selects by each method. The plans then run in turn, beside ONNX Runtime on the same network. So what a round predicts and what
runs in it are near in time. It needs numpy and onnxruntime. Nothing else should run on the machine.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import numpy
import onnxruntime

# How csdfc calls the methods, and what a table does.
METHODS = {
    "sum2d": "sum2d everywhere",
    "families": "best family",
    "local-optimal": "CHW only",
    "exact": "PBQP optimum",
}
# Frames of a round take about so many milliseconds, and are so many at most.
ROUND_MS = 1500
MAX_FRAMES = 30


def run(*argv):
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}\n{done.stdout}{done.stderr}")
    return done.stdout


def frames_of(milliseconds):
    return max(1, min(MAX_FRAMES, round(ROUND_MS / milliseconds)))


def selected(csdfc, device, at, method):
    """Selects by a method. Returns the predicted milliseconds and the primitives by layer; None if nothing is selected."""
    argv = [csdfc, "select", at("app.ron"), "--device", device, "--threads", "1", "--method", method, "--format", "json"]
    done = subprocess.run([*argv, "--plan-out", at(f"{method}.json")], capture_output=True, text=True)
    if done.returncode == 2:
        return None
    if done.returncode != 0:
        sys.exit(done.stderr)
    answer = json.loads(done.stdout)
    return {"predicted_ms": answer["time"] / 1e3, "choice": answer["choice"], "optimal": answer["optimal"]}


def ran(csdfc, plan, frames):
    """Runs a plan. Returns the median milliseconds of a frame."""
    # A single frame has no median, but the times of its layers.
    how = ["--frames", str(frames)] if frames > 1 else ["--profile"]
    cnn = json.loads(run(csdfc, "run", plan, "--random", "1", *how, "--format", "json"))["cnns"][0]
    return cnn["milliseconds"] if frames > 1 else sum(layer["milliseconds"] for layer in cnn["profile"])


def counted(csdfc, plan):
    """Runs a frame of a plan. Returns the primitive that fired for each layer but inputs, as `run` counts it."""
    text = run(csdfc, "run", plan, "--random", "1", "--profile", "--format", "json")
    layers = json.loads(text)["cnns"][0]["profile"]
    return {layer["layer"]: layer["primitive"] for layer in layers if layer["operator"] != "input" and layer["firings"]}


def session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    made = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = {
        tensor.name: numpy.random.default_rng(1).uniform(-1, 1, tensor.shape).astype(numpy.float32)
        for tensor in made.get_inputs()
    }

    def frame():
        start = time.perf_counter()
        made.run(None, feeds)
        return (time.perf_counter() - start) * 1e3

    frame()
    return frame


def is_as_chosen(csdfc, plan, choice):
    """Whether just the chosen primitives fire, beside conversions."""
    fired = counted(csdfc, plan)
    chosen = {layer: primitive for layer, primitive in choice.items() if primitive not in ("input", "output")}
    others = [primitive for layer, primitive in fired.items() if layer not in chosen]
    is_complete = {layer: fired.get(layer) for layer in chosen} == chosen
    return is_complete and all(primitive.startswith("convert-") for primitive in others)


def bench_round(args, at, device, frame):
    """A round of a network: profile, selections, runs. Returns what each method predicts and takes, and ONNX Runtime."""
    start = time.perf_counter()
    run(args.csdfc, "profile", at("app.ron"), "--threads", "1", "--rounds", "1", "--device-out", device, "-q")
    result = {"profile_s": time.perf_counter() - start}
    found = {method: selected(args.csdfc, device, at, method) for method in METHODS}
    found = {method: selection for method, selection in found.items() if selection}
    for method, selection in found.items():
        plan, predicted = at(f"{method}.json"), selection["predicted_ms"]
        is_counted = is_as_chosen(args.csdfc, plan, selection["choice"])
        result[method] = {**selection, "is_counted": is_counted, "run_ms": ran(args.csdfc, plan, frames_of(predicted))}
    frames = frames_of(found["exact"]["predicted_ms"])
    result["onnxruntime"] = {"run_ms": statistics.median(frame() for _ in range(frames))}
    return result


def bench(args, name):
    at = lambda end: os.path.join(args.out, f"{name}.{end}")
    # Storage model `edges` keeps concats and additions as layers of their own, as the papers do.
    with open(at("app.ron"), "w") as file:
        file.write(f'(cnns: [(model: "builtin:{name}")], storage: edges)\n')
    run(args.csdfc, "inspect", f"builtin:{name}", "--onnx", at("onnx"))
    frame = session(at("onnx"))
    device = lambda at_round: os.path.join(args.out, f"{at_round}.ron")
    return [bench_round(args, at, device(at_round), frame) for at_round in range(args.rounds)]


def table(name, rounds):
    lines = [
        f"## {name}",
        "",
        "| | predicted, ms | run, ms | predicted / run | PBQP optimum / this | only these primitives fired |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    middle = statistics.median
    for method in [*METHODS, "onnxruntime"]:
        if not all(method in one for one in rounds):
            continue
        all_of = [one[method] for one in rounds]
        ratios = [one["exact"]["run_ms"] / one[method]["run_ms"] for one in rounds]
        row = [METHODS.get(method, "ONNX Runtime"), "", f"{middle(one['run_ms'] for one in all_of):.2f}", ""]
        row += [f"{middle(ratios):.3f}", ""]
        if method in METHODS:
            row[1] = f"{middle(one['predicted_ms'] for one in all_of):.2f}"
            row[3] = f"{middle(one['predicted_ms'] / one['run_ms'] for one in all_of):.2f}"
            row[5] = "yes" if all(one["is_counted"] for one in all_of) else "NO"
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--csdfc", required=True)
    parser.add_argument("--only", default="alexnet,vgg16,googlenet,resnet50,squeezenet1_0")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    args.out = os.path.abspath(args.out)
    os.makedirs(args.out, exist_ok=True)
    results = {}
    for name in args.only.split(","):
        results[name] = bench(args, name)
        with open(os.path.join(args.out, "results.json"), "w") as file:
            json.dump(results, file, indent=2)
        with open(os.path.join(args.out, "results.md"), "w") as file:
            file.write("".join(table(name, result) for name, result in results.items()))
        print(table(name, results[name]), end="", flush=True)


main()
