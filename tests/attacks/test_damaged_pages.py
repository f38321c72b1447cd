"""One page of a store overwritten, whatever it belongs to: the server starts, and all conversations but the page's own go on.

A store with many conversations is made once. Each test takes a copy, finds a page of a table or an index by its place in the
tree (`dbstat`), overwrites it and starts a real server there.
"""

import asyncio
import shutil
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import apsw
import httpx
import pytest

from palaver.conversation.index_rows import claims_of, documents_of, listing_of, runs_of
from palaver.conversation.recovery.load import snapshot_of
from palaver.core.fold.evolve import fold
from palaver.log.base import Append
from palaver.log.sqlite.inspect import verify_directory
from palaver.log.sqlite.page_carver import PAGE_BYTES
from palaver.log.sqlite.store import SqliteLog, open_sqlite_log
from palaver.schema.events import encode_event
from palaver.schema.view import State
from tests.attacks.test_damaged_store import events_of, quiet
from tests.flows.served import Served, serving

pytestmark = pytest.mark.anyio

NAMES = [f"talk-{number:06}" for number in range(240)]
EVENTS = 17
"""Of each conversation: its beginning and two turns."""
LONG_CHARS = 9_000
"""A text that needs pages of its own."""
AT_ONCE = 16
"""Requests side by side."""

EVENT_PAGES = [("segments", "leaf"), ("segments", "overflow")]
"""What cannot be derived from anything."""
DERIVED = [
    *(("listings", "leaf"), ("listings", "internal"), ("listings_newest", "leaf"), ("listings_newest", "internal")),
    *(("listings_changed", "leaf"), ("listings_waiting", "leaf"), ("listings_unfinished", "leaf")),
    *(("listings_root", "leaf"), ("listings_deleted", "leaf")),
    *(("conversations", "leaf"), ("conversations", "internal")),
    *(("sqlite_autoindex_conversations_1", "leaf"), ("sqlite_autoindex_conversations_1", "internal")),
    *(
        ("segments", "internal"),
        ("segments_last", "leaf"),
        ("segments_last", "internal"),
        ("segments_compacted", "leaf"),
    ),
    *(("claims", "leaf"), ("claims", "internal"), ("snapshots", "leaf"), ("snapshots", "internal")),
    *(("messages", "leaf"), ("messages", "internal"), ("sqlite_autoindex_messages_1", "leaf")),
    *(("documents", "leaf"), ("documents", "internal"), ("documents_message", "leaf")),
    *(("words_data", "leaf"), ("words_data", "internal"), ("words_idx", "leaf"), ("words_docsize", "leaf")),
    *(("words_config", "leaf"), ("runs", "leaf"), ("runs", "internal"), ("runs_of_conversation", "leaf")),
    *(("sqlite_autoindex_runs_1", "leaf"), ("runs_of_project", "leaf"), ("runs_of_parent", "leaf")),
    *(("blobs", "leaf"), ("store", "leaf")),
]


async def fill(log: SqliteLog) -> None:
    """Every third conversation is compacted, every second has a snapshot; one commit holds parts of many."""

    async def write(number: int, name: str) -> None:
        state, events = State(), events_of(name, turns=2, chars=LONG_CHARS if number % 12 == 0 else 200)
        for first in range(0, EVENTS, 6):
            part = events[first : first + 6]
            after = fold(state, part)
            await log.append(
                Append(
                    name,
                    state.seq,
                    [encode_event(event) for event in part],
                    listing_of(after),
                    documents_of(after, part),
                    claims=claims_of(part),
                    runs=runs_of(state, after, part),
                )
            )
            state = after
        if number % 2:
            await log.save_snapshot(name, snapshot_of(state, 0))
        if number % 3 == 0:
            await log.compact(name, state.seq)

    for start in range(0, len(NAMES), 40):
        await asyncio.gather(*(write(start + place, name) for place, name in enumerate(NAMES[start : start + 40])))
    await log.blobs.put(b"a picture", "image/png")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("store") / "data"

    async def make() -> None:
        async with open_sqlite_log(directory) as log:
            await fill(log)

    asyncio.run(make())
    return directory


@pytest.fixture
def data(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "data")


def pages_of(data: Path, tree: str, kind: str) -> list[int]:
    with closing(apsw.Connection(str(data / "palaver.db"))) as connection:
        rows = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = ? ORDER BY path", (tree, kind)
        )
        return [page for (page,) in rows]


def overwrite(data: Path, page: int, body: bytes) -> set[str]:
    """Answers the conversations whose names stood on the page."""
    database = data / "palaver.db"
    content = bytearray(database.read_bytes())
    at = (page - 1) * PAGE_BYTES
    was = bytes(content[at : at + PAGE_BYTES])
    content[at : at + PAGE_BYTES] = body
    database.write_bytes(content)
    return {name for name in NAMES if name.encode() in was}


async def listed(server: Served) -> set[str]:
    found: set[str] = set()
    cursor: str | None = None
    while True:
        answer = await server.http.get(
            "/api/conversations", params={"limit": 100} | ({"cursor": cursor} if cursor else {})
        )
        assert answer.status_code == 200, answer.text
        page: dict[str, Any] = answer.json()
        found |= {row["id"] for row in page["items"]}
        cursor = page.get("next_cursor")
        if cursor is None:
            return found


async def opened(server: Served) -> dict[str, httpx.Response]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def open_one(name: str) -> httpx.Response:
        async with gate:
            return await server.http.get(f"/api/conversations/{name}/snapshot")

    return dict(zip(NAMES, await asyncio.gather(*map(open_one, NAMES)), strict=True))


async def check_server(data: Path, lost: set[str]) -> None:
    """Starts, lists, opens and writes to all conversations but the lost ones, which say what to do."""
    async with serving(data) as server:
        assert await listed(server) >= set(NAMES) - lost
        for name, answer in (await opened(server)).items():
            if answer.status_code == 200:
                assert answer.json()["seq"] == EVENTS, name
            else:
                assert name in lost, f"{name}: {answer.text}"
                assert answer.status_code == 503
                assert "palaver salvage" in answer.json()["message"]
                assert not answer.json()["retryable"]
        for name in sorted(set(NAMES) - lost)[:: len(NAMES) // 4]:
            written = await server.command(name, type="set_draft", text=f"{name} goes on")
            assert written.status_code == 202, written.text
        found = await server.http.get("/api/search", params={"q": "question"})
        assert found.status_code == 200, found.text
        assert found.json()["items"]
        await server.send(await server.create(), "Hello")


@pytest.mark.parametrize(("tree", "kind"), DERIVED, ids=str)
async def test_overwritten_page_of_anything_derived_costs_no_conversation(data: Path, tree: str, kind: str) -> None:
    pages = pages_of(data, tree, kind)
    overwrite(data, pages[len(pages) // 2], bytes(PAGE_BYTES))
    await check_server(data, set())


@pytest.mark.parametrize(("tree", "kind"), EVENT_PAGES, ids=str)
@pytest.mark.parametrize("place", ["first", "middle", "last"])
async def test_overwritten_page_of_events_costs_only_its_conversations(
    data: Path, tree: str, kind: str, place: str
) -> None:
    pages = pages_of(data, tree, kind)
    page = {"first": pages[0], "middle": pages[len(pages) // 2], "last": pages[-1]}[place]
    lost = overwrite(data, page, bytes(PAGE_BYTES))
    assert lost
    assert len(lost) < len(NAMES) / 10
    await check_server(data, lost)
    assert {damage.conversation for damage in verify_directory(data, quiet).damages} <= {"", *lost}


@pytest.mark.long
@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize(("tree", "kind"), [*DERIVED, *EVENT_PAGES], ids=str)
async def test_noise_on_any_page_costs_only_its_conversations(data: Path, tree: str, kind: str, place: int) -> None:
    pages = pages_of(data, tree, kind)
    noise = Random(place).randbytes(PAGE_BYTES)
    hit = overwrite(data, Random(f"{tree} {kind} {place}").choice(pages), noise)
    await check_server(data, hit if (tree, kind) in EVENT_PAGES else set())
