"""A project's stream, folded and decided on: missions, overrides, and whose idle prompt is due."""

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.core.decide.decision import Already, Refusal
from palaver.core.project import (
    AGENTS,
    CEILING_S,
    FLOOR_S,
    INTERVAL_S,
    PROMPT_CHARS,
    TEXT_CHARS,
    TRIGGER_LIMIT,
    Agent,
    Decided,
    Idle,
    ProjectState,
    clear_mission,
    due,
    evolve_project,
    next_due,
    outlook,
    override_agent,
    set_mission,
    settings_for,
    stop_reason,
    trigger,
    words_for,
)
from palaver.schema.events import MissionAgent, UnknownEvent

MINUTE = 60_000
PROMPT = Idle("go on")


def after(state: ProjectState, decision: Decided, ts: int = 0) -> ProjectState:
    assert not isinstance(decision, Refusal | Already), decision
    for event in decision:
        state = evolve_project(state, replace(event, seq=state.seq + 1, ts=ts, project="/tea"))
    return state


def on_a_mission(
    *agents: str | MissionAgent, ts: int = 0, budget_usd: float | None = None, name: str = "m"
) -> ProjectState:
    named = [MissionAgent(agent=one) if isinstance(one, str) else one for one in agents]
    return after(ProjectState(), set_mission(name, "Tidy up", named, budget_usd), ts)


def woken(state: ProjectState, agent: str, ts: int = 0, spent_usd: float = 0.0) -> ProjectState:
    assert state.mission
    return after(state, trigger(state, state.mission.id, agent, "go on", f"c-{agent}", spent_usd), ts)


def names(found: Sequence[object]) -> list[str]:
    return [str(getattr(one, "agent", "")) for one in found]


# -- missions


def test_new_mission_ends_the_former_and_keeps_it_in_the_history() -> None:
    state = woken(on_a_mission("a", ts=1), "a", ts=2)
    state = after(state, set_mission("n", "Paint", []), ts=5)

    assert state.mission is not None
    assert (state.mission.id, state.mission.triggered) == ("n", 0)
    assert [(one.id, one.ended_at, one.triggered) for one in state.former] == [("m", 5, 1)]


def test_cleared_mission_is_history_and_clearing_again_changes_nothing() -> None:
    state = on_a_mission("a")
    state = after(state, clear_mission(state), ts=7)

    assert state.mission is None
    assert [(one.id, one.ended_at) for one in state.former] == [("m", 7)]
    assert isinstance(clear_mission(state), Already)
    assert due(state, 10**12, {"a": Agent(PROMPT)}) == []


def test_event_nobody_knows_only_moves_on() -> None:
    state = on_a_mission("a")
    assert evolve_project(state, UnknownEvent(seq=9)).mission == state.mission
    assert evolve_project(state, UnknownEvent(seq=9)).seq == 9


def test_mission_that_does_not_fit_is_refused_with_the_field() -> None:
    one = MissionAgent(agent="a")
    cases: Mapping[str, Decided] = {
        "`text`: say": set_mission("m", "  ", [one]),
        "`text`: a mission may": set_mission("m", "x" * (TEXT_CHARS + 1), [one]),
        "`budget_usd`": set_mission("m", "x", [one], 0.0),
        "`agents`: a mission may": set_mission("m", "x", [MissionAgent(agent=f"a{n}") for n in range(AGENTS + 1)]),
        "named twice": set_mission("m", "x", [one, one]),
        "`agents[1].idle_prompt`: say": set_mission("m", "x", [one, MissionAgent(agent="b", idle_prompt=" ")]),
        "`agents[0].idle_prompt`: a prompt": set_mission(
            "m", "x", [MissionAgent(agent="b", idle_prompt="x" * (PROMPT_CHARS + 1))]
        ),
        "`agents[0].idle_interval_s`": set_mission("m", "x", [MissionAgent(agent="b", idle_interval_s=CEILING_S + 1)]),
        "may have 200 KiB": set_mission(
            "m", "x", [MissionAgent(agent=f"a{n}", idle_prompt="ü" * PROMPT_CHARS) for n in range(20)]
        ),
    }
    for words, decision in cases.items():
        assert isinstance(decision, Refusal)
        assert words in decision.message
    assert isinstance(set_mission("m", "x", [], float("nan")), Refusal)


# -- overrides


def test_override_changes_only_what_is_given_and_null_clears_it() -> None:
    state = after(ProjectState(), override_agent(ProjectState(), "a", {"idle_prompt": "up", "idle_interval_s": 90}))
    state = after(state, override_agent(state, "a", {"idle_interval_s": 5}))
    assert state.overrides["a"] == Idle("up", FLOOR_S)
    state = after(state, override_agent(state, "a", {"idle_prompt": None}))
    assert state.overrides["a"] == Idle(None, FLOOR_S)
    assert isinstance(override_agent(state, "a", {}), Already)
    state = after(state, override_agent(state, "a", {"idle_interval_s": None}))
    assert state.overrides == {}
    assert isinstance(override_agent(state, "a", {"idle_prompt": ""}), Refusal)


idles = st.builds(
    Idle, st.none() | st.text(min_size=1, max_size=3).map(lambda t: t + "."), st.none() | st.integers(-5, 900)
)


@given(said=idles, override=idles, own=idles)
def test_settings_are_the_missions_over_the_overrides_over_the_agents_field_by_field(
    said: Idle, override: Idle, own: Idle
) -> None:
    state = on_a_mission(MissionAgent(agent="a", idle_prompt=said.prompt, idle_interval_s=said.interval_s))
    changes = {"idle_prompt": override.prompt, "idle_interval_s": override.interval_s}
    decision = override_agent(state, "a", changes)
    state = state if isinstance(decision, Already) else after(state, decision)
    found = settings_for(state, "a", own)

    def first(*values: str | int | None) -> str | int | None:
        return next((value for value in values if value is not None), None)

    asked = first(said.interval_s, override.interval_s, own.interval_s)
    assert found.prompt == first(said.prompt, override.prompt, own.prompt)
    assert found.interval_s == (INTERVAL_S if asked is None else max(FLOOR_S, int(asked)))
    # What another agent is told is nobody else's matter.
    assert settings_for(state, "b", own).prompt == own.prompt


# -- who is due


def test_idle_clock_starts_when_the_mission_is_set_or_the_agent_comes_to_rest_whichever_is_later() -> None:
    state = on_a_mission("a", ts=10 * MINUTE)
    early, late = Agent(PROMPT, resting_since=0), Agent(PROMPT, resting_since=20 * MINUTE)

    assert due(state, 11 * MINUTE - 1, {"a": early}) == []
    assert names(due(state, 11 * MINUTE, {"a": early})) == ["a"]
    assert due(state, 21 * MINUTE - 1, {"a": late}) == []
    assert names(due(state, 21 * MINUTE, {"a": late})) == ["a"]
    assert next_due(state, {"a": late}) == 21 * MINUTE


def test_who_was_woken_is_not_woken_again_before_his_time_even_when_he_was_never_told() -> None:
    state = woken(on_a_mission("a"), "a", ts=5 * MINUTE)
    assert due(state, 6 * MINUTE - 1, {"a": Agent(PROMPT, resting_since=0)}) == []
    assert names(due(state, 6 * MINUTE, {"a": Agent(PROMPT, resting_since=0)})) == ["a"]


def test_who_is_busy_waits_is_gone_or_has_no_prompt_is_passed_over_and_it_is_said_why() -> None:
    state = on_a_mission("busy", "waits", "deleted", "gone", "silent", "ready")
    agents = {
        "busy": Agent(PROMPT, resting_since=None),
        "waits": Agent(PROMPT, held="waiting"),
        "deleted": Agent(PROMPT, held="deleted"),
        "silent": Agent(),
        "ready": Agent(PROMPT),
    }
    found = {name: outlook(state, name, agents.get(name), 0.0).status for name in ("gone", *agents)}

    assert names(due(state, 10**12, agents)) == ["ready"]
    assert found == {
        "busy": "busy",
        "waits": "waiting",
        "deleted": "deleted",
        "gone": "unknown_agent",
        "silent": "no_prompt",
        "ready": "resting",
    }


def test_mission_has_a_hundred_wakings_for_all_its_agents_together() -> None:
    state = on_a_mission("a", "b", "c")
    for number in range(TRIGGER_LIMIT - 2):
        state = woken(state, "ab"[number % 2])
    agents = dict.fromkeys("abc", Agent(PROMPT))

    # Three are due and two are left.
    assert len(due(state, 10**12, agents)) == 2
    state = woken(woken(state, "c"), "a")
    assert state.mission
    assert state.mission.triggered == TRIGGER_LIMIT
    assert sum(one.count for one in state.mission.woken.values()) == TRIGGER_LIMIT
    assert due(state, 10**12, agents) == []
    assert stop_reason(state.mission, 0.0) == "limit"
    assert isinstance(trigger(state, "m", "a", "go on", "c", 0.0), Refusal)


def test_waking_for_a_mission_that_is_over_is_refused() -> None:
    state = on_a_mission("a", name="old")
    state = after(state, set_mission("new", "x", []))
    assert isinstance(trigger(state, "old", "a", "go on", "c", 0.0), Refusal)


@given(budget=st.floats(0.01, 9), spent=st.floats(0, 9), seen=st.floats(0, 9))
def test_nobody_is_woken_once_the_budget_is_reached(budget: float, spent: float, seen: float) -> None:
    state = woken(on_a_mission("a", budget_usd=budget), "a", spent_usd=seen)
    found = due(state, 10**12, {"a": Agent(PROMPT)}, spent)
    assert (found == []) == (max(spent, seen) >= budget)


@given(
    rests=st.lists(st.none() | st.integers(0, 20), min_size=4, max_size=4),
    now=st.integers(0, 30),
    done=st.integers(0, TRIGGER_LIMIT),
)
def test_due_is_whoever_has_rested_long_enough_and_never_more_than_is_left(
    rests: list[int | None], now: int, done: int
) -> None:
    state = on_a_mission("a", "b", "c", "d", ts=3 * MINUTE)
    for _ in range(done):
        state = woken(state, "e")
    agents = {
        name: Agent(PROMPT, resting_since=None if rest is None else rest * MINUTE)
        for name, rest in zip("abcd", rests, strict=True)
    }
    ready = [name for name, rest in zip("abcd", rests, strict=True) if rest is not None and max(3, rest) + 1 <= now]
    found = names(due(state, now * MINUTE, agents))

    assert set(found) <= set(ready)
    assert len(found) == min(len(ready), TRIGGER_LIMIT - done)


def test_first_words_say_what_the_mission_is_and_later_ones_only_the_prompt() -> None:
    state = woken(on_a_mission("a"), "a")
    assert state.mission
    assert words_for(state.mission, "a") == "Tidy up\n\ngo on"
    state = woken(state, "a")
    assert state.mission
    assert words_for(state.mission, "a") == "go on"
