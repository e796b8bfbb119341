"""Ctrl-C and SIGTERM as a wish that is granted at a good moment."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Wish:
    signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


@contextmanager
def signals_held(wanted: bool = True) -> Iterator[Wish]:
    """Within the block, if so wanted, the first Ctrl-C or SIGTERM only makes the wish true; the block should then come
    to its end. After it, the signal does what it would have done. A second one does so at once."""
    wish = Wish()
    held = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    held = {number: handler for number, handler in held.items() if handler not in (None, signal.SIG_IGN)}
    if not wanted or threading.current_thread() is not threading.main_thread():  # only there may handlers be set
        held = {}

    def release() -> None:
        for number, handler in held.items():
            signal.signal(number, handler)

    def hold(number: int, _: FrameType | None) -> None:
        if wish:
            release()
            signal.raise_signal(number)
        wish.signal = number

    for number in held:
        signal.signal(number, hold)
    try:
        yield wish
    finally:
        release()
    if wish.signal is not None:
        signal.raise_signal(wish.signal)
