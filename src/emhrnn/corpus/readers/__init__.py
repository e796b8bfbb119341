"""Readers: every format becomes a stream of `Record`, one file per format."""

from emhrnn.corpus.readers.source import Source

__all__ = ["Source"]
