"""What the model answers in the tests of the examples, and what a person does elsewhere meanwhile."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx

from tests.browser.served import Palaver
from tests.provider import Answer, Call, Gate, ScriptedProvider, Think

WRITTEN = "High water at noon."
WAIT_S = 30.0
LOOK_EVERY_S = 0.05
"""How often a server is asked for what it tells nobody."""


def script_approval(provider: ScriptedProvider, word: str) -> str:
    """A thought, a sentence, a call that asks first, and an answer, to a message that holds the word; the file's name."""
    name = f"{word}.txt"
    call = Call(name="write", input={"path": name, "content": WRITTEN})
    provider.script += [
        Answer.of(Think(text="The tide table is wanted."), "I will write it down.", call, when=word),
        Answer.of("Done with that.", when=word),
    ]
    return name


def script_held(provider: ScriptedProvider, word: str) -> None:
    """Half an answer, then a gate of that name, then the rest."""
    provider.script.append(Answer.of("Half of the answer", Gate(name=word), " and the rest.", when=word))


def client_of(palaver: Palaver) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {palaver.token}"}
    return httpx.AsyncClient(base_url=palaver.url, headers=headers, timeout=WAIT_S)


async def create(palaver: Palaver) -> str:
    """A conversation of the test's own."""
    async with client_of(palaver) as http:
        answer = await http.post("/api/conversations", json={})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["conversation"])


async def decide(palaver: Palaver, conversation: str, verdict: str = "allow") -> None:
    """Answer the one open request of a conversation, as a person would on Palaver's own page."""
    async with client_of(palaver) as http:
        request = await _open_request(http, conversation)
        command = {"type": "resolve_request", "request": request["id"], "verdict": verdict}
        answer = await http.post(f"/api/conversations/{conversation}/commands", json=command)
        assert answer.status_code == 202, answer.text


async def until_queued(palaver: Palaver, conversation: str) -> None:
    """Until a message waits behind the running turn."""
    await _until(palaver, conversation, lambda view: bool(view.get("queue")))


async def until_said(palaver: Palaver, conversation: str, text: str) -> None:
    """Until the server has so much of an answer, which a client that shows whole messages does not show yet."""
    await _until(palaver, conversation, lambda view: text in str(view["messages"]))


async def _until(palaver: Palaver, conversation: str, is_so: Callable[[dict[str, Any]], bool]) -> None:
    async with client_of(palaver) as http, asyncio.timeout(WAIT_S):
        while True:
            if is_so((await http.get(f"/api/conversations/{conversation}/snapshot")).json()):
                return
            await asyncio.sleep(LOOK_EVERY_S)


async def _open_request(http: httpx.AsyncClient, conversation: str) -> dict[str, Any]:
    async with asyncio.timeout(WAIT_S):
        while True:
            items = (await http.get("/api/requests")).json()["items"]
            for item in items:
                if item["conversation"] == conversation:
                    return dict(item["request"])
            await asyncio.sleep(LOOK_EVERY_S)
