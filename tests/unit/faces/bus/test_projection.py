"""The bus's words for every event there is, over the golden logs."""

from typing import Any

import msgspec
import pytest

from palaver.core.fold.evolve import evolve
from palaver.faces.bus.frames import FRAMES, STRIDE, BusMessage, Source, Told, number_frames, number_of, position_of
from palaver.faces.bus.projection import CHANGED_FILES, DIFF_CHARS, LINES_AT_ONCE, project
from palaver.schema.base import BlobRef, Origin
from palaver.schema.content import as_content
from palaver.schema.events import (
    AnswerStarted,
    ConversationCreated,
    Event,
    FilesChanged,
    LogCompacted,
    MessageAdded,
    MissionTriggered,
    QueueAdded,
    QueueRemoved,
    TextDelta,
    TextFinished,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    TurnStatus,
    UnknownEvent,
)
from palaver.schema.view import FileChange, State, Trigger
from tests.unit.faces.bus.told import NAMES, flat, told, words

golden = pytest.mark.parametrize("name", NAMES)

SILENT = (
    AnswerStarted,
    LogCompacted,
    MessageAdded,  # From the queue: announced when it came in.
    TextDelta,
    ThinkingFinished,
    ToolCalled,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
    ToolStarted,
    TurnStatus,
)
"""Told by the agent's status, by what they finish, or by an event before or after them; of the rest every single one is told."""


@golden
def test_every_change_is_told(name: str) -> None:
    for event, _, frames in told(name):
        late = getattr(event, "turn", None) and type(event).__name__ in (
            "TurnFinished",
            "TurnInterrupted",
            "RequestResolved",
        )
        if not isinstance(event, SILENT) and not late:
            assert frames, event


@golden
def test_frames_have_the_shape_of_the_contract(name: str) -> None:
    last = 0
    for position, (event, state, frames) in enumerate(told(name), 1):
        source = Source(position, event.id, event.ts, "c", state.agent, ("/p",))
        made = number_frames(frames, source)
        assert all(position_of(frame.seq) == position for frame in made)
        for frame in made:
            assert frame.seq > last
            last = frame.seq
            body = dict(line.split(": ", 1) for line in frame.body.decode().rstrip("\n").split("\n"))
            message = msgspec.json.decode(body["data"], type=BusMessage)
            assert (sorted(body), str(message.seq)) == (["data", "id"], body["id"])
            assert (message.rev, message.project_root) == (message.seq, "/p")
            assert message.session_id == (event.target if isinstance(event, MissionTriggered) else "c")
            assert None not in msgspec.json.decode(body["data"]).values()


@golden
def test_status_is_closed_before_the_next_one_opens(name: str) -> None:
    is_open: str | None = None
    for one in flat(name):
        if one.kind != "activity" or (one.data or {}).get("status") == "idle_prompt_triggered":
            continue
        if one.phase == "doing":
            assert is_open in (None, one.id)
            is_open = one.id
        else:
            assert is_open == one.id
            is_open = None


def test_turn_is_told_in_the_order_of_the_contract() -> None:
    frames = flat("talk")
    begin = next(place for place, one in enumerate(frames) if one.kind == "message")
    end = next(place for place, one in enumerate(frames) if one.phase == "outcome")
    assert words(frames[begin : end + 1]) == [
        "message",
        "activity/doing model_loading",
        "run/sync",
        # Its detail changes, and it stays the same status.
        "activity/doing model_loading",
        "activity/doing model_loading",
        "token",
        "activity/done model_loading",
        "activity/doing thinking",
        "token",
        "activity/done thinking",
        "activity/doing working",
        "token",
        "token",
        "run/sync",
        "token",
        "text_segment",
        "token/done",
        "run/context_usage",
        "activity/done working",
        "activity/doing idle",
        "activity/done idle",
        "run/outcome",
    ]


def test_finished_text_is_its_fragments_joined() -> None:
    tokens: dict[int, str] = {}
    for event, _, frames in told("engine"):
        block: Any = getattr(event, "block", None)
        for one in frames:
            if one.kind == "token" and one.text is not None and one.data is None:
                tokens[block] = tokens.get(block, "") + one.text
            if one.kind == "text_segment":
                assert tokens.pop(block) == one.text


def test_question_and_permission_open_and_end_under_one_id() -> None:
    frames = [one for one in flat("requests") if one.kind == "ask_user"]
    opened = [one.id for one in frames if one.phase is None]
    ended = {one.id: (one.data or {})["status"] for one in frames if one.phase == "resolved"}
    # One was asked again under its id, one is answered twice; each ends once.
    assert set(opened) == {"q-a", "q-b", "q-c", "q-d", "q-f"}
    assert ended == {"q-a": "answered", "q-b": "expired", "q-c": "answered", "q-d": "answered", "q-f": "cancelled"}
    assert len([one for one in frames if one.phase == "resolved"]) == 5


def test_plan_keeps_its_id_and_its_words() -> None:
    plans = [one for one in flat("requests") if one.phase == "plan_update"]
    assert {one.id for one in plans} == {"plan-requests"}
    assert plans[0].data == {
        "plan": {
            "summary": "Prune",
            "items": [
                {"title": "Cut", "description": "low", "status": "pending"},
                {"title": "Burn", "status": "skipped"},
            ],
            "status": "planned",
            "plan_text": "1. Cut\n2. Burn",
        }
    }


def test_subagents_are_told_with_their_sessions() -> None:
    frames = [one for one in flat("delegating") if one.phase in ("subagent_spawned", "subagent_result")]
    assert (frames[0].phase, frames[0].data) == (
        "subagent_spawned",
        {"parent_id": "default", "subagent_id": "c-1", "agent_id": "digger", "run_id": "r-1", "task": "Dig"},
    )
    failed = {"parent_id": "default", "subagent_id": "c-2", "run_id": "r-2", "outcome": "error"}
    assert failed in [one.data for one in frames]


def test_queue_replaces_itself() -> None:
    queues = [one for one in flat("queue") if one.kind == "queue"]
    assert {one.id for one in queues} == {"queue-queue"}
    for event, state, frames in told("queue"):
        for one in frames:
            if one.kind == "queue":
                assert [item["id"] for item in (one.data or {})["items"]] == [item.id for item in state.queue], event


def test_fallback_names_both_models_and_why() -> None:
    found = [one.data for name in NAMES for one in flat(name) if one.kind == "model_fallback"]
    assert found
    names = ["actual", "actual_model", "preferred", "preferred_model", "reason"]
    for data in found:
        assert data is not None
        assert sorted(data) == names
        assert (data["preferred"], data["actual"]) == (data["preferred_model"], data["actual_model"])


# -- what no golden log holds


def begun(*events: Event) -> State:
    state = State()
    for seq, event in enumerate([ConversationCreated(project="/p"), *events], 1):
        numbered_event = msgspec.structs.replace(event, seq=seq, conversation="c")
        state = evolve(state, numbered_event)
    return state


def next_told(state: State, event: Event) -> list[Told]:
    event = msgspec.structs.replace(event, seq=state.seq + 1, conversation="c")
    return project(event, state, evolve(state, event))


STARTED = TurnStarted(turn="t", agent="default", backend="b", trigger=Trigger())
CALLED = (
    STARTED,
    AnswerStarted(turn="t", message="m"),
    ToolCalled(turn="t", message="m", block=0, call="k", name="shell", input={"command": "make"}),
    ToolStarted(turn="t", call="k", grant="rule"),
)


def test_change_report_is_bounded_and_counts_what_it_leaves_out() -> None:
    files = tuple(FileChange(path=f"{n}", kind="modified", diff="x" * 50_000) for n in range(25))
    (report,) = next_told(begun(*CALLED), FilesChanged(turn="t", files=files, call="k", truncated_count=3))
    data = report.data or {}
    assert (len(data["files"]), data["truncated_count"]) == (CHANGED_FILES, 8) == (20, 8)
    assert {len(file["diff"]) for file in data["files"]} == {DIFF_CHARS} == {12_000}
    assert sorted(data["files"][0]) == ["diff", "path", "summary"]


def test_lines_of_a_tool_are_whole_and_its_last_one_comes_with_its_end() -> None:
    state = begun(*CALLED)
    lines: list[dict[str, Any]] = []
    for text, stream in (("on", "stdout"), ("e\ntw", "stdout"), ("o\r\nwarn", "stderr"), ("ing\rthree", "stderr")):
        event = ToolOutputDelta(turn="t", call="k", text=text, stream=stream, seq=state.seq + 1)  # type: ignore[arg-type]
        lines += [one.data or {} for one in project(event, state, evolve(state, event))]
        state = evolve(state, event)
    lines += [
        one.data or {}
        for one in next_told(state, ToolFinished(turn="t", call="k", ok=True))
        if one.kind == "tool_progress"
    ]
    assert [line["line"] for line in lines] == ["one", "two", "warning", "three"]
    assert [line["stream"] for line in lines[:3]] == ["stdout", "stderr", "stderr"]
    assert {line["tool"] for line in lines} == {"shell"}


def test_burst_of_lines_fits_the_numbers_of_its_event() -> None:
    frames = next_told(begun(*CALLED), ToolOutputDelta(turn="t", call="k", text="line\n" * 5_000))
    assert len(frames) == LINES_AT_ONCE + 1 < FRAMES < STRIDE
    assert (frames[0].data or {})["line"] == f"[… {5_000 - LINES_AT_ONCE:,} lines …]"


@pytest.mark.parametrize(("mode", "word"), [("plan", "plan_mode_requested"), ("ask", "none"), (None, "none")])
def test_run_in_plan_mode_that_ends_without_a_plan_says_what_was_asked_for(mode: str | None, word: str) -> None:
    state = begun(msgspec.structs.replace(STARTED, mode=mode))
    ended = next_told(state, TurnFinished(turn="t", outcome="completed"))
    assert (ended[-1].kind, ended[-1].phase, ended[-1].data) == ("run", "outcome", {"outcome": word})


def test_text_without_fragments_is_told_whole_once() -> None:
    state = begun(STARTED, AnswerStarted(turn="t", message="m"))
    finished = TextFinished(turn="t", message="m", block=0, text="All at once.", blob=BlobRef(id="b", size=9))
    frames = [one for one in next_told(state, finished) if one.kind in ("token", "text_segment")]
    assert [(one.kind, one.text) for one in frames] == [("token", "All at once."), ("text_segment", "All at once.")]
    assert frames[1].data == {"truncated": True, "url": "/api/blobs/b"}
    # The segment has its number whether or not a token comes before it.
    streamed = evolve(state, TextDelta(turn="t", message="m", block=0, text="All at once.", seq=4))
    segment = next(one for one in next_told(streamed, finished) if one.kind == "text_segment")
    places = [number_frames(told, Source(7, "e", 0, "c", "a", ())) for told in (frames, [segment])]
    assert places[0][1].seq == places[1][0].seq == number_of(7, 1)


def test_message_of_another_agent_and_of_nobody_are_told_from_a_persons() -> None:
    state = begun()
    by_agent = MessageAdded(message="m", content=as_content("Hi"), origin=Origin(agent="digger"))
    assert next_told(state, by_agent)[0].data == {"from": "digger", "to": "default", "role": "user"}
    answered = MessageAdded(message="m", role="assistant", content=as_content("Hi"))
    assert next_told(state, answered)[0].data == {"from": "default", "to": "user", "role": "agent"}
    hidden = MessageAdded(message="m", role="event", content=as_content("…"), hidden=True)
    assert words(next_told(state, hidden)) == ["run/sync"]


def test_idle_prompt_is_closed_when_its_turn_begins_or_it_is_taken_back() -> None:
    fired = MissionTriggered(mission="m", agent="default", count=1, target="c", prompt="Go on.")
    (opened,) = project(fired, State(), State())
    assert (opened.phase, opened.text, opened.session) == ("doing", "Go on.", "c")
    begun_by = TurnStarted(turn="t", agent="default", backend="b", trigger=Trigger(kind="idle"))
    assert words(next_told(begun(), begun_by))[:2] == [
        "activity/done idle_prompt_triggered",
        "activity/doing model_loading",
    ]
    assert next_told(begun(), begun_by)[0].id == opened.id
    waits = begun(STARTED, QueueAdded(item="q", content=as_content("Go on."), trigger="idle"))
    removed = next_told(waits, QueueRemoved(item="q", reason="cancelled"))
    assert [one.id for one in removed if one.kind == "activity"] == [opened.id]
    # Any other turn, and any other message, closes nothing.
    assert "idle_prompt_triggered" not in str(next_told(begun(), STARTED))
    other = begun(STARTED, QueueAdded(item="q", content=as_content("Hi")))
    assert "idle_prompt_triggered" not in str(next_told(other, QueueRemoved(item="q", reason="cancelled")))


def test_message_of_a_mission_says_so() -> None:
    woken = MessageAdded(message="m", content=as_content("Go on."), origin=Origin(face="mission"))
    assert next_told(begun(), woken)[0].data == {"from": "mission", "to": "default", "role": "user"}


@golden
def test_frames_that_carry_the_content_of_a_message_name_it(name: str) -> None:
    """So that they go with it when it is removed."""
    for event, _, frames in told(name):
        for one in frames:
            if one.kind in ("message", "token", "text_segment", "tool_progress") and one.phase is None:
                assert one.messages, event


def test_event_of_a_later_release_is_told_as_a_change() -> None:
    assert words(project(UnknownEvent(seq=2, type="later"), begun(), begun())) == ["run/sync"]
