"""What holds for all tests."""

import signal

from hypothesis import settings

settings.register_profile("no clock", deadline=None)  # no test fails because the machine is busy
settings.load_profile("no clock")

# A test run that was started in the background ignores Ctrl-C, and so would every process under test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
