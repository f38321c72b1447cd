"""What waits for a person, in order and in words, and how it ended."""

from typing import Any

from palaver.client.client import WaitingRequest
from palaver.schema.base import Origin
from palaver.schema.view import Offer, Question, Request, Resolution, State
from palaver.tui.docks.request_choice import line_of, place_of, requests_of, what_of, wider_scopes
from palaver.tui.people import People
from palaver.tui.text.answers import say_resolution

HERE = Origin(client="terminal", user="owner")
ME = People(me="owner", client="terminal")


def request(id: str = "r", kind: str = "approval", ts: int = 1, **fields: Any) -> Request:
    return Request(**{"id": id, "kind": kind, "ts": ts, "tool": "shell", **fields})


def ended(verdict: str | None, **fields: Any) -> Request:
    kind = fields.pop("kind", "approval")
    offers = (Offer(label="exactly this"), Offer(label="git with any arguments"))
    resolution = Resolution(**{"status": "answered", "ts": 2, "verdict": verdict, "by": HERE, **fields})
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
    asked = requests_of(State(conversation="c-1", agent="demo", requests=own), [below], {"scout": "Scout"})
    assert [one.request.id for one in asked] == ["a1", "b", "a2", "q", "p"]
    assert asked[1].agent == "Scout, working for this conversation,"
    assert (place_of(asked, "q"), place_of(asked, "gone")) == (3, 0)


def test_a_lasting_yes_says_what_it_covers_and_a_no_its_note() -> None:
    assert say_resolution(ended("allow"), ME) == "Allowed once · by you"
    lasting = ended("allow", scope="project", offer=1)
    assert say_resolution(lasting, ME) == "Always allowed in this project: git with any arguments · by you"
    assert say_resolution(ended("deny", text="use\x1b make"), ME) == "Denied: use␛ make · by you"
    long = f"Use the staging copy, {'as we said before, ' * 6}please.\nAnd keep the log."
    assert say_resolution(ended("deny", text=long), ME) == f"Denied: {long} · by you"
    assert say_resolution(ended("deny", then="stop"), ME) == "Denied and stopped · by you"


def test_an_answer_of_somebody_else_is_said_with_where_it_came_from() -> None:
    elsewhere = Origin(client="page", user="owner")
    assert say_resolution(ended("allow", by=elsewhere), ME) == "Allowed once · answered elsewhere"
    editor = Origin(face="acp")
    assert say_resolution(ended("allow", by=editor), ME) == "Allowed once · answered elsewhere · via an editor"
    guest = Origin(client="terminal", user="guest\x1b")
    assert say_resolution(ended("allow", by=guest), ME) == "Allowed once · by guest␛"
    assert say_resolution(ended("allow", by=HERE), People(me="owner")) == "Allowed once · answered elsewhere"


def test_questions_and_plans_end_in_their_own_words() -> None:
    assert say_resolution(ended(None, kind="question"), ME) == "Answered · by you"
    assert say_resolution(ended("deny", kind="question"), ME) == "Skipped · by you"
    assert say_resolution(ended("allow", kind="plan"), ME) == "Plan approved · by you"
    assert say_resolution(ended("deny", kind="plan", text="smaller"), ME) == "Changes asked for · by you"
    assert say_resolution(ended("deny", kind="plan"), ME) == "Plan rejected · by you"
    assert say_resolution(request(status="superseded"), ME) == "Given up for a newer message"


def test_what_is_asked_for_is_said_in_one_line_without_tricks() -> None:
    assert what_of(request(input={"command": "ls"})) == "run a command"
    assert what_of(request(tool="edit", input={"path": "a\u202eb.py"})) == "change a file: a⟨202E⟩b.py"
    assert what_of(request(tool="weather\x1b")) == "use weather␛"
    asks = request(kind="question", questions=(Question(question="Which\x07?"),))
    assert line_of(asks, "Demo") == "Demo: Which␇?"


def test_scopes_are_offered_from_the_narrowest() -> None:
    assert wider_scopes(request(scopes=("project", "once", "conversation"))) == ["conversation", "project"]
