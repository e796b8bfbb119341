"""How two runs read the same documents; attention beside chance and the paper's descent, against plain loops."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.api import load, train
from emhrnn.corpus.batch import Batch
from emhrnn.paper.analysis import Analysis, Tally, analyse, important_words, word_weights
from emhrnn.paper.explanations.attention import Levels
from emhrnn.text import Vocabulary
from emhrnn.training.config import make_config
from emhrnn.training.data import Named
from tests.behaviour.commands import TINY, Cli, rows, write_reviews, write_rows
from tests.explain.documents import HOSTILE, softmaxes
from tests.oracles.attention_analysis import Sentence, beside_chance, descent


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of MHS-RNN."""
    folder = tmp_path_factory.mktemp("other")
    settings = [assignment for assignment in TINY if assignment != "--set"]
    config = make_config(assignments=["model.name=mhs-rnn-att", "training.seed=7"], shared=settings)
    train(write_reviews(folder / "reviews.csv", 24), folder / "mhs", config=config, progress=False)
    return folder / "mhs"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    hostile = HOSTILE.replace("\ud800", "?")  # no file of text can hold half a pair
    path = tmp_path_factory.mktemp("analysed") / "data.jsonl"
    return write_rows(path, [*rows(10), (hostile, "good"), ("  ", "bad")])


def analysed(runs: list[Path], data: Path, seed: int = 3) -> Analysis:
    folders = dict(zip(("EM-HRNN", "MHS-RNN"), runs, strict=True))
    words = ("good", "Bad", "nowhere")
    return analyse(folders, Named(path=data), words=words, documents=6, seed=seed, progress=False)


@pytest.fixture(scope="module")
def analysis(made: Path, other: Path, data: Path) -> Analysis:
    return analysed([made / "run", other], data)


def test_numbers_are_those_of_explain_and_evaluate(
    cli: Cli, analysis: Analysis, made: Path, other: Path, data: Path
) -> None:
    told = analysis.to_dict()
    texts = [row["text"] for row in map(json.loads, data.read_text().splitlines())][:-1]
    assert (told["documents"], told["skipped"]) == (len(texts), 1)
    choices = []
    for folder, model in zip((made / "run", other), told["models"], strict=True):
        explanations = load(folder).explain(texts)
        lengths = [len(phrase.words) for one in explanations for phrase in one.phrases]
        assert model["phrases"]["phrases"] == len(lengths)
        assert model["phrases"]["mean"] == pytest.approx(sum(lengths) / len(lengths))
        scores = cli.ok("evaluate", folder, data, "--json", "--quiet").json
        assert model["accuracy"] == pytest.approx(scores["accuracy"])
        choices.append([one.attention_path().word for one in explanations])
        assert [word["word"] for word in model["attention"]] == ["good", "bad", "nowhere"]
        assert [word["count"] for word in model["attention"]] == [5, 5, 0]
    same = sum(a.text.lower() == b.text.lower() for a, b in zip(*choices, strict=True))
    place = sum(a.start == b.start for a, b in zip(*choices, strict=True))
    everywhere = told["agreement_of_all"]
    assert (everywhere["same_word"], everywhere["same_place"]) == (same, place)
    assert everywhere["chance"] == pytest.approx(sum(1 / len(one.starts) for one in explanations) / len(texts))
    assert told["agreement"]["documents"] == len(told["drawn"]) == 6
    for drawn in told["drawn"]:
        assert list(drawn["words"]) == [column[drawn["row"] - 1].text for column in choices]
    em = load(made / "run").explain(texts)
    weights = [word.weight for one in em for word in one.words if word.text.lower() == "good"]
    lifts = [word.lift for one in em for word in one.words if word.text.lower() == "good"]
    assert told["models"][0]["attention"][0]["weight"] == pytest.approx(sum(weights) / len(weights), rel=1e-5)
    assert told["models"][0]["attention"][0]["lift"] == pytest.approx(sum(lifts) / len(lifts), rel=1e-5)


def test_the_seed_decides_which_documents_are_drawn(analysis: Analysis, run: Path, data: Path) -> None:
    drawn = [[one.row for one in analysed([run, run], data, seed).drawn] for seed in (3, 4)]
    assert drawn[0] == [one.row for one in analysis.drawn] != drawn[1]


def test_a_run_beside_itself_agrees_everywhere(run: Path, tmp_path: Path) -> None:
    found = analysed([run, run], write_rows(tmp_path / "data.jsonl", rows(6)))
    assert found.agreement_of_all.same_place == found.agreement_of_all.documents == 6
    assert found.models[0] == replace(found.models[1], name=found.models[0].name)


def test_table3_by_command(cli: Cli, run: Path, other: Path, made: Path, tmp_path: Path) -> None:
    options = ["--out", tmp_path / "out", "--documents", "4", "--quiet"]

    def refused(*given: str | Path) -> str:
        return cli.error("paper", "table3", *given, *options)

    data = made / "test.jsonl"
    assert "names no word" in refused(run, other, data, "--words", ", ,")
    cli.ok("paper", "prepare", data, "--out", tmp_path / "corpus", "--quiet")
    assert "prepared corpus" in refused(run, other, tmp_path / "corpus")
    assert "no documents with words" in refused(run, other, write_rows(tmp_path / "empty.csv", [(" ", "good")]))
    assert "is a run of mhs-rnn-att, not of em-hrnn" in refused(other, run, data)
    assert not (tmp_path / "out").exists()
    assert "EM-HRNN" in cli.ok("paper", "table3", run, other, data, *options).out
    table = (tmp_path / "out" / "table3.md").read_text()
    assert "command: `emhrnn paper table3 run mhs test.jsonl --out" in table
    assert str(tmp_path) not in table + (tmp_path / "out" / "table3.json").read_text()


def test_figures_by_command(cli: Cli, run: Path, other: Path, tmp_path: Path) -> None:
    out = tmp_path / "figures"
    shown = cli.ok("paper", "figures", run, other, "--out", out).out
    assert shown.count("Decided most by") == 2
    for name in ("figures.html", "figures.txt", "figures.json"):
        assert "emhrnn paper figures run mhs" in (out / name).read_text(encoding="utf-8")
    assert "is not a file" in cli.error("paper", "figures", run, other, "--text", tmp_path)
    wrong = tmp_path / "wrong"
    for em, mhs, told in ((other, run, "mhs-rnn-att, not of em-hrnn"), (run, run, "em-hrnn, not of mhs-rnn-att")):
        assert f"is a run of {told}" in cli.error("paper", "figures", em, mhs, "--out", wrong)
    assert not wrong.exists()


@st.composite
def shapes(draw: st.DrawFn) -> tuple[list[list[int]], int, bool]:
    """Words of each sentence of each document, a seed, and whether words have weights beside phrases."""
    lengths = st.lists(st.integers(1, 7), min_size=1, max_size=4)
    return draw(st.lists(lengths, min_size=1, max_size=4)), draw(st.integers(0, 2**20)), draw(st.booleans())


def random_levels(shape: list[list[int]], seed: int, direct: bool) -> tuple[Batch, Levels]:
    generator = np.random.default_rng(seed)
    batch = Batch.from_lists([[generator.integers(0, 5, words).tolist() for words in some] for some in shape])
    z = (generator.random(batch.n_words) > 0.6) | batch.sentence_final
    phrases = np.concatenate([[0], np.flatnonzero(z) + 1])
    sentences = np.searchsorted(phrases, batch.sentence_offsets)

    def weights(offsets: np.ndarray) -> np.ndarray:
        scores = generator.integers(0, 3, offsets[-1]).astype(float)  # few values, so that there are ties
        return softmaxes(scores, offsets).astype(np.float32)

    alpha, beta, gamma = weights(phrases), weights(sentences), weights(batch.document_offsets)
    own = generator.random(batch.n_words).round(1).astype(np.float32) if direct else None
    return batch, Levels(z, alpha, beta, gamma, own)


def nested(batch: Batch, levels: Levels) -> list[list[Sentence]]:
    phrases = [0, *(np.flatnonzero(levels.z) + 1).tolist()]
    documents = []
    for first, last in pairwise(batch.document_offsets.tolist()):
        sentences: list[Sentence] = []
        for i in range(first, last):
            start, stop = batch.sentence_offsets[i : i + 2].tolist()
            inside = []
            for k in range(phrases.index(start), phrases.index(stop)):
                direct = [None] * len(levels.alpha) if levels.direct is None else levels.direct.tolist()
                words = [(float(levels.alpha[t]), direct[t]) for t in range(phrases[k], phrases[k + 1])]
                inside.append((float(levels.beta[k]), words))
            sentences.append((float(levels.gamma[i]), inside))
        documents.append(sentences)
    return documents


@given(shapes())
@settings(max_examples=40, deadline=None)
def test_descent_is_the_papers(given: tuple[list[list[int]], int, bool]) -> None:
    batch, levels = random_levels(*given)
    found = important_words(levels, batch) - batch.word_offsets[:-1]
    assert found.tolist() == [descent(document) for document in nested(batch, levels)]


@given(shapes())
@settings(max_examples=40, deadline=None)
def test_weights_beside_chance(given: tuple[list[list[int]], int, bool]) -> None:
    batch, levels = random_levels(*given)
    found = word_weights(levels, batch)
    expected = np.array([row for document in nested(batch, levels) for row in beside_chance(document)])
    assert np.allclose(found.weight, expected[:, 0])
    assert found.siblings.tolist() == expected[:, 1].tolist()
    assert np.allclose(found.in_sentence, expected[:, 2])
    assert np.allclose(found.lift, expected[:, 0] * expected[:, 1])
    assert np.allclose(found.chance, 1 / expected[:, 1])


@given(shapes(), shapes())
@settings(max_examples=15, deadline=None)
def test_tally_holds_the_means_of_each_word(
    one: tuple[list[list[int]], int, bool], other: tuple[list[list[int]], int, bool]
) -> None:
    tally = Tally(Vocabulary.from_words(["a", "b", "c", "d"]))
    rows: dict[int, list[tuple[float, int, float]]] = {}
    lengths: list[int] = []
    for shape in (one, other):
        batch, levels = random_levels(*shape)
        tally.add(batch, levels)
        told = [row for document in nested(batch, levels) for row in beside_chance(document)]
        for word, row in zip(batch.words.tolist(), told, strict=True):
            rows.setdefault(word, []).append(row)
        lengths += np.diff(np.flatnonzero(levels.z), prepend=-1).tolist()
    for word, found in rows.items():
        name = tally.vocabulary.words[word]
        attention = tally.attention(name)
        weight, siblings, share = (np.array(column, dtype=float) for column in zip(*found, strict=True))
        assert attention.count == len(found)
        assert attention.weight == pytest.approx(weight.mean(), rel=1e-6)
        assert attention.chance == pytest.approx((1 / siblings).mean())
        assert attention.lift == pytest.approx((weight * siblings).mean(), rel=1e-6)
        assert attention.in_sentence == pytest.approx(share.mean(), rel=1e-6)
        assert attention.alone == pytest.approx((siblings == 1).mean())
    phrases = tally.phrase_lengths()
    assert (phrases.mean, phrases.shortest, phrases.longest) == (np.mean(lengths), min(lengths), max(lengths))


def test_indifferent_attention_is_at_chance() -> None:
    """Equal weights: whatever the lengths of phrases, every lift is 1. Raw weights are not."""
    batch = Batch.from_lists([[[1, 2, 3, 4, 1]]])
    z = np.array([True, False, False, False, True])
    levels = Levels(
        z, np.array([1, 0.25, 0.25, 0.25, 0.25], np.float32), np.ones(2, np.float32) / 2, np.ones(1, np.float32)
    )
    tally = Tally(Vocabulary.from_words(["a", "b", "c", "d"]))
    tally.add(batch, levels)
    assert tally.attention("a").lift == 1
    assert tally.attention("a").weight == 0.625
    assert tally.attention("a").alone == 0.5
    assert tally.average().lift == 1
    assert tally.attention("nowhere") == type(tally.attention("a"))("nowhere", 0)
