"""Hand-written models beside ONNX Runtime: what csdfc does with a graph as it reads it. Bodies and functions are inlined,
nodes of constants are computed, and nodes that ONNX Runtime fused become others again."""

import re

import numpy as np
from onnx import numpy_helper, parser

import models

# Each model in ONNX's text syntax, and the dimensions of its constants, which are drawn.
MODELS = {
    "if of a shape": ("""
        g (float[1, 1, 6] x) => (float[A, B] y) {
            shape = Shape (x)
            one = Constant <value = int64[1] {1}> ()
            size = Gather (shape, one)
            is_one = Equal (size, one)
            z = If (is_one) <
                then_branch = t () => (float[A, B] t1) { t1 = Squeeze (x, one) },
                else_branch = e () => (float[A, B, C] e1) { e1 = Identity (x) }
            >
            y = Softmax (z)
        }""", {}),
    "loop": ("""
        g (float[1, 6] x) => (float[1, 6] y, float[N, 1, 6] all) {
            count = Constant <value = int64 {4}> ()
            go_on = Constant <value = bool {1}> ()
            y, all = Loop (count, go_on, x) <body = b (int64 i, bool c, float[1, 6] v) => (bool d, float[1, 6] w, float[1, 6] s) {
                d = Identity (c)
                u = MatMul (v, weights)
                f = Cast <to = 1> (i)
                s = Add (u, f)
                w = Tanh (s)
            }>
        }""", {"weights": [6, 6]}),
    "loop within a branch": ("""
        g (float[1, 6] x) => (float[1, 6] y) {
            count = Constant <value = int64 {3}> ()
            holds = Constant <value = bool {1}> ()
            y = If (holds) <
                then_branch = t () => (float[1, 6] t1) {
                    t1 = Loop (count, , x) <body = b (int64 i, bool c, float[1, 6] v) => (bool d, float[1, 6] w) {
                        d = Identity (c)
                        u = Mul (v, weights)
                        w = Sigmoid (u)
                    }>
                },
                else_branch = e () => (float[1, 6] e1) { e1 = Identity (x) }
            >
        }""", {"weights": [6]}),
    "functions": ("""
        g (float[1, 6] x) => (float[1, 6] y) {
            a = own.Outer <slope = 0.25> (x, weights)
            y = own.Outer (a, weights)
        }
        <domain: "own", opset_import: ["": 17, "own": 1]>
        Outer <slope: float = 0.5> (a, b) => (c) {
            s = own.Inner <slope: float = @slope> (a)
            c = MatMul (s, b)
        }
        <domain: "own", opset_import: ["": 17]>
        Inner <slope> (a) => (b) { b = LeakyRelu <alpha: float = @slope> (a) }""", {"weights": [6, 6]}),
    "products of constants": ("""
        g (float[1, 6] x) => (float[1, 6] y) {
            low = MatMul (a, b)
            half = Constant <value = float {0.5}> ()
            scaled = Mul (low, half)
            whole = Add (scaled, weights)
            bias = Gemm <transB = 1> (c, weights)
            y = Gemm (x, whole, bias)
        }""", {"a": [6, 2], "b": [2, 6], "c": [1, 6], "weights": [6, 6]}),
    "filters of constants": ("""
        g (float[1, 2, 7, 7] x) => (float[1, 4, 5, 5] y) {
            pads = Constant <value = int64[8] {0, 0, 1, 1, 0, 0, 1, 1}> ()
            point = Pad (w1, pads)
            both = Add (point, w3)
            twice = Conv <pads = [1, 1, 1, 1]> (both, mix)
            share = Softmax <axis = 0> (branches)
            weighted = Mul (twice, share)
            y = Conv (x, weighted)
        }""", {"w1": [4, 2, 1, 1], "w3": [4, 2, 3, 3], "mix": [2, 2, 3, 3], "branches": [4, 1, 1, 1]}),
    "positions of constants": ("""
        g (float[1, 4, 6, 8] x) => (float[1, 4, 6, 8] y) {
            scales = Constant <value = float[4] {1.0, 1.0, 2.0, 2.0}> ()
            larger = Resize <mode = "linear"> (grid, , scales)
            angle = Sin (larger)
            moved = BatchNormalization (angle, scale, bias, mean, positive)
            y = Add (x, moved)
        }""", {"grid": [1, 4, 3, 4], "scale": [4], "bias": [4], "mean": [4], "positive": [4]}),
    "fused convolutions": ("""
        g (float[1, 2, 7, 7] x) => (float[1, 2, 7, 7] y) {
            a = com.microsoft.FusedConv <activation = "LeakyRelu", activation_params = [0.25], pads = [1, 1, 1, 1]> (x, w)
            y = com.microsoft.FusedConv <activation = "Relu", pads = [1, 1, 1, 1]> (a, w, bias, x)
        }""", {"w": [2, 2, 3, 3], "bias": [2]}),
    "fused functions": ("""
        g (float[1, 5, 6] x) => (float[1, 5, 6] y) {
            a = com.microsoft.BiasGelu (x, bias)
            b = com.microsoft.FastGelu (a)
            c = com.microsoft.QuickGelu <alpha = 1.5> (b)
            d = com.microsoft.SkipLayerNormalization (c, x, positive, bias)
            y = com.microsoft.SkipSimplifiedLayerNormalization (d, x, positive)
        }""", {"bias": [6], "positive": [6]}),
    "fused products": ("""
        g (float[1, 5, 6] x, float[1, 5, 6] z) => (float[1, 6, 4] y) {
            a = com.microsoft.FusedMatMul <alpha = 0.5, transB = 1> (x, z)
            b = com.microsoft.FusedMatMul <transA = 1> (x, a)
            y = com.microsoft.FusedMatMul <transB = 1> (b, weights)
        }""", {"weights": [4, 5]}),
    "quotients of indices": ("""
        g (float[1, 40] x) => (float[1, 5] y) {
            count = Constant <value = int64[1] {5}> ()
            seven = Constant <value = int64 {7}> ()
            less = Constant <value = int64 {-3}> ()
            many = Constant <value = int64 {20}> ()
            best, at = TopK (x, count)
            row = Div (at, seven)
            column = Mod (at, seven)
            below = Sub (at, many)
            up = Div (below, less)
            left = Mod (below, less)
            rest = Mod <fmod = 1> (below, less)
            a = Add (row, column)
            b = Add (up, left)
            c = Add (a, b)
            d = Add (c, rest)
            e = Mul (d, row)
            f = Cast <to = 1> (e)
            y = Add (best, f)
        }""", {}),
    "parts at computed places": ("""
        g (float[1, 3, 4, 5] x) => (float[1, 3, 2] y, float[2, 4, 5] z) {
            flat = Constant <value = int64[3] {1, 3, 20}> ()
            two = Constant <value = int64[1] {2}> ()
            last = Constant <value = int64[1] {-1}> ()
            five = Constant <value = int64 {5}> ()
            zero = Constant <value = int64[1, 3, 2, 1] {0, 0, 0, 0, 0, 0}> ()
            channel = Constant <value = int64[1, 3, 2, 1] {0, 0, 1, 1, -1, -1}> ()
            lines = Reshape (x, flat)
            best, at = TopK (lines, two)
            row = Div (at, five)
            column = Mod (at, five)
            rows = Unsqueeze (row, last)
            columns = Unsqueeze (column, last)
            places = Concat <axis = -1> (zero, channel, rows, columns)
            y = GatherND (x, places)
            some = Constant <value = int64[2, 2] {0, 2, 0, -3}> ()
            z = GatherND (x, some)
        }""", {}),
    "convolutions of windows": ("""
        g (float[1, 2, 8, 8] x) => (float[1, 4, 8, 8] y, float[4, 2, 8] z) {
            cut = Constant <value = int64[6] {1, 2, 2, 4, 2, 4}> ()
            batch = Constant <value = int64[4] {4, 2, 4, 4}> ()
            back = Constant <value = int64[6] {1, 2, 2, 4, 4, 4}> ()
            whole = Constant <value = int64[4] {1, 4, 8, 8}> ()
            line = Constant <value = int64[3] {4, 2, 16}> ()
            a = Reshape (x, cut)
            b = Transpose <perm = [0, 2, 4, 1, 3, 5]> (a)
            windows = Reshape (b, batch)
            c = Conv <pads = [1, 1, 1, 1]> (windows, w)
            d = Relu (c)
            e = Reshape (d, back)
            f = Transpose <perm = [0, 3, 1, 4, 2, 5]> (e)
            y = Reshape (f, whole)
            lines = Reshape (windows, line)
            z = Conv <strides = [2], pads = [1, 1]> (lines, v)
        }""", {"w": [4, 2, 3, 3], "v": [2, 2, 3]}),
    "tables": ("""
        g (float[1, 12] x) => (float[1, 3, 4] y, float[1, 3] z, float[1, 3] w) {
            three = Constant <value = int64[1] {3}> ()
            numbers = Constant <value = int64[1, 12] {5, 3, 9, 1, 0, 7, 2, 8, 4, 6, 11, 10}> ()
            best, at = TopK (x, three)
            y = Gather (table, at)
            z = GatherElements <axis = 1> (line, at)
            n = GatherElements <axis = 1> (numbers, at)
            w = Cast <to = 1> (n)
        }""", {"table": [12, 4], "line": [1, 12]}),
    "what is no number": ("""
        g (float[1, 8] x) => (float[1, 8] y, float[1, 8] z) {
            zero = Constant <value = float {0.0}> ()
            one = Constant <value = float {1.0}> ()
            root = Sqrt (x)
            is_none = IsNaN (root)
            y = Where (is_none, zero, root)
            up = Relu (x)
            large = Div (one, up)
            is_large = IsInf (large)
            w = Where (is_large, one, large)
            less = IsInf <detect_positive = 0> (large)
            v = Cast <to = 1> (less)
            z = Add (v, w)
        }""", {}),
    "bytes of classes": ("""
        g (float[1, 300, 2, 3] x) => (float[1, 2, 3] y) {
            class = ArgMax <axis = 1, keepdims = 0> (x)
            bytes = Cast <to = 2> (class)
            y = Cast <to = 1> (bytes)
        }""", {}),
    "queries that are constants": ("""
        g (float[1, 6, 8] x) => (float[1, 2, 5, 6] y, float[1, 4, 5, 8] z, float[2, 3, 8] w) {
            cut = Constant <value = int64[4] {1, 6, 2, 4}> ()
            heads = Reshape (x, cut)
            keys = Transpose <perm = [0, 2, 3, 1]> (heads)
            scores = MatMul (queries, keys)
            y = Softmax <axis = -1> (scores)
            z = MatMul (many, x)
            w = MatMul (two, x)
        }""", {"queries": [1, 2, 5, 4], "many": [1, 4, 5, 6], "two": [2, 3, 6]}),
    "classes, sums and triangles": ("""
        g (float[1, 5, 6] x) => (float[1, 5, 6] y, float[1, 4, 5] z, float[1, 5, 6] w, float[1, 5, 6] u, float[1, 5, 6] t) {
            axis = Constant <value = int64 {2}> ()
            rows = Constant <value = int64 {-2}> ()
            depth = Constant <value = int64 {4}> ()
            values = Constant <value = float[2] {-1.0, 2.0}> ()
            minus = Constant <value = int64 {-3}> ()
            zero = Constant <value = float {0.0}> ()
            diagonal = Constant <value = int64 {1}> ()
            best = ArgMax <axis = 2, keepdims = 0> (x)
            place = Add (best, minus)
            z = OneHot <axis = 1> (place, depth, values)
            up = Greater (x, zero)
            mask = Cast <to = 7> (up)
            counts = CumSum <exclusive = 1> (mask, axis)
            y = Cast <to = 1> (counts)
            upper = Trilu (x, diagonal)
            w = CumSum <reverse = 1> (upper, rows)
            lower = Trilu <upper = 0> (x)
            u = Hardmax (lower)
            s = Sinh (lower)
            c = Cosh (upper)
            v = Tan (x)
            a = Add (s, c)
            t = Add (a, v)
        }""", {}),
    "heads of attention": ("""
        g (float[1, 9, 8] x) => (float[1, 9, 8] y, float[1, 9, 4, 2] z) {
            cut = Constant <value = int64[4] {1, 9, 2, 4}> ()
            pairs = Constant <value = int64[4] {1, 9, 4, 2}> ()
            whole = Constant <value = int64[3] {1, 9, 8}> ()
            a = MatMul (x, q)
            b = Reshape (a, cut)
            queries = Transpose <perm = [0, 2, 1, 3]> (b)
            c = MatMul (x, k)
            d = Reshape (c, cut)
            keys = Transpose <perm = [0, 2, 3, 1]> (d)
            e = MatMul (x, v)
            f = Reshape (e, cut)
            values = Transpose <perm = [0, 2, 1, 3]> (f)
            scores = MatMul (queries, keys)
            shares = Softmax <axis = -1> (scores)
            made = MatMul (shares, values)
            back = Transpose <perm = [0, 2, 1, 3]> (made)
            joined = Reshape (back, whole)
            y = MatMul (joined, o)
            images = Reshape (y, pairs)
            turned = Transpose <perm = [0, 1, 3, 2]> (images)
            twice = Transpose <perm = [0, 1, 3, 2]> (turned)
            z = Relu (twice)
        }""", {name: [8, 8] for name in "qkvo"}),
    "an output listed twice": ("""
        g (float[1, 6] x) => (float[1, 6] y, float[1, 6] y) { y = Relu (x) }""", {}),
}


def run(tool, summary, only, seed):
    for case in MODELS:
        if re.search(only, case):
            summary.check("graphs", case, lambda case=case: beside_runtime(tool, case, seed))


def beside_runtime(tool, case, seed):
    file = tool.work / f"{case.replace(' ', '_')}.onnx"
    file.write_bytes(model(case, seed).SerializeToString())
    return models.beside_runtime(tool, file, seed, "fp32")


def model(case, seed):
    text, constants = MODELS[case]
    head = '<ir_version: 8, opset_import: ["": 17, "own": 1, "com.microsoft": 1]>'
    made = parser.parse_model(head + text)
    random = np.random.default_rng(seed)
    for name, dims in constants.items():
        values = random.normal(0, 0.5, dims).astype(np.float32)
        values = np.abs(values) + np.float32(0.5) if name == "positive" else values
        made.graph.initializer.append(numpy_helper.from_array(values, name))
    return made
