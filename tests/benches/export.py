"""Writes the benchmark's networks as ONNX files: torchvision's architectures with seeded weights.

    /usr/bin/python3 export.py DIR [NAME...]

It needs torch and torchvision (Debian: apt-get install --no-install-recommends python3-torch python3-torchvision
python3-onnx). Batch norms get statistics that are not trivial, so that folding them is tested too.
"""
import os
import sys

import torch
import torchvision

NAMES = ["mobilenet_v2", "resnet50", "squeezenet1_0", "efficientnet_b0"]


def main():
    folder, names = sys.argv[1], sys.argv[2:] or NAMES
    os.makedirs(folder, exist_ok=True)
    for name in names:
        path = os.path.join(folder, name + ".onnx")
        if os.path.exists(path):
            continue
        torch.manual_seed(0)
        model = getattr(torchvision.models, name)(weights=None)
        generator = torch.Generator().manual_seed(1)
        for key, buffer in model.named_buffers():
            if key.endswith("running_mean"):
                buffer.copy_(torch.randn(buffer.shape, generator=generator) * 0.05)
            if key.endswith("running_var"):
                buffer.copy_(torch.rand(buffer.shape, generator=generator) * 0.5 + 0.75)
        model.eval()
        image = torch.randn(1, 3, 224, 224, generator=generator)
        torch.onnx.export(
            model, image, path, opset_version=13, input_names=["input"], output_names=["output"]
        )
        print(path, flush=True)


main()
