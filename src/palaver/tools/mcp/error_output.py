"""Rate-limited log of what an MCP server makes us log: its standard error, and whatever it says that is no message.

The one way for words of a server into the journal, held by its connection and fed by `stdio.py` too. A server is somebody else's
program: it may write for ever, without line ends, and its own keys. A line is cut, redacted, and logged while there is room for
it in its minute; the rest is counted and said in one line.
"""

import time
from collections.abc import Callable

from palaver.journal import Journal
from palaver.tools.redact import Redactor

LINE_BYTES = 16 * 1024
"""Kept of one line. Much more than is logged, so that no secret is cut in the part that is."""
LOGGED_CHARS = 1000
"""Of one line, in the log."""
LINES_A_MINUTE = 60
"""Enough for a start that fails with a traceback; a log that takes more is full of one server."""
WINDOW_S = 60.0

logger = Journal(__name__)


class ErrorOutput:
    def __init__(self, server: str, redactor: Redactor, now: Callable[[], float] = time.monotonic) -> None:
        self._server = server
        self._redactor = redactor
        self._now = now
        self._line = bytearray()
        self._window_s = now()
        self._logged = 0
        self._left_out = 0

    def take(self, chunk: bytes) -> None:
        first, *others = chunk.split(b"\n")
        self._extend(first)
        for part in others:
            self._end_line()
            self._extend(part)

    def refuse(self, line: bytes) -> None:
        """A line that should have been a message."""
        self._log("an MCP server sent what is no message", line[:LINE_BYTES])

    def say(self, message: str, text: str) -> None:
        """Something about the server, in words that may be its own."""
        self._log(message, text[:LINE_BYTES].encode(errors="replace"))

    def close(self) -> None:
        """The server has ended: what it said last counts, finished or not."""
        self._end_line()
        self._say_left_out()

    def _extend(self, part: bytes) -> None:
        self._line += part[: LINE_BYTES - len(self._line)]

    def _end_line(self) -> None:
        line, self._line = bytes(self._line), bytearray()
        if line.strip():
            self._log("an MCP server says", line)

    def _log(self, message: str, line: bytes) -> None:
        now_s = self._now()
        if now_s - self._window_s >= WINDOW_S:
            self._say_left_out()
            self._window_s, self._logged = now_s, 0
        if self._logged >= LINES_A_MINUTE:
            self._left_out += 1
            return
        self._logged += 1
        text = self._redactor.redact(line.decode(errors="replace"))
        shown = text if len(text) <= LOGGED_CHARS else f"{text[:LOGGED_CHARS]} …"
        logger.info(message, server=self._server, text=shown)

    def _say_left_out(self) -> None:
        if self._left_out:
            logger.warning(
                "an MCP server said too much; lines were left out", server=self._server, lines=self._left_out
            )
            self._left_out = 0
