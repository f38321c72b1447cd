"""Sessions of the Claude program under its own ids: brought in when they are asked for, gone on with, renamed, deleted."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.backends.script.script import Emit, Say, Step
from palaver.context.handover import mark
from palaver.history.programs.places import Places
from palaver.schema.events import AnswerFinished, AnswerStarted, TextFinished
from tests.flows.at_work import Work
from tests.flows.engine import engine
from tests.flows.faces.inbox.client import TOKENS, with_tokens
from tests.flows.faces.stream.client import history, session_of, text_of, whole
from tests.flows.served import http_client, serving
from tests.unit.history.programs.lines import SAMPLES

pytestmark = pytest.mark.anyio

CLAUDE = "8d2f3c1e-6a0b-4c57-9b1d-2f6f0a7c1e11"


def laid(folder: Path, name: str = f"{CLAUDE}.jsonl") -> Path:
    """A session of the program, in the home that the server's user has."""
    harbour, place = folder / "home" / "harbour", folder / "home/.claude/projects/-home-ada-harbour" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    harbour.mkdir(exist_ok=True)
    place.write_text((SAMPLES / "claude.jsonl").read_text().replace("/home/ada/harbour", str(harbour)))
    return harbour


async def listed(work: Work) -> list[dict[str, Any]]:
    return list((await work.server.http.get("/api/chat/sessions/list")).json()["sessions"])


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [block["content"] for message in messages for block in message["blocks"] if block["type"] == "text"]


async def test_session_of_the_program_is_brought_in_when_it_is_first_asked_for(tmp_path: Path) -> None:
    harbour = laid(tmp_path)
    async with engine(tmp_path) as work:
        assert await listed(work) == []
        said = await history(work.server, CLAUDE)
        assert texts(said)[0].startswith("Look at the notes, please.")
        assert {block["type"] for message in said for block in message["blocks"]} >= {"text", "thinking", "tool"}
        (row,) = await listed(work)
        # Asked for again, and imported by the command's own route, it is the same.
        assert await history(work.server, CLAUDE) == said == await history(work.server, row["id"])
        again = await work.server.http.post("/api/import/claude")
        assert '"known"' in again.text
        assert len(await listed(work)) == 1
        assert (await work.server.state(row["id"]))["project"] == str(harbour)


async def test_session_of_the_program_is_gone_on_with_renamed_and_deleted_under_its_id(tmp_path: Path) -> None:
    laid(tmp_path)
    async with engine(tmp_path) as work:
        http = work.server.http
        told = await whole(work.server, message="!say Still here.", sessionId=CLAUDE, agentId="default")
        assert text_of(told) == "Still here."
        (row,) = await listed(work)
        assert session_of(told) == row["id"]
        assert texts(await history(work.server, CLAUDE))[-2:] == ["!say Still here.", "Still here."]
        renamed = await http.put("/api/chat/sessions/update", json={"sessionId": CLAUDE, "title": "Notes"})
        assert (renamed.json()["id"], renamed.json()["title"]) == (row["id"], "Notes")
        saved = await http.post("/api/chat/sessions/save", json={"id": CLAUDE, "title": "More notes"})
        assert (saved.json()["id"], saved.json()["title"]) == (row["id"], "More notes")
        async with http.stream("GET", "/api/chat/stream", params={"sessionId": CLAUDE}) as stream:
            assert stream.status_code == 200
        assert (await http.post("/api/chat/sessions/delete", json={"id": CLAUDE})).status_code == 200
        assert await listed(work) == []
        # What was deleted here does not come back because the program still has it.
        assert await history(work.server, CLAUDE) == []
        assert (await http.post("/api/chat", json={"message": "Again", "sessionId": CLAUDE})).status_code == 410


async def test_only_an_owner_brings_sessions_in_and_no_id_leads_out_of_the_folder(tmp_path: Path) -> None:
    laid(tmp_path)
    laid(tmp_path, "agent-1.jsonl")
    outside = tmp_path / "home/.claude/outside.jsonl"
    outside.write_bytes((tmp_path / "home/.claude/projects/-home-ada-harbour" / f"{CLAUDE}.jsonl").read_bytes())
    link = tmp_path / "home/.claude/projects/-home-ada-harbour/linked.jsonl"
    link.symlink_to(outside)
    with_tokens(tmp_path / "data")
    async with engine(tmp_path) as work:
        for kind in ("human", "observer"):
            async with http_client(work.server.url, {"Authorization": f"Bearer {TOKENS[kind]}"}) as lesser:
                answer = await lesser.get(f"/api/chat/sessions/history/{CLAUDE}")
                assert (answer.status_code, answer.json()["messages"]) == (200, [])
        for strange in ("..%2Foutside", "outside", "linked", "agent-1", "%2e%2e", "x" * 129):
            answer = await work.server.http.get(f"/api/chat/sessions/history/{strange}")
            assert answer.status_code == 404 or answer.json()["messages"] == [], strange
        assert await listed(work) == []


async def test_session_that_was_driven_from_here_leads_to_its_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, now = "0b1c2d3e-aaaa-4bbb-8ccc-123456789abc", datetime.now(UTC).isoformat()
    line = {
        "type": "user",
        "uuid": "u1",
        "sessionId": session,
        "timestamp": now,
        "cwd": str(tmp_path),
        "entrypoint": "palaver",
        "message": {"role": "user", "content": "Hello"},
    }
    place = tmp_path / "claude/projects/-tmp" / f"{session}.jsonl"
    place.parent.mkdir(parents=True)
    place.write_bytes(msgspec.json.encode(line) + b"\n")
    monkeypatch.setattr("palaver.app.places_of", lambda _: Places(claude=tmp_path / "claude"))
    script: list[Step] = [
        Emit(AnswerStarted(message="one")),
        Emit(TextFinished(message="one", block=0, text="Hello.")),
        Emit(AnswerFinished(message="one", finish_reason="stop", provider=mark("claude", session))),
    ]
    async with serving(tmp_path / "data", lambda prompt: script if prompt.text == "Hello" else [Say("Hm.")]) as server:
        driven = session_of(await whole(server, message="Hello"))
        other = await server.create(message="Somebody else's")
        await server.settled(other)
        assert texts(await history(server, session)) == ["Hello", "Hello."]
        assert session_of(await whole(server, message="Once more", sessionId=session)) == driven
