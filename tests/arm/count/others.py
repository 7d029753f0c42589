"""`others.py MODEL FRAMES`: runs frames through a model with ONNX Runtime, or with LiteRT if it is a .tflite file, on one
thread."""

import sys

import numpy


def onnx(file):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    frame = {given.name: numpy.ones(given.shape, {"tensor(float)": numpy.float32}[given.type]) for given in session.get_inputs()}
    return lambda: session.run(None, frame)


def tflite(file):
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(file, num_threads=1)
    interpreter.allocate_tensors()
    for given in interpreter.get_input_details():
        interpreter.set_tensor(given["index"], numpy.ones(given["shape"], given["dtype"]))
    return interpreter.invoke


infer = (tflite if sys.argv[1].endswith(".tflite") else onnx)(sys.argv[1])
for _ in range(int(sys.argv[2])):
    infer()
