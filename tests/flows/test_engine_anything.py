"""Anything in any order: people who send, stop, decide and rewrite at random, and a service that refuses what is not whole.

What is drawn is the same for a seed; when it meets the agent differs from run to run. Whatever happens, no request is
malformed, no command fails inside, nothing is lost, and the conversation comes to rest and answers.
"""

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.flows.at_work import Event, Work, at_work, of
from tests.flows.engine import WIRES
from tests.flows.served import WAIT_S
from tests.provider import ScriptedProvider
from tests.provider.server import serving as service

pytestmark = pytest.mark.anyio

STEPS = 25
SEEDS = range(4)
EDITORS = {"name": "rename", "description": "Renames.", "parameters": {"type": "object"}}
ASK = '!tool ask_user {"questions": [{"question": "Which?", "options": [{"label": "A"}, {"label": "B"}]}]}'
PLAN = '!tool plan {"summary": "Do it", "items": [{"title": "One"}, {"title": "Two"}]}'
TEXTS = (
    "hello",
    "!think Hm.\n!say Well.",
    "!slow 0.002\n!long 80",
    "!think Let me look.\n!list .\n!glob *\n---\n!say Looked.\n!list .",
    "!shell touch a\n!shell echo b\n!list .\n---\n!shell touch c",
    "!shell sleep 0.05; echo slept\n!shell echo after",
    "!tool rename {}\n!list .",
    f"{ASK}\n!shell touch d",
    f"!say I plan.\n{PLAN}",
    "!tool nobody {}\n---\n!read nothing.txt",
    "!write w.txt words\n---\n!edit w.txt words => other",
    "!tool loop_yield_turn {}",
    '!tool finish_task {"summary": "Done."}',
    "!status 400",
    '!tool shell {"command": "sleep 3", "background": true}',
)


class Crowd:
    """Draws what people do next, from what they see."""

    def __init__(self, work: Work, conversation: str, chance: random.Random) -> None:
        self.work, self.conversation, self.chance = work, conversation, chance
        self.statuses: Counter[int] = Counter()

    async def acts(self) -> None:
        state = await self.work.server.state(self.conversation)
        acts = (
            *(self._sends,) * 5,
            *(self._answers,) * 5,
            *(lambda _: {"type": "interrupt"},) * 2,
            self._rewrites,
            self._queues,
            self._tunes,
        )
        command = self.chance.choice(acts)(state)
        if command is not None:
            answer = await self.work.server.command(self.conversation, **command)
            self.statuses[answer.status_code] += 1
            assert answer.status_code < 500, (command, answer.text)

    def _sends(self, state: Event) -> Event:
        return {
            "type": "send_message",
            "content": self.chance.choice(TEXTS),
            "merge": self.chance.random() < 0.5,
            "priority": self.chance.random() < 0.2,
            "delivery": self.chance.choice(("turn", "boundary")),
        }

    def _answers(self, state: Event) -> Event | None:
        calls = [block for message in state["messages"] for block in message["blocks"] if block["type"] == "tool"]
        at_editor = [call["call"] for call in calls if call.get("grant") == "ide" and call["status"] == "running"]
        waiting = [known for known in state["requests"] if known["status"] == "open"]
        if at_editor:
            return {"type": "return_tool_result", "call": self.chance.choice(at_editor), "content": "Renamed."}
        if not waiting:
            return None
        if self.chance.random() < 0.3:
            return {"type": "decide_tools", "accepted": self.chance.random() < 0.7}
        verdict = self.chance.choice(("allow", "allow", "deny"))
        request = self.chance.choice(waiting)
        lasts = request["kind"] == "approval" and self.chance.random() < 0.3
        return {
            "type": "resolve_request",
            "request": request["id"],
            "verdict": verdict,
            "answers": [{"selected": ["A"]}] if verdict == "allow" else [],
            "scope": "conversation" if lasts else "once",
            "then": self.chance.choice(("continue", "stop")),
        }

    def _rewrites(self, state: Event) -> Event | None:
        if not state["messages"]:
            return None
        place = self.chance.randrange(len(state["messages"]))
        message = state["messages"][place]["id"]
        return self.chance.choice(
            (
                {"type": "regenerate"},
                {"type": "retry_from", "index": place, "content": self.chance.choice(TEXTS)},
                {"type": "truncate_messages", "from_index": place},
                {"type": "remove_message", "message": message},
                {"type": "edit_message", "message": message, "content": "edited"},
            )
        )

    def _queues(self, state: Event) -> Event | None:
        if not state["queue"]:
            return None
        item = self.chance.choice(state["queue"])["id"]
        return self.chance.choice(
            (
                {"type": "remove_queued", "item": item},
                {"type": "edit_queued", "item": item, "content": "!list ."},
                {"type": "edit_queued", "item": item, "priority": True},
                {"type": "edit_queued", "item": item, "before": ""},
            )
        )

    def _tunes(self, state: Event) -> Event:
        patch: dict[str, Any] = {"mode": self.chance.choice(("ask", "accept_edits", "plan", None))}
        patch["context_tokens_cap"] = self.chance.choice((5_000, 20_000, None))
        return {"type": "set_params", "patch": patch}

    async def comes_to_rest(self) -> None:
        """Everything that waits is called off; what is queued is let through."""
        async with asyncio.timeout(WAIT_S):
            while True:
                state = await self.work.server.state(self.conversation)
                if state["turn"] is None and not state["queue"] and state["status"] in ("idle", "completed", "error"):
                    return
                await self.work.server.command(self.conversation, type="interrupt")
                for item in state["queue"]:
                    await self.work.server.command(self.conversation, type="remove_queued", item=item["id"])


@pytest.mark.parametrize("wire", WIRES)
async def test_whatever_people_do_no_request_is_malformed_and_it_comes_to_rest(wire: str, tmp_path: Path) -> None:
    """With a restart in the middle. Thinking is on, so the service wants its thoughts back as they were."""
    lives: dict[str, random.Random] = {}
    async with service(ScriptedProvider()) as provider:
        more = {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "k"} if wire == "anthropic" else {}
        async with at_work(tmp_path, provider=provider, environment=more) as work:
            for seed in SEEDS:
                params = {"ide_tools": [EDITORS], "thinking_budget": 2_000}
                lives[await work.server.create(project=str(work.project), params=params)] = random.Random(seed)
            await asyncio.gather(*(lived(Crowd(work, *life)) for life in lives.items()))
        async with at_work(tmp_path, provider=provider, environment=more) as work:
            await asyncio.gather(*(lived(Crowd(work, *life)) for life in lives.items()))
            await asyncio.gather(*(ended(Crowd(work, *life)) for life in lives.items()))
        refused = [known.refused for known in provider.requests if known.refused]
    assert refused == []


async def lived(crowd: Crowd) -> None:
    for _ in range(STEPS):
        await crowd.acts()
        for _ in range(crowd.chance.randrange(4)):
            await crowd.work.server.http.get("/api/health")


async def ended(crowd: Crowd) -> None:
    work, conversation = crowd.work, crowd.conversation
    await crowd.comes_to_rest()
    await work.server.command(conversation, type="set_params", patch={"mode": "ask", "context_tokens_cap": None})
    seq = (await work.server.send(conversation, "the last words"))["seq"]
    after = await work.server.settled(conversation, after=seq)
    log = await work.until(conversation, lambda event: event["seq"] >= after[-1]["seq"])
    assert after[-1].get("outcome") == "completed", after[-1]
    kept_its_promises(log)


def kept_its_promises(log: list[Event]) -> None:
    assert [event.get("first", event["seq"]) for event in log] == [1, *(event["seq"] + 1 for event in log[:-1])]
    active: str | None = None
    ended: set[str | None] = set()
    for event in log:
        match event["type"]:
            case "turn.started":
                assert active is None
                active = event["turn"]
            case "turn.finished" | "turn.interrupted":
                assert event["turn"] == active
                ended.add(active)
                active = None
            case _:
                assert event.get("turn") not in ended, event
    assert set(Counter(event["call"] for event in of(log, "tool.finished")).values()) <= {1}
    assert set(Counter(event["call"] for event in of(log, "tool.started")).values()) <= {1}
    assert set(Counter(event["request"] for event in of(log, "request.resolved")).values()) <= {1}
    queued = Counter(event["item"] for event in of(log, "queue.added"))
    assert queued == Counter(event["item"] for event in of(log, "queue.removed"))
    granted = {event["call"] for event in of(log, "tool.started") if event["grant"].startswith("request:")}
    allowed = {
        opened.get("call")
        for opened in of(log, "request.opened")
        for resolved in of(log, "request.resolved")
        if opened["request"] == resolved["request"] and resolved.get("verdict") == "allow"
    }
    assert granted <= allowed
