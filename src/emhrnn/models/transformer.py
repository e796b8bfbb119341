r"""A pretrained transformer with a linear head: Bert-base fine-tuning after Sun et al. (2019; docs/paper.md 5), for any
encoder in Hugging Face's format.

    the first 128 and the last 382 word pieces of the document
    [CLS] p p p ... p | p ... p [SEP]
    encoder (BERT, MiniLM, MPNet, ...)
    v = state of [CLS], or the mean of all states
    softmax(W_c v + b_c)

`Transformer` is fine-tuned whole: base learning rate 2e-5, and a layer k of L learns at decay^(L - k) of it
(`learning_rate_scales`). `FrozenTransformer` runs the encoder once per document and fits the head alone: for CPUs.

The encoder comes from the local disk (models/pretrained.py). A run holds its weights, its configuration and its
tokenizer, and needs the folder that it came from no more.

The text comes from the batch: each word of the vocabulary is cut into pieces once, and a batch looks them up. So the
encoder sees normalised, lower-cased words, and [UNK] for words outside the vocabulary; keep the vocabulary complete
with data.min_count = 1.
"""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError
from emhrnn.layers.linear import dense
from emhrnn.layers.phrases import UNKNOWN_WORD
from emhrnn.models.fitting import fit_standardised, labels_of, weights_of
from emhrnn.models.model import DocumentModel, Output
from emhrnn.models.pretrained import from_run, load, save
from emhrnn.models.row import Facts
from emhrnn.models.settings import TransformerConfig
from emhrnn.shapes import Float, Int64

Pooling = Literal["cls", "mean"]
PLAIN = "eager"  # of attention: with bfloat16, the gradient of the fused one is slower for most documents
GROUP = 16  # documents that are encoded together when nothing is learned


def build_transformer(
    config: TransformerConfig, facts: Facts, table: Tensor, vocabulary: Sequence[str], seed: int
) -> DocumentModel:
    """A pretrained encoder with a head; from the folder of a run, where the run has its configuration."""
    attention = PLAIN if config.bfloat16 else None
    if facts.encoder:
        tokenizer, network = from_run(facts.encoder, attention=attention)
    else:
        tokenizer, network = load(config.pretrained, attention=attention, attention_dropout=config.attention_dropout)
    pooling = config.pooling or ("mean" if config.frozen else "cls")
    encoder = Encoder(
        tokenizer, network, vocabulary,
        pooling=pooling, head=config.head, tail=config.tail, bfloat16=config.bfloat16,
    )  # fmt: skip
    if config.frozen:
        return FrozenTransformer(encoder, classes=facts.classes, C=config.C)
    generator = torch.Generator().manual_seed(seed)
    return Transformer(encoder, classes=facts.classes, generator=generator, layer_decay=config.layer_decay)


class Encoder(nn.Module):
    """Batch -> one vector per document."""

    pieces: Tensor
    piece_offsets: Tensor

    def __init__(
        self, tokenizer: Any, network: Any, vocabulary: Sequence[str], *, pooling: Pooling, head: int, tail: int,
        bfloat16: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.in_bfloat16 = bfloat16
        self.tokenizer = tokenizer
        self.network = network
        self.pooling = pooling
        limit = _positions(network, head + tail + 2) - 2
        self.tail = min(tail, max(limit - head, 0))
        self.head = min(head, limit)
        self.first, self.last, self.pad = _special(tokenizer)
        pieces = tokenizer([" " + word for word in vocabulary], add_special_tokens=False)["input_ids"]
        pieces[UNKNOWN_WORD] = []
        pieces = [part or [tokenizer.unk_token_id] for part in pieces]  # of some odd characters it keeps nothing
        lengths = [len(part) for part in pieces]
        self.register_buffer("pieces", torch.tensor([piece for part in pieces for piece in part]))
        self.register_buffer("piece_offsets", torch.from_numpy(np.cumsum([0, *lengths], dtype=np.int64)))

    @property
    def size(self) -> int:
        return int(self.network.config.hidden_size)

    def forward(self, batch: Batch) -> Float[Tensor, "documents size"]:
        ids, mask = self.padded(batch)
        if torch.is_grad_enabled():
            return self._encode(ids, mask)
        # In small groups: large ones only leave the cache. Of like length: a long document would fill up all others.
        lengths, order = mask.sum(1).sort(stable=True)
        longest = [int(part[-1]) for part in torch.split(lengths, GROUP)]
        groups = zip(torch.split(order, GROUP), longest, strict=True)
        encoded = torch.cat([self._encode(ids[rows, :length], mask[rows, :length]) for rows, length in groups])
        return encoded[order.argsort()]

    def _encode(
        self, ids: Int64[Tensor, "documents length"], mask: Int64[Tensor, "documents length"]
    ) -> Float[Tensor, "documents size"]:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.in_bfloat16):
            states = self.network(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        # (documents, length, size)
        if self.pooling == "cls":
            first: Tensor = states[:, 0]
            return first
        weights = mask.to(states.dtype).unsqueeze(2)
        mean: Tensor = (states * weights).sum(1) / weights.sum(1)
        return mean

    def padded(self, batch: Batch) -> tuple[Int64[Tensor, "documents length"], Int64[Tensor, "documents length"]]:
        """[CLS], head and tail of each document's pieces, [SEP], padding; and a mask that is 1 before the padding."""
        pieces, offsets = self._pieces_of(batch)
        lengths = np.diff(offsets)
        kept = np.minimum(lengths, self.head + self.tail)
        place = np.arange(kept.max() + 2)
        skipped = np.where(place > self.head, (lengths - kept)[:, None], 0)  # the middle of a long document
        rows = np.clip(offsets[:-1, None] + place - 1 + skipped, 0, len(pieces) - 1)
        ids = np.where(place <= kept[:, None], pieces[rows], self.pad)
        ids[:, 0] = self.first
        ids[np.arange(len(ids)), kept + 1] = self.last
        return torch.from_numpy(ids), torch.from_numpy((place <= kept[:, None] + 1).astype(np.int64))

    def _pieces_of(self, batch: Batch) -> tuple[np.ndarray, Int64[np.ndarray, " documents_plus_1"]]:
        """The word pieces of all documents, flat, and where each document begins."""
        starts = self.piece_offsets.numpy()
        lengths = np.diff(starts)[batch.words]  # (words,)
        ends = np.cumsum(lengths)
        index = np.arange(ends[-1]) + np.repeat(starts[batch.words] - (ends - lengths), lengths)
        offsets = np.concatenate([[0], ends])[batch.word_offsets]
        return self.pieces.numpy()[index], offsets


class Transformer(DocumentModel):
    """A pretrained encoder with a linear head, both tuned."""

    def __init__(self, encoder: Encoder, *, classes: int, generator: torch.Generator, layer_decay: float) -> None:
        super().__init__()
        self.layer_decay = layer_decay
        self.encoder = encoder
        self.output = dense(self.encoder.size, classes, generator)

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        """A generator turns the encoder's own dropout on."""
        self.train(generator is not None)
        if generator is None:
            v = self.encoder(batch)
        else:
            # the encoder draws from torch's global generator: lend it one for this call
            seed = int(torch.randint(2**62, (), generator=generator))
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                v = self.encoder(batch)
        return Output(self.output(v), v)

    def learning_rate_scales(self) -> dict[str, float]:
        """By parameter name, the share of the learning rate: 1 for the head and the top layer, `layer_decay` for the
        layer below it, and so on down to the embeddings."""
        layers = int(self.encoder.network.config.num_hidden_layers)
        return {name: self.layer_decay ** (layers - _depth(name, layers)) for name, _ in self.named_parameters()}

    def save_files(self, folder: Path) -> None:
        save(folder, self.encoder.tokenizer, self.encoder.network)


class FrozenTransformer(DocumentModel):
    """A pretrained encoder that stays as it is, and a linear head that is fitted at once."""

    weight: Tensor
    bias: Tensor

    fits_at_once = True

    def __init__(self, encoder: Encoder, *, classes: int, C: float) -> None:
        super().__init__()
        self.C = C
        self.encoder = encoder.requires_grad_(False).eval()
        self.register_buffer("weight", torch.zeros(classes, self.encoder.size))
        self.register_buffer("bias", torch.zeros(classes))

    @torch.no_grad()
    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        v = self.encoder(batch)
        return Output(v @ self.weight.t() + self.bias, v)

    @torch.no_grad()
    def fit(self, batches: Iterable[Batch], seed: int = 0) -> None:
        features = torch.cat([self.encoder(batch) for batch in batches])
        labels, weights = labels_of(batches), weights_of(batches)
        weight, bias = fit_standardised(features, labels, len(self.bias), "logistic", self.C, seed, weights)
        self.weight.copy_(weight)
        self.bias.copy_(bias)

    def save_files(self, folder: Path) -> None:
        save(folder, self.encoder.tokenizer, self.encoder.network)


def _positions(network: Any, default: int) -> int:
    """How many pieces it can read. RoBERTa and MPNet count positions from behind the id of the padding."""
    positions = int(getattr(network.config, "max_position_embeddings", default))
    table = getattr(getattr(network, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return positions if padding is None else positions - padding - 1


def _special(tokenizer: Any) -> tuple[int, int, int]:
    """Ids of the first and the last piece of a text and of padding."""
    first = tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id
    last = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
    if first is None or last is None or tokenizer.unk_token_id is None:
        raise ConfigError("the tokenizer has no [CLS], [SEP] or [UNK]; give an encoder such as BERT, MiniLM or MPNet")
    return first, last, pad


def _depth(name: str, layers: int) -> int:
    """0 for the embeddings, k for layer k = 1 .. L, L for what lies above."""
    parts = name.split(".")
    for before, part in itertools.pairwise(parts):
        if before in ("layer", "layers") and part.isdigit():
            return int(part) + 1
    return 0 if "embeddings" in parts else layers
