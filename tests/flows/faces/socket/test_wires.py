"""One turn over both model wires: a client of the socket cannot tell an OpenAI-compatible model from an Anthropic-compatible."""

from pathlib import Path

import pytest

from tests.flows.engine import FREE, WIRES, engine
from tests.flows.faces.socket.client import Frame, events, of, subscribed, types

pytestmark = pytest.mark.anyio

ORDERS = """!say I look first.
!read notes.txt
!shell echo out; echo err >&2; exit 3
!tool nonsense {"a": 1}
!tool read {"pth": "notes.txt"}
---
!say Now I write.
!write made.txt hello
---
!say That is all."""
"""Text, a batch in which one call succeeds and three fail in their own ways, and two more answers."""


def alike(frames: list[Frame]) -> list[Frame]:
    """The frames with every id as the number in which it first came, and without what the clock says."""
    names: dict[str, str] = {}

    def named(value: str) -> str:
        return names.setdefault(value, f"id {len(names) + 1}")

    return [
        {
            name: (named(value) if name in ("responseId", "messageId", "callId") else value)
            for name, value in frame.items()
            if name not in ("sessionId", "id", "sequence", "timestamp")
        }
        for frame in frames
        # How a program's output is cut into pieces depends on the moment it is read.
        if frame["type"] != "tool_output_delta"
    ]


async def frames_of(wire: str, folder: Path) -> list[Frame]:
    async with engine(folder, wire) as work:
        (work.project / "notes.txt").write_text("one\ntwo\n")
        session = await work.server.create(project=str(work.project), params={"policy": FREE})
        async with subscribed(work.server, session) as one:
            await one.say("text_input", sessionId=session, text=ORDERS)
            live = [frame for frame in await one.until("text_done") if not frame["type"].startswith("session_")]
        replayed = await events(work.server, session)
    assert [frame for frame in replayed if frame["type"] != "user_message"] == live
    return live


async def test_same_turn_is_the_same_frames_from_both_model_wires(tmp_path_factory: pytest.TempPathFactory) -> None:
    folders = [tmp_path_factory.mktemp(wire) for wire in WIRES]
    first, second = [await frames_of(wire, folder) for wire, folder in zip(WIRES, folders, strict=True)]
    assert alike(first) == alike(second)
    assert of(first, "tool_output_delta")
    for frames in (first, second):
        by_call = {frame["callId"]: frame for frame in of(frames, "tool_result")}
        results = [by_call[frame["callId"]] for frame in of(frames, "tool_call_start")]
        assert [frame["ok"] for frame in results] == [True, False, False, False, True]
        assert [frame["error"]["code"] for frame in results[1:4]] == ["tool_error", "tool_error", "invalid_arguments"]
        assert all(("result" in frame) == frame["ok"] and ("error" in frame) != frame["ok"] for frame in results)
        assert len({frame["responseId"] for frame in frames if "responseId" in frame}) == 1
        blocks = [frame["text"] for frame in of(frames, "text_block_done")]
        assert blocks == ["I look first.", "Now I write.", "That is all."]
        assert (types(frames).count("text_done"), frames[-1]["text"]) == (1, "\n\n".join(blocks))
