"""Who may do what on the bus: the roles are those of the native face."""

from pathlib import Path

import pytest

from palaver.people.authentication import KeyRecord, Kind, token_hash
from tests.flows.faces.bus.listening import chat
from tests.flows.served import Served, serving

READS = ["/api/agent-runs", "/api/pending", "/api/settings", "/api/config", "/api/mission", "/api/missions"]
SENDS: dict[str, dict[str, object]] = {
    "/api/chat": {"message": "Hello", "agent_id": "default"},
    "/api/chat/clear": {"session_id": "?"},
    "/api/agent-cancel": {"run_id": "nothing"},
}
DECIDES: dict[str, dict[str, object]] = {
    "/api/ask-user-response": {"question_id": "nothing"},
    "/api/plan/approve": {},
    "/api/plan/reject": {},
    "/api/plan/edit": {"text": "x"},
    "/api/mission": {"text": ""},
    "/api/agent-override": {"agent_id": "nobody"},
    "/api/chat": {"message": "Hello", "mode": "auto"},
}
OWNS: dict[str, dict[str, object]] = {"/api/settings": {}, "/api/config": {}}
MAY: dict[Kind, set[str]] = {
    "owner": {"send", "decide", "admin"},
    "human": {"send", "decide"},
    "agent": {"send"},
    "observer": set(),
}


async def refused(server: Served, token: str, bodies: dict[str, dict[str, object]]) -> set[bool]:
    """Whether each of them is refused for want of a role."""
    headers = {"Authorization": f"Bearer {token}"}
    answers = [await server.http.post(path, json=body, headers=headers) for path, body in bodies.items()]
    assert all(answer.status_code < 500 for answer in answers)
    return {answer.status_code == 403 for answer in answers}


@pytest.mark.parametrize("kind", ["human", "agent", "observer"])
async def test_token_may_do_what_its_role_says_and_no_more(tmp_path: Path, kind: Kind) -> None:
    async with serving(tmp_path) as server:
        session = (await chat(server, "Hello"))["session_id"]
        sends = {**SENDS, "/api/chat/clear": {"session_id": session}}
        server.app.keys.replace(server.token, [KeyRecord(name="eve", kind=kind, hash=token_hash("eve"))])
        read = [await server.http.get(path, headers={"Authorization": "Bearer eve"}) for path in READS]
        may = MAY[kind]
        assert {answer.status_code for answer in read} == {200}
        assert await refused(server, "eve", sends) == {"send" not in may}
        assert await refused(server, "eve", DECIDES) == {"decide" not in may}
        assert await refused(server, "eve", OWNS) == {"admin" not in may}


async def test_nobody_without_a_token_is_let_in(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, server.browser() as stranger:
        answers = [await stranger.get(path) for path in READS]
        answers += [await stranger.post(path, json=body) for path, body in {**SENDS, **DECIDES, **OWNS}.items()]
    assert {answer.status_code for answer in answers} == {401}
