"""The journal: what the server tells whoever runs it, one line at a time, each an event and its facts.

Every module that has something to tell holds a `Journal` of its own; `write_journal` says once a program where the lines go.
It is the standard library's logging underneath, so that what libraries say stands among our own lines. A traceback shows no
local variables: they may hold a key. It is no record of conversations; that is the log.

Telling never raises, whatever a fact is and whoever reads: what is told about must not fail for it. That it does not block
either is `nonblocking_output.py`'s part.
"""

import logging
import sys
import time
from contextlib import suppress

_COLOURS = {"debug": "32", "info": "32", "warning": "33", "error": "31", "critical": "31"}
_EVENT_COLUMNS = 30
"""Facts begin below each other where the event before them is no longer than most are."""


LINE_CHARS = 64 << 10
"""Of a line, or of a traceback. Longer than any that a person reads."""


class Journal:
    def __init__(self, name: str) -> None:
        """`name` is the module's own."""
        self._logger = logging.getLogger(name)

    def debug(self, event: str, /, **facts: object) -> None:
        self._tell(logging.DEBUG, event, facts)

    def info(self, event: str, /, **facts: object) -> None:
        self._tell(logging.INFO, event, facts)

    def warning(self, event: str, /, **facts: object) -> None:
        self._tell(logging.WARNING, event, facts)

    def error(self, event: str, /, exc_info: BaseException | None = None, **facts: object) -> None:
        self._tell(logging.ERROR, event, facts, exc_info)

    def exception(self, event: str, /, **facts: object) -> None:
        """An error, with the traceback of the exception that is being handled."""
        self._tell(logging.ERROR, event, facts, sys.exception())

    def _tell(self, level: int, event: str, facts: dict[str, object], cause: BaseException | None = None) -> None:
        if self._logger.isEnabledFor(level):
            # Others may have handlers of their own on these loggers.
            with suppress(Exception):
                self._logger.log(level, event, exc_info=cause, extra={"facts": facts})


def write_journal() -> None:
    """To standard error, for people: our own lines from `info` on, those of libraries only when there is trouble."""
    handler = _ToStandardError()
    handler.setFormatter(_Lines(coloured=sys.stderr.isatty()))
    root = logging.getLogger()
    root.handlers[:] = [*(one for one in root.handlers if not isinstance(one, _ToStandardError)), handler]
    logging.getLogger("palaver").setLevel(logging.INFO)


class _ToStandardError(logging.Handler):
    """What standard error is at the moment: whoever runs a command inside another program may have put another in its place."""

    def emit(self, record: logging.LogRecord) -> None:
        # Nobody can be told that nobody can be told.
        with suppress(Exception):
            # One write a line: several processes may share it.
            sys.stderr.write(f"{self._line(record)}\n")
            sys.stderr.flush()

    def _line(self, record: logging.LogRecord) -> str:
        try:
            line = self.format(record)
        except Exception as failure:  # noqa: BLE001 - the border: whatever it is, telling does not raise
            # Its words do not fit its values, or the exception that it tells of cannot be shown.
            line = f"{record.levelname.lower()}: a line of {record.name} cannot be shown ({type(failure).__name__})"
        line = line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]} … ({len(line)} characters)"
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        return line.encode(encoding, "backslashreplace").decode(encoding)


class _Lines(logging.Formatter):
    def __init__(self, *, coloured: bool) -> None:
        super().__init__()
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        level = record.levelname.lower()
        shown = f"{level:<8}"
        if self._coloured:
            shown = f"\x1b[{_COLOURS.get(level, '0')}m{shown}\x1b[0m"
        # A library's line has its facts in its words, and a name that says whose it is.
        facts: dict[str, object] = getattr(record, "facts", {"logger": record.name})
        said = " ".join(f"{name}={_quote(value)}" for name, value in facts.items())
        at = time.strftime("%H:%M:%S", time.localtime(record.created))
        line = f"{at} [{shown}] {record.getMessage():<{_EVENT_COLUMNS}} {said}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _quote(value: object) -> str:
    """A word as it is; anything else quoted, so that no fact can look like a line or a fact of its own."""
    if isinstance(value, str) and value.isprintable() and value.split() == [value]:
        return value
    try:
        return repr(value)
    except Exception as failure:  # noqa: BLE001 - the border: a fact may be anything
        return f"<{type(value).__name__}: {type(failure).__name__}>"
