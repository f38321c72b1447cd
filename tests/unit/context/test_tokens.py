"""How many tokens something is, and what corrects the estimate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.context.meter import Fixed, breakdown_of, noticeable
from palaver.context.tokens import (
    IMAGE_TOKENS,
    Counted,
    json_tokens,
    last_counted,
    message_tokens,
    spec_tokens,
    text_tokens,
    weigh,
)
from palaver.schema.base import BlobRef, Usage
from palaver.schema.view import Compression, ContextMeter, ImageBlock, Knowledge, Message, TextBlock
from palaver.tools.base import ToolSpec
from tests.unit.context.histories import answer, message, used, user

PROSE = (
    "The quick brown fox jumps over the lazy dog, and then it goes home to think about what it has done today. Nobody "
    "asked it to jump, but foxes seldom wait for an invitation, and the dog did not seem to mind very much either."
)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("", 0, 0),
        ("a", 1, 1),
        (PROSE, 40, 65),
        ("def add(left: int, right: int) -> int:\n    return left + right\n", 14, 26),
        ("Съешь же ещё этих мягких французских булок, да выпей чаю.", 14, 30),
        ("素早い茶色の狐が怠け者の犬を飛び越える。", 14, 26),
        ("🦊🦊🦊🦊", 4, 16),
    ],
)
def test_texts_are_estimated_within_what_is_promised(text: str, low: int, high: int) -> None:
    assert low <= text_tokens(text) <= high


@given(st.text(max_size=300), st.text(max_size=300))
def test_more_text_is_never_fewer_tokens(text: str, more: str) -> None:
    assert text_tokens(text + more) >= text_tokens(text)
    assert text_tokens(text + more) <= text_tokens(text) + text_tokens(more)


def test_everything_a_message_holds_is_counted() -> None:
    assert message_tokens(message(1, "user", ImageBlock(index=0, url="x"))) >= IMAGE_TOKENS
    long = TextBlock(index=0, text="beginning", blob=BlobRef(id="b", size=370_000))
    assert message_tokens(message(1, "user", long)) >= 100_000
    recalled = user(1, "hi", knowledge=Knowledge(text="fact " * 100))
    assert message_tokens(recalled) - message_tokens(user(1, "hi")) == text_tokens("fact " * 100)
    assert message_tokens(answer(1, "", used("c", "out " * 100, path="a"))) > text_tokens("out " * 100)


def test_arguments_and_tools_of_any_kind_are_counted() -> None:
    assert json_tokens({"a": [1, 2, {"b": None}]}) > 1
    assert json_tokens({"a": "\ud800"}) >= 1
    spec = ToolSpec(name="read", description="Read a file. " * 10, parameters={"type": "object"})
    assert spec_tokens([spec, spec]) == 2 * spec_tokens([spec]) > 60


# -- what the provider counted


def counted_answer(seq: int, tokens: int, **fields: object) -> Message:
    return answer(seq, "Yes.", usage=Usage(input_tokens=tokens), model="m", **fields)


def compression(seq: int) -> Compression:
    return Compression(
        stage="shorten", horizon=1, strength="low", ts=0, seq=seq, before_tokens=2, after_tokens=1, summary=None
    )


def test_the_newest_count_of_the_same_model_and_the_same_history_holds() -> None:
    history = [user(1, "hi"), counted_answer(2, 500), user(3, "and?"), counted_answer(5, 900), user(7, "so?")]
    assert last_counted(history, (), "m") == Counted(5, 900)
    assert last_counted(history, (), "other") is None
    assert last_counted(history, (compression(6),), "m") is None
    assert last_counted(history, (compression(4),), "m") == Counted(5, 900)
    assert last_counted(history[:1], (), "m") is None
    assert last_counted([user(1, "hi"), counted_answer(2, 5, status="interrupted")], (), "m") is None


def test_an_estimate_is_corrected_by_what_was_counted() -> None:
    history = [user(1, PROSE * 20), counted_answer(2, 0), user(3, PROSE * 10)]
    plain = weigh(history, 100, None)
    assert (plain.counted, plain.factor) == (False, 1.0)
    before = 100 + message_tokens(history[0])
    corrected = weigh(history, 100, Counted(2, int(before * 0.8)))
    assert corrected.counted
    assert corrected.tokens == pytest.approx(plain.tokens * 0.8, rel=0.01)


@pytest.mark.parametrize("nonsense", [1, 10_000_000])
def test_a_count_that_cannot_be_one_is_not_believed(nonsense: int) -> None:
    history = [user(1, PROSE * 20), counted_answer(2, 0), user(3, PROSE)]
    assert weigh(history, 100, Counted(2, nonsense)) == weigh(history, 100, None)


# -- the meter


def test_the_parts_of_the_meter_come_to_the_whole() -> None:
    history = [
        user(1, "hi", knowledge=Knowledge(text="fact " * 50)),
        answer(2, "Looked.", used("c", "line\n" * 200, path="a")),
        answer(3, "gone", status="superseded"),
    ]
    parts = breakdown_of(history, Fixed(100, 300, 50), 5_000)
    assert sum(parts.values()) == 5_000
    assert set(parts) == {"system", "tools", "instructions", "knowledge", "messages", "tool_results"}
    assert parts["tool_results"] > parts["messages"] > 0
    assert parts["tools"] == 3 * parts["system"]


@pytest.mark.parametrize(
    ("known", "used_tokens", "window", "news"),
    [
        (None, 10, 1_000, True),
        (ContextMeter(used_tokens=10, window_tokens=1_000), 10, 1_000, True),
        (ContextMeter(used_tokens=10, window_tokens=1_000, breakdown={"system": 10}), 150, 1_000, False),
        (ContextMeter(used_tokens=10, window_tokens=1_000, breakdown={"system": 10}), 210, 1_000, True),
        (ContextMeter(used_tokens=10, window_tokens=1_000, breakdown={"system": 10}), 10, 2_000, True),
        (ContextMeter(used_tokens=10, window_tokens=200_000, breakdown={"system": 10}), 3_000, 200_000, False),
        (ContextMeter(used_tokens=10, window_tokens=None, breakdown={"system": 10}), 300, None, True),
    ],
)
def test_the_meter_speaks_when_it_has_moved(
    known: ContextMeter | None, used_tokens: int, window: int | None, news: bool
) -> None:
    assert noticeable(known, used_tokens, window) is news
