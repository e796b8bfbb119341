"""A small builder for ONNX graphs: operators as calls, tensors as names."""

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
