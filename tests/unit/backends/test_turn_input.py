"""What a program is told when it takes a turn."""

from msgspec.structs import replace

from palaver.backends.excerpts import added_text, fitting, pieces
from palaver.backends.turn_input import all_known, briefing, still_said, words_of
from palaver.schema.content import ImagePart, ImageUrl, TextPart
from palaver.schema.events import AnswerFinished, AnswerStarted, TextFinished, ToolFinished
from palaver.schema.view import State
from tests.provider.turn import MemoryTurn


async def answered(text: str, mark: dict[str, object] | None = None, state: State | None = None) -> MemoryTurn:
    turn = MemoryTurn(text, state=state)
    message = turn.new_id()
    turn.accept(AnswerStarted(message=message))
    turn.accept(TextFinished(message=message, block=0, text=f"answer to {text}"))
    turn.accept(AnswerFinished(message=message, finish_reason="stop", provider=mark))
    await turn.committed()
    turn.interrupt()
    return turn


async def test_program_that_wrote_the_last_part_is_told_nothing_more() -> None:
    before = await answered("one", {"by": "x", "session": "s", "sent": 1})
    brief = briefing(MemoryTurn("two", state=before.state), "x")
    assert (brief.session, brief.unseen, brief.since) == ("s", "", 0)
    assert "answer to one" in brief.whole
    assert brief.marked["sent"] == 1
    assert [message.blocks[0].text for message in brief.asked] == ["two"]  # type: ignore[union-attr]


async def test_program_is_told_what_others_did_since() -> None:
    first = await answered("one", {"by": "x", "session": "s"})
    second = await answered("two", {"by": "y", "session": "t"}, first.state)
    brief = briefing(MemoryTurn("three", state=second.state), "x")
    assert brief.session == "s"
    assert "answer to two" in brief.unseen
    assert "answer to one" not in brief.unseen
    assert brief.since == 1


async def test_question_asked_again_is_asked_and_not_told() -> None:
    before = await answered("one", {"by": "x", "session": "s"})
    question = before.state.messages[0]
    turn = MemoryTurn(state=replace(before.state, messages=(question,)))
    active = turn.state.turn
    assert active is not None
    again = replace(active, trigger=replace(active.trigger, messages=(question.id,)))
    turn._state = replace(turn.state, turn=again)
    brief = briefing(turn, "x")
    assert [message.id for message in brief.asked] == [question.id]
    assert brief.whole == ""


async def test_history_that_lost_a_message_is_noticed() -> None:
    before = await answered("one")
    known = {message.id for message in before.state.messages}
    assert still_said(known, before.state)
    assert all_known(known, MemoryTurn("two", state=before.state))
    assert not still_said(known, replace(before.state, messages=before.state.messages[:1]))
    assert not all_known(set(), MemoryTurn("two", state=before.state))


async def test_words_hold_text_and_images_and_say_what_is_missing() -> None:
    pixel = ImagePart(image_url=ImageUrl(url="data:image/png;base64,aGk="))
    elsewhere = ImagePart(image_url=ImageUrl(url="https://example.invalid/x.png"))
    turn = MemoryTurn((TextPart(text="look"), pixel, elsewhere))
    words = await words_of(turn, turn.history)
    assert [image.mime for image in words.images] == ["image/png"]
    assert words.text.startswith("look\n\n[An image that is kept elsewhere")
    assert words.after("record").blocks == ("record\n\n", words.text)
    assert words.after("record").plain == f"record\n\n{words.text}"


def test_output_so_far_becomes_what_is_new() -> None:
    assert added_text("ab", "abc") == "c"
    assert added_text("ab", "xyz") == ""
    assert [len(piece) for piece in pieces("x" * 40_000)] == [16_000, 16_000, 8_000]


async def test_long_result_keeps_both_ends_and_its_whole_in_a_blob() -> None:
    turn = MemoryTurn("said")
    event = await fitting(ToolFinished(call="c", ok=True, output="a" * 50_000 + "b" * 50_000), turn)
    assert event.truncated
    assert len(event.output) < 70_000
    assert event.output.startswith("aaa")
    assert event.output.endswith("bbb")
    assert event.blob is not None
    assert len(turn.blobs[event.blob.id]) == 100_000
