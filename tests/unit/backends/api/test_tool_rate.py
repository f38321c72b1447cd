"""The limit of tool calls a minute: what counts, when there is room again, and that 0 is none."""

import pytest

from palaver.backends.api.tool_rate import limit_of, tool_rate
from palaver.schema.view import Message, State, ToolBlock

NOW_MS = 1_000_000


def after(*started_s_ago: float | None) -> State:
    """A conversation whose calls were started so long ago; None: never."""
    blocks = tuple(
        ToolBlock(
            index=index,
            call=f"k{index}",
            name="read",
            status="ok",
            started_at=None if ago is None else NOW_MS - int(ago * 1000),
        )
        for index, ago in enumerate(started_s_ago)
    )
    return State(messages=(Message(id="m", role="assistant", seq=1, updated_seq=1, ts=0, blocks=blocks),))


@pytest.mark.parametrize(
    ("started_s_ago", "left", "wait_s"),
    [
        ((), 3, 60),
        ((1, 2), 1, 60),
        ((1, 2, None, None), 1, 60),
        ((1, 60, 61, 300), 2, 60),
        ((10, 20, 30), 0, 30),
        ((10, 20, 30, 40), 0, 30),
        ((0.5, 0.5, 59.2), 0, 1),
    ],
)
def test_calls_that_were_started_in_the_last_minute_count(
    started_s_ago: tuple[float | None, ...], left: int, wait_s: int
) -> None:
    rate = tool_rate(after(*started_s_ago), 3, NOW_MS)
    assert rate is not None
    assert (rate.left, rate.wait_s) == (left, wait_s)
    assert "3 tool calls a minute" in rate.refusal


@pytest.mark.parametrize("given", [0, None, -1, "3", True])
def test_no_limit_is_none(given: object) -> None:
    assert limit_of({"tool_calls_per_minute": given}) == 0
    assert tool_rate(after(1, 2, 3), 0, NOW_MS) is None
