"""Who can answer here, and what runs them: agents and backends, each with what is missing and what to do about it."""

import re
from collections.abc import Sequence
from functools import partial
from textwrap import wrap
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from palaver.client.agents import AgentInfo
from palaver.client.client import BackendInfo, Client, Tried
from palaver.clock import Clock
from palaver.schema.commands import UpdateConversation
from palaver.tui.docks.keyline import Key
from palaver.tui.intents import Act, Order
from palaver.tui.screens.frame import Sheet, fill, selected_id
from palaver.tui.text import words
from palaver.tui.text.safe import one_line, visible
from palaver.tui.text.screens import Agents, Backends

_WRONG_VERSION = re.compile(r"\b(?:too (?:old|new)|version .*(?:needed|required)|wrong version)\b", re.IGNORECASE)

BELOW_COLUMNS = 74
"""What stands below a name keeps its indent on the narrowest screen."""


def _below(text: str) -> str:
    return "".join(f"\n  {line}" for line in wrap(one_line(text, 600), BELOW_COLUMNS, break_on_hyphens=False))


def agent_row(agent: AgentInfo, *, is_current: bool) -> Content:
    trouble = agent.problem or (agent.note if not agent.ready else None) or ("" if agent.trusted else Agents.UNTRUSTED)
    state = words.join(Agents.CURRENT if is_current else None, None if agent.ready else Agents.NOT_READY)
    below = _below(words.in_typographic_quotes(trouble)) if trouble else ""
    described = _below(agent.description) if agent.description else ""
    return Content.assemble(
        ("● " if is_current else "  ", "$live"),
        (visible(agent.name), "bold" if agent.ready else "$ink-soft"),
        (f"  {words.join(visible(agent.backend), visible(agent.model) if agent.model else None)}", "$ink-faint"),
        (f"  {state}" if state else "", "$live" if agent.ready else "$wait"),
        (described, "$ink-soft"),
        (below, "$wait"),
    )


class AgentsScreen(Sheet):
    LABEL = Agents.LABEL
    LEAD = Agents.LEAD
    BINDINGS: ClassVar[list[BindingType]] = [Binding("b", "backends", show=False)]

    def __init__(
        self, client: Client, *, conversation: str = "", current: str | None = None, project: str | None = None
    ) -> None:
        super().__init__()
        self._client = client
        self._conversation = conversation
        self._current = current
        self._project = project
        self._agents: dict[str, AgentInfo] = {}

    def compose_body(self) -> ComposeResult:
        yield OptionList()

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self.read(self._load)

    async def _load(self) -> None:
        self._agents = {agent.id: agent for agent in await self._client.agents(self._project)}
        self._draw()

    def _draw(self) -> None:
        agents = self._agents.values()
        options = [Option(agent_row(agent, is_current=agent.id == self._current), id=agent.id) for agent in agents]
        fill(self.query_one(OptionList), options)
        self.say("" if options else Agents.EMPTY)
        self.retell()

    def keys(self) -> list[Key]:
        choose = [Key("Enter", Agents.CHOOSE, self._choose, writes=True)] if self._conversation else []
        return [*choose, Key("B", Agents.BACKENDS, self.action_backends)]

    @on(OptionList.OptionSelected)
    def _on_select(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._choose()

    def _choose(self) -> None:
        agent = self._agents.get(selected_id(self.query_one(OptionList)) or "")
        if agent is None or not self._conversation or not self.may_write:
            return
        if not agent.ready or agent.problem:
            self.say(agent.problem or agent.note or Agents.NOT_READY, is_bad=True)
            return

        def taken(_: object) -> None:
            self._current = agent.id
            if self.is_attached:
                self._draw()

        command = UpdateConversation(agent=agent.id)
        self.post_message(Order(self._conversation, command, accepted=taken, refused=self.refused))

    def action_backends(self) -> None:
        self.post_message(Act("backends"))
        self.action_close()


def state_of(backend: BackendInfo, tried: Tried | None, *, is_trying: bool) -> str:
    if is_trying:
        return "testing"
    if not backend.installed:
        return "missing"
    if not backend.ready and backend.login == "missing":
        return "login"
    if not backend.ready:
        # Only the server's sentence tells: which versions fit is each backend's own knowledge.
        return "version" if _WRONG_VERSION.search(backend.summary) else "unready"
    return "failing" if tried is not None and not tried.ok else "ready"


def describe_try(tried: Tried) -> str:
    if tried.ok:
        return Backends.answered(words.duration(tried.duration_ms))
    return Backends.failed(tried.error.message if tried.error else Backends.NO_REASON)


class BackendsScreen(Sheet):
    LABEL = Backends.LABEL
    LEAD = Backends.LEAD
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "try", show=False),
        Binding("r", "again", show=False),
        Binding("a", "agents", show=False),
    ]
    WRITING = frozenset({"try"})

    def __init__(self, client: Client, clock: Clock) -> None:
        super().__init__()
        self._client = client
        self._clock = clock
        self._backends: dict[str, BackendInfo] = {}
        self._tried: dict[str, Tried] = {}
        self._trying: str | None = None

    def compose_body(self) -> ComposeResult:
        yield OptionList()

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self.read(self._load)

    async def _load(self) -> None:
        backends = await self._client.backends()
        # The ready ones first; within both groups in the server's order.
        self._backends = {one.name: one for one in sorted(backends, key=lambda one: not one.ready)}
        self.draw()

    def draw(self) -> None:
        options = [Option(self._row(backend), id=backend.name) for backend in self._backends.values()]
        fill(self.query_one(OptionList), options)
        self.say("" if options else Backends.NONE)
        self.retell()

    def _row(self, backend: BackendInfo) -> Content:
        tried = self._tried.get(backend.name)
        state = state_of(backend, tried, is_trying=self._trying == backend.name)
        tone = {"ready": "$good", "failing": "$bad", "testing": "$live"}.get(state, "$wait")
        lines = [
            words.in_typographic_quotes(backend.summary),
            words.in_typographic_quotes(backend.fix) if backend.fix and not backend.ready else "",
            self._last_error(backend),
            describe_try(tried) if tried is not None else "",
        ]
        used = Backends.used_by(", ".join(backend.agents)) if backend.agents else ""
        return Content.assemble(
            (visible(backend.title or backend.name), "bold"),
            (f"  {Backends.STATES[state]}", tone),
            (f"  {visible(used)}" if used else "", "$ink-faint"),
            *((_below(line), "$ink-soft") for line in lines if line),
        )

    def _last_error(self, backend: BackendInfo) -> str:
        error = backend.last_error
        if error is None:
            return ""
        return Backends.last_error(
            words.ago(error.ts, self._clock.now_ms()), words.in_typographic_quotes(error.message)
        )

    def keys(self) -> list[Key]:
        return [
            Key("T", Backends.TRY, self.action_try, writes=True),
            Key("R", Backends.AGAIN, self.action_again),
            Key("A", Backends.AGENTS, self.action_agents),
        ]

    def action_again(self) -> None:
        self.read(self._load)

    def action_agents(self) -> None:
        self.post_message(Act("agents"))
        self.action_close()

    def action_try(self) -> None:
        backend = self._backends.get(selected_id(self.query_one(OptionList)) or "")
        if backend is None or self._trying is not None:
            return
        if not backend.agents:
            self.say(Backends.NO_AGENT)
            return
        self._trying = backend.name
        self.draw()
        self.read(partial(self._try, backend.name, backend.agents), group="try")

    async def _try(self, name: str, agents: Sequence[str]) -> None:
        try:
            self._tried[name] = await self._client.test(agents[0])
        finally:
            self._trying = None
            if self.is_attached:
                self.draw()
