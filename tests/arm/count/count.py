#!/usr/bin/env python3
"""Instructions and estimated cycles of a frame on 64-bit Arm: emitted crates beside ONNX Runtime and LiteRT, under QEMU.

    python3 tests/arm/count/count.py --csdfc PATH [--table FILE] MODEL…

MODEL is a FILE.onnx with one input of floats, which ONNX Runtime runs too, or a FILE.tflite, which LiteRT (XNNPACK) runs too,
each on one thread. A frame is what a run of two frames takes more than a run of one, by block of instructions. ONNX Runtime
chooses other kernels in some runs, so it and LiteRT run several times, and of the pairs of runs that execute the same blocks
the one with the fewest instructions counts; where there is no such pair, nothing is counted. Needed are qemu-aarch64 up to version 8.2
(Debian: qemu-user) and a compiler, as `tests/arm/run` finds it. A Python for Arm comes from Debian's packages and its packages
from PyPI, into target/arm-count; where they cannot be had, only crates are counted. Without llvm-mc and llvm-mca of LLVM 19 or
later (Debian: llvm-19), cycles are not estimated.
"""

import argparse
import itertools
import json
import math
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
WORK = ROOT / "target" / "arm-count"
TARGET = "aarch64-unknown-linux-gnu"
SETUP = ROOT.parent / "shared" / "arm64" / "setup.sh"

# Processors, as QEMU and llvm-mca call them, with the part and the features that /proc/cpuinfo says. The second has products of
# bytes.
CPUS = {"cortex-a57": ("0xd07", "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"),
        "neoverse-n1": ("0xd0c", "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp")}

# Of a Raspberry Pi 4 and 5.
HERTZ = {"cortex-a57": 1.5e9, "neoverse-n1": 2.4e9}

# Multiplications of whole vectors, with additions or without, that a processor can begin in a cycle.
PER_CYCLE = {"cortex-a57": 1, "neoverse-n1": 2}
MULTIPLIES = re.compile(r"\s(fmla|fmls|fmul|sdot|udot|[su]mlal2?|[su]mull2?|mla|mul)\s+v")

DEBIAN = ("python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 zlib1g libexpat1 libstdc++6 libgcc-s1 "
          "libssl3 libffi8 libbz2-1.0 liblzma5 libuuid1").split()
WHEELS = {"numpy==2.4.6", "onnxruntime==1.31.1", "ai-edge-litert==2.3.0"}
PURE = {"flatbuffers==25.12.19", "protobuf==7.36.2", "packaging==26.4", "typing_extensions==4.16.0", "tqdm==4.70.1",
        "backports.strenum==1.2.8"}

# Two runs execute the same blocks if one lacks at most this part of a frame's instructions: a few are the allocator's, say.
LOST = 0.01

# What is said where no two do.
DIFFER = "not counted: its runs differ"

# Runs of programs that may choose other kernels in each.
RUNS = 3

# Blocks that are given to llvm-mca: those that make this part of all instructions. The rest is taken to be as fast.
SHARE = 0.995


def call(*words, **options) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(map(str, words))}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def plugin() -> Path:
    """QEMU's plugin, built."""
    call("cargo", "build", "--release", "--quiet", "--manifest-path", HERE / "plugin/Cargo.toml", "--target-dir", WORK / "plugin")
    return WORK / "plugin/release/libcsdfc_count.so"


def arm_python() -> list[str] | None:
    """What runs Python for Arm after `qemu-aarch64 -cpu CPU`; nothing if it cannot be had."""
    root, site = WORK / "root", WORK / "site"
    if not (WORK / "complete").exists():
        for folder in (root, site, WORK / "wheels"):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        lists = WORK / "lists"
        (lists / "partial").mkdir(parents=True, exist_ok=True)
        apt = ["apt-get", "-qq", "-o", "APT::Architecture=arm64", "-o", "APT::Architectures=arm64", "-o",
               f"Dir::State::Lists={lists}", "-o", "APT::Sandbox::User=root"]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version=3.11",
               "--dest", WORK / "wheels"]
        platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (17, 27, 28)]
        for words in ([*apt, "update"], [*apt, "download", *DEBIAN], [*pip, *platforms, *sorted(WHEELS)],
                      [*pip, "--platform=any", *sorted(PURE)]):
            if subprocess.run(words, cwd=root, check=False).returncode != 0:
                print(f"skipped: others than crates ({shlex.join(map(str, words))} fails)")
                return None
        for package in root.glob("*.deb"):
            call("dpkg", "-x", package, root)
        for wheel in (WORK / "wheels").glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(site)
        (WORK / "complete").touch()
    environment = {"LD_LIBRARY_PATH": "/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu", "PYTHONPATH": site,
                   "PYTHONHOME": root / "usr", "OPENBLAS_NUM_THREADS": 1, "PYTHONDONTWRITEBYTECODE": 1,
                   "PYTHONHASHSEED": 0}
    settings = [word for name, value in environment.items() for word in ("-E", f"{name}={value}")]
    return ["-L", str(root), *settings, str(root / "usr/bin/python3.11")]


def pretend(cpu: str) -> None:
    """Files that a Python for Arm sees in place of this machine's, which is no Arm: ONNX Runtime and LiteRT choose kernels by
    them, and end at once where they do not understand them."""
    part, features = CPUS[cpu]
    files = {f"sys/devices/system/cpu/{name}": "0" for name in ("possible", "present", "online")}
    files["proc/cpuinfo"] = (f"processor\t: 0\nFeatures\t: {features}\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
                             f"CPU variant\t: 0x1\nCPU part\t: {part}\nCPU revision\t: 0\n")
    for name, text in files.items():
        file = WORK / "root" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")


def crate(csdfc: Path, model: Path, options: list[str], name: str) -> Path:
    """The program of a crate of the model."""
    folder = WORK / "crates" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    call(csdfc, "plan", model, *options, "-q", "-o", folder / "plan.json")
    call(csdfc, "emit", folder / "plan.json", "-q", "-o", folder, "--crate-name", "counted")
    environment = call(SETUP) if SETUP.exists() else (
        f"export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc\n"
        f"export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS='-C target-feature=+crt-static'\n")
    # So that functions have the names of their generic parameters.
    flags = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS"
    environment += f'export {flags}="${flags} -C symbol-mangling-version=v0"\n'
    call("sh", "-c", f"{environment} cargo build --release --quiet --offline --target {TARGET} --target-dir {WORK / 'built'}",
         cwd=folder)
    built = WORK / "built" / TARGET / "release/counted"
    return Path(shutil.copy(built, folder / "program"))


def inputs(plan: Path) -> list[str]:
    """Files of ones, which a crate takes, in the order of its inputs."""
    files = []
    for cnn in json.loads(plan.read_text())["cnns"]:
        for layer in cnn["layers"]:
            if layer["op"] != "input":
                continue
            shape = layer["output_shape"]
            dims = shape if isinstance(shape, list) else shape["dims"]
            kind, one = {"f32": ("<f4", struct.pack("<f", 1)), "u8": ("|u1", b"\1"), "i8": ("|i1", b"\1")}[layer["attributes"]["element"]]
            header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(dims)}, }}".encode()
            header += b" " * (-(len(header) + 11) % 64) + b"\n"
            file = plan.parent / f"input-{len(files)}.npy"
            file.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + one * math.prod(dims))
            files.append(str(file))
    return files


@dataclass(frozen=True)
class Block:
    """Instructions that are executed one after the other."""

    code: str
    count: int
    function: str


def executed(words: list[str], so: Path) -> Counter[Block]:
    """How often a command executes each block. It runs on the processor that `pretend` has: programs that find themselves on one
    that is not there choose other kernels."""
    allowed = os.sched_getaffinity(0)
    processors = allowed & {0} or allowed
    out = WORK / "counts.txt"
    out.unlink(missing_ok=True)
    call(*words[:1], "-plugin", f"{so},out={out}", *words[1:], preexec_fn=lambda: os.sched_setaffinity(0, processors))
    counts = Counter()
    for line in out.read_text().splitlines():
        times, count, code, function = line.split(" ", 3)
        counts[Block(code, int(count), function)] += int(times)
    return counts


def instructions(blocks: Counter[Block]) -> int:
    return sum(times * block.count for block, times in blocks.items())


def frame(words: list[str], one: list[str], two: list[str], so: Path, runs: int) -> Counter[Block] | None:
    """How often a frame executes each block: what a command does more with its last words `two` than with `one`. Of all pairs of
    `runs` runs each, that with the fewest instructions, among those of which both runs execute the same blocks, if any do."""
    ones, twos = ([executed([*words, *more], so) for _ in range(runs)] for more in (one, two))
    found = []
    for counted, base in itertools.product(twos, ones):
        more = Counter({block: times - base[block] for block, times in counted.items() if times > base[block]})
        if instructions(base - counted) <= LOST * instructions(more):
            found.append(more)
    return min(found, key=instructions, default=None)


def assembly(block: Block) -> str:
    """The instructions of a block, as llvm-mca reads them."""
    code = " ".join(f"0x{block.code[at:at + 2]}" for at in range(0, len(block.code), 2))
    text = call(tool("llvm-mc"), "--disassemble", "--triple=aarch64", "-mattr=+all", input=code)
    # Calls end a block, and llvm-mca would take them for what they call.
    lines = [re.sub(r"^\s(bl|blr|ret)\b.*", "\tnop", line) for line in text.splitlines()]
    return "\n".join(line for line in lines if not line.strip().startswith(".text"))


def tool(name: str) -> str | None:
    """A program of LLVM 19 or later; older ones have no model of a Neoverse N1."""
    for version in ("-22", "-21", "-20", "-19"):
        if found := shutil.which(name + version):
            return found
    return None


@dataclass
class Figures:
    """Of a frame: instructions; and, where they are estimated, cycles, the share of the processor's multiplications that the block
    with the most instructions reaches, and the cycles of each function."""

    instructions: int
    cycles: float | None = None
    peak: float = 0
    functions: Counter[str] = field(default_factory=Counter)

    def line(self, macs: int) -> str:
        line = f"{self.instructions / 1e6:9.2f} M instructions, {self.instructions / macs:5.2f} a multiplication"
        return line + (f"  {self.cycles / 1e6:9.2f} M cycles  {100 * self.peak:3.0f} % of peak" if self.cycles else "")


def figures(blocks: Counter[Block], cpu: str) -> Figures:
    total = instructions(blocks)
    if not (tool("llvm-mc") and tool("llvm-mca")):
        return Figures(total)
    ranked = sorted(blocks.items(), key=lambda item: -item[1] * item[0].count)
    chosen, covered = [], 0
    for block, times in ranked:
        if covered > SHARE * total:
            break
        chosen.append((block, times))
        covered += times * block.count
    texts = [assembly(block) for block, _ in chosen]
    regions = "".join(f"# LLVM-MCA-BEGIN\n{text}\n# LLVM-MCA-END\n" for text in texts)
    said = call(tool("llvm-mca"), "-mtriple=aarch64", f"-mcpu={cpu}", "-mattr=+all", "-json", "-iterations=50",
                "-skip-unsupported-instructions=lack-sched", input=regions)
    regions = json.loads(said)["CodeRegions"]
    cycles = [region["SummaryView"]["TotalCycles"] / 50 for region in regions]
    spent = sum(times * each for (_, times), each in zip(chosen, cycles, strict=True))
    multiplied = len(MULTIPLIES.findall(texts[0])) / PER_CYCLE[cpu]
    functions = Counter()
    for (block, times), each in zip(chosen, cycles, strict=True):
        functions[block.function] += times * each
    return Figures(total, spent * total / covered, multiplied / cycles[0], functions)


def multiplications(csdfc: Path, model: Path) -> int:
    """Those of a frame."""
    return sum(cnn["macs"] for cnn in json.loads(call(csdfc, "inspect", model, "--format", "json"))["cnns"])


def page(rows: list[tuple[Path, str, int, dict[str, Figures | None]]]) -> str:
    lines = ["# Counted on 64-bit Arm", "",
             "Made by `python3 tests/arm/count/count.py --csdfc PATH --table docs/arm/README.md MODEL…`. Nothing here is a time: no",
             "board was at hand. QEMU counts the instructions that a frame takes, exactly, on one thread. *Cycles* are an estimate:",
             "llvm-mca says how many each block of instructions takes if all that it reads is in the first cache; a memory that is",
             "slower adds to them. Its models are those of a Cortex-A57, which it also takes for the Cortex-A72 of a Raspberry Pi 4, and",
             "of a Neoverse N1, whose core is the Cortex-A76 of a Raspberry Pi 5. *ms* are these cycles at 1.5 GHz and at 2.4 GHz.", "",
             "*Of peak* is for the block with the most instructions: the vectors that it multiplies, as a share of those that the",
             "processor could in the block's cycles. It is 0 % where that block multiplies none.", "",
             "*csdfc* is the fastest plan; *by rows* is one where every layer that can makes a row at a time. Beside them are",
             f"{' and '.join(sorted(WHEELS - {'numpy==2.4.6'}))}.",
             f"ONNX Runtime takes other kernels in some runs: of {RUNS} runs each, the two that take the fewest count.", "",
             "| network | processor | program | instructions, millions | for a multiplication | cycles, millions | ms | of peak |",
             "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |"]
    for model, cpu, macs, found in rows:
        for runner, figures in found.items():
            if not figures:
                lines.append(f"| {model.stem} | {cpu} | {runner} | {DIFFER} | | | | |")
                continue
            lines.append(f"| {model.stem} | {cpu} | {runner} | {figures.instructions / 1e6:.2f} | {figures.instructions / macs:.2f} | "
                         f"{figures.cycles / 1e6:.2f} | {figures.cycles / HERTZ[cpu] * 1e3:.1f} | {100 * figures.peak:.0f} % |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csdfc", type=Path, required=True, metavar="PATH", help="the command")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write a page with the figures")
    parser.add_argument("--alone", action="store_true", help="count crates only")
    parser.add_argument("--most", type=float, metavar="N", help="fail if a crate takes more than N instructions a multiplication")
    parser.add_argument("--functions", type=int, default=0, metavar="N", help="print the N functions that take most cycles")
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL")
    given = parser.parse_args()
    version = re.search(r"version (\d+)\.(\d+)", call("qemu-aarch64", "--version"))
    if version and (int(version[1]), int(version[2])) > (8, 2):
        print(f"skipped: counting on Arm: QEMU {version[1]}.{version[2]} takes no plugins of version 1")
        return
    if given.table and not (tool("llvm-mc") and tool("llvm-mca")):
        sys.exit("a page needs llvm-mc and llvm-mca of LLVM 19 or later")
    WORK.mkdir(parents=True, exist_ok=True)
    so, python = plugin(), None if given.alone else arm_python()
    csdfc = given.csdfc.resolve()
    rows = []
    for model in map(Path.resolve, given.models):
        runners, crates = {}, {"csdfc": [], "by rows": ["--rows", "all"]}
        for kind, options in crates.items():
            program = crate(csdfc, model, options, re.sub(r"\W+", "-", f"{model.stem}-{kind}"))
            words = [str(program), *inputs(program.parent / "plan.json"), "--output", str(WORK / "outputs")]
            runners[kind] = (words, ["--frames", "1"], ["--frames", "2"])
        if python:
            is_onnx = model.suffix == ".onnx"
            script = ROOT / "tests/benches/ort.py" if is_onnx else HERE / "litert.py"
            runners["ONNX Runtime" if is_onnx else "LiteRT"] = ([*python, str(script), str(model)], ["1"], ["2"])
        macs = multiplications(csdfc, model)
        for cpu in CPUS:
            pretend(cpu)
            found = {}
            for runner, (words, one, two) in runners.items():
                runs = 1 if runner in crates else RUNS
                blocks = frame(["qemu-aarch64", "-cpu", cpu, *words], one, two, so, runs)
                found[runner] = figures(blocks, cpu) if blocks else None
                if not blocks:
                    print(f"{model.stem:24} {cpu:12} {runner:16} {DIFFER}", flush=True)
                    continue
                print(f"{model.stem:24} {cpu:12} {runner:16} {found[runner].line(macs)}", flush=True)
                for name, count in found[runner].functions.most_common(given.functions):
                    share = count / found[runner].cycles
                    print(f"    {100 * share:5.1f} %  {call('c++filt', name).strip()[:140]}")
                if given.most and runner in crates and found[runner].instructions > given.most * macs:
                    sys.exit(f"more than {given.most} instructions a multiplication")
            rows.append((model, cpu, macs, found))
        if given.table:
            given.table.parent.mkdir(parents=True, exist_ok=True)
            given.table.write_text(page(rows))


if __name__ == "__main__":
    main()
