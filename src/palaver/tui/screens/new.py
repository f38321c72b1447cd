"""A new conversation: who answers, in which folder, in which mode, and the first message. Opened by Ctrl+N.

Reads agents and folders through the client; beginning is the app's, and a refusal (a folder that is not there) is said here.
"""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static, TextArea

from palaver.client.agents import AgentInfo
from palaver.client.client import Client
from palaver.errors import PalaverError
from palaver.schema.commands import CreateConversation
from palaver.tui.docks.choices import Choice, Choices
from palaver.tui.docks.keyline import Key
from palaver.tui.docks.prompt import STEER, Prompt
from palaver.tui.intents import Begin
from palaver.tui.screens.frame import Sheet
from palaver.tui.text import words
from palaver.tui.text.safe import prose
from palaver.tui.text.screens import Fresh
from palaver.tui.welcome import first_agent

MODES = ("ask", "plan", "accept_edits", "auto")
"""Full access is given to a conversation that is looked at, with a confirmation."""


class NewConversation(Sheet):
    DEFAULT_CSS = """
    NewConversation {
        .form { height: 1fr; scrollbar-size-vertical: 1; }
        .label { height: 1; color: $ink-faint; text-style: bold; margin-top: 1; }
        #agents { height: auto; }
        Prompt {
            height: auto; min-height: 2; max-height: 6; border: none; padding: 0 1; background: $panel-strong;
            &:focus { border: none; }
        }
    }
    """
    LABEL = Fresh.LABEL
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s,ctrl+enter", "begin", show=False, priority=True)]

    def __init__(self, client: Client, *, project: str = "", agent: str | None = None, message: str = "") -> None:
        super().__init__()
        self._client = client
        self._project = project
        self._wanted = agent
        self._message = message
        self._agents: list[AgentInfo] = []

    def compose_body(self) -> ComposeResult:
        with VerticalScroll(classes="form", can_focus=False):
            yield Prompt(
                prose(self._message),
                placeholder=Fresh.MESSAGE,
                compact=True,
                highlight_cursor_line=False,
                id="message",
            )
            yield Static(Content(Fresh.AGENT), classes="label")
            yield Vertical(id="agents")
            yield Static(Content(Fresh.FOLDER), classes="label")
            yield Input(self._project, placeholder=Fresh.FOLDER_HINT, id="folder")
            yield Static(Content(Fresh.MODE), classes="label")
            yield Choices(
                [Choice(words.Modes.NAMES[mode], words.Modes.HINTS[mode]) for mode in MODES], chosen=[0], id="mode"
            )

    def on_mount(self) -> None:
        field = self.query_one("#message", Prompt)
        field.pressed, field.pasted = self._on_press, self._on_paste
        field.focus()
        self.read(self._load)

    async def _load(self) -> None:
        try:
            self._agents = await self._client.agents(self._project or None)
            last = self._wanted or await self._client.last_used_agent(self._project or None)
            folders = [known.project for known in await self._client.projects() if known.exists]
        except PalaverError as failure:
            self.say(f"{Fresh.FAILED} {failure.message}", is_bad=True)
            return
        self.query_one("#folder", Input).suggester = SuggestFromList(folders)
        first = first_agent(self._agents, last)
        chosen = [self._agents.index(first)] if first is not None else []
        choices = [_choice(agent) for agent in self._agents]
        await self.query_one("#agents").remove_children()
        await self.query_one("#agents").mount(Choices(choices, chosen=chosen))
        self.say("" if first else Fresh.NO_AGENT, is_bad=first is None)

    def keys(self) -> list[Key]:
        return [Key("Enter", Fresh.BEGIN, self.action_begin), Key("Tab", Fresh.NEXT, self.focus_next)]

    def _on_press(self, key: str) -> None:
        if key == "enter" or key in STEER:
            self.action_begin()

    def _on_paste(self, text: str) -> None:
        field = self.query_one("#message", Prompt)
        field.replace(prose(text.replace("\r\n", "\n").replace("\r", "\n")), *field.selection)

    @on(Input.Submitted)
    @on(Choices.Ready)
    def _on_submit(self, event: Input.Submitted | Choices.Ready) -> None:
        event.stop()
        self.action_begin()

    def action_begin(self) -> None:
        agents = self.query("#agents Choices").results(Choices)
        agent = next((self._agents[chosen.chosen[0]] for chosen in agents if chosen.chosen), None)
        if agent is not None and (agent.problem or not agent.ready):
            self.say(agent.problem or agent.note or Fresh.NOT_READY, is_bad=True)
            return
        mode = MODES[self.query_one("#mode", Choices).chosen[0]]
        message = self.query_one("#message", TextArea).text.strip()
        body = CreateConversation(
            agent=agent.id if agent else None,
            project=self.query_one("#folder", Input).value.strip() or None,
            params={"mode": mode} if mode != "ask" else {},
            message=message or None,
        )
        self.say(Fresh.CREATING)
        self.post_message(Begin(body, refused=self.refused))


def _choice(agent: AgentInfo) -> Choice:
    trouble = agent.problem or (agent.note if not agent.ready else None)
    more = words.join(agent.backend, agent.model, None if agent.ready else Fresh.NOT_READY)
    return Choice(agent.name, more, words.in_typographic_quotes(trouble) if trouble else "")
