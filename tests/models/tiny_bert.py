"""A random BERT of two layers in Hugging Face's format, and the words that it reads."""

from collections.abc import Sequence
from pathlib import Path

import torch

WORDS = ["<unk>", "the", "rooms", "cat", "dog", "cow", "was", "nice", "clean", "old", "and", "!!"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "room", "##s", "!", *(word for word in WORDS[1:-1] if word != "rooms")]


def make_bert(path: Path, words: Sequence[str] | None = None, *, positions: int = 20) -> Path:
    """Reads `PIECES`, or whole words that are given."""
    import transformers

    pieces = PIECES if words is None else [*PIECES[:4], *words]
    (path / "vocab.txt").write_text("\n".join(pieces) + "\n")
    tokenizer = transformers.BertTokenizer(vocab={piece: i for i, piece in enumerate(pieces)})
    tokenizer.save_pretrained(path)
    config = transformers.BertConfig(
        vocab_size=len(pieces),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=positions,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        transformers.BertModel(config).save_pretrained(path)
    return path
