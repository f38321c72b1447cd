"""Messages removed, edited, cut off or answered again on another face: gone from the replay, told live, and said to whoever
comes back with a cursor from before."""

from pathlib import Path
from typing import Any

import pytest

from palaver.backends.script.script import Say, turns
from tests.flows.faces.socket.client import Frame, events, of, operation, subscribed, types
from tests.flows.served import Served, serving

pytestmark = pytest.mark.anyio

STORY = turns([Say("First answer.")], [Say("Second answer.")], [Say("Third answer.")])


async def two_turns(server: Served) -> str:
    session = await server.create()
    for text in ("first question", "second question"):
        await operation(server, "message", sessionId=session, content=text)
    return session


async def rewrite(server: Served, session: str, **command: Any) -> None:
    answer = await server.command(session, **command)
    assert answer.status_code == 202, answer.text


def said(frames: list[Frame]) -> list[str]:
    return [frame["text"] for frame in of(frames, "user_message", "text_done")]


async def test_removed_message_is_gone_from_the_replay_and_whoever_had_it_begins_anew(tmp_path: Path) -> None:
    async with serving(tmp_path, STORY) as server:
        session = await two_turns(server)
        whole = await events(server, session)
        question, answer = of(whole, "user_message")[0], of(whole, "text_block_done")[1]
        async with subscribed(server, session) as one:
            for frame in (question, answer):
                await rewrite(server, session, type="remove_message", message=frame["messageId"])
                news = (await one.until("session_updated"))[-1]
                assert news["removedMessageId"] == frame["messageId"]
        left = await operation(server, "events", sessionId=session)
        behind = await operation(server, "events", sessionId=session, after=whole[-1]["sequence"])
        async with subscribed(server) as late:
            await late.say("subscribe", sessionId=session, after=whole[-1]["sequence"])
            confirmed = (await late.until("subscribed"))[-1]
            told = [await late.next() for _ in left["events"]]
        caught_up = await operation(server, "events", sessionId=session, after=left["nextCursor"])
    assert said(left["events"]) == ["First answer.", "second question"]
    assert "first question" not in str(left)
    assert "Second answer." not in str(left)
    assert not [kind for kind in types(left["events"]) if kind.startswith("session_")]
    assert (behind["reset"], behind["events"]) == (True, left["events"])
    assert (confirmed["reset"], told) == (True, left["events"])
    assert (caught_up["reset"], caught_up["events"]) == (False, [])


async def test_session_cleared_on_another_face_is_empty_and_goes_on(tmp_path: Path) -> None:
    async with serving(tmp_path, STORY) as server:
        session = await two_turns(server)
        async with subscribed(server, session) as one:
            await rewrite(server, session, type="truncate_messages", from_index=0)
            await one.until("session_cleared")
        empty = await events(server, session)
        await operation(server, "message", sessionId=session, content="third question")
        later = await events(server, session)
    async with serving(tmp_path, STORY) as server:
        after_restart = await events(server, session)
    assert empty == []
    # The scripted agent begins anew with an empty transcript.
    assert said(later) == said(after_restart) == ["third question", "First answer."]


async def test_answer_given_again_and_edited_question_are_told_as_they_stand(tmp_path: Path) -> None:
    async with serving(tmp_path, STORY) as server:
        session = await two_turns(server)
        (_, question) = of(await events(server, session), "user_message")
        async with subscribed(server, session) as one:
            edit = {"message": question["messageId"], "content": "a better question", "regenerate": True}
            await rewrite(server, session, type="edit_message", **edit)
            live = await one.until("text_done")
        left = await events(server, session)
    assert said(left) == ["first question", "First answer.", "a better question", "Third answer."]
    assert left[-1] == live[-1]
    assert "second question" not in str(left)
    assert "Second answer." not in str(left)
