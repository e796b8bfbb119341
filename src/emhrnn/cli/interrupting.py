"""Ctrl-C while modules are imported waits until they are. In the middle of an import, libraries swallow it, or are left
half loaded and fail later with errors of their own."""

import os
import signal
import threading
from types import FrameType

PAUSE = 0.05  # seconds until it is tried again
IMPORT = "<frozen importlib._bootstrap>"


def interrupt_after_imports() -> None:
    """Where Ctrl-C is ignored, as in background jobs of a shell, or handled otherwise, it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if not _importing(frame):
        signal.default_int_handler(number, frame)
    again = threading.Timer(PAUSE, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == IMPORT:
            return True
        frame = frame.f_back
    return False
