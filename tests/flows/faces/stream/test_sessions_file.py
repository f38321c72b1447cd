"""`chat-sessions.jsonl` in the workspace: kept current where the setting asks for it, and read at an import."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from tests.flows.engine import engine
from tests.flows.faces.stream.client import history
from tests.flows.faces.stream.test_claude_sessions import CLAUDE, laid, listed
from tests.flows.served import LOOK_EVERY_S, WAIT_S, Served, serving

pytestmark = pytest.mark.anyio

Session = dict[str, Any]


async def lines(project: Path) -> list[bytes]:
    path = anyio.Path(project / "chat-sessions.jsonl")
    return (await path.read_bytes()).splitlines() if await path.exists() else []


def decoded(found: list[bytes]) -> dict[str, Session]:
    known = [msgspec.json.decode(line) for line in found if line.startswith(b"{")]
    return {one["id"]: one for one in known}


async def until(project: Path, fits: Callable[[dict[str, Session]], bool]) -> list[bytes]:
    """The lines, once the sessions on them are as wanted: the file is written a moment after the change."""
    async with asyncio.timeout(WAIT_S):
        while not fits(decoded(found := await lines(project))):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(LOOK_EVERY_S)
    return found


async def saved(server: Served) -> dict[str, Session]:
    sessions = (await server.http.get("/api/chat/sessions/list")).json()["sessions"]
    return {one["id"]: one for one in sessions}


async def test_file_is_current_and_keeps_what_others_wrote(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    other = b'{"id": "theirs", "title": "Not ours"}'
    (project / "chat-sessions.jsonl").write_bytes(b"no JSON\n" + other + b"\n")
    async with serving(tmp_path / "data", sessions_file=True) as server:
        first = await server.create(project=str(project), message="Which tide?")
        await server.settled(first)
        found = await until(project, lambda known: known.get(first, {}).get("messageCount") == 2)
        assert found[:2] == [b"no JSON", other]
        fields = ("id", "title", "messageCount", "agentId")
        row = (await saved(server))[first]
        assert [decoded(found)[first][name] for name in fields] == [row[name] for name in fields]
        assert set(decoded(found)[first]) == {*fields, "createdAt", "updatedAt"}
        # A field that another program added stays with its session.
        kept = {**decoded(found)[first], "pinned": True}
        (project / "chat-sessions.jsonl").write_bytes(b"no JSON\n" + other + b"\n" + msgspec.json.encode(kept) + b"\n")
        await server.command(first, type="update_conversation", title="Tides")
        found = await until(project, lambda known: known[first]["title"] == "Tides")
        assert (len(found), decoded(found)[first]["pinned"]) == (3, True)
        second = await server.create(project=str(project), title="Second")
        await until(project, lambda known: second in known)
        await server.command(first, type="delete_conversation")
        found = await until(project, lambda known: first not in known)
        assert list(decoded(found)) == ["theirs", second]
        assert found[0] == b"no JSON"
        assert [one.name for one in project.iterdir() if one.name.startswith(".chat")] == []
    async with serving(tmp_path / "data", sessions_file=True):
        pass
    assert await lines(project) == found


async def test_nothing_is_written_unless_it_is_wanted_nor_where_no_conversation_is(tmp_path: Path) -> None:
    project, linked, elsewhere = tmp_path / "project", tmp_path / "linked", tmp_path / "elsewhere"
    for folder in (project, linked, elsewhere):
        folder.mkdir()
    (elsewhere / "target").write_bytes(b"left alone\n")
    (linked / "chat-sessions.jsonl").symlink_to(elsewhere / "target")
    async with serving(tmp_path / "off") as server:
        await server.settled(await server.create(project=str(project), message="Hello"))
    assert await lines(project) == []
    async with serving(tmp_path / "data", sessions_file=True) as server:
        # Without a project it belongs to the folder of the server, which is its data here.
        await server.settled(await server.create(message="Hello"))
        await server.settled(await server.create(project=str(linked), message="Hello"))
        await server.settled(await server.create(project=str(project), message="Hello"))
        await until(project, lambda known: len(known) == 1)
    assert not (tmp_path / "data" / "chat-sessions.jsonl").exists()
    assert (elsewhere / "target").read_bytes() == b"left alone\n"
    assert (linked / "chat-sessions.jsonl").is_symlink()
    assert not (elsewhere / "chat-sessions.jsonl").exists()


@pytest.mark.parametrize("by", ["a link", "another project's link", "a link above"])
async def test_nothing_is_written_where_a_project_was_replaced_by_a_link(tmp_path: Path, by: str) -> None:
    """As a command of an agent could, which works in a folder around the project."""
    chosen, strange = tmp_path / "around" / "project", tmp_path / "strange"
    other = tmp_path / "other"
    for folder in (chosen, strange / "project", other):
        folder.mkdir(parents=True)
    async with serving(tmp_path / "data", sessions_file=True) as server:
        conversation = await server.create(project=str(chosen), message="Hello")
        await server.settled(conversation)
        await until(chosen, lambda known: conversation in known)
        moved = chosen.parent if by == "a link above" else chosen
        moved.rename(tmp_path / "away")
        moved.symlink_to(strange)
        if by == "another project's link":
            await server.create(project=str(other))
            (strange / "chat-sessions.jsonl").symlink_to(other / "chat-sessions.jsonl")
        await server.command(conversation, type="update_conversation", title="Renamed")
        # Projects are looked at in the order of their changes.
        await server.create(project=str(other), title="Last")
        await until(other, lambda known: "Last" in {session["title"] for session in known.values()})
    written = [path.name for path in strange.rglob("*") if path.is_file() and not path.is_symlink()]
    assert written == []
    assert "Renamed" not in (other / "chat-sessions.jsonl").read_text()


async def test_list_that_is_there_gives_titles_and_times_at_an_import(tmp_path: Path) -> None:
    harbour = laid(tmp_path)
    note = {
        "id": CLAUDE,
        "title": "The notes of the harbour",
        "createdAt": "2026-01-02T03:04:05.000Z",
        "updatedAt": "2026-12-01T00:00:00.000Z",
        "messageCount": 99,
    }
    (harbour / "chat-sessions.jsonl").write_bytes(b"broken\n" + msgspec.json.encode(note) + b"\n")
    async with engine(tmp_path) as work:
        assert await history(work.server, CLAUDE)
        (row,) = await listed(work)
    assert (row["title"], row["createdAt"], row["updatedAt"]) == (note["title"], note["createdAt"], note["updatedAt"])
    # And its line stays the line of the same session, under the id that it has there.
    async with serving(tmp_path / "data", sessions_file=True) as server:
        await server.command(row["id"], type="update_conversation", title="Renamed")
        found = await until(harbour, lambda known: known[CLAUDE]["title"] == "Renamed")
    assert (len(found), decoded(found)[CLAUDE]["messageCount"]) == (2, row["messageCount"])
