"""EM over phrase boundaries: blocks -> configurations -> log p(y | Z) of all of them -> Posterior -> M-steps.

docs/em.md explains it. Training uses `STRATEGIES` (steps.py), the E-steps by name. `SegmentPosterior` (semi_markov.py)
is the exact posterior, without blocks, of models in which every phrase has a score of its own.
"""
