"""Raw text to words: sentences, tokens with character offsets, vocabulary, pretrained vectors.

document = read_document("It's good.")           # words, their spans in the text, sentence ends
encoder = WordEncoder(vocabulary)                # encoder.encode(texts): word ids; locate(texts): spans, too
vectors = read_vectors(path)                     # vectors.lookup(vocabulary, generator=...)
"""

from emhrnn.text.encoder import (
    Document,
    Encoded,
    Located,
    LocatedTexts,
    Text,
    TextLimits,
    TextSettings,
    WordEncoder,
    read_document,
)
from emhrnn.text.vectors import Vectors, read_vectors
from emhrnn.text.vocabulary import UNK, Vocabulary
from emhrnn.text.words import split_sentences, tokenise

__all__ = [
    "UNK",
    "Document",
    "Encoded",
    "Located",
    "LocatedTexts",
    "Text",
    "TextLimits",
    "TextSettings",
    "Vectors",
    "Vocabulary",
    "WordEncoder",
    "read_document",
    "read_vectors",
    "split_sentences",
    "tokenise",
]
