"""Keeping and giving out on the command line: files in and out, copies, tokens, missions, as programs read them."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import msgspec

from palaver.cli.support.json_output import PRINTED
from tests.browser.served import free_port
from tests.flows.served import Served
from tests.flows.terminal import SLOW_S, in_terminal, palaver
from tests.flows.test_serve import started


async def printed(data: Path, words: str, *more: str, code: int = 0) -> Any:
    """What `--json` prints, held to the names that are written down."""
    got, out, err = await palaver(data, *words.split(), *more, "--json")
    assert got == code, err
    form, names = PRINTED[words].form, set(PRINTED[words].names)
    found = [msgspec.json.decode(line) for line in out.splitlines()]
    if form != "lines":
        (found,) = found
    for one in [found] if form == "document" else found:
        assert set(one) == names, words
    return found


async def test_conversations_go_out_and_come_back_with_a_report(server: Served, tmp_path: Path) -> None:
    data, where = tmp_path / "data", ("--url", server.url)
    made = [await server.create(message=f"talk {number}") for number in range(2)]
    for conversation in made:
        await server.settled(conversation)
    (one,) = await printed(data, "export", made[0], "-f", "html", "-o", str(tmp_path / "one.html"), *where)
    assert (one["conversation"], one["size_bytes"]) == (made[0], (tmp_path / "one.html").stat().st_size)
    both = await printed(data, "export", "--all", str(tmp_path / "all"), "-f", "jsonl", *where)
    assert {report["conversation"] for report in both} == set(made)
    brought = await printed(data, "import", str(tmp_path / "all"), *where)
    assert len({report["conversation"] for report in brought} - set(made)) == 2
    _, events, _ = await palaver(data, "export", made[0], "--json", *where)
    assert msgspec.json.decode(events.splitlines()[0])["type"] == "conversation.created"


async def test_import_shows_a_bar_in_a_terminal_and_its_ids_in_a_pipe(server: Served, tmp_path: Path) -> None:
    data, where = tmp_path / "data", ("--url", server.url)
    for number in range(2):
        await server.settled(await server.create(message=f"talk {number}"))
    assert (await palaver(data, "export", "--all", str(tmp_path / "all"), "-f", "jsonl", *where))[0] == 0
    async with in_terminal(data, "import", str(tmp_path / "all"), *where) as terminal:
        assert await terminal.ended() == 0
        await terminal.until("Importing")
    code, out, _ = await palaver(data, "import", str(tmp_path / "all"), *where)
    assert (code, len(out.split())) == (0, 2)


async def test_copy_and_check_are_reported(server: Served, tmp_path: Path) -> None:
    data = tmp_path / "data"
    await server.settled(await server.create(message="keep this"))
    copied = await printed(data, "backup", str(tmp_path / "copy"))
    assert copied["size_bytes"] == sum(path.stat().st_size for path in (tmp_path / "copy").rglob("*") if path.is_file())
    checked = await printed(data, "verify", "--data", str(tmp_path / "copy"))
    assert (checked["conversations"], checked["damages"]) == (1, [])
    assert (await palaver(tmp_path / "copy", "verify", "--data", str(tmp_path)))[0] == 1


async def test_tokens_are_reported_and_a_taken_name_is_a_conflict(server: Served, tmp_path: Path) -> None:
    data = tmp_path / "data"
    ada = await printed(data, "token create", "--role", "observer", "--name", "Ada")
    assert (await palaver(data, "token", "create", "--role", "human", "--name", "Ada"))[0] == 7
    assert await printed(data, "token list") == [{"name": "Ada", "role": "observer"}]
    assert (await palaver(data, "list", "--token", ada["token"], "--url", "http://127.0.0.1:9"))[0] == 3
    assert await printed(data, "token revoke", "Ada") == {"name": "Ada", "revoked": True}
    assert (await palaver(data, "token", "revoke", "Ada"))[0] == 6


async def test_missions_and_agents_are_reported(server: Served, tmp_path: Path) -> None:
    data, where, folder = tmp_path / "data", ("--url", server.url), tmp_path / "project"
    folder.mkdir()
    now = await printed(data, "missions set", "Tidy up", "--agent", "default", "--folder", str(folder), *where)
    assert (now["text"], now["active"]) == ("Tidy up", True)
    (past,) = await printed(data, "missions list", "--folder", str(folder), *where)
    assert past["text"] == "Tidy up"
    assert not (await printed(data, "missions clear", "--folder", str(folder), *where))["active"]
    assert (await printed(data, "agents show", "other", *where))["name"] == "Other"


async def test_model_is_reported_whether_it_is_there_or_not(tmp_path: Path) -> None:
    code, out, _ = await palaver(tmp_path, "model", "status", "--json")
    status = msgspec.json.decode(out)
    assert set(status) == set(PRINTED["model status"].names)
    assert code == (0 if status["installed"] else 6)


async def test_server_says_as_json_when_it_is_ready(tmp_path: Path) -> None:
    port = free_port()
    where = ("--port", str(port), "--data", str(tmp_path), "--json")
    async with started(*where) as process, asyncio.timeout(SLOW_S):
        assert process.stdout is not None
        ready = msgspec.json.decode(await process.stdout.readline())
        assert set(ready) == set(PRINTED["serve"].names)
        assert (ready["url"], "/#code=" in ready["link"]) == (f"http://127.0.0.1:{port}", True)
        assert (await palaver(tmp_path, "list", "--json"))[:2] == (0, "")
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
