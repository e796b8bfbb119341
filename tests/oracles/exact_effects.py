"""What a part says for a class against the others, as it is defined."""

import numpy as np


def support(said: np.ndarray, chosen: int, multi_label: bool) -> float:
    """What a part says for the chosen class, less the mean of the others (classes,)."""
    if multi_label or len(said) == 1:
        return float(said[chosen])
    return float(said[chosen]) - float(np.delete(said, chosen).mean())
