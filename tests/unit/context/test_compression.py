"""The staged history limit: what it may do, what it never does, and when it stops."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.backends.api import anthropic, openai
from palaver.backends.api.provider import ModelRequest
from palaver.context.compression import TARGET_SHARE, budget_of
from palaver.context.linearize import Arranged, linearize
from palaver.context.prompt import AssistantMessage, Call, Outcome, PromptMessage, Text, UserMessage
from palaver.context.reduce import KEPT_TOOLS, POINTER, horizons_of, reduce_history
from palaver.schema.view import Compression, Message, Plan, PlanItem, TextBlock, ToolBlock
from tests.provider.anthropic import AnthropicWire
from tests.provider.openai import OpenAiWire
from tests.provider.quotes import QUOTING, read_prompt
from tests.unit.context.histories import (
    SECRET,
    answer,
    compressed,
    histories,
    message,
    no_blobs,
    recorded,
    redact,
    shown,
    used,
    user,
)

LIMITS = st.sampled_from([50, 200, 500, 1_000, 2_000, 5_000, 20_000])
SUMMARIES = st.sampled_from([None, "What happened: not much."])


def outcomes(messages: tuple[PromptMessage, ...]) -> list[str]:
    return [part.text for one in messages for part in one.parts if isinstance(part, Outcome)]


def said(messages: tuple[PromptMessage, ...]) -> list[str]:
    return [
        part.text for one in messages if isinstance(one, UserMessage) for part in one.parts if isinstance(part, Text)
    ]


def stages(history: list[Message], limit: int, summary: str | None = None) -> list[str]:
    return [taken.stage for taken in compressed(history, limit, summary=summary)[0].taken]


def talk(turns: int, output_chars: int = 2_000, text: str = "Looked at it.") -> list[Message]:
    """A person asks, the agent reads one file after the other and answers."""
    found: list[Message] = []
    for turn in range(turns):
        seq = turn * 10 + 1
        tool = used(f"c{turn}", f"{turn} " * (output_chars // 3), path=f"f{turn}.py")
        found += [
            user(seq, f"Question {turn}: what is in f{turn}.py?", turn=f"t{turn}"),
            answer(seq + 2, "Let me look.", tool, turn=f"t{turn}"),
            answer(seq + 6, f"{text} ({turn})", turn=f"t{turn}"),
        ]
    return found


# -- never


@settings(deadline=None, max_examples=60)
@given(histories(), LIMITS, SUMMARIES)
def test_whatever_is_compressed_the_services_take_it(history: list[Message], limit: int, summary: str | None) -> None:
    _, compressions = compressed(history, limit, summary=summary)
    request = ModelRequest(model="m", system="s", messages=shown(history, compressions))
    AnthropicWire().check(anthropic.request_body(request))
    OpenAiWire().check(openai.request_body(request))


@settings(deadline=None, max_examples=60)
@given(histories(), LIMITS, SUMMARIES)
def test_every_call_that_is_left_has_its_one_result(history: list[Message], limit: int, summary: str | None) -> None:
    _, compressions = compressed(history, limit, summary=summary)
    messages = shown(history, compressions)
    for place, one in enumerate(messages):
        if isinstance(one, AssistantMessage):
            calls = [part.id for part in one.parts if isinstance(part, Call)]
            results = [part.call for part in messages[place + 1].parts if isinstance(part, Outcome)]
            assert calls == results


@settings(deadline=None, max_examples=60)
@given(histories(), LIMITS, SUMMARIES)
def test_people_the_system_and_plans_keep_their_words(history: list[Message], limit: int, summary: str | None) -> None:
    _, compressions = compressed(history, limit, summary=summary)
    left = {one.id: one for one in reduce_history(history, horizons_of(compressions))}
    for one in history:
        if one.role in ("user", "system", "plan"):
            assert left[one.id] == one
        for block in one.blocks:
            if isinstance(block, ToolBlock) and block.name in KEPT_TOOLS and one.role == "assistant":
                assert block in left[one.id].blocks


@settings(deadline=None, max_examples=60)
@given(histories(), LIMITS, SUMMARIES)
def test_a_second_pass_changes_nothing(history: list[Message], limit: int, summary: str | None) -> None:
    first, compressions = compressed(history, limit, summary=summary)
    again, after = compressed(history, limit, compressions, summary=summary, seq=history[-1].seq + len(first.taken))
    if first.fits:
        assert not again.taken
    assert shown(history, compressions) == shown(history, compressions)
    # Where it could not be made to fit, going on comes to an end too.
    for _ in range(4):
        again, after = compressed(history, limit, after, summary=summary, seq=history[-1].seq + len(after))
    assert not again.taken


@settings(deadline=None, max_examples=60)
@given(histories(), LIMITS, SUMMARIES)
def test_each_stage_that_is_taken_saves_something(history: list[Message], limit: int, summary: str | None) -> None:
    work, _ = compressed(history, limit, summary=summary)
    assert all(taken.after_tokens < taken.before_tokens for taken in work.taken)
    assert work.used_tokens >= work.least_tokens()


@settings(deadline=None, max_examples=60)
@given(histories(), LIMITS)
def test_no_part_of_a_secret_is_left_where_text_was_cut(history: list[Message], limit: int) -> None:
    _, compressions = compressed(history, limit, redact=redact)
    for one in reduce_history(history, horizons_of(compressions), redact=redact):
        for block in one.blocks:
            if isinstance(block, ToolBlock) and block.name not in KEPT_TOOLS:
                for text in (block.output, str(block.input)):
                    cut = "left out here" in text or "more characters" in text
                    assert not (cut and "hunter2" in text)


@settings(deadline=None, max_examples=50)
@given(histories(), histories(most=6), LIMITS, SUMMARIES)
def test_what_comes_later_changes_nothing_of_what_was_shown(
    history: list[Message], later: list[Message], limit: int, summary: str | None
) -> None:
    settled = {"called", "waiting", "running", "input"}
    if any(isinstance(block, ToolBlock) and block.status in settled for one in history for block in one.blocks):
        return
    _, compressions = compressed(history, limit, summary=summary)
    seq = history[-1].seq + len(compressions) + 1
    more = [*history, *(message(seq + one.seq, one.role, *one.blocks) for one in later)]
    before, after = reduce_history(history, horizons_of(compressions)), reduce_history(more, horizons_of(compressions))
    assert [one for one in after if one.seq < seq and one.id != "left_out"] == [
        one for one in before if one.id != "left_out"
    ]


@settings(deadline=None, max_examples=60)
@given(histories(), st.lists(st.integers(0, 14), max_size=4))
def test_a_prompt_that_goes_on_from_the_last_one_is_the_same(history: list[Message], lengths: list[int]) -> None:
    kept = Arranged()
    for length in lengths:
        for provider in ("anthropic@host", "openai@host"):
            part = history[:length]
            again = asyncio.run(linearize(part, provider=provider, load=no_blobs, quoting=QUOTING, arranged=kept))
            assert again == asyncio.run(linearize(part, provider=provider, load=no_blobs, quoting=QUOTING))
            more = [*history[: length + 2], *history[length + 3 :]]
            again = asyncio.run(linearize(more, provider=provider, load=no_blobs, quoting=QUOTING, arranged=kept))
            assert again == asyncio.run(linearize(more, provider=provider, load=no_blobs, quoting=QUOTING))


# -- in stages, and no further than needed


def test_a_history_that_fits_is_left_alone() -> None:
    history = talk(4)
    work, compressions = compressed(history, 100_000)
    assert not compressions
    assert work.fits
    assert reduce_history(history, horizons_of(())) is history


def test_files_that_were_read_again_go_first() -> None:
    history = [
        user(1, "Look."),
        answer(2, "One.", used("c1", "old " * 1_000, path="a.py")),
        answer(3, "Two.", used("c2", "part " * 1_000, path="a.py", offset=9)),
        answer(4, "Three.", used("c3", "new " * 1_000, path="./a.py")),
        user(5, "And?"),
    ]
    assert stages(history, 3_200) == ["deduplicate"]
    messages = shown(history, compressed(history, 3_200)[1])
    assert outcomes(messages) == [POINTER, "part " * 1_000, "new " * 1_000]


def test_the_same_result_of_another_tool_is_shown_once() -> None:
    history = [
        user(1, "Look."),
        answer(2, "One.", used("c1", "same " * 1_000, name="shell", command="a")),
        answer(3, "Two.", used("c2", "same " * 1_000, name="fetch", url="b")),
        user(4, "And?"),
    ]
    first, second = outcomes(shown(history, compressed(history, 2_200)[1]))
    assert first.startswith("[The same result came again")
    assert second == "same " * 1_000


def test_a_file_that_is_read_again_after_a_pass_leaves_the_past_as_it_was() -> None:
    history = [
        user(1, "Look."),
        answer(2, "One.", used("c1", "a " * 2_000, path="a.py")),
        answer(3, "Two.", used("c2", "a " * 2_000, path="a.py")),
        answer(4, "Three.", used("c3", "b " * 2_000, path="b.py")),
    ]
    _, compressions = compressed(history, 3_000)
    assert [one.stage for one in compressions] == ["deduplicate"]
    before = shown(history, compressions)
    later = [*history, answer(40, "Four.", used("c4", "b " * 2_000, path="b.py"))]
    assert shown(later, compressions)[: len(before) - 1] == before[:-1]
    assert outcomes(shown(later, compressions))[:3] == outcomes(before)


def test_old_results_are_shortened_before_steps_are_left_out() -> None:
    history = talk(20, output_chars=12_000)
    assert stages(history, 30_000) == ["shorten"]
    messages = shown(history, compressed(history, 30_000)[1])
    first, *_, last = outcomes(messages)
    assert "characters of this result are left out here to save room; call the tool again to see them" in first
    assert first.startswith("0 0 0")
    assert first.endswith("0 0 ")
    assert len(first) < 2_000
    assert len(last) == 12_000


def test_long_arguments_are_repaired_after_results_were_shortened() -> None:
    wrote = [used(f"c{at}", "Written.", name="write", path="a", content="z" * 8_000) for at in range(20)]
    history = [user(1, "Write it."), *(answer(2 + at, "So.", tool) for at, tool in enumerate(wrote))]
    assert stages(history, 25_000) == ["repair"]
    call = next(
        part for one in shown(history, compressed(history, 25_000)[1]) for part in one.parts if isinstance(part, Call)
    )
    assert call.arguments["path"] == "a"
    assert call.arguments["content"] == "z" * 300 + "[… 7,700 more characters …]"


def test_the_last_words_of_a_turn_outlive_its_steps() -> None:
    history = talk(60, output_chars=1_500, text="The answer is forty-two. " * 4)
    assert stages(history, 14_000) == ["limit"]
    messages = shown(history, compressed(history, 14_000)[1])
    assert len(outcomes(messages)) < 30
    answers = [
        part.text
        for one in messages
        if isinstance(one, AssistantMessage)
        for part in one.parts
        if isinstance(part, Text)
    ]
    assert sum("forty-two" in text for text in answers) == 60
    assert "Let me look." not in answers[0]
    assert any("are not shown before this point" in text for text in said(messages))


def test_a_summary_takes_the_place_of_what_is_left_out() -> None:
    history = talk(60, output_chars=900, text="It is a long story. " * 40)
    work, compressions = compressed(history, 14_000, summary="They talked about sixty files.")
    assert [taken.stage for taken in work.taken][-1] == "summarize"
    assert work.taken[-1].strength == "high"
    messages = shown(history, compressions)
    (note,) = [text for text in said(messages) if "sixty files" in text]
    assert read_prompt(note).quotes == (("a summary of what came before", "They talked about sixty files."),)
    assert [text for text in said(messages) if text.startswith("Question")] == [
        f"Question {turn}: what is in f{turn}.py?" for turn in range(60)
    ]


def test_a_later_summary_takes_the_place_of_an_earlier_one() -> None:
    history = talk(60, output_chars=900, text="It is a long story. " * 40)
    work, compressions = compressed(history, 14_000, summary="First notes.")
    seq = history[-1].seq + len(work.taken)
    more = [*history, *(message(seq + one.seq, one.role, *one.blocks) for one in talk(40, 900, "Longer still. " * 60))]
    again, after = compressed(more, 14_000, compressions, summary="Second notes.")
    assert [taken.stage for taken in again.taken][-1] == "summarize"
    told = " ".join(said(shown(more, after)))
    assert "Second notes." in told
    assert "First notes." not in told


def test_without_a_summary_older_steps_leave_all_the_same() -> None:
    history = talk(60, output_chars=900, text="It is a long story. " * 40)
    work, compressions = compressed(history, 14_000)
    assert ("limit", "high") in [(taken.stage, taken.strength) for taken in work.taken]
    assert work.fits
    assert any("are not shown before this point" in text for text in said(shown(history, compressions)))


def test_the_newest_result_is_cut_only_when_nothing_else_helps() -> None:
    history = [user(1, "Look."), answer(2, "So.", used("c1", "n " * 20_000, path="a.py"))]
    work, compressions = compressed(history, 2_000)
    assert work.fits
    (only,) = outcomes(shown(history, compressions))
    assert "left out here" in only


def test_what_a_person_said_is_never_made_to_fit() -> None:
    history = [user(1, "word " * 20_000), answer(2, "Yes."), user(3, "And?")]
    work, compressions = compressed(history, 2_000)
    assert not work.fits
    assert work.least_tokens() > 2_000
    assert not compressions


def test_a_pass_makes_room_for_many_turns() -> None:
    history = talk(80, output_chars=3_000)
    limit = 40_000
    work, compressions = compressed(history, limit)
    assert work.used_tokens <= limit * TARGET_SHARE
    prompts = [shown(history, compressions)]
    seq = history[-1].seq + len(work.taken)
    for turn in range(5):
        at = seq + turn * 10
        history += [
            user(at + 1, f"More {turn}"),
            answer(at + 2, "Fine.", used(f"n{turn}", "y " * 800, path=f"n{turn}")),
        ]
        again, compressions = compressed(history, limit, compressions)
        assert not again.taken
        prompts.append(shown(history, compressions))
    for before, after in pairwise(prompts):
        # But for the closing line that every prompt ends with, the one before is how the next one begins.
        assert after[: len(before) - 1] == before[:-1]


def test_a_plan_in_execution_stays_in_view() -> None:
    plan = Plan(
        summary="Paint the house", items=(PlanItem(title="Buy paint"), PlanItem(title="Paint")), status="executing"
    )
    history = talk(60, output_chars=1_500)
    proposed = used("p", "The plan was approved.", name="plan", summary="Paint the house", items=["Buy paint", "Paint"])
    history.insert(1, answer(2, "A plan.", proposed))
    history.insert(2, message(2, "event", TextBlock(index=0, text="Carry it out."), event_kind="plan_approved"))
    _, compressions = compressed(history, 8_000, plan=plan)
    messages = shown(history, compressions, plan=plan)
    calls = [part for one in messages for part in one.parts if isinstance(part, Call)]
    assert calls[0].arguments == {"summary": "Paint the house", "items": ["Buy paint", "Paint"]}
    assert (("Palaver, plan_approved", "Carry it out."),) in [read_prompt(text).quotes for text in said(messages)]
    assert any("The plan being carried out: Paint the house\n- Buy paint\n- Paint" in text for text in said(messages))


def test_answers_of_a_person_to_questions_are_theirs() -> None:
    history = talk(60, output_chars=1_500)
    history.insert(1, answer(2, "Which?", used("q", "blue " * 400, name="ask_user", questions=[])))
    _, compressions = compressed(history, 5_000)
    assert outcomes(shown(history, compressions))[0] == "blue " * 400


def test_the_furthest_horizon_of_each_stage_counts() -> None:
    def at(stage: str, horizon: int, seq: int, strength: str = "low") -> Compression:
        return Compression(
            stage=stage,  # type: ignore[arg-type]
            horizon=horizon,
            strength=strength,  # type: ignore[arg-type]
            ts=0,
            seq=seq,
            before_tokens=1,
            after_tokens=1,
            summary=f"s{seq}" if stage == "summarize" else None,
        )

    horizons = horizons_of(
        [
            at("shorten", 9, 10),
            at("shorten", 5, 20, "high"),
            at("limit", 7, 30, "high"),
            at("limit", 8, 40, "medium"),
            at("summarize", 6, 50),
            at("summarize", 4, 60),
            at("deduplicate", 11, 70),
        ]
    )
    assert (horizons.shorten, horizons.shorten_hard) == (9, 5)
    assert (horizons.limit, horizons.limit_hard, horizons.gone) == (8, 7, 7)
    assert (horizons.summarize, horizons.summary) == (6, "s50")
    assert (horizons.deduplicate, horizons.known) == (11, 70)


@pytest.mark.parametrize(
    ("window", "fixed", "max_tokens", "limit", "most"),
    [
        (200_000, 10_000, None, 191_808, 200_000),
        (200_000, 10_000, 64_000, 150_000, 200_000),
        (8_000, 1_000, 500, 7_500, 8_000),
        (1_000, 4_000, None, 4_300, 4_300),
    ],
)
def test_the_budget_leaves_room_for_an_answer_and_for_messages(
    window: int, fixed: int, max_tokens: int | None, limit: int, most: int
) -> None:
    budget = budget_of(window, fixed, max_tokens)
    assert (budget.limit_tokens, budget.most_tokens) == (limit, most)


def test_recorded_stages_say_what_they_saved() -> None:
    work, _ = compressed(talk(60), 8_000)
    assert recorded(work, 5)[0].before_tokens > recorded(work, 5)[0].after_tokens
    assert SECRET not in str(work.taken)
