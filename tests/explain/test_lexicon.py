"""Phrases and their effects, against taking them out one by one."""

import numpy as np
import pytest
import torch

from emhrnn.corpus.batch import Batch
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.lexicon import Gathered, measured, normal_form
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.training.run import Run, load_run
from tests.behaviour.commands import BAD, GOOD, TINY, write_reviews


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    from emhrnn.api import train
    from emhrnn.training.config import make_config

    folder = tmp_path_factory.mktemp("lexicon")
    config = make_config(assignments=[assignment for assignment in TINY if assignment != "--set"])
    train(write_reviews(folder / "reviews.csv", 24), folder / "run", config=config, progress=False)
    return load_run(folder / "run")


def probability_without(run: Run, text: str, number: int, label: int) -> float:
    """p(class) of the text with one phrase left out, from plain lists."""
    explanation = explain_texts(run, [text])[0]
    sentences, ends, k = [], [], 0
    for sentence in explanation.sentences:
        words: list[int] = []
        for phrase in sentence.phrases:
            if k != number:
                ids = run.vocabulary.encode([word.text.lower() for word in phrase.words]).tolist()
                words += ids
                ends += [False] * (len(ids) - 1) + [True]
            k += 1
        if words:
            sentences.append(words)
    batch, model = Batch.from_lists([sentences]), run.model
    assert isinstance(model, EMHRNN)
    with torch.inference_mode():
        logits = model.encode(batch, model.words(batch), np.array(ends)).logits
    return float(run.probabilities(logits.numpy())[0, label])


def test_effects_are_those_of_taking_the_phrase_out(run: Run) -> None:
    texts = [GOOD, BAD, "The waiter was good. The soup was bad."]
    gathered = Gathered(len(run.classes))
    gathered.add(explain_texts(run, texts))
    entries = [(label, entry) for label in range(len(run.classes)) for entry in measured(run, gathered, label)]
    assert entries
    for label, entry in entries:
        places = gathered.phrases[entry.phrase].places
        whole = [explain_texts(run, [texts[place.text]])[0].probabilities[label] for place in places]
        left = [probability_without(run, texts[place.text], place.phrase, label) for place in places]
        assert entry.effect == pytest.approx(np.mean(whole) - np.mean(left), abs=1e-6)
        assert entry.count == len(places)
        assert entry.phrase in normal_form(entry.example)


def test_choice_follows_the_formula(run: Run) -> None:
    gathered = Gathered(len(run.classes))
    explanations = explain_texts(run, [GOOD, BAD])
    gathered.add(explanations)
    prior = np.mean([explanation.probabilities for explanation in explanations], axis=0)
    for label in range(len(run.classes)):
        scores: dict[str, float] = {}
        for explanation in explanations:
            for phrase, share in zip(explanation.phrases, explanation.phrase_shares, strict=True):
                name = normal_form(phrase.text)
                gain = float(share * (explanation.probabilities[label] - prior[label]))
                scores[name] = scores.get(name, 0.0) + gain
        expected = sorted((name for name in scores if name and scores[name] > 1e-12), key=lambda name: -scores[name])
        chosen = [name for name in gathered.choose(label, least=1) if scores[name] > 1e-12]
        assert [round(scores[name], 12) for name in chosen] == [
            round(scores[name], 12) for name in expected[: len(chosen)]
        ]


@pytest.mark.parametrize(
    ("given", "normal"),
    [("Not BAD, ", "not bad"), ("(the  soup)", "the soup"), ("...", ""), ("it's", "it's"), ("\u2014 so", "so")],
)
def test_normal_form(given: str, normal: str) -> None:
    assert normal_form(given) == normal
