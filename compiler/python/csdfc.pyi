"""Plans the memory of CNNs on edge boards."""

from collections.abc import Iterable
from os import PathLike
from typing import final

__all__ = ["Error", "Packing", "Plan", "Unmet", "__version__", "main", "pack", "plan"]

__version__: str

class Error(Exception):
    """What was handed in is wrong, or a file cannot be read or written. The text says what to do."""

class Unmet(Error):
    """No plan meets the constraints. The text says what can be reached, and which tensors take most of the memory."""

    nearest: Plan
    """The nearest plan."""

@final
class Plan:
    """A plan: how an application of CNNs runs in a memory budget. The checker has proved it safe."""

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
    def to_json(self) -> str:
        """The plan as `csdfc plan -o` writes it. Paths of models start from the current folder."""
    def save(self, path: str | PathLike[str]) -> None:
        """Writes the plan to a file, for `csdfc check`, `run`, `report` and `emit`. Paths of models start from its folder."""

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
    model: str | PathLike[str],
    *,
    mem: str | int | None = None,
    fps: float | None = None,
    device: str | None = None,
) -> Plan:
    """Plans a model (`FILE.onnx`, `builtin:NAME`) or an application file (`FILE.ron`), and has the plan checked.

    `mem` is the most bytes that parameters, buffers and workspace may take together: a number, a text such as `"2MB"` or
    `"512KiB"`, or `"min"` for as few as there are. `fps` is the fewest frames per second, of every CNN. `device` is the
    device whose frame rates count: a name that csdfc knows, or the file of a profile.

    Raises `Unmet` if no plan meets these, and `Error` if the model cannot be read or planned.
    """

def pack(buffers: Iterable[tuple[int, int, int]], *, steps: int = 1_000_000_000) -> Packing:
    """Packs buffers by address, with proof. Each buffer is `(lower, upper, size)`: when it begins to be in use, when it is
    in use no more, and its bytes. `steps` limits the search; the default takes some ten seconds at most.

    Raises `Error` if there are more than 5000 buffers, or sizes add up to 2^62 bytes or more.
    """

def main() -> None:
    """The command `csdfc`, with the arguments of this process. It exits."""
