"""The server itself: takes a request, checks it, picks an answer, and sends it as well or as badly as the script says."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec
from aiohttp import web

from tests.provider.anthropic import AnthropicWire
from tests.provider.gates import WAIT_S, Gates
from tests.provider.google import GoogleWire
from tests.provider.obedient import obey
from tests.provider.openai import OpenAiWire
from tests.provider.responses import ResponsesWire
from tests.provider.script import Answer, ContentType, Cut, Empty, ErrorFrame, Gate, Hang, Malformed, Pause, Status
from tests.provider.wire import Json, Refused, Step, Wire

WIRES: dict[str, Wire] = {
    "/v1/messages": AnthropicWire(),
    "/v1/chat/completions": OpenAiWire(),
    "/v1/responses": ResponsesWire(),
}

GOOGLE = GoogleWire()
GOOGLE_PATH = "/{version:v1|v1beta}/models/{model}:streamGenerateContent"
"""Says in its path what the others say in the body."""

BODY_LIMIT_BYTES = 64 << 20
"""Images come in the body."""


@dataclass(slots=True)
class Received:
    """One request, as it came, and what became of it."""

    path: str
    headers: dict[str, str]
    body: Json
    refused: str | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    closed_by_client: bool = False

    async def end(self) -> None:
        """Until the answer was sent, or the client closed the connection."""
        async with asyncio.timeout(WAIT_S):
            await self.ended.wait()


class ScriptedProvider:
    """`obedient=False` refuses what the script has no answer for; `api_key` refuses every other key."""

    def __init__(
        self,
        script: Sequence[Answer] = (),
        *,
        obedient: bool = True,
        strict: bool = True,
        api_key: str | None = None,
        models: Sequence[str] = ("scripted-1", "scripted-2"),
        any_model: bool = True,
    ) -> None:
        self.script = list(script)
        self.requests: list[Received] = []
        self.gates = Gates()
        self.url = ""
        self.issued: dict[str, list[Json]] = {}
        self._obedient = obedient
        self._strict = strict
        self._api_key = api_key
        self._models = tuple(models)
        self._any_model = any_model
        self._arrived = asyncio.Condition()

    @property
    def bodies(self) -> list[Json]:
        return [request.body for request in self.requests]

    async def received(self, count: int) -> None:
        """Until so many requests have come."""
        async with asyncio.timeout(WAIT_S), self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)

    # -- the service

    async def answer(self, request: web.Request) -> web.StreamResponse:
        wire = WIRES.get(request.path, GOOGLE)
        body: Json = msgspec.json.decode(await request.read())
        if wire is GOOGLE:
            body |= {"model": request.match_info["model"], "stream": True}
        received = Received(path=request.path, headers=dict(request.headers), body=body)
        self.requests.append(received)
        number = len(self.requests)
        async with self._arrived:
            self._arrived.notify_all()
        try:
            if refusal := self._refusal(request, wire, received):
                return refusal
            answer = self._pick(wire, body)
            self.issued.update(wire.issued(answer, body, number))
            return await self._send(request, wire, answer, body, number)
        except asyncio.CancelledError:
            received.closed_by_client = True
            raise
        finally:
            received.ended.set()

    async def models(self, request: web.Request) -> web.Response:
        if not self._key_fits(request):
            return web.json_response({"error": {"message": "invalid x-api-key"}}, status=401)
        return web.json_response({"object": "list", "data": [{"id": name, "object": "model"} for name in self._models]})

    def _refusal(self, request: web.Request, wire: Wire, received: Received) -> web.Response | None:
        def refused(status: int, message: str) -> web.Response:
            received.refused = message
            return web.json_response(wire.error(None, message, status), status=status)

        if not self._key_fits(request):
            return refused(401, "invalid x-api-key")
        model = received.body.get("model")
        if not self._any_model and model not in self._models:
            return refused(404, f"model: {model}")
        if self._strict:
            try:
                wire.check(received.body)
                wire.check_kept(received.body, self.issued)
            except Refused as refusal:
                return refused(400, str(refusal))
            except (KeyError, TypeError, AttributeError) as error:
                return refused(400, f"not the shape of a request: {error!r}")
        return None

    def _key_fits(self, request: web.Request) -> bool:
        if self._api_key is None:
            return True
        keys = (request.headers.get("x-api-key"), request.headers.get("x-goog-api-key"))
        given = next(filter(None, keys), None) or request.headers.get("authorization", "").removeprefix("Bearer ")
        return given == self._api_key

    def _pick(self, wire: Wire, body: Json) -> Answer:
        asked = wire.asked(body)
        for at, answer in enumerate(self.script):
            if answer.when is None or re.search(answer.when, asked.text):
                if not answer.repeat:
                    del self.script[at]
                return answer
        if self._obedient:
            return obey(asked)
        return Answer(fault=Status(status=400, message="the script is used up"))

    # -- one answer, well or badly

    async def _send(
        self, request: web.Request, wire: Wire, answer: Answer, body: Json, number: int
    ) -> web.StreamResponse:
        fault = answer.fault
        if isinstance(fault, Status):
            headers = {"retry-after": fault.retry_after} if fault.retry_after else {}
            error = wire.error(fault.kind, fault.message, fault.status)
            return web.json_response(error, status=fault.status, headers=headers)
        if isinstance(fault, Hang) and fault.after_bytes is None:
            await _for_ever()
        if not body.get("stream"):
            return web.json_response(wire.whole(answer, body, number))
        kind = fault.value if isinstance(fault, ContentType) else "text/event-stream"
        response = web.StreamResponse(headers={"content-type": kind, "cache-control": "no-cache"})
        await response.prepare(request)
        sent = _Sender(response, answer)
        if not isinstance(fault, Empty):
            for step in _with_fault(wire, wire.frames(answer, body, number), answer):
                if not await self._take(step, sent, answer):
                    break
        await sent.flush()
        if sent.broken and request.transport is not None:
            request.transport.abort()
            return response
        await response.write_eof()
        return response

    async def _take(self, step: Step, sent: "_Sender", answer: Answer) -> bool:
        """Whether more may follow."""
        if isinstance(step, Gate | Pause):
            await sent.flush()
        if isinstance(step, Gate):
            await self.gates.pass_through(step.name)
            return True
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return True
        if answer.delay_s:
            await asyncio.sleep(answer.delay_s)
        return await sent.write(step)

    # -- control, for tests in another process

    async def control(self, request: web.Request) -> web.Response:
        match request.match_info["what"].split("/"):
            case ["gates", name, "open"]:
                self.gates.open(name)
            case ["gates", name, "reached"]:
                await self.gates.reached(name)
            case ["script"]:
                self.script.extend(msgspec.json.decode(await request.read(), type=list[Answer]))
            case ["requests"]:
                seen = [
                    {"path": known.path, "body": known.body, "refused": known.refused, "closed": known.closed_by_client}
                    for known in self.requests
                ]
                return web.json_response(seen)
            case ["reset"]:
                self.gates.open_all()
                self.gates = Gates()
                self.script.clear()
                self.requests.clear()
            case _:
                return web.json_response({"error": "no such control"}, status=404)
        return web.json_response({"ok": True})

    def app(self) -> web.Application:
        app = web.Application(client_max_size=BODY_LIMIT_BYTES)
        for path in WIRES:
            app.router.add_post(path, self.answer)
        app.router.add_post(GOOGLE_PATH, self.answer)
        app.router.add_get("/v1/models", self.models)
        app.router.add_route("*", "/control/{what:.*}", self.control)
        return app


class _Sender:
    """Writes the body, in slices when asked, and stops at the byte where it should break or fall silent."""

    def __init__(self, response: web.StreamResponse, answer: Answer) -> None:
        self._response = response
        self._slice = answer.slice_bytes
        self._burst: list[bytes] | None = [] if answer.burst else None
        self._fault = answer.fault
        self._sent_bytes = 0
        self.broken = False

    async def write(self, frame: bytes) -> bool:
        fault = self._fault
        limit = fault.after_bytes if isinstance(fault, Cut | Hang) else None
        left = None if limit is None else limit - self._sent_bytes
        whole = left is None or len(frame) <= left
        await self._write(frame if whole else frame[:left])
        self._sent_bytes += len(frame)
        if whole:
            return True
        if isinstance(fault, Hang):
            await self.flush()
            await _for_ever()
        self.broken = isinstance(fault, Cut) and not fault.clean
        return False

    async def flush(self) -> None:
        if self._burst:
            await self._response.write(b"".join(self._burst))
            self._burst.clear()

    async def _write(self, data: bytes) -> None:
        if self._burst is not None:
            self._burst.append(data)
            return
        size = self._slice or len(data) or 1
        for at in range(0, len(data), size):
            await self._response.write(data[at : at + size])


def _with_fault(wire: Wire, frames: Iterator[Step], answer: Answer) -> Iterator[Step]:
    fault = answer.fault
    for at, frame in enumerate(frames):
        if isinstance(fault, Malformed) and at == fault.after_frames:
            yield b'data: {"type": "content_block_delta", "index\n\n'
        if isinstance(fault, ErrorFrame) and at == fault.after_frames:
            yield wire.error_frame(fault.kind, fault.message)
            return
        yield frame


async def _for_ever() -> None:
    """As long as any test lasts; a client that leaves ends it."""
    await asyncio.sleep(10 * WAIT_S)


@asynccontextmanager
async def serving(provider: ScriptedProvider, port: int = 0) -> AsyncIterator[ScriptedProvider]:
    # A client that leaves cancels its handler: that is how a test sees a connection closed.
    runner = web.AppRunner(provider.app(), handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        host, bound = runner.addresses[0][:2]
        provider.url = f"http://{host}:{bound}"
        yield provider
    finally:
        provider.gates.open_all()
        await runner.cleanup()


@asynccontextmanager
async def scripted_provider(
    *script: Answer,
    obedient: bool = False,
    strict: bool = True,
    api_key: str | None = None,
    models: Sequence[str] = ("scripted-1", "scripted-2"),
    any_model: bool = True,
) -> AsyncIterator[ScriptedProvider]:
    """A server in this event loop. What the script has no answer for is refused, unless it is to be obedient."""
    provider = ScriptedProvider(
        script, obedient=obedient, strict=strict, api_key=api_key, models=models, any_model=any_model
    )
    async with serving(provider):
        yield provider
