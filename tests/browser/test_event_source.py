"""A plain `EventSource` with nothing but `onmessage`, in a page whose proxy adds the token: it hears every frame of a turn, on
the bus and on the chats face, as a client that reads the bytes does. By itself it cannot send the page key, and is refused."""

import asyncio
import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
from playwright.async_api import Error, Route

from tests.browser.served import Palaver
from tests.browser.visitor import WAIT_MS, Visitor
from tests.flows.served import WAIT_S, Sse

Json = dict[str, Any]

_LISTEN = """async url => {
  window.heard ??= {};
  const heard = (window.heard[url] = []);
  const source = new EventSource(url);
  source.onmessage = ({ lastEventId, data }) => heard.push([lastEventId, data]);
  await new Promise((resolve, reject) => { source.onopen = resolve; source.onerror = reject; });
}"""
_HEARD_TO = "([url, id]) => window.heard[url].some(([known]) => known === id) && window.heard[url]"


@pytest.fixture
async def http(palaver: Palaver) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {palaver.token}"}
    async with httpx.AsyncClient(base_url=palaver.url, headers=headers, timeout=WAIT_S) as client:
        yield client


@asynccontextmanager
async def reading(http: httpx.AsyncClient, url: str) -> AsyncIterator[Sse]:
    async with http.stream("GET", url) as response:
        assert response.status_code == 200
        yield Sse(response)


async def frames_until(stream: Sse, last: Any) -> list[tuple[str, str]]:
    """The id and data of each frame, up to the first that fits."""
    read: list[tuple[str, str]] = []
    async with asyncio.timeout(WAIT_S):
        while True:
            fields = await stream.next()
            if "data" not in fields:
                continue
            read.append((fields["id"], fields["data"]))
            if last(msgspec.json.decode(fields["data"])):
                return read


async def add_token(route: Route, token: str) -> None:
    """As a proxy in front of a page does, `examples/serve_page.py` among them."""
    await route.continue_(headers={**route.request.headers, "authorization": f"Bearer {token}"})


def is_outcome(frame: Json) -> bool:
    return (frame["kind"], frame.get("phase")) == ("run", "outcome")


def is_at_rest(frame: Json) -> bool:
    return (frame["type"], frame.get("state")) == ("runtime_updated", "idle")


async def test_onmessage_alone_hears_every_frame_of_a_turn_on_the_bus_and_on_chats(
    ada: Visitor, palaver: Palaver, http: httpx.AsyncClient
) -> None:
    await ada.go()
    made = await http.post("/api/conversations", json={"project": str(palaver.project)})
    conversation = str(made.json()["conversation"])
    bus, chats = "/api/events", f"/v1/chats/subscribe?chat_id={conversation}"
    for url in (bus, chats):
        await ada.page.route(f"{ada.url}{url}", functools.partial(add_token, token=palaver.token))
        await ada.page.evaluate(_LISTEN, url)
    async with reading(http, bus) as on_bus, reading(http, chats) as on_chats:
        said = "!think Hmm.\n!say Let me look.\n!list ."
        command = {"client_request_id": "look", "type": "user_message", "content": said}
        sent = await http.post(f"/v1/chats/{conversation}/commands", json=command)
        assert sent.status_code == 202
        read = {bus: await frames_until(on_bus, is_outcome), chats: await frames_until(on_chats, is_at_rest)}
    for url, frames in read.items():
        found = await ada.page.wait_for_function(_HEARD_TO, arg=[url, frames[-1][0]], timeout=WAIT_MS)
        heard = [(id, data) for id, data in await found.json_value()]
        heard = heard[: heard.index(frames[-1]) + 1]
        # The bus tells of every conversation, from the moment that each of the two began to listen.
        heard, frames = ([one for one in known if url == chats or conversation in one[1]] for known in (heard, frames))
        assert heard[-len(frames) :] == frames
    kinds = {msgspec.json.decode(data)["kind"] for _, data in read[bus]}
    types = {msgspec.json.decode(data)["type"] for _, data in read[chats]}
    assert {"run", "message", "token", "activity"} <= kinds
    assert {"snapshot", "stream_started", "stream_delta", "stream_finished", "message_added", "ack"} <= types


async def test_event_source_with_the_cookie_alone_is_refused(ada: Visitor) -> None:
    ada.complaints.expect("status of 401")
    await ada.go()
    for url in ("/api/events", "/v1/chats/subscribe?chat_id=any"):
        with pytest.raises(Error):
            await ada.page.evaluate(_LISTEN, url)
