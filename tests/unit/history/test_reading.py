"""Which kind of file somebody wants to import is seen in the file itself."""

import msgspec
import pytest

from palaver.errors import Invalid
from palaver.history import markdown, page
from palaver.history.reading import Recorded, Told, read, recognised
from palaver.history.sessions import written
from palaver.history.trajectory import document_of
from palaver.schema.events import ConversationCreated, encode_event
from palaver.schema.view import Listing
from tests.unit.history.sample import everything

LOG = encode_event(ConversationCreated(seq=1, id="e", ts=1, conversation="c")) + b"\n"
FILES = {
    "jsonl": LOG,
    "trajectory": msgspec.json.format(msgspec.json.encode(document_of(everything())), indent=2),
    "html": "".join(page.written(everything())).encode(),
    "markdown": "".join(markdown.written(everything())).encode(),
}


@pytest.mark.parametrize("kind", FILES)
def test_file_is_recognised_by_its_content(kind: str) -> None:
    assert recognised(FILES[kind]) == kind
    assert recognised(b"\xef\xbb\xbf" + FILES[kind]) == kind if kind == "html" else True
    found = read(FILES[kind])
    assert isinstance(found, Recorded) if kind == "jsonl" else isinstance(found, Told) and len(found.messages) > 4


def test_list_of_conversations_is_told_from_a_conversation() -> None:
    row = Listing(id="c", title="T", agent="default", project=None, status="idle", created_at=1, updated_at=2, seq=3)

    with pytest.raises(Invalid, match="list of conversations"):
        recognised(b"".join(written([row])))


@pytest.mark.parametrize(
    "data", [b"", b"{", b"{}", b"[]", b"\x00\x01", b"\xff\xfe\x00", b"PK\x03\x04", b'{"a": 1}\n{"b": 2}', b"<html>"]
)
def test_file_that_holds_no_conversation_is_refused(data: bytes) -> None:
    with pytest.raises(Invalid):
        read(data)
