"""The toolbox: what the API loop sees of tools, policy and sandbox."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from palaver.approval.policy import Rule, offers, standing_grant
from palaver.errors import LogUnavailable
from palaver.tools.base import Proposal, Stream, ToolResult, ToolSpec, Workplace
from palaver.tools.shell.background import Processes
from palaver.tools.shell.sandbox import unsandboxed
from palaver.tools.toolbox import Toolbox, built_in_tools, open_toolbox
from tests.provider.programs import programs_outside
from tests.unit.tools.workshop import ENVIRONMENT, Workshop

pytestmark = pytest.mark.anyio


@pytest.fixture
def toolbox() -> Toolbox:
    tools = {tool.spec.name: tool for tool in built_in_tools(unsandboxed(), Processes(lambda: "p1"), lambda: "r1")}
    return Toolbox(tools, environment=ENVIRONMENT)


class Broken:
    """A tool that breaks its promise never to raise."""

    spec = ToolSpec("broken", "", {"type": "object"})

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal:
        raise RuntimeError("correct-horse-battery")

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        raise RuntimeError("out of order")


async def test_plan_mode_offers_nothing_that_only_edits(toolbox: Toolbox) -> None:
    offered = [spec.name for spec in toolbox.specs("plan")]
    assert offered[:5] == ["read", "list", "glob", "grep", "shell"]
    assert not {"edit", "write", "patch", "fetch", "remember"} & set(offered)
    assert set(offered) >= {"shell_output", "shell_stop", "plan", "ask_user", "loop_yield_turn", "finish_task"}


async def test_box_without_processes_or_ids_leaves_out_what_needs_them() -> None:
    names = {tool.spec.name for tool in built_in_tools(unsandboxed())}
    assert not names & {"shell_output", "shell_stop", "plan"}


async def test_agent_with_few_tools_has_only_those(toolbox: Toolbox) -> None:
    few = toolbox.only(["read", "shell", "unheard-of"])
    assert [spec.name for spec in few.specs("ask")] == ["read", "shell"]


async def test_added_tool_does_not_take_a_built_in_name(toolbox: Toolbox) -> None:
    class Impostor(Broken):
        spec = ToolSpec("read", "", {"type": "object"})

    more = toolbox.with_tools([Impostor(), Broken()])
    assert more.tools["read"] is toolbox.tools["read"]
    assert "broken" in more.tools


async def test_whole_call_from_proposal_to_result(toolbox: Toolbox, workshop: Workshop, root: Path) -> None:
    (root / "a.py").write_text("x = 1\n")
    call = {"path": "a.py", "old": "1", "new": "2"}
    proposal = await toolbox.propose("edit", call, root)
    assert isinstance(proposal, Proposal)
    assert toolbox.verdict("edit", proposal, "ask").decision == "ask"
    spec = toolbox.tools["edit"].spec
    grant = standing_grant(spec, offers(spec, proposal)[0], "conversation")
    assert toolbox.verdict("edit", proposal, "ask", [grant]).decision == "allow"
    result = await toolbox.run("edit", call, workshop.place, approved_hash=proposal.hash)
    assert (result.ok, (root / "a.py").read_text()) == (True, "x = 2\n")


async def test_change_since_the_approval_runs_nothing(toolbox: Toolbox, workshop: Workshop, root: Path) -> None:
    (root / "a.py").write_text("x = 1\n")
    call = {"path": "a.py", "content": "mine\n"}
    proposal = await toolbox.propose("write", call, root)
    assert isinstance(proposal, Proposal)
    (root / "a.py").write_text("somebody else's\n")
    result = await toolbox.run("write", call, workshop.place, approved_hash=proposal.hash)
    assert (result.ok, result.error_code) == (False, "changed")
    assert (root / "a.py").read_text() == "somebody else's\n"


async def test_unknown_tool_is_a_result_that_names_the_others(toolbox: Toolbox, workshop: Workshop) -> None:
    toolbox = toolbox.only(["shell", "read", "edit"])
    proposed = await toolbox.propose("bash", {}, workshop.root)
    ran = await toolbox.run("bash", {}, workshop.place)
    assert proposed == ran
    assert (ran.ok, ran.error_code) == (False, "unknown_tool")
    assert ran.error == "There is no tool 'bash'. There are: edit, read, shell."


async def test_tool_that_raises_is_a_failed_result(toolbox: Toolbox, workshop: Workshop) -> None:
    box = toolbox.with_tools([Broken()])
    proposed = await box.propose("broken", {}, workshop.root)
    assert isinstance(proposed, ToolResult)
    assert not proposed.ok
    ran = await box.run("broken", {}, workshop.place)
    assert (ran.ok, ran.error) == (False, "broken failed in an unforeseen way (RuntimeError: out of order).")


async def test_failure_of_the_log_behind_a_tool_is_not_taken_for_the_tools(toolbox: Toolbox, root: Path) -> None:
    async def output(text: str, stream: Stream) -> None:
        raise LogUnavailable("the disk is gone")

    async def spill(data: bytes, mime: str) -> Any:
        raise LogUnavailable("the disk is gone")

    with pytest.raises(LogUnavailable):
        await toolbox.run("shell", {"command": "echo hello"}, Workplace(root, output, spill, programs_outside(root)))


async def test_secrets_of_the_servers_environment_leave_by_no_way(toolbox: Toolbox, root: Path) -> None:
    secret = ENVIRONMENT["SERVICE_TOKEN"]
    (root / "a.env").write_text(f"TOKEN={secret}\n")
    workshop = Workshop(root, environment={})
    call = {"path": "a.env", "old": "TOKEN=", "new": "KEY="}
    proposal = await toolbox.propose("edit", call, root)
    results = [
        await toolbox.run("read", {"path": "a.env"}, workshop.place),
        await toolbox.run("grep", {"pattern": "TOKEN"}, workshop.place),
        await toolbox.run("shell", {"command": "cat a.env"}, workshop.place),
        await toolbox.run("edit", call, workshop.place),
        await toolbox.run("read", {"path": f"gone-{secret}"}, workshop.place),
        await toolbox.propose("shell", {"command": f"curl -H {secret} localhost"}, root),
    ]
    shown = repr([proposal, results[:5], workshop.said]) + repr(results[5]).partition("match=")[0]
    assert shown.count("[redacted SERVICE_TOKEN]") >= 7
    assert secret not in shown


async def test_opened_toolbox_says_what_holds_its_tools_and_knows_the_rules(root: Path) -> None:
    toolbox = await open_toolbox({"PATH": "/nowhere"}, rules=[Rule("shell", "deny_abort")], full_enabled=True)
    # Which sandbox works differs from machine to machine; what is said of it and what is allowed in it do not.
    assert toolbox.policy.sandboxed == (toolbox.sandbox != unsandboxed().words)
    assert toolbox.policy.full_enabled
    proposal = await toolbox.propose("shell", {"command": "ls"}, root)
    assert isinstance(proposal, Proposal)
    assert toolbox.verdict("shell", proposal, "full").decision == "deny_abort"
