"""Raw text to words: sentences, tokens with character offsets, vocabulary, pretrained vectors.

document = read_document("It's good.")           # words, their spans in the text, sentence ends
counts = count_words(texts)                      # for Vocabulary.from_counts
encoder = Encoder(vocabulary)                    # encoder.encode_many(texts): word ids; locate(texts): spans, too
vectors = read_vectors(path)                     # vectors.lookup(vocabulary, generator=...)
"""

from emhrnn.text.document import Document, read_document
from emhrnn.text.encoder import Encoded, Encoder, Limits, Located
from emhrnn.text.sentences import split_sentences
from emhrnn.text.vector_files import read_vectors
from emhrnn.text.vectors import Vectors
from emhrnn.text.vocabulary import UNK, Vocabulary
from emhrnn.text.words import count_words, tokenise

__all__ = [
    "UNK",
    "Document",
    "Encoded",
    "Encoder",
    "Limits",
    "Located",
    "Vectors",
    "Vocabulary",
    "count_words",
    "read_document",
    "read_vectors",
    "split_sentences",
    "tokenise",
]
