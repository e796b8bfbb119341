"""What words and pairs say by themselves (models/ngrams.py), in ONNX."""

import numpy as np

from emhrnn.export.graph import Graph
from emhrnn.export.ragged import Segments
from emhrnn.models.ngrams import MIX, NGrams


def said(g: Graph, layer: NGrams, sentences: Segments, documents: Segments) -> str:
    """(documents, classes), to be added to the logits."""
    array = layer.table.detach().float().numpy()
    table = g.weight("ngrams.table", array)
    before = g.op("Gather", "words", g.op("Max", g.op("Sub", sentences.row, 1), 0))
    mixed = g.op("Add", g.op("Mul", before, MIX[0]), g.op("Mul", "words", MIX[1]))
    bucket = g.op("Add", g.op("Mod", mixed, layer.buckets), layer.vocabulary)
    second = g.op("Cast", g.op("Greater", sentences.place, 0), to=1)  # words that end a pair
    pairs = g.op("Mul", g.op("Gather", table, bucket), g.op("Unsqueeze", second, np.array([1])))
    scores = g.op("Add", g.op("Gather", table, "words"), pairs)  # (words, classes)
    lengths = documents.sums(g.op("Cast", sentences.lengths, to=1))  # words of each document
    words = Segments(g, g.op("Cast", lengths, to=7))  # of the documents
    share = g.op("Gather", g.op("Reciprocal", g.op("Sqrt", lengths)), words.of_row)
    return words.weighted_sums(scores, share, array.shape[1])
