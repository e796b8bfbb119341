"""Sentence attention of the E-step. A document variant is a list of (forward state, backward state) pairs, and most
states are shared between variants; so each state is multiplied by the weights once, and a pair only adds two rows.

    score = context . tanh(left[f, :A] + right[b, :A])
    logits of a variant = sum over its pairs of softmax(score) * (left[f, A:] + right[b, A:])
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from emhrnn.layers.attention import attend
from emhrnn.layers.cells import tanh_
from emhrnn.layers.native import kernels_for

CHUNK = 8192  # pairs at a time: the sums stay in the cache


def pair_attention(
    left: Float[Tensor, "F A_plus_C"],
    right: Float[Tensor, "B A_plus_C"],
    context: Float[Tensor, " A"],
    offsets: Int64[Tensor, " v_plus_1"],
    forward_nodes: Int64[Tensor, " k"],
    backward_nodes: Int64[Tensor, " k"],
) -> Float[Tensor, "v C"]:
    """Logits of each variant; pair t of variant i, with t in offsets[i] : offsets[i + 1], is (forward_nodes[t],
    backward_nodes[t]), rows of `left` and `right`."""
    A = len(context)
    differentiate = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (left, right, context))
    kernels = kernels_for(left, right, context)
    if kernels and not differentiate:
        arguments = (left, right, context, offsets, forward_nodes, backward_nodes)
        return kernels.pair_attention(*(tensor.contiguous() for tensor in arguments))
    scores = []
    for f, b in zip(torch.split(forward_nodes, CHUNK), torch.split(backward_nodes, CHUNK), strict=True):
        if differentiate:
            scores.append((left[:, :A].index_select(0, f) + right[:, :A].index_select(0, b)).tanh() @ context)
        else:
            scores.append(tanh_(left[:, :A].index_select(0, f).add_(right[:, :A].index_select(0, b))) @ context)
    votes = left[:, A:].index_select(0, forward_nodes) + right[:, A:].index_select(0, backward_nodes)
    return attend(votes, torch.cat(scores), offsets)[0]
