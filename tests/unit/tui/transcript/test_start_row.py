"""The row above the first message at hand: it says how loading what is above stands, and stays the very same meanwhile."""

from palaver.schema.view import State
from palaver.tui.transcript.start_row import Edge

MORE, WHOLE = State(seq=9, offset=4), State(seq=9)


def said(edge: Edge, state: State) -> str | None:
    row = edge.row(state)
    return row.state if row else None


def test_edge_says_how_loading_stands_until_the_beginning_is_reached() -> None:
    edge = Edge()
    assert said(edge, State()) is None
    assert said(edge, MORE) == "more"
    edge.say("loading")
    assert said(edge, MORE) == "loading"
    edge.say("failed")
    assert said(edge, MORE) == "failed"
    assert said(edge, WHOLE) == "start"


def test_edge_of_another_conversation_knows_nothing_of_the_last_one_s_trouble() -> None:
    edge = Edge()
    edge.say("failed")
    edge.forget()
    assert said(edge, MORE) == "more"


def test_edge_that_says_the_same_is_the_same_row() -> None:
    edge = Edge()
    assert edge.row(MORE) is edge.row(State(seq=12, offset=2))
