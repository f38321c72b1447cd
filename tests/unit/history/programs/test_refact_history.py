"""What a trajectory of Refact says."""

from typing import Any

import msgspec
import pytest

from palaver.errors import Invalid
from palaver.history.parts import decode_document
from palaver.history.programs import refact
from tests.unit.history.programs.lines import texts, tools


def document(**fields: Any) -> bytes:
    messages = [
        {"role": "system", "content": "You mend nets."},
        {"role": "user", "content": "mend the net"},
        17,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c", "function": {"name": "cat", "arguments": '{"path": "net"}'}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "holes"},
        {"role": "assistant", "content": "mended"},
    ]
    times = {"created_at": "2026-05-01T10:00:00Z", "updated_at": "2026-05-01T11:00:00Z"}
    return msgspec.json.encode({"id": "r1", "title": "Nets", "messages": messages, **times, **fields})


def test_trajectory_is_told_with_the_times_of_its_document() -> None:
    found = refact.read(decode_document(document()), "/home/ada/harbour")

    assert (found.session, found.title, found.project) == ("r1", "Nets", "/home/ada/harbour")
    assert texts(found)[1:] == [("user", "mend the net"), ("assistant", "mended")]
    assert [(tool.name, tool.output) for tool in tools(found)] == [("cat", "holes")]
    assert found.messages[-1].ts - found.messages[0].ts == 3_600_000
    assert found.skipped_lines == 1


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"messages": 1}', b"\xff"])
def test_document_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(Invalid):
        refact.read(decode_document(data))


def test_trajectory_of_a_subagent_says_so() -> None:
    assert refact.read(decode_document(document(link_type="subagent"))).of_another
