"""The keys that answer a request, and how they are said. Used by the docks, the inbox and the key help.

A request is answered with Alt and a digit, as on the page. Some terminals keep Alt for themselves, so each has a function key
that every terminal sends; so has the new line, which only few terminals can tell from Enter when Shift is held.
"""

from enum import Enum
from typing import Any, Literal, cast

from textual import _ansi_sequences
from textual.binding import Binding

Digit = Literal[1, 2, 3]

ALTERNATIVES: dict[Digit, str] = {1: "F7", 2: "F8", 3: "F9"}


class _Alt(Enum):
    ONE = "alt+1"
    TWO = "alt+2"
    THREE = "alt+3"
    ENTER = "alt+enter"


_SENT = {"\x1b1": _Alt.ONE, "\x1b2": _Alt.TWO, "\x1b3": _Alt.THREE, "\x1b\r": _Alt.ENTER, "\x1b\n": _Alt.ENTER}


def tell_alt_from_letters() -> None:
    """Alt with a digit, as most terminals send it, is that key and nothing else. Done once before keys are read.

    Textual 8.2.8 takes it for what a Mac's Option key would type (Alt+3 for a pound sign), and Alt+Enter for Enter; so
    typing a price could deny a request, and asking for a new line could send a message.
    """
    known = cast("dict[str, Any]", _ansi_sequences.ANSI_SEQUENCES_KEYS)
    known.update({sequence: (key,) for sequence, key in _SENT.items()})


ANSWER_BINDINGS = [
    Binding(f"alt+{digit},{key.lower()}", f"answer({digit})", show=False, priority=True)
    for digit, key in ALTERNATIVES.items()
]
"""For a screen with requests: it has `action_answer(digit)`, and passes the digit on to its `RequestDock`."""
