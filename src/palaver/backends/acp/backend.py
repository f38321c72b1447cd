"""Agents that speak ACP, as a backend: one process a conversation, its session resumed where the agent can.

Chosen for agent records with backend `acp`; the record's `command` says what to start. It drives the link and yields what
the translation makes of it. A stop answers open permissions itself, cancels the agent's turn, and ends the process when
that takes too long or a running tool was left behind.
"""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import structlog

from palaver.backends.acp.link import HANDSHAKE_S, Heard, Link, Over, Permission, Update, linked
from palaver.backends.acp.own_calls import OwnTurn
from palaver.backends.acp.permission import Answered, Choice, answer_of, by_mode, choice_of, describe
from palaver.backends.acp.tools import OwnCall
from palaver.backends.acp.translate import Call, Translation, usage_of
from palaver.backends.api.grants import Grants
from palaver.backends.base import Capabilities, Turn
from palaver.backends.briefing import Briefing, all_known, briefing, still_said, words_of
from palaver.backends.excerpts import fitting
from palaver.backends.judging import Judging, mode_of
from palaver.backends.own_tools import OwnCalls, offered
from palaver.backends.process import allowed_environment, to_the_end
from palaver.backends.programs import Programs, Row
from palaver.clock import Clock
from palaver.context.handover import mark
from palaver.errors import AgentError, NotInstalled, ProviderRefused
from palaver.schema.errors import WireError
from palaver.schema.events import KnownEvent, RequestResolved, ToolFinished, TurnFinished, TurnStatus
from palaver.schema.records import McpServer
from palaver.schema.view import Outcome
from palaver.tools.policy import Mode, Policy
from palaver.tools.standing import StandingGrants
from palaver.tools.toolbox import Toolbox

SETTLE_S = 1.5
"""For an agent to end a cancelled turn; then its process is ended."""
LET_GO_S = 0.5
"""For a question that is withdrawn. All clean-up together must end before the conversation goes on without it."""
TURN_S = 24 * 3600.0
"""Of one prompt: a turn may wait for a person over night. A stop ends it at any time."""
PLAN_ONLY = "[Only a plan is wanted now: look and think, but change nothing and run nothing.]"
"""For an agent without a plan mode. Whatever it asks for beyond reading is refused; what it does unasked, it must leave."""
SILENT_S = 3.0
"""opencode calls a tool in progress before it asks for permission: a fifth of a second before, and more than one where ten
others want the processor. Only after this, or its first output, does a call count as begun that nobody was asked about."""

logger = structlog.get_logger(__name__)


class AcpBackend:
    name = "acp"

    def __init__(
        self,
        clock: Clock,
        environment: Mapping[str, str],
        *,
        policy: Policy | None = None,
        standing: StandingGrants | None = None,
        others: Toolbox | None = None,
    ) -> None:
        """`environment` is the server's own; agents see what is allowed of it, and what their records add. `others` holds
        the tools of ours that they are offered."""
        self._environment = environment
        self._judging = Judging(policy, Grants(standing))
        self._others = others
        self._programs: Programs[Link] = Programs("acp", clock)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(deltas=True, thinking=True, approvals=True, fork=True, images=True, usage=True)

    def table(self) -> list[Row]:
        return self._programs.table()

    async def let_go(self, conversation: str, *, even_busy: bool = False) -> bool:
        return await self._programs.let_go(conversation, even_busy=even_busy)

    async def close(self) -> None:
        await self._programs.close()

    async def run(self, turn: Turn) -> AsyncGenerator[KnownEvent, None]:
        agent = turn.agent
        if not agent.command:
            raise NotInstalled(f"The agent {agent.name} does not say how to start it: give its record a `command`.")
        tools = offered(self._others, turn)
        specs = [tool.spec for tool in tools]
        names = tuple(spec.name for spec in specs)
        identity = (agent.command, tuple(sorted(agent.environment.items())), turn.project, names)
        environment = allowed_environment(self._environment, agent.environment)
        if not any(row.conversation == turn.conversation for row in self._programs.table()):
            yield TurnStatus(status="working", detail=f"Starting {agent.name}")
        program = self._programs.use(
            turn.conversation,
            lambda: linked(agent.command, turn.project, environment, identity, specs),
            lambda link: link.identity == identity and still_said(link.known, turn.state),
            agent.id,
        )
        try:
            own = OwnTurn(turn, OwnCalls(turn, tools), self._judging)
            async with program as link, aclosing(_Conduct(turn, link, self._judging, own).events()) as events:
                async for event in events:
                    yield event
        except NotInstalled as missing:
            if "palaver[" in missing.message:
                raise
            raise NotInstalled(
                f"{agent.command[0]} was not found, so {agent.name} cannot be started. Install it, or correct the "
                "`command` of its record."
            ) from missing


class _Conduct:
    """One turn."""

    def __init__(self, turn: Turn, link: Link, judging: Judging, own: OwnTurn) -> None:
        self._turn = turn
        self._link = link
        self._own = own
        self._by = f"acp:{turn.agent.id}"
        self._judging = judging
        mode = mode_of(turn)
        self._mode: Mode = "ask" if mode == "full" and not judging.policy.full_enabled else mode
        self._decided: list[Choice] = []
        self._began_ms = turn.now_ms()
        self._asked: dict[asyncio.Task[RequestResolved], Choice] = {}
        self._said = Translation(turn.new_id, turn.agent.model, link.past)
        self._stopped: str | None = None
        self._silent_since_s: float | None = None

    async def events(self) -> AsyncGenerator[KnownEvent, None]:
        turn, link = self._turn, self._link
        brief = briefing(turn, self._by)
        record = await self._session(brief)
        await self._set_mode()
        await self._set_model()
        if self._mode == "plan" and by_mode("plan", link.offered("mode")) is None:
            record = f"{record}\n\n{PLAN_ONLY}".lstrip()
        words = (await words_of(turn, brief.asked)).after(record)
        images = words.images if link.can("promptCapabilities", "image") else ()
        if len(images) < len(words.images):
            logger.info("an agent cannot see images; they are left out", agent=link.name)
        content: list[Mapping[str, Any]] = [{"type": "text", "text": words.plain or "Go on."}]
        content += [{"type": "image", "data": image.base64, "mimeType": image.mime} for image in images]
        link.turns += 1
        link.known |= {message.id for message in turn.state.messages}
        inbox = link.prompt(content, TURN_S)
        settled = False
        try:
            async with aclosing(self._listen(inbox)) as events:
                async for event in events:
                    yield await fitting(event, turn) if isinstance(event, ToolFinished) else event
                    settled = settled or isinstance(event, TurnFinished)
            settled = True
        finally:
            await to_the_end(self._leave(inbox, settled))

    async def _listen(self, inbox: "asyncio.Queue[Heard]") -> AsyncGenerator[KnownEvent, None]:
        while True:
            heard = await self._next(inbox)
            match heard:
                case None if self._silence_left_s() == 0.0:
                    for event in self._said.start_silent():
                        yield event
                case None:
                    pass
                case Update():
                    for event in self._said.update(heard.told):
                        yield event
                case Permission():
                    for event in self._permission(heard):
                        yield event
                case OwnCall():
                    self._own.heard(heard)
                case Answered():
                    async with aclosing(self._answered(heard)) as events:
                        async for event in events:
                            yield event
                case Over():
                    for event in self._over(heard):
                        yield event
                    return
            for own, call in self._own.paired(self._said):
                for event in self._own_call(own, call):
                    yield event

    async def _next(self, inbox: "asyncio.Queue[Heard]") -> Heard | Answered | None:
        """What happens next: the policy or a person decided, the agent says something, or a tool has been at work a while."""
        if self._decided:
            return Answered(self._decided.pop(0), None)
        limits_s = [left_s for left_s in (self._silence_left_s(), self._own.left_s()) if left_s is not None]
        limit_s = min(limits_s, default=None)
        if limit_s == 0.0:
            return None
        hearing = asyncio.ensure_future(self._link.heard(inbox))
        try:
            await asyncio.wait({hearing, *self._asked}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            if hearing.done():
                return hearing.result()
        finally:
            hearing.cancel()
        for task, choice in self._asked.items():
            if task.done():
                del self._asked[task]
                return Answered(choice, task.result())
        return None

    def _silence_left_s(self) -> float | None:
        now_s = asyncio.get_running_loop().time()
        if not self._said.silent:
            self._silent_since_s = None
            return None
        if self._silent_since_s is None:
            self._silent_since_s = now_s
        return max(0.0, self._silent_since_s + SILENT_S - now_s)

    # -- the session

    async def _session(self, brief: Briefing) -> str:
        """The session to talk in, and what it must be told first."""
        turn, link = self._turn, self._link
        if link.session is not None:
            return "" if all_known(link.known, turn) else brief.unseen
        servers = [server for one in turn.agent.mcp_servers if (server := self._server(one))]
        if link.door is not None:
            servers.append(link.door.server)
        if brief.session is not None and (known := await self._resumed(brief, brief.session, servers)):
            link.session = known
            link.known |= {message.id for message in turn.state.messages if message.turn != turn.id}
            return brief.unseen
        said = await link.ask("session/new", {"cwd": str(turn.project), "mcpServers": servers}, HANDSHAKE_S)
        session = said.get("sessionId")
        if not isinstance(session, str):
            raise ProviderRefused(f"{link.name} began no session. Is it logged in?")
        link.opened(session, said)
        link.turns, link.cost_usd = 0, 0.0
        told = [part for part in (turn.agent.system_prompt, brief.whole) if part]
        return "\n\n".join(told)

    async def _resumed(self, brief: Briefing, session: str, servers: Sequence[Any]) -> str | None:
        """The session of before, or a copy of it where another conversation goes on with it. None: begin anew."""
        turn, link = self._turn, self._link
        elsewhere = brief.marked.get("conversation") not in (None, turn.conversation)
        if elsewhere and not link.can("sessionCapabilities", "fork"):
            return None
        if not (link.can("loadSession") or link.can("sessionCapabilities", "resume")):
            return None
        turns = brief.marked.get("turns")
        try:
            told = await link.load(session, turn.project, servers)
            if told is not None and isinstance(turns, int) and told > turns + brief.since:
                # It remembers more than was said here: something was taken back since.
                return None
            if elsewhere:
                params = {"sessionId": session, "cwd": str(turn.project), "mcpServers": list(servers)}
                said = await link.ask("session/fork", params, HANDSHAKE_S)
                copied = said.get("sessionId")
                if not isinstance(copied, str):
                    return None
                link.opened(copied, said)
                session = copied
        except AgentError as failure:
            if not link.alive:
                raise
            logger.info("a session could not be resumed; a new one is told everything", reason=failure.message)
            return None
        link.turns = turns if isinstance(turns, int) else 0
        cost = brief.marked.get("cost_usd")
        link.cost_usd = float(cost) if isinstance(cost, int | float) else 0.0
        return session

    async def _set_mode(self) -> None:
        link = self._link
        wanted = by_mode(self._mode, link.offered("mode"))
        if wanted is None:
            return
        try:
            await link.choose("mode", wanted)
        except AgentError as failure:
            # It then asks more often than wished, or works where it was only to plan.
            if self._mode == "plan":
                raise ProviderRefused(f"{link.name} would not go into plan mode: {failure.message}") from failure
            logger.warning("an agent refused a mode", agent=link.name, mode=wanted, reason=failure.message)

    async def _set_model(self) -> None:
        link, given = self._link, self._turn.params.get("model")
        wanted = given if isinstance(given, str) and given else self._turn.agent.model
        if wanted is None or "model" not in link.settings:
            return
        known = link.offered("model")
        if wanted not in known:
            raise ProviderRefused(f"{link.name} has no model {wanted}. It has: {', '.join(known[:20])}.")
        await link.choose("model", wanted)

    def _server(self, server: McpServer) -> Mapping[str, Any] | None:
        if server.url:
            headers = [{"name": name, "value": value} for name, value in server.headers.items()]
            http = {"type": "http", "name": server.name, "url": server.url, "headers": headers}
            return http if self._link.can("mcpCapabilities", "http") else None
        if not server.command:
            return None
        environment = [{"name": name, "value": value} for name, value in server.environment.items()]
        command, *arguments = server.command
        found = shutil.which(command) or command
        return {"name": server.name, "command": found, "args": arguments, "env": environment}

    # -- permissions

    def _permission(self, heard: Permission) -> list[KnownEvent]:
        told = heard.told.get("toolCall")
        call, events = self._said.asking(told if isinstance(told, Mapping) else {})
        tool = self._own.tool_of(call)
        judged = (
            self._judging.judge(self._turn, *describe(call, self._turn.project))
            if tool is None
            else self._own.judged(tool, call)
        )
        self._put(choice_of(heard, call, self._turn, judged))
        return events

    def _own_call(self, own: OwnCall, call: Call) -> list[KnownEvent]:
        """A tool of ours is called; the agent may have asked already whether it may."""
        tool = self._own.tool_called(own)
        # Begun without having asked means only that the agent says so; rules still decide.
        if (call.asked and call.started) or tool is None:
            self._own.begin(own, call.id)
            return []
        _, events = self._said.asking({"toolCallId": call.theirs, "rawInput": dict(own.given)})
        self._put(choice_of(own, call, self._turn, self._own.judged(tool, call)))
        return events

    def _put(self, choice: Choice) -> None:
        if choice.verdict.decision == "ask":
            task = asyncio.create_task(self._turn.request(choice.request), name=f"permission {choice.call.id}")
            self._asked[task] = choice
        else:
            self._decided.append(choice)

    async def _answered(self, answered: Answered) -> AsyncGenerator[KnownEvent, None]:
        choice, resolved = answered.choice, answered.resolved
        option, refusal = answer_of(choice, resolved)
        if refusal is None:
            request = resolved.request if resolved else None
            grant = f"request:{request}" if request else choice.verdict.grant
            for event in self._said.start(choice.call, grant, request):
                yield event
            # On disk before the agent may begin: whatever happens now, the log knows under which grant.
            await self._turn.committed()
        else:
            for event in self._said.refuse(choice.call, refusal):
                yield event
            stops = resolved.then == "stop" if resolved else choice.verdict.decision == "deny_abort"
            if stops:
                self._stopped = f"{choice.request.title or choice.call.name} was declined."
        self._tell(choice, option, refusal)
        if self._stopped is not None:
            await self._link.cancel(SETTLE_S)

    def _tell(self, choice: Choice, option: Mapping[str, Any], refusal: str | None) -> None:
        match choice.answer:
            case OwnCall() as own:
                if refusal is None:
                    self._own.begin(own, choice.call.id)
                else:
                    self._own.refuse(own, refusal)
            case answer if not answer.done():
                answer.set_result(option)
            case _:
                pass

    # -- the end

    def _over(self, over: Over) -> list[KnownEvent]:
        link, said = self._link, self._said
        if over.error is not None and self._stopped is None:
            raise over.error
        reason = str(over.result.get("stopReason") or "end_turn")
        cost = None
        if said.cost_usd is not None:
            cost = max(0.0, said.cost_usd - link.cost_usd)
            link.cost_usd = said.cost_usd
        provider = mark(
            self._by,
            link.session or "",
            turns=link.turns,
            conversation=self._turn.conversation,
            cost_usd=link.cost_usd,
        )
        words = {"end_turn": "stop", "max_tokens": "length", "refusal": "refusal", "cancelled": "interrupted"}
        events = said.finish(words.get(reason, "other"), usage_of(over.result.get("usage")), cost, provider)
        link.known |= set(said.answers)
        return [*events, self._finished(reason)]

    def _finished(self, reason: str) -> TurnFinished:
        outcome: Outcome = "completed"
        error: WireError | None = None
        match reason:
            case "cancelled":
                outcome = "interrupted"
            case "max_tokens" | "max_turn_requests":
                outcome = "limited"
                error = WireError(code="limit_reached", message=f"{self._link.name} reached a limit. Tell it to go on.")
            case "refusal":
                outcome = "failed"
                error = WireError(
                    code="provider_refused", message="The model declined to answer this. Say it differently."
                )
            case _:
                pass
        if self._stopped is not None:
            outcome, error = "interrupted", None
        return TurnFinished(
            outcome=outcome,
            duration_ms=max(0, self._turn.now_ms() - self._began_ms),
            error=error,
            summary=self._stopped,
        )

    async def _leave(self, inbox: "asyncio.Queue[Heard]", settled: bool) -> None:
        """Nothing of this turn is left when the next one begins."""
        link = self._link
        for task in self._asked:
            task.cancel()
        if self._asked:
            await asyncio.wait(self._asked, timeout=LET_GO_S)
        await self._own.close()
        if not settled:
            ended = await link.cancel(SETTLE_S)
            while not inbox.empty():
                heard = inbox.get_nowait()
                if isinstance(heard, Update):
                    self._said.update(heard.told)
            # codex-acp leaves a cancelled command running and says nothing of it.
            left = any(call.started or call.at_work for call in self._said.open_calls)
            link.spoiled = not ended or left
            link.known |= set(self._said.answers) & {message.id for message in self._turn.state.messages}
        link.hush()
        link.past |= self._said.seen
