"""Which kind of file somebody wants to import is seen in the file itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO

import msgspec
import pytest

from palaver.errors import Invalid
from palaver.history import markdown, page
from palaver.history.import_files import Recorded, Told, detect_format, read
from palaver.history.lazy_sequence import LazySequence
from palaver.history.sessions import write_listings
from palaver.history.trajectory import document_of, trajectory_of
from palaver.schema.events import ConversationCreated, encode_event
from palaver.schema.view import Listing
from tests.unit.history.sample import everything

LOG = encode_event(ConversationCreated(seq=1, id="e", ts=1, conversation="c")) + b"\n"
FILES = {
    "jsonl": LOG,
    "trajectory": msgspec.json.format(msgspec.json.encode(document_of(everything())), indent=2),
    "html": "".join(page.write_page(everything())).encode(),
    "markdown": "".join(markdown.write_document(everything())).encode(),
}


@contextmanager
def file_of(data: bytes) -> Iterator[IO[bytes]]:
    with TemporaryFile() as file:
        file.write(data)
        yield file


@pytest.mark.parametrize("kind", FILES)
def test_file_is_recognised_by_its_content(kind: str) -> None:
    with file_of(FILES[kind]) as file:
        assert detect_format(file) == kind
        found = read(file)
        assert isinstance(found, Recorded) if kind == "jsonl" else isinstance(found, Told) and len(found.messages) > 4
    with file_of(b"\xef\xbb\xbf" + FILES[kind]) as file:
        assert detect_format(file) == kind if kind == "html" else True


def test_log_and_trajectory_are_read_anew_whenever_they_are_walked() -> None:
    with file_of(LOG) as log, file_of(FILES["trajectory"]) as trajectory:
        recorded, told = read(log), read(trajectory)

        assert isinstance(recorded, Recorded)
        assert isinstance(told, Told)
        assert isinstance(recorded.events, LazySequence)
        assert isinstance(told.messages, LazySequence)
        assert [event["id"] for event in recorded.events] == [event["id"] for event in recorded.events] == ["e"]
        assert tuple(told.messages) == trajectory_of(msgspec.json.decode(FILES["trajectory"])).messages


def test_list_of_conversations_is_told_from_a_conversation() -> None:
    row = Listing(id="c", title="T", agent="default", project=None, status="idle", created_at=1, updated_at=2, seq=3)

    with file_of(b"".join(write_listings([row]))) as file, pytest.raises(Invalid, match="list of conversations"):
        detect_format(file)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"{}", b"[]", b"\x00\x01", b"\xff\xfe\x00", b"PK\x03\x04", b'{"a": 1}\n{"b": 2}', b"<html>"]
)
def test_file_that_holds_no_conversation_is_refused(data: bytes) -> None:
    with file_of(data) as file, pytest.raises(Invalid):
        read(file)
