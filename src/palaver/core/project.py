"""A project, folded from its own stream: its mission, the missions before, overrides, and how often agents were woken.

`evolve_project` folds, the functions named like commands decide, `due` says whose idle prompt fires now. Called by
`agents/projects.py`, which owns the streams, and `agents/missions.py`, which keeps the time. Pure: times are milliseconds
that the caller gives, all of one clock.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from palaver.core.decide.decision import Already, Refusal
from palaver.schema.events import (
    AgentOverridden,
    Event,
    MissionAgent,
    MissionCleared,
    MissionSet,
    MissionTriggered,
)

TRIGGER_LIMIT = 100
"""Idle prompts of one mission, all its agents together: what a forgotten mission can cost has an end."""
INTERVAL_S = 60
FLOOR_S = 30
"""A shorter rest is none: an agent that is woken at once never lets a person get a word in."""
CEILING_S = 7 * 24 * 3600
TEXT_CHARS = 20_000
PROMPT_CHARS = 8_000
AGENTS = 32
EVENT_BYTES = 200 << 10
"""Text and prompts together: a mission is one event, and an event holds 256 KiB."""


@dataclass(frozen=True, slots=True)
class Idle:
    """What somebody says of an agent's resting: nothing, one thing, or both."""

    prompt: str | None = None
    interval_s: int | None = None


@dataclass(frozen=True, slots=True)
class Woken:
    """How often an agent was woken for a mission, and the last time."""

    count: int
    number: int
    """Of the last time, among those of all agents."""
    at: int
    prompt: str
    conversation: str


@dataclass(frozen=True, slots=True)
class Mission:
    id: str
    text: str
    agents: tuple[MissionAgent, ...]
    created_at: int
    budget_usd: float | None = None
    ended_at: int | None = None
    woken: Mapping[str, Woken] = field(default_factory=dict[str, Woken])
    triggered: int = 0
    """By all agents together."""
    spent_usd: float = 0.0
    """What it had cost when it last woke somebody: a deleted conversation gives nothing back."""


@dataclass(frozen=True, slots=True)
class ProjectState:
    folder: str = ""
    seq: int = 0
    mission: Mission | None = None
    """The active one."""
    former: tuple[Mission, ...] = ()
    """Oldest first."""
    overrides: Mapping[str, Idle] = field(default_factory=dict[str, Idle])


ProjectEvent = MissionSet | MissionCleared | MissionTriggered | AgentOverridden
"""What a project's stream holds."""


def evolve_project(state: ProjectState, event: Event) -> ProjectState:
    """What it does not know only moves `seq` on."""
    state = replace(state, seq=event.seq)
    if not isinstance(event, MissionSet | MissionCleared | MissionTriggered | AgentOverridden):
        return state
    state = replace(state, folder=event.project or state.folder)
    match event:
        case MissionSet():
            former = _end_mission(state, event.ts)
            mission = Mission(event.mission, event.text, event.agents, event.ts, event.budget_usd)
            return replace(state, mission=mission, former=former)
        case MissionCleared():
            return replace(state, mission=None, former=_end_mission(state, event.ts))
        case MissionTriggered():
            return replace(state, mission=_count(state.mission, event))
        case AgentOverridden():
            overrides = {name: idle for name, idle in state.overrides.items() if name != event.agent}
            idle = Idle(event.idle_prompt, event.idle_interval_s)
            return replace(state, overrides=overrides if idle == Idle() else {**overrides, event.agent: idle})


def _end_mission(state: ProjectState, ts: int) -> tuple[Mission, ...]:
    return state.former if state.mission is None else (*state.former, replace(state.mission, ended_at=ts))


def _count(mission: Mission | None, event: MissionTriggered) -> Mission | None:
    if mission is None or mission.id != event.mission:
        return mission
    before = mission.woken.get(event.agent)
    woken = Woken(
        count=(before.count if before else 0) + 1,
        number=event.count,
        at=event.ts,
        prompt=event.prompt or "",
        conversation=event.target or "",
    )
    return replace(
        mission,
        woken={**mission.woken, event.agent: woken},
        triggered=max(mission.triggered, event.count),
        spent_usd=max(mission.spent_usd, event.spent_usd or 0.0),
    )


# -- deciding

Decided = Sequence[ProjectEvent] | Refusal | Already


def set_mission(
    mission: str, text: str, agents: Sequence[MissionAgent], budget_usd: float | None = None
) -> Sequence[ProjectEvent] | Refusal:
    """A new one takes the place of the former, which stays in the history."""
    if refusal := _unfit(text, agents, budget_usd):
        return refusal
    raised = tuple(
        MissionAgent(agent=one.agent, idle_prompt=one.idle_prompt, idle_interval_s=_raise_interval(one.idle_interval_s))
        for one in agents
    )
    return [MissionSet(mission=mission, text=text.strip(), agents=raised, budget_usd=budget_usd)]


def clear_mission(state: ProjectState) -> Decided:
    if state.mission is None:
        return Already("There is no mission.")
    return [MissionCleared(mission=state.mission.id)]


def override_agent(state: ProjectState, agent: str, changes: Mapping[str, str | int | None]) -> Decided:
    """Only the given fields (`idle_prompt`, `idle_interval_s`) change; None clears one."""
    known = state.overrides.get(agent, Idle())
    prompt, interval_s = known.prompt, known.interval_s
    if "idle_prompt" in changes:
        given = changes["idle_prompt"]
        prompt = None if given is None else str(given)
    if "idle_interval_s" in changes:
        seconds = changes["idle_interval_s"]
        interval_s = None if seconds is None else int(seconds)
    if refusal := _unfit_idle(prompt, interval_s, ""):
        return refusal
    wanted = Idle(prompt, _raise_interval(interval_s))
    if wanted == known:
        return Already("unchanged")
    return [AgentOverridden(agent=agent, idle_prompt=wanted.prompt, idle_interval_s=wanted.interval_s)]


def trigger(
    state: ProjectState, mission: str, agent: str, prompt: str, target: str, spent_usd: float
) -> Sequence[ProjectEvent] | Refusal:
    """An agent is woken: counted before it is told, so that no crash can wake it beyond the limit."""
    active = state.mission
    if active is None or active.id != mission:
        return Refusal("conflict", "This mission is over.")
    if active.triggered >= TRIGGER_LIMIT:
        return Refusal("conflict", f"A mission wakes its agents {TRIGGER_LIMIT} times and no more.")
    number = active.triggered + 1
    return [
        MissionTriggered(
            mission=mission,
            agent=agent,
            count=number,
            target=target,
            prompt=prompt,
            spent_usd=spent_usd or None,
        )
    ]


def _unfit(text: str, agents: Sequence[MissionAgent], budget_usd: float | None) -> Refusal | None:
    if not text.strip():
        return Refusal("invalid", "`text`: say what the mission is.")
    if len(text) > TEXT_CHARS:
        return Refusal("too_large", f"`text`: a mission may have {TEXT_CHARS:,} characters.", {"limit": TEXT_CHARS})
    if budget_usd is not None and not (budget_usd > 0 and math.isfinite(budget_usd)):
        return Refusal("invalid", "`budget_usd`: must be more than nothing; leave it out for no limit.")
    if len(agents) > AGENTS:
        return Refusal("too_large", f"`agents`: a mission may have {AGENTS} agents.", {"limit": AGENTS})
    names = [one.agent for one in agents]
    if twice := next((name for name in names if names.count(name) > 1), None):
        return Refusal("invalid", f"`agents`: “{twice}” is named twice.", {"agent": twice})
    for place, one in enumerate(agents):
        if refusal := _unfit_idle(one.idle_prompt, one.idle_interval_s, f"agents[{place}]."):
            return refusal
    if len(text.encode()) + sum(len((one.idle_prompt or "").encode()) for one in agents) > EVENT_BYTES:
        limit = EVENT_BYTES
        return Refusal("too_large", f"The mission and its prompts may have {limit >> 10} KiB.", {"limit": limit})
    return None


def _unfit_idle(prompt: str | None, interval_s: int | None, where: str) -> Refusal | None:
    if prompt is not None and not prompt.strip():
        return Refusal("invalid", f"`{where}idle_prompt`: say something, or leave it out.")
    if prompt is not None and len(prompt) > PROMPT_CHARS:
        words = f"`{where}idle_prompt`: a prompt may have {PROMPT_CHARS:,} characters."
        return Refusal("too_large", words, {"limit": PROMPT_CHARS})
    if interval_s is not None and interval_s > CEILING_S:
        words = f"`{where}idle_interval_s`: may be {CEILING_S:,} seconds, which is a week."
        return Refusal("invalid", words, {"limit": CEILING_S})
    return None


def _raise_interval(interval_s: int | None) -> int | None:
    return None if interval_s is None else max(FLOOR_S, interval_s)


# -- whose idle prompt fires


Held = Literal["waiting", "deleted"]


@dataclass(frozen=True, slots=True)
class Agent:
    """What is known of an agent of a mission beside the project's own stream."""

    own: Idle = Idle()
    """What its record says."""
    resting_since: int | None = 0
    """None: it is busy."""
    held: Held | None = None
    """It waits for a person, or its conversation of this mission was deleted."""


Standing = Literal["resting", "busy", "waiting", "no_prompt", "unknown_agent", "deleted", "limit", "budget"]


@dataclass(frozen=True, slots=True)
class Outlook:
    """How an agent stands with its mission. `due_at` only when it rests and will be woken."""

    status: Standing
    idle: Idle
    due_at: int | None = None


@dataclass(frozen=True, slots=True)
class Due:
    agent: str
    prompt: str


def settings_for(state: ProjectState, agent: str, own: Idle) -> Idle:
    """Mission over override over the agent's own record, field by field."""
    mission = state.mission
    named = next((one for one in mission.agents if one.agent == agent), None) if mission else None
    said = Idle(named.idle_prompt, named.idle_interval_s) if named else Idle()
    sources = (said, state.overrides.get(agent, Idle()), own)
    prompt = next((one.prompt for one in sources if one.prompt is not None), None)
    interval_s = next((one.interval_s for one in sources if one.interval_s is not None), INTERVAL_S)
    return Idle(prompt, max(FLOOR_S, interval_s))


def stop_reason(mission: Mission, spent_usd: float) -> Literal["limit", "budget"] | None:
    """Why a mission wakes nobody any more."""
    if mission.triggered >= TRIGGER_LIMIT:
        return "limit"
    if mission.budget_usd is not None and max(spent_usd, mission.spent_usd) >= mission.budget_usd:
        return "budget"
    return None


def outlook(state: ProjectState, agent: str, known: Agent | None, spent_usd: float) -> Outlook:
    """`known` None: there is no such agent any more."""
    idle = settings_for(state, agent, known.own if known else Idle())
    mission = state.mission
    if known is None or mission is None:
        return Outlook("unknown_agent", idle)
    if over := stop_reason(mission, spent_usd):
        return Outlook(over, idle)
    if known.held:
        return Outlook(known.held, idle)
    if known.resting_since is None:
        return Outlook("busy", idle)
    if not (idle.prompt or "").strip():
        return Outlook("no_prompt", idle)
    woken = mission.woken.get(agent)
    # Its last waking too: one that could not be told must not be woken again at once.
    since = max(mission.created_at, known.resting_since, woken.at if woken else 0)
    return Outlook("resting", idle, since + (idle.interval_s or INTERVAL_S) * 1000)


def due(state: ProjectState, now: int, agents: Mapping[str, Agent], spent_usd: float = 0.0) -> list[Due]:
    """Whom to wake now, the longest due first, never more than the mission has left. Who is not in `agents` is gone."""
    mission = state.mission
    if mission is None:
        return []
    waiting: list[tuple[int, int, Due]] = []
    for place, one in enumerate(mission.agents):
        found = outlook(state, one.agent, agents.get(one.agent), spent_usd)
        if found.due_at is not None and found.due_at <= now and found.idle.prompt:
            waiting.append((found.due_at, place, Due(one.agent, found.idle.prompt)))
    return [one for _, _, one in sorted(waiting, key=lambda row: row[:2])][: TRIGGER_LIMIT - mission.triggered]


def next_due(state: ProjectState, agents: Mapping[str, Agent], spent_usd: float = 0.0) -> int | None:
    """When the next of them is due, as far as is known now."""
    named = state.mission.agents if state.mission else ()
    moments = [outlook(state, one.agent, agents.get(one.agent), spent_usd).due_at for one in named]
    return min((moment for moment in moments if moment is not None), default=None)


def words_for(mission: Mission, agent: str) -> str:
    """What an agent is told by its last waking: the first time also what the mission is."""
    woken = mission.woken[agent]
    return f"{mission.text}\n\n{woken.prompt}" if woken.count == 1 else woken.prompt
