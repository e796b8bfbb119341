"""How a reviewer comes to give stars: opinions of aspects, weighted by how much each matters.

    s ~ uniform {1..5}
    o_1..o_n ~ profile(s), each in {-2 .. +2}, some with weight 2
    score = weighted mean of the opinions, drawn again until it lies in the band of s: s is a function of the score
    label = s, or with probability NOISE a neighbour of s

The bands do not touch, so a reader who understands every opinion is right in all reviews but the noisy ones.
"""

from random import Random
from typing import NamedTuple

NOISE = 0.02  # share of reviewers whose stars are one off
DOUBLE = 0.2  # share of opinions that count double

VALUES = (2, 1, 0, -1, -2)
PROFILES = {  # cumulative weights of VALUES, out of 100
    5: (82, 96, 97, 99, 100),
    4: (26, 80, 90, 97, 100),
    3: (18, 38, 62, 82, 100),
    2: (3, 10, 20, 74, 100),
    1: (1, 3, 4, 18, 100),
}
BANDS = {5: (1.5, 2.0), 4: (0.65, 1.15), 3: (-0.25, 0.25), 2: (-1.15, -0.65), 1: (-2.0, -1.5)}


class Opinion(NamedTuple):
    """What the reviewer thinks of one aspect, -2 to 2, and how much it counts."""

    value: int
    weight: int


def score(opinions: list[Opinion]) -> float:
    """The weighted mean: -2 if all is awful, 2 if all is great."""
    return sum([value * weight for value, weight in opinions]) / sum([weight for _, weight in opinions])


def draw_opinions(stars: int, rng: Random) -> list[Opinion]:
    """Three to six opinions whose score lies in the band of the stars."""
    low, high = BANDS[stars]
    while True:
        values = rng.choices(VALUES, cum_weights=PROFILES[stars], k=3 + int(rng.random() * 4))
        opinions = [Opinion(value, 2 if rng.random() < DOUBLE else 1) for value in values]
        if low <= score(opinions) <= high:
            return opinions


def draw_label(stars: int, rng: Random) -> str:
    """The stars as given: now and then one more or one less than the opinions deserve."""
    if rng.random() < NOISE:
        stars += 1 if stars == 1 or (stars < 5 and rng.random() < 0.5) else -1
    return str(stars)
