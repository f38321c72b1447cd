"""The command line as a person uses it: the real program, a real server, real pipes."""

import asyncio
import os
from pathlib import Path

import msgspec

from palaver.backends.script.script import Fail, Say, Step, Tool
from palaver.errors import ProviderRefused
from tests.flows.served import Served, serving
from tests.flows.terminal import palaver


async def send(served: Served, data: Path, *arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    return await palaver(data, "send", "--url", served.url, *arguments, stdin=stdin)


async def test_send_prints_the_answer_and_nothing_else_to_standard_output(server: Served, tmp_path: Path) -> None:
    code, out, err = await send(server, tmp_path / "data", "hello")
    assert (code, out) == (0, "Hello there, how are you?\n")
    conversation = err.split()[-1]
    code, out, _ = await send(server, tmp_path / "data", "--conversation", conversation, "-", stdin="from a pipe")
    assert (code, out) == (0, "Hello there, how are you?\n")
    code, out, _ = await palaver(tmp_path / "data", "list", "--json", "--url", server.url)
    listed = [msgspec.json.decode(line) for line in out.splitlines()]
    assert [(row["id"], row["message_count"]) for row in listed] == [(conversation, 4)]


async def test_send_as_json_prints_the_events_of_the_turn(server: Served, tmp_path: Path) -> None:
    code, out, _ = await send(server, tmp_path / "data", "--json", "hello")
    kinds = [msgspec.json.decode(line)["type"] for line in out.splitlines()]
    assert code == 0
    assert kinds[0] == "turn.started"
    assert kinds[-1] == "turn.finished"


async def test_send_says_why_a_turn_failed_and_exits_with_failure(tmp_path: Path) -> None:
    failing = [Fail(ProviderRefused("The provider refused the key. Check ANTHROPIC_API_KEY."))]
    async with serving(tmp_path / "data", failing) as served:
        code, out, err = await send(served, tmp_path / "data", "hello")
        assert (code, out) == (1, "")
        assert "Check ANTHROPIC_API_KEY" in err


async def test_send_in_a_pipe_may_stay_while_an_approval_is_given_elsewhere(tmp_path: Path) -> None:
    script: list[Step] = [Tool("shell", {"command": "make"}, output="built", asks=True), Say("Done.")]
    async with serving(tmp_path / "data", script) as served:
        async with served.socket() as lines:
            await lines.say(type="follow_list")
            sending = asyncio.create_task(send(served, tmp_path / "data", "--stay", "build it"))
            while not any(row["open_requests"] for row in (await lines.next()).get("items", [])):
                pass
        waiting = (await served.http.get("/api/requests")).json()["items"][0]
        answer = {"request": waiting["request"]["id"], "verdict": "allow"}
        await served.command(waiting["conversation"], type="resolve_request", **answer)
        code, out, err = await sending
        assert (code, out) == (0, "Done.\n")
        assert "waiting for you" in err


async def test_commands_without_a_server_say_what_to_do(tmp_path: Path) -> None:
    code, _, err = await palaver(tmp_path, "list")
    assert code == 5
    assert "palaver serve" in err
    (tmp_path / "token").write_text("x" * 43)
    code, _, err = await palaver(tmp_path, "list", "--url", "http://127.0.0.1:9")
    assert code == 3
    assert "Is the server running?" in err
    code, _, err = await palaver(tmp_path, "send", "   ")
    assert code == 2


async def test_verify_and_backup_work_beside_a_running_server(server: Served, tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    conversation = await server.create(message="keep this")
    await server.settled(conversation)
    code, _, err = await palaver(data, "verify")
    assert (code, "all whole" in err) == (0, True)
    assert (await palaver(data, "backup", str(copy)))[0] == 0
    assert (await palaver(data, "backup", str(copy)))[0] == 1
    async with serving(copy) as restored:
        assert (await restored.state(conversation))["title"] == "keep this"


async def test_doctor_names_what_it_found(tmp_path: Path) -> None:
    code, out, _ = await palaver(tmp_path, "doctor", "--json")
    findings = {finding["what"]: finding for finding in msgspec.json.decode(out)}
    assert code == 0
    assert findings["agent demo"]["state"] == "ok"
    assert "Palaver" in findings


async def test_agents_are_listed_and_shown_without_their_secrets(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "agents").mkdir(parents=True)
    (data / "agents" / "digger.md").write_text("---\nname: Digger\nenvironment: {KEY: sk-1}\n---\nYou dig [deep].\n")
    (data / "agents" / "odd.md").write_text("---\nmode: berserk\n---\n")
    async with serving(data, environment={"PATH": os.environ["PATH"]}) as server:
        code, listed, problems = await palaver(data, "agents", "list", "--url", server.url)
        _, shown, _ = await palaver(data, "agents", "show", "digger", "--url", server.url)
        _, as_json, _ = await palaver(data, "agents", "show", "digger", "--json", "--url", server.url)
        missing, _, said = await palaver(data, "agents", "show", "nobody", "--url", server.url)
        checked, found, _ = await palaver(data, "doctor", "--json")

    rows = {line.split()[0]: line for line in listed.splitlines()}
    assert (code, rows["odd"].split()[-1], "`mode` is one of" in problems) == (0, "broken", True)
    assert {"default", "demo", "claude", "digger"} <= rows.keys()
    assert ("You dig [deep]." in shown, "KEY" in shown, "sk-1" in shown + as_json) == (True, True, False)
    assert msgspec.json.decode(as_json)["environment"] == {"KEY": True}
    assert (missing, "nobody" in said) == (6, True)
    findings = {finding["what"]: finding for finding in msgspec.json.decode(found)}
    assert (checked, findings["agent odd"]["state"]) == (1, "wrong")
    assert "odd.md" in findings["agent odd"]["says"]


async def test_doctor_says_of_each_program_whether_it_is_there_and_what_to_do(tmp_path: Path) -> None:
    code, out, _ = await palaver(tmp_path, "doctor", "--json")
    findings = {finding["what"]: finding for finding in msgspec.json.decode(out)}
    assert code == 0
    for program in ("claude", "codex", "pi"):
        found = findings[f"program {program}"]
        assert (found["state"], bool(found["fix"])) == ("note", True)
        assert "installed" in found["says"]


async def test_doctor_tells_agents_as_the_running_server_has_them(server: Served, tmp_path: Path) -> None:
    (tmp_path / "data" / "server.json").write_text(f'{{"url": "{server.url}"}}')
    code, out, _ = await palaver(tmp_path / "data", "doctor", "--json")
    findings = {finding["what"]: finding for finding in msgspec.json.decode(out)}
    # No file here speaks of this agent: only the server knows it.
    assert (code, findings["agent other"]["state"]) == (0, "ok")
    assert "0 conversations; agents and programs are told as it sees them" in findings["server"]["says"]


async def test_doctor_lets_agents_of_the_running_server_answer(server: Served, tmp_path: Path) -> None:
    (tmp_path / "data" / "server.json").write_text(f'{{"url": "{server.url}"}}')
    code, out, err = await palaver(tmp_path / "data", "doctor", "--json", "--test")
    findings = {finding["what"]: finding for finding in msgspec.json.decode(out)}
    assert code == 0
    assert findings["test default"]["says"].endswith("Hello there, how are you?")
    assert findings["test other"]["state"] == "ok"
    assert err.splitlines() == ["Testing default (1 of 2) …", "Testing other (2 of 2) …"]
    code, out, _ = await palaver(tmp_path / "data", "doctor", "--json", "--test", "nobody")
    assert (code, "No agent is called" in out) == (1, True)


def logs_in(data: Path) -> list[Path]:
    return list(data.glob("palaver.db*"))


async def test_doctor_lets_an_agent_answer_without_a_server_and_keeps_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "keyless.md").write_text("---\nbackend: api\n---\n")
    (tmp_path / "server.json").write_text('{"url": "http://127.0.0.1:9"}')
    code, out, err = await palaver(tmp_path, "doctor", "--json", "--test", "demo", "keyless")
    findings = {finding["what"]: finding for finding in msgspec.json.decode(out)}
    assert code == 1
    assert findings["test demo"]["state"] == "ok"
    assert findings["test keyless"]["state"] == "wrong"
    assert "No model service is set up" in findings["test keyless"]["says"]
    assert len(err.splitlines()) == 2
    assert not logs_in(tmp_path)
