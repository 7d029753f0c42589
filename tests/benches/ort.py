"""`ort.py MODEL FRAMES`: runs frames through an ONNX model with ONNX Runtime on one thread. Prints the KiB that the
process had at most before the session was made (`bare`) and at the end (`peak`), and the seconds from there to the
first output (`first`)."""
import sys
import time

import numpy
import onnxruntime


def highest():
    with open("/proc/self/status") as status:
        return next(line.split()[1] for line in status if line.startswith("VmHWM:"))


print("bare", highest())
start = time.perf_counter()
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
options.inter_op_num_threads = 1
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
image = session.get_inputs()[0]
frame = {image.name: numpy.ones(image.shape, numpy.float32)}
for i in range(int(sys.argv[2])):
    session.run(None, frame)
    if i == 0:
        print("first", time.perf_counter() - start)
print("peak", highest())
