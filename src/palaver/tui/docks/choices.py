"""A list to choose from, one or several, by arrows, digits or a click. Used by the cards of requests and by screens.

Nothing is chosen by moving: a choice is made with Space, its digit, or Enter, which also says that the answer is ready.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from textwrap import wrap

from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widgets import Static

from palaver.tui.text.safe import visible

BELOW_COLUMNS = 66
"""What stands below a choice keeps its indent on the narrowest screen."""


@dataclass(frozen=True, slots=True)
class Choice:
    label: str
    more: str = ""
    """A quieter word after it, or a line below it."""
    below: str = ""


class Choices(Static, can_focus=True):
    DEFAULT_CSS = """
    Choices { height: auto; color: $ink; }
    """
    BINDINGS = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("space", "pick", show=False),
        Binding("enter", "ready", show=False),
        *(Binding(str(digit), f"pick_at({digit - 1})", show=False) for digit in range(1, 10)),
    ]

    class Changed(Message):
        """Another choice is made."""

        def __init__(self, choices: "Choices") -> None:
            super().__init__()
            self.choices = choices

        @property
        def control(self) -> "Choices":
            return self.choices

    class Ready(Changed):
        """Enter: the answer is what is chosen."""

    def __init__(
        self,
        choices: Sequence[Choice],
        *,
        many: bool = False,
        chosen: Collection[int] = (),
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._choices = tuple(choices)
        self._many = many
        self._chosen = set(chosen)
        self._at = min(self._chosen, default=0)

    @property
    def chosen(self) -> tuple[int, ...]:
        return tuple(sorted(self._chosen))

    def choose(self, *places: int) -> None:
        self._chosen = set(places)
        self.refresh()

    def render(self) -> Content:
        return Content("\n").join(
            self._line(at, choice).stylize(Style.from_meta({"choice": at})) for at, choice in enumerate(self._choices)
        )

    def _line(self, at: int, choice: Choice) -> Content:
        here = at == self._at and self.has_focus
        empty, full = ("[ ]", "[x]") if self._many else ("( )", "(•)")
        mark = full if at in self._chosen else empty
        number = f"{at + 1} " if at < 9 and len(self._choices) > 1 else ""
        parts: list[tuple[str, str]] = [
            ("▸ " if here else "  ", "bold $live"),
            (f"{number}{mark} ", "$ink-faint" if not here else "bold $live"),
            (visible(choice.label), "bold" if here or at in self._chosen else ""),
        ]
        if choice.more:
            parts.append((f"  {visible(choice.more)}", "$ink-soft"))
        if choice.below:
            indent = " " * (2 + len(number) + 4)
            lines = [
                part
                for line in visible(choice.below).split("\n")
                for part in wrap(line, BELOW_COLUMNS, break_on_hyphens=False) or [""]
            ]
            parts += [(f"\n{indent}{line}", "$ink-soft") for line in lines]
        return Content.assemble(*parts)

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        at = event.style.meta.get("choice")
        if isinstance(at, int):
            self._pick(at)

    def action_move(self, by: int) -> None:
        self._at = max(0, min(len(self._choices) - 1, self._at + by))
        self.refresh()

    def action_pick(self) -> None:
        self._pick(self._at)

    def action_pick_at(self, at: int) -> None:
        if at < len(self._choices):
            self._pick(at)

    def action_ready(self) -> None:
        # Enter on something that is not chosen means it; where several may be, only when nothing is.
        if self._at not in self._chosen and not (self._many and self._chosen):
            self._pick(self._at)
        self.post_message(self.Ready(self))

    def _pick(self, at: int) -> None:
        self._at = at
        if not self._many:
            self._chosen = {at}
        else:
            self._chosen ^= {at}
        self.refresh()
        self.post_message(self.Changed(self))
