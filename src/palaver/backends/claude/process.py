"""One running Claude Code: how it is started, what it was started with, and everything it says in one order.

Started by `backend` through `Programs`, one a conversation. One reader, the SDK's, takes what the program prints for as long
as it lives; lines, permission questions and hooks wait in one inbox, in the order in which they came, until a turn reads
them. Between turns somebody still listens: the end of a background task is told to the conversation.

Must never start a program outside the runner, or hand it more of our environment than it needs.
"""

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from palaver.backends.base import Turn
from palaver.backends.claude.results import exit_code_of
from palaver.backends.private_files import private_files
from palaver.backends.process import Ladder, allowed_environment, spawn
from palaver.backends.turn_input import Words
from palaver.errors import AgentError, Exited, ProtocolBroken
from palaver.journal import Journal
from palaver.schema.records import McpServer
from palaver.tools.base import Tool

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeSDKClient, PermissionResult, ToolPermissionContext

INBOX_LINES = 2_000
"""Lines read ahead of a slow reader; then the program's pipe fills and it waits."""
CONNECT_S = 60.0
"""It starts in under a second; servers of tools that it starts may take longer."""
LEAVE_S = 1.0
"""For a program at rest to write its memory down once its input ends; then the runner's ladder."""
WAKE_S = 2.0
"""Between the end of a background task and the program's own turn about it; seen: a few milliseconds."""
AT_ONCE = Ladder(interrupt_s=0, terminate_s=0.3)
"""For one that did not rest in time, or must not go on: it had its chance."""
OWN = "palaver"
"""Our server of tools, as the program knows it."""
OWN_TOOLS = tuple(f"mcp__{OWN}__{name}" for name in ("search_conversations", "ask_user", "task", "agents_message"))
"""They need no leave: one only searches, one is itself a question, and whoever the others set to work asks for itself."""

PASSED_ON = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "ANTHROPIC_CUSTOM_HEADERS"),
    *("CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_MAX_RETRIES", "CLAUDE_CODE_EXTRA_BODY"),
    *("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING"),
    *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "ANTHROPIC_VERTEX_PROJECT_ID", "CLOUD_ML_REGION"),
    *("AWS_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS"),
)
"""How it logs in and where: what a person who starts it in a terminal would give it."""
ALWAYS = {
    # On each line of its session files, so that an import of its history leaves our own conversations out.
    "CLAUDE_CODE_ENTRYPOINT": "palaver",
    # By "idle" the program says that nothing more comes by itself; a result alone ends only one of its own turns.
    "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
    "DISABLE_AUTOUPDATER": "1",
}

ASK_US: Mapping[str, Any] = {
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "ask",
        "permissionDecisionReason": "A rule of the server is about such calls.",
    }
}
"""Before the program's own rules and modes could allow a call."""

logger = Journal(__name__)


class SessionUnknown(AgentError):
    """The program has forgotten the session it should go on with."""

    code = "exited"


@dataclass(frozen=True, slots=True)
class Spec:
    """What a program is started with and cannot change while it runs."""

    executable: Path
    cwd: Path
    environment: Mapping[str, str]
    instructions: str = ""
    model: str | None = None
    tools: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    settings: str = "user"
    """Whose settings hold. A project's own may run commands, so they are left out until the folder is trusted."""
    servers: tuple[McpServer, ...] = ()


@dataclass(frozen=True, slots=True)
class Resume:
    session: str
    at: str | None = None
    """The line after which it goes on; what came later was taken back, or is told anew."""
    fork: bool = False


@dataclass(slots=True)
class Ask:
    """The program wants to use a tool, and waits."""

    tool: str
    input: dict[str, Any]
    context: "ToolPermissionContext"
    answer: "asyncio.Future[PermissionResult]"


@dataclass(frozen=True, slots=True)
class Hooked:
    """A call is about to be judged by the program's rules."""

    call: str


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The program no longer waits for this answer."""

    ask: Ask


@dataclass(frozen=True, slots=True)
class Signal:
    """Something of the turn's own that must keep its place among the lines."""

    what: Any


Item = dict[str, Any] | Ask | Hooked | Withdrawn | Signal | Exited


@dataclass(slots=True)
class ClaudeProgram:
    spec: Spec
    pid: int | None
    inbox: "asyncio.Queue[Item]" = field(default_factory=asyncio.Queue)
    client: "ClaudeSDKClient | None" = None
    session: str | None = None
    known: set[str] = field(default_factory=set[str])
    """Messages of ours that its session knows."""
    grants: set[tuple[str, str | None]] = field(default_factory=set[tuple[str, str | None]])
    """Rules that it was taught since it started."""
    tasks: dict[str, str] = field(default_factory=dict[str, str])
    cost_usd: float = 0.0
    turn: Turn | None = None
    """The turn that runs, or the last one."""
    resting: bool = True
    """No turn reads the inbox."""
    running: bool = False
    """By its own word."""
    tells_state: bool = False
    tells_messages: bool = False
    """How far it is with each message."""
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """It began a turn by itself, and what it says waits to be read."""
    stirred: bool = False
    """A background task ended while it rested: it is about to begin by itself."""
    is_ruled: Callable[[str, Mapping[str, Any]], bool] = lambda _tool, _given: False
    """Whether rules of ours have a word on a call."""
    raised: str | None = None
    """A mode that a person let it take for the conversation."""
    broken: bool = False
    _room: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def alive(self) -> bool:
        return not self.broken

    @property
    def started_as(self) -> str:
        return self.spec.executable.name

    async def has_background_work(self) -> bool:
        return bool(self.tasks)

    @property
    def connected(self) -> "ClaudeSDKClient":
        assert self.client is not None
        return self.client

    async def say(self, words: Words, told: str) -> None:
        """A message, under an id by which the program tells how far it is with it."""
        images = [
            {"type": "image", "source": {"type": "base64", "media_type": image.mime, "data": image.base64}}
            for image in words.images
        ]
        texts = [text for text in (words.record, words.text) if text] or ["(no text)"]
        content = [*images, *({"type": "text", "text": text} for text in texts)]
        message = {"type": "user", "uuid": told, "message": {"role": "user", "content": content}}

        async def one() -> AsyncIterator[dict[str, Any]]:
            yield {**message, "parent_tool_use_id": None}

        self.running = True
        await self.connected.query(one())

    async def next(self) -> Item:
        item = await self.inbox.get()
        if self.inbox.qsize() < INBOX_LINES:
            self._room.set()
        return item

    async def deliver(self, line: dict[str, Any]) -> None:
        """A line, as it came. Waits while the turn has too much to read."""
        if line.get("type") == "system":
            await self._hear(line)
        elif line.get("type") == "result" and not self.tells_state:
            self.running = False
        while self.inbox.qsize() >= INBOX_LINES and not self.broken:
            self._room.clear()
            await self._room.wait()
        self.inbox.put_nowait(line)

    async def woke(self) -> bool:
        """Whether it began by itself since the last turn."""
        if self.stirred and not self.begun.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WAKE_S):
                    await self.begun.wait()
        woke = self.begun.is_set()
        self.begun.clear()
        self.stirred = False
        return woke

    def forget(self) -> None:
        """What came late and belongs to nobody."""
        while not self.inbox.empty():
            self.inbox.get_nowait()
        self._room.set()

    def ended(self, why: Exited) -> None:
        self.broken = True
        self.running = False
        self.inbox.put_nowait(why)

    async def may_use(self, tool: str, given: dict[str, Any], context: "ToolPermissionContext") -> "PermissionResult":
        ask = Ask(tool, given, context, asyncio.get_running_loop().create_future())
        self.inbox.put_nowait(ask)
        try:
            return await ask.answer
        except asyncio.CancelledError:
            self.inbox.put_nowait(Withdrawn(ask))
            raise

    async def before_use(self, given: Any, call: str | None, _context: Any) -> Any:
        if not call or not isinstance(given, dict):
            return {}
        self.inbox.put_nowait(Hooked(call))
        tool, arguments = given.get("tool_name"), given.get("tool_input")
        if isinstance(tool, str) and self.is_ruled(tool, arguments if isinstance(arguments, dict) else {}):
            return ASK_US
        return {}

    async def _hear(self, line: Mapping[str, Any]) -> None:
        match line.get("subtype"):
            case "init":
                self.session = str(line.get("session_id") or self.session)
                self.running = True
                if self.resting or self.stirred:
                    self.begun.set()
            case "session_state_changed":
                self.tells_state = True
                self.running = line.get("state") != "idle"
            case "task_notification" if self.resting and line.get("task_id") in self.tasks:
                self.stirred = True
                await self._task_ended(str(line.get("task_id")), exit_code_of(line), str(line.get("summary") or ""))
            case _:
                pass

    async def _task_ended(self, task: str, exit_code: int | None, text: str) -> None:
        process = self.tasks.pop(task, None)
        if process is not None and self.turn is not None:
            await self.turn.process_ended(process, exit_code, text or "A background task ended.")

    async def forsake(self) -> None:
        """What still ran in the background ends with the program."""
        for task in list(self.tasks):
            await self._task_ended(task, None, "It was stopped together with Claude Code.")


def environment_of(environment: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    passed = {name: environment[name] for name in PASSED_ON if environment.get(name)}
    return allowed_environment(environment, {**passed, **ALWAYS, **more})


def argv(spec: Spec, mode: str, resume: Resume | None, files: Mapping[str, Path] | None = None) -> list[str]:
    """The command. Values that people may choose are bound to their option, so that none is read as another option.

    `files` hold what may be secret, each by the option that names it; see `secrets_of`.
    """
    words = [
        *(str(spec.executable), "--output-format=stream-json", "--input-format=stream-json", "--verbose"),
        *("--include-partial-messages", "--permission-prompt-tool=stdio", f"--permission-mode={mode}"),
        f"--setting-sources={spec.settings}",
    ]
    optional = {
        "--model": spec.model,
        "--tools": ",".join(spec.tools),
        "--disallowedTools": ",".join(spec.denied),
        "--allowedTools": ",".join(OWN_TOOLS),
    }
    words += [f"{name}={value}" for name, value in optional.items() if value]
    words += [f"--{name}={path}" for name, path in (files or {}).items()]
    if resume is not None:
        words.append(f"--resume={resume.session}")
        if resume.at:
            words.append(f"--resume-session-at={resume.at}")
        if resume.fork:
            words.append("--fork-session")
    return words


def secrets_of(spec: Spec) -> dict[str, bytes]:
    """By option, what may hold secrets: the headers and keys of MCP servers, and instructions."""
    files = {"mcp-config": msgspec.json.encode({"mcpServers": _servers(spec.servers)})}
    if spec.instructions:
        files["append-system-prompt-file"] = spec.instructions.encode(errors="replace")
    return files


@contextlib.asynccontextmanager
async def start_program(
    spec: Spec,
    mode: str,
    resume: Resume | None,
    closing: Callable[[], bool],
    others: Sequence[Tool] = (),
) -> AsyncIterator[ClaudeProgram]:
    """The program for the length of a block. Raises SessionUnknown when it cannot go on with the session.

    `others` are the tools by which it reaches other agents.
    """
    # A second of importing, in which others stream.
    await asyncio.to_thread(importlib.import_module, "palaver.backends.claude.transport")
    with private_files(secrets_of(spec)) as files:
        command = argv(spec, mode, resume, files)
        async with _running(command, spec, resume, closing, others) as program:
            yield program


@contextlib.asynccontextmanager
async def _running(
    command: Sequence[str], spec: Spec, resume: Resume | None, closing: Callable[[], bool], others: Sequence[Tool]
) -> AsyncIterator[ClaudeProgram]:
    from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher

    from palaver.backends.claude.tools import server
    from palaver.backends.claude.transport import Wire

    async with spawn(command, cwd=spec.cwd, environment=spec.environment, stdin=True) as child:
        program = ClaudeProgram(spec, child.pid)
        options = ClaudeAgentOptions(
            can_use_tool=program.may_use,
            hooks={"PreToolUse": [HookMatcher(hooks=[program.before_use])]},
            mcp_servers={OWN: server(program, others)},
            verbatim_prompts=True,
        )
        wire = Wire(child, program.deliver, program.ended)
        program.client = ClaudeSDKClient(options, wire)
        try:
            await _connect(program, resume)
            yield program
        finally:
            at_rest = program.alive and not program.running
            program.broken = True
            program._room.set()
            wire.leave()
            if not at_rest:
                await child.stop(AT_ONCE)
            await program.client.disconnect()
            if at_rest:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LEAVE_S):
                        await child.ended()
            if not closing():
                await program.forsake()


async def _connect(program: ClaudeProgram, resume: Resume | None) -> None:
    try:
        async with asyncio.timeout(CONNECT_S):
            await program.connected.connect()
    except TimeoutError:
        raise ProtocolBroken(f"Claude Code did not answer within {CONNECT_S:.0f} s.") from None
    except Exception as failure:
        if resume is not None:
            # Forgotten, pruned, or without the line to go on from. If it is something else, the next try will say so.
            logger.info("claude cannot go on with a session", session=resume.session, reason=str(failure))
            raise SessionUnknown(f"Claude Code no longer knows the session {resume.session}.") from failure
        raise (
            failure if isinstance(failure, AgentError) else Exited(f"Claude Code could not start: {failure}")
        ) from None


def _servers(servers: tuple[McpServer, ...]) -> dict[str, Any]:
    named: dict[str, Any] = {OWN: {"type": "sdk", "name": OWN}}
    for one in servers:
        if one.command:
            named[one.name] = {
                "type": "stdio",
                "command": one.command[0],
                "args": list(one.command[1:]),
                "env": one.environment,
            }
        elif one.url:
            named[one.name] = {"type": "http", "url": one.url, "headers": one.headers}
    return named
