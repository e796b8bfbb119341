"""Some learned rows in an input that is otherwise frozen, such as the vector of unknown words among pretrained ones.

If the whole input carried a gradient, a recurrent layer would pay a matrix product over all words for the sake of a
few.
"""

from typing import NamedTuple

from jaxtyping import Float, Int64
from torch import Tensor


class LearnedRows(NamedTuple):
    """Rows of x that have a gradient although x itself has none; x must hold their values already."""

    rows: Int64[Tensor, " k"]
    vectors: Float[Tensor, "k D"]
