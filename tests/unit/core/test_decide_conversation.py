"""Titles, agents, parameters and drafts: what changes, what is the same already, and what is too long."""

import pytest

from palaver.core.decide.decide import decide
from palaver.schema.commands import ClearDraft, Command, SetDraft, SetParams, UpdateConversation
from palaver.schema.events import ConversationUpdated, DraftSet
from tests.unit.core.stage import after, already, at_rest, events, facts, kinds, refusal


def test_update_takes_a_title_as_a_persons_own() -> None:
    state = after(*events(after(), UpdateConversation(title="  Mine ")))
    assert (state.title, state.title_source) == ("Mine", "user")


def test_update_of_one_thing_leaves_the_others() -> None:
    state = after(*events(after(), UpdateConversation(title="Mine")))
    state = after(*events(state, UpdateConversation(agent="other")), state=state)
    state = after(*events(state, UpdateConversation(archived=True)), state=state)
    assert (state.title, state.agent, state.archived) == ("Mine", "other", True)


def test_update_with_a_title_that_was_found_automatically_makes_it_a_persons_own() -> None:
    auto = after(ConversationUpdated(title="Mine", title_source="auto"))
    assert kinds(decide(auto, UpdateConversation(title="Mine"), facts())) == ["ConversationUpdated"]


@pytest.mark.parametrize(
    "command",
    [
        UpdateConversation(title="Mine"),
        UpdateConversation(agent="default"),
        UpdateConversation(archived=False),
        UpdateConversation(title="Mine", agent="default", archived=False),
    ],
)
def test_update_to_what_is_so_already_leaves_no_event(command: UpdateConversation) -> None:
    state = after(ConversationUpdated(title="Mine", title_source="user"))
    assert already(state, command).note == "unchanged"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (UpdateConversation(), "invalid"),
        (UpdateConversation(title=" "), "invalid"),
        (UpdateConversation(title="x" * 501), "too_large"),
        (SetDraft(text="x" * ((256 << 10) + 1)), "too_large"),
        (SetParams(patch={"note": "x" * (64 << 10)}), "too_large"),
    ],
)
def test_update_that_says_nothing_or_too_much_is_refused(command: Command, code: str) -> None:
    assert refusal(at_rest(), command).code == code


def test_params_are_merged_and_null_clears() -> None:
    state = after(*events(after(), SetParams(patch={"temperature": 1, "mode": "ask"})))
    state = after(*events(state, SetParams(patch={"mode": None, "model": "demo"})), state=state)
    assert state.params == {"temperature": 1, "model": "demo"}


def test_draft_is_set_kept_and_cleared() -> None:
    state = after(*events(after(), SetDraft(text="Dear")))
    assert state.draft == "Dear"
    assert already(state, SetDraft(text="Dear")).note == "unchanged"
    cleared = after(*events(state, ClearDraft()), state=state)
    assert cleared.draft == ""
    assert already(cleared, ClearDraft()).note == "There was no draft."


def test_draft_takes_what_fits_into_an_event() -> None:
    assert isinstance(events(after(), SetDraft(text="x" * (256 << 10)))[0], DraftSet)
