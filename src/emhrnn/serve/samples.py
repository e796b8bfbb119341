"""Documents to start with: of the run's own training data, put together again from its words."""

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from emhrnn.corpus import Corpus
from emhrnn.errors import EmhrnnError

FEWEST, MOST = 25, 70  # words of a sample
SHOWN, LOOKED_AT = 3, 2000  # samples, and documents among which they are chosen
NO_BLANK_BEFORE = re.compile(r" (?=[.,;:!?)\]%…'’]|n't\b)|(?<=[(\[$#]) ")


class Sample(NamedTuple):
    """A text, and its label where it has one."""

    text: str
    label: str = ""


OTHERS = (
    Sample(
        "The room was not what we had hoped for. It was small, and it looked over the car park. But the staff could "
        "not have been kinder, and breakfast alone was worth the trip."
    ),
    Sample("A slow first hour, a plot that forgets itself twice, and yet I would see it again. Wonderful music."),
    Sample("I wanted to like it. The battery lasts a day at most, the screen scratches, and support never wrote back."),
)


@cache
def samples_of(folder: Path, classes: tuple[str, ...]) -> tuple[Sample, ...]:
    """A few, of different classes; general ones where the run folder was copied without its data."""
    try:
        corpus = Corpus.open(folder / "corpus" / "train", verify=False)
    except (EmhrnnError, OSError, ImportError):
        return OTHERS
    rows = np.flatnonzero((corpus.lengths[:LOOKED_AT] >= FEWEST) & (corpus.lengths[:LOOKED_AT] <= MOST))
    found = dict[str, Sample]()
    for row in rows.tolist():
        batch = corpus.batch(np.array([row]))
        if batch.labels is None or not (batch.words > 0).all():  # a word that is not in the vocabulary
            continue
        label = corpus.classes[int(np.argmax(batch.labels[0]) if batch.labels.ndim > 1 else batch.labels[0])]
        words = [corpus.vocabulary.words[k] for k in batch.words.tolist()]
        offsets = batch.sentence_offsets.tolist()
        sentences = (" ".join(words[a:b]) for a, b in pairwise(offsets))
        text = " ".join(s[:1].upper() + s[1:] for s in sentences)
        found.setdefault(label, Sample(NO_BLANK_BEFORE.sub("", text), label))
    spread = [found[name] for name in classes if name in found]
    places = np.linspace(0, len(spread) - 1, min(SHOWN, len(spread))).round().astype(int)
    return tuple(spread[k] for k in places.tolist()) or OTHERS
