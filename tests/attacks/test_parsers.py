"""Attacks on parsers: what a repository, a page, a client or another program's file can feed them neither crashes nor freezes
a server, nor makes it answer without end. Each is made against a server in a process of its own while another turn runs."""

import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.errors import PalaverError
from palaver.history.programs.foreign import PROGRAMS
from palaver.history.programs.places import SessionFile, read_all
from palaver.history.programs.scratch import Scratch
from palaver.tools.files.glob import Glob
from palaver.tools.files.grep import Grep
from palaver.tools.web.visit import _as_utf8
from tests.attacks.lone_server import LoneServer, lone_server
from tests.unit.tools.workshop import Workshop

pytestmark = pytest.mark.anyio

ANSWER_BYTES = 4 << 20
"""More than any answer about one hostile file may come to."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "project"
    (folder / ".palaver" / "agents").mkdir(parents=True)
    return folder


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LoneServer]:
    """One for the tests that it survives, which are all."""
    async with lone_server(tmp_path_factory.mktemp("lone") / "data") as running:
        yield running


# -- records


def aliases(levels: int, width: int = 9) -> str:
    """Each level stands for the one below it several times."""
    inner = (", ".join([f"*a{level - 1}"] * width if level else ["lol"] * width) for level in range(levels + 1))
    lines = [f"x-{level}: &a{level} [{items}]" for level, items in enumerate(inner)]
    return "\n".join([*lines, f"params: {{all: *a{levels}}}"])


RECORDS = {
    "brackets": "params: " + "[" * 60_000,
    "closed brackets": "params: " + "[" * 30_000 + "]" * 30_000,
    "braces": "params: " + "{a: " * 15_000,
    "dashes": "- " * 30_000,
    "questions": "? " * 30_000,
    "indents": "\n".join(" " * level + "a:" for level in range(300)),
    "mixed": "params: " + "[{a: " * 10_000,
    "thirty-three levels": "params: " + "[" * 33 + "]" * 33,
    "aliases": aliases(8),
    "few aliases": aliases(3),
    "alias to itself": "params: &a {b: *a}",
    "merged": "x-a: &a {b: 1}\nparams:\n  <<: *a",
    "python object": "params: {a: !!python/object/apply:os.system [id]}",
    "binary": "params: {a: !!binary aGVsbG8=}",
    "set": "params: {a: !!set {b, c}}",
    "bad timestamp": "params: {a: !!timestamp never}",
    "empty integer": "params: {a: !!int ''}",
    "bad boolean": "params: {a: !!bool maybe}",
    "own tag": "params: {a: !mine b}",
    "directives": "".join(f"%TAG !{at}! tag:x\n" for at in range(3_000)) + "--- {a: b}",
    "base sixty": "spend_limit_usd: 1" + ":59" * 20_000,
    "base sixty fraction": "spend_limit_usd: 1" + ":59" * 20_000 + ".5",
    "long integer": "idle_interval_s: " + "9" * 60_000,
    "long hexadecimal": "idle_interval_s: 0x" + "f" * 60_000,
    "many values": "params: {a: [" + "a," * 30_000 + "]}",
    "many keys": "\n".join(f"x-{at}: 1" for at in range(6_000)),
    "key that JSON has not": "params: {a: {~: 1}}",
    "key that is a list": "params: {? [a, b] : 1}",
    "long key": "k" * 60_000 + ": 1",
    "too long": "description: " + "x" * 200_000,
    "two documents": "name: a\n...\n---\nname: b",
    "no end": "name: 'a",
    "control characters": "name: a\x00b",
    "half a character": 'name: "\\ud800"',
    "tabs": "name:\n\t- a",
}


@pytest.mark.parametrize("name", RECORDS)
async def test_hostile_record_is_refused_in_words_while_others_are_served(
    server: LoneServer, project: Path, name: str
) -> None:
    folder = project / ".palaver" / "agents"
    (folder / "hostile.md").write_text(f"---\n{RECORDS[name]}\n---\nYou are helpful.\n")
    (folder / "good.md").write_text("---\nname: Good\n---\nYou are good.\n")
    for _ in range(2):  # The second time from what is remembered.
        answer = await server.beside(server.http.get("/api/agents", params={"project": str(project)}))
        assert answer.status_code == 200, answer.text[:500]
        assert len(answer.content) < ANSWER_BYTES
        listed = {entry["id"]: entry for entry in answer.json()["items"]}
        assert listed["good"]["name"] == "Good"
        if "hostile" in listed:
            assert listed["hostile"]["problem"]
    one = await server.beside(server.http.get("/api/agents/hostile", params={"project": str(project)}))
    assert one.status_code in (200, 404), one.text[:500]
    assert len(one.content) < ANSWER_BYTES


async def test_many_hostile_records_at_once_are_read_beside_the_loop(server: LoneServer, project: Path) -> None:
    for at in range(600):
        text = f"---\nname: Agent {at}\nx-values: [{'a,' * 1_900}]\n---\nText {at}.\n"
        (project / ".palaver" / "agents" / f"agent-{at}.md").write_text(text)
    answer = await server.beside(server.http.get("/api/agents", params={"project": str(project)}))
    assert answer.status_code == 200
    assert len(answer.json()["items"]) <= 110


@pytest.mark.parametrize("name", ["brackets", "aliases", "many values", "base sixty"])
async def test_hostile_record_in_the_data_directory_is_refused_too(tmp_path: Path, name: str) -> None:
    from palaver.agents.catalog import Book
    from palaver.errors import Invalid

    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "hostile.md").write_text(f"---\n{RECORDS[name]}\n---\nText.\n")
    book = Book((), folder)
    known = book.known("hostile")
    assert known is not None
    assert known.problem
    with pytest.raises(Invalid):
        await book.update("hostile", {"description": "changed"})


# -- .gitignore

PATTERNS = {
    "stars": "a*" * 100 + "b",
    "stars anchored": "/" + "a*" * 100 + "b",
    "stars in a folder": "deep/" + "a*" * 100 + "b",
    "double stars": "**/" * 90 + "b",
    "double stars and names": "**/a/" * 50 + "b",
    "stars before classes": "*[ab]" * 60 + "c",
    "questions": "*?" * 100 + "b",
    "negated": "!" + "a*" * 100 + "b",
    "long chunk": "*" + "a" * 240 + "b",
    "many rules": "\n".join(["*" + "a" * 240 + "b"] * 5_000),
    "many short rules": "\n".join(f"*{at}*a*b" for at in range(60_000)),
    "unclosed class": "[" * 1_000,
    "many classes": "[[:alpha:]]*" * 80 + "X",
    "backslashes": "\\" * 1_001,
    "one long line": "a" * (1 << 20),
    "no text": "\x00\xff" * 1_000,
}


def hostile_repository(project: Path, patterns: str) -> None:
    (project / ".git").mkdir()
    folder = project / "deep" / "a" / "a" / "a"
    folder.mkdir(parents=True)
    for place in (project, project / "deep", folder):
        (place / ".gitignore").write_text(patterns)
        for at in range(20):
            (place / ("a" * 230 + f"{at:03}")).write_text("needle\n")


@pytest.mark.parametrize("name", PATTERNS)
async def test_hostile_patterns_do_not_hold_up_the_tree(server: LoneServer, project: Path, name: str) -> None:
    hostile_repository(project, PATTERNS[name])
    query: dict[str, str | int] = {"project": str(project), "depth": 8}
    answer = await server.beside(server.http.get("/api/projects/tree", params=query))
    assert answer.status_code == 200, answer.text[:500]
    names = {entry["name"] for entry in answer.json()["entries"]}
    assert "deep" in names
    assert len(names) == 23, "No pattern names any of these files, and each is shown."


@pytest.mark.parametrize("name", ["stars", "double stars and names", "many rules"])
async def test_hostile_patterns_do_not_hold_up_a_search(project: Path, name: str) -> None:
    hostile_repository(project, PATTERNS[name])
    found = await Workshop(project).run(Grep(), pattern="^needle")
    assert (found.ok, found.total_lines) == (True, 60), found.error
    listed = await Workshop(project).run(Glob(), pattern="deep/**/a*")
    assert (listed.ok, listed.total_lines) == (True, 40), listed.error


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(" * 1_000 + ")" * 1_000, "no regular expression"),
        ("a{99999999999999}", "no regular expression"),
        ("(?P<a>", "no regular expression"),
        ("[", "no regular expression"),
    ],
)
async def test_pattern_that_breaks_the_compiler_is_refused_in_words(project: Path, pattern: str, words: str) -> None:
    (project / "a.txt").write_text("a\n")
    result = await Workshop(project).run(Grep(), pattern=pattern)
    assert not result.ok
    assert words in (result.error or "")
    assert "Traceback" not in (result.error or "")


# -- odd files


def odd_files(folder: Path) -> None:
    os.mkfifo(folder / "pipe.md")
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(folder)
        try:
            made.bind("socket.md")
        finally:
            os.chdir(here)
    (folder / "folder.md").mkdir()
    (folder / "loop.md").symlink_to("loop.md")
    (folder / "nowhere.md").symlink_to("missing")
    (folder / "device.md").symlink_to("/dev/zero")
    (folder / "empty.md").write_text("")
    (folder / "bytes.md").write_bytes(b"---\nname: \xff\xfe\n---\n")
    with (folder / "sparse.md").open("wb") as sparse:
        sparse.truncate(1 << 40)
    (folder / "closed").mkdir(mode=0)
    Path(os.fsdecode(os.fsencode(folder) + b"/bad-\xff.md")).write_text("name")


async def test_odd_files_are_listed_or_passed_over_and_never_waited_for(server: LoneServer, project: Path) -> None:
    odd_files(project / ".palaver" / "agents")
    odd_files(project)
    os.mkfifo(project / ".gitignore")
    os.mkfifo(project / "AGENTS.md")
    listed = await server.beside(server.http.get("/api/agents", params={"project": str(project)}))
    assert listed.status_code == 200, listed.text[:500]
    answer = await server.beside(server.http.get("/api/projects/tree", params={"project": str(project)}))
    assert answer.status_code == 200, answer.text[:500]
    shown = {entry["name"]: entry["kind"] for entry in answer.json()["entries"]}
    assert (shown["pipe.md"], shown["loop.md"], shown["folder.md"]) == ("other", "link", "folder")
    for name in (
        "pipe.md",
        "loop.md",
        "device.md",
        "closed",
        "sparse.md",
        "missing",
        "pipe.md/x",
        "a\0b",
        "\udcff",
        "x" * 5_000,
    ):
        query = {"project": str(project), "path": name.encode(errors="replace").decode()}
        answer = await server.beside(server.http.get("/api/projects/tree", params=query))
        assert answer.status_code < 500, (name, answer.text[:500])


@pytest.mark.parametrize("kind", ["file", "pipe", "loop", "missing", "folder"])
async def test_odd_agents_folder_is_no_folder_of_agents(server: LoneServer, project: Path, kind: str) -> None:
    place = project / ".palaver"
    (place / "agents").rmdir()
    match kind:
        case "file":
            (place / "agents").write_text("x")
        case "pipe":
            os.mkfifo(place / "agents")
        case "loop":
            (place / "agents").symlink_to("agents")
        case "folder":
            (place / "agents" / "deep").mkdir(parents=True)
        case _:
            pass
    answer = await server.beside(server.http.get("/api/agents", params={"project": str(place.parent)}))
    assert answer.status_code == 200, answer.text[:500]


# -- JSON

DEEP = 100_000
BODIES = {
    "deep lists": b'{"params":{"a":' + b"[" * DEEP + b"]" * DEEP + b"}}",
    "deep objects": b'{"params":{"a":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}}",
    "deep without an end": b'{"params":{"a":' + b"[" * DEEP,
    "sixty-five levels": b'{"params":{"a":' + b"[" * 64 + b"]" * 64 + b"}}",
    "many lists": b'{"params":{"a":[' + b"[]," * 300_000 + b"1]}}",
    "many objects": b'{"params":{"a":[' + b'{"a":1},' * 120_000 + b"1]}}",
    "many texts": b'{"params":{"a":[' + b'"\\\\",' * 150_000 + b"1]}}",
    "half a text": b'{"params":{"a":"' + b'\\"' * 400_000,
    "long number": b'{"params":{"a":' + b"9" * 900_000 + b"}}",
    "bad UTF-8": b'{"params":{"a":"\xff\xfe"}}',
    "half a character": b'{"params":{"a":"\\ud800"}}',
    "nothing": b"",
    "no object": b"[]",
}


@pytest.mark.parametrize("name", BODIES)
async def test_hostile_body_is_refused_in_words_while_others_are_served(server: LoneServer, name: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await server.beside(server.http.post("/api/conversations", content=BODIES[name], headers=headers))
    assert 400 <= answer.status_code < 500, answer.text[:500]
    assert answer.json()["message"]


@pytest.mark.parametrize("format", [None, "jsonl", "trajectory", "html", "markdown"])
@pytest.mark.parametrize("name", BODIES)
async def test_hostile_import_is_refused_in_words_while_others_are_served(
    server: LoneServer, name: str, format: str | None
) -> None:
    query = {"format": format, "dry_run": "true"} if format else {"dry_run": "true"}
    attack = server.http.post("/api/conversations/import", params=query, content=BODIES[name])
    answer = await server.beside(attack)
    assert answer.status_code < 500, answer.text[:500]


@pytest.mark.parametrize("name", BODIES)
async def test_hostile_lines_of_an_import_are_refused_in_words(server: LoneServer, name: str) -> None:
    line = b'{"program":"claude","session":"s","messages":[],"left_out":' + BODIES[name] + b"}"
    answer = await server.beside(server.http.post("/api/import/conversations", content=line))
    assert answer.status_code < 500, answer.text[:500]


# -- files of other programs


def session(folder: Path, program: Any, data: bytes, name: str = "session.jsonl") -> SessionFile:
    path = folder / name
    path.write_bytes(data)
    return SessionFile(program, path, len(data), 0)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", [*BODIES, "long exit code", "far time"])
def test_hostile_session_file_is_read_or_refused_in_words(tmp_path: Path, program: str, name: str) -> None:
    more = {
        "long exit code": msgspec.json.encode(
            {
                "type": "message",
                "message": {"role": "toolResult", "isError": True, "content": f"Exit code {'9' * 5000}"},
            }
        ),
        "far time": b'{"timestamp":"9999-12-31T23:59:59-14:00","type":"user","message":{"role":"user","content":"a"}}',
    }
    body = {**BODIES, **more}[name]
    with Scratch() as scratch:
        found = read_all([session(tmp_path, program, body + b"\n" + body)], {}, scratch)
    assert len(found) == 1


def test_decompression_bomb_is_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zstandard = pytest.importorskip("zstandard")
    from palaver.history.programs import places

    monkeypatch.setattr(places, "SESSION_BYTES", 1 << 20)
    line = b'{"type":"response_item","payload":{"type":"message","role":"user","content":[]}}\n'
    packed = zstandard.ZstdCompressor().compress(line * 100_000)
    assert len(packed) < 100_000
    (found,) = read_all([session(tmp_path, "codex", packed, "rollout-1.jsonl.zst")], {}, Scratch())
    assert "more than 1,048,576 bytes" in getattr(found, "reason", "")


def test_line_without_an_end_is_passed_over_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from palaver.history.programs import places

    monkeypatch.setattr(places, "LINE_BYTES", 1 << 10)
    good = (
        b'{"type":"user","message":{"role":"user","content":"hello"},"uuid":"a","timestamp":"2026-01-01T00:00:00Z"}\n'
    )
    data = b'{"type":"user","a":"' + b"x" * 10_000 + b'"}\n' + good
    (found,) = read_all([session(tmp_path, "claude", data)], {}, Scratch())
    assert (getattr(found, "skipped_lines", 0), len(getattr(found, "messages", ()))) == (1, 1)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "loop", "gone"])
def test_odd_session_file_is_refused_in_words_and_never_waited_for(tmp_path: Path, program: Any, kind: str) -> None:
    path = tmp_path / "session.jsonl"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")
        case "loop":
            path.symlink_to("session.jsonl")
        case _:
            pass
    (found,) = read_all([SessionFile(program, path, 10, 0)], {}, Scratch())
    assert getattr(found, "reason", "")


# -- pages


@pytest.mark.parametrize(
    "charset", ["punycode", "idna", "unicode_escape", "zlib", "rot13", "hex", "a\0b", "undefined", "mbcs"]
)
def test_page_names_no_encoding_that_takes_for_ever_or_fails(charset: str) -> None:
    data = b"a-" + b"zzzzzzzzzz9" * 50_000
    assert _as_utf8(data, charset) == data


def test_lists_in_lists_do_not_make_a_page_longer_than_it_is() -> None:
    from palaver.tools.web.page import Page

    page = Page("https://example.org/")
    page.feed("<ul>" * 5_000 + "<li>a" * 5_000)
    assert len(page.text()) < 200_000


def test_text_without_an_end_is_written_into_a_page_as_it_is() -> None:
    from palaver.history.page import write_page
    from palaver.schema.view import Message, State, TextBlock

    text = "[" * 1_000_000
    said = Message(id="m", role="assistant", seq=1, updated_seq=1, ts=1, blocks=(TextBlock(index=0, text=text),))
    assert f"<pre>{text}</pre>" in "".join(write_page(State(messages=(said,))))


# -- errors stay errors


def test_refusals_of_parsers_are_errors_of_ours() -> None:
    from palaver.backends.json_lines import decode_line
    from palaver.core.json_bounds import BeyondBounds, decode_json

    with pytest.raises(BeyondBounds):
        decode_json(b"[" * 65 + b"]" * 65)
    assert decode_json(b"[" * 64 + b"]" * 64)
    assert decode_json('"' + "[" * 1_000 + '"') == "[" * 1_000
    assert decode_json(b'"\\\\' + b'\\"[{,' * 200_000 + b'"')
    with pytest.raises(PalaverError):
        decode_line(b"[" * 65 + b"]" * 65, "Codex")
    with pytest.raises(msgspec.DecodeError):
        decode_line(b"hello", "Codex")
