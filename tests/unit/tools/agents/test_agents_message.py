"""The tool `agents_message`: the contract's names in both directions, and when it may be used."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.approval.policy import Mode, Policy
from palaver.tools.agents.agents_message import AGENTS_NAMED, OUTPUT_CHARS, AgentsMessage
from palaver.tools.base import Letter, Reply, ToolResult
from palaver.tools.shell.sandbox import unsandboxed
from palaver.tools.toolbox import Toolbox, built_in_tools
from tests.unit.tools.workshop import Listener, Workshop

pytestmark = pytest.mark.anyio


def known(folder: str | None) -> list[tuple[str, str]]:
    own = [("gardener", "knows this garden")] if folder == "/garden" else []
    return [("digger", "digs"), ("mute", ""), *own]


TOOL = AgentsMessage(known)


def read(result: ToolResult) -> dict[str, Any]:
    return dict(msgspec.json.decode(result.output))


async def test_letter_has_what_the_call_says_and_the_contracts_defaults(tmp_path: Path) -> None:
    host = Listener()
    shop = Workshop(tmp_path, host)
    await shop.run(TOOL, agentId="digger", content="Dig")
    await shop.run(TOOL, agentId="digger", content="Dig", session="c-7", mode="async", timeout=5)
    assert host.letters == [
        Letter("digger", "Dig", "latest-or-create", True, 300.0),
        Letter("digger", "Dig", "c-7", False, 5.0),
    ]


async def test_answer_is_told_in_the_contracts_names(tmp_path: Path) -> None:
    reply = Reply("complete", "It is dug.", "c-7", duration_ms=12, tool_call_count=0)
    result = await Workshop(tmp_path, Listener(reply=reply)).run(TOOL, agentId="digger", content="Dig")
    assert result.ok
    assert read(result) == {
        "status": "complete",
        "sessionId": "c-7",
        "response": "It is dug.",
        "durationMs": 12,
        "toolCallCount": 0,
    }


@pytest.mark.parametrize("status", ["timeout", "queued", "started"])
async def test_what_is_still_to_come_is_said_in_words(status: Any, tmp_path: Path) -> None:
    reply = Reply(status, "It goes on.", "c-7")
    result = await Workshop(tmp_path, Listener(reply=reply)).run(TOOL, agentId="digger", content="Dig")
    assert result.ok
    assert read(result) == {"status": status, "sessionId": "c-7", "message": "It goes on."}


@pytest.mark.parametrize("status", ["failed", "cancelled"])
async def test_message_without_an_answer_is_a_failed_result(status: Any, tmp_path: Path) -> None:
    reply = Reply(status, "There is no agent “mole”.")
    result = await Workshop(tmp_path, Listener(reply=reply)).run(TOOL, agentId="mole", content="Dig")
    assert (result.ok, result.error, read(result)) == (False, "There is no agent “mole”.", {"status": status})


async def test_answer_too_long_for_a_result_is_cut_and_still_json(tmp_path: Path) -> None:
    reply = Reply("complete", '"' * 48_000, "c-7")
    result = await Workshop(tmp_path, Listener(reply=reply)).run(TOOL, agentId="digger", content="Dig")
    assert len(result.output) <= OUTPUT_CHARS + 100
    assert read(result)["response"].endswith("[… the rest stands in conversation c-7]")


async def test_secrets_of_the_server_are_struck_from_an_answer(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, Listener(reply=Reply("complete", "It is hunter2hunter2.", "c-7")))
    shop.environment["SERVICE_TOKEN"] = "hunter2hunter2"
    result = await shop.run(TOOL, agentId="digger", content="Dig")
    assert "hunter2" not in result.output


async def test_description_names_the_agents_of_the_folder() -> None:
    assert TOOL.spec.description.endswith("The agents there are:\n- digger: digs\n- mute")
    assert "gardener" in TOOL.within(Path("/garden")).spec.description
    crowd = AgentsMessage(lambda _: [(f"agent{number}", "") for number in range(AGENTS_NAMED + 2)])
    assert crowd.spec.description.endswith("- and 2 more")


@pytest.mark.parametrize("mode", ["ask", "accept_edits", "auto", "full"])
async def test_writing_needs_no_leave(mode: Mode, tmp_path: Path) -> None:
    proposal = Workshop(tmp_path).propose(TOOL, agentId="digger", content="Dig a hole\nand fill it")
    assert Policy().verdict(TOOL.spec, proposal, mode).decision == "allow"
    assert proposal.title == "Write to digger: Dig a hole and fill it"


async def test_nobody_is_written_to_in_plan_mode(tmp_path: Path) -> None:
    box = Toolbox({tool.spec.name: tool for tool in built_in_tools(unsandboxed(), agents=known)})
    host = Listener()
    result = await Workshop(tmp_path, host, mode="plan").run(TOOL, agentId="digger", content="Dig")
    assert "agents_message" not in [spec.name for spec in box.specs("plan")]
    assert "agents_message" in [spec.name for spec in box.specs("ask")]
    assert (result.ok, host.letters) == (False, [])


@pytest.mark.parametrize(
    "given",
    [
        {"content": "Dig"},
        {"agentId": "digger"},
        {"agentId": "digger", "content": ""},
        {"agentId": "digger", "content": "Dig", "mode": "later"},
        {"agentId": "digger", "content": "Dig", "timeout": 0},
    ],
)
async def test_call_that_makes_no_sense_sends_nothing(given: dict[str, object], tmp_path: Path) -> None:
    host = Listener()
    assert isinstance(TOOL.propose(given, tmp_path), ToolResult)
    result = await Workshop(tmp_path, host).run(TOOL, **given)
    assert (result.ok, host.letters) == (False, [])
