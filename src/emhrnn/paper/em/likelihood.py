"""log p(y | Z, w) of every configuration of every block, at once.

The word layer does not depend on Z and is given. The rest follows the integer plan: distinct phrases, trie of phrase
states, distinct sentence vectors, chains of the sentence BiLSTM, sentence attention of every distinct document; a
handful of large matrix products, with no Python loop over documents, blocks or configurations. Differentiable.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from emhrnn.corpus.batch import Batch, offsets_of, ranges
from emhrnn.errors import DataError
from emhrnn.layers.linear import linear
from emhrnn.layers.recurrent import Recurrent
from emhrnn.models.output import log_likelihood
from emhrnn.paper.em.blocks import Blocks
from emhrnn.paper.em.plan import BlockChunk, DocumentPlan, Forest, SentencePlan, chunks, make_plan
from emhrnn.paper.layers.attention import attend_path_pairs, attend_paths, pair_attention
from emhrnn.paper.layers.forest import forest_h
from emhrnn.paper.models.em_hrnn import EMHRNN, WordStates

BUDGET = 24 << 20  # bytes; some ten documents of 150 words and 320 configurations, which stay in the cache


def configuration_likelihood(
    model: EMHRNN,
    batch: Batch,
    states: WordStates,
    z: Bool[np.ndarray, " words"],
    blocks: Blocks,
    *,
    budget: int = BUDGET,
) -> Float[Tensor, "blocks configurations"]:
    """log p(y | z_B, zhat_-B, w): z holds the boundaries outside each block. -inf where a block has no such
    configuration."""
    labels = batch_labels(batch)
    sentence, phrase = bytes_per_state(model), bytes_per_phrase(model)
    cut = list(chunks(batch, blocks, budget=budget, sentence_bytes=sentence, phrase_bytes=phrase))
    if not cut:
        return states.h1.new_zeros(0, 1 << blocks.length)
    evaluate: Callable[..., Tensor] = _chunk_likelihood
    if torch.is_grad_enabled() and len(cut) > 1:  # keep no states: the backward pass makes them again, chunk by chunk
        evaluate = partial(checkpoint, _chunk_likelihood, use_reentrant=False, preserve_rng_state=False)
    return torch.cat(
        [
            evaluate(
                model,
                chunk,
                states.part(chunk.word_range),
                z[chunk.word_range],
                labels[chunk.document_range],
            )
            for chunk in cut
        ]
    )


def _chunk_likelihood(
    model: EMHRNN,
    chunk: BlockChunk,
    states: WordStates,
    z: Bool[np.ndarray, " words"],
    labels: Tensor,
) -> Float[Tensor, "blocks configurations"]:
    plan = make_plan(chunk.batch, z, chunk.blocks)
    s = sentence_vectors(model, states, plan.sentences)
    logits = document_logits(model, s, plan.documents)  # (variants, classes)
    document = torch.from_numpy(plan.documents.documents)  # of each variant
    return _spread(log_likelihood(logits, labels[document]), plan.documents)


def sentence_vectors(
    model: EMHRNN, states: WordStates, plan: SentencePlan
) -> Float[Tensor, "variants phrase_features"]:
    """s of every distinct sentence."""
    lengths = plan.segment_end - plan.segment_begin
    segments = torch.from_numpy(offsets_of(lengths)), torch.from_numpy(ranges(plan.segment_begin, lengths))
    q = attend_paths(states.h1, states.scores, *segments)  # (segments, word_features)
    h2 = _forest(model.phrase_layer, q, plan.phrases)  # (nodes, phrase_size)
    path = torch.from_numpy(plan.path_offsets), torch.from_numpy(plan.path_nodes)
    if model.skip:
        return attend_path_pairs(model.phrase_attention, h2, q, torch.from_numpy(plan.phrases.inputs), *path)
    return attend_paths(h2, model.phrase_attention.scores(h2), *path)


def document_logits(
    model: EMHRNN, s: Float[Tensor, "sentence_variants phrase_features"], plan: DocumentPlan
) -> Float[Tensor, "variants classes"]:
    """Logits of every distinct document.

    Attention and output layer are linear in h3 = [forward; backward] before tanh and softmax, so both are applied to
    each state once: a document then only adds up the pairs of states that it has."""
    forward = _forest(model.sentence_forward, s, plan.forward)  # (forward nodes, sentence_size)
    backward = _forest(model.sentence_backward, s, plan.backward)
    weight = torch.cat([model.sentence_attention.weight, model.output.weight])  # (attention + classes, 2 sentence_size)
    bias = torch.cat([model.sentence_attention.bias, model.output.bias])
    size = model.sentence_forward.hidden_size
    left, right = linear(forward, weight[:, :size], bias), linear(backward, weight[:, size:])
    return pair_attention(
        left,
        right,
        model.sentence_attention.context,
        torch.from_numpy(plan.offsets),
        torch.from_numpy(plan.forward_nodes),
        torch.from_numpy(plan.backward_nodes),
    )


def batch_labels(batch: Batch) -> Tensor:
    """y as a tensor; the E-step cannot do without."""
    if batch.labels is None:
        raise DataError("the E-step weighs segmentations by the label, and these documents have none")
    return torch.from_numpy(batch.labels)


def _forest(layer: Recurrent, x: Float[Tensor, "m features"], forest: Forest) -> Float[Tensor, "nodes hidden"]:
    return forest_h(layer, x, torch.from_numpy(forest.inputs), torch.from_numpy(forest.parents), forest.level_sizes)


def _spread(log_p: Float[Tensor, " variants"], plan: DocumentPlan) -> Float[Tensor, "blocks configurations"]:
    """From distinct documents to configurations."""
    variant = torch.from_numpy(plan.configurations)
    return torch.where(variant >= 0, log_p[variant.clamp(min=0)], -torch.inf)


def bytes_per_phrase(model: EMHRNN) -> int:
    """A node of the phrase layer: h and c, its row of scores twice, and its indices."""
    return 8 * (model.phrase_layer.hidden_size + len(model.phrase_attention.context)) + 64


def bytes_per_state(model: EMHRNN) -> int:
    """A node of the sentence layer: h and c, its row of scores and votes, and its indices."""
    classes, features = model.output.weight.shape
    return 4 * (features + len(model.sentence_attention.context) + classes) + 64
