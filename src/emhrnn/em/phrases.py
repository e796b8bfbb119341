r"""q of any phrases of a batch: what attention makes of their words.

The states of words that are read across their sentence are there already. A model that restarts reads each phrase by
itself; of those that begin together the forward states are the same as far as they go, and of those that end together
the backward ones, so each state exists once:

    phrases    a b    a b c    b c d    c d
    forward    a b c    b c d    c d              from each first word, as far as any phrase goes
    backward   a b    a b c    b c d              from each last word, likewise
"""

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from emhrnn.em.keys import ranges
from emhrnn.layers.attention import attend
from emhrnn.layers.forest import attend_paths
from emhrnn.layers.packing import pack
from emhrnn.layers.recurrent import Recurrent
from emhrnn.models.em_hrnn import EMHRNN, WordStates

Words = Int64[np.ndarray, " phrases"]  # a word of each phrase


def phrase_vectors(model: EMHRNN, states: WordStates, begin: Words, end: Words) -> Float[Tensor, "phrases features"]:
    """q of the phrases of words begin .. end - 1."""
    bounds, phrase, words = ranges(begin, end - begin)
    offsets = torch.from_numpy(bounds)
    if states.inputs is None:
        return attend_paths(states.h1, states.scores, offsets, torch.from_numpy(words))
    directions = zip(model.word_directions(), states.inputs.tables, (False, True), strict=False)
    h1 = torch.cat(
        [
            _shared(layer, table, states.inputs.rows, begin, end, phrase, words, reverse=reverse)
            for layer, table, reverse in directions
        ],
        dim=1,
    )  # (words of all phrases, features)
    return attend(h1, model.word_attention.scores(h1), offsets)[0]


def _shared(
    layer: Recurrent,
    table: Float[Tensor, "some gates"],
    rows: Int64[Tensor, " words"],
    begin: Words,
    end: Words,
    phrase: Int64[np.ndarray, " places"],
    words: Int64[np.ndarray, " places"],
    *,
    reverse: bool,
) -> Float[Tensor, "places hidden"]:
    """h of the words of all phrases, one phrase after the other, from one direction."""
    start, of_phrase = np.unique(end if reverse else begin, return_inverse=True)  # where states of zero are
    longest = np.zeros_like(start)
    np.maximum.at(longest, of_phrase, end - begin)
    first = start - longest if reverse else start
    offsets, _, read = ranges(first, longest)
    h = layer.forward_projected(table, pack(offsets, reverse=reverse), rows[torch.from_numpy(read)])
    place = (offsets[:-1] - first)[of_phrase][phrase] + words
    return h.index_select(0, torch.from_numpy(place))
