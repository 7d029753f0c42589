"""Plans the memory of CNNs on edge boards, and runs the plans."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

from numpy.typing import ArrayLike, NDArray

__all__ = ["Board", "CsdfcWarning", "Error", "Layer", "Packing", "Place", "Plan", "Point", "Quantized", "Unmet",
           "__version__", "main", "pack", "plan", "profile", "quantize"]

__version__: str

_Path: TypeAlias = str | PathLike[str]

class Error(Exception):
    """What was handed in is wrong, or a file cannot be read or written. The text says what to do."""

class Unmet(Error):
    """No plan meets the constraints. The text says what can be reached, and which tensors take most of the memory."""

    nearest: Plan
    """The nearest plan."""
    remedies: list[Remedy]
    """What it would take."""

class CsdfcWarning(UserWarning):
    """What the command would log as a warning: the work was done, but perhaps not as was meant."""

@final
class Remedy:
    """Another plan that was made because constraints are not met."""

    @property
    def means(self) -> str:
        """What differs from what was asked."""
    @property
    def options(self) -> dict[str, Any]:
        """Keywords of `plan` that make it, in place of those of the same names: `plan(model, **(mine | remedy.options))`."""
    @property
    def total(self) -> int:
        """Its bytes."""
    @property
    def fps(self) -> dict[str, float]:
        """Its frames per second, by CNN."""
    @property
    def met(self) -> bool:
        """Whether it meets the constraints."""

@final
class Plan:
    """A plan: how an application of CNNs runs in a memory budget. Whoever makes one has had it checked."""

    @staticmethod
    def load(path: _Path) -> Plan:
        """Reads a plan that `csdfc plan -o` or `save` wrote. Its models are read when it runs.

        Raises `Error` if the file cannot be read or holds no plan.
        """
    @property
    def application(self) -> str:
        """The name of the application."""
    @property
    def arena(self) -> int:
        """Bytes of the arena: buffers, workspace, and blocks of streamed weights."""
    @property
    def parameters(self) -> int:
        """Bytes of weights and biases, wherever they are."""
    @property
    def total(self) -> int:
        """Bytes of the arena and of the parameters that stay in memory."""
    @property
    def fps(self) -> dict[str, float]:
        """Modelled frames per second, by the names of the CNNs."""
    @property
    def latency(self) -> dict[str, float]:
        """Modelled seconds from a frame's first input to its last output, by the names of the CNNs."""
    @property
    def inputs(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """What `run` takes: the shape and the element type of each input, such as `((1, 3, 32, 32), "float32")`. If there are
        several CNNs, names are `CNN/INPUT`."""
    @property
    def layers(self) -> list[Layer]:
        """The layers of all CNNs, in their order."""
    @property
    def front(self) -> list[Point]:
        """The plans that the search saw of which none is better than another in both memory and time, by falling memory.
        There are more of them with `pareto=True`."""
    @property
    def board(self) -> Board | None:
        """What it takes on the microcontroller that its device profile is of, beside its arena. `None` if it is for something
        else."""
    def memory_map(self) -> list[Place]:
        """What lies where in the arena, and when."""
    def run(self, inputs: ArrayLike | Mapping[str, ArrayLike], *, cnn: str | None = None) -> dict[str, NDArray[Any]]:
        """Runs a frame in memory of exactly the planned size, and returns the outputs by name.

        `inputs` is an array if the CNN has one input, or a dictionary of arrays by name, in the shapes and element types
        of `Plan.inputs`: those of the model, such as float32 of `(1, C, H, W)`. 16-bit floats are widened. `cnn` is the
        name of the CNN, if the plan has several. A frame of a stream is a hop: it goes on where the last one ended.
        If a call of the CNN takes several frames, arrays have them along their first dimension.

        The first frame reads the model and packs its weights. Other threads of Python run meanwhile.

        Raises `Error` if an input is missing, or of another shape or element type than the CNN takes, or the model cannot
        be read.
        """
    def reset(self) -> None:
        """Begins anew: forgets what streams and states keep of the frames so far."""
    def check(self) -> None:
        """Has the plan checked: a replay finds nothing wrong, and its layers are those of its models.

        Raises `Error`, with all that is wrong.
        """
    def report(self, path: _Path) -> None:
        """Writes the plan as a page for a browser, as `csdfc report` does. The page is one file."""
    def emit(self, folder: _Path, *, crate_name: str | None = None, image_files: bool = False) -> None:
        """Writes the plan as a Rust crate into a folder, as `csdfc emit` does. Other files of the folder are left alone. With
        `image_files`, its program also takes PNG and JPEG files, by the crate `image`."""
    def to_json(self) -> str:
        """The plan as `csdfc plan -o` writes it. Paths of models start from the current folder."""
    def save(self, path: _Path) -> None:
        """Writes the plan to a file, for `Plan.load` and for `csdfc check`, `run`, `report` and `emit`: RON if the name ends in
        `.ron`, JSON otherwise. Paths of models start from its folder."""
    def _repr_html_(self) -> str: ...

@final
class Layer:
    """A layer of a plan."""

    @property
    def cnn(self) -> str:
        """Its CNN."""
    @property
    def name(self) -> str:
        """Its name: that of its first ONNX node."""
    @property
    def operator(self) -> str:
        """What it computes, as plans call it."""
    @property
    def primitive(self) -> str:
        """How it is computed."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor that it makes, such as `(1, C, H, W)`."""
    @property
    def rows_per_firing(self) -> int:
        """Rows of its tensor that a firing makes; the last one may make fewer."""
    @property
    def firings(self) -> int:
        """Firings in a frame."""
    @property
    def parameters(self) -> int:
        """Bytes of its weights and biases."""
    @property
    def seconds(self) -> float | None:
        """Its time in a frame, as modelled or measured, in seconds."""

@final
class Point:
    """A plan that the search saw."""

    @property
    def total(self) -> int:
        """Bytes of its arena and of the parameters that stay in memory."""
    @property
    def fps(self) -> dict[str, float]:
        """Modelled frames per second, by the names of the CNNs."""

@final
class Place:
    """What lies in the arena: a ring of a tensor's rows, a workspace, or a block of streamed weights."""

    @property
    def name(self) -> str:
        """`CNN/TENSOR`, `workspace of CNN/LAYER`, or `block 0 of CNN/LAYER`."""
    @property
    def kind(self) -> str:
        """What it is, such as `whole tensor` or `ring of rows`."""
    @property
    def offsets(self) -> list[int]:
        """Its first address in the arena, in bytes; two if it is a double buffer."""
    @property
    def bytes(self) -> int:
        """Its bytes, of both halves of a double buffer."""
    @property
    def lives(self) -> list[tuple[float, float]]:
        """When it is in use, frame by frame: modelled seconds from the begin of the first frame."""

@final
class Board:
    """What a plan takes on a microcontroller beside its arena."""

    @property
    def target(self) -> str:
        """The compiler's name of the target, such as `thumbv7em-none-eabihf`."""
    @property
    def code(self) -> int:
        """Bytes of code with optimisation for speed: an estimate."""
    @property
    def small_code(self) -> int:
        """The same with `opt-level = "s"`, for size."""
    @property
    def parameters(self) -> int:
        """Bytes of the weights and biases in flash."""
    @property
    def stack(self) -> int:
        """Bytes of stack of a frame: an estimate."""
    @property
    def not_counted(self) -> list[str]:
        """What was not measured, so that more is needed than that."""

@final
class Quantized:
    """A quantized model on disk, and how much it errs."""

    @property
    def path(self) -> Path:
        """The ONNX file, a `pathlib.Path`."""
    @property
    def frames(self) -> int:
        """Frames that it was calibrated with."""
    @property
    def outputs(self) -> dict[str, float]:
        """The error of each output: the norm of all changes, divided by the norm of the output."""
    @property
    def layers(self) -> dict[str, float | None]:
        """The error of each layer's tensor, with all layers before it on integers; `None` if it keeps floats."""

@final
class Packing:
    """Offsets for buffers of which some are in use at the same time."""

    @property
    def offsets(self) -> list[int]:
        """The offset of each buffer, in bytes, in the order in which the buffers were given."""
    @property
    def bytes(self) -> int:
        """The end of the highest buffer."""
    @property
    def bound(self) -> int:
        """No packing takes fewer bytes than this."""
    @property
    def proven(self) -> bool:
        """Whether no packing is smaller."""

def plan(
    model: _Path | Sequence[_Path],
    *,
    mem: str | float | None = None,
    ram: str | None = None,
    flash: str | float | None = None,
    fps: float | Mapping[str, float] | None = None,
    latency: str | float | Mapping[str, str | float] | None = None,
    precision: Literal["fp32", "half", "mixed", "w8a16", "auto"] | None = None,
    max_error: float | None = None,
    calibrate: _Path | Iterable[_Path] | None = None,
    random: int | None = None,
    weights: str | None = None,
    shape: str | Sequence[int] | Mapping[str, int | Sequence[int]] | None = None,
    batch: int | Mapping[str, int] | None = None,
    value: Mapping[str, float] | None = None,
    inputs: str | Iterable[str] | None = None,
    outputs: str | Iterable[str] | None = None,
    input: str | Mapping[str, str] | None = None,
    no_fuse: bool = False,
    stream: str | Iterable[str] | Mapping[str, int | None] | None = None,
    hop: int | None = None,
    window: int | None = None,
    state: Mapping[str, str] | None = None,
    device: _Path | None = None,
    threads: int | None = None,
    prefer: str | None = None,
    storage: Literal["tensors", "edges"] | None = None,
    rows: str | Mapping[str, int] | None = None,
    method: str | None = None,
    primitives: str | None = None,
    max_primitive_error: float | None = None,
    seed: int | None = None,
    budget: str | int | None = None,
    without: str | Iterable[str] | None = None,
    from_front: _Path | None = None,
    pick: int | None = None,
    pareto: bool = False,
) -> Plan:
    """Plans a model (`FILE.onnx`, `FILE.tflite`, `builtin:NAME`), several models that take turns in one arena, or an
    application file (`FILE.ron`), and has the plan checked.

    Each option is that of the same name of `csdfc plan`, and `csdfc plan --help` says more about it. Where the command takes
    `NAME=VALUE` several times, give a dictionary.

    `mem` is the most bytes that parameters, buffers and workspace may take together: a number, a text such as `"2MB"` or
    `"512KiB"`, or `"min"` for as few as there are with all weights in memory (`weights="streamed"`: fewer). `ram` names
    the memories of a board that has several, and `flash` is the most flash for the parameters. `fps` is the fewest frames
    per second and `latency` the longest time of a frame, in seconds or as a text such as `"40ms"`: of every CNN, or of
    single ones by name. `device` is the device whose times count: a name that csdfc knows, or the file of a profile.

    `precision` is that of weights and tensors. With `"auto"`, `max_error` is the largest error of an output, which is
    measured on the frames of `calibrate` (`.npy` files or folders), or on `random` ones. `weights` says where weights are.
    `shape` is that of an input whose dimensions the model leaves open, and `value` makes an input a constant.
    `batch` is how many frames a call takes, one after another, of every CNN, or of single ones by name.
    `inputs` and `outputs` are names of tensors at which the part of the model that is planned begins and ends.
    With `input`, such as `"u8:hwc:rgb,mean=127.5,scale=0.0078"`, an input is handed over as bytes of an image.

    `budget` is how long to search: a time such as `"10s"`, or a number of choices. `from_front` is a front or a plan from
    which the search starts (`--from`), and `pick` takes one of its plans. With `pareto`, the search also looks for plans
    that take less memory or less time, for `Plan.front`.

    Raises `Unmet` if no plan meets these, and `Error` if an option is wrong, or the model cannot be read or planned. Ctrl-C
    raises `KeyboardInterrupt`, which has the best plan so far as `plan`, if there is one. What the command would warn of is a
    `CsdfcWarning`.
    """

def quantize(
    model: _Path,
    path: _Path,
    *,
    calibrate: _Path | Iterable[_Path] | None = None,
    random: int | None = None,
    seed: int = 1,
    ranges: str = "min-max",
    keep_above: float | None = None,
    shape: str | Sequence[int] | Mapping[str, int | Sequence[int]] | None = None,
) -> Quantized:
    """Quantizes a model to 8-bit integers and writes it to `path`, an ONNX file, as `csdfc quantize` does.

    `calibrate` is a `.npy` file of float32 in the model's dimensions, a folder of such files, or several of these; without
    them, `random` is a number of random frames. Layers whose own error is above `keep_above` keep floats.

    Raises `Error` if an option is wrong, or the model or a frame cannot be read or does not fit.
    """

def profile(
    model: _Path,
    *,
    device_out: _Path | None = None,
    threads: int | None = None,
    rounds: int = 5,
    only: str | None = None,
    store: _Path | None = None,
    shape: str | Sequence[int] | Mapping[str, int | Sequence[int]] | None = None,
    batch: int | Mapping[str, int] | None = None,
    value: Mapping[str, float] | None = None,
    inputs: str | Iterable[str] | None = None,
    outputs: str | Iterable[str] | None = None,
    no_fuse: bool = False,
) -> Path:
    """Measures how long the layers of a model take on this machine, as `csdfc profile` does, and returns the path of the device
    profile, a `pathlib.Path`: `device_out`, or that of this machine, which `plan(…, device="host")` reads. After Ctrl-C,
    what has been measured so far is saved as soon as the layer under way is done, and the next call goes on there.
    """

def pack(buffers: Iterable[tuple[int, int, int]], *, steps: int = 1_000_000_000) -> Packing:
    """Packs buffers by address, with proof. Each buffer is `(lower, upper, size)`: when it begins to be in use, when it is
    in use no more, and its bytes. `steps` limits the search; the default takes some ten seconds at most.

    Raises `Error` if there are more than 5000 buffers, or sizes add up to 2^62 bytes or more.
    """

def main() -> None:
    """The command `csdfc`, with the arguments of this process. It exits."""
