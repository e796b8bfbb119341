r"""Weight x effect: which way each sentence, phrase and word pushed, from the pass that predicts and one backward pass
through the layers above the words.

Attention says where the model looked. An effect says what came of it: by how much the log-odds f of the predicted class
would fall without this part of the text. It is positive for what supports the prediction, negative for what speaks
against it. With g the slopes of f:

    sentence i   f(v) - f(v without i)  +  what its state hands on
    phrase k     the mean of  g_s . (s - s without k)  +  what its state hands on    as if it were not there
                         and  g_q . q_k                                              as if it said nothing
    word t       alpha_t (effect of its phrase + g_q . (h1_t - q))                   so that they sum to it

    v without i = (v - gamma_i h3_i) / (1 - gamma_i)

An attention pool without one of its rows has this closed form because a softmax over the others is the same weights
over 1 - gamma_i. What a state hands on: the next row would have started from the state before this one, so to first
order slope . (state - state before), and the slopes come from the backward pass. The words hear their neighbours, too;
that is left out, since a backward pass through the word layer would cost as much as the prediction itself.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.layers.attention import attend
from emhrnn.layers.packing import pack
from emhrnn.layers.row_dots import row_dots
from emhrnn.layers.state_slopes import LSTMPass, lstm_pass
from emhrnn.models.em_hrnn import EMHRNN, WordStates
from emhrnn.models.output import Output

LEAST = 1e-4  # of 1 - weight: what is left of a sum in float32 when nearly all of it is taken away


@dataclass(frozen=True, eq=False)
class BatchEffects:
    """Of all documents of a batch, on the log-odds of the class that each is taken for."""

    classes: Int64[Tensor, " documents"]
    words: Float[Tensor, " words"]
    phrases: Float[Tensor, " phrases"]
    sentences: Float[Tensor, " sentences"]


def log_odds(
    logits: Float[Tensor, "n classes"], chosen: Int64[Tensor, " n"], *, multi_label: bool, temperature: float = 1.0
) -> Float[Tensor, " n"]:
    """log p / (1 - p) of the chosen class, for the probabilities that are shown."""
    scaled = logits / temperature
    own = scaled.gather(1, chosen.unsqueeze(1))
    if multi_label or logits.shape[1] == 1:
        return own.squeeze(1)
    return own.squeeze(1) - scaled.scatter(1, chosen.unsqueeze(1), -torch.inf).logsumexp(1)


@torch.no_grad()
def encode_with_effects(
    model: EMHRNN,
    batch: Batch,
    states: WordStates,
    z: Bool[np.ndarray, " words"],
    *,
    multi_label: bool = False,
    temperature: float = 1.0,
) -> tuple[Output, BatchEffects]:
    """As `model.encode`, and the effects."""
    words_of, phrases_of = _offsets(batch, z)
    documents = torch.from_numpy(batch.document_offsets)
    # forward, as in EMHRNN.encode; attention is differentiated by autograd, each LSTM keeps what its slopes need
    q, alpha = attend(states.h1, states.scores, words_of)  # (phrases, word_features)
    phrases = lstm_pass(model.phrase_layer, q, pack(phrases_of.numpy()))
    h2 = phrases.h.requires_grad_()
    with torch.enable_grad():
        s, beta = model.phrase_attention(h2, phrases_of)  # (sentences, phrase_size)
    forward = lstm_pass(model.sentence_forward, s.detach(), pack(batch.document_offsets))
    backward = lstm_pass(model.sentence_backward, s.detach(), pack(batch.document_offsets, reverse=True))
    h3 = torch.cat([forward.h, backward.h], dim=1).requires_grad_()  # (sentences, 2 sentence_size)
    with torch.enable_grad():
        v, gamma = model.sentence_attention(h3, documents)
    logits = model.output(v)
    chosen = logits.argmax(dim=1)

    def f(v: Float[Tensor, "n features"], of_class: Int64[Tensor, " n"]) -> Float[Tensor, " n"]:
        return log_odds(model.output(v), of_class, multi_label=multi_label, temperature=temperature)

    # backward, level by level
    with torch.enable_grad():
        f_v = f(v, chosen)
        (g_h3,) = torch.autograd.grad(f_v.sum(), h3)
    half = forward.h.shape[1]
    g_s, *ahead = forward.slopes(g_h3[:, :half])
    g_s_back, *behind = backward.slopes(g_h3[:, half:])
    g_s += g_s_back
    (g_h2,) = torch.autograd.grad(s, h2, g_s)
    g_q, *onward = phrases.slopes(g_h2)

    document, sentence, phrase = (_segments(offsets) for offsets in (documents, phrases_of, words_of))
    of_sentences = f_v.detach()[document] - f(_without(h3.detach(), gamma, v, document), chosen[document])
    of_sentences += _handed_on(forward, *ahead) + _handed_on(backward, *behind)

    skipped = beta / (1 - beta).clamp_min(LEAST) * _difference(h2.detach(), s.detach(), g_s, sentence)
    skipped += _handed_on(phrases, *onward)
    alone = (phrases_of.diff() == 1)[sentence]  # then the sentence goes with it
    skipped = torch.where(alone, of_sentences[sentence], skipped)
    rows = torch.arange(len(q))
    of_phrases = (skipped + row_dots(q, rows, g_q, rows)) / 2

    of_words = alpha * (of_phrases[phrase] + _difference(states.h1, q, g_q, phrase))
    output = Output(
        logits, v.detach(), z=z, alpha=alpha, beta=beta.detach(), gamma=gamma.detach(), pi=torch.sigmoid(states.a)
    )
    return output, BatchEffects(chosen, of_words, of_phrases, of_sentences)


def _offsets(
    batch: Batch, z: Bool[np.ndarray, " words"]
) -> tuple[Int64[Tensor, " phrases_plus_1"], Int64[Tensor, " sentences_plus_1"]]:
    """The words of each phrase, and the phrases of each sentence."""
    words_of = np.concatenate([[0], np.flatnonzero(z) + 1])
    phrases_of = np.concatenate([[0], np.cumsum(z)])[batch.sentence_offsets]
    return torch.from_numpy(words_of), torch.from_numpy(phrases_of)


def _segments(offsets: Int64[Tensor, " m_plus_1"]) -> Int64[Tensor, " n"]:
    return torch.repeat_interleave(offsets.diff())


def _without(
    h: Float[Tensor, "n H"], weights: Float[Tensor, " n"], pooled: Float[Tensor, "m H"], segment: Int64[Tensor, " n"]
) -> Float[Tensor, "n H"]:
    """Each pool without each of its rows; zero where it had no other."""
    rest = pooled[segment].addcmul(weights.unsqueeze(1), h, value=-1)
    return rest / (1 - weights).clamp_min(LEAST).unsqueeze(1)


def _difference(
    h: Float[Tensor, "n H"], pooled: Float[Tensor, "m H"], g: Float[Tensor, "m H"], segment: Int64[Tensor, " n"]
) -> Float[Tensor, " n"]:
    """g . (h - pooled) of each row's segment."""
    of_pool = row_dots(pooled, torch.arange(len(pooled)), g, torch.arange(len(g)))
    return row_dots(h, torch.arange(len(h)), g, segment) - of_pool[segment]


def _handed_on(done: LSTMPass, slope_h: Float[Tensor, "n H"], slope_c: Float[Tensor, "n H"]) -> Float[Tensor, " n"]:
    """What changes in the rows behind each row when they go on from the state before it."""
    change = (slope_h * _step(done.h.detach(), done)).sum(1)
    return change.add_((slope_c * _step(done.cells, done)).sum(1))


def _step(states: Float[Tensor, "n H"], done: LSTMPass) -> Float[Tensor, "n H"]:
    """Each state less the one before it in the order of reading, zero at the start of a sequence."""
    offsets, step = done.packing.offsets, states.clone()
    if done.packing.reverse:
        step[:-1] -= states[1:]
        first = offsets[1:] - 1
    else:
        step[1:] -= states[:-1]
        first = offsets[:-1]
    step[first] = states[first]
    return step
