"""The command line in pipes and in time: what goes in, what comes out, when it ends, and how it is stopped."""

import asyncio
import base64
import shlex
import signal
from pathlib import Path

import msgspec
import pytest

from palaver.backends.script.script import Fail, Prompt, Say, Step, Tool, Wait
from palaver.errors import ProviderRefused
from palaver.people.authentication import KeyRecord, token_hash
from palaver.people.token_files import write_key_records
from tests.flows.served import LOOK_EVERY_S, Served, serving
from tests.flows.terminal import PROGRAM, SLOW_S, environment, in_terminal, palaver

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def echo(prompt: Prompt) -> list[Step]:
    return [Say(f"{prompt.image_count}|{prompt.text}")]


async def piped(data: Path, line: str) -> tuple[int, str, str]:
    """A line for a shell that stops at the first failure within a pipe; `palaver` in it is ours."""
    function = f'palaver() {{ {shlex.join(PROGRAM)} "$@"; }}; set -o pipefail; {line}'
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", function),
        env=environment(data),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=data,
    )
    async with asyncio.timeout(SLOW_S):
        out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def test_words_and_what_is_piped_in_are_sent_together(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data, echo) as server:
        where = ("--url", server.url)
        assert (await palaver(data, "send", "Review", "this:", "-", *where, stdin="+ line\n"))[1] == (
            "0|Review this:\n\n+ line\n"
        )
        code, out, _ = await piped(data, f"echo from a file > f; palaver send - --url {server.url} < f | tr a-z A-Z")
        assert (code, out) == (0, "0|FROM A FILE\n")
        assert (await palaver(data, "send", "-", *where, stdin=" \n"))[0] == 2


async def test_reader_that_has_seen_enough_ends_a_command_without_a_word(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data, [Say("word " * 20_000)]) as server:
        conversation = await server.create(message="go")
        await server.settled(conversation)
        for command in ("show last --full", "tail last --json --after 0", "export last", "list --json", "send go"):
            code, _, err = await piped(data, f"palaver {command} --url {server.url} | head -c 1")
            assert (code, err.replace(f"conversation {conversation}\n", "")) == (0, ""), command


async def test_picture_folder_agent_and_mode_go_with_a_message(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", tmp_path / "project"
    folder.mkdir()
    (tmp_path / "shot.png").write_bytes(PNG)
    async with serving(data, echo) as server:
        wishes = ("--image", str(tmp_path / "shot.png"), "--folder", str(folder), "--agent", "other", "--mode", "plan")
        code, out, err = await palaver(data, "send", "look", *wishes, "--url", server.url)
        assert (code, out) == (0, "1|look\n")
        state = await server.state(err.split()[-1])
        assert (state["project"], state["agent"]) == (str(folder), "other")
        code, _, err = await palaver(data, "send", "look", "--agent", "othr", "--url", server.url)
        assert (code, "Did you mean “other”?" in err) == (6, True)
        code, _, err = await palaver(data, "send", "look", "--image", "missing.png", "--url", server.url)
        assert (code, "missing.png" in err) == (2, True)
        assert len((await server.http.get("/api/conversations")).json()["items"]) == 1


async def test_send_without_waiting_prints_where_and_the_turn_goes_on(server: Served, tmp_path: Path) -> None:
    data, where = tmp_path / "data", ("--url", server.url)
    code, out, err = await palaver(data, "send", "--no-wait", "hello", *where)
    assert (code, err) == (0, "")
    await server.settled(out.strip())
    sent = msgspec.json.decode((await palaver(data, "send", "--no-wait", "--json", "-c", "last", "again", *where))[1])
    assert sent["conversation"] == out.strip()


async def test_tools_are_told_beside_the_answer(tmp_path: Path) -> None:
    data = tmp_path / "data"
    script: list[Step] = [
        Tool("shell", {"command": "make"}, output="built"),
        Tool("read", {"path": "x.py"}, ok=False, error="No such file."),
        Say("Done."),
    ]
    async with serving(data, script) as server:
        code, out, err = await palaver(data, "send", "go", "--url", server.url)
        assert (code, out) == (0, "Done.\n")
        assert err.splitlines()[:3] == ["▸ shell make", "▸ read x.py", "✗ read failed: No such file."]


async def test_every_end_of_a_turn_has_its_code(tmp_path: Path) -> None:
    data = tmp_path / "data"

    def script(prompt: Prompt) -> list[Step]:
        if prompt.text == "fail":
            return [Fail(ProviderRefused("The provider refused the key."))]
        return [Say("half "), Wait("gate"), Say("whole")]

    async with serving(data, script) as server:
        where = ("--url", server.url)
        assert (await palaver(data, "send", "fail", *where))[0] == 1
        code, _, err = await palaver(data, "send", "wait", "--timeout", "0.5", *where)
        assert (code, "tail -f" in err) == (8, True)
        sending = asyncio.create_task(palaver(data, "send", "stop", "--json", *where))
        await server.command(await running(server, "stop"), type="interrupt")
        code, _, err = await sending
        assert (code, "interrupted" in err) == (4, True)


async def running(server: Served, title: str) -> str:
    """The conversation of this title, once its turn runs."""
    async with asyncio.timeout(SLOW_S):
        while True:
            for row in (await server.http.get("/api/conversations")).json()["items"]:
                if row["title"] == title and row["turn"]:
                    return str(row["id"])
            await asyncio.sleep(LOOK_EVERY_S)


async def test_ctrl_c_stops_the_turn_of_send(tmp_path: Path) -> None:
    data = tmp_path / "data"
    script: list[Step] = [Say("half "), Wait("gate"), Say("whole")]
    async with serving(data, script) as server, in_terminal(data, "send", "go", "--url", server.url) as terminal:
        await terminal.until("half")
        terminal.interrupt()
        assert await terminal.ended() == 4
        await terminal.until("interrupted")


async def test_tail_follows_what_happens_until_it_is_interrupted(tmp_path: Path) -> None:
    data = tmp_path / "data"
    script: list[Step] = [Say("first "), Wait("gate"), Tool("shell", {"command": "make"}, output="ok"), Say("second")]
    async with serving(data, script) as server:
        conversation = await server.create(message="go")
        await server.agent.reached("gate")
        async with in_terminal(data, "tail", "-f", "last", "--url", server.url, NO_COLOR="1") as terminal:
            await terminal.until("first")
            server.agent.open_gate("gate")
            await terminal.until("▸ shell make")
            await terminal.until("second")
            await server.send(conversation, "more")
            await terminal.until("more")
            terminal.interrupt()
            assert await terminal.ended() == 130


async def test_tail_as_json_follows_event_by_event(server: Served, tmp_path: Path) -> None:
    data = tmp_path / "data"
    conversation = await server.create()
    process = await asyncio.create_subprocess_exec(
        *(*PROGRAM, "tail", "-f", conversation, "--json", "--after", "0", "--url", server.url),
        env=environment(data),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    seqs: list[int] = []
    async with asyncio.timeout(SLOW_S):
        kind = ""
        while kind != "turn.finished":
            event = msgspec.json.decode(await process.stdout.readline())
            kind = event["type"]
            seqs.append(event["seq"])
            if kind == "conversation.created":
                await server.send(conversation, "hello")
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
    assert seqs == list(range(1, len(seqs) + 1))


@pytest.mark.parametrize(
    ("command", "environment_", "code"),
    [
        (("list", "--url", "http://127.0.0.1:9"), {}, 3),
        (("list",), {"PALAVER_TOKEN": "wrong"}, 5),
        (("list", "--token", "wrong"), {}, 5),
        (("send", "hello"), {"PALAVER_TOKEN": "observer-token"}, 5),
        (("show", "nobody"), {}, 6),
        (("agents", "show", "nobody"), {}, 6),
        (("requests", "answer", "last", "allow"), {}, 6),
        (("missions", "clear"), {}, 7),
        (("show", "--last", "x"), {}, 2),
        (("tail", "--after", "3"), {}, 2),
        (("list",), {"PALAVER_TOKEN": "observer-token"}, 0),
    ],
)
async def test_refusals_have_their_codes_and_a_sentence(
    tmp_path: Path, command: tuple[str, ...], environment_: dict[str, str], code: int
) -> None:
    data, folder = tmp_path / "data", tmp_path / "project"
    data.mkdir(mode=0o700)
    folder.mkdir()
    write_key_records(data, [KeyRecord(name="eye", kind="observer", hash=token_hash("observer-token"))])
    async with serving(data) as server:
        got, out, err = await palaver(data, *command, folder=str(folder), **{"PALAVER_URL": server.url, **environment_})
    assert (got, out) == (code, "")
    assert code in (0, 2) or (err.startswith("palaver: ") and len(err.splitlines()) == 1)


async def test_ids_and_names_are_completed_from_the_running_server(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data) as server:
        await server.create(id="north-1", title='"; $(touch pwned) `touch pwned` \\$(touch pwned) \x1b[2J')
        where = {"PALAVER_URL": server.url}

        async def offered(line: str, shell: str = "bash") -> str:
            words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1), "_TYPER_COMPLETE_ARGS": line}
            more = {**words, "_PALAVER_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
            code, out, err = await palaver(data, **where, **more)
            assert (code, err) == (0, "")
            return out.strip()

        assert (await offered("palaver show ")).split() == ["last", "north-1"]
        assert (await offered("palaver send -a o")).split() == ["other"]
        for shell in ("zsh", "fish"):
            out = await offered("palaver show nor", shell)
            assert "north-1" in out
            assert not set("$`\\;\x1b") & set(out)


async def test_palaver_alone_in_a_terminal_is_the_terminal_ui(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("x" * 43)
    async with in_terminal(tmp_path, PALAVER_URL="http://127.0.0.1:9") as terminal:
        await terminal.until("No Palaver answers at http://127.0.0.1:9")
        assert await terminal.ended() == 1
