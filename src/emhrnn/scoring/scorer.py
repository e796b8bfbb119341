"""The batch function: a chunk of rows in, its part of the output file out. The same in every process."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64

from emhrnn.api import labels_of
from emhrnn.cores import set_threads
from emhrnn.corpus.batch import Batch
from emhrnn.evaluation.predict import predict
from emhrnn.explain.explainer import explain_texts, explanations_of
from emhrnn.explain.explanation import DecisivePath, Phrase, Sentence, Word
from emhrnn.files import encoded
from emhrnn.scoring.output import Row, ScoredPart, to_bytes
from emhrnn.text import Text
from emhrnn.training.run import load_run

NO_WORDS = "no words"
FEW_WORDS = 40_000  # of a vocabulary whose input projections are all kept: 64 MB at most in the default sizes
LEVELS = ("sentence", "phrase", "word")


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is asked of each row."""

    run: Path
    suffix: str  # of the file to write
    explain: bool = False


class Scorer:
    """Holds the run, ready to predict. One thread: processes make better use of the cores than threads do."""

    def __init__(self, task: Task) -> None:
        set_threads(1)
        self.task = task
        self.run = load_run(task.run)
        self._shares = [f"p_{name}" for name in self.run.classes]
        # A word costs a look-up once its input projection is there: 1.6 kB. All of GloVe's would be 160 MB in every
        # process; a chunk uses a sixth of them, ten times each and more.
        self._all_words = len(self.run.vocabulary) <= FEW_WORDS
        if self._all_words:
            self.run.model.precompute_words()
        if task.explain:
            explain_texts(self.run, ["word"])  # a model that cannot explain says so now

    @property
    def columns(self) -> list[str]:
        flat = [f"{level}{what}" for level in LEVELS for what in ("", "_weight", "_effect")]
        decided = ["decided"] if self.task.suffix == ".jsonl" else flat
        return ["id", "label", *self._shares, *(decided if self.task.explain else [])]

    def __call__(self, payload: bytes) -> ScoredPart:
        chunk = json.loads(payload)
        first, rows = int(chunk["first"]), list[dict[str, Any]](chunk["rows"])
        batch = self._read(rows)
        scored = [] if batch is None else batch.rows.tolist()
        for index in set(range(len(rows))).difference(scored):
            rows[index].setdefault("fault", NO_WORDS)
        table = [{**dict.fromkeys(self.columns), "id": row["id"]} for row in rows]  # each row of the data has its row
        if batch is not None:
            self._fill([table[i] for i in scored], [rows[i] for i in scored], batch)
        return ScoredPart(
            rows=to_bytes(self.task.suffix, self.columns, table, first=first == 0),
            errors=encoded("".join(_error(row, first + index) for index, row in enumerate(rows))),
            documents=len(rows),
            words=0 if batch is None else batch.n_words,
            unscored=len(rows) - len(scored),
            repaired=sum("repairs" in row and "fault" not in row for row in rows),
        )

    def _read(self, rows: list[dict[str, Any]]) -> Batch | None:
        """The rows that have words."""
        names: dict[str, Any] = {f"{kind}s": [row.get(kind) for row in rows] for kind in ("user", "product")}
        return self.run.encoder.encode_usable([_text(row) for row in rows], **names)

    def _fill(self, table: list[Row], rows: list[dict[str, Any]], batch: Batch) -> None:
        """Label, probabilities and, if asked for, what decided."""
        run = self.run
        if not self._all_words:
            run.model.forget_words()  # before there are new ones: memory for one table is enough
            run.model.precompute_words(np.flatnonzero(np.bincount(batch.words)))
        explained = self._explained(rows) if self.task.explain else []
        if explained:
            shares = np.stack([probabilities for probabilities, _ in explained]).astype(np.float32)
        else:
            shares = predict(
                run.model, batch, multi_label=run.multi_label, temperature=run.temperature, precompute=False
            ).probabilities
        for row, label, values in zip(table, labels_of(run, shares), _in_digits(shares), strict=True):
            row["label"] = label if isinstance(label, str) else "|".join(label)
            row.update(zip(self._shares, values, strict=True))
        told = _nested if self.task.suffix == ".jsonl" else _flat
        for row, (_, path) in zip(table, explained, strict=False):
            if path is not None:
                row.update(told(path))

    def _explained(
        self, rows: list[dict[str, Any]]
    ) -> list[tuple[Float64[np.ndarray, " classes"], DecisivePath | None]]:
        """Probabilities and what decided, None where nothing supports the label. The rest of an explanation is large
        where there are many classes, and goes."""
        explanations = explanations_of(
            self.run,
            [_text(row) for row in rows],
            users=[row.get("user") for row in rows],
            products=[row.get("product") for row in rows],
        )
        return [(explanation.probabilities, explanation.decisive_path()) for explanation in explanations]


def _text(row: dict[str, Any]) -> Text:
    """The text of a row, in the sentences that its source marks, if it does; nothing for a row with a fault."""
    return tuple(row["sentences"]) if "sentences" in row else row.get("text", "")


def _nodes(path: DecisivePath) -> list[tuple[str, Sentence | Phrase | Word]]:
    return [("sentence", path.sentence), ("phrase", path.phrase), ("word", path.word)]


def _nested(path: DecisivePath) -> Row:
    return {
        "decided": {
            level: {
                "text": node.text, "start": node.start, "end": node.end,
                "weight": round(node.weight, 6), "share": round(node.share, 6), "effect": _effect(node),
            }
            for level, node in _nodes(path)
        }
    }  # fmt: skip


def _flat(path: DecisivePath) -> Row:
    row: Row = {}
    for level, node in _nodes(path):
        row |= {level: node.text, f"{level}_weight": round(node.weight, 6), f"{level}_effect": _effect(node)}
    return row


def _effect(node: Sentence | Phrase | Word) -> float | None:
    """None for a model whose effects are not known."""
    return None if node.effect is None else round(node.effect, 6)


def _in_digits(shares: Float32[np.ndarray, "rows classes"]) -> list[list[float]]:
    """Through text, so that csv and jsonl show the seven digits that there are, not seventeen."""
    values = shares.astype("U16").astype(np.float64)
    return [row.tolist() for row in values]


def _error(row: dict[str, Any], number: int) -> str:
    """A line for a row that could not be scored, or only after a repair."""
    reason = row.get("fault") or " and ".join(row.get("repairs", ()))
    if not reason:
        return ""
    told = {"row": number, "id": row["id"], "where": row["where"], "reason": reason, "scored": "fault" not in row}
    return json.dumps(told, ensure_ascii=False) + "\n"
