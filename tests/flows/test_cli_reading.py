"""Reading on the command line: lists, conversations, finds and branches, for people and for programs."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.backends.script.script import Say, Step, Think, Tool
from palaver.cli.support import resolve_id
from palaver.cli.support.json_output import PRINTED
from palaver.client import Client
from palaver.errors import NotFound
from tests.flows.served import Served, serving
from tests.flows.terminal import in_terminal, palaver

HOSTILE = "red \x1b[31m and \x1b]0;title\x07 and \u202egnp.exe"


def lines_of(out: str, words: str) -> list[dict[str, Any]]:
    """The objects of a `--json` that prints lines, each with the names that are written down."""
    found = [msgspec.json.decode(line) for line in out.splitlines()]
    for one in found:
        assert set(one) == set(PRINTED[words].names)
    return found


BUILD: list[Step] = [Think("Hm."), Tool("shell", {"command": "make"}, output="built\n"), Say("All is built.")]


@pytest.fixture(scope="module")
async def built(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Served, Path, str]]:
    """A server, its folder and the conversation in it that has been built. Nothing here is changed but by branches."""
    data = tmp_path_factory.mktemp("built") / "data"
    async with serving(data, BUILD) as server:
        conversation = await server.create(message="build it", title="A build")
        await server.settled(conversation)
        yield server, data, conversation


async def test_conversations_are_listed_for_people_and_programs(built: tuple[Served, Path, str]) -> None:
    server, data, conversation = built
    code, out, _ = await palaver(data, "list", "build", "--url", server.url)
    assert (code, out.splitlines()[-1].split()[-1]) == (0, conversation)
    found = lines_of((await palaver(data, "list", "--json", "--url", server.url))[1], "list")
    assert ("A build", conversation) in [(row["title"], row["id"]) for row in found]


async def test_conversation_is_shown_in_short_in_full_and_as_its_view(built: tuple[Served, Path, str]) -> None:
    server, data, conversation = built
    code, out, _ = await palaver(data, "show", conversation, "--url", server.url)
    assert (code, "All is built." in out, "▸ shell make · 1 line" in out) == (0, True, True)
    assert "Hm." not in out
    full = (await palaver(data, "show", conversation, "--full", "--ids", "--url", server.url))[1]
    assert ("Hm." in full, "  built" in full) == (True, True)
    shown = msgspec.json.decode((await palaver(data, "show", conversation, "--json", "--url", server.url))[1])
    assert set(shown) == set(PRINTED["show"].names)
    assert shown["messages"][0]["id"] in full


async def test_words_are_found_with_what_stands_around_them(built: tuple[Served, Path, str]) -> None:
    server, data, conversation = built
    code, out, _ = await palaver(data, "search", "built", "--url", server.url)
    assert (code, conversation in out, "All is built" in out) == (0, True, True)
    within = ("-c", conversation, "--json", "--url", server.url)
    hits = lines_of((await palaver(data, "search", "built", *within))[1], "search")
    assert {hit["conversation"] for hit in hits} == {conversation}
    assert (await palaver(data, "search", "nowhere-at-all", "--url", server.url))[0] == 6


async def test_branch_takes_over_as_much_as_was_asked_for(built: tuple[Served, Path, str]) -> None:
    server, data, conversation = built
    where = ("--url", server.url)
    code, out, err = await palaver(data, "branch", conversation, "--at", "1", "--title", "Again", *where)
    assert (code, conversation in err) == (0, True)
    branch = await server.state(out.strip())
    assert (branch["title"], len(branch["messages"])) == ("Again", 1)
    made = msgspec.json.decode((await palaver(data, "branch", conversation, "--json", *where))[1])
    assert set(made) <= set(PRINTED["branch"].names)
    whole = await server.state(conversation)
    assert len((await server.state(made["conversation"]))["messages"]) == len(whole["messages"])
    assert (await palaver(data, "branch", conversation, "--at", "99", *where))[0] == 6


async def test_conversation_is_named_by_any_end_of_its_id_that_no_other_shares(server: Served, tmp_path: Path) -> None:
    for name in ("north-1111-aaaa", "north-2222-aaaa", "south-3333-bbbb"):
        await server.create(id=name, title=name)
    async with Client.connect(server.url, server.token) as client:
        for meant, found in (
            ("north-1", "north-1111-aaaa"),
            ("2222-aaaa", "north-2222-aaaa"),
            ("south-3333-bbbb", "south-3333-bbbb"),
            ("last", "south-3333-bbbb"),
            ("-", "south-3333-bbbb"),
        ):
            assert await resolve_id.conversation(client, meant) == found
        for meant, words in (("north", "fits 2"), ("nor", "at least 4"), ("west-0000", "No such"), ("a/../b", "no id")):
            with pytest.raises(NotFound, match=words):
                await resolve_id.conversation(client, meant)
    code, out, _ = await palaver(tmp_path / "data", "show", "-", "--url", server.url)
    assert (code, out.splitlines()[0]) == (0, "south-3333-bbbb")


async def test_terminal_shows_colours_and_short_ids_and_a_pipe_neither(server: Served, tmp_path: Path) -> None:
    data = tmp_path / "data"
    whole = "0199c3f2-5e0a-7c31-8f21-9d1f3f9c2a1b"
    await server.create(id=whole, title="Lighthouse")
    async with in_terminal(data, "list", "--url", server.url) as terminal:
        assert await terminal.ended() == 0
        await terminal.until("3f9c2a1b")
        assert ("\x1b[" in terminal.shown, whole in terminal.shown) == (True, False)
    async with in_terminal(data, "list", "--url", server.url, NO_COLOR="1") as terminal:
        assert await terminal.ended() == 0
        await terminal.until("3f9c2a1b")
        assert "\x1b[36m" not in terminal.shown
    _, out, _ = await palaver(data, "list", "--url", server.url)
    assert ("\x1b" in out, whole in out) == (False, True)


async def test_hostile_words_are_shown_and_never_obeyed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    script: list[Step] = [Tool("shell", {"command": HOSTILE}, output=HOSTILE), Say(HOSTILE, chunk=1)]
    async with serving(data, script) as server:
        where = ("--url", server.url)
        conversation = await server.create(message="go", title=HOSTILE)
        await server.settled(conversation)
        for command in (("show", "last", "--full"), ("list",), ("search", "red"), ("tail",)):
            _, out, err = await palaver(data, *command, *where)
            assert not {"\x1b", "\x07", "\u202e"} & set(out + err), command
        async with in_terminal(data, "send", "go", *where, NO_COLOR="1") as terminal:
            assert await terminal.ended() == 0
            await terminal.until("conversation ")
            assert not {"\x1b", "\x07", "\u202e"} & set(terminal.shown)
            assert "␛[31m" in terminal.shown
        assert (await palaver(data, "send", "go", *where))[1] == HOSTILE + "\n"


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ("agents list", ()),
        ("backends", ()),
        ("requests", ()),
        ("requests list", ()),
        ("missions list", ()),
        ("tail", ("--after", "0")),
    ],
)
async def test_json_is_lines_under_the_names_that_are_written_down(
    server: Served, tmp_path: Path, words: str, more: tuple[str, ...]
) -> None:
    await server.settled(await server.create(message="hello"))
    folder = tmp_path / "project"
    folder.mkdir(exist_ok=True)
    code, out, err = await palaver(
        tmp_path / "data", *words.split(), "--json", *more, "--url", server.url, folder=str(folder)
    )
    assert (code, err) == (0, "")
    found = [msgspec.json.decode(line) for line in out.splitlines()]
    if words == "tail":
        assert [one["seq"] for one in found] == list(range(1, len(found) + 1))
        assert found[-1]["type"] == "turn.finished"
    else:
        assert all(set(one) == set(PRINTED[words].names) for one in found)


async def test_backends_are_tried_for_real_and_a_failure_is_told(server: Served, tmp_path: Path) -> None:
    data, where = tmp_path / "data", ("--url", server.url)
    code, out, err = await palaver(data, "backends", "--test", "--json", *where)
    tested = [msgspec.json.decode(line) for line in out.splitlines()]
    assert (code, "Testing" in err) == (0, True)
    assert [one["test"]["text"] for one in tested if one["test"]] == ["Hello there, how are you?"]
    code, out, _ = await palaver(data, "backends", *where)
    assert (code, "scripted" in out) == (0, True)
    code, _, err = await palaver(data, "backends", "scriptd", *where)
    assert (code, "Did you mean “scripted”?" in err) == (6, True)
