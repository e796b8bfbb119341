"""Posteriors by brute force: every configuration of every block written out and encoded by the oracle."""

import itertools
import math

import torch

from emhrnn.corpus.batch import Batch
from tests.oracles import em_hrnn


def settings(z, positions):
    """All ways to set z at the positions: (bits, z) pairs, in the order of configurations (slot 0 is bit 0)."""
    for backwards in itertools.product([False, True], repeat=len(positions)):
        bits = backwards[::-1]
        setting = z.copy()
        setting[positions] = bits
        yield bits, setting


def log_joint(model, batch: Batch, z, positions, document: int) -> dict[tuple[bool, ...], float]:
    """log p(y, z_B | zhat_-B, w) of every setting of the block."""
    states = model.words(batch)
    pi = torch.sigmoid(states.a).tolist()
    joint = {}
    for bits, setting in settings(z, positions):
        log_prior = sum(math.log(pi[t] if bit else 1 - pi[t]) for t, bit in zip(positions, bits, strict=True))
        joint[bits] = log_prior + em_hrnn.log_p(model, batch, setting, document).item()
    return joint


def free_positions(batch: Batch, document: int) -> list[int]:
    begin, end = batch.word_offsets[document], batch.word_offsets[document + 1]
    return [t for t in range(begin, end) if not batch.sentence_final[t]]


def posterior(joint: dict[tuple[bool, ...], float]) -> tuple[dict[tuple[bool, ...], float], float]:
    """Normalised responsibilities and log-evidence."""
    highest = max(joint.values())
    evidence = highest + math.log(sum(math.exp(value - highest) for value in joint.values()))
    return {bits: math.exp(value - evidence) for bits, value in joint.items()}, evidence
