"""Standard output and error that obey no escape sequence but our own colours, where they are a terminal.

Installed once by `main`, before any command: whatever a command prints (a title, a file name in an error, a traceback), no
control character and no bidi mark of somebody else's reaches the terminal. A pipe gets every byte as it is. `json_text` is the
same for JSON, where a hidden character has an escape of its own; `open_output` for what is written in bytes.
"""

import codecs
import re
import sys
from collections.abc import Iterable
from typing import IO, Any, Literal, Protocol, TextIO, cast

from palaver.core.text.visible import HIDDEN, sign

# Bold, dim, italic, underlined, and colours of letters: never concealed, and no colour of the ground that letters vanish in.
_COLOURS = re.compile(r"\x1b\[(?:(?:[0-4]|2[2-4]|3[1-79]|9[1-7]|38;5;\d{1,3})(?:;(?!m)|(?=m)))*m")
_OBEYED = re.compile(rf"{_COLOURS.pattern}|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Guarded:
    """A text stream that writes control characters as signs."""

    def __init__(self, stream: TextIO) -> None:
        self.raw = stream

    def write(self, text: str) -> int:
        self.raw.write(_OBEYED.sub(_keep_colour, text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def _keep_colour(found: re.Match[str]) -> str:
    return found[0] if len(found[0]) > 1 else sign(found[0])


def guard_streams() -> None:
    if sys.stdout.isatty():
        sys.stdout = cast(TextIO, Guarded(sys.stdout))
    if sys.stderr.isatty():
        sys.stderr = cast(TextIO, Guarded(sys.stderr))


def raw_stream(stream: TextIO) -> TextIO:
    """The terminal itself, for a progress bar that moves the cursor."""
    return stream.raw if isinstance(stream, Guarded) else stream


def json_text(encoded: bytes) -> str:
    """JSON as it is; for a terminal with every hidden character escaped, which means the same."""
    text = encoded.decode()
    return HIDDEN.sub(_escape, text) if sys.stdout.isatty() else text


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


class Output(Protocol):
    def write(self, piece: bytes, /) -> int: ...
    def writelines(self, lines: Iterable[bytes], /) -> None: ...
    def flush(self) -> None: ...


def open_output(form: Literal["json", "text"]) -> Output:
    """Standard output for bytes: exact in a pipe, made visible on a terminal."""
    return _Shown(form) if sys.stdout.isatty() else cast(IO[bytes], sys.stdout.buffer)


class _Shown:
    def __init__(self, form: Literal["json", "text"]) -> None:
        from palaver.client.safe_text import Scrubber

        self._scrubber = Scrubber() if form == "text" else None
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def write(self, piece: bytes) -> int:
        text = self._decoder.decode(piece)
        sys.stdout.write(self._scrubber.feed(text) if self._scrubber else HIDDEN.sub(_escape, text))
        return len(piece)

    def writelines(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if self._scrubber:
            sys.stdout.write(self._scrubber.finish())
        sys.stdout.flush()
