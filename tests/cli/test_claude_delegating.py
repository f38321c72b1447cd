"""Claude Code gives a task to another agent: through our tools, over a real server, with the real program."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from tests.cli.rig import needed
from tests.cli.subjects.claude import MODEL, SUBJECT
from tests.flows import served
from tests.flows.at_work import Work, at_work, of
from tests.flows.engine import gone, nth, stop
from tests.flows.test_delegation import running
from tests.provider import ScriptedProvider
from tests.provider.server import serving as service

pytestmark = [pytest.mark.cli, pytest.mark.anyio, pytest.mark.timeout(180)]

PATIENCE_S = 90.0
"""The program itself takes seconds to start."""


@asynccontextmanager
async def with_claude(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Work]:
    needed(SUBJECT)
    monkeypatch.setattr(served, "WAIT_S", PATIENCE_S)
    agents = folder / "data" / "agents"
    agents.mkdir(parents=True)
    (agents / "boss.md").write_text(f"---\nbackend: claude\nmodel: {MODEL}\n---\n")
    (agents / "builder.md").write_text("---\nbackend: api\npolicy: [{tool: shell, decision: allow}]\n---\n")
    (folder / "home" / "tmp").mkdir(parents=True)
    async with service(ScriptedProvider(strict=False)) as provider:
        more = {
            "ANTHROPIC_BASE_URL": provider.url,
            "ANTHROPIC_API_KEY": "sk-ant-test",
            "TMPDIR": str(folder / "home" / "tmp"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "1",
        }
        async with at_work(folder, provider=provider, environment=more) as work:
            yield work


async def begin(work: Work, *prompts: str) -> str:
    conversation = await work.server.create(project=str(work.project), agent="boss")
    tasks = [msgspec.json.encode({"agent": "builder", "prompt": prompt}).decode() for prompt in prompts]
    await work.server.send(conversation, "\n".join(f"!tool mcp__palaver__task {task}" for task in tasks))
    return conversation


async def test_tasks_run_at_once_and_their_reports_are_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with with_claude(tmp_path, monkeypatch) as work:
        conversation = await begin(work, "!gate one\n!say First.", "!gate two\n!say Second.")
        started = of(await work.until(conversation, nth(2, "subagent.started")), "subagent.started")
        await work.provider.gates.reached("one")
        await work.provider.gates.reached("two")
        work.provider.gates.open_all()
        events = await work.events(conversation)
    calls = {event["call"]: event["input"]["prompt"] for event in of(events, "tool.called")}
    assert {calls[event["call"]]: event["agent"] for event in started} == {
        "!gate one\n!say First.": "builder",
        "!gate two\n!say Second.": "builder",
    }
    reported = {calls[event["call"]]: event["output"] for event in of(events, "tool.finished")}
    assert "reports:\n\nFirst." in reported["!gate one\n!say First."]
    assert "reports:\n\nSecond." in reported["!gate two\n!say Second."]
    assert [event["outcome"] for event in of(events, "subagent.finished")] == ["completed"] * 2


async def test_stop_takes_whoever_works_for_it_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tag = f"83{secrets.randbelow(10**9)}"
    async with with_claude(tmp_path, monkeypatch) as work:
        conversation = await begin(work, f"!shell sleep {tag}")
        (started,) = of(await work.until(conversation, nth(1, "subagent.started")), "subagent.started")
        await running(tag, 1)
        await stop(work, conversation)
        await gone(tag)
        theirs = await work.events(started["subagent"])
        state = await work.server.state(conversation)
    assert theirs[-1]["reason"] == "parent"
    assert state["subagents"][0]["status"] == "cancelled"
