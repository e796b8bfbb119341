"""`emhrnn serve`: the viewer and its API."""

from emhrnn.products.serve.server import serve

__all__ = ["serve"]
