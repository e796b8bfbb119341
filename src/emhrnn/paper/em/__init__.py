"""EM over phrase boundaries: blocks -> configurations -> log p(y | Z) of all of them -> Posterior -> M-steps.

docs/em.md explains it. Training uses `STRATEGIES`, the E-steps by name; the parts are for those who build their own.
`SegmentPosterior` is the exact posterior, without blocks, of models in which every phrase has a score of its own.
"""

from emhrnn.paper.em.blocks import Blocks, exact_blocks, local_blocks, window_blocks
from emhrnn.paper.em.likelihood import configuration_likelihood
from emhrnn.paper.em.posterior import Posterior
from emhrnn.paper.em.semi_markov import SegmentPosterior
from emhrnn.paper.em.steps import STRATEGIES, EStep, e_step, m_step_pi, m_step_theta

__all__ = [
    "STRATEGIES",
    "Blocks",
    "EStep",
    "Posterior",
    "SegmentPosterior",
    "configuration_likelihood",
    "e_step",
    "exact_blocks",
    "local_blocks",
    "m_step_pi",
    "m_step_theta",
    "window_blocks",
]
