"""One agent's process and the connection to it. The process is our runner's; the protocol's messages are the library's.

Started by the backend through `Programs`, used by one turn at a time. It carries messages and knows no events. What the
agent says while no turn listens is dropped: nothing of a turn that is over may reach the next one.
"""

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palaver.backends.acp.failure import refusal_error
from palaver.backends.acp.session_options import Choosable, Setting, settings_of
from palaver.backends.acp.tools import Door, OwnCall
from palaver.backends.acp.tools import opened as opened_door
from palaver.backends.acp.transport import Lines
from palaver.backends.own_tools import OVER
from palaver.backends.process import Child, Ladder, spawn
from palaver.errors import AgentError, Exited, NotInstalled, TimedOut
from palaver.tools.base import ToolSpec

if TYPE_CHECKING:
    from acp.connection import Connection

WAITING = 1_000
"""Messages read ahead of a slow reader; then the agent's pipe fills and the agent waits."""
HANDSHAKE_S = 60.0
"""opencode takes six seconds on a busy machine before its first answer; a loaded one takes longer."""
LADDER = Ladder(interrupt_s=0.0, terminate_s=1.0)
"""No interrupt: for several agents it is no request to end, and their tools would be left behind."""
TAIL_CHARS = 600
"""Of what a program wrote to stderr, in the message that says why it ended."""
NO_QUESTION = "_palaver/nothing"
"""The protocol leaves names with an underscore to each side, and lets an agent answer that it does not know one."""
NO_QUESTION_S = 5.0
"""An agent that does not even answer that it does not know a question is not waited for longer."""


@dataclass(frozen=True, slots=True)
class Update:
    told: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Permission:
    told: Mapping[str, Any]
    answer: "asyncio.Future[Mapping[str, Any]]"


@dataclass(frozen=True, slots=True)
class Over:
    """The agent's own end of the turn."""

    result: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error: AgentError | None = None


Heard = Update | Permission | OwnCall | Over
CANCELLED: Mapping[str, Any] = {"outcome": {"outcome": "cancelled"}}


class Link:
    """Implements `programs.Program`. `identity` says what was started; another command or folder needs another link."""

    def __init__(
        self, child: Child, identity: object, environment: Mapping[str, str], door: Door | None = None
    ) -> None:
        """`environment` is the agent's. `door` is where it finds tools of ours."""
        self.environment = environment
        self.identity = identity
        self.door = door
        self.session: str | None = None
        self.known: set[str] = set()
        """Messages of the conversation that the session has seen or said."""
        self.past: set[str] = set()
        """Calls and messages of turns that are over."""
        self.turns = 0
        self.cost_usd = 0.0
        self.agent: Mapping[str, Any] = {}
        self.settings: dict[Choosable, Setting] = {}
        self.spoiled = False
        """It did not end its turn when asked to, so it takes no other."""
        self._child = child
        self._inbox: asyncio.Queue[Heard] | None = None
        self._taken = asyncio.Event()
        self._replayed: set[str] | None = None
        self._asking: set[asyncio.Future[Mapping[str, Any]]] = set()
        self._calling: set[OwnCall] = set()
        self._prompt: asyncio.Task[None] | None = None
        self._gone = False
        self._connection: Connection | None = None
        if door is not None:
            door.receive = self._own_call

    # -- what the table of programs sees

    @property
    def pid(self) -> int | None:
        return self._child.pid

    @property
    def alive(self) -> bool:
        return not (self._gone or self.spoiled)

    @property
    def started_as(self) -> str:
        return self._child.name

    async def has_background_work(self) -> bool:
        return False

    @property
    def name(self) -> str:
        told = self.agent.get("agentInfo")
        known = (told.get("title") or told.get("name")) if isinstance(told, Mapping) else None
        return str(known or self._child.name)

    def can(self, *path: str) -> bool:
        """Whether the agent declared a capability."""
        value: Any = self.agent.get("agentCapabilities")
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value is not None and value is not False

    # -- talking

    async def connect(self) -> None:
        from acp.connection import Connection
        from acp.meta import PROTOCOL_VERSION

        self._connection = Connection(self._handle, Lines(self._child, self._room, self._end))
        said = await self.ask(
            "initialize",
            {
                "protocolVersion": PROTOCOL_VERSION,
                "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
                "clientInfo": {"name": "palaver", "title": "Palaver", "version": "0"},
            },
            HANDSHAKE_S,
        )
        self.agent = said

    async def close(self) -> None:
        if self._prompt is not None:
            self._prompt.cancel()
            await asyncio.wait({self._prompt})
        if self._connection is not None:
            await self._connection.close()

    async def ask(self, method: str, params: Mapping[str, Any], limit_s: float) -> Mapping[str, Any]:
        """One request and its answer. Raises AgentError in words for a person."""
        from acp.exceptions import RequestError

        assert self._connection is not None
        try:
            async with asyncio.timeout(limit_s):
                answer = await self._connection.send_request(method, dict(params))
        except RequestError as refusal:
            raise refusal_error(self.name, refusal.code, str(refusal), refusal.data) from refusal
        except ConnectionError as failure:
            raise await self._exit_error() from failure
        except TimeoutError as failure:
            raise TimedOut(f"{self.name} did not answer {method} within {limit_s:.0f} s.") from failure
        return answer if isinstance(answer, Mapping) else {}

    async def load(self, session: str, cwd: Path, servers: Sequence[Any]) -> int | None:
        """Take a session of before up again. How many messages of a person it told; None where it told none at all."""
        params = {"sessionId": session, "cwd": str(cwd), "mcpServers": list(servers)}
        self._replayed = set()
        try:
            if self.can("loadSession"):
                said = await self.ask("session/load", params, HANDSHAKE_S)
                await self._flush_updates()
            else:
                said = await self.ask("session/resume", params, HANDSHAKE_S)
            replayed = len(self._replayed)
        finally:
            self._replayed = None
        self.opened(session, said)
        return replayed or None

    async def _flush_updates(self) -> None:
        """Gemini CLI 0.61.0 answers before it has told the session; what comes after would be taken for the next turn's words.

        What an agent is about to say comes before its answer to another question, and one that nobody knows does nothing."""
        with contextlib.suppress(AgentError):
            await self.ask(NO_QUESTION, {}, NO_QUESTION_S)

    def opened(self, session: str, said: Mapping[str, Any]) -> None:
        self.session = session
        self.settings = settings_of(said)

    def offered(self, what: Choosable) -> tuple[str, ...]:
        return self.settings[what].values if what in self.settings else ()

    async def choose(self, what: Choosable, value: str) -> None:
        setting = self.settings[what]
        if setting.current != value:
            await self.ask(*setting.request(what, self.session, value), HANDSHAKE_S)
            self.settings[what] = replace(setting, current=value)

    # -- a turn

    def prompt(self, content: Sequence[Mapping[str, Any]], limit_s: float) -> "asyncio.Queue[Heard]":
        """The turn begins; what the agent says of it comes in order, its end last."""
        inbox = self._inbox = asyncio.Queue()
        params = {"sessionId": self.session, "prompt": list(content)}
        self._prompt = asyncio.create_task(self._prompted(params, inbox, limit_s), name=f"prompt {self.name}")
        return inbox

    async def heard(self, inbox: "asyncio.Queue[Heard]") -> Heard:
        heard = await inbox.get()
        self._taken.set()
        return heard

    async def cancel(self, limit_s: float) -> bool:
        """End the turn in the protocol's own way. Whether the agent did so in time."""
        assert self._connection is not None
        # Not left to the library: agents wait for these answers before they end the turn.
        for answer in list(self._asking):
            if not answer.done():
                answer.set_result(CANCELLED)
        prompt = self._prompt
        if prompt is None or prompt.done():
            return True
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._connection.send_notification("session/cancel", {"sessionId": self.session})
        await asyncio.wait({prompt}, timeout=limit_s)
        return prompt.done() and not self._gone

    def hush(self) -> None:
        """The turn is over: nobody listens any more."""
        self._inbox = None
        self._taken.set()
        for answer in list(self._asking):
            if not answer.done():
                answer.set_result(CANCELLED)
        for call in list(self._calling):
            if not call.answer.done():
                call.answer.set_result(OVER)

    async def _prompted(self, params: Mapping[str, Any], inbox: "asyncio.Queue[Heard]", limit_s: float) -> None:
        try:
            over = Over(result=await self.ask("session/prompt", params, limit_s))
        except AgentError as error:
            over = Over(error=error)
        inbox.put_nowait(over)

    # -- what the agent sends

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Any:
        # Each message runs as a task of its own, in order as long as nothing is awaited before it is in the inbox.
        from acp.exceptions import RequestError

        told = params if isinstance(params, Mapping) else {}
        match method:
            case "session/update":
                self._update(told)
                return None
            case "session/request_permission":
                return await self._permission(told)
            case _ if is_notification:
                return None
            case _:
                raise RequestError.method_not_found(method)

    def _update(self, told: Mapping[str, Any]) -> None:
        update = told.get("update")
        if not isinstance(update, Mapping):
            return
        if self._replayed is not None:
            self._replay(update)
        elif update.get("sessionUpdate") == "current_mode_update" and "mode" in self.settings:
            # The agent left its mode by itself; the next turn must not take it for what was chosen.
            self.settings["mode"] = replace(self.settings["mode"], current=None)
        elif self._inbox is not None and told.get("sessionId") == self.session:
            self._inbox.put_nowait(Update(update))

    def _replay(self, update: Mapping[str, Any]) -> None:
        assert self._replayed is not None
        for name in ("messageId", "toolCallId"):
            if isinstance(update.get(name), str):
                self.past.add(update[name])
        if update.get("sessionUpdate") == "user_message_chunk" and not _is_preface(update.get("content")):
            known = update.get("messageId")
            self._replayed.add(known if isinstance(known, str) else f"unnamed {len(self._replayed)}")

    async def _permission(self, told: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._inbox is None or told.get("sessionId") != self.session:
            return CANCELLED
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._asking.add(answer)
        self._inbox.put_nowait(Permission(told, answer))
        try:
            return await answer
        finally:
            self._asking.discard(answer)

    def _own_call(self, call: OwnCall) -> bool:
        if self._inbox is None:
            return False
        self._calling.add(call)
        call.answer.add_done_callback(lambda _: self._calling.discard(call))
        self._inbox.put_nowait(call)
        return True

    async def _room(self) -> None:
        """Waits while the turn is behind with what was said."""
        while self._inbox is not None and self._inbox.qsize() >= WAITING:
            self._taken.clear()
            await self._taken.wait()

    def _end(self) -> None:
        self._gone = True

    # -- failures

    async def _exit_error(self) -> AgentError:
        self._gone = True
        code: int | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                code = (await self._child.ended()).code
        tail = self._child.stderr_tail.decode(errors="replace").strip()[-TAIL_CHARS:]
        how = f" with code {code}" if code is not None else ""
        return Exited(f"{self.name} ended{how}." + (f" It said: {tail}" if tail else ""), stderr=tail)


def _is_preface(content: Any) -> bool:
    """What Gemini CLI tells its model of the machine, as if a person had said it."""
    match content:
        case {"text": str(text)}:
            return text.startswith("<session_context>")
        case _:
            return False


@asynccontextmanager
async def start_agent(
    argv: Sequence[str], cwd: Path, environment: Mapping[str, str], identity: object, offered: Sequence[ToolSpec] = ()
) -> AsyncIterator[Link]:
    """An agent that runs and has greeted us, offered these tools of ours. Raises NotInstalled when the extra or the program
    is missing."""
    try:
        # A second of importing, in which others stream.
        await asyncio.to_thread(importlib.import_module, "acp.connection")
    except ImportError as missing:
        raise NotInstalled("Agents that speak ACP need an extra: install palaver[acp].") from missing
    async with (
        opened_door(offered) as door,
        spawn(argv, cwd=cwd, environment=environment, stdin=True, ladder=LADDER) as child,
    ):
        link = Link(child, identity, environment, door)
        try:
            await link.connect()
            yield link
        finally:
            await link.close()
