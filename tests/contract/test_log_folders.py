"""What every log promises of folders and of streams that are in no list."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palaver.log.base import Append, EventLog, Folder
from palaver.schema.view import Listing
from tests.unit.log.stores import KINDS, Store, line, open_store, row

pytestmark = pytest.mark.anyio


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(request.param, tmp_path / "data") as opened:
        yield opened


async def put(log: EventLog, name: str, listing: Listing | None = None) -> None:
    await log.append(Append(name, 0, [line(name, 1)], listing))


async def test_folders_are_counted_without_what_is_deleted(store: Store) -> None:
    await put(store.log, "a", row("a", project="/tea", updated_at=3))
    await put(store.log, "b", row("b", project="/tea", updated_at=5, turn="t", open_requests=1))
    await put(store.log, "c", row("c", project="/tea", updated_at=9, deleted=True))
    await put(store.log, "d", row("d", project="/cups", updated_at=4, archived=True))
    await put(store.log, "e", row("e", updated_at=4))
    log = await store.reopen()

    assert await log.folders() == [Folder("/cups", 1, 0, 0, 4), Folder("/tea", 2, 1, 1, 5)]


async def test_streams_in_no_list_are_found_by_how_they_begin(store: Store) -> None:
    for name in ("project-b", "project-a", "projects", "other"):
        await put(store.log, name)
    log = await store.reopen()

    assert await log.streams("project-") == ["project-a", "project-b"]
    assert await log.streams("nobody") == []
    assert [listing.id for listing in (await log.list()).items] == []
    assert await log.unfinished() == []
    assert not (await log.verify()).damages


async def test_stream_in_no_list_is_backed_up_and_compacted_like_any_other(store: Store, tmp_path: Path) -> None:
    await put(store.log, "project-a")
    dropped = await store.log.compact("project-a", 1)
    await store.log.backup(tmp_path / "copy")

    assert dropped == 0
    async with store.opened_backup(tmp_path / "copy") as copy:
        assert await copy.streams("project-") == ["project-a"]
        assert (await copy.read("project-a", 0))[0].last == 1
