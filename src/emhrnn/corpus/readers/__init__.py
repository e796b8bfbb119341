"""Readers: every format becomes a stream of `Record`, whatever the files are."""

from emhrnn.corpus.readers.source import Source

__all__ = ["Source"]
