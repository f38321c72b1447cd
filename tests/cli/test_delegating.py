"""A program gives a task to another agent: through our tools, over a real server, with the real programs."""

import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.desk import front_of
from tests.cli.rig import Place, Subject, failed, needed
from tests.cli.subjects import claude, codex, gemini, opencode, pi
from tests.flows import served
from tests.flows.at_work import Event, Work, at_work, of
from tests.flows.engine import gone, nth, stop
from tests.flows.test_delegation import running
from tests.provider import ScriptedProvider, gates
from tests.provider.server import serving as service

pytestmark = [pytest.mark.cli, pytest.mark.anyio, pytest.mark.timeout(180)]

PATIENCE_S = 90.0
"""The program itself takes seconds to start."""


@dataclass(frozen=True)
class Boss:
    """A program that gives tasks, and how it is set up for that."""

    subject: Subject
    front: str
    """Of its record."""
    tool: str
    """As its model calls it."""
    environment: Callable[[Place], Mapping[str, str]]
    at_once: bool
    """Whether it makes calls of one answer side by side; Codex makes one after the other."""


def claude_environment(place: Place) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": place.service.url,
        "ANTHROPIC_API_KEY": "sk-ant-test",
        "TMPDIR": str(place.home / "tmp"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
    }


BOSSES = [
    Boss(
        claude.SUBJECT,
        f"backend: claude\nmodel: {claude.MODEL}",
        "mcp__palaver__task",
        claude_environment,
        at_once=True,
    ),
    Boss(codex.SUBJECT, "backend: codex", "task", codex.environment_of, at_once=False),
    Boss(gemini.SUBJECT, front_of(gemini.SUBJECT), "mcp_palaver_task", gemini.environment_of, at_once=False),
    Boss(opencode.SUBJECT, front_of(opencode.SUBJECT), "palaver_task", opencode.environment_of, at_once=True),
    Boss(pi.SUBJECT, front_of(pi.SUBJECT), "task", pi.environment_of, at_once=True),
]


@asynccontextmanager
async def with_a_boss(boss: Boss, folder: Path) -> AsyncIterator[Work]:
    needed(boss.subject)
    agents, home = folder / "data" / "agents", folder / "home"
    agents.mkdir(parents=True)
    (agents / "boss.md").write_text(f"---\n{boss.front}\n---\n")
    (agents / "builder.md").write_text("---\nbackend: api\npolicy: [{tool: shell, decision: allow}]\n---\n")
    (home / "tmp").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patched:
        for waits in (served, gates):
            patched.setattr(waits, "WAIT_S", PATIENCE_S)
        async with service(ScriptedProvider(strict=False)) as provider:
            more = boss.environment(Place(home=home, project=folder / "project", service=provider))
            async with at_work(folder, provider=provider, environment=more) as work:
                yield work


@dataclass
class Office:
    """A boss in a conversation that goes on from test to test: its program is started once, and then where it was ended."""

    boss: Boss
    work: Work
    conversation: str = ""
    seq: int = 0
    """Up to here it is about earlier tests."""

    async def begin(self) -> None:
        self.conversation = await self.work.server.create(project=str(self.work.project), agent="boss")

    async def say(self, text: str) -> None:
        self.seq = (await self.work.server.state(self.conversation))["seq"]
        await self.work.server.send(self.conversation, text)

    async def give(self, *prompts: str) -> None:
        await self.say(given(self.boss, *prompts))

    async def until(self, last: Callable[[Event], bool]) -> list[Event]:
        async with self.work.server.events(self.conversation, after=self.seq) as stream:
            return [event async for event in stream.until(last)]

    async def events(self) -> list[Event]:
        """All since the last message, once the boss rests."""
        return await self.work.server.settled(self.conversation, after=self.seq)


def given(boss: Boss, *prompts: str) -> str:
    tasks = [msgspec.json.encode({"agent": "builder", "prompt": prompt}).decode() for prompt in prompts]
    return "\n".join(f"!tool {boss.tool} {task}" for task in tasks)


async def begin(boss: Boss, work: Work, *prompts: str) -> str:
    conversation = await work.server.create(project=str(work.project), agent="boss")
    await work.server.send(conversation, given(boss, *prompts))
    return conversation


@pytest.fixture(scope="module", params=BOSSES, ids=lambda boss: boss.subject.name)
async def office(
    request: pytest.FixtureRequest, anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Office]:
    found = request.param
    assert isinstance(found, Boss)
    async with with_a_boss(found, tmp_path_factory.mktemp(found.subject.name)) as work:
        yield Office(found, work)


@pytest.fixture
async def boss(office: Office, request: pytest.FixtureRequest) -> AsyncIterator[Office]:
    if not office.conversation:
        await office.begin()
    yield office
    if failed(request):
        # The next one begins another, with a program of its own.
        office.conversation = ""


async def test_reports_of_tasks_are_the_results_of_their_calls(boss: Office) -> None:
    await boss.give("!gate one\n!say First.", "!gate two\n!say Second.")
    standing = boss.work.provider.gates
    await standing.reached("one")
    if boss.boss.at_once:
        await standing.reached("two")
    for gate in ("one", "two"):
        standing.open(gate)
    await boss.until(nth(2, "subagent.started"))
    events = await boss.events()
    tasks = {event["call"]: (event["task"], event["agent"]) for event in of(events, "subagent.started")}
    assert sorted(tasks.values()) == [("!gate one\n!say First.", "builder"), ("!gate two\n!say Second.", "builder")]
    assert {event["call"] for event in of(events, "tool.called")} == set(tasks)
    reported = {tasks[event["call"]][0]: event["output"] for event in of(events, "tool.finished")}
    assert "reports:\n\nFirst." in reported["!gate one\n!say First."]
    assert "reports:\n\nSecond." in reported["!gate two\n!say Second."]
    assert [event["outcome"] for event in of(events, "subagent.finished")] == ["completed"] * 2


async def test_stop_takes_whoever_works_for_it_down(boss: Office) -> None:
    tag = f"83{secrets.randbelow(10**9)}"
    await boss.give(f"!shell sleep {tag}")
    (started,) = of(await boss.until(nth(1, "subagent.started")), "subagent.started")
    await running(tag, 1)
    await stop(boss.work, boss.conversation)
    await gone(tag)
    theirs = await boss.work.events(started["subagent"])
    state = await boss.work.server.state(boss.conversation)
    assert theirs[-1]["reason"] == "parent"
    (stopped,) = [one for one in state["subagents"] if one["conversation"] == started["subagent"]]
    assert stopped["status"] == "cancelled"


async def test_tools_are_there_after_the_program_was_ended_and_goes_on(boss: Office) -> None:
    server = boss.work.server
    await boss.say("!say Hello.")
    await boss.events()
    (process,) = (await server.http.get("/api/processes")).json()["items"]
    await server.http.delete(f"/api/processes/{process['pid']}")
    await boss.give("!say Done.")
    events = await boss.events()
    (finished,) = of(events, "tool.finished")
    assert (finished["ok"], "reports:\n\nDone." in finished["output"]) == (True, True)


PI = BOSSES[-1]
MINE = """
export default function (pi) {
  pi.registerTool({
    name: "task",
    label: "task",
    description: "Somebody else's.",
    parameters: { type: "object", properties: {} },
    execute: async () => ({ content: [{ type: "text", text: "mine" }], details: {} }),
  });
}
"""


def with_more(subject: Subject, **more: Any) -> str:
    """Its agent file with more in it."""
    front = msgspec.json.decode(front_of(subject))
    return f"---\n{msgspec.json.encode({**front, **more}).decode()}\n---\n"


async def test_task_has_its_grant_on_record_first(tmp_path: Path) -> None:
    async with with_a_boss(PI, tmp_path) as work:
        conversation = await begin(PI, work, "!say Done.")
        await work.until(conversation, nth(1, "subagent.started"))
        events = await work.events(conversation)
    (granted,), (started,) = of(events, "tool.started"), of(events, "subagent.started")
    assert granted["call"] == started["call"]
    assert granted["seq"] < started["seq"]
    assert not of(events, "request.opened")


async def test_task_that_a_rule_forbids_is_not_given(tmp_path: Path) -> None:
    async with with_a_boss(PI, tmp_path) as work:
        rules = [{"tool": "task", "decision": "deny_continue"}]
        (tmp_path / "data" / "agents" / "boss.md").write_text(with_more(PI.subject, policy=rules))
        conversation = await begin(PI, work, "!say Done.")
        await work.until(conversation, nth(1, "tool.finished"))
        events = await work.events(conversation)
    assert [event["error"]["code"] for event in of(events, "tool.finished")] == ["tool_denied"]
    assert not of(events, "subagent.started")


async def test_tool_of_another_extension_is_never_taken_for_ours(tmp_path: Path) -> None:
    async with with_a_boss(PI, tmp_path) as work:
        (tmp_path / "mine.ts").write_text(MINE)
        # Pi takes the first of equal names.
        command = [*PI.subject.agent.command, "-e", str(tmp_path / "mine.ts")]
        (tmp_path / "data" / "agents" / "boss.md").write_text(with_more(PI.subject, command=command))
        conversation = await begin(PI, work, "!say Done.")
        (asked,) = await work.opened(conversation)
        await work.decide(conversation, asked)
        events = await work.events(conversation)
    assert asked["tool"] == "task"
    assert [event["output"] for event in of(events, "tool.finished")] == ["mine"]
    assert not of(events, "subagent.started")
