"""What `mypy --strict` finds right, and what it must find wrong: an `ignore` that nothing needs is an error too."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import csdfc

plan: csdfc.Plan = csdfc.plan("net.onnx", mem="2MB", fps=30, latency={"net": 0.04}, shape=[1, 3, 224, 224], budget=100)
several: csdfc.Plan = csdfc.plan(["a.onnx", Path("b.onnx")], ram="128kB@dtcm,512kB@sram", state={"out": "in"})
image: NDArray[np.float32] = np.zeros((1, 3, 224, 224), np.float32)
outputs: dict[str, NDArray[Any]] = plan.run(image)
named: dict[str, NDArray[Any]] = several.run({"x": image}, cnn="a")
total: int = plan.total
rates: dict[str, float] = plan.fps
shapes: list[tuple[int, ...]] = [layer.shape for layer in plan.layers]
lives: list[list[tuple[float, float]]] = [place.lives for place in plan.memory_map()]
stack: int | None = plan.board.stack if plan.board else None
totals: list[int] = [point.total for point in plan.front]
loaded: csdfc.Plan = csdfc.Plan.load(Path("plan.json"))
quantized: csdfc.Quantized = csdfc.quantize("net.onnx", "int8.onnx", calibrate=["a.npy", Path("b.npy")])
errors: dict[str, float] = quantized.outputs
profile: Path = csdfc.profile("net.onnx", rounds=3)
try:
    plan.check()
except csdfc.Unmet as unmet:
    nearest: csdfc.Plan = unmet.nearest
    options: list[dict[str, Any]] = [remedy.options for remedy in unmet.remedies]

csdfc.plan(7)  # type: ignore[arg-type]
csdfc.plan("net.onnx", memory="2MB")  # type: ignore[call-arg]
csdfc.plan("net.onnx", precision="int4")  # type: ignore[arg-type]
csdfc.plan("net.onnx", budget=5.0)  # type: ignore[arg-type]
plan.total = 3  # type: ignore[misc]
plan.run()  # type: ignore[call-arg]
