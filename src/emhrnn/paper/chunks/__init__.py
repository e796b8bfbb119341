"""Learned phrase ends beside a linguist's chunks: the table of `emhrnn paper chunks`."""
