"""The file of what people always allow: kept whole, private, and never trusted when it is broken."""

import asyncio
import os
import stat
from pathlib import Path

import msgspec
import pytest

from palaver.approval.standing_grants import KEEP, StandingGrant, StandingGrants
from palaver.errors import LogUnavailable

pytestmark = pytest.mark.anyio


def grant(id: str, match: str = "make") -> StandingGrant:
    return StandingGrant(id=id, tool="shell", scope="agent", match=match, agent="ada")


async def test_grants_are_there_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "grants.json"
    await StandingGrants(path).add(grant("1"))
    other = StandingGrants(path)
    assert other.all() == (grant("1"),)
    assert [rule.source for rule in other.of("ada", tmp_path)] == ["agent"]
    assert other.of("bob", tmp_path) == ()


async def test_file_is_readable_by_its_owner_alone_and_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "grants.json"
    await StandingGrants(path).add(grant("1"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in os.scandir(tmp_path)] == [path.name]


async def test_same_grant_again_takes_the_place_of_the_first(tmp_path: Path) -> None:
    standing = StandingGrants(tmp_path / "grants.json")
    await standing.add(grant("1"))
    await standing.add(grant("2"))
    assert [known.id for known in standing.all()] == ["2"]


async def test_grants_given_at_once_are_all_kept(tmp_path: Path) -> None:
    standing = StandingGrants(tmp_path / "grants.json")
    await asyncio.gather(*(standing.add(grant(str(n), f"make {n}")) for n in range(20)))
    assert len(StandingGrants(tmp_path / "grants.json").all()) == 20


async def test_removal_is_seen_by_whoever_reads_next(tmp_path: Path) -> None:
    mine, theirs = StandingGrants(tmp_path / "grants.json"), StandingGrants(tmp_path / "grants.json")
    await mine.add(grant("1"))
    assert theirs.all()
    assert await mine.remove("1")
    assert not await mine.remove("1")
    assert theirs.all() == ()


@pytest.mark.parametrize("damage", [b"", b"{", b'{"grants": [{"tool": 7}]}', b"\xff\xfe", b"[]"])
async def test_broken_file_allows_nothing_says_so_and_is_set_aside(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "grants.json"
    path.write_bytes(damage)
    standing = StandingGrants(path)
    assert standing.of("ada", tmp_path) == ()
    assert standing.problem is not None
    assert str(path) in standing.problem
    await standing.add(grant("1"))
    assert standing.problem is None
    assert StandingGrants(path).all() == (grant("1"),)
    assert (tmp_path / "grants.damaged").read_bytes() == damage


async def test_grant_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    standing = StandingGrants(tmp_path / "nowhere" / "grants.json")
    with pytest.raises(LogUnavailable, match="cannot be written"):
        await standing.add(grant("1"))
    assert standing.all() == ()


async def test_oldest_grants_give_way(tmp_path: Path) -> None:
    path = tmp_path / "grants.json"
    standing = StandingGrants(path)
    standing._known = tuple(grant(str(n), f"make {n}") for n in range(KEEP))
    standing._stamp = None
    await standing.add(grant("last", "last"))
    kept = StandingGrants(path).all()
    assert (len(kept), kept[0].id, kept[-1].id) == (KEEP, "1", "last")


async def test_taking_back_spares_other_agents_folders_and_commands(tmp_path: Path) -> None:
    standing = StandingGrants(tmp_path / "grants.json")
    there = StandingGrant(id="there", tool="shell", scope="project", match="make", project=str(tmp_path / "there"))
    others = (msgspec.structs.replace(grant("bob"), agent="bob"), grant("test", "make test"), there)
    here = StandingGrant(id="here", tool="shell", scope="project", match="make", project=str(tmp_path))
    for one in (grant("1"), here, *others):
        await standing.add(one)
    await standing.take_back("shell", "make", "ada", tmp_path / "sub")
    assert standing.all() == others
