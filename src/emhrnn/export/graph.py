"""A small builder for ONNX graphs: operators as calls, tensors as names; and ragged tensors, flat rows with the lengths
of their segments.

flat   a b c d e f        lengths  3 1 2
segment of each row       0 0 0 1 2 2
padded (time, segments)   a d e
                          b . f
                          c . .
"""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 18  # the first with ScatterElements(reduction="max")
IR_VERSION = 8  # read by every onnxruntime of the last years
KINDS = {"int64": TensorProto.INT64, "float32": TensorProto.FLOAT, "bool": TensorProto.BOOL}


class Graph:
    """`name = graph.op("Add", a, b)`; whatever is no name becomes a constant."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: dict[str, np.ndarray] = {}

    def op(self, kind: str, *inputs: "str | np.ndarray | float | int", outputs: int = 1, **attributes: Any) -> Any:
        names = [f"{kind.lower()}_{len(self.nodes)}_{k}" if outputs > 1 else f"{kind.lower()}_{len(self.nodes)}"
                 for k in range(outputs)]  # fmt: skip
        given = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        self.nodes.append(helper.make_node(kind, given, names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value: "np.ndarray | float | int") -> str:
        array = np.asarray(value, dtype=None if isinstance(value, np.ndarray) else _dtype(value))
        name = f"constant_{len(self.weights)}"
        self.weights[name] = array
        return name

    def weight(self, name: str, value: np.ndarray) -> str:
        """A constant with a name that people can find."""
        self.weights[name] = np.ascontiguousarray(value)
        return name

    def named(self, tensor: str, name: str) -> str:
        """The tensor under the name of an output."""
        self.nodes.append(helper.make_node("Identity", [tensor], [name]))
        return name

    def model(self, inputs: dict[str, tuple[str, list[str]]], outputs: dict[str, tuple[str, list[str]]]) -> Any:
        """Inputs and outputs are name -> (kind, names of the dimensions)."""
        taken, given = (
            [helper.make_tensor_value_info(name, KINDS[kind], shape) for name, (kind, shape) in told.items()]
            for told in (inputs, outputs)
        )
        weights = [numpy_helper.from_array(array, name) for name, array in self.weights.items()]
        graph = helper.make_graph(self.nodes, "em-hrnn", taken, given, initializer=weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="emhrnn")
        made.ir_version = IR_VERSION
        onnx.checker.check_model(made)
        return made


def _dtype(value: float | int) -> type:
    return np.int64 if isinstance(value, int) else np.float32


FIRST = np.array([0], dtype=np.int64)


class Segments:
    """Where each row of a flat tensor belongs. Every segment has at least one row."""

    def __init__(self, graph: Graph, lengths: str) -> None:
        self.graph, self.lengths = graph, lengths
        ends = graph.op("CumSum", lengths, 0)
        self.starts = graph.op("Sub", ends, lengths)
        self.count = graph.op("Shape", lengths)  # (1,)
        rows = graph.op("ReduceSum", lengths, keepdims=1)  # (1,)
        self.row = _range(graph, rows)
        # One at the first row of every segment but the first; the running sum is the segment.
        later = graph.op("Slice", self.starts, np.array([1]), np.array([2**62]), FIRST)
        ones = graph.op("Expand", np.array([1]), graph.op("Shape", later))
        marks = graph.op("ScatterElements", graph.op("Expand", np.array([0]), rows), later, ones, axis=0)
        self.of_row = graph.op("CumSum", marks, 0)
        self.place = graph.op("Sub", self.row, graph.op("Gather", self.starts, self.of_row))  # in the segment

    @property
    def last_of_segment(self) -> str:
        """True at the last row of each segment."""
        lengths = self.graph.op("Gather", self.lengths, self.of_row)
        last: str = self.graph.op("Equal", self.graph.op("Add", self.place, 1), lengths)
        return last

    def padded(self, rows: str) -> str:
        """(rows, features) -> (time, segments, features). What lies beyond a segment is some other row."""
        graph = self.graph
        longest = graph.op("ReduceMax", self.lengths, keepdims=1)
        times = graph.op("Unsqueeze", _range(graph, longest), np.array([1]))  # (time, 1)
        index = graph.op("Add", times, self.starts)  # (time, segments)
        end = graph.op("Sub", graph.op("ReduceSum", self.lengths, keepdims=0), 1)
        padded: str = graph.op("Gather", rows, graph.op("Min", index, end))
        return padded

    def flat(self, padded: str) -> str:
        """(time, segments, features) -> (rows, features)."""
        one = np.array([1])
        place = [self.graph.op("Unsqueeze", index, one) for index in (self.place, self.of_row)]
        rows: str = self.graph.op("GatherND", padded, self.graph.op("Concat", *place, axis=1))
        return rows

    def sums(self, values: str) -> str:
        """(rows,) -> (segments,)"""
        zeros = self.graph.op("Expand", self.graph.op("CastLike", 0.0, values), self.count)
        sums: str = self.graph.op("ScatterElements", zeros, self.of_row, values, axis=0, reduction="add")
        return sums

    def softmax(self, scores: str) -> str:
        """Within each segment, less the segment's own maximum."""
        graph = self.graph
        lowest = graph.op("Expand", np.array(-np.inf, dtype=np.float32), self.count)
        highest = graph.op("ScatterElements", lowest, self.of_row, scores, axis=0, reduction="max")
        weights = graph.op("Exp", graph.op("Sub", scores, graph.op("Gather", highest, self.of_row)))
        share: str = graph.op("Div", weights, graph.op("Gather", self.sums(weights), self.of_row))
        return share

    def weighted_sums(self, rows: str, weights: str, features: int) -> str:
        """(rows, features), (rows,) -> (segments, features)"""
        graph = self.graph
        weighted = graph.op("Mul", rows, graph.op("Unsqueeze", weights, np.array([1])))
        shape = graph.op("Concat", self.count, np.array([features]), axis=0)
        zeros = graph.op("Expand", np.array(0, dtype=np.float32), shape)
        index = graph.op("Unsqueeze", self.of_row, np.array([1]))
        sums: str = graph.op("ScatterND", zeros, index, weighted, reduction="add")
        return sums


def _range(graph: Graph, end: str) -> str:
    """0, 1, ... up to `end`, which has shape (1,)."""
    numbers: str = graph.op("Range", 0, graph.op("Squeeze", end, FIRST), 1)
    return numbers
