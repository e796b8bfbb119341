"""Types of arrays with their shapes: `Float[np.ndarray, "words labels"]`. They are those of jaxtyping where it is
loaded already, as in the tests, which check them; else plain array types, since loading it takes 0.06 seconds.
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import Bool, Float, Float32, Float64, Int, Int32, Int64, Integer, Shaped, UInt8, UInt64
else:

    class Shaped:
        """An array type, whatever its shape and numbers."""

        def __class_getitem__(cls, described: tuple[Any, str]) -> Any:
            return described[0]

    Bool = Float = Float32 = Float64 = Int = Int32 = Int64 = Integer = UInt8 = UInt64 = Shaped

__all__ = ["Bool", "Float", "Float32", "Float64", "Int", "Int32", "Int64", "Integer", "Shaped", "UInt8", "UInt64"]
