"""The demo: the embedded review corpus from nothing to a trained, measured and explained classifier.

demo/data/{train,test}.jsonl    reviews of a seeded grammar (corpus/reviews), with their true phrase ends
demo/run/                       the trained run
demo/report.html                the page to look at
demo/report.json                the same as data
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.pipeline import make_pipeline

from emhrnn.api import train
from emhrnn.corpus.reviews import Review, generate_reviews, write_reviews
from emhrnn.demo.report import MAJORITY, OURS, TFIDF, DemoReport, NextStep, ScoreRow, render_html
from emhrnn.evaluation.scores import BoundaryAgreement, PhraseLengths, boundary_agreement, count_phrase_lengths
from emhrnn.explain.counterfactual import with_change
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.explanation import Explanation
from emhrnn.explain.removal import segmented
from emhrnn.files import write_json, write_text
from emhrnn.models import segmentation
from emhrnn.training.config import Config, make_config
from emhrnn.training.data import Named, other_corpus
from emhrnn.training.run import Run, read_description
from emhrnn.training.validation import validate

TRAIN, TEST = 6000, 1000
EXAMPLES = 3  # test documents that the report explains
TEST_SEED = 1_000_003  # added to the seed of the training reviews, so that the two never share a stream


def run_demo(
    folder: Path,
    *,
    seed: int = 0,
    documents: int = TRAIN,
    assignments: Sequence[str] = (),
    progress: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> DemoReport:
    """Write the corpus, train, measure beside majority and TF-IDF, explain three test documents, write the report."""
    began = time.perf_counter()
    reviews = list(generate_reviews(documents, seed))
    tests = list(generate_reviews(TEST, seed + TEST_SEED))
    (folder / "data").mkdir(parents=True, exist_ok=True)
    write_reviews(folder / "data" / "train.jsonl", reviews)
    write_reviews(folder / "data" / "test.jsonl", tests)
    say(f"{len(reviews):,} reviews to learn from and {len(tests):,} to test on are in {folder / 'data'}.")
    config = demo_config(seed, assignments)
    trained = train(folder / "data" / "train.jsonl", folder / "run", config=config, progress=progress, say=say)
    run = trained.model.run
    place = folder / "run" / "corpus" / "test"
    test = other_corpus(Named(path=folder / "data" / "test.jsonl"), place, run, progress=False)
    scores = validate(run, test)
    boundaries, chance, lengths, true_lengths = phrase_recovery(run, tests)
    assert scores.confusion is not None
    report = DemoReport(
        rows=[*baselines(reviews, tests), ScoreRow(OURS, scores.accuracy, scores.macro_f1, "and says why")],
        classes=run.classes,
        confusion=scores.confusion,
        history=trained.fitted.epochs,
        phrases=lengths,
        true_phrases=true_lengths,
        boundaries=boundaries,
        chance_boundaries=chance,
        explanations=examples(run, tests),
        documents={"train": len(trained.train), "valid": len(trained.valid), "test": len(tests)},
        seconds=time.perf_counter() - began,
        versions=read_description(folder / "run")["versions"],
        next_steps=next_steps(folder),
    )
    write_text(folder / "report.html", render_html(report))
    write_json(folder / "report.json", report.to_dict())
    return report


def demo_config(seed: int, assignments: Sequence[str] = ()) -> Config:
    """The default model with its default settings: on one thread, so that the same seed gives the same demo."""
    return make_config(assignments=["training.threads=1", f"training.seed={seed}", *assignments])


def baselines(train: Sequence[Review], test: Sequence[Review]) -> list[ScoreRow]:
    """What people would use instead: the commonest class, and TF-IDF of words and word pairs."""
    texts, labels = [r.text for r in train], [r.label for r in train]
    test_texts, test_labels = [r.text for r in test], [r.label for r in test]
    rows = []
    for name, model in (
        (MAJORITY, DummyClassifier()),
        (
            TFIDF,
            make_pipeline(
                TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression(C=10, max_iter=1000)
            ),
        ),
    ):
        predicted = model.fit(texts, labels).predict(test_texts)
        f1 = f1_score(test_labels, predicted, average="macro", zero_division=0)
        rows.append(ScoreRow(name, float(accuracy_score(test_labels, predicted)), float(f1)))
    return rows


def phrase_recovery(
    run: Run, reviews: Sequence[Review]
) -> tuple[BoundaryAgreement, BoundaryAgreement, PhraseLengths, PhraseLengths]:
    """Learned phrase ends against the grammar's; random ones of the same rate against them; lengths, and true ones."""
    documents, batch = run.encoder.locate([review.text for review in reviews])
    true = np.concatenate(
        [np.isin(document.ends, review.phrase_ends) for document, review in zip(documents, reviews, strict=True)]
    )
    predicted = segmented(run, batch)[1]
    assert predicted is not None
    free = ~batch.sentence_final
    rate = float(predicted[free].mean())
    chance = segmentation.random(batch, rate, np.random.default_rng(0))
    return (
        boundary_agreement(batch, predicted, true),
        boundary_agreement(batch, chance, true),
        PhraseLengths.of(count_phrase_lengths(predicted)),
        PhraseLengths.of(count_phrase_lengths(true | batch.sentence_final)),
    )


def examples(run: Run, reviews: Sequence[Review]) -> list[Explanation]:
    """Short test documents of different classes, the first of each."""
    chosen: dict[str, Review] = {}
    for review in sorted(reviews[:200], key=lambda review: len(review.text)):
        chosen.setdefault(review.label, review)
    picked = [chosen[label] for label in sorted(chosen)]
    picked = picked[:: max(1, (len(picked) - 1) // (EXAMPLES - 1))][:EXAMPLES]
    explained = explain_texts(run, [review.text for review in picked], [review.label for review in picked], exact=True)
    return [with_change(run, run.encoder.encode([one.text]), one) for one in explained]


def next_steps(folder: Path) -> list[NextStep]:
    """Commands to try after the demo."""
    run, data = folder / "run", folder / "data"
    return [
        NextStep("Explain a text of your own", f"emhrnn explain {run} 'The soup was not bad at all.'"),
        NextStep("Make a page of it", f"emhrnn explain {run} 'The soup was not bad at all.' --html why.html"),
        NextStep("Score a file", f"emhrnn predict {run} {data / 'test.jsonl'} --out predictions.csv"),
        NextStep("Train on your own data", "emhrnn train YOUR_FILE.csv --out my-run"),
    ]
