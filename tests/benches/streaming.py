"""Emitted crates that read their weights from a store, beside the one that keeps them in memory: is the plan's rate kept?

    python3 streaming.py APP OUT --csdfc PATH [--mem 2MB] [--bandwidths 500,2000,8000] [--latency 20] [--rounds N] [--frames N]

APP has one CNN of one input, which may be a pipeline. csdfc profiles it on this machine. For each bandwidth, in MB a second,
it is planned for a store of that bandwidth, and the crate's program runs on a store that waits as long as such a store takes.
Rounds are interleaved. It needs cargo, and a core for the thread that reads.
"""
import argparse
import json
import os
import re
import statistics
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def run(*argv, **more):
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, **more})
    if done.returncode not in (0, 2):
        sys.exit(f"{' '.join(argv)}\n{done.stdout}{done.stderr}")
    return done.stdout


def emitted(csdfc, plan, folder):
    """Writes and builds a crate, and its program on a throttled store if it reads from one. Returns its folder."""
    run(csdfc, "emit", plan, "-o", folder, "--crate-name", "emitted", "-q")
    command = ["cargo", "build", "--release", "--quiet", "--manifest-path", f"{folder}/Cargo.toml"]
    if os.path.exists(f"{folder}/store.bin"):
        with open(f"{folder}/src/main.rs") as file:
            text = file.read()
        text = re.sub(r"^mod (\w+);", r'#[path = "../src/\1.rs"]\nmod \1;', text, flags=re.M)
        text = text.replace("mod support;", f'mod support;\n#[path = "{HERE}/streaming/throttled.rs"]\nmod throttled;')
        text = text.replace("Loader::open(", "throttled::open(").replace("Loader, ", "")
        os.makedirs(f"{folder}/examples", exist_ok=True)
        with open(f"{folder}/examples/throttled.rs", "w") as file:
            file.write(text)
        command += ["--bins", "--examples"]
    run(*command)
    return folder


def frame_of(inputs, path):
    """Writes a frame of one input as .npy."""
    dims = inputs["shape"]
    count = 1
    for dim in dims:
        count *= dim
    head = str({"descr": "<f4", "fortran_order": False, "shape": tuple(dims)}).ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack("<f", 0.5) * count)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("app")
    parser.add_argument("out")
    parser.add_argument("--csdfc", required=True)
    parser.add_argument("--mem", default="2MB")
    parser.add_argument("--bandwidths", default="500,2000,8000")
    parser.add_argument("--latency", type=int, default=20, help="microseconds")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--frames", type=int, default=30)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    at = lambda name: os.path.join(os.path.abspath(args.out), name)

    run(args.csdfc, "profile", args.app, "--device-out", at("host.ron"), "--only", "indirect", "--rounds", "9", "-q")
    with open(at("host.ron")) as file:
        profile = file.read()
    plain = re.sub(r"\n    store: (None|Some\(\(.*?\)\)),", "", profile, flags=re.S)

    def planned(name, store, *options):
        text = plain
        if store:
            bandwidth = f'store: Some((bandwidth: "{store}MB/s", latency: "{args.latency}us", block: 4096)),\n)'
            text = plain.rstrip().removesuffix(")") + bandwidth
        with open(at(f"{name}.ron"), "w") as file:
            file.write(text)
        run(args.csdfc, "plan", args.app, "--device", at(f"{name}.ron"), "--primitives", "fixed", *options,
            "-o", at(f"{name}.json"))
        with open(at(f"{name}.json")) as file:
            return json.load(file)

    bandwidths = [int(text) for text in args.bandwidths.split(",")]
    plans = {store: planned(f"streamed-{store}", store, "--mem", args.mem) for store in bandwidths}
    resident = planned("resident", None)
    crates = {store: emitted(args.csdfc, at(f"streamed-{store}.json"), at(f"streamed-{store}")) for store in bandwidths}
    whole = emitted(args.csdfc, at("resident.json"), at("resident"))
    first = resident["cnns"][0]["layers"][0]["output"]
    frame = frame_of(next(tensor for tensor in resident["tensors"] if tensor["name"] == first), at("frame.npy"))

    times = {name: [] for name in ["resident", *bandwidths]}
    for _ in range(args.rounds):
        text = run(f"{whole}/target/release/emitted", frame, "--frames", str(args.frames))
        times["resident"].append(float(re.search(r"median: ([\d.]+) ms", text)[1]))
        for store, crate in crates.items():
            text = run(f"{crate}/target/release/examples/throttled", frame, "--frames", str(args.frames),
                       "--store", f"{crate}/store.bin", THROTTLE=f"{store * 1_000_000} {args.latency * 1000}")
            times[store].append(float(re.search(r"median: ([\d.]+) ms", text)[1]))
    middle = lambda values: statistics.median(values)
    print(f"resident: {middle(times['resident']):.2f} ms, planned {1000 / resident['cnns'][0]['fps']:.2f} ms")
    print(f"{'MB/s':>6} {'total':>9} {'planned ms':>10} {'frame ms':>9} {'planned/frame':>13} {'resident/frame':>14} {'times need':>10} {'peak kB':>8}")
    for store, plan in plans.items():
        crate = crates[store]
        os.chdir(crate)
        peak = run(f"{crate}/target/release/emitted", frame, "--frames", "3")
        peak = int(re.search(r"peak memory: (\d+) kB", peak)[1])
        expected = 1000 / plan["cnns"][0]["fps"]
        of_plan = middle(expected / time for time in times[store])
        of_resident = middle(resident_ms / ms for resident_ms, ms in zip(times["resident"], times[store]))
        need = plan["cnns"][0]["bytes_read"] / 1e3 / middle(times["resident"])
        print(f"{store:>6} {plan['memory']['total']:>9} {expected:>10.2f} {middle(times[store]):>9.2f} "
              f"{of_plan:>13.2f} {of_resident:>14.2f} {store / need:>10.2f} {peak:>8}")


main()
