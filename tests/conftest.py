"""A test run that was started in the background ignores Ctrl-C, and so would every process under test."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
