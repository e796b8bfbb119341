r"""Weight x effect: which way each sentence, phrase and word pushed, from the pass that predicts and one backward pass
through the layers above the words.

Attention says where the model looked. An effect says what came of it: by how much the log-odds f of the predicted class
would fall without this part of the text. It is positive for what supports the prediction, negative for what speaks
against it. With g the slopes of f:

    sentence i   f(v) - f(v without i)      +  what its state hands on
    phrase k     g_s . (s - s without k)    +  what its state hands on
    word t       alpha_t (effect of its phrase + g_q . (h1_t - q))          so that they sum to it

    v without i = (v - gamma_i h3_i) / (1 - gamma_i)

An attention pool without one of its rows has this closed form because a softmax over the others is the same weights
over 1 - gamma_i. What a state hands on: the next row would have started from the state before this one, so to first
order slope . (state - state before), and the slopes come from the backward pass.

The words hear their neighbours, too. A backward pass through the word layer would cost as much as the prediction, so
that is left to `with_context`: words and phrases also count what their word states hand on, in both directions.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.explain.build import BatchEffects
from emhrnn.layers.linear import row_dots
from emhrnn.layers.packing import Packing, pack
from emhrnn.models.output import Output
from emhrnn.paper.layers.attention import attend
from emhrnn.paper.layers.slopes import LayerPass, Passes, layer_pass
from emhrnn.paper.models.em_hrnn import EMHRNN, WordStates
from emhrnn.paper.models.embedding import WordInputs

LEAST = 1e-4  # of 1 - weight: what is left of a sum in float32 when nearly all of it is taken away


def log_odds(
    logits: Float[Tensor, "n classes"], chosen: Int64[Tensor, " n"], *, multi_label: bool, temperature: float = 1.0
) -> Float[Tensor, " n"]:
    """log p / (1 - p) of the chosen class, for the probabilities that are shown."""
    scaled = logits / temperature
    own = scaled.gather(1, chosen.unsqueeze(1))
    if multi_label or logits.shape[1] == 1:
        return own.squeeze(1)
    return own.squeeze(1) - scaled.scatter(1, chosen.unsqueeze(1), -torch.inf).logsumexp(1)


def log_odds_slopes(
    logits: Float[Tensor, "n classes"], chosen: Int64[Tensor, " n"], *, multi_label: bool, temperature: float = 1.0
) -> Float[Tensor, "n classes"]:
    """Of `log_odds`."""
    slopes = torch.zeros_like(logits)
    if not multi_label and logits.shape[1] > 1:
        slopes -= (logits / temperature).scatter(1, chosen.unsqueeze(1), -torch.inf).softmax(1)
    return slopes.scatter_(1, chosen.unsqueeze(1), 1.0).div_(temperature)


@torch.no_grad()
def encode_with_effects(
    model: EMHRNN,
    batch: Batch,
    states: WordStates,
    z: Bool[np.ndarray, " words"],
    *,
    multi_label: bool = False,
    temperature: float = 1.0,
    chosen: Int64[Tensor, " documents"] | None = None,
    context: Sequence[LayerPass] = (),
) -> tuple[Output, BatchEffects]:
    """As `model.encode`, and the effects, on the log-odds of the chosen classes or else of the predicted ones."""
    words_of, phrases_of = _offsets(batch, z)
    documents = torch.from_numpy(batch.document_offsets)
    passes = Passes()
    output = model.encode(batch, states, z, passes=passes)
    phrases, forward, backward = passes.layers
    in_sentences, in_document = passes.pools
    logits, v, alpha = output.logits, output.v, output.alpha
    assert alpha is not None
    q, h3, gamma = phrases.x, in_document.h, in_document.weights
    s, beta = in_sentences.pooled, in_sentences.weights
    chosen = logits.argmax(dim=1) if chosen is None else chosen

    # backward, level by level
    g_y = log_odds_slopes(logits, chosen, multi_label=multi_label, temperature=temperature)  # (documents, classes)
    g_v = g_y @ model.output.weight
    g_ahead, g_behind = in_document.slopes(g_v).chunk(2, dim=1)
    g_s, *ahead = forward.slopes(g_ahead)
    g_s_back, *behind = backward.slopes(g_behind)
    g_s += g_s_back
    g_p, size = in_sentences.slopes(g_s), phrases.h.shape[1]
    g_q, *onward = phrases.slopes(g_p[:, :size])
    if model.skip:
        g_q += g_p[:, size:]

    document, sentence, phrase = (_segments(offsets) for offsets in (documents, phrases_of, words_of))
    f = partial(log_odds, multi_label=multi_label, temperature=temperature)
    left = model.output(_without(h3, gamma, v, document))
    of_sentences = f(logits, chosen)[document] - f(left, chosen[document])
    of_sentences += _handed_on(forward, ahead) + _handed_on(backward, behind)
    of_phrases = beta / (1 - beta).clamp_min(LEAST) * _difference(in_sentences.h, s, g_s, sentence)
    of_phrases += _handed_on(phrases, onward)
    alone = (phrases_of.diff() == 1)[sentence]  # then the sentence goes with it
    of_phrases = torch.where(alone, of_sentences[sentence], of_phrases)
    of_words = alpha * (of_phrases[phrase] + _difference(states.h1, q, g_q, phrase))
    if context:
        by_words, by_phrases = _heard(model, states, words_of, g_q, context)
        of_words += by_words
        of_phrases += torch.where(alone, 0, by_phrases)
    return output, _effects(chosen, of_words, of_phrases, of_sentences)


@torch.no_grad()
def with_context(
    model: EMHRNN,
    batch: Batch,
    z: Bool[np.ndarray, " words"],
    *,
    multi_label: bool = False,
    temperature: float = 1.0,
    chosen: Int64[Tensor, " documents"] | None = None,
) -> BatchEffects:
    """With what words do to their neighbours. Costs about two predictions more."""
    x = model.embedding(torch.from_numpy(batch.words))
    passes = [
        layer_pass(layer, x, pack(batch.sentence_offsets, reverse=reverse))
        for layer, reverse in zip(model.word_directions(), (False, True), strict=False)
    ]
    h1 = torch.cat([done.h for done in passes], dim=1)
    states = model.word_states(batch, h1)
    return encode_with_effects(
        model, batch, states, z, multi_label=multi_label, temperature=temperature, chosen=chosen, context=passes
    )[1]


def gradient_effects(
    model: nn.Module,
    batch: Batch,
    *,
    multi_label: bool = False,
    temperature: float = 1.0,
) -> tuple[Output, BatchEffects] | None:
    """The output of any model, and first-order effects from one backward pass: gradient x vector of each word, summed
    over the words of a phrase and of a sentence. None for a model without word vectors."""
    vectors: list[Tensor] = []

    def keep(module: nn.Module, arguments: object, x: Tensor) -> Tensor:
        vectors.append(x.detach().requires_grad_())
        return vectors[-1]

    hooks = [part.register_forward_hook(keep) for part in model.modules() if isinstance(part, WordInputs)]
    with torch.enable_grad():
        try:
            output: Output = model(batch)
        finally:
            for hook in hooks:
                hook.remove()
        if not vectors:
            return None
        chosen = output.logits.argmax(dim=1)
        odds = log_odds(output.logits, chosen, multi_label=multi_label, temperature=temperature)
        slopes = torch.autograd.grad(odds.sum(), vectors)
    words = torch.stack([(g * x.detach()).sum(dim=1) for g, x in zip(slopes, vectors, strict=True)]).sum(dim=0)
    words_of, _ = _offsets(batch, batch.sentence_final if output.z is None else output.z)
    phrases = torch.segment_reduce(words, "sum", offsets=words_of)
    sentences = torch.segment_reduce(words, "sum", offsets=torch.from_numpy(batch.sentence_offsets))
    return output.detach(), _effects(chosen, words, phrases, sentences)


def _effects(chosen: Int64[Tensor, " documents"], *levels: Float[Tensor, "..."]) -> BatchEffects:
    words, phrases, sentences = (level.numpy().astype(np.float64) for level in levels)
    return BatchEffects(chosen.numpy(), words, phrases, sentences)


def _heard(
    model: EMHRNN,
    states: WordStates,
    words_of: Int64[Tensor, " phrases_plus_1"],
    g_q: Float[Tensor, "phrases word_features"],
    context: Sequence[LayerPass],
) -> tuple[Float[Tensor, " words"], Float[Tensor, " phrases"]]:
    """What the word states of each word, and of each phrase as a whole, hand on."""
    h1 = states.h1.detach().requires_grad_()
    with torch.enable_grad():
        q, _ = attend(h1, model.word_attention.scores(h1), words_of)
    (g_h1,) = torch.autograd.grad(q, h1, g_q)
    by_words, by_phrases = h1.new_zeros(len(h1)), h1.new_zeros(len(g_q))
    for done, g in zip(context, g_h1.chunk(len(context), dim=1), strict=True):
        slopes = done.state_slopes(g)
        by_words += _handed_on(done, slopes)
        by_phrases += _handed_on(done, slopes, words_of)
    return by_words, by_phrases


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
    return row_dots(h, torch.arange(len(h)), g, segment) - (pooled * g).sum(1)[segment]


def _handed_on(
    done: LayerPass,
    slopes: Sequence[Float[Tensor, "n H"]],
    offsets: Int64[Tensor, " m_plus_1"] | None = None,
) -> Float[Tensor, " m"]:
    """What changes in the rows behind each row when they go on from the state before it; or behind each segment of
    rows, when they go on from the state before the segment. At the start of a sequence that state is zero."""
    total = slopes[0].new_zeros(len(slopes[0]) if offsets is None else len(offsets) - 1)
    for slope, state in zip(slopes, done.states, strict=True):
        before = _before(done.packing, state)
        if offsets is not None:
            ends = offsets[:-1], offsets[1:] - 1
            last, first = ends if done.packing.reverse else ends[::-1]
            slope, state, before = slope[last], state[last], before[first]
        total += torch.linalg.vecdot(slope, state - before)
    return total


def _before(packing: Packing, state: Float[Tensor, "n H"]) -> Float[Tensor, "n H"]:
    """The state that each row went on from; zero at the start of a sequence."""
    before = torch.zeros_like(state)
    begins, ends = packing.offsets[:-1], packing.offsets[1:]
    some = begins < ends
    if packing.reverse:
        before[:-1] = state[1:]
        before[ends[some] - 1] = 0
    else:
        before[1:] = state[:-1]
        before[begins[some]] = 0
    return before
