"""For every test: programs that tests start are as interruptible as from a terminal.

A run that a shell put into the background ignores the interrupt key, and everything it starts would inherit that.
"""

import signal

pytest_plugins = ["tests.workers"]

for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)
