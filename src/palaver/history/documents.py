"""Incremental reader of one large JSON object: its members, and the elements of one long list in it, one after another.

Used for trajectories and for conversations that a client sends, whose `messages` may be longer than memory is wide. Only
finds where each value begins and ends; whoever decodes a value says what is wrong within it. Values are bounded in bytes.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any

import msgspec

from palaver.errors import Invalid, TooLarge
from palaver.history.lazy_sequence import LazySequence
from palaver.history.parts import Json, parse_json

PIECE_BYTES = 256 << 10
VALUE_BYTES = 32 << 20
"""Of one member, or one element of the list: a message with its pictures."""

FRAME_BYTES = 4 << 20
"""Of all members beside the long list, which are in memory together."""

_SPACE = re.compile(rb"[ \t\r\n]*+")
_IN_TEXT = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_BRACKET = re.compile(rb'["\[\]{}]')
_SCALAR = re.compile(rb"[^,\]} \t\r\n]*+")


@dataclass(frozen=True, slots=True)
class Value:
    """The JSON of a member as it stands there, or of an element of the long list."""

    name: str
    json: bytes
    is_element: bool = False


def read_values(descriptor: int, listed: str, first: int = 0, end: int | None = None) -> Iterator[Value]:
    """The values of the object in a file from `first` to `end`; the member `listed` by its elements, if it is a list.

    An empty value stands for the list itself, before its elements. Raises Invalid and TooLarge.
    """
    text = _Text(descriptor, first, end)
    if text.sign() != b"{":
        raise Invalid("This is not valid JSON: an object was expected.")
    text.skip()
    closed = text.sign() == b"}"
    while not closed:
        name = _name(text.value())
        text.expect(b":")
        if name == listed and text.sign() == b"[":
            yield Value(name, b"")
            yield from (Value(name, element, is_element=True) for element in _elements(text))
        else:
            yield Value(name, text.value())
        closed = text.is_closed(b"}")
    text.skip()
    if text.sign():
        raise text.problem("there is more after the object's end")


def open_document(file: IO[bytes], listed: str = "messages") -> Json:
    """The object in a file, of whose long list only one element is in memory at a time. The file has to stay open.

    All of it is looked at once, so that what is wrong in its middle is said before any of it is used. Raises Invalid and
    TooLarge.
    """
    document: Json = {}
    size_bytes = 0
    count: int | None = None
    for value in read_values(file.fileno(), listed):
        if value.is_element:
            parse_json(value.json)
            count = (count or 0) + 1
        elif value.json:
            size_bytes += len(value.json)
            if size_bytes > FRAME_BYTES:
                raise TooLarge(
                    f"The document has more than {FRAME_BYTES >> 20} MiB beside its `{listed}`.",
                    limit_bytes=FRAME_BYTES,
                )
            document[value.name] = parse_json(value.json)
        else:
            count = 0
    if count is not None:
        document[listed] = LazySequence(count, lambda skip: _walk(file.fileno(), listed, skip))
    return document


def _walk(descriptor: int, listed: str, skip: int) -> Iterator[Any]:
    elements = (value.json for value in read_values(descriptor, listed) if value.is_element)
    return (parse_json(element) for element in islice(elements, skip, None))


def _elements(text: "_Text") -> Iterator[bytes]:
    text.skip()
    closed = text.sign() == b"]"
    while not closed:
        yield text.value()
        closed = text.is_closed(b"]")
    text.skip()


def _name(value: bytes) -> str:
    try:
        return msgspec.json.decode(value, type=str)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Invalid(f"This is not valid JSON: {value[:40]!r} is no name of a member.") from None


class _Text:
    """The text from where it is read on; only the value under way is in memory."""

    def __init__(self, descriptor: int, first: int, end: int | None) -> None:
        self._descriptor = descriptor
        self._next = first
        self._end = end
        self._held = bytearray()
        self._at = 0

    def problem(self, what: str) -> Invalid:
        return Invalid(f"This is not valid JSON: {what} (byte {self._next - len(self._held) + self._at:,}).")

    def sign(self) -> bytes:
        """The next sign that is no space, which stays; empty at the end."""
        while True:
            found = _SPACE.match(self._held, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._held) or not self._more():
                return bytes(self._held[self._at : self._at + 1])

    def skip(self) -> None:
        self._at += 1

    def expect(self, sign: bytes) -> None:
        if (found := self.sign()) != sign:
            raise self.problem(f"{sign.decode()!r} was expected" if found else "the text breaks off")
        self.skip()

    def is_closed(self, bracket: bytes) -> bool:
        """After a value: whether the bracket comes, which stays, or a comma, which goes."""
        if self.sign() == bracket:
            return True
        self.expect(b",")
        return False

    def value(self) -> bytes:
        sign = self.sign()
        self._drop()
        if sign == b'"':
            self._pass_text()
        elif sign and sign in b"[{":
            self._pass_brackets()
        else:
            self._pass_scalar()
        return bytes(self._held[: self._at])

    def _pass_text(self) -> None:
        self._at += 1
        while True:
            found = _IN_TEXT.match(self._held, self._at)
            self._at = found.end() if found else self._at
            if self._held[self._at : self._at + 1] == b'"':
                self._at += 1
                return
            self._need_more()

    def _pass_brackets(self) -> None:
        depth = 0
        while True:
            found = _BRACKET.search(self._held, self._at)
            if found is None:
                self._at = len(self._held)
                self._need_more()
                continue
            self._at = found.start()
            sign = self._held[self._at]
            if sign == 0x22:
                self._pass_text()
                continue
            depth += 1 if sign in b"[{" else -1
            self._at += 1
            if not depth:
                return

    def _pass_scalar(self) -> None:
        while True:
            found = _SCALAR.match(self._held, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._held) or not self._more():
                break
        if not self._at:
            raise self.problem("a value was expected" if self._held else "the text breaks off")

    def _need_more(self) -> None:
        if not self._more():
            raise self.problem("the text breaks off")

    def _more(self) -> bool:
        if self._at > VALUE_BYTES:
            raise TooLarge(
                f"A value in this document has more than {VALUE_BYTES >> 20} MiB, which is no message.",
                limit_bytes=VALUE_BYTES,
            )
        wanted = PIECE_BYTES if self._end is None else min(PIECE_BYTES, self._end - self._next)
        piece = os.pread(self._descriptor, wanted, self._next) if wanted > 0 else b""
        self._held += piece
        self._next += len(piece)
        return bool(piece)

    def _drop(self) -> None:
        """What was read is let go of."""
        del self._held[: self._at]
        self._at = 0
