"""The mean over drawn segmentations against the exact sum over all of them."""

import itertools
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError
from emhrnn.paper.em.blocks import exact_blocks
from emhrnn.paper.em.steps import e_step
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.paper.phrases import Marginal, as_batch, learned, read_chunks
from emhrnn.training.run import load_run
from tests.behaviour.commands import Cli
from tests.oracles.chunks import chunk_ends, scores
from tests.paper.em.examples import CLASSES, make_batch, small_model


def every_segmentation(model: EMHRNN, batch: Batch) -> Iterator[tuple[np.ndarray, float, torch.Tensor]]:
    """z, p(z | w) and p(y | z, w) of a batch of one document."""
    states = model.words(batch)
    pi = torch.sigmoid(states.a).numpy()
    free = np.flatnonzero(~batch.sentence_final)
    for setting in itertools.product([False, True], repeat=len(free)):
        z = batch.sentence_final.copy()
        z[free] = setting
        yield z, float(np.where(z, pi, 1 - pi)[free].prod()), torch.softmax(model.encode(batch, states, z).logits, 1)


@torch.no_grad()
def test_the_mean_over_many_is_the_sum_over_all() -> None:
    model, batch = small_model(0), make_batch([[3, 2]])
    exact = sum(p_z * p_y for _, p_z, p_y in every_segmentation(model, batch))
    found = Marginal(model, drawn=20)(copies(batch, 100)).logits.exp().mean(0, keepdim=True)
    torch.testing.assert_close(found, exact, rtol=0.02, atol=0.005)
    again, other = Marginal(model)(batch), Marginal(model)(batch)
    assert torch.equal(again.logits, other.logits)


@torch.no_grad()
def test_bits_are_those_of_the_whole_posterior() -> None:
    """What the label tells about the phrases, by the definition: how far each label's posterior is from the prior."""
    model, batch = small_model(1, votes=20.0), make_batch([[3, 2]])
    told = 0.0
    for y in range(CLASSES):
        labelled = copies(batch, 1, label=y)
        states = model.words(labelled)
        posterior = e_step(model, labelled, states, labelled.sentence_final, exact_blocks(labelled, 20))
        r, prior = posterior.responsibilities[0], posterior.log_prior[0]
        told += float(posterior.evidence.exp() * (r * (r.log() - prior)).sum()) / np.log(2)
        to_tell = -float((prior.exp() * prior).sum()) / np.log(2)
    marginal = Marginal(model, drawn=100)
    marginal(copies(batch, 40))
    assert told > 0.05
    assert marginal.label_bits[0].mean().item() == pytest.approx(told, rel=0.05)
    assert marginal.boundary_bits[0][0].item() == pytest.approx(to_tell, rel=1e-9)


@torch.no_grad()
def test_few_draws_tell_as_much_as_many() -> None:
    model, batch = small_model(3, votes=0.2), make_batch([[6, 5]])  # phrases that hardly matter
    few, many = Marginal(model, drawn=3), Marginal(model, drawn=50)
    few(copies(batch, 1000)), many(copies(batch, 100))
    assert few.label_bits[0].mean().item() == pytest.approx(many.label_bits[0].mean().item(), rel=0.1)


@torch.no_grad()
def test_at_a_high_temperature_phrases_hardly_matter() -> None:
    model, batch = small_model(0), make_batch([[3, 2], [4]])
    plain, hot = Marginal(model), Marginal(model, temperature=100.0)
    plain(batch), hot(batch)
    assert (hot.label_bits[0] < plain.label_bits[0] / 100).all()


def copies(batch: Batch, times: int, label: int = 0) -> Batch:
    """A batch of one document, which has come so often."""
    document = [part.tolist() for part in np.split(batch.words, batch.sentence_offsets[1:-1])]
    return Batch.from_lists([document] * times, [label] * times)


GOLD = [
    [("The", "B-NP"), ("soup", "I-NP"), ("was", "B-VP"), ("good", "B-ADJP"), (".", "O")],
    [
        ("We", "B-NP"),
        ("have", "B-VP"),
        ("liked", "I-VP"),
        ("the", "B-NP"),
        ("waiter", "I-NP"),
        (",", "O"),
        ("too", "O"),
    ],
    [("Good", "O")],
]


@pytest.fixture
def conll(tmp_path: Path) -> Path:
    text = "\n\n".join("\n".join(f"{word} X {tag}" for word, tag in sentence) for sentence in GOLD) + "\n\n"
    path = tmp_path / "conll2000.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conll2000/test.txt", text)
    return path


def gold() -> set[tuple[int, int]]:
    return {(i, end) for i, sentence in enumerate(GOLD) for end in chunk_ends([tag for _, tag in sentence])}


def test_chunk_ends_are_read(conll: Path) -> None:
    chunked = read_chunks(conll, "test")
    assert chunked.sentences == [[word for word, _ in sentence] for sentence in GOLD]
    places = [(i, t) for i, sentence in enumerate(GOLD) for t in range(len(sentence))]
    found = {place for place, ends in zip(places, chunked.ends.tolist(), strict=True) if ends}
    assert {(i, t) for i, t in found if t < len(GOLD[i]) - 1} == gold()
    assert all((i, len(sentence) - 1) in found for i, sentence in enumerate(GOLD))


def test_the_table_is_what_sets_say(cli: Cli, run: Path, conll: Path, tmp_path: Path) -> None:
    told = cli.ok("paper", "chunks", run, conll, "--out", tmp_path / "out").out
    rows = {row["name"]: row for row in json.loads((tmp_path / "out" / "chunks.json").read_text())["rows"]}
    loaded, chunked = load_run(run), read_chunks(conll, "test")
    z, _ = learned(loaded, as_batch(loaded, chunked.sentences))
    places = [(i, t) for i, sentence in enumerate(GOLD) for t in range(len(sentence))]
    inner = {(i, t) for i, t in places if t < len(GOLD[i]) - 1}
    found = {place for place, ends in zip(places, z.tolist(), strict=True) if ends} & inner
    model = rows["em-hrnn"]
    assert (model["precision"], model["recall"], model["f1"]) == pytest.approx(scores(found, gold()))
    assert rows["every word"]["recall"] == 1
    assert rows["every word"]["precision"] == pytest.approx(len(gold()) / len(inner))
    assert (tmp_path / "out" / "chunks.md").read_text().strip() in told


def test_what_is_no_gold_standard(cli: Cli, run: Path, conll: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out")
    assert "does not exist" in cli.error("paper", "chunks", run, tmp_path / "none.zip", *out)
    assert "no train.txt" in cli.error("paper", "chunks", run, conll, "--part", "train", *out)
    (tmp_path / "wrong.txt").write_text("just words here please\n")
    assert "line 1" in cli.error("paper", "chunks", run, tmp_path / "wrong.txt", *out)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x81")
    assert "not text" in cli.error("paper", "chunks", run, tmp_path / "binary", *out)
    (tmp_path / "empty").write_text("\n\n")
    assert "no sentences" in cli.error("paper", "chunks", run, tmp_path / "empty", *out)


def test_a_damaged_zip(conll: Path) -> None:
    """Bytes of the member, of its header and of the directory: an error that names the file, or the same words."""
    original = conll.read_bytes()
    expected, refused = read_chunks(conll, "test").sentences, 0
    for place in range(0, len(original), 3):
        content = bytearray(original)
        content[place] ^= 0x41
        conll.write_bytes(content)
        try:
            assert read_chunks(conll, "test").sentences == expected
        except DataError as error:
            refused += str(conll) in str(error)
    assert refused > len(original) // 10
