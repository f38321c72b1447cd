"""How conversations begin that do not begin empty: every log ever released comes in, and none leaves anything under way."""

from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.conversation.creation import Maker, Wishes, begin_branch, from_log, from_messages, harmless
from palaver.core.fold.evolve import fold
from palaver.core.state import OPEN_TOOL
from palaver.errors import Invalid, NotFound
from palaver.history.lines import read_events
from palaver.history.trajectory import document_of, messages_of
from palaver.log.base import Claim
from palaver.schema.commands import Branch, CreateConversation
from palaver.schema.events import decode_event
from palaver.schema.view import State, ToolBlock
from tests.unit.history.sample import asked, conversation, everything, said, tool

GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("*.jsonl"))
WHOLE = [
    path
    for path in GOLDEN
    if path.read_bytes().startswith(b'{"type":"conversation.created"')
    and b"conversation.deleted" not in path.read_bytes()
]
"""Those that hold a conversation from its beginning on, and did not end by its deletion."""
WISHES = Wishes(project="/here", knows=lambda agent: agent == "default")


def maker() -> Maker:
    numbers = count(1)
    return Maker("new", Claim("claim", "hash"), 1_000, lambda: f"new-{next(numbers)}")


def folded(lines: Any) -> State:
    return fold(State(), (decode_event(line) for line in lines))


def is_at_rest(state: State) -> bool:
    calls = [block for one in state.messages for block in one.blocks if isinstance(block, ToolBlock)]
    waiting = [request for request in state.requests if request.status == "open"]
    running = [process for process in state.processes if process.running]
    busy = state.turn or state.queue or waiting or running or state.grants
    return not busy and not any(call.status in OPEN_TOOL for call in calls)


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_golden_log_comes_in_and_rests(path: Path) -> None:
    beginning = from_log(list(read_events(path.read_bytes().splitlines())), WISHES, maker())

    assert is_at_rest(beginning.state)
    assert folded(beginning.lines) == beginning.state
    assert [decode_event(line).seq for line in beginning.lines] == list(range(1, len(beginning.lines) + 1))
    assert (beginning.state.conversation, beginning.state.project) == ("new", "/here")


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_log_branches_and_becomes_a_trajectory(path: Path) -> None:
    source = folded(line for line in path.read_bytes().splitlines())
    body = CreateConversation(branch=Branch(conversation="source"))

    beginning = begin_branch(source, body, maker())
    document = msgspec.json.decode(msgspec.json.encode(document_of(source)))

    assert is_at_rest(beginning.state)
    assert folded(beginning.lines) == beginning.state
    assert len(beginning.state.messages) == sum(one.status != "superseded" for one in source.messages)
    assert len(messages_of(document["messages"])) == len(beginning.state.messages)


def test_log_of_a_deleted_conversation_is_refused() -> None:
    deleted = b"""{"type":"conversation.created","seq":1,"id":"a","ts":1}
{"type":"conversation.deleted","seq":2,"id":"b","ts":2}"""

    with pytest.raises(Invalid, match="deleted"):
        from_log(list(read_events(deleted.splitlines())), WISHES, maker())


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_log_with_any_events_missing_is_refused_or_rests(data: st.DataObject) -> None:
    events = list(read_events(data.draw(st.sampled_from(WHOLE)).read_bytes().splitlines()))
    kept = data.draw(st.sets(st.integers(1, max(1, len(events) - 1))))
    chosen = [events[0], *(event for place, event in enumerate(events) if place in kept)]
    try:
        beginning = from_log(chosen, WISHES, maker())
    except Invalid:
        return

    assert is_at_rest(beginning.state)


def test_branch_keeps_knowledge_usage_and_pairs_under_new_call_ids() -> None:
    source = everything()

    state = begin_branch(source, CreateConversation(branch=Branch(conversation="talk")), maker()).state

    before = [block for one in source.messages for block in one.blocks if isinstance(block, ToolBlock)]
    after = [block for one in state.messages for block in one.blocks if isinstance(block, ToolBlock)]
    assert [(one.name, one.status, one.input, one.output) for one in after] == [
        (one.name, one.status, one.input, one.output) for one in before
    ]
    assert len({one.call for one in after}) == len(after) == 3
    assert state.messages[4].knowledge == source.messages[4].knowledge
    assert (state.messages[1].usage, state.messages[1].finish_reason) == (source.messages[1].usage, "tool_calls")
    assert (state.messages[-1].status, state.compressions) == ("interrupted", ())


@pytest.mark.parametrize(
    ("title", "wanted", "expected"),
    [
        ("Plans", None, "Plans (branch)"),
        ("Plans (branch)", None, "Plans (branch)"),
        ("Plans", "Mine", "Mine"),
        ("", None, ""),
        ("x" * 500, None, "x" * 491 + " (branch)"),
    ],
)
def test_branch_is_called_after_its_source_unless_it_is_named(title: str, wanted: str | None, expected: str) -> None:
    body = CreateConversation(branch=Branch(conversation="talk"), title=wanted)

    assert begin_branch(conversation(asked("one"), title=title), body, maker()).state.title == expected


@pytest.mark.parametrize("elsewhere", [{"project": "/other"}, {"agent": "other"}])
def test_branch_into_another_folder_or_to_another_agent_leaves_permissions_behind(elsewhere: dict[str, Any]) -> None:
    params = {"mode": "full", "policy": [{"tool": "*", "decision": "allow"}], "temperature": 1}
    source = conversation(asked("one"), params=params, project="/here")
    branch = Branch(conversation="talk")

    same = begin_branch(source, CreateConversation(branch=branch, project="/here"), maker()).state
    other = begin_branch(source, CreateConversation(branch=branch, **elsewhere), maker()).state

    assert same.params == params
    assert other.params == {"temperature": 1}


def test_branch_from_a_message_that_is_not_there_is_refused() -> None:
    body = CreateConversation(branch=Branch(conversation="talk", message="nobody"))

    with pytest.raises(NotFound):
        begin_branch(everything(), body, maker())


def test_parameters_of_a_file_are_kept_only_if_they_fit_and_allow_nothing() -> None:
    params = {
        "temperature": 9,
        "max_tokens": "many",
        "mode": "auto",
        "policy": [{"tool": "*", "decision": "allow"}],
        "ide_tools": [],
        "house": {"rule": 1},
    }

    assert harmless(params) == {"temperature": 2, "house": {"rule": 1}}
    assert harmless({"mode": "plan"}) == {"mode": "plan"}
    assert harmless({"house": "x" * 70_000}) == {}


def test_open_call_of_a_file_has_its_result_before_it_is_shown_to_anyone() -> None:
    state = from_messages([said("x", "a1", status="streaming"), tool_message()], WISHES, maker()).state

    assert is_at_rest(state)
    assert [one.status for one in state.messages] == ["interrupted", "done"]


def tool_message() -> Any:
    return msgspec.structs.replace(said("", "a2"), blocks=(tool("c", 0, status="running"),))
