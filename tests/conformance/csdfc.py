"""The command under test."""

import copy
import json
import os
import re
import shutil
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import numpy as np

SECONDS = 600


class Refused(Exception):
    """csdfc says that it cannot do this: exit code 1, in words."""


class Failed(Exception):
    """What must not be: another exit code, a plan that is refused, wrong numbers."""


class Wrong(Failed):
    """Other numbers than the case has."""


@dataclass
class Csdfc:
    program: Path
    work: Path
    plan_only: bool
    # The same command many times in one process, if there is one.
    many: Path | None = None
    threads: threading.local = field(default_factory=threading.local)
    process: "Many | None" = None

    def __post_init__(self):
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)

    def in_one_process(self):
        """The same tool, its calls in a process that this thread keeps."""
        if not hasattr(self.threads, "tool"):
            self.threads.tool = copy.copy(self)
            self.threads.tool.process = Many(self.many, self.work)
        return self.threads.tool

    def plan_alone(self, model, options, plan):
        """Plans, as which csdfc checks its plan."""
        self._call("plan", model, *options, "-o", plan)

    def quantize(self, model, made):
        """The model in 8-bit integers, calibrated with random frames."""
        self._call("quantize", model, "-o", made, "--random", "2")

    def plan(self, model, options, plan):
        """Plans and checks."""
        self._call("plan", model, *options, "-o", plan)
        code, words = self._run("check", plan)
        if code != 0:
            raise Failed(f"check refuses the plan of {' '.join(options)} ({code}): {words}")

    def run(self, plan, feeds, names, folder):
        """The outputs of these names, and the bytes of their elements."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        options = []
        for name, array in feeds.items():
            file = folder / f"in-{file_name(name)}"
            np.save(file, array.astype(taken(plan, name)))
            options += ["--input", f"{name}={file}"]
        code, words = self._run("run", plan, *options, "--output", folder / "out")
        if code != 0:
            raise Failed(f"run ends with {code}: {words}")
        return [np.load(folder / "out" / file_name(name)) for name in names]

    def said(self, *arguments):
        """What a command prints."""
        return self._process([self.program, *arguments], cwd=self.work).stdout

    def run_rows(self, plan, inputs, names, folder):
        """The outputs of these names as raw files of floats, of inputs that are raw files of frames."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        options = []
        for name, array in inputs.items():
            array.astype(taken(plan, name)).tofile(folder / f"in-{name}")
            options += ["--input", f"{name}={folder / f'in-{name}'}"]
        for name in names:
            options += ["--output", f"{name}={folder / f'out-{name}'}"]
        code, words = self._run("run", plan, *options)
        if code != 0:
            raise Failed(f"run ends with {code}: {words}")
        return [np.fromfile(folder / f"out-{name}", "<f4") for name in names]

    def dump(self, plan, feeds, folder):
        """The tensors of all layers, by name. The plan makes each in one firing."""
        folder.mkdir(parents=True, exist_ok=True)
        options = []
        for name, array in feeds.items():
            file = folder / f"in-{file_name(name)}"
            np.save(file, array)
            options += ["--input", f"{name}={file}"]
        shutil.rmtree(folder / "dump", ignore_errors=True)
        code, words = self._run("run", plan, *options, "--dump", folder / "dump")
        if code != 0:
            raise Failed(f"run --dump ends with {code}: {words}")
        return {unquote(file.stem): np.load(file) for file in (folder / "dump").glob("*.npy")}

    def run_crate(self, plan, arrays, folder, optimisation=1):
        """The outputs of the plan's crate, emitted anew: files in the order of its inputs, and so its outputs."""
        shutil.rmtree(folder, ignore_errors=True)
        self._call("emit", plan, "-o", folder, "--crate-name", "emitted")
        self._cargo(folder, optimisation, "build", "--release", "--offline")
        files = []
        names = json.loads(Path(plan).read_text())["cnns"][0]["inputs"]
        for number, (name, array) in enumerate(zip(names, arrays, strict=True)):
            files.append(folder / f"in-{number}.npy")
            np.save(files[-1], array.astype(taken(plan, name)))
        program = folder / "target" / "release" / "emitted"
        done = self._process([program, *files, "--output", folder / "out"])
        if done.returncode != 0:
            raise Failed(f"the crate ends with {done.returncode}: {done.stderr}")
        program = (folder / "src" / "main.rs").read_text()
        names = re.findall(r'arguments\.target\(\s*\d+,\s*\d+,\s*"([^"]+)"', program)
        return [np.load(folder / "out" / name) for name in names]

    def time_crate(self, folder, frames):
        """The median milliseconds of a frame in the program that `run_crate` has built and run."""
        files = sorted(folder.glob("in-*.npy"), key=lambda file: int(file.stem[3:]))
        done = self._process([folder / "target" / "release" / "emitted", *files, "--frames", frames, "--output", folder / "out"])
        median = re.search(r"median: ([\d.]+) ms", done.stdout)
        if median is None:
            raise Failed(f"the crate does not say how fast it is: {done.stdout}{done.stderr}")
        return float(median[1])

    def _cargo(self, folder, optimisation, *arguments):
        # Bytes do not depend on the optimisation, and it builds faster with little.
        environment = os.environ | {"CARGO_PROFILE_RELEASE_OPT_LEVEL": str(optimisation), "CARGO_TARGET_DIR": str(folder / "target")}
        environment.pop("RUSTFLAGS", None)
        done = self._process(["cargo", *arguments], cwd=folder, env=environment)
        if done.returncode != 0 or "warning" in done.stderr:
            raise Failed(f"cargo {arguments[0]}: {done.stderr}")

    @staticmethod
    def _process(call, **options):
        try:
            return subprocess.run(list(map(str, call)), capture_output=True, text=True, timeout=SECONDS, check=False,
                                  **options)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{call[0]}: no end after {SECONDS} s") from late

    def _call(self, *arguments):
        code, words = self._run(*arguments)
        if code == 1:
            raise Refused(words)
        if code != 0:
            raise Failed(f"{arguments[0]} ends with {code}: {words}")

    def _run(self, *arguments):
        if self.process:
            return self.process.call([self._short(argument) for argument in arguments])
        # Short paths: csdfc wraps its messages.
        call = [str(self.program), "-q", *(self._short(argument) for argument in arguments)]
        try:
            done = subprocess.run(call, capture_output=True, text=True, timeout=SECONDS, check=False,
                                  cwd=self.work)
        except subprocess.TimeoutExpired:
            return "time", f"no end after {SECONDS} s"
        return done.returncode, reason(done.stderr or done.stdout)

    def _short(self, argument):
        return str(argument).replace(f"{self.work}/", "")


class Many:
    """Calls of csdfc in one process, started anew at times and after every mishap."""

    CALLS = 500

    def __init__(self, program, work):
        self.program, self.work, self.process, self.calls = program, work, None, 0

    def call(self, arguments):
        """The exit code and the words of one call."""
        if self.process is None or self.calls == self.CALLS:
            self._start()
        self.calls += 1
        late = threading.Timer(SECONDS, self.process.kill)
        late.start()
        words = []
        try:
            self.process.stdin.write("\t".join(arguments) + "\n")
            self.process.stdin.flush()
            for line in self.process.stdout:
                if line.startswith("exit "):
                    break
                words.append(line)
            else:
                self.process.wait()
                code, self.process = self.process.returncode, None
                return code, f"the process ended: {reason(''.join(words))}"
        finally:
            late.cancel()
        words, code = "".join(words), int(line.removeprefix("exit "))
        # A plan that was dropped, too, is a mistake.
        is_refused = "own checker refuses" in re.sub(r"[\s│]+", " ", words)
        return (3 if is_refused else code), reason(words) if code or is_refused else ""

    def _start(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
        self.process = subprocess.Popen([str(self.program)], cwd=self.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.calls = 0


def taken(plan, name):
    """The type of the elements that an input takes in a plan."""
    layers = [layer for cnn in json.loads(Path(plan).read_text())["cnns"] for layer in cnn["layers"]]
    elements = {layer["name"]: layer["attributes"]["element"] for layer in layers if layer["op"] == "input"}
    return {"f32": "<f4", "u8": "u1", "i8": "i1"}[elements[name]]


def file_name(tensor):
    """The file of a tensor in a folder of csdfc's: a name of more than 240 bytes ends in a hash (FNV-1a)."""
    def byte(at, value):
        plain = chr(value).isascii() and (chr(value).isalnum() or chr(value) in "._-")
        return chr(value) if plain and (at or value != ord(".")) else f"%{value:02X}"

    whole = "".join(byte(at, value) for at, value in enumerate(tensor.encode()))
    if len(whole) <= 240:
        return f"{whole}.npy"
    hashed = 0xCBF29CE484222325
    for value in tensor.encode():
        hashed = (hashed ^ value) * 0x100000001B3 % 2**64
    return re.sub("%.?$", "", whole[:220]) + f"~{hashed:016x}.npy"


def reason(words):
    """The innermost cause that a message of csdfc's names, on one line, without the model's name."""
    words = words.split("╰─▶")[-1].split("  help:")[0]
    words = re.sub(r"[│╭╰─×├▶]", " ", words)
    words = re.sub(r"\s+", " ", words).strip()
    return re.sub(r"^\S+\.onnx: ", "", words)
