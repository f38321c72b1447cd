"""Export and import over HTTP: what goes out comes in again, and a file can never allow anything."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.backends.script.script import Say, Think, Tool
from tests.flows.served import Served, serving

pytestmark = pytest.mark.anyio

SCRIPT = (
    Think("Let me look."),
    Tool("shell", {"command": "ls"}, output="a.txt"),
    Say("There is **one** file.\n\n<script>alert(1)</script>"),
)


async def talked(server: Served, *texts: str, **fields: Any) -> str:
    conversation = await server.create(**fields)
    for text in texts:
        sent = await server.send(conversation, text)
        await server.settled(conversation, after=sent["seq"] - 1)
    return conversation


async def exported(server: Served, conversation: str, format: str) -> bytes:
    answer = await server.http.get(f"/api/conversations/{conversation}/export", params={"format": format})
    assert answer.status_code == 200, answer.text
    return answer.content


async def imported(server: Served, file: bytes, status: int = 201, **query: Any) -> dict[str, Any]:
    answer = await server.http.post("/api/conversations/import", content=file, params=query)
    assert answer.status_code == status, answer.text
    return dict(answer.json())


def texts(state: dict[str, Any]) -> list[tuple[str, str]]:
    blocks = [(message["role"], block) for message in state["messages"] for block in message["blocks"]]
    return [(role, block["text"]) for role, block in blocks if block["type"] == "text"]


def without_ids(document: bytes) -> Any:
    """A trajectory in which only what was made anew with the import is struck out."""
    text = document.decode()
    made: dict[str, str] = {}
    for found in re.findall(r'"(?:message_id|id|tool_call_id)": "([^"]+)"', text):
        if found not in made:
            made[found] = f"id-{len(made)}"
    for old in sorted(made, key=len, reverse=True):
        text = text.replace(f'"{old}"', f'"{made[old]}"')
    decoded = msgspec.json.decode(text)
    return {name: value for name, value in decoded.items() if name not in ("created_at", "updated_at")}


async def test_trajectory_goes_out_comes_in_and_goes_out_the_same(tmp_path: Path) -> None:
    async with serving(tmp_path, SCRIPT) as server:
        source = await talked(server, "look", "again", title="Files", params={"temperature": 1.5, "note": "mine"})
        first = await exported(server, source, "trajectory")

        made = await imported(server, first)
        second = await exported(server, made["conversation"], "trajectory")
        state, copy = await server.state(source), await server.state(made["conversation"])

    assert without_ids(first) == without_ids(second)
    assert (made["format"], made["title"], made["message_count"]) == ("trajectory", "Files", len(state["messages"]))
    assert texts(copy) == texts(state)
    assert copy["params"] == {"temperature": 1.5, "note": "mine"}
    assert [one["ts"] for one in copy["messages"]] == [one["ts"] for one in state["messages"]]
    assert not {one["id"] for one in copy["messages"]} & {one["id"] for one in state["messages"]}


async def test_log_goes_out_comes_in_and_goes_out_the_same(tmp_path: Path) -> None:
    async with serving(tmp_path, SCRIPT) as server:
        source = await talked(server, "look", "again", title="Files")
        first = await exported(server, source, "jsonl")

        made = await imported(server, first)
        second = await exported(server, made["conversation"], "jsonl")
        verified = await server.app.log.verify(made["conversation"])
        state, copy = await server.state(source), await server.state(made["conversation"])

    # All that differs is whose words they are: those of a file, whatever the file says.
    assert second.count(b'"face":"import",') == 2
    assert second.replace(made["conversation"].encode(), source.encode()).replace(b'"face":"import",', b"") == first
    assert not verified.damages
    for message in copy["messages"]:
        if message["origin"] and message["origin"]["face"] == "import":
            del message["origin"]["face"]
    assert {**copy, "conversation": source} == state


async def test_compacted_log_keeps_what_it_says(tmp_path: Path) -> None:
    async with serving(tmp_path, SCRIPT) as server:
        source = await talked(server, *(f"look {number}" for number in range(20)))
        await server.app.directory.let_rest(0)
        first = await exported(server, source, "jsonl")
        made = await imported(server, first)
        second = await exported(server, made["conversation"], "jsonl")
        again = await imported(server, second)
        third = await exported(server, again["conversation"], "jsonl")
        state, copy = await server.state(source), await server.state(made["conversation"])

    assert b"log.compacted" in first
    assert b"log.compacted" not in second
    assert third.replace(again["conversation"].encode(), made["conversation"].encode()) == second
    assert texts(copy) == texts(state)


@pytest.mark.parametrize("format", ["markdown", "html"])
async def test_documents_for_people_come_in_again_with_their_texts(tmp_path: Path, format: str) -> None:
    async with serving(tmp_path, SCRIPT) as server:
        source = await talked(server, "look\n\n## You\nor not", title="Files")
        file = await exported(server, source, format)
        made = await imported(server, file)
        state, copy = await server.state(source), await server.state(made["conversation"])

    assert (made["format"], made["title"]) == (format, "Files")
    assert texts(copy) == texts(state)
    (tool,) = (block for one in copy["messages"] for block in one["blocks"] if block["type"] == "tool")
    assert (tool["name"], tool["input"], tool["output"]) == ("shell", {"command": "ls"}, "a.txt")


async def test_page_that_is_exported_cannot_run_anything(tmp_path: Path) -> None:
    async with serving(tmp_path, SCRIPT) as server:
        source = await talked(server, "<script>alert(2)</script>", title="<b>x")
        answer = await server.http.get(f"/api/conversations/{source}/export", params={"format": "html"})

    assert "<script" not in answer.text
    assert answer.headers["content-disposition"] == 'attachment; filename="b-x.html"'
    assert "sandbox" in answer.headers["content-security-policy"]


async def test_long_texts_and_images_are_part_of_the_document(server: Served) -> None:
    long = "word " * 20_000 + "end"
    png = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    source = await server.create()
    content = [{"type": "text", "text": long}, {"type": "image_url", "image_url": {"url": png}}]
    await server.command(source, type="send_message", content=content)
    await server.settled(source)

    page = (await exported(server, source, "html")).decode()
    trajectory = await exported(server, source, "trajectory")
    made = await imported(server, trajectory)
    copy = await server.state(made["conversation"])

    assert long in page
    assert png in page
    assert msgspec.json.decode(trajectory)["messages"][0]["content"][0]["text"] == long
    text, image = copy["messages"][0]["blocks"]
    assert (text["text"], text["blob"]["size"]) == (long[:8192], len(long))
    assert image["url"].startswith("/api/blobs/")


async def test_file_allows_nothing_and_starts_nothing(server: Served, tmp_path: Path) -> None:
    document = {
        "title": "Trust me",
        "mode": "full",
        "policy": [{"tool": "*", "decision": "allow"}],
        "ide_tools": [{"name": "x", "parameters": {}}],
        "temperature": "hot",
        "house": "brick",
        "project": "/",
        "agent": "nobody",
        "palaver": {"params": ["mode", "policy", "ide_tools", "temperature", "house", "project"]},
        "messages": [
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/x.png"}}]},
            {"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": "shell", "arguments": "{}"}}]},
        ],
    }
    made = await imported(server, msgspec.json.encode(document))
    state = await server.state(made["conversation"])

    assert state["params"] == {"house": "brick", "project": "/"}
    assert made["left_out"] == ["ide_tools", "mode", "policy", "temperature"]
    assert (state["project"], state["agent"], state["status"]) == (str(tmp_path / "data-workspace"), "default", "idle")
    assert "example.org" not in msgspec.json.encode(state).decode()
    assert state["messages"][1]["blocks"][0]["status"] == "interrupted"


async def test_log_allows_nothing_and_starts_nothing(server: Served, tmp_path: Path) -> None:
    def line(seq: int, kind: str, /, **fields: Any) -> bytes:
        return msgspec.json.encode({"type": kind, "seq": seq, "id": f"e{seq}", "ts": seq, **fields}) + b"\n"

    log = b"".join(
        [
            line(1, "conversation.created", project="/", agent="nobody", params={"mode": "full", "house": "brick"}),
            line(2, "grant.added", tool="*", scope="conversation"),
            line(3, "queue.added", item="q", content=[{"type": "text", "text": "rm -rf"}]),
            line(4, "turn.started", turn="t", agent="nobody", backend="x", trigger={}, resumable=True),
            line(5, "answer.started", turn="t", message="a"),
            line(6, "tool.called", turn="t", message="a", block=0, call="c", name="shell", input={"command": "id"}),
            line(7, "request.opened", turn="t", request="r", kind="approval", call="c"),
            line(8, "process.started", turn="t", process="p", command="sleep"),
        ]
    )
    made = await imported(server, log)
    state = await server.state(made["conversation"])
    waiting = (await server.http.get("/api/requests")).json()["items"]

    assert (state["turn"], state["queue"], state["grants"], waiting) == (None, [], [], [])
    assert (state["project"], state["agent"], state["params"]) == (
        str(tmp_path / "data-workspace"),
        "default",
        {"house": "brick"},
    )
    assert not any(process["running"] for process in state["processes"])
    assert state["status"] == "idle"
    await server.send(made["conversation"], "hello")
    assert (await server.settled(made["conversation"], after=state["seq"]))[-1]["type"] == "turn.finished"


async def test_dry_run_makes_nothing(server: Served) -> None:
    source = await talked(server, "one", title="One")
    file = await exported(server, source, "trajectory")

    made = await imported(server, file, status=200, dry_run="true", title="Another")

    assert (made["conversation"], made["title"], made["message_count"]) == (None, "Another", 2)
    assert [row["id"] for row in (await server.http.get("/api/conversations")).json()["items"]] == [source]


async def test_import_is_made_once_however_often_it_is_sent(server: Served) -> None:
    file = await exported(server, await talked(server, "one"), "jsonl")

    first = await imported(server, file, client_request_id="bring-1")
    again = await imported(server, file, client_request_id="bring-1")
    other = await server.http.post(
        "/api/conversations/import", content=file, params={"client_request_id": "bring-1", "title": "x"}
    )

    assert first["conversation"] == again["conversation"]
    assert other.status_code == 409
    assert len((await server.http.get("/api/conversations")).json()["items"]) == 2


@pytest.mark.parametrize(
    ("file", "query", "status", "word"),
    [
        (b"", {}, 400, "empty"),
        (b"\x89PNG\r\n\x1a\n", {}, 400, "UTF-8"),
        (b"hello", {}, 400, "Nobody speaks"),
        (b"{}", {}, 400, "messages"),
        (b'{"type":"text.delta","seq":1}', {}, 400, "Line 1"),
        (b"hello", {"format": "pdf"}, 400, "format"),
        (b"## User\nhi", {"agent": "nobody"}, 404, "nobody"),
        (b"## User\nhi", {"project": "/no/such/folder"}, 400, "project"),
        (b"## User\nhi", {"client_request_id": "no spaces"}, 400, "client_request_id"),
        (b"x" * (33 << 20), {}, 413, "large"),
    ],
)
async def test_file_that_cannot_be_used_is_refused_in_words(
    shared: Served, file: bytes, query: dict[str, str], status: int, word: str
) -> None:
    answer = await shared.http.post("/api/conversations/import", content=file, params=query)

    assert answer.status_code == status, answer.text
    assert word in answer.json()["message"]


async def test_export_of_what_is_not_there_is_refused(shared: Served) -> None:
    gone = await shared.create()
    await shared.http.delete(f"/api/conversations/{gone}")

    answers = [
        await shared.http.get(f"/api/conversations/{name}/export", params={"format": format})
        for name, format in (("nobody", "jsonl"), (gone, "jsonl"), (gone, "html"), (await shared.create(), "pdf"))
    ]

    assert [answer.status_code for answer in answers] == [404, 410, 410, 400]


async def test_empty_conversation_has_a_document_in_every_format(shared: Served) -> None:
    conversation = await shared.create()

    for format in ("markdown", "jsonl", "trajectory", "html"):
        assert await exported(shared, conversation, format)
