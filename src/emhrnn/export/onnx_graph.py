r"""`export_onnx`: the evidence model as one file that onnxruntime runs, in any language that it has.

Inputs are a ragged batch (corpus/batch.py): `words`, `sentence_offsets`, `document_offsets`. Outputs are `logits` and
calibrated `probabilities` (documents, classes), and `effects` (words, classes): what each word adds to the logits of
its document, which are the bias and the sum of its words. A phrase has the sum over its words. In the order of
models/evidence.py and layers/phrases.py:

    key(t, k)    a hash of the ids of the k words that end at word t; its place among the sorted keys of the seen
                 phrases by bisection, of all candidates at once
    e_y(t, k)    n^-presence table[row, y] + U_y^T tanh(b_k + sum over j < k of P_j x_(t-j))
    g(t, k)      prior of its length + pause_strength (odds[w_t] + odds'[w_(t+1)])
    d_y(t)       logsumexp over k of w_k + g(t, k) + e_y(t, k);   w'_1 = 0, w'_(k+1) = w_k - d: a Scan over the words of
                 all sentences at once, from the left and from the right
    gamma_i      of sentence i: softplus of a bidirectional GRU over mean word vectors, over its mean in the document
    lambda_i     gamma_i exp(strength) (words / 200)^-power, 0 in a document without known words
    logit_y      b_y + sum over i of lambda_i (alpha_y - its mean over classes, or with several labels the sum of
                 cohesion alone),   alpha_y = sum of d_y over the words of sentence i

Sums over words are in double precision. The metadata `vocabulary` has one word a line, line number = word id; the
metadata `emhrnn` is JSON: classes, whether a document has several, and how text becomes words.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.errors import DataError
from emhrnn.export import Exported, exportable, unsupported
from emhrnn.export.web_folder import javascript_pattern
from emhrnn.extras import need
from emhrnn.files import write_bytes
from emhrnn.layers.phrases import MIX, MOST_WORDS, UNKNOWN_WORD
from emhrnn.models.evidence_reader import USUAL_WORDS, EvidenceReader
from emhrnn.text.words import token_pattern
from emhrnn.training.run import Run
from emhrnn.version import __version__

OPSET, IR_VERSION = 18, 8  # onnxruntime 1.15 and later
INPUTS = ("words", "sentence_offsets", "document_offsets")


def export_onnx(run: Run, out: Path) -> Exported:
    """Write the file; one that is there is replaced.

    Raises:
        ConfigError: the model is not an evidence model with a learned segmentation, or it reads users and products.
        DataError: `out` is a folder.
        ExtraError: onnx is not installed.
    """
    if out.is_dir():
        raise DataError(f"{out} is a folder; give the name of a file")
    content = onnx_model(run).SerializeToString(deterministic=True)
    write_bytes(out, content)
    return Exported.of(run, out, len(content))


def onnx_model(run: Run) -> Any:
    """The graph with its metadata, checked. Raises as `export_onnx` does."""
    reader = exportable(run)
    if reader.config.ids:
        raise unsupported("evidence that reads users and products")
    need("onnx", "writing a model as ONNX", "onnx")
    from onnx import TensorProto, checker, helper

    evidence = _Evidence(reader, run.temperature)
    last = [
        helper.make_node("Cast", [value.name], [name], name, to=TensorProto.FLOAT)
        for name, value in evidence.outputs.items()
    ]
    rows = {"logits": "documents", "probabilities": "documents", "effects": "all_words"}
    graph = helper.make_graph(
        [*evidence.o.nodes, *last],
        "evidence",
        [helper.make_tensor_value_info(name, TensorProto.INT64, [f"{name}_size"]) for name in INPUTS],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [of, evidence.C]) for name, of in rows.items()],
        evidence.o.constants,
    )
    made_by = {"producer_name": "emhrnn", "producer_version": __version__, "ir_version": IR_VERSION}
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], **made_by)
    pattern = token_pattern(run.text.language)
    text = {"pattern": pattern, "javascript_pattern": javascript_pattern(pattern), **asdict(run.text)}
    told = {"classes": run.classes, "several": run.multi_label, "text": text}
    helper.set_model_props(model, {"emhrnn": json.dumps(told), "vocabulary": "\n".join(run.vocabulary.words)})
    checker.check_model(model, full_check=True)
    return model


@dataclass(frozen=True)
class _Value:
    """A value of the graph, by its name. Operators add nodes; x[i] are rows of x."""

    o: "_Nodes"
    name: str

    def __add__(self, other: Any) -> "_Value":
        return self.o("Add", self, other)

    def __sub__(self, other: Any) -> "_Value":
        return self.o("Sub", self, other)

    def __mul__(self, other: Any) -> "_Value":
        return self.o("Mul", self, other)

    def __truediv__(self, other: Any) -> "_Value":
        return self.o("Div", self, other)

    def __getitem__(self, rows: Any) -> "_Value":
        return self.o("Gather", self, rows)

    def of(self, kind: type[np.generic]) -> "_Value":
        from onnx import helper

        return self.o("Cast", self, to=helper.np_dtype_to_tensor_dtype(np.dtype(kind)))

    def column(self, axis: int = 1) -> "_Value":
        """With one more axis, of size 1."""
        return self.o("Unsqueeze", self, [axis])

    def shaped(self, *shape: int) -> "_Value":
        return self.o("Reshape", self, list(shape))

    def turned(self, *axes: int) -> "_Value":
        return self.o("Transpose", self, perm=axes)


class _Nodes:
    """The nodes of a graph in order. Their inputs are values, or numbers and arrays, which become constants."""

    def __init__(self, prefix: str = "", constants: list[Any] | None = None) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = [] if constants is None else constants
        self.prefix = prefix

    def __call__(self, operator: str, *inputs: Any, **attributes: Any) -> _Value:
        """The value of a new node."""
        return self.all(1, operator, *inputs, **attributes)[0]

    def all(self, outputs: int, operator: str, *inputs: Any, **attributes: Any) -> list[_Value]:
        """The values of a new node that has several."""
        from onnx import helper

        names = [f"{self.prefix}{operator}_{len(self.nodes)}_{i}" for i in range(outputs)]
        given = [value if isinstance(value, _Value) else self.constant(value) for value in inputs]
        self.nodes.append(helper.make_node(operator, [value.name for value in given], names, names[0], **attributes))
        return [_Value(self, name) for name in names]

    def constant(self, value: Any) -> _Value:
        """Numbers of Python become integers of 64 bits and floats of 32."""
        from onnx import numpy_helper

        array = np.asarray(value, dtype=np.float32 if type(value) is float else None)
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return _Value(self, name)


class _Segments:
    """Rows in segments, sentences of words or documents of sentences, as `offsets` has them."""

    def __init__(self, o: _Nodes, offsets: _Value) -> None:
        self.o = o
        self.starts, self.ends = o("Slice", offsets, [0], [-1]), o("Slice", offsets, [1], [np.iinfo(np.int64).max])
        self.lengths = self.ends - self.starts
        steps = o("Range", 0, o("ReduceMax", self.lengths, keepdims=0), 1)
        inside = o("Less", steps, self.lengths.column())  # (segments, longest)
        self.places = o("Where", inside, self.starts.column() + steps, 0)  # (segments, longest): rows, then the first
        found = o("NonZero", inside)
        self.rows = found.turned(1, 0)  # (rows, 2): segment and position of each row
        self.of_row, self.position = found[0], found[1]

    def sums(self, values: _Value) -> _Value:
        """(rows, n) -> (segments, n), in double precision."""
        running = self.o("Pad", self.o("CumSum", values.of(np.float64), 0), [1, 0, 0, 0])
        return running[self.ends] - running[self.starts]

    def flat(self, values: _Value) -> _Value:
        """(segments, longest, ...) -> (rows, ...)"""
        return self.o("GatherND", values, self.rows)


class _Evidence:
    """The formulas above for one model."""

    def __init__(self, reader: EvidenceReader, temperature: float) -> None:
        self.config, self.arrays, self.several = reader.config, reader.arrays, reader.several
        self.reader, self.temperature = reader, temperature
        self.K, self.C = reader.longest, len(reader.bias)
        self.o = o = _Nodes()
        self.words, offsets, document_offsets = (_Value(o, name) for name in INPUTS)
        self.sentences, self.documents = _Segments(o, offsets), _Segments(o, document_offsets)
        self.in_documents = _Segments(o, offsets[document_offsets])  # words
        self.t = o("Range", 0, o("Size", self.words), 1)
        self.before = o("Max", self.t.column() - np.arange(self.K), 0)  # (words, K): t - j
        self.vectors = o.constant(self.arrays["vectors"])
        scores = self.scores()
        left, right = self.compared(self.increments(scores)), self.compared(self.from_right(scores))
        lambdas = self.lambdas().column()  # (sentences, 1)
        alpha = self.sentences.sums(left)
        logits = self.documents.sums(lambdas * alpha) + self.arrays["bias"].astype(np.float64)
        shares = o("Sigmoid" if self.several else "Softmax", logits / np.float64(temperature))
        effects = (left + right) * (lambdas / np.float64(2))[self.sentences.of_row]
        self.outputs = {"logits": logits, "probabilities": shares, "effects": effects}

    # ------------------------------------------------------------------ potentials of candidate phrases

    def scores(self) -> _Value:
        """e + g of every candidate (words, K, C); with several labels, g alone as one more class."""
        g = self.cohesion().column(2)
        said = [part for part in (self.seen(), self.encoded()) if part is not None]
        e = said[0] if len(said) == 1 else said[0] + said[1]
        return self.o("Concat", e + g, g, axis=2) if self.several else e + g

    def seen(self) -> _Value | None:
        """n^-presence table[row, y] of candidates that training has seen: (words, K, C)."""
        o, table = self.o, self.reader.phrase_table
        if not (self.config.counts or self.config.tables) or not len(table):
            return None
        ids = self.words[self.before]  # (words, K)
        keys = self.keys(ids)
        seen = o.constant(self.reader.index.keys)
        rows = o("Min", _bisected(seen, len(table), keys), len(table) - 1)
        begun = o("GreaterOrEqual", self.sentences.position.column(), np.arange(self.K))
        missing = o("Not", o("And", begun, o("And", o("Equal", seen[rows], keys), _differ(ids, UNKNOWN_WORD))))
        found = o("Equal", o("CumSum", missing.of(np.int64), 1), 0)  # only if every phrase that it ends with is
        own = self.in_documents.of_row.column() * len(table) + rows
        _, _, place, counts = o.all(4, "Unique", o("Where", found, own, -1))
        times = counts[place].shaped(-1, self.K).of(np.float32)
        weights = o("Where", found, o("Pow", times, -self.config.presence), 0.0)
        return o.constant(table)[rows] * weights.column(2)

    def keys(self, ids: _Value) -> _Value:
        """Of candidates with these words, last word first. Products wrap, as int64 does: uint64 has none."""
        o, keys, state = self.o, [], self.o.constant(np.zeros((1, 1), dtype=np.uint64))
        wide = np.uint64(32)
        for k in range(self.K):
            state = o("BitwiseXor", state, o("Gather", ids, [k], axis=1).of(np.uint64))
            for factor in MIX:
                state = (state.of(np.int64) * factor.astype(np.int64)).of(np.uint64)
                state = o("BitwiseXor", state, o("BitShift", state, wide, direction="RIGHT"))
            half = o("BitShift", state, np.uint64(1), direction="RIGHT").of(np.int64)
            keys.append(o("BitwiseOr", o("BitwiseAnd", half, ~(MOST_WORDS - 1)), k))
        return o("Concat", *keys, axis=1)

    def encoded(self) -> _Value | None:
        """U^T tanh(b_k + sum over j < k of P_j x_(t-j)) of every candidate: (words, K, C)."""
        if not self.config.encoder_size:
            return None
        o, projection = self.o, self.arrays["encoder.projection"]  # (size, K, H)
        size, K, H = projection.shape
        each = o("MatMul", self.vectors[self.words], projection.reshape(size, K * H)).shaped(-1, H)
        total = o("CumSum", each[self.before * K + np.arange(K)], 1)  # (words, K, H)
        return o("MatMul", o("Tanh", total + self.arrays["encoder.bias"]), self.arrays["encoder.output"])

    def cohesion(self) -> _Value:
        """g of every candidate: (words, K)."""
        o, prior = self.o, self.arrays["length_prior"]
        if not self.config.pauses:
            return o("Expand", prior, o("Shape", self.before))
        after, before = map(o.constant, self.arrays["pauses.odds"])
        following = self.words[o("Min", self.t + 1, o("Size", self.words) - 1)]
        inside = _differ(self.t + 1, self.sentences.ends[self.sentences.of_row]).of(np.float32)
        odds = (after[self.words] + before[following]) * inside
        return odds.column() * self.arrays["pause_strength"] + prior

    # ------------------------------------------------------------------ sums over all segmentations

    def increments(self, scores: _Value) -> _Value:
        """d of every word, read from the left: (words, classes)."""
        from onnx import TensorProto, helper

        o, K, columns = self.o, self.K, self.C + self.several
        body = _Nodes(f"scan_{len(o.nodes)}_", o.constants)
        w, at = _Value(body, f"{body.prefix}w"), _Value(body, f"{body.prefix}at")
        d = body("ReduceLogSumExp", w + body("Gather", scores, at), [1], keepdims=0)  # (sentences, classes)
        shifted = body("Pad", body("Slice", w, [0], [K - 1], [1]) - d.column(), [0, 1, 0, 0, 0, 0])
        shapes: dict[_Value, list[str | int | None]] = {
            w: ["all", K, columns], at: ["all"], shifted: ["all", K, columns], d: ["all", columns]
        }  # fmt: skip
        infos = [
            helper.make_tensor_value_info(value.name, TensorProto.INT64 if value is at else TensorProto.FLOAT, shape)
            for value, shape in shapes.items()
        ]
        step = helper.make_graph(body.nodes, "word", infos[:2], infos[2:])
        start = np.where(np.arange(K) == 0, 0, -np.inf).astype(np.float32)[None, :, None]
        shape = o("Concat", o("Shape", self.sentences.lengths), [K, columns], axis=0)
        places = self.sentences.places.turned(1, 0)  # (longest, sentences)
        _, each = o.all(2, "Scan", o("Expand", start, shape), places, body=step, num_scan_inputs=1)
        return self.sentences.flat(each.turned(1, 0, 2))

    def from_right(self, scores: _Value) -> _Value:
        """d of every word, read from the right: of mirrored sentences, in which a phrase ends with its first word."""
        sentences, K = self.sentences, self.K
        mirror = (sentences.starts + sentences.ends - 1)[sentences.of_row] - self.t  # (words)
        ends = mirror.column() + self.o("Min", sentences.position.column(), np.arange(K))
        return self.increments(scores.shaped(-1, self.C + self.several)[ends * K + np.arange(K)])[mirror]

    def compared(self, d: _Value) -> _Value:
        """With what is said without evidence, or with the mean of the classes: (words, C), in double precision."""
        d = d.of(np.float64)
        if not self.several:
            return d - self.o("ReduceMean", d, [1])
        said, free = (self.o("Slice", d, [begin], [end], [1]) for begin, end in ((0, self.C), (self.C, self.C + 1)))
        return said - free

    # ------------------------------------------------------------------ weights of sentences

    def lambdas(self) -> _Value:
        """Of every sentence, in double precision: (sentences)."""
        o, strength, power = self.o, self.arrays["strength"], self.arrays["power"]
        logs = o("Log", self.in_documents.lengths.of(np.float32) / float(USUAL_WORDS))
        known = self.in_documents.sums(_differ(self.words, UNKNOWN_WORD).column())
        known = o("Squeeze", o("Greater", known, np.float64(0)).of(np.float64), [1])
        of_document = o("Exp", logs * -power + strength).of(np.float64) * known
        of_sentence = of_document[self.documents.of_row]
        return of_sentence * self.gamma() if self.config.sentence_weights else of_sentence

    def gamma(self) -> _Value:
        """Of every sentence, with a mean of 1 in each document."""
        o, H = self.o, self.config.sentence_weights
        sums = self.sentences.sums(self.vectors[self.words])  # (sentences, size)
        means = (sums / self.sentences.lengths.of(np.float64).column()).of(np.float32)
        x = means[self.documents.places].turned(1, 0, 2)  # (most sentences, documents, size)
        given = [np.stack(both) for both in zip(*map(self._gru, ("forward", "backward")), strict=True)]
        h = o("GRU", x, *given, self.documents.lengths.of(np.int32), hidden_size=H, direction="bidirectional",
              linear_before_reset=1)  # fmt: skip
        states = self.documents.flat(h.turned(2, 0, 1, 3)).shaped(-1, 2 * H)
        raw = o("Softplus", o("MatMul", states, self.arrays["weigher.score"][:, None])).of(np.float64)
        mean = self.documents.sums(raw) / self.documents.lengths.of(np.float64).column()
        return o("Squeeze", raw / mean[self.documents.of_row], [1])

    def _gru(self, way: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """In the order of ONNX, whose update gate is 1 - u, and which has two biases: z r h from r u n."""
        of_input, of_state, bias = (
            self.arrays[f"weigher.layer.{way}_layer.{part}"] for part in ("input_weight", "state_weight", "bias")
        )

        def ordered(rows: np.ndarray) -> np.ndarray:
            r, u, n = np.split(rows, 3)
            return np.concatenate([-u, r, n])

        return ordered(of_input), ordered(of_state), np.append(ordered(bias), np.zeros_like(bias))


def _differ(value: _Value, other: Any) -> _Value:
    return value.o("Not", value.o("Equal", value, other))


def _bisected(keys: _Value, n: int, wanted: _Value) -> _Value:
    """How many of n sorted keys are below each wanted one. Whatever n is, no step leaves the keys: the first one leaves
    a power of two of places."""
    o, step = keys.o, 1 << (n.bit_length() - 1)
    row = o("Where", o("Less", keys[[step - 1]], wanted), n - step + 1, 0)
    while step := step // 2:
        row = row + o("Less", keys[row + (step - 1)], wanted).of(np.int64) * step
    return row
