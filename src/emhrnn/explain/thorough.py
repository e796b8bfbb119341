"""Effects that look twice: what words do to their neighbours counts, and once the strongest words are out, the others
are looked at again. A first look cannot see that two words say the same, or that the second of them decides when the
first is gone. Costs about five predictions.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.explain.effects import BatchEffects, with_context
from emhrnn.explain.removal import without
from emhrnn.explain.units import units_of
from emhrnn.models.em_hrnn import EMHRNN

FIRST = 0.03  # of the words of a document: out of the second look


def thorough_effects(
    model: EMHRNN,
    batch: Batch,
    z: Bool[np.ndarray, " words"],
    *,
    multi_label: bool = False,
    temperature: float = 1.0,
) -> BatchEffects:
    """As `encode_with_effects` gives them, from two looks."""
    look = partial(with_context, model, multi_label=multi_label, temperature=temperature)
    first = look(batch, z)
    top = units_of(batch, z, "word").top(first.words.numpy(), FIRST)
    top &= np.repeat(batch.document_lengths > 1, batch.document_lengths)  # something must be left
    smaller, left = without(batch, z, ~top)
    second = look(smaller, left, chosen=first.classes)
    return replace(first, words=_joined(first.words, second.words, torch.from_numpy(top), batch))


def _joined(
    first: Float[Tensor, " words"], second: Float[Tensor, " left"], top: Bool[Tensor, " words"], batch: Batch
) -> Float[Tensor, " words"]:
    """The second look, brought to the scale of the first: without its strongest words a document is less certain, so
    all effects are larger. The strongest of a second look counts at most as much as the weakest of the first."""
    document = torch.repeat_interleave(torch.from_numpy(batch.document_lengths))  # of each word
    least = first.new_full((batch.n_documents,), torch.inf)
    least.scatter_reduce_(0, document[top], first[top], "amin")
    most = first.new_zeros(batch.n_documents).scatter_reduce_(0, document[~top], second, "amax")
    scale = (least.clamp_min(0) / most.clamp_min(1e-12)).clamp_max(1)
    joined = first.clone()
    joined[~top] = torch.where(second > 0, second * scale[document[~top]], second)
    return joined
