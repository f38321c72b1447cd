"""Trajectories beside a project: there a moment after the turn, whole, never over anything else."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.cli.support.settings import Flags, read_config
from palaver.clock import Ids, ManualClock
from palaver.conversation.project_files import trajectories
from palaver.conversation.project_files.trajectories import (
    FOREIGN_PLACE,
    ForeignFile,
    Trajectories,
    is_a_place,
    remove_file,
    trajectories_in,
    trajectory_in,
    write_file,
)
from palaver.schema.commands import (
    CreateConversation,
    DeleteConversation,
    EditMessage,
    RestoreMessages,
    SendMessage,
    SetParams,
)
from palaver.schema.view import Message, State, TextBlock
from tests.unit.conversation.house import WAIT_S, House, open_house
from tests.unit.history.sample import asked, conversation, everything, said


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def path_in(project: Path, name: str = "talk") -> Path:
    return project / ".palaver" / "trajectories" / f"{name}.json"


def document(project: Path, name: str = "talk") -> dict[str, Any]:
    return dict(msgspec.json.decode(path_in(project, name).read_bytes()))


# -- files


def test_file_holds_the_document_and_nobody_else_may_read_it(project: Path) -> None:
    assert write_file(project, everything(), ".t") is True

    assert document(project)["title"] == "A talk about files"
    assert stat.S_IMODE(path_in(project).stat().st_mode) == 0o600
    assert sorted(path.name for path in path_in(project).parent.iterdir()) == [".gitignore", "talk.json"]


def test_same_conversation_is_not_written_twice(project: Path) -> None:
    write_file(project, everything(), ".t")
    before = path_in(project).stat().st_ino

    assert write_file(project, everything(), ".t") is False
    assert path_in(project).stat().st_ino == before


def test_what_others_wrote_into_it_is_kept(project: Path) -> None:
    write_file(project, conversation(asked("one")), ".t")
    known = document(project)
    known["pinned"] = True
    known["messages"][0]["starred"] = 3
    path_in(project).write_bytes(msgspec.json.encode(known))

    write_file(project, conversation(asked("one"), said("two"), params={}), ".t")

    after = document(project)
    assert (after["pinned"], after["messages"][0]["starred"], len(after["messages"])) == (True, 3, 2)
    assert "temperature" not in after


@pytest.mark.parametrize("content", [b'{"id": "another", "messages": []}', b"not json", b"[]", b"", b'{"id": "tal'])
def test_file_of_another_is_left_as_it_is(project: Path, content: bytes) -> None:
    write_file(project, everything(), ".t")
    path_in(project).write_bytes(content)

    with pytest.raises(ForeignFile):
        write_file(project, everything(), ".t")
    remove_or_not(project)

    assert path_in(project).read_bytes() == content


def remove_or_not(project: Path) -> None:
    with suppress(ForeignFile):
        remove_file(project, "talk")


@pytest.mark.parametrize("link", [".palaver", ".palaver/trajectories"])
def test_link_out_of_the_project_is_not_followed(project: Path, tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    (outside / "trajectories").mkdir(parents=True)
    (project / link).parent.mkdir(exist_ok=True)
    (project / link).symlink_to(outside)

    with pytest.raises(OSError, match=r"directory|symbolic"):
        write_file(project, everything(), ".t")

    assert [path.name for path in outside.rglob("*")] == ["trajectories"]


def test_file_that_is_a_link_is_neither_read_nor_written_through(project: Path, tmp_path: Path) -> None:
    write_file(project, everything(), ".t")
    secret = tmp_path / "secret"
    secret.write_text('{"id": "talk", "token": "s"}')
    path_in(project).unlink()
    path_in(project).symlink_to(secret)

    with pytest.raises(OSError, match="symbolic"):
        write_file(project, everything(), ".t")

    assert secret.read_text() == '{"id": "talk", "token": "s"}'


def test_write_that_fails_leaves_the_file_before_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(project, conversation(asked("one")), ".t")
    before = path_in(project).read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_file(project, conversation(asked("one"), said("two")), ".t")

    assert path_in(project).read_bytes() == before
    assert ".t" not in {path.name for path in path_in(project).parent.iterdir()}


def test_home_and_whatever_holds_it_are_no_places(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "home" / "project"
    project.mkdir(parents=True)
    (tmp_path / "link").symlink_to(home)

    assert is_a_place(project, [home])
    assert not any(is_a_place(folder, [home]) for folder in (home, tmp_path, Path("/"), tmp_path / "link"))
    assert not is_a_place(tmp_path / "missing", [home])


def test_those_on_disk_are_listed_and_found_by_their_id(project: Path) -> None:
    write_file(project, everything(), ".t")
    (path_in(project).parent / "broken.json").write_text("{")
    (path_in(project).parent / "notes.txt").write_text("x")
    foreign = project.joinpath(*FOREIGN_PLACE)
    foreign.mkdir(parents=True)
    (foreign / "old.json").write_text('{"id": "old", "title": "T", "messages": [], "extra": 1}')

    assert [(one.id, one.title) for one in trajectories_in(project)] == [("talk", "A talk about files")]
    assert [one.id for one in trajectories_in(project, FOREIGN_PLACE)] == ["old"]
    found = trajectory_in(project, "talk")
    assert found is not None
    assert found["id"] == "talk"
    assert [trajectory_in(project, name) for name in ("broken", "nobody", "../../x", ".gitignore")] == [None] * 4
    assert trajectories_in(project / "missing") == []


# -- the writer


@asynccontextmanager
async def writing(project: Path, never_in: list[Path] | None = None) -> AsyncIterator[tuple[House, Trajectories]]:
    clock = ManualClock()
    async with open_house(clock=clock) as house:
        writer = Trajectories(house.directory, house.log, house.feed, clock, Ids(clock), never_in or [])
        async with writer.running():
            yield house, writer


async def begin(house: House, project: Path, id: str = "talk") -> str:
    await house.directory.create(CreateConversation(id=id, project=str(project)), None)
    return id


async def until(house: House, holds: Callable[[], bool]) -> None:
    """Moves the clock until the writer, which sleeps by it, has done something."""
    assert isinstance(house.clock, ManualClock)
    async with asyncio.timeout(WAIT_S):
        while not holds():
            await house.clock.advance(1.0)


async def test_turn_that_ends_is_written_down(project: Path) -> None:
    async with writing(project) as (house, _):
        talk = await begin(house, project)
        await house.do(talk, SendMessage(content="hello"))
        await house.at_rest(talk)
        await until(house, path_in(project).exists)

        assert [one["content"] for one in document(project)["messages"]] == ["hello", "ok"]


async def test_edit_and_parameters_follow_and_deleting_removes(project: Path) -> None:
    async with writing(project) as (house, writer):
        talk = await begin(house, project)
        await house.do(talk, SendMessage(content="hello"))
        state = await house.at_rest(talk)
        await house.do(talk, EditMessage(message=state.messages[0].id, content="hello you"))
        await house.do(talk, SetParams(patch={"temperature": 1}))
        await writer.catch_up()
        written = document(project)
        await house.do(talk, DeleteConversation())
        await writer.catch_up()

        assert (written["messages"][0]["content"], written["temperature"]) == ("hello you", 1)
        assert not path_in(project).exists()


async def test_what_is_left_is_written_when_the_server_ends(project: Path) -> None:
    async with writing(project) as (house, _):
        talk = await begin(house, project)
        await house.do(talk, SendMessage(content="hello"))
        await house.at_rest(talk)

    assert len(document(project)["messages"]) == 2


async def test_imported_conversation_is_written_down_once_somebody_goes_on_with_it(project: Path) -> None:
    async with writing(project) as (house, writer):
        talk = await begin(house, project)
        old = Message(id="x", role="user", seq=1, updated_seq=1, ts=1, blocks=(TextBlock(index=0, text="long ago"),))
        await house.do(talk, RestoreMessages(messages=(old,)))
        await writer.catch_up()
        assert not path_in(project).exists()
        await house.do(talk, SendMessage(content="hello"))
        await house.at_rest(talk)
        await writer.catch_up()
    assert [one["content"] for one in document(project)["messages"]] == ["long ago", "hello", "ok"]


async def test_empty_conversation_and_a_home_leave_no_trace(project: Path) -> None:
    async with writing(project, [project]) as (house, writer):
        talk = await begin(house, project)
        await house.do(talk, SendMessage(content="hello"))
        await house.at_rest(talk)
        await begin(house, project.parent, "empty")
        await writer.catch_up()

    assert not (project / ".palaver").exists()
    assert not (project.parent / ".palaver").exists()


async def test_folder_that_cannot_be_written_holds_nothing_up(project: Path) -> None:
    (project / ".palaver").write_text("a file where a folder should be")
    async with writing(project) as (house, writer):
        talk = await begin(house, project)
        for _ in range(2):
            await house.do(talk, SendMessage(content="hello"))
            await house.at_rest(talk)
            await writer.catch_up()

        assert len((await house.directory.state(talk)).messages) == 4


async def test_conversation_that_cannot_be_written_does_not_stop_the_others(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(folder: Path, state: State, temporary: str) -> bool:
        if state.conversation == "bad":
            raise ZeroDivisionError
        return write_file(folder, state, temporary)

    monkeypatch.setattr(trajectories, "write_file", broken)
    async with writing(project) as (house, _):
        for name in ("bad", "talk"):
            await begin(house, project, name)
            await house.do(name, SendMessage(content="hello"))
            await house.at_rest(name)
        await until(house, path_in(project).exists)

        assert not path_in(project, "bad").exists()


@pytest.mark.parametrize(("text", "wanted"), [("", True), ("trajectories = false\n", False)])
def test_writing_is_switched_off_in_the_settings(tmp_path: Path, text: str, wanted: bool) -> None:
    (tmp_path / "palaver.toml").write_text(text)

    assert read_config(Flags(data=tmp_path), {}, tmp_path).trajectories is wanted
