"""The built-in agent as a backend: prepare → linearize → stream → collect → tools → again.

Chosen by the composition root for agents with backend `api`. Each step starts from the committed history alone, so a turn
that goes on after a restart takes the same way as one that never stopped: finish what is open, take what was delivered,
ask the model.
"""

import random
import re
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from palaver.approval.policy import Mode, as_mode
from palaver.approval.turn_grants import Grants
from palaver.backends.api.budget import Spending
from palaver.backends.api.calls import Calls
from palaver.backends.api.provider import ModelRequest, Provider
from palaver.backends.api.request import Preparation, Preparing, Wanted
from palaver.backends.api.retry import RetryPolicy
from palaver.backends.api.route import Candidate, Choose, Route, route_of
from palaver.backends.api.settings import Settings, settings_of
from palaver.backends.api.step import Step
from palaver.backends.base import Capabilities, Turn
from palaver.context.plan_text import plan_of
from palaver.context.quotes import break_control_tokens, break_control_tokens_within
from palaver.core.state import messages_of_turn, open_tools
from palaver.errors import AgentError
from palaver.journal import Journal
from palaver.schema.content import as_content
from palaver.schema.errors import ErrorCode, WireError
from palaver.schema.events import ContextCompressed, KnownEvent, MessageAdded, RequestOpened, ToolFinished, TurnFinished
from palaver.schema.view import Outcome, Plan, TextBlock
from palaver.tools.agents.chat_post import NAME as CHAT_POST
from palaver.tools.agents.chat_post import ChatPost
from palaver.tools.agents.task import is_deepest
from palaver.tools.agents.turn_end import YieldTurn
from palaver.tools.base import ToolSpec
from palaver.tools.mcp.servers import McpServers
from palaver.tools.redact import Redactor
from palaver.tools.toolbox import Toolbox

STEP_LIMIT = 100
"""Model calls a turn. An agent that needs more is most likely going in circles; a person can send it on."""

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

SYSTEMS = {"darwin": "macOS", "linux": "Linux", "win32": "Windows"}

logger = Journal(__name__)


@dataclass(frozen=True, slots=True)
class Conduct:
    """How every turn of a backend behaves."""

    retry: RetryPolicy = field(default_factory=RetryPolicy)
    chance: Callable[[], float] = random.random
    """Between 0 and 1, for pauses that differ."""
    step_limit: int = STEP_LIMIT
    system: str = SYSTEMS.get(sys.platform, sys.platform)


class ApiBackend:
    name = "api"

    def __init__(
        self, choose: Choose, toolbox: Toolbox, conduct: Conduct | None = None, mcp: McpServers | None = None
    ) -> None:
        """`mcp` is closed with the backend."""
        self._choose = choose
        self._mcp = mcp
        self._toolbox = toolbox
        self._conduct = conduct or Conduct()
        self._grants = Grants(toolbox.standing)
        self._preparation = Preparation(self._conduct.system, redact=Redactor(toolbox.environment).redact)
        self._providers: dict[int, Provider] = {}

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            deltas=True, thinking=True, steer=True, approvals=True, resume=True, fork=True, images=True, usage=True
        )

    async def run(self, turn: Turn) -> AsyncGenerator[KnownEvent, None]:
        loop = _Loop(
            turn, self._choose_model, await self._tools_of(turn), self._grants, self._preparation, self._conduct
        )
        async with aclosing(loop.events()) as events:
            async for event in events:
                yield event

    async def _tools_of(self, turn: Turn) -> Toolbox:
        """The built-in tools that the agent may use, and those of the servers that were given to it alone."""
        agent = turn.agent
        toolbox = self._toolbox.only(agent.tools) if agent.tools else self._toolbox
        toolbox = toolbox.delegating(turn.project, is_deepest(turn.state))
        if agent.strict_inbox:
            toolbox = toolbox.with_tools((ChatPost(), YieldTurn()))
        if self._mcp is None or not agent.mcp_servers:
            return toolbox
        return toolbox.with_tools(await self._mcp.tools_of(agent, turn.project, turn.programs))

    def _choose_model(self, model: str | None) -> Candidate:
        candidate = self._choose(model)
        self._providers[id(candidate.provider)] = candidate.provider
        return candidate

    async def close(self) -> None:
        providers = list(self._providers.values())
        self._providers.clear()
        for provider in providers:
            await provider.close()
        if self._mcp is not None:
            await self._mcp.close()


class _Loop:
    """One turn."""

    def __init__(
        self,
        turn: Turn,
        choose: Choose,
        toolbox: Toolbox,
        grants: Grants,
        preparation: Preparation,
        conduct: Conduct,
    ) -> None:
        self._turn = turn
        self._choose = choose
        self._route: Route | None = None
        self._offered: tuple[ToolSpec, ...] = ()
        self._toolbox = toolbox
        self._grants = grants
        self._conduct = conduct
        self._calls = Calls(turn, toolbox, self._mode, grants)
        self._preparing = Preparing(turn, preparation)
        self._began_ms = turn.now_ms()

    def _settings(self) -> Settings:
        """As they are now: a person may change them while the turn runs, all but the model."""
        return settings_of({**self._turn.agent.params, **self._turn.params})

    def _mode(self) -> Mode:
        """The message's own mode first, then the conversation's, then the agent's."""
        active = self._turn.state.turn
        return as_mode((active.mode if active else None) or self._settings().mode or self._turn.agent.mode)

    async def events(self) -> AsyncGenerator[KnownEvent, None]:
        turn, calls, spending = self._turn, self._calls, Spending(self._turn)
        steps, answered, reminders = 0, False, 0
        if recalled := await self._preparing.recall():
            yield recalled
        while True:
            posts = {tool.call for _, tool in open_tools(turn.state) if tool.name == CHAT_POST}
            post_failed = False
            async with aclosing(calls.finish_open()) as events:
                async for event in events:
                    post_failed |= isinstance(event, ToolFinished) and event.call in posts and not event.ok
                    yield event
            if calls.forbidden:
                yield self._finish("failed", "forbidden", calls.forbidden)
                return
            if calls.stopped:
                yield self._finish("interrupted", summary=calls.stopped)
                return
            # The agent wrote both calls before it knew that its words reached nobody.
            if turn.agent.strict_inbox and post_failed and calls.ending and calls.ending[0] == "yielded":
                if reminders == REMINDERS:
                    yield self._finish("failed", "protocol_broken", POSTS_FAIL)
                    return
                calls.ending, reminders = None, reminders + 1
                yield self._reminder("post_error", POST_AGAIN)
            if calls.ending:
                outcome, summary = calls.ending
                yield self._finish(outcome, summary=summary)
                return
            # Answered when all that was said before is on disk too.
            delivered = await turn.deliveries()
            if answered and not delivered:
                if self._mode() == "plan" and (plan := self._plan_of_answer()):
                    yield RequestOpened(request=turn.new_id(), kind="plan", title=plan.summary, plan=plan)
                    yield self._finish("plan")
                else:
                    yield self._finish("completed")
                return
            if steps >= self._conduct.step_limit:
                yield self._finish("limited", "limit_reached", _too_many(steps))
                return
            async with aclosing(spending.check()) as events:
                async for event in events:
                    yield event
            if spending.declined:
                yield self._finish("limited", "limit_reached", spending.declined)
                return
            steps += 1
            step = self._step()
            async with aclosing(self._answer(step)) as events:
                async for event in events:
                    yield event
            answered = not step.made_calls and step.reason != "pause"
            if answered and step.reason == "length":
                yield self._finish("limited", "limit_reached", TOO_LONG)
                return
            if answered and step.reason == "refusal":
                yield self._finish("failed", "provider_refused", DECLINED)
                return
            if turn.agent.strict_inbox and step.spoke:
                if reminders == REMINDERS:
                    yield self._finish("failed", "protocol_broken", SPEAKS_PLAINLY)
                    return
                answered, reminders = False, reminders + 1
                yield self._reminder("plain_text_error", USE_THE_TOOL)
            # As at the turn's beginning: from here on only what is on disk counts, whoever wrote it and whenever.
            await turn.committed()
            if measured := self._preparing.measured():
                yield measured

    def _reminder(self, kind: str, text: str) -> MessageAdded:
        """An error for the model of an agent that must speak through its tool, and did not."""
        content = as_content(text)
        return MessageAdded(message=self._turn.new_id(), role="event", hidden=True, event_kind=kind, content=content)

    def _step(self) -> Step:
        return Step(self._turn, self._choose_route(), self._request, self._conduct.retry, self._conduct.chance)

    async def _answer(self, step: Step) -> AsyncGenerator[KnownEvent, None]:
        """One model call on a history that fits; once more, shorter, when the service finds it too long all the same."""
        refused: AgentError | None = None
        while True:
            shortened = False
            async with aclosing(
                self._preparing.events(await self._request_for(self._choose_route().candidate))
            ) as events:
                async for event in events:
                    shortened = shortened or isinstance(event, ContextCompressed)
                    yield event
            if refused and not shortened:
                raise refused
            try:
                async with aclosing(step.events()) as events:
                    async for event in events:
                        yield event
                return
            except AgentError as error:
                if error.details.get("reason") != "context_exceeded" or not self._preparing.tighten():
                    raise
                refused = error

    async def _request_for(self, candidate: Candidate) -> Wanted:
        model = await candidate.current_model()
        # What is weighed here is what is sent, also when an attempt is repeated.
        self._offered = _nameable(self._calls.specs())
        return Wanted(
            provider=candidate.provider,
            model=model,
            window_tokens=candidate.window_of(model),
            tools=self._offered,
            max_tokens=self._settings().max_tokens,
        )

    def _plan_of_answer(self) -> Plan | None:
        """In plan mode an answer is a proposal, whether or not the model called the tool for it."""
        answer = messages_of_turn(self._turn.state, self._turn.id)[-1:]
        blocks = [block for message in answer if message.role == "assistant" for block in message.blocks]
        return plan_of("\n\n".join(block.text for block in blocks if isinstance(block, TextBlock)))

    def _choose_route(self) -> Route:
        """The same for all steps, with what was given up on the way. A model that is chosen meanwhile is the next turn's."""
        if self._route is None:
            settings, agent = self._settings(), self._turn.agent
            self._route = route_of(self._choose, settings.model or agent.model, settings.fallbacks, agent.fallbacks)
        return self._route

    async def _request(self, candidate: Candidate) -> ModelRequest:
        settings = self._settings()
        return ModelRequest(
            model=await candidate.current_model(),
            system=self._preparing.system,
            messages=await self._preparing.messages_for(candidate.provider.identity),
            tools=self._offered,
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
            top_p=settings.top_p,
            frequency_penalty=settings.frequency_penalty,
            presence_penalty=settings.presence_penalty,
            thinking_budget_tokens=settings.thinking_budget,
            reasoning_effort=settings.reasoning_effort,
            written=self._preparing.written,
        )

    def _finish(
        self, outcome: Outcome, code: ErrorCode | None = None, message: str = "", summary: str | None = None
    ) -> TurnFinished:
        return TurnFinished(
            outcome=outcome,
            duration_ms=max(0, self._turn.now_ms() - self._began_ms),
            error=WireError(code=code, message=message) if code else None,
            summary=summary,
        )


REMINDERS = 3
"""A model that has not understood by then will not."""
USE_THE_TOOL = (
    f"Error: plain text reaches nobody here. What you just wrote was not shown. Say it with {CHAT_POST}, then end your "
    "turn with loop_yield_turn."
)
POST_AGAIN = (
    f"Error: a {CHAT_POST} failed, so what it said was not shown, and your turn has not ended. Say it again without the "
    "mistake, then end your turn with loop_yield_turn."
)
SPEAKS_PLAINLY = (
    f"The agent keeps answering in plain text, but may only speak through {CHAT_POST}. Choose a model that uses tools."
)
POSTS_FAIL = (
    f"The agent may only speak through {CHAT_POST}, and its posts keep failing; the calls say why. Say what to change."
)
TOO_LONG = "The answer reached its limit and breaks off. Ask the agent to go on, or raise `max_tokens`."
DECLINED = "The model declined to answer this. Say it differently, or choose another model."


def _nameable(specs: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """A service refuses the whole request for one name that it does not take."""
    for spec in specs:
        if not TOOL_NAME.fullmatch(spec.name):
            logger.warning("tool left out: no model service takes this name", tool=spec.name)
    return tuple(_harmless(spec) for spec in specs if TOOL_NAME.fullmatch(spec.name))


def _harmless(spec: ToolSpec) -> ToolSpec:
    """The same, where its words hold no marks of a chat template: MCP servers and editors word their tools themselves."""
    description, parameters = break_control_tokens(spec.description), break_control_tokens_within(spec.parameters)
    if description == spec.description and parameters is spec.parameters:
        return spec
    return replace(spec, description=description, parameters=parameters)


def _too_many(steps: int) -> str:
    return f"The agent took {steps} steps without coming to an end, which is the limit of a turn. Tell it to go on, or stop it."
