"""What waits for a person, in order and in words, and how it ended."""

from typing import Any

from palaver.client.client import WaitingRequest
from palaver.schema.base import Origin
from palaver.schema.view import Offer, Question, Request, Resolution, State
from palaver.tui.docks.asked import asked_of, line_of, place_of, say_resolution, what_of, wider_scopes


def request(id: str = "r", kind: str = "approval", ts: int = 1, **fields: Any) -> Request:
    return Request(**{"id": id, "kind": kind, "ts": ts, "tool": "shell", **fields})


def ended(verdict: str | None, **fields: Any) -> Request:
    kind = fields.pop("kind", "approval")
    offers = (Offer(label="exactly this"), Offer(label="git with any arguments"))
    resolution = Resolution(**{"status": "answered", "ts": 2, "verdict": verdict, **fields})
    return request(kind=kind, status="answered", offers=offers, resolution=resolution)


def test_approvals_come_before_questions_before_plans_the_oldest_first() -> None:
    own = (
        request("p", "plan", 1),
        request("q", "question", 2),
        request("a2", ts=5),
        request("a1", ts=3),
        request("x", status="expired"),
    )
    below = WaitingRequest(conversation="c-2", request=request("b", ts=4), agent="scout")
    asked = asked_of(State(conversation="c-1", agent="demo", requests=own), [below], {"scout": "Scout"})
    assert [one.request.id for one in asked] == ["a1", "b", "a2", "q", "p"]
    assert asked[1].agent == "Scout, working for this conversation,"
    assert (place_of(asked, "q"), place_of(asked, "gone")) == (3, 0)


def test_a_lasting_yes_says_what_it_covers_and_a_no_its_note() -> None:
    assert say_resolution(ended("allow"), is_ours=True) == "Allowed once · by you"
    lasting = ended("allow", scope="project", offer=1)
    assert say_resolution(lasting, is_ours=True) == "Always allowed in this project: git with any arguments · by you"
    assert say_resolution(ended("deny", text="use\x1b make"), is_ours=True) == "Denied: use␛ make · by you"
    assert say_resolution(ended("deny", then="stop"), is_ours=True) == "Denied and stopped · by you"


def test_an_answer_of_somebody_else_is_said_with_where_it_came_from() -> None:
    assert say_resolution(ended("allow"), is_ours=False) == "Allowed once · answered elsewhere"
    by = Origin(face="acp")
    assert say_resolution(ended("allow", by=by), is_ours=False) == "Allowed once · answered elsewhere · via an editor"


def test_questions_and_plans_end_in_their_own_words() -> None:
    assert say_resolution(ended(None, kind="question"), is_ours=True) == "Answered · by you"
    assert say_resolution(ended("deny", kind="question"), is_ours=True) == "Skipped · by you"
    assert say_resolution(ended("allow", kind="plan"), is_ours=True) == "Plan approved · by you"
    assert say_resolution(ended("deny", kind="plan", text="smaller"), is_ours=True) == "Changes asked for · by you"
    assert say_resolution(ended("deny", kind="plan"), is_ours=True) == "Plan rejected · by you"
    assert say_resolution(request(status="superseded"), is_ours=False) == "Given up for a newer message"


def test_what_is_asked_for_is_said_in_one_line_without_tricks() -> None:
    assert what_of(request(input={"command": "ls"})) == "run a command"
    assert what_of(request(tool="edit", input={"path": "a\u202eb.py"})) == "change a file: a⟨202E⟩b.py"
    assert what_of(request(tool="weather\x1b")) == "use weather␛"
    asks = request(kind="question", questions=(Question(question="Which\x07?"),))
    assert line_of(asks, "Demo") == "Demo: Which␇?"


def test_scopes_are_offered_from_the_narrowest() -> None:
    assert wider_scopes(request(scopes=("project", "once", "conversation"))) == ["conversation", "project"]
