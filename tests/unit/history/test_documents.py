"""Reading a large JSON object piece by piece: the same values, wherever the pieces end, and torn ones refused in words."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.errors import Invalid, TooLarge
from palaver.history import documents
from palaver.history.documents import open_document

DOCUMENT: dict[str, Any] = {
    "id": "one",
    "messages": [
        {"role": "user", "content": 'brackets ]}"[{ and "quotes" and \\ at the end\\'},
        [],
        {},
        "text",
        -1.5e3,
        None,
        {"deep": [[{"a": ["]", "}"]}]]},
        "Überfahrt \N{SAILBOAT}",
    ],
    "title": "after the list",
    "empty": [],
    "count": 7,
}


def read(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        document = open_document(file)
        shown = document.get("messages")
        return {**document, "messages": list(shown)} if shown is not None and not isinstance(shown, str) else document


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 7, 64, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
def test_document_reads_the_same_wherever_its_pieces_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece_bytes: int, indent: int | None
) -> None:
    monkeypatch.setattr(documents, "PIECE_BYTES", piece_bytes)
    data = msgspec.json.encode(DOCUMENT)
    path = tmp_path / "document.json"
    path.write_bytes(b" \n" + (msgspec.json.format(data, indent=indent) if indent else data) + b"\n\t ")

    assert read(path) == DOCUMENT


def test_long_list_is_walked_as_often_as_it_is_wanted_and_from_any_place(tmp_path: Path) -> None:
    path = tmp_path / "document.json"
    path.write_bytes(msgspec.json.encode(DOCUMENT))

    with path.open("rb") as file:
        shown = open_document(file)["messages"]

        assert len(shown) == 8
        assert list(shown) == list(shown) == DOCUMENT["messages"]
        assert (shown[3], shown[-1], shown[1:3]) == ("text", "Überfahrt \N{SAILBOAT}", [[], {}])


def test_document_that_is_torn_anywhere_is_refused_in_words(tmp_path: Path) -> None:
    data = msgspec.json.encode(DOCUMENT)
    path = tmp_path / "document.json"

    for end in range(len(data)):
        path.write_bytes(data[:end])
        with pytest.raises(Invalid, match="not valid JSON"):
            read(path)


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"{}{}",
        b'{"a" 1}',
        b'{"a":1,}',
        b'{"a":}',
        b"{1:2}",
        b'{"messages":[1 2]}',
        b'{"messages":[1,]}',
        b'{"a":tru}',
    ],
)
def test_what_is_no_object_is_refused_in_words(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "document.json"
    path.write_bytes(data)

    with pytest.raises(Invalid, match="not valid JSON"):
        read(path)


def test_member_that_is_no_list_is_a_member_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "document.json"
    path.write_bytes(b'{"messages": "none"}')

    assert read(path) == {"messages": "none"}


@pytest.mark.parametrize("data", [b'{"messages":["%s"]}', b'{"a":["%s"]}', b'{"a":"%s"}', b'{"a":1%s}', b'{"%s":1}'])
def test_value_that_is_too_large_is_refused_with_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    monkeypatch.setattr(documents, "VALUE_BYTES", 1_000)
    monkeypatch.setattr(documents, "PIECE_BYTES", 100)
    path = tmp_path / "document.json"
    path.write_bytes(data % (b"1" * 2_000))

    with pytest.raises(TooLarge, match="MiB") as refused:
        read(path)

    assert refused.value.details == {"limit_bytes": 1_000}


def test_members_beside_the_list_are_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "FRAME_BYTES", 1_000)
    path = tmp_path / "document.json"
    path.write_bytes(msgspec.json.encode({str(number): "x" * 100 for number in range(20)}))

    with pytest.raises(TooLarge):
        read(path)
