"""The transformer rows on a tiny random BERT: what the encoder reads, fine-tuning, frozen features, refusals."""

import shutil

import numpy as np
import pytest
import torch

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError
from emhrnn.models import pretrained
from emhrnn.models.transformer import GROUP, Encoder, FrozenTransformer, Transformer
from tests.models.examples import (
    CLASSES,
    VOCABULARY,
    check_learns,
    check_survives_saving,
    generator_of,
    make_batch,
    separable_batch,
)
from tests.models.tiny_bert import PIECES, WORDS, make_bert

pytest.importorskip("transformers", reason="needs the extra `transformers`")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_bert(tmp_path_factory.mktemp("bert"))


def small(folder, seed: int = 0, *, layer_decay: float = 0.95, **settings) -> Transformer:
    return Transformer(
        encoder(folder, **settings), classes=CLASSES, generator=generator_of(seed), layer_decay=layer_decay
    )


def encoder(folder, *, pooling: str = "cls", head: int = 128, tail: int = 382, bfloat16: bool = False) -> Encoder:
    return Encoder(
        *pretrained.load(str(folder)), WORDS, pooling=pooling, head=head, tail=tail, bfloat16=bfloat16
    )  # fmt: skip


def ids(*pieces: str) -> list[int]:
    return [PIECES.index(f"[{piece}]") if piece.isupper() else PIECES.index(piece) for piece in pieces]


def test_a_word_without_pieces_is_unknown(folder) -> None:
    odd = Encoder(*pretrained.load(str(folder)), [*WORDS, "\ufffd"], pooling="cls", head=9, tail=9)
    read, _ = odd.padded(Batch.from_lists([[[len(WORDS)]]]))
    assert read.tolist() == [ids("CLS", "UNK", "SEP")]
    assert odd(Batch.from_lists([[[len(WORDS)]]])).isfinite().all()


def test_reads_the_pieces_of_each_word(folder) -> None:
    batch = Batch.from_lists([[[1, 2], [0, 11]], [[3]]])
    read, mask = small(folder).encoder.padded(batch)
    assert read.tolist() == [
        ids("CLS", "the", "room", "##s", "UNK", "!", "!", "SEP"),
        ids("CLS", "cat", "SEP", "PAD", "PAD", "PAD", "PAD", "PAD"),
    ]
    assert mask.tolist() == [[1] * 8, [1, 1, 1, 0, 0, 0, 0, 0]]


def test_reads_head_and_tail_of_a_long_document(folder) -> None:
    batch = Batch.from_lists([[[1, 3, 4, 5], [6, 7, 8, 9]], [[1, 3, 4, 5, 6]], [[1, 3, 4]]])
    read, _ = small(folder, head=2, tail=3).encoder.padded(batch)
    assert read.tolist() == [
        ids("CLS", "the", "cat", "nice", "clean", "old", "SEP"),
        ids("CLS", "the", "cat", "dog", "cow", "was", "SEP"),
        ids("CLS", "the", "cat", "dog", "SEP", "PAD", "PAD"),
    ]


def test_never_reads_more_than_the_encoder_can(folder) -> None:
    model = small(folder)  # 20 positions: 18 pieces
    assert (model.encoder.head, model.encoder.tail) == (18, 0)
    assert model(Batch.from_lists([[[1] * 50]])).logits.isfinite().all()


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_padding_changes_nothing(folder, pooling) -> None:
    model = small(folder, pooling=pooling)
    short, both = Batch.from_lists([[[3, 4]]]), Batch.from_lists([[[3, 4]], [[1] * 12]])
    with torch.no_grad():
        torch.testing.assert_close(model(short).logits[0], model(both).logits[0])


def test_groups_change_nothing(folder) -> None:
    """Documents are sorted into them by length, and come back in their order."""
    model, batch = small(folder), make_batch([[1 + i % 7] for i in range(GROUP + 3)])
    with torch.no_grad():
        grouped = model.encoder(batch)
    torch.testing.assert_close(grouped, model.encoder(batch).detach(), atol=1e-6, rtol=0)


def test_a_long_document_fills_up_few_others(folder, monkeypatch) -> None:
    model, read = encoder(folder), []
    encode = model._encode
    monkeypatch.setattr(model, "_encode", lambda ids, mask: read.append(ids.shape) or encode(ids, mask))
    with torch.no_grad():
        model(make_batch([[9] if i % 2 else [2] for i in range(2 * GROUP)]))
    assert [shape[0] for shape in read] == [GROUP, GROUP]
    assert read[0][1] < read[1][1]


def test_dropout_comes_from_the_generator_alone(folder) -> None:
    model, batch = small(folder), separable_batch(4)
    state = torch.get_rng_state()
    first, second = model(batch, generator_of(1)).logits, model(batch, generator_of(1)).logits
    assert torch.equal(first, second)
    assert not torch.equal(first, model(batch, generator_of(2)).logits)
    assert torch.equal(model(batch).logits, model(batch).logits)
    assert torch.equal(torch.get_rng_state(), state)


def test_fine_tunes_and_survives_saving(folder) -> None:
    model, batch = small(folder), separable_batch()
    check_learns(model, batch, steps=80, learning_rate=0.01)
    check_survives_saving(model, small(folder, 1), batch)


def test_bfloat16_is_close_and_learns(folder) -> None:
    """Weights, states and gradients stay float32; only products inside the encoder are rounded."""
    rounded, exact, batch = small(folder, bfloat16=True), small(folder), separable_batch()
    output = rounded(batch)
    torch.testing.assert_close(output.v, exact(batch).v, atol=0.05, rtol=0)
    assert not torch.equal(output.v, exact(batch).v)
    assert output.logits.dtype == torch.float32
    check_learns(rounded, batch, steps=80, learning_rate=0.01)
    assert {p.dtype for p in rounded.parameters()} == {torch.float32}


def test_attention_dropout_may_be_left_out(folder, tmp_path) -> None:
    """And stays left out in the run, which is built from the configuration that it keeps."""
    usual, none = pretrained.load(str(folder)), pretrained.load(str(folder), attention_dropout=0.0)
    assert usual[1].config.attention_probs_dropout_prob == 0.1
    pretrained.save(tmp_path, *none)
    for _, network in (none, pretrained.from_run(str(tmp_path), attention="eager")):
        assert network.config.attention_probs_dropout_prob == 0.0
        assert network.config.hidden_dropout_prob == 0.1


def test_lower_layers_learn_more_slowly(folder) -> None:
    scales = small(folder, layer_decay=0.5).learning_rate_scales()
    assert scales["output.weight"] == 1
    assert {scale for name, scale in scales.items() if "layer.1." in name} == {1}
    assert {scale for name, scale in scales.items() if "layer.0." in name} == {0.5}
    assert {scale for name, scale in scales.items() if "embeddings" in name} == {0.25}


def test_frozen_features(folder) -> None:
    def fresh() -> FrozenTransformer:
        return FrozenTransformer(encoder(folder, pooling="mean"), classes=CLASSES, C=100.0)

    model, batch, other = fresh(), separable_batch(), fresh()
    before = {name: value.clone() for name, value in model.encoder.state_dict().items()}
    model.fit([batch], seed=0)
    other.fit([batch], seed=1)
    assert torch.equal(other.weight, model.weight)  # nothing is drawn: models/table.py says so of the row
    assert (model(batch).logits.argmax(1).numpy() == batch.labels).mean() > 0.8
    assert all(torch.equal(value, before[name]) for name, value in model.encoder.state_dict().items())
    check_survives_saving(model, fresh(), batch)
    assert len(WORDS) == VOCABULARY
    assert np.isfinite(model(batch).v.numpy()).all()


def test_what_cannot_be_loaded(folder, tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"no such folder; give a folder with config.json"):
        small(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"no config.json"):
        small(tmp_path / "empty")
    shutil.copytree(folder, tmp_path / "pickled")
    (tmp_path / "pickled" / "model.safetensors").rename(tmp_path / "pickled" / "pytorch_model.bin")
    with pytest.raises(ConfigError, match=r"pytorch_model.bin: pickled weights are not loaded"):
        small(tmp_path / "pickled")
    (tmp_path / "pickled" / "pytorch_model.bin").unlink()
    with pytest.raises(ConfigError, match=r"no model.safetensors"):
        small(tmp_path / "pickled")
    shutil.copytree(folder, tmp_path / "wordless")
    for file in (tmp_path / "wordless").glob("*[tv]o[kc]*"):
        file.unlink()
    with pytest.raises(ConfigError, match=r"no tokenizer; give a folder"):
        small(tmp_path / "wordless")
    (tmp_path / "pickled" / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        small(tmp_path / "pickled")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        small("no-such-model-in-the-cache")
