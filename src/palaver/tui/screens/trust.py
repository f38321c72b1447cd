"""Review of a folder's settings for an agent program: all of them as text, then trust, keep off, or revoke.

What is trusted is what was shown: the hash came with the text, and the server refuses it when the files have changed since.
The page's `view/trust/TrustReview.tsx`.
"""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from palaver.client.client import Client
from palaver.client.projects import ProgramReview
from palaver.client.settings_review import review_lines
from palaver.schema.view import State
from palaver.tui.docks.keyline import Key
from palaver.tui.docks.reader import Reader
from palaver.tui.intents import KeepSettingsOff, TrustSettings
from palaver.tui.screens.frame import Sheet
from palaver.tui.text.screens import Trust, WholeText


class TrustScreen(Sheet):
    DEFAULT_CSS = """
    TrustScreen .files { height: 1fr; }
    TrustScreen Reader { height: 1fr; scrollbar-size-vertical: 1; border: round $line; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "trust", show=False),
        Binding("k", "keep_off", show=False),
        Binding("x", "revoke", show=False),
        Binding("down", "scroll_files(1)", show=False),
        Binding("up", "scroll_files(-1)", show=False),
        Binding("pagedown,space", "page_files(1)", show=False),
        Binding("pageup", "page_files(-1)", show=False),
    ]
    LABEL = Trust.LABEL
    WRITING = frozenset({"trust", "keep_off", "revoke"})

    def __init__(self, client: Client, state: State) -> None:
        super().__init__()
        self._client = client
        self._project = state.project or ""
        self._agent = state.agent
        self._review: ProgramReview | None = None

    def compose_body(self) -> ComposeResult:
        yield Vertical(classes="files")

    def on_mount(self) -> None:
        self.say(Trust.LOADING)
        self.read(self._load)

    async def _load(self) -> None:
        known = await self._client.program_settings(self._project, self._agent)
        if not known:
            self.say(Trust.NO_PROGRAM)
            return
        review = await self._client.review_program(self._project, known[0].program)
        settings, self._review = review.settings, review
        self.title_is(Trust.heading(settings.name, self._project))
        files = self.query_one(".files", Vertical)
        await files.remove_children()
        if not review.files:
            self._review = None
            self.say(Trust.NOTHING)
        else:
            lead = self.query_one(".lead", Static)
            lead.update(Content(Trust.lead(settings.name)))
            lead.display = True
            await files.mount(Reader(review_lines(review.files)))
            self.say(Trust.TRUSTED if settings.trusted else Trust.TOO_LARGE if settings.hash is None else Trust.UNREAD)
        self.retell()

    def on_reader_moved(self, event: Reader.Moved) -> None:
        event.stop()
        if self._can_trust and self._is_read:
            self.say("")
        self.retell()

    # -- deciding

    @property
    def _can_trust(self) -> bool:
        settings = self._review.settings if self._review else None
        return settings is not None and not settings.trusted and settings.hash is not None

    @property
    def _is_read(self) -> bool:
        return any(reader.reading.may_allow for reader in self.query(Reader))

    def keys(self) -> list[Key]:
        if self._review is None:
            return []
        scroll = Key("PgDn", WholeText.SCROLL)
        if self._review.settings.trusted:
            return [scroll, Key("X", Trust.REVOKE, self.action_revoke)]
        trust = [Key("T", Trust.TRUST, self.action_trust)] if self._can_trust and self._is_read else []
        return [scroll, *trust, Key("K", Trust.KEEP_OFF, self.action_keep_off)]

    def action_trust(self) -> None:
        review = self._review
        if review is None or not self._can_trust:
            return
        if not self._is_read:
            self.say(Trust.UNREAD, is_bad=True)
            return
        self._send(review, review.settings.hash)

    def action_revoke(self) -> None:
        if self._review is not None and self._review.settings.trusted:
            self._send(self._review, None)

    def _send(self, review: ProgramReview, hash: str | None) -> None:
        def accepted() -> None:
            if self.is_attached:
                self.action_close()

        def refused(why: str) -> None:
            # What is there now is another text to be read.
            if self.is_attached:
                self.read(self._load)
            self.refused(why)

        intent = TrustSettings(self._project, review.settings.program, hash, accepted=accepted, refused=refused)
        self.post_message(intent)

    def action_keep_off(self) -> None:
        if self._review is not None and not self._review.settings.trusted:
            self.post_message(KeepSettingsOff())
            self.action_close()

    # -- reading

    def action_scroll_files(self, by: int) -> None:
        for reader in self.query(Reader):
            reader.scroll_relative(y=by, animate=False)

    def action_page_files(self, by: int) -> None:
        for reader in self.query(Reader):
            reader.scroll_relative(y=by * max(1, reader.size.height - 1), animate=False)
