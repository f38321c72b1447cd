"""Conversations of other programs as JSON lines, the form in which a client sends them: written and read one message at a time.

Written by `palaver import`, read by the import route. Each line is a `ForeignConversation`. What is read stays in its file,
of which only places are known here.
"""

from collections.abc import Iterator
from itertools import islice
from typing import IO

import msgspec
from msgspec.structs import asdict

from palaver.errors import Invalid, PalaverError, TooLarge
from palaver.history.documents import read_values
from palaver.history.lazy_sequence import LazySequence
from palaver.history.programs.foreign import ForeignConversation
from palaver.schema.view import Message

CONVERSATIONS_AT_ONCE = 500
PIECE_BYTES = 1 << 20
LIST = "messages"

_FRAME = frozenset(ForeignConversation.__struct_fields__) - {LIST}
_frame = msgspec.json.Decoder(ForeignConversation)
_message = msgspec.json.Decoder(Message)


def write_conversation(conversation: ForeignConversation) -> Iterator[bytes]:
    """The pieces of its line."""
    frame = msgspec.json.encode({name: value for name, value in asdict(conversation).items() if name != LIST})
    yield frame[:-1] + b',"messages":['
    for place, message in enumerate(conversation.messages):
        yield (b"," if place else b"") + msgspec.json.encode(message)
    yield b"]}\n"


def read_conversations(file: IO[bytes]) -> list[ForeignConversation]:
    """All of it is looked at; the messages are read again when they are wanted, from the file, which has to stay open.

    Raises Invalid, naming the line, and TooLarge.
    """
    lines = list(islice(_lines(file), CONVERSATIONS_AT_ONCE + 1))
    if len(lines) > CONVERSATIONS_AT_ONCE:
        raise TooLarge(f"At most {CONVERSATIONS_AT_ONCE} conversations at once.", limit=CONVERSATIONS_AT_ONCE)
    return [_Line(file, number, first, end).read() for number, (first, end) in enumerate(lines, 1)]


def _lines(file: IO[bytes]) -> Iterator[tuple[int, int]]:
    """Where each line that says something begins and ends."""
    file.seek(0)
    first = at = 0
    says_something = False
    while piece := file.read(PIECE_BYTES):
        rest = 0
        while (end := piece.find(b"\n", rest)) >= 0:
            if says_something or piece[rest:end].strip():
                yield first, at + end
            first, rest, says_something = at + end + 1, end + 1, False
        says_something = says_something or bool(piece[rest:].strip())
        at += len(piece)
    if says_something:
        yield first, at


class _Line:
    def __init__(self, file: IO[bytes], number: int, first: int, end: int) -> None:
        self._file = file
        self._number = number
        self._first = first
        self._end = end

    def read(self) -> ForeignConversation:
        try:
            return self._read()
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            raise self._invalid(str(problem)) from None
        except TooLarge:
            raise
        except PalaverError as problem:
            raise self._invalid(problem.message) from None

    def _read(self) -> ForeignConversation:
        frame: dict[str, msgspec.Raw] = {}
        count = 0
        for value in read_values(self._file.fileno(), LIST, self._first, self._end):
            if value.is_element:
                _message.decode(value.json)
                count += 1
            elif value.name in _FRAME or value.name == LIST:
                frame[value.name] = msgspec.Raw(value.json or b"[]")
        conversation = _frame.decode(msgspec.json.encode(frame))
        return msgspec.structs.replace(conversation, messages=LazySequence(count, self._walk))

    def _walk(self, skip: int) -> Iterator[Message]:
        values = read_values(self._file.fileno(), LIST, self._first, self._end)
        elements = (value.json for value in values if value.is_element)
        return (_message.decode(element) for element in islice(elements, skip, None))

    def _invalid(self, problem: str) -> Invalid:
        return Invalid(f"Line {self._number} is no conversation: {problem}", line=self._number)
