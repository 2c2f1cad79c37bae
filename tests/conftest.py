"""What all tests start from."""

import signal

import pytest


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """A shell may start the tests in the background with Ctrl-C switched off; here every test hears it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
