"""Small TFLite models, written with the schema's own classes."""

import flatbuffers
import numpy as np
from flatbuffers import flexbuffers
from ai_edge_litert import schema_py_generated as schema

TYPES = {np.dtype(kind): getattr(schema.TensorType, kind.upper())
         for kind in ("float32", "float16", "int32", "int64", "int8", "uint8", "bool")}


# Operators whose first version LiteRT has not.
VERSIONS = {schema.BuiltinOperator.BROADCAST_TO: 2}


class Model:
    """Tensors and operators of one subgraph. A tensor is its index."""

    def __init__(self):
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators, self.graph.inputs, self.graph.outputs = [], [], [], []
        self.codes, self.buffers, self.variables = [], [schema.BufferT()], []

    def tensor(self, shape, kind="float32", data=None, scales=None, points=None, axis=0, name=None):
        tensor = schema.TensorT()
        tensor.shape = [int(dim) for dim in shape]
        tensor.type = schema.TensorType.RESOURCE if kind == "resource" else TYPES[np.dtype(kind)]
        tensor.name = (name or f"t{len(self.graph.tensors)}").encode()
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(data, dtype=kind).tobytes(), dtype=np.uint8)
            self.buffers.append(buffer)
            tensor.buffer = len(self.buffers) - 1
        if scales is not None:
            stated = schema.QuantizationParametersT()
            scales = np.atleast_1d(np.asarray(scales, dtype=np.float32))
            points = np.zeros(len(scales)) if points is None else np.atleast_1d(points)
            stated.scale, stated.zeroPoint = [float(scale) for scale in scales], [int(point) for point in points]
            stated.quantizedDimension = axis
            tensor.quantization = stated
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def constant(self, data, **about):
        data = np.asarray(data)
        return self.tensor(data.shape, data.dtype.name, data, **about)

    def input(self, *args, **about):
        index = self.tensor(*args, **about)
        self.graph.inputs.append(index)
        return index

    def variable(self, name, initial):
        """A handle of a variable that begins with these elements."""
        self.variables.append((name, initial))
        handle = self.tensor([], "resource")
        self.operator("VAR_HANDLE", [], [handle], "VarHandle", container="", sharedName=name)
        return handle

    def operator(self, name, inputs, outputs, options=None, **fields):
        """Options are named as in the schema, without `Options`."""
        code = getattr(schema.BuiltinOperator, name)
        if code not in self.codes:
            self.codes.append(code)
        operator = schema.OperatorT()
        operator.opcodeIndex = self.codes.index(code)
        operator.inputs, operator.outputs = list(inputs), list(outputs)
        if options:
            table = getattr(schema, f"{options}OptionsT")()
            for field, value in fields.items():
                assert hasattr(table, field), field
                setattr(table, field, value)
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, f"{options}Options")
            operator.builtinOptions = table
        self.graph.operators.append(operator)

    def custom(self, name, inputs, outputs, **options):
        """An operator of another's, by name."""
        if name not in self.codes:
            self.codes.append(name)
        operator = schema.OperatorT()
        operator.opcodeIndex = self.codes.index(name)
        operator.inputs, operator.outputs = list(inputs), list(outputs)
        operator.customOptions = list(flexbuffers.Dumps(options))
        self.graph.operators.append(operator)

    def _initialised(self):
        """The subgraph that runs once, and gives the variables their first elements."""
        main, self.graph = self.graph, schema.SubGraphT()
        once = self.graph
        once.tensors, once.operators, once.inputs, once.outputs = [], [], [], []
        for name, initial in self.variables:
            handle, value = self.tensor([], "resource"), self.constant(initial)
            self.operator("VAR_HANDLE", [], [handle], "VarHandle", container="", sharedName=name)
            self.operator("ASSIGN_VARIABLE", [handle, value], [], "AssignVariable")
        self.graph = main
        self.operator("CALL_ONCE", [], [], "CallOnce", initSubgraphIndex=1)
        main.operators.insert(0, main.operators.pop())
        return once

    def write(self, outputs):
        self.graph.outputs = list(outputs)
        model = schema.ModelT()
        subgraphs = [self.graph, self._initialised()] if self.variables else [self.graph]
        model.version, model.subgraphs, model.buffers, model.operatorCodes = 3, subgraphs, self.buffers, []
        for code in self.codes:
            stated = schema.OperatorCodeT()
            if isinstance(code, str):
                stated.customCode, code = code.encode(), schema.BuiltinOperator.CUSTOM
            stated.builtinCode, stated.deprecatedBuiltinCode, stated.version = code, min(code, 127), VERSIONS.get(code, 1)
            model.operatorCodes.append(stated)
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())
