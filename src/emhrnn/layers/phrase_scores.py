"""What each candidate phrase (phrases.py) says for each class in a trained model, and the states of a GRU: NumPy and
the native kernels alone. evidence.py has the formulas, and the same with gradients for training."""

from dataclasses import dataclass

import numpy as np

from emhrnn.cores import threads
from emhrnn.layers.native import kernels
from emhrnn.layers.native.library import CELLS, check_index, check_offsets, check_shape
from emhrnn.layers.order import Order
from emhrnn.layers.phrases import NONE, Candidates
from emhrnn.shapes import Float32, Float64, Int64

Scores = Float32[np.ndarray, "words K classes"]
Offsets = Int64[np.ndarray, " segments_plus_1"]


def table_scores(
    table: Float32[np.ndarray, "rows classes"], rows: Candidates, weights: Float32[np.ndarray, "words K"]
) -> Scores:
    """weight * table[row] of every candidate, 0 where it has no row. Raises an IndexError for row numbers and shapes
    that do not match."""
    check_shape("weights", weights, rows.shape)
    check_index(rows, len(table), least=NONE)
    scores = np.zeros((*rows.shape, table.shape[1]), dtype=np.float32)
    if native := kernels():
        native.call(
            "gather_rows", rows.size, table.shape[1], np.ascontiguousarray(rows), np.ascontiguousarray(weights), table,
            scores, threads(),
        )  # fmt: skip
        return scores
    found = rows != NONE
    scores[found] = table[rows[found]] * weights[found][:, None]
    return scores


def add_cohesion(scores: Scores, cohesion: Float32[np.ndarray, "words K"]) -> Scores:
    """The scores with the cohesion of each candidate, the same for every class, in place."""
    check_shape("cohesion", cohesion, scores.shape[:2])
    if native := kernels():
        native.call("add_to_rows", cohesion.size, scores.shape[2], np.ascontiguousarray(cohesion), scores)
    else:
        scores += cohesion[:, :, None]
    return scores


@dataclass(frozen=True, eq=False)
class PhraseEncoder:
    """U^T tanh(b_k + sum over j < k of P_j x_(t-j)) of every candidate phrase, x: word vectors."""

    projection: Float32[np.ndarray, "K_hidden size"]  # P, one row for each output
    bias: Float32[np.ndarray, "K hidden"]
    output: Float32[np.ndarray, "hidden classes"]

    def project(self, vectors: Float32[np.ndarray, "n size"]) -> Float32[np.ndarray, "n K hidden"]:
        """P x of words."""
        return linear(vectors, self.projection).reshape(len(vectors), *self.bias.shape)

    def add_scores(
        self,
        scores: Scores,
        projected: Float32[np.ndarray, "distinct K hidden"],
        places: Int64[np.ndarray, " words"],
        sentence_offsets: Offsets,
    ) -> Scores:
        """Add those of every candidate to `scores`, in place; nothing for candidates that would begin before their
        sentence. `places` are the rows of the words in `projected`. Raises an IndexError for offsets, places and shapes
        that do not match."""
        check_offsets(sentence_offsets, len(places))
        check_index(places, len(projected))
        (K, H), C = self.bias.shape, self.output.shape[1]
        check_shape("projected words", projected, (len(projected), K, H))
        check_shape("scores", scores, (len(places), K, C))
        if native := kernels():
            native.call(
                "encoder_forward", len(sentence_offsets) - 1, np.ascontiguousarray(sentence_offsets), K, H, C,
                np.ascontiguousarray(places), projected, self.bias, self.output, None, scores, threads(),
            )  # fmt: skip
            return scores
        lengths = np.diff(sentence_offsets)
        position = np.arange(len(places)) - np.repeat(sentence_offsets[:-1], lengths)  # in its sentence
        total = np.zeros((len(places), H), dtype=np.float32)
        for k in range(K):
            total += projected[np.roll(places, k), k]  # (words, hidden)
            scores[:, k] += np.tanh(total + self.bias[k]) @ self.output * (position >= k)[:, None]
        return scores


@dataclass(frozen=True, eq=False)
class GRUWeights:
    """Of a GRU (cells.py): rows in the order r u n."""

    input_weight: Float32[np.ndarray, "three_H D"]
    state_weight: Float32[np.ndarray, "three_H H"]
    bias: Float32[np.ndarray, " three_H"]

    def states(self, x: Float32[np.ndarray, "n D"], order: Order) -> Float32[np.ndarray, "n H"]:
        """h of every row, with a zero state at the start of each sequence."""
        n, H = len(x), self.state_weight.shape[1]
        check_offsets(order.offsets, n)
        # All inputs in one product. Else each step of a single long sequence would read their weights from memory, too.
        gates = linear(x, self.input_weight, self.bias)  # (n, 3H)
        h = np.empty((n, H), dtype=np.float32)
        if native := kernels():
            native.call(
                "recurrent_forward", CELLS["gru"], len(order.offsets) - 1, np.ascontiguousarray(order.offsets),
                order.sequences, int(order.reverse), H, 3 * H, None, gates, None, None, self.state_weight, None, None,
                None, h, threads(),
            )  # fmt: skip
            return h
        gates = gates[order.rows]  # packed
        state = np.zeros((len(order.lengths), H), dtype=np.float32)  # longest first
        for start, size in zip(order.starts, order.batch_sizes.tolist(), strict=False):
            own, before = gates[start : start + size], state[:size]
            r, u, s = np.split(before @ self.state_weight.T, 3, axis=1)
            r, u = _sigmoid(own[:, :H] + r), _sigmoid(own[:, H : 2 * H] + u)
            state[:size] = before + u * (np.tanh(own[:, 2 * H :] + r * s) - before)
            h[order.rows[start : start + size]] = state[:size]
        return h


def segment_means(
    table: Float32[np.ndarray, "n D"], rows: Int64[np.ndarray, " words"], offsets: Offsets
) -> Float32[np.ndarray, "segments D"]:
    """The mean of the rows that each segment names, which must name one at least. Raises an IndexError for row numbers
    and offsets that do not match."""
    check_offsets(offsets, len(rows))
    check_index(rows, len(table))
    if native := kernels():
        means = np.empty((len(offsets) - 1, table.shape[1]), dtype=np.float32)
        native.call(
            "segment_means", len(means), np.ascontiguousarray(offsets), np.ascontiguousarray(rows), table.shape[1],
            table, means, threads(),
        )  # fmt: skip
        return means
    sums: np.ndarray = np.add.reduceat(table[rows], offsets[:-1])
    return sums / np.diff(offsets).astype(np.float32)[:, None]


def segment_sums(
    values: Float64[np.ndarray, "n C"], starts: Int64[np.ndarray, " segments"]
) -> Float64[np.ndarray, "segments C"]:
    """Sums of rows of segments, none of them empty: segment i is rows starts[i] : starts[i + 1], the last one goes to
    the end. Raises an IndexError for starts that do not rise from 0."""
    offsets = np.append(starts, len(values))
    check_offsets(offsets, len(values))
    if native := kernels():
        sums = np.empty((len(starts), values.shape[1]))
        native.call("segment_sums", len(starts), offsets, values.shape[1], np.ascontiguousarray(values), sums)
        return sums
    result: np.ndarray = np.add.reduceat(values, starts)  # which is slow for short rows
    return result


def linear(
    x: Float32[np.ndarray, "n D"],
    weight: Float32[np.ndarray, "columns D"],
    bias: Float32[np.ndarray, " columns"] | None = None,
) -> Float32[np.ndarray, "n columns"]:
    """x weight^T + bias."""
    check_shape("x", x, (len(x), weight.shape[1]))
    if native := kernels():
        y = np.empty((len(x), len(weight)), dtype=np.float32)
        native.call("linear", *x.shape, len(weight), np.ascontiguousarray(x), weight, bias, y, threads())
        return y
    product: np.ndarray = x @ weight.T
    return product if bias is None else product + bias


def _sigmoid(x: Float32[np.ndarray, "n H"]) -> Float32[np.ndarray, "n H"]:
    y: np.ndarray = np.exp(-np.logaddexp(np.float32(0), -x))
    return y
