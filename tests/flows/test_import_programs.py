"""`palaver import claude|codex|pi|refact`: the recorded histories of real programs, brought in by the real command."""

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.context.handover import handover
from palaver.schema.view import State
from tests.flows.served import WAIT_S, Served, serving
from tests.provider.quotes import QUOTING
from tests.unit.history.programs.lines import SAMPLES

pytestmark = pytest.mark.anyio

CLAUDE = "8d2f3c1e-6a0b-4c57-9b1d-2f6f0a7c1e11"
HELPED = "2e80e94f-f6e4-4b8a-99cd-d3a0fcd7c59d"
CODEX = "01a1e23b-386d-7343-90d8-2900b6be9577"
PI = "01a1e23a-d673-71f6-b9ee-d9d117220bd0"

REFACT = {
    "id": "r1",
    "title": "Nets",
    "created_at": "2026-05-01T10:00:00Z",
    "messages": [{"role": "user", "content": "mend the nets"}, 17, {"role": "assistant", "content": "mended"}],
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A person who used all four programs in one folder."""
    home, harbour = tmp_path / "home", tmp_path / "home" / "harbour"
    places = {
        "claude.jsonl": f".claude/projects/-home-ada-harbour/{CLAUDE}.jsonl",
        "claude-subagent.jsonl": f".claude/projects/-home-ada-harbour/{HELPED}.jsonl",
        "codex.jsonl": f".codex/sessions/2026/11/16/rollout-2026-11-16T02-41-34-{CODEX}.jsonl",
        "pi.jsonl": f".pi/agent/sessions/--home-ada-harbour--/2026-11-16T02-41-09-236Z_{PI}.jsonl",
    }
    for name, place in places.items():
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        said = (SAMPLES / name).read_text().replace("/home/ada/harbour", str(harbour))
        (home / place).write_text(said)
    (harbour / ".refact/trajectories").mkdir(parents=True)
    (harbour / ".refact/trajectories/r1.json").write_bytes(msgspec.json.encode(REFACT))
    return home


async def bring(server: Served, home: Path, *arguments: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from palaver.cli.main import main; main()", "import", *arguments),
        env={"PATH": os.environ["PATH"], "HOME": str(home), "PALAVER_URL": server.url, "PALAVER_TOKEN": server.token},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=home / "harbour",
    )
    async with asyncio.timeout(2 * WAIT_S):
        out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def listed(server: Served) -> list[dict[str, Any]]:
    return list((await server.http.get("/api/conversations")).json()["items"])


async def only(server: Served, title: str) -> dict[str, Any]:
    (row,) = [row for row in await listed(server) if row["title"] == title]
    return await server.state(row["id"])


async def test_history_of_each_program_is_imported_once_however_often(server: Served, home: Path) -> None:
    for program, count in (("claude", 2), ("codex", 1), ("pi", 1), ("refact", 1)):
        code, _, err = await bring(server, home, program)
        assert code == 0, err
        assert f"{count} new" in err
    first = await listed(server)

    for program, count in (("claude", 2), ("codex", 1), ("pi", 1), ("refact", 1)):
        code, _, err = await bring(server, home, program)
        assert code == 0, err
        assert f"{count} known already" in err
        assert "0 messages were added" in err

    assert await listed(server) == first
    assert len(first) == 5


async def test_imported_conversation_is_whole(server: Served, home: Path) -> None:
    await bring(server, home, "codex")
    state = await only(server, "Look at the notes, please.")

    assert (state["project"], state["status"]) == (str(home / "harbour"), "idle")
    assert state["created_at"] == state["messages"][0]["ts"] == 1794796894396
    assert state["updated_at"] == state["messages"][-1]["ts"]
    thinking, text, tool = state["messages"][1]["blocks"]
    assert thinking["provider"]["encrypted_content"].startswith("enc+/")
    assert text["text"] == "I shall read them."
    assert (tool["name"], tool["status"], tool["output"]) == ("exec_command", "error", "The tide is at four.\n")
    image = state["messages"][3]["blocks"][0]
    shown = await server.http.get(image["url"])
    assert (shown.status_code, shown.headers["content-type"]) == (200, "image/png")


@pytest.mark.parametrize(("program", "session"), [("claude", CLAUDE), ("codex", CODEX), ("pi", PI)])
async def test_imported_conversation_is_continued_by_the_program_that_wrote_it(
    server: Served, home: Path, program: str, session: str
) -> None:
    await bring(server, home, program)
    state = msgspec.convert(await only(server, "Look at the notes, please."), State)

    going_on = handover(state, program, "next", QUOTING)

    assert (going_on.session, going_on.lost) == (session, ())
    assert "The tide comes at four" not in going_on.record
    assert handover(state, "another", "next", QUOTING).session is None


async def test_search_finds_what_was_imported(server: Served, home: Path) -> None:
    await bring(server, home, "claude")

    hits = (await server.http.get("/api/search", params={"q": "answered three"})).json()["items"]

    assert {(hit["title"], hit["role"]) for hit in hits} == {
        ("Look at the notes, please.", "user"),
        ("Look at the notes, please.", "assistant"),
    }


async def test_session_that_grew_gets_its_new_part(server: Served, home: Path) -> None:
    path = next((home / ".pi").rglob("*.jsonl"))
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-2]))
    await bring(server, home, "pi")
    before = await only(server, "Look at the notes, please.")
    path.write_bytes(whole)

    dry = await bring(server, home, "pi", "--dry-run")
    code, _, err = await bring(server, home, "pi")
    after = await only(server, "Look at the notes, please.")
    again = await bring(server, home, "pi")

    assert dry[1].startswith("grown\t5 messages")
    assert code == 0
    assert "1 grew since the last import" in err
    assert [one["id"] for one in after["messages"][:3]] == [one["id"] for one in before["messages"]]
    assert [one["blocks"][0]["text"].partition("\n!")[0] for one in after["messages"][3:]] == [
        '<file name="/home/ada/dot.png"></file>\nAnd this picture?',
        "A single dot.",
    ]
    assert "1 known already" in again[2]
    assert (await server.http.get("/api/search", params={"q": "single dot"})).json()["items"]
    assert after == await only(server, "Look at the notes, please.")
    assert not (await server.app.log.verify(after["conversation"])).damages


async def test_conversation_that_went_on_here_is_left_as_it_is(server: Served, home: Path) -> None:
    path = next((home / ".pi").rglob("*.jsonl"))
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-2]))
    await bring(server, home, "pi")
    conversation = (await only(server, "Look at the notes, please."))["conversation"]
    sent = await server.send(conversation, "and here?")
    await server.settled(conversation, after=sent["seq"] - 1)
    before = await server.state(conversation)
    path.write_bytes(whole)

    code, _, err = await bring(server, home, "pi")

    assert code == 0
    assert "1 went on here" in err
    assert await server.state(conversation) == before


async def test_grown_conversation_goes_on_with_an_open_owner(server: Served, home: Path) -> None:
    path = next((home / ".pi").rglob("*.jsonl"))
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-2]))
    await bring(server, home, "pi")
    conversation = (await only(server, "Look at the notes, please."))["conversation"]
    await server.command(conversation, type="update_conversation", title="Mine")
    path.write_bytes(whole)

    await bring(server, home, "pi")
    sent = await server.send(conversation, "and here?")
    await server.settled(conversation, after=sent["seq"] - 1)
    state = await server.state(conversation)

    assert (state["title"], len(state["messages"])) == ("Mine", 7)


async def test_session_that_reads_differently_is_left_as_it_is(server: Served, home: Path) -> None:
    path = next((home / ".pi").rglob("*.jsonl"))
    await bring(server, home, "pi")
    before = await only(server, "Look at the notes, please.")
    path.write_bytes(path.read_bytes().replace(b"I shall read them.", b"I have read them."))

    code, _, err = await bring(server, home, "pi")

    assert code == 0
    assert "1 differ" in err
    assert await only(server, "Look at the notes, please.") == before


async def test_dry_run_lists_and_makes_nothing(server: Served, home: Path) -> None:
    code, out, err = await bring(server, home, "claude", "--dry-run")

    assert code == 0
    assert sorted(line.split("\t")[0::4] for line in out.splitlines()) == [
        ["made", "Let a helper count."],
        ["made", "Look at the notes, please."],
    ]
    assert f"{CLAUDE}.jsonl" in out
    assert "8 messages\t" in out
    assert "would be added" in err
    assert await listed(server) == []


async def test_only_what_is_wanted_is_imported(server: Served, home: Path, tmp_path: Path) -> None:
    old = home / f".claude/projects/-home-ada-harbour/{HELPED}.jsonl"
    os.utime(old, (1_700_000_000, 1_700_000_000))

    elsewhere = await bring(server, home, "claude", "--project", str(tmp_path / "other"))
    nothing = await bring(server, home, "claude", "--since", "2100-01-01")
    recent = await bring(server, home, "claude", "--since", "2026-01-01", "--project", str(home))

    assert "2 about other folders" in elsewhere[2]
    assert (nothing[0], "no history of claude" in nothing[2]) == (1, True)
    assert "1 new" in recent[2]
    assert [row["title"] for row in await listed(server)] == ["Look at the notes, please."]


async def test_broken_lines_and_files_are_counted_and_keep_nothing_back(server: Served, home: Path) -> None:
    path = home / f".claude/projects/-home-ada-harbour/{CLAUDE}.jsonl"
    path.write_bytes(b'{"type":\n' + path.read_bytes() + b"\xff\xff\n")
    (home / "harbour/.refact/trajectories/torn.json").write_bytes(b'{"id": "torn"')

    claude = await bring(server, home, "claude")
    refact = await bring(server, home, "refact")

    assert claude[0] == 0
    assert "2 new" in claude[2]
    assert "2 lines could not be read and were skipped" in claude[2]
    assert refact[0] == 1
    assert "1 new" in refact[2]
    assert "torn.json: This is not valid JSON" in refact[2]
    assert len(await listed(server)) == 3


async def test_folder_that_is_gone_becomes_the_servers(server: Served, home: Path, tmp_path: Path) -> None:
    shutil.copytree(home, tmp_path / "moved")
    shutil.rmtree(home)
    (tmp_path / "moved/harbour").mkdir(exist_ok=True)

    await bring(server, tmp_path / "moved", "codex")

    assert (await only(server, "Look at the notes, please."))["project"] == str(tmp_path / "data-workspace")


# -- what the page uses


async def test_server_tells_what_could_be_imported(tmp_path: Path, home: Path) -> None:
    async with serving(tmp_path / "data", environment={"HOME": str(home)}) as server:
        found = (await server.http.get("/api/import/found")).json()["items"]

    assert [(one["program"], one["count"]) for one in found] == [("claude", 2), ("codex", 1), ("pi", 1)]
    assert all(one["newest"] > 0 and one["size_bytes"] > 0 and not one["more"] for one in found)


async def test_server_without_other_programs_finds_nothing(server: Served) -> None:
    assert (await server.http.get("/api/import/found")).json() == {"items": []}


async def test_server_imports_by_itself_and_tells_how_far_it_is(tmp_path: Path, home: Path) -> None:
    async with serving(tmp_path / "data", environment={"HOME": str(home)}) as server:
        answer = await server.http.post("/api/import/claude")
        again = await server.http.post("/api/import/claude")
        rows = await listed(server)

    lines = [msgspec.json.decode(line) for line in answer.content.splitlines()]
    assert [(line["done"], line["of"]) for line in lines] == [(0, 2), (1, 2), (2, 2)]
    assert {line["taken"]["outcome"] for line in lines[1:]} == {"made"}
    assert {msgspec.json.decode(line)["taken"]["outcome"] for line in again.content.splitlines()[1:]} == {"known"}
    assert sorted(row["id"] for row in rows) == sorted(line["taken"]["conversation"] for line in lines[1:])


@pytest.mark.parametrize(
    ("path", "body", "status", "word"),
    [
        ("/api/import/word", b"", 404, "claude, codex, pi, refact"),
        ("/api/import/claude?agent=nobody", b"", 404, "nobody"),
        ("/api/import/conversations?agent=nobody", b"", 404, "nobody"),
        ("/api/import/conversations", b'{"program": "word"}', 400, "Line 1"),
        ("/api/import/conversations", b"\n".join([b"{}"] * 501), 413, "500"),
    ],
)
async def test_import_that_cannot_be_done_is_refused_in_words(
    shared: Served, path: str, body: bytes, status: int, word: str
) -> None:
    answer = await shared.http.post(path, content=body)

    assert answer.status_code == status, answer.text
    assert word in answer.json()["message"]


async def test_conversation_nested_too_deep_is_refused_alone(shared: Served) -> None:
    deep: Any = 1
    for _ in range(80):
        deep = [deep]
    tool = {"type": "tool", "index": 0, "call": "c", "name": "x", "status": "ok", "input": deep}
    message = {"id": "1", "role": "assistant", "seq": 1, "updated_seq": 1, "ts": 1, "blocks": [tool]}
    plain = {**message, "role": "user", "blocks": [{"type": "text", "index": 0, "text": "hi"}]}
    lines = [{"program": "pi", "session": name, "messages": [one]} for name, one in (("d", message), ("p", plain))]

    answer = await shared.http.post("/api/import/conversations", content=b"\n".join(map(msgspec.json.encode, lines)))

    refused, made = answer.json()["items"]
    assert (refused["outcome"], made["outcome"]) == ("refused", "made")
    assert "levels deep" in refused["note"]
