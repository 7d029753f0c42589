#!/usr/bin/env python3
"""Writes small.tflite, a small network of floats and integers. It needs `ai-edge-litert` and `numpy`."""

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "conformance"))
from flat import Model  # noqa: E402

random = np.random.default_rng(1)
model = Model()
x = model.input([1, 12, 12, 3], name="image")
filters = model.constant(random.uniform(-1, 1, [4, 3, 3, 3]).astype(np.float16))
wide = model.tensor([4, 3, 3, 3])
model.operator("DEQUANTIZE", [filters], [wide])
y = model.tensor([1, 6, 6, 4], name="features")
bias = model.constant(random.uniform(-1, 1, 4).astype(np.float32))
model.operator("CONV_2D", [x, wide, bias], [y], "Conv2D", padding=0, strideH=2, strideW=2, fusedActivationFunction=3)
q = model.tensor([1, 6, 6, 4], "int8", scales=6 / 255, points=-128)
model.operator("QUANTIZE", [y], [q], "Quantize")
deep = model.constant(random.integers(-127, 128, [1, 3, 3, 4]).astype(np.int8), scales=[0.01] * 4, axis=3)
zeros = model.constant(np.zeros(4, np.int32), scales=[0.06 / 255] * 4)
z = model.tensor([1, 6, 6, 4], "int8", scales=0.05, points=3)
model.operator("DEPTHWISE_CONV_2D", [q, deep, zeros], [z], "DepthwiseConv2D", padding=0, strideH=1, strideW=1,
               depthMultiplier=1)
back = model.tensor([1, 6, 6, 4])
model.operator("DEQUANTIZE", [z], [back])
mean = model.tensor([1, 4])
model.operator("MEAN", [back, model.constant(np.array([1, 2], np.int32))], [mean], "Reducer")
scores = model.tensor([1, 5], name="scores")
model.operator("FULLY_CONNECTED", [mean, model.constant(random.uniform(-1, 1, [5, 4]).astype(np.float32)), -1], [scores],
               "FullyConnected")
(HERE / "small.tflite").write_bytes(model.write([scores]))
