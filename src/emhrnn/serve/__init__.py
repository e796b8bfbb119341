"""`emhrnn serve`: the viewer and its API."""

from emhrnn.serve.server import serve

__all__ = ["serve"]
