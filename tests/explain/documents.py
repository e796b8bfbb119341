"""Small documents with made-up attention, hostile ones among them."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from emhrnn.corpus.batch import Batch, offsets_of
from emhrnn.explain.arrays import Attention, Effects
from emhrnn.explain.build import Findings, explain_documents
from emhrnn.explain.explanation import Explanation, Labels
from emhrnn.text import Document, LocatedTexts

CLASSES = ("bad", "so-so", "good")

REVIEW = (
    "We went in with low expectations. The first half hour is slow, but the rest could not have been better. "
    "Parking was dear."
)

HOSTILE = (
    "<script>alert(1)</script> said \"it's\" & 'fine' <img src=x onerror=alert(2)> . "
    "</details></style><style>*{display:none}</style> \u202e gnp.exe \u2066 "
    "\x00 \x1b[31mred\x1b[0m \x07 \x9b1m \ud800 . "
    '<!-- --> <a href=\'javascript:x\'>y</a> data-effect="1" onclick="x" &lt;b&gt; ]]> .'
)


def split(text: str) -> Document:
    """Words are what blanks separate; a sentence ends at a lone full stop or at a word that ends with one."""
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    words = [text[start:end].lower() for start, end in spans]
    ends = [t + 1 for t, word in enumerate(words) if word.endswith(".") or t == len(words) - 1]
    starts, stops = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    return Document(text, starts.copy(), stops.copy(), np.array([0, *ends], dtype=np.int64), words)


def softmaxes(scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    exponents = np.exp(scores)
    return exponents / np.repeat(np.add.reduceat(exponents, offsets[:-1]), np.diff(offsets))


def attention(document: Document, seed: int, dtype: type = np.float32) -> dict[str, np.ndarray]:
    """Random boundaries and the three softmaxes over what they delimit."""
    generator = np.random.default_rng(seed)
    pi = generator.random(len(document.words))
    z = pi > 0.6
    z[document.sentence_offsets[1:] - 1] = True
    phrases = np.concatenate([[0], np.flatnonzero(z) + 1])
    sentences = np.searchsorted(phrases, document.sentence_offsets)
    return {
        "z": z,
        "alpha": softmaxes(3 * generator.normal(size=phrases[-1]), phrases).astype(dtype),
        "beta": softmaxes(3 * generator.normal(size=sentences[-1]), sentences).astype(dtype),
        "gamma": softmaxes(3 * generator.normal(size=len(sentences) - 1), np.array([0, len(sentences) - 1])).astype(
            dtype
        ),
        "pi": pi.astype(dtype),
        "known": generator.random(len(pi)) > 0.1,
    }


def explain_document(
    document: Document,
    *,
    probabilities: np.ndarray,
    effects: Effects | None = None,
    label: Labels | None = None,
    **columns: Any,
) -> Explanation:
    """A batch of one."""
    (explanation,) = explain_batch([document], probabilities=probabilities[None], labels=[label], **columns)
    return explanation if effects is None else replace(explanation, effects=effects)


def explain_batch(documents: Sequence[Document], *, known: np.ndarray, **columns: Any) -> list[Explanation]:
    """With the three softmaxes as one argument, and words that are known or not."""
    lengths = np.concatenate([np.diff(document.sentence_offsets) for document in documents])
    sentences = np.array([document.n_sentences for document in documents])
    offsets = offsets_of(lengths), offsets_of(sentences)
    batch = Batch(known.astype(np.int64), *offsets, rows=np.arange(len(documents)))
    spans = (np.concatenate([getattr(document, name) for document in documents]) for name in ("starts", "ends"))
    located = LocatedTexts([document.text for document in documents], *spans, *offsets)
    attention = Attention(*(columns.pop(name) for name in ("alpha", "beta", "gamma")))
    told = {name: columns.pop(name) for name in ("z", "pi", "effects") if name in columns}
    found = Findings(columns["probabilities"], attention=attention, **told)
    return explain_documents(located, batch, found, **columns)


def explained(
    text: str = REVIEW, seed: int = 0, label: Labels | None = "good", classes: tuple[str, ...] = CLASSES
) -> Explanation:
    document = split(text)
    scores = np.random.default_rng(seed + 1).normal(size=len(classes))
    probabilities = softmaxes(scores, np.array([0, len(classes)]))
    columns = attention(document, seed)
    chosen = classes[int(np.argmax(probabilities))]
    return explain_document(
        document, probabilities=probabilities, classes=classes, label=label,
        effects=made_up_effects(chosen, columns, seed), **columns,
    )  # fmt: skip


def made_up_effects(label: str, columns: dict[str, np.ndarray], seed: int) -> Effects:
    generator = np.random.default_rng(seed + 2)
    return Effects(label, *(generator.normal(size=len(columns[name])) for name in ("alpha", "beta", "gamma")))


@st.composite
def ragged(draw: st.DrawFn) -> tuple[str, int]:
    """Arguments for `explained`: one to five sentences of one to seven words, some of any Unicode; and a seed. The
    test itself calls `explained`: the run-time type checker draws random numbers, which a strategy may not."""
    odd = st.text(min_size=1, max_size=5).filter(lambda word: not re.search(r"\s", word))
    sentence = st.lists(st.sampled_from(["not", "good", "the"]) | odd, min_size=1, max_size=7)
    texts = draw(st.lists(sentence, min_size=1, max_size=5))
    return " ".join(" ".join(words) + "." for words in texts), draw(st.integers(0, 2**20))
