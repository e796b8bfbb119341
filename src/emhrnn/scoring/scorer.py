"""Chunks of rows in, their parts of the output file out, in order, in one process or several. Every process loads the
run once, when its first chunk comes."""

import json
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.api import conformal_of
from emhrnn.cores import set_threads, threads
from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError, DataError
from emhrnn.evaluation.decision import decision
from emhrnn.explain.explainer import explain_read, explain_texts, read_batches
from emhrnn.explain.explanation import Explanation, Phrase, Word
from emhrnn.files import encoded
from emhrnn.scoring.chunks import RowChunk
from emhrnn.scoring.output import Row, RowCounts, ScoredPart, to_bytes
from emhrnn.shapes import Float32
from emhrnn.text import Text
from emhrnn.training.run import load_run

NO_WORDS = "no words"
REASONS = 3  # phrases for the label, and against it
SIDES = ("for", "against")


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is asked of each row."""

    run: Path
    suffix: str  # of the file to write
    explain: bool = False
    min_confidence: float | None = None
    thresholds: tuple[tuple[str, float], ...] = ()  # by label; the label "" is every label
    top: int | None = None  # classes whose probabilities are written; None: all
    coverage: float | None = None  # of the set of labels
    kept: tuple[str, ...] | None = None  # columns of the data that are written, too; None: its id alone
    mistakes: str | None = None  # suffix of the file of rows whose own label is another


class Scorer:
    """Holds the run, ready to predict. One thread: processes make better use of the cores than threads do."""

    def __init__(self, task: Task) -> None:
        set_threads(1)
        self.task = task
        self.run = load_run(task.run)
        named = dict(task.thresholds)
        self.decision = decision(
            self.run.classes,
            multi_label=self.run.multi_label,
            min_confidence=task.min_confidence,
            threshold=named.get("", named) if named else None,
        )
        if task.coverage is not None:
            conformal_of(self.run).sets(np.full((1, len(self.run.classes)), 0.5), task.coverage)
        self._explains = True
        if task.explain or task.mistakes:
            try:
                explain_texts(self.run, ["word"])
            except ConfigError:  # mistakes are listed all the same
                self._explains = False
                if task.explain:
                    raise
        self._own = self._own_columns()
        kept = task.kept or ()
        taken = {name: f"predicted_{name}" if name in kept else name for name in self._own}
        self._names = {name: shown for name, shown in taken.items() if name != "id" or shown == "id"}
        self.columns = dict.fromkeys(kept, False) | {shown: self._own[name] for name, shown in self._names.items()}

    def _own_columns(self) -> dict[str, bool]:
        """What is written of a row, by name; true for a column of numbers."""
        task = self.task
        columns = {"id": False, "label": False}
        if task.min_confidence is not None:
            columns |= {"guess": False, "confidence": True}
        if task.coverage is not None:
            columns["set"] = False
        if task.top is None:
            columns |= {f"p_{name}": True for name in self.run.classes}
        else:
            for k in range(1, min(task.top, len(self.run.classes)) + 1):
                columns |= {f"label_{k}": False, f"p_{k}": True}
        return columns | (_reason_columns(task.suffix) if task.explain else {})

    def __call__(self, payload: bytes) -> ScoredPart:
        chunk = json.loads(payload)
        first, rows = int(chunk["first"]), list[dict[str, Any]](chunk["rows"])
        batch = self._read(rows)
        scored = [] if batch is None else batch.rows.tolist()
        for index in set(range(len(rows))).difference(scored):
            rows[index].setdefault("fault", NO_WORDS)
        table = [{**dict.fromkeys(self._own), "id": row["id"]} for row in rows]  # each row of the data has its row
        mistakes: list[Row] = []
        if batch is not None:
            mistakes = self._fill([table[i] for i in scored], [rows[i] for i in scored], batch)
        judged = [row for row, told in zip(rows, table, strict=True) if "label" in row and told["label"] is not None]
        files = {
            "rows": to_bytes(self.task.suffix, self.columns, map(self._written, table, rows), first=first == 0),
            "errors": encoded("".join(_error(row, first + index) for index, row in enumerate(rows))),
            "mistakes": self._mistakes(mistakes, first=first == 0),
        }
        counts = RowCounts(
            rows=len(rows),
            words=0 if batch is None else batch.n_words,
            unscored=len(rows) - len(scored),
            repaired=sum("repairs" in row and "fault" not in row for row in rows),
            abstained=sum(table[i]["label"] is None for i in scored),
            labels=sum(table[i].get("set", "").count("|") + 1 for i in scored) if self.task.coverage else 0,
            judged=len(judged),
            wrong=len(mistakes),
        )
        return ScoredPart(files, counts)

    def _read(self, rows: list[dict[str, Any]]) -> Batch | None:
        """The rows that have words."""
        names: dict[str, Any] = {f"{kind}s": [row.get(kind) for row in rows] for kind in ("user", "product")}
        return self.run.encoder.encode_usable([_text(row) for row in rows], **names)

    def _written(self, told: Row, row: dict[str, Any]) -> Row:
        """A row of the output: the columns of the data that are kept, and our own."""
        kept = row.get("kept", {})
        own = {shown: told[name] for name, shown in self._names.items()}
        return {**{name: kept.get(name) for name in self.task.kept or ()}, **own}

    def _fill(self, table: list[Row], rows: list[dict[str, Any]], batch: Batch) -> list[Row]:
        """Label, probabilities and, if asked for, what decided; and the mistakes."""
        run, task = self.run, self.task
        if task.explain:
            explained = self._explained(rows)
            shares = np.stack([probabilities for probabilities, _ in explained]).astype(np.float32)
            for row, (_, reasons) in zip(table, explained, strict=True):
                row.update(_reasons_in(task.suffix, reasons))
        else:
            shares = run.predict(batch).probabilities
        for row, label in zip(table, self.decision.labels(shares), strict=True):
            row["label"] = label if label is None or isinstance(label, str) else "|".join(label)
        self._fill_shares(table, shares)
        if task.coverage is not None:
            for row, inside in zip(table, conformal_of(run).sets(shares, task.coverage), strict=True):
                row["set"] = "|".join(run.classes[c] for c in np.flatnonzero(inside))
        return self._wrong(table, rows, shares) if task.mistakes else []

    def _fill_shares(self, table: list[Row], shares: Float32[np.ndarray, "rows classes"]) -> None:
        classes, digits = self.run.classes, _in_digits(shares)
        order = None if self.task.top is None else np.argsort(-shares, axis=1, kind="stable")[:, : self.task.top]
        guesses = self.decision.guesses(shares) if self.task.min_confidence is not None else None
        for number, (row, values) in enumerate(zip(table, digits, strict=True)):
            if guesses is not None:
                row |= {"guess": classes[guesses[number]], "confidence": values[guesses[number]]}
            if order is None:
                row.update({f"p_{name}": value for name, value in zip(classes, values, strict=True)})
            else:
                for k, c in enumerate(order[number].tolist(), start=1):
                    row |= {f"label_{k}": classes[c], f"p_{k}": values[c]}

    def _explained(self, rows: list[dict[str, Any]]) -> list[tuple[np.ndarray, dict[str, list[Row]]]]:
        """Probabilities and what decided. The rest of an explanation is large where there are many classes, and
        goes."""
        users, products = ([row.get(name) for row in rows] for name in ("user", "product"))
        return [
            (explanation.probabilities, _reasons(explanation))
            for _, documents, batch in read_batches(self.run, [_text(row) for row in rows], users, products)
            for explanation in explain_read(self.run, documents, batch)
        ]

    def _wrong(
        self, table: list[Row], rows: list[dict[str, Any]], shares: Float32[np.ndarray, "rows classes"]
    ) -> list[Row]:
        """Rows with a label of their own that is not the one predicted. Where it abstains, nothing is wrong."""
        place = {name: c for c, name in enumerate(self.run.classes)}
        wrong = [
            (row, told, values)
            for row, told, values in zip(rows, table, _in_digits(shares), strict=True)
            if "label" in row and told["label"] is not None and _as_set(row["label"]) != _as_set(told["label"])
        ]
        explained = self._explained([row for row, _, _ in wrong]) if self._explains and wrong else []
        found = []
        for index, (row, told, values) in enumerate(wrong):
            gold, one = row["label"], not self.run.multi_label
            mistake = {
                "id": row["id"],
                "text": row.get("text", ""),
                "gold": gold if isinstance(gold, str) else "|".join(gold),
                "predicted": told["label"],
                "probability": values[place[told["label"]]] if one else None,
                "gold_probability": values[place[gold]] if one and gold in place else None,
            }
            if explained:
                mistake |= _reasons_in(self.task.mistakes or "", explained[index][1])
            found.append(mistake)
        return found

    def _mistakes(self, mistakes: list[Row], *, first: bool) -> bytes:
        if self.task.mistakes is None:
            return b""
        columns = dict.fromkeys(("id", "text", "gold", "predicted"), False)
        columns |= {"probability": True, "gold_probability": True}
        columns |= _reason_columns(self.task.mistakes) if self._explains else {}
        return to_bytes(self.task.mistakes, columns, mistakes, first=first)


def _text(row: dict[str, Any]) -> Text:
    """The text of a row, in the sentences that its source marks, if it does; nothing for a row with a fault."""
    return tuple(row["sentences"]) if "sentences" in row else row.get("text", "")


def _as_set(labels: str | Sequence[str]) -> set[str]:
    return set(filter(None, labels.split("|"))) if isinstance(labels, str) else set(labels)


def _reasons(explanation: Explanation) -> dict[str, list[Row]]:
    """The phrases that support and oppose the label most, with their effects."""
    sides: Iterable[list[Phrase | Word]] = (explanation.supporting(REASONS), explanation.opposing(REASONS))
    return {
        side: [
            {"text": node.text, "start": node.start, "end": node.end, "effect": round(node.effect or 0.0, 6)}
            for node in nodes
        ]
        for side, nodes in zip(SIDES, sides, strict=True)
    }


def _reason_columns(suffix: str) -> dict[str, bool]:
    if suffix == ".jsonl":
        return dict.fromkeys(SIDES, False)
    numbered = [f"{side}_{k}" for side in SIDES for k in range(1, REASONS + 1)]
    return {f"{name}{what}": bool(what) for name in numbered for what in ("", "_effect")}


def _reasons_in(suffix: str, reasons: dict[str, list[Row]]) -> Row:
    """Nested with their places in JSON, else as columns, which stay empty where there are fewer."""
    if suffix == ".jsonl":
        return dict(reasons)
    row: Row = dict.fromkeys(_reason_columns(suffix))
    for side, nodes in reasons.items():
        for k, node in enumerate(nodes, start=1):
            row |= {f"{side}_{k}": node["text"], f"{side}_{k}_effect": node["effect"]}
    return row


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


AHEAD = 2  # chunks per worker that are submitted, so that no worker waits

Scored = tuple[RowChunk, ScoredPart]


def score_chunks(chunks: Iterator[RowChunk], task: Task, workers: int) -> Iterator[Scored]:
    """Each chunk with its part, in order. Processes are started only for more than a few chunks.

    Raises:
        DataError: a worker process was killed.
        EmhrnnError: the run cannot be loaded.
    """
    few = list(islice(chunks, AHEAD + 1))
    if workers == 1 or len(few) <= AHEAD:
        before, scorer = threads(), Scorer(task)
        try:
            for chunk in chain(few, chunks):
                yield chunk, scorer(chunk.payload)
        finally:
            set_threads(before)
    else:
        yield from _in_processes(chain(few, chunks), task, workers)


def _in_processes(chunks: Iterator[RowChunk], task: Task, workers: int) -> Iterator[Scored]:
    # Spawned, because a fork would copy the state of threads that Arrow or torch may already run.
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker)
    submitted: deque[tuple[RowChunk, Future[ScoredPart]]] = deque()
    try:
        for chunk in chunks:
            submitted.append((chunk, pool.submit(_score, task, chunk.payload)))
            if len(submitted) >= AHEAD * workers:
                chunk, part = submitted.popleft()
                yield chunk, part.result()
        for chunk, part in submitted:
            yield chunk, part.result()
    except BrokenProcessPool:
        raise DataError(
            "a worker process ended early: memory ran out, or it was killed; what is done is kept: give the same "
            "command again to resume, with fewer --workers if memory is short"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker() -> None:
    """Ctrl-C ends the worker without a traceback, and the end of the parent process, however it comes, ends it too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=lambda: (wait([parent.sentinel]), os._exit(1)), daemon=True).start()


def _score(task: Task, payload: bytes) -> ScoredPart:
    return _scorer(task)(payload)


@cache
def _scorer(task: Task) -> Scorer:
    return Scorer(task)
