"""Bytes that came into a store's file, or were lost from it: every page behind stands elsewhere, and is saved all the same."""

from pathlib import Path
from random import Random

import pytest

from palaver.log.sqlite.page_carver import PAGE_BYTES
from palaver.schema.events import encode_event
from tests.attacks.test_damaged_store import NAMES, STREAM, contents, events_of, pages_of, salvaged, whole
from tests.attacks.test_damaged_wal import killed, wal_of

__all__ = ["killed", "whole"]

pytestmark = pytest.mark.anyio

SHIFTS = (-4_000, -2_100, -517, -50, -7, -1, 1, 3, 9, 100, 2_047, 2_049, 4_095)


def shift(data: bytearray, at: int, by: int) -> None:
    if by < 0:
        del data[at : at - by]
    else:
        data[at:at] = Random(by).randbytes(by)


@pytest.mark.parametrize("by", SHIFTS)
@pytest.mark.parametrize("at", [0, 50, 100, 700])
async def test_shift_within_the_first_page_costs_no_conversation(whole: Path, tmp_path: Path, at: int, by: int) -> None:
    original = await contents(whole)
    data = bytearray((whole / "palaver.db").read_bytes())
    first_pages = bytes(data[: 2 * PAGE_BYTES])
    shift(data, at, by)
    (whole / "palaver.db").write_bytes(data)
    found, lost = await salvaged(whole, tmp_path / "new", original)
    hit = {name for name in (*NAMES, STREAM) if by < PAGE_BYTES - at and name[5:11].encode() in first_pages}
    if at - by <= PAGE_BYTES:
        assert lost == set(), found
    else:
        assert lost <= hit


@pytest.mark.parametrize("by", [-8_192, -4_096, -300, -3, 5, 1_000, 4_096, 8_192])
@pytest.mark.parametrize("share", [0.3, 0.6])
async def test_shift_further_on_costs_only_whom_the_page_holds(
    whole: Path, tmp_path: Path, share: float, by: int
) -> None:
    original = await contents(whole)
    database = whole / "palaver.db"
    named = dict(pages_of(database))
    data = bytearray(database.read_bytes())
    page = int(len(data) * share) // PAGE_BYTES
    reach = page + 1 + max(-by, 0) // PAGE_BYTES
    # A row that goes on behind the place is at two distances at once.
    hit = {name for number in range(page, reach + 1) for name in named.get(number, ())} | {"talk-cccccc"}
    shift(data, page * PAGE_BYTES + (0 if by % PAGE_BYTES == 0 else 900), by)
    database.write_bytes(data)
    _, lost = await salvaged(whole, tmp_path / "new", original)
    assert lost <= hit


@pytest.mark.parametrize("by", [-24, -5, 1, 40, 2_060])
async def test_shift_in_the_write_ahead_log_costs_at_most_a_version_of_a_page(
    killed: Path, tmp_path: Path, by: int
) -> None:
    data = bytearray(wal_of(killed).read_bytes())
    shift(data, 32 + 20 * (PAGE_BYTES + 24) + 500, by)
    wal_of(killed).write_bytes(data)
    original = {name: [encode_event(event) for event in events_of(name)] for name in NAMES}
    _, lost = await salvaged(killed, tmp_path / "new", original)
    assert len(lost) <= 1
