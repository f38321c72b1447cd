"""Questions of an agent: choose one or several, or answer in your own words. Nothing is chosen for you.

Shown by the request dock and by the inbox. Every question is answered before anything is sent; skipping lets the agent go on
without an answer.
"""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from palaver.core.text.approval_text import folded_text
from palaver.core.text.special_blocks import answer_text
from palaver.schema.commands import Answer, ResolveRequest
from palaver.schema.view import Question
from palaver.tui.docks.card import RequestCard
from palaver.tui.docks.choices import Choice, Choices
from palaver.tui.docks.keyline import Key
from palaver.tui.intents import Send
from palaver.tui.keys import Digit
from palaver.tui.text import docks


class OneQuestion(Vertical):
    """A question with its options, and a field for what is none of them."""

    DEFAULT_CSS = """
    OneQuestion {
        height: auto;
        .asked { height: auto; }
        .own { margin: 0 0 0 6; width: 1fr; }
    }
    """

    def __init__(self, question: Question, at: int) -> None:
        super().__init__()
        self.question = question
        self.at = at

    def compose(self) -> ComposeResult:
        question = self.question
        header = f"{folded_text(question.header)}: " if question.header else ""
        many = f"  {docks.Question.MANY}" if question.multi_select else ""
        parts = [(header, "$ink-soft"), (folded_text(question.question), "bold"), (many, "$ink-faint")]
        yield Static(Content.assemble(*parts), classes="asked")
        if question.options:
            options = [
                Choice(*map(folded_text, (option.label, option.description or "", option.preview or "")))
                for option in question.options
            ]
            yield Choices([*options, Choice(docks.Question.OTHER)], many=question.multi_select)
        own = Input(placeholder=docks.Question.OTHER_LABEL, classes="own")
        own.display = not question.options
        yield own

    @property
    def own(self) -> Input:
        return self.query_one(Input)

    @property
    def _chosen(self) -> tuple[int, ...]:
        return self.query_one(Choices).chosen if self.question.options else ()

    @property
    def wants_own(self) -> bool:
        return not self.question.options or len(self.question.options) in self._chosen

    def follow_choice(self, *, is_read: bool) -> None:
        """Whoever chose to write goes on writing. What has not been read is not passed over on the way."""
        self.own.display = self.wants_own
        if self.wants_own and self.question.options and not self.own.value:
            self.own.focus(scroll_visible=is_read)

    @property
    def answer(self) -> Answer | None:
        options = self.question.options
        selected = tuple(options[at].label for at in self._chosen if at < len(options))
        own = self.own.value.strip() if self.wants_own else ""
        if not selected and not own:
            return None
        return Answer(question_index=self.at, selected=selected, custom_text=own or None)

    def focus_first(self) -> None:
        # Its beginning comes into sight, never its end: what stands between has not been read.
        (self.query_one(Choices) if self.question.options else self.own).focus(scroll_visible=False)
        self.scroll_visible(top=True, animate=False)


class QuestionCard(RequestCard):
    DEFAULT_CSS = """
    QuestionCard .body { max-height: 45vh; padding: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s,ctrl+enter", "send", show=False),
        Binding("left", "turn(-1)", show=False),
        Binding("right", "turn(1)", show=False),
    ]

    def compose_body(self) -> ComposeResult:
        for at, question in enumerate(self.asked.request.questions):
            yield OneQuestion(question, at)

    def choices(self) -> list[Key]:
        inside, said = self.has_focus_within, docks.Question
        return [
            Key("Enter" if inside else "Alt+1", said.SEND, self.action_send, self.is_heard),
            Key("Alt+3", said.SKIP, self.action_skip, self.is_heard),
        ]

    def more_choices(self) -> list[Key]:
        return self.turning()

    def answer(self, digit: Digit) -> None:
        """The first key goes into it, to be answered there: an option is never chosen in passing."""
        if not self.is_heard:
            return
        if digit == 3:
            self.action_skip()
        elif self.has_focus_within and digit == 1:
            self.action_send()
        else:
            self._focus_question()

    def on_focus(self) -> None:
        if self.may_answer:
            self._focus_question()

    def _focus_question(self) -> None:
        unanswered = [one for one in self.query(OneQuestion) if one.answer is None]
        for one in (*unanswered, *self.query(OneQuestion))[:1]:
            one.focus_first()

    def on_choices_changed(self, event: Choices.Changed) -> None:
        event.stop()
        self._of(event.choices).follow_choice(is_read=self.reading.may_allow)

    def on_choices_ready(self, event: Choices.Ready) -> None:
        event.stop()
        self._of(event.choices).follow_choice(is_read=self.reading.may_allow)
        if not self._of(event.choices).wants_own or self._of(event.choices).answer:
            self.action_send()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_send()

    def action_send(self) -> None:
        answers = [one.answer for one in self.query(OneQuestion)]
        given = tuple(answer for answer in answers if answer is not None)
        if len(given) < len(answers):
            # The next one that is still open is what remains to be done.
            self.failed = docks.Question.MISSING if len(answers) == 1 else ""
            self._focus_question()
            self.retell()
            return
        self.send(given)

    def send(self, answers: tuple[Answer, ...]) -> None:
        self.reply(ResolveRequest(request=self.asked.request.id, answers=answers))

    def action_skip(self) -> None:
        self.reply(ResolveRequest(request=self.asked.request.id, verdict="deny"))

    @staticmethod
    def _of(choices: Choices) -> OneQuestion:
        parent = choices.parent
        assert isinstance(parent, OneQuestion)
        return parent


class WrittenQuestionCard(QuestionCard):
    """Questions that an agent wrote as its answer. The choice goes to it as the person's next message."""

    class Dismissed(Message):
        """Nobody wants to answer it here; it stays in the transcript."""

        def __init__(self, request: str) -> None:
            super().__init__()
            self.request = request

    def send(self, answers: tuple[Answer, ...]) -> None:
        chosen = [(*answer.selected, *((answer.custom_text,) if answer.custom_text else ())) for answer in answers]
        text = answer_text(self.asked.request.questions, chosen)
        if self.is_read_to_its_end():
            self.post(Send(self.asked.conversation, text, refused=self.refused))

    def action_skip(self) -> None:
        if self.is_heard:
            self.post_message(self.Dismissed(self.asked.request.id))
