"""Pi as a backend: one process a conversation in RPC mode, its session resumed or copied, every tool call judged by us.

Chosen for agent records with backend `pi`. It drives the link and yields what the translation makes of its lines. A stop
aborts in Pi's own way, which also ends its tools; a Pi that does not become still in time is ended.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import msgspec

from palaver.approval.policy import Policy
from palaver.approval.program_calls import Judging
from palaver.approval.standing_grants import StandingGrants
from palaver.approval.turn_grants import Grants
from palaver.backends.base import Capabilities, Turn
from palaver.backends.excerpts import fitting
from palaver.backends.own_tools import OwnCalls, offer_tools
from palaver.backends.pi.approvals import Asking
from palaver.backends.pi.events import Translation
from palaver.backends.pi.installation import FOLDER, PACKAGE
from palaver.backends.pi.process import Line, Link, start_pi
from palaver.backends.private_files import private_files
from palaver.backends.process import allowed_environment, to_the_end
from palaver.backends.program_lookup import runs_packages
from palaver.backends.program_pool import Programs, Row
from palaver.backends.project_settings import PI, NoTrust, SettingsTrust, settings_of
from palaver.backends.turn_input import Briefing, all_known, briefing, still_said, words_of
from palaver.clock import Clock
from palaver.context.handover import mark
from palaver.errors import AgentError, NotInstalled, NotLoggedIn, ProviderRefused, ProviderUnavailable
from palaver.schema.errors import WireError
from palaver.schema.events import KnownEvent, ToolFinished, TurnFinished, TurnStatus
from palaver.schema.view import Message, Outcome
from palaver.tools.toolbox import Toolbox

EXTENSION = Path(__file__).with_name("permission.ts")
SETTLE_S = 1.5
"""For Pi to become still after an abort; then its process is ended."""
QUIET = {"PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}
"""Started by a server, it has nobody to tell of updates, and nothing to report."""
NO_CODE_CACHE = {"JITI_FS_CACHE": "false", "NODE_DISABLE_COMPILE_CACHE": "1"}
"""It would run compiled code, our own extension's too, from the temporary folder, where an agent's command could have put it."""
HOW_TO_INSTALL = f"Install it with npm (npm install -g {PACKAGE}), or give the agent's record a `command`."
THINKING = frozenset({"off", "minimal", "low", "medium", "high", "xhigh", "max"})


class PiBackend:
    name = "pi"

    def __init__(
        self,
        clock: Clock,
        environment: Mapping[str, str],
        *,
        policy: Policy | None = None,
        standing: StandingGrants | None = None,
        others: Toolbox | None = None,
        trust: SettingsTrust | None = None,
    ) -> None:
        """`environment` is the server's own; Pi sees what is allowed of it, and what its record adds. `others` holds the
        tools of ours that it is offered. `trust` says in which folders a project's settings are taken in."""
        self._trust = trust or NoTrust()
        self._environment = environment
        self._judging = Judging(policy, Grants(standing))
        self._others = others
        self._programs: Programs[Link] = Programs("pi", clock)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(deltas=True, thinking=True, steer=True, approvals=True, fork=True, images=True, usage=True)

    def table(self) -> list[Row]:
        return self._programs.table()

    async def let_go(self, conversation: str, *, even_busy: bool = False) -> bool:
        return await self._programs.let_go(conversation, even_busy=even_busy)

    async def close(self) -> None:
        await self._programs.close()

    async def run(self, turn: Turn) -> AsyncGenerator[KnownEvent, None]:
        agent = turn.agent
        folder = await settings_of(PI, turn.project, self._environment.get("HOME"), self._trust)
        for notice in folder.notice(turn):
            yield notice
        if agent.command and runs_packages(agent.command):
            # It knows no other folder than the one it starts in, and these would take Pi itself from there.
            raise NotInstalled(
                f"Pi was not started: {agent.command[0]} would run what the project has under its name. Install Pi, and give "
                "its path in `command`."
            )
        own = {name: self._environment[name] for name in (FOLDER,) if name in self._environment}
        seen = allowed_environment(self._environment, {**QUIET, **own, **agent.environment, **NO_CODE_CACHE})
        program, environment = await asyncio.to_thread(
            turn.programs.prepare, agent.command or ("pi",), seen, HOW_TO_INSTALL
        )
        argv = (
            *program,
            *_options(turn),
            *await asyncio.to_thread(_trust_options, folder.trusted, turn.project, environment),
        )
        identity = (argv, agent.system_prompt, tuple(sorted(agent.environment.items())), turn.project)
        brief = briefing(turn, self.name)
        if not any(row.conversation == turn.conversation for row in self._programs.table()):
            yield TurnStatus(status="working", detail="Starting Pi")
        using = self._programs.use(
            turn.conversation,
            lambda: _start(agent.system_prompt, argv, _resume(brief, turn), turn.project, environment, identity),
            lambda link: link.identity == identity and still_said(link.known, turn.state),
            agent.id,
        )
        try:
            async with using as link:
                tools = offer_tools(self._others, turn)
                link.offered = [tool.spec for tool in tools]
                asking = Asking(turn, self._judging, OwnCalls(turn, tools), link)
                async with aclosing(_Conduct(turn, link, brief, asking).events()) as events:
                    async for event in events:
                        yield event
        except NotInstalled as missing:
            raise NotInstalled(f"Pi was not found. {HOW_TO_INSTALL}") from missing


class _Conduct:
    """One turn."""

    def __init__(self, turn: Turn, link: Link, brief: Briefing, asking: "Asking") -> None:
        self._turn = turn
        self._link = link
        self._brief = brief
        self._asking = asking
        self._began_ms = turn.now_ms()
        self._said = Translation(turn.new_id, {}, link.window_tokens)

    async def events(self) -> AsyncGenerator[KnownEvent, None]:
        turn, link = self._turn, self._link
        record = await self._session()
        inbox = link.listen()
        settled = False
        try:
            await self._prompt(self._brief.asked, record)
            link.known |= {message.id for message in turn.state.messages}
            async with aclosing(self._listen(inbox)) as events:
                async for event in events:
                    yield await fitting(event, turn) if isinstance(event, ToolFinished) else event
            settled = True
        finally:
            await to_the_end(self._leave(settled))

    async def _listen(self, inbox: "asyncio.Queue[Line | None]") -> AsyncGenerator[KnownEvent, None]:
        said, asking = self._said, self._asking
        while True:
            heard = await asking.next(inbox)
            if heard is None:
                raise await self._link.exited()
            if not isinstance(heard, Mapping):
                async with aclosing(asking.answered(heard, said)) as events:
                    async for event in events:
                        yield event
                continue
            kind = heard.get("type")
            for event in asking.heard(heard, said) if kind == "extension_ui_request" else said.line(heard):
                yield event
            if kind in ("tool_execution_start", "tool_execution_end"):
                await self._steer()
            elif kind == "agent_settled":
                if await self._again():
                    continue
                for event in self._over():
                    yield event
                return

    # -- the session

    async def _session(self) -> str:
        """What the session must be told first. One that knows what was taken back is left for a new one."""
        turn, link, brief = self._turn, self._link, self._brief
        if link.known:
            return "" if all_known(link.known, turn) else brief.unseen
        if link.resumed:
            told = (await link.command("get_session_stats")).get("userMessages")
            known = brief.marked.get("sent")
            if not (isinstance(told, int) and isinstance(known, int) and told > known + brief.since):
                link.sent = told if isinstance(told, int) else 0
                return brief.unseen
            await link.command("new_session")
            await link.learn()
            link.resumed = False
        return brief.whole

    async def _prompt(self, messages: "tuple[Message, ...]", record: str = "") -> None:
        words = (await words_of(self._turn, messages)).after(record)
        images = [{"type": "image", "data": image.base64, "mimeType": image.mime} for image in words.images]
        self._send_prompt()
        try:
            await self._link.command("prompt", message=words.plain, images=images)
        except ProviderRefused as refusal:
            raise (failure_of(refusal.message) if self._link.alive else await self._link.exited()) from refusal

    def _send_prompt(self) -> None:
        link = self._link
        link.sent += 1
        self._said.provider = mark("pi", link.session, sent=link.sent, conversation=self._turn.conversation)

    async def _steer(self) -> None:
        """A boundary: what was queued for the running turn is put before Pi's next model call."""
        for message in await self._turn.deliveries():
            words = await words_of(self._turn, (message,))
            images = [{"type": "image", "data": image.base64, "mimeType": image.mime} for image in words.images]
            self._send_prompt()
            self._link.known.add(message.id)
            # Its response is not waited for: it stands in line behind what this very loop has yet to read.
            await self._link.send({"type": "steer", "message": words.plain, "images": images})

    async def _again(self) -> bool:
        """Whether something came in after the last boundary; it is answered in this turn too."""
        if self._said.error is not None or self._asking.stopped:
            return False
        delivered = tuple(await self._turn.deliveries())
        if not delivered:
            return False
        self._link.known |= {message.id for message in delivered}
        await self._prompt(delivered)
        return True

    # -- the end

    def _over(self) -> list[KnownEvent]:
        said, stopped = self._said, self._asking.stopped
        self._link.known |= set(said.answers)
        if said.error is not None and stopped is None:
            raise failure_of(said.error)
        outcome: Outcome = "completed"
        error: WireError | None = None
        if stopped is not None or said.stop_reason == "aborted":
            outcome = "interrupted"
        elif said.stop_reason == "length":
            outcome = "limited"
            error = WireError(
                code="limit_reached", message="The answer reached its limit and breaks off. Tell Pi to go on."
            )
        finished = TurnFinished(
            outcome=outcome,
            duration_ms=max(0, self._turn.now_ms() - self._began_ms),
            error=error,
            summary=stopped,
        )
        return [*said.close(), finished]

    async def _leave(self, settled: bool) -> None:
        """Nothing of this turn is left when the next one begins."""
        link = self._link
        await self._asking.close()
        link.hush()
        if not settled:
            link.known |= set(self._said.answers) & {message.id for message in self._turn.state.messages}
            link.spoiled = not await link.abort(SETTLE_S)


def failure_of(told: str) -> AgentError:
    """Pi passes on what the service said: often a status and a body."""
    found = re.match(r"(?:Pi refused: )?(\d{3})\s+(.*)", told, re.DOTALL)
    status, said = (int(found[1]), _readable(found[2])) if found else (0, told)
    if status in (401, 403) or re.search(r"no api key|no model|not logged in|/login", told, re.IGNORECASE):
        return NotLoggedIn(f"Pi cannot use its model: {said} Start pi in a terminal and use /login.", status=status)
    if (
        status == 429
        or status >= 500
        or re.search(r"overloaded|timed? ?out|terminated|fetch failed", told, re.IGNORECASE)
    ):
        return ProviderUnavailable(f"Pi's model service failed: {said}", status=status)
    return ProviderRefused(f"Pi's model service refused: {said}", status=status)


def _readable(body: str) -> str:
    try:
        told = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body
    match told:
        case {"error": {"message": str(message)}}:
            return message
        case _:
            return body


def _options(turn: Turn) -> tuple[str, ...]:
    agent = turn.agent
    argv = ["--mode", "rpc", "-e", str(EXTENSION)]
    model = turn.params.get("model") or agent.model
    if isinstance(model, str) and model:
        argv += ["--model", model]
    effort = turn.params.get("reasoning_effort") or agent.params.get("reasoning_effort")
    if effort in THINKING:
        argv += ["--thinking", str(effort)]
    return tuple(argv)


def _resume(brief: Briefing, turn: Turn) -> tuple[str, ...]:
    """A branch goes on with a copy; the session itself is another conversation's."""
    if brief.session is None or brief.session.startswith("-"):
        return ()
    elsewhere = brief.marked.get("conversation") not in (None, turn.conversation)
    return ("--fork" if elsewhere else "--session", brief.session)


@asynccontextmanager
async def _start(
    instructions: str,
    argv: Sequence[str],
    resume: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    identity: object,
) -> AsyncIterator[Link]:
    """A running Pi. Its instructions may hold a secret, so they are in a file, which Pi takes as well as the text itself."""
    contents = {"instructions.md": instructions.encode(errors="replace")} if instructions else {}
    with private_files(contents) as files:
        told = [word for path in files.values() for word in ("--append-system-prompt", str(path))]
        async with start_pi((*argv, *told), resume, cwd, environment, identity) as link:
            yield link


def _trust_options(trusted: bool, project: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Whether the project's settings count. Blocking.

    Where sessions lie Pi 0.87 reads from them before it asks whether they are trusted, so it is told.
    """
    if trusted:
        return ("--approve",)
    agent = Path(environment.get(FOLDER) or Path(environment.get("HOME", "/"), ".pi", "agent")).expanduser()
    own = environment.get("PI_CODING_AGENT_SESSION_DIR") or _own_session_folder(agent / "settings.json")
    place = os.path.realpath(project).lstrip("/")
    sessions = own or str(agent / "sessions" / f"--{re.sub(r'[/:]', '-', place)}--")
    return ("--no-approve", "--session-dir", sessions)


def _own_session_folder(settings: Path) -> str | None:
    """As the person's own settings have it."""
    try:
        told = msgspec.json.decode(settings.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    match told:
        case {"sessionDir": str(folder)} if folder:
            return folder
        case _:
            return None
