"""`litert.py MODEL FRAMES`: runs frames through a .tflite file with LiteRT on one thread."""

import sys

import numpy
from ai_edge_litert.interpreter import Interpreter

interpreter = Interpreter(sys.argv[1], num_threads=1)
interpreter.allocate_tensors()
for given in interpreter.get_input_details():
    interpreter.set_tensor(given["index"], numpy.ones(given["shape"], given["dtype"]))
for _ in range(int(sys.argv[2])):
    interpreter.invoke()
