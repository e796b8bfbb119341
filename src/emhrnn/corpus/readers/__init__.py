"""Readers: every format becomes a stream of `Record`, whatever the files are; source.py chooses them."""
