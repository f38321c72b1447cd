"""A store that was damaged on disk: the session says so, and what is said next is not lost."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from palaver.backends.script.script import Say
from tests.flows.faces.stream.client import session_of, text_of, whole
from tests.flows.served import serving

OF_ONE = "conversation = (SELECT number FROM conversations WHERE name = ?)"
DERIVED = (f"DELETE FROM snapshots WHERE {OF_ONE}", f"DELETE FROM messages WHERE {OF_ONE}")

LOST = {
    "events overwritten": (f"UPDATE segments SET body = x'67617262616765' WHERE {OF_ONE}", *DERIVED),
    "events gone": (f"DELETE FROM segments WHERE {OF_ONE}", *DERIVED),
}
ONLY_DERIVED = {
    "snapshot": (f"UPDATE snapshots SET head = x'67617262616765' WHERE {OF_ONE}",),
    "stored messages": (f"UPDATE messages SET body = x'67617262616765' WHERE {OF_ONE}",),
}


def damage(data: Path, session: str, statements: tuple[str, ...]) -> None:
    with closing(apsw.Connection(str(data / "palaver.db"))) as store:
        for statement in statements:
            store.execute(statement, (session,))


@pytest.mark.parametrize("how", LOST)
async def test_lost_history_is_empty_with_a_warning_and_a_message_begins_afresh(tmp_path: Path, how: str) -> None:
    async with serving(tmp_path, [Say("One.")]) as server:
        session = session_of(await whole(server, message="first"))
    damage(tmp_path, session, LOST[how])
    async with serving(tmp_path, [Say("Two.")]) as server:
        history = await server.http.get(f"/api/chat/sessions/history/{session}")
        told = await whole(server, message="second", sessionId=session)
        fresh = await server.http.get(f"/api/chat/sessions/history/{session_of(told)}")
    assert (history.status_code, history.json()["messages"], bool(history.json()["warning"])) == (200, [], True)
    assert text_of(told) == "Two."
    assert [message["role"] for message in fresh.json()["messages"]] == ["user", "assistant"]


@pytest.mark.parametrize("what", ONLY_DERIVED)
async def test_what_is_only_derived_from_the_events_is_made_from_them_again(tmp_path: Path, what: str) -> None:
    async with serving(tmp_path, [Say("One.")]) as server:
        session = session_of(await whole(server, message="first"))
        before = (await server.http.get(f"/api/chat/sessions/history/{session}")).json()
    damage(tmp_path, session, ONLY_DERIVED[what])
    async with serving(tmp_path, [Say("Two.")]) as server:
        after = (await server.http.get(f"/api/chat/sessions/history/{session}")).json()
        told = await whole(server, message="second", sessionId=session)
    assert after == before
    assert (session_of(told), text_of(told)) == (session, "Two.")
