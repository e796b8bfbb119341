"""EM-HRNN as an ONNX graph, from word ids to probabilities and the weights that lead to them; the letters and the order
are those of paper/models/em_hrnn.py.

    inputs    words (words,)   sentence_lengths (sentences,) in words   document_lengths (documents,) in sentences
    outputs   probabilities (documents, classes)   z pi alpha (words,)   beta (phrases,)   gamma (sentences,)
"""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from emhrnn.layers.recurrent import LSTM, Recurrent
from emhrnn.models.pauses import Pauses
from emhrnn.paper.layers.attention import AttentionPool
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.training.run import Run

OPSET = 18  # the first with ScatterElements(reduction="max")
IR_VERSION = 8  # read by every onnxruntime of the last years
KINDS = {"int64": TensorProto.INT64, "float32": TensorProto.FLOAT, "bool": TensorProto.BOOL}
INPUTS = {
    "words": ("int64", ["words"]),
    "sentence_lengths": ("int64", ["sentences"]),
    "document_lengths": ("int64", ["documents"]),
}
OUTPUTS = {
    "probabilities": ("float32", ["documents", "classes"]),
    "z": ("bool", ["words"]),
    "pi": ("float32", ["words"]),
    "alpha": ("float32", ["words"]),
    "beta": ("float32", ["phrases"]),
    "gamma": ("float32", ["sentences"]),
}


class Graph:
    """A small builder for ONNX graphs, operators as calls and tensors as names: `name = graph.op("Add", a, b)`.
    Whatever is no name becomes a constant."""

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
    """Where each row of a flat tensor belongs. Every segment has at least one row.

    flat   a b c d e f        lengths  3 1 2
    segment of each row       0 0 0 1 2 2
    padded (time, segments)   a d e
                              b . f
                              c . .
    """

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


# ------------------------------------------------------------------ the network


def network(run: Run, model: EMHRNN) -> Any:
    """The ONNX model of a run with learned boundaries."""
    g = Graph()
    sentences, documents = Segments(g, "sentence_lengths"), Segments(g, "document_lengths")
    x = g.op("Gather", g.weight("embedding", _array(model.embedding.vectors())), "words")  # (words, size)
    h1 = _recurrent(g, "word_layer", x, sentences, *model.word_directions())  # (words, word_features)

    a = _linear(g, "indicator", h1, model.indicator)  # (words, 1)
    a = g.op("Squeeze", a, np.array([1]))
    if model.pauses is not None:
        a = g.op("Add", a, _pauses(g, model.pauses))
    over = g.op("Greater", a, float(model.threshold))
    z = g.op("Or", over, sentences.last_of_segment)
    phrase_ends = g.op("Cast", z, to=7)  # int64
    phrases_per_sentence = g.op("Cast", sentences.sums(g.op("Cast", z, to=1)), to=7)

    phrase_lengths = _lengths_from_ends(g, phrase_ends)
    phrases, phrases_in_sentences = Segments(g, phrase_lengths), Segments(g, phrases_per_sentence)
    q, alpha = _pool(g, "word_attention", h1, phrases, model.word_attention)  # (phrases, word_features)
    h2 = _recurrent(g, "phrase_layer", q, phrases_in_sentences, model.phrase_layer)
    p = g.op("Concat", h2, q, axis=1) if model.skip else h2
    s, beta = _pool(g, "phrase_attention", p, phrases_in_sentences, model.phrase_attention)
    h3 = _recurrent(g, "sentence_layer", s, documents, model.sentence_forward, model.sentence_backward)
    v, gamma = _pool(g, "sentence_attention", h3, documents, model.sentence_attention)
    logits = _linear(g, "output", v, model.output)
    logits = g.op("Div", logits, float(run.temperature))
    shares = g.op("Sigmoid", logits) if run.multi_label else g.op("Softmax", logits, axis=1)
    for name, tensor in {
        "probabilities": shares, "z": z, "pi": g.op("Sigmoid", a), "alpha": alpha, "beta": beta, "gamma": gamma,
    }.items():  # fmt: skip
        g.named(tensor, name)
    return g.model(INPUTS, OUTPUTS)


def _pauses(g: Graph, layer: Pauses) -> str:
    """o of every word; the next word of the last is any, as its o is of no use."""
    before, behind = (g.weight(f"pauses.{name}", array) for name, array in zip("eb", _array(layer.odds), strict=True))
    later = g.op("Slice", "words", np.array([1]), np.array([np.iinfo(np.int64).max]), np.array([0]))
    following = g.op("Concat", later, np.array([0]), axis=0)
    o: str = g.op("Add", g.op("Gather", before, "words"), g.op("Gather", behind, following))
    return o


def _lengths_from_ends(g: Graph, ends: str) -> str:
    """1 at the last row of each segment -> the lengths of the segments."""
    places = g.op("Squeeze", g.op("NonZero", ends), np.array([0]))  # rows that end a segment
    before = g.op("Slice", places, np.array([0]), np.array([-1]), np.array([0]))
    before = g.op("Concat", np.array([-1]), before, axis=0)
    lengths: str = g.op("Sub", places, before)
    return lengths


def _recurrent(g: Graph, name: str, x: str, segments: Segments, *directions: Recurrent) -> str:
    """States of one layer or of two, forward and backward, over each segment: (rows, directions * hidden)."""
    hidden = directions[0].hidden_size
    lstm = isinstance(directions[0], LSTM)
    gates = _lstm_gates if lstm else _gru_gates
    input_weight = np.stack([gates(_array(layer.input_weight)) for layer in directions])
    state_weight = np.stack([gates(_array(layer.state_weight)) for layer in directions])
    bias = np.stack([gates(_array(layer.bias)) for layer in directions])
    padded, *_ = g.op(
        "LSTM" if lstm else "GRU",
        segments.padded(x),
        g.weight(f"{name}.input_weight", input_weight),
        g.weight(f"{name}.state_weight", state_weight),
        g.weight(f"{name}.bias", np.concatenate([bias, np.zeros_like(bias)], axis=1)),  # of input and state
        g.op("Cast", segments.lengths, to=6),  # int32
        outputs=3 if lstm else 2,
        hidden_size=hidden,
        direction="bidirectional" if len(directions) == 2 else "forward",
        **({} if lstm else {"linear_before_reset": 1}),  # r * (U h), not U (r * h)
    )  # (time, directions, segments, hidden)
    joined = g.op("Transpose", padded, perm=[0, 2, 1, 3])
    joined = g.op("Reshape", joined, np.array([0, 0, len(directions) * hidden]))
    return segments.flat(joined)


def _lstm_gates(weight: np.ndarray) -> np.ndarray:
    """From our order i f g o to ONNX's i o f c."""
    i, f, g, o = np.split(weight, 4)
    return np.concatenate([i, o, f, g])


def _gru_gates(weight: np.ndarray) -> np.ndarray:
    """From our order r u n to ONNX's z r h; its z is 1 - u."""
    r, u, n = np.split(weight, 3)
    return np.concatenate([-u, r, n])


def _pool(g: Graph, name: str, h: str, segments: Segments, layer: AttentionPool) -> tuple[str, str]:
    size = layer.weight.shape[1]
    u = g.op("MatMul", h, g.weight(f"{name}.weight", _array(layer.weight).T))
    u = g.op("Tanh", g.op("Add", u, g.weight(f"{name}.bias", _array(layer.bias))))
    scores = g.op(
        "Squeeze", g.op("MatMul", u, g.weight(f"{name}.context", _array(layer.context)[:, None])), np.array([1])
    )
    weights = segments.softmax(scores)
    return segments.weighted_sums(h, weights, size), weights


def _linear(g: Graph, name: str, x: str, layer: nn.Linear) -> str:
    product = g.op("MatMul", x, g.weight(f"{name}.weight", _array(layer.weight).T))
    result: str = g.op("Add", product, g.weight(f"{name}.bias", _array(layer.bias)))
    return result


def _array(tensor: Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().float().numpy()
    return array
