"""A random BERT of two layers in Hugging Face's format, and the words that it reads."""

from pathlib import Path

import torch

WORDS = ["<unk>", "the", "rooms", "cat", "dog", "cow", "was", "nice", "clean", "old", "and", "!!"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "room", "##s", "!", *(word for word in WORDS[1:-1] if word != "rooms")]


def make_bert(path: Path) -> Path:
    import transformers

    (path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    tokenizer = transformers.BertTokenizer(vocab={piece: i for i, piece in enumerate(PIECES)})
    tokenizer.save_pretrained(path)
    config = transformers.BertConfig(
        vocab_size=len(PIECES),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=20,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        transformers.BertModel(config).save_pretrained(path)
    return path
