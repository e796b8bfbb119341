import numpy as np

from emhrnn.explain.headline import opening

from .documents import REVIEW, explained


def test_everything_opens_in_a_short_document() -> None:
    explanation = explained()
    assert opening(explanation, len(explanation.words)).all()


def test_what_is_quoted_opens_first_and_then_the_heaviest() -> None:
    explanation = explained(REVIEW * 40)
    lengths = np.array([sum(len(phrase.words) for phrase in sentence.phrases) for sentence in explanation.sentences])
    quoted = {phrase.text for phrase in (*explanation.supporting(), *explanation.opposing())}
    opens = opening(explanation, 300)
    assert 300 - lengths.max() < lengths[opens].sum() <= 300
    found = {phrase.text for k in np.flatnonzero(opens) for phrase in explanation.sentences[k].phrases}
    assert quoted <= found
    others = [k for k in np.flatnonzero(opens) if not quoted & {p.text for p in explanation.sentences[k].phrases}]
    closed = explanation.gamma[~opens]
    assert explanation.gamma[others].min() >= closed.max()
    assert opens[explanation.decisive_path().sentence.index]
