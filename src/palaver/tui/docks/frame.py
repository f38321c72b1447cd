"""Everything between the transcript and the bottom of the screen, in one widget: the main screen mounts a `Docks` and tells it.

    docks.show(state, below)          after every change of the view; `below`: what subagents ask (`client.requests()`)
    docks.show_connection(connection) whenever that changes; mount a `ConnectionLine` at the top edge and tell it too
    docks.show_settings(…)            once it is known which settings of the folder are off
    docks.introduce(people)           once it is known who is who
    docks.answer(1 | 2 | 3)           Alt+1/2/3 and F7/F8/F9: put `keys.ANSWER_BINDINGS` on the screen, priority and all
    docks.escape()                    True when Esc closed something here; else it stops the agent: then `docks.stopping()`
    docks.leave()                     before another conversation is shown, or none: what the server is to be told by then
    docks.focus_went(to)              whenever it went somewhere: the last line names the keys that are heard there
    docks.tell_way()                  when a region came or left that is not in the docks: the queue says how to come to it
    docks.focus_composer()            where the focus goes when there is nowhere better
    next_region(screen, by)           F6 and Shift+F6: through every visible widget with the class `region`, the docks first

The order above the prompt is approval, question, plan, background processes, queue, settings that are off. Nothing here takes
the focus by itself.
"""

from collections.abc import Sequence

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from palaver.client.client import WaitingRequest
from palaver.clock import Clock
from palaver.schema.view import State
from palaver.tui.connection import Connection
from palaver.tui.docks.activity import ActivityLine
from palaver.tui.docks.card import RequestCard
from palaver.tui.docks.completion import CommandSource, FileSource
from palaver.tui.docks.composer import Composer, Elsewhere
from palaver.tui.docks.keyline import offer_keys
from palaver.tui.docks.plan import PlanLine
from palaver.tui.docks.processes import ProcessStrip
from palaver.tui.docks.prompt import Prompt
from palaver.tui.docks.queue import QueueStrip
from palaver.tui.docks.requests import RequestDock
from palaver.tui.docks.strip import Strip
from palaver.tui.docks.trust import SettingsOff, TrustStrip
from palaver.tui.intents import Order
from palaver.tui.keys import Digit
from palaver.tui.people import People


class Docks(Vertical):
    DEFAULT_CSS = """
    Docks { height: auto; max-height: 80vh; }
    """

    def __init__(self, clock: Clock, commands: CommandSource | None = None, files: FileSource | None = None) -> None:
        super().__init__()
        self._clock = clock
        self._commands = commands
        self._files = files
        self.is_past = False
        self._told: tuple[State, Sequence[WaitingRequest]] | None = None
        self._connection: Connection | None = None
        self._people = People()

    def compose(self) -> ComposeResult:
        yield RequestDock(self._clock)
        yield PlanLine()
        yield ProcessStrip(self._clock)
        yield QueueStrip(self._clock, steps_to)
        yield TrustStrip()
        yield ActivityLine(self._clock)
        yield Composer(self._clock, self._commands, self._files)

    def on_mount(self) -> None:
        if self._told is not None:
            self.show(*self._told)
        if self._connection is not None:
            self.show_connection(self._connection)

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    def show(self, state: State, below: Sequence[WaitingRequest] = ()) -> None:
        self._told = (state, below)
        if not self.query(Composer):
            return
        self.query_one(PlanLine).show(state)
        if self.is_past:
            # An earlier moment is looked at: what waited or ran then can neither be answered nor stopped now.
            state, below = replace(state, requests=(), queue=(), processes=(), turn=None), ()
        # Nor is a question of that moment, in the words of the agent, the last word any more.
        self.query_one(RequestDock).show(replace(state, messages=()) if self.is_past else state, below)
        self.query_one(ProcessStrip).show(state)
        self.query_one(QueueStrip).show(state, self.composer.edited_item)
        self.tell_way()
        self.query_one(ActivityLine).show(state, waits_below=bool(below))
        self.composer.show(state)

    def show_settings(self, conversation: str, off: SettingsOff | None) -> None:
        """Which settings of the folder are off."""
        self.query_one(TrustStrip).show(conversation, off)
        self.tell_way()

    def keep_settings_off(self) -> None:
        strip = self.query_one(TrustStrip)
        if strip.item is not None:
            strip.keep_off(strip.item)

    def show_connection(self, connection: Connection) -> None:
        self._connection = connection
        if self.query(Composer):
            self.query_one(ActivityLine).connected(connection.is_open)
            self.composer.show_connection(connection)

    def introduce(self, people: People) -> None:
        self._people = self.query_one(RequestDock).people = people
        self.query_one(QueueStrip).people = people
        for strip in self.query(Strip).results(Strip):
            strip.may_write = people.may_write
            strip.draw()
        if self._told is not None:
            self.show(*self._told)

    def answer(self, digit: Digit) -> None:
        self.query_one(RequestDock).answer(digit)

    def stopping(self) -> None:
        self.query_one(ActivityLine).stopping()

    def leave(self) -> Order | None:
        return self.composer.leave()

    def escape(self) -> bool:
        return self.composer.escape()

    def open_plan(self) -> None:
        line = self.query_one(PlanLine)
        if line.display:
            line.action_open_or_close()

    def focus_processes(self) -> None:
        strip = self.query_one(ProcessStrip)
        if strip.display:
            strip.focus()

    def focus_queue(self) -> None:
        strip = self.query_one(QueueStrip)
        if strip.display:
            strip.focus()

    def focus_went(self, to: Widget | None) -> None:
        region = next((node for node in to.ancestors_with_self if node.has_class("region")), None) if to else None
        if region is None or isinstance(region, Prompt):
            self.composer.elsewhere = None
        else:
            # What a card or a strip hears stands in it, and Esc leaves it.
            leaves = isinstance(region, RequestCard | Strip)
            keys = offer_keys(getattr(region, "KEYS", ()), may_write=self._people.may_write)
            self.composer.elsewhere = Elsewhere(tuple(keys), leaves=leaves, is_written=isinstance(to, Input))
        self.composer.retell()
        self.tell_way()

    def tell_way(self) -> None:
        """A region came or left somewhere, or the focus went: the queue is another number of steps away."""
        self.query_one(QueueStrip).tell_way()

    def focus_composer(self) -> None:
        self.composer.take_focus()

    def on_request_card_left(self, event: RequestCard.Left) -> None:
        event.stop()
        self.focus_composer()

    def on_request_card_sent(self, event: RequestCard.Sent) -> None:
        # Whoever answered from inside would be left nowhere once the card is gone.
        event.stop()
        if event.card.has_focus_within:
            self.focus_composer()

    def on_strip_left(self, event: Strip.Left) -> None:
        event.stop()
        self.focus_composer()

    def on_queue_strip_edit(self, event: QueueStrip.Edit) -> None:
        event.stop()
        self.composer.begin_edit(event.item)

    def on_composer_edit_last(self, event: Composer.EditLast) -> None:
        event.stop()
        self.query_one(QueueStrip).edit_last()

    def on_composer_editing(self, event: Composer.Editing) -> None:
        # What is edited is held by that alone, which the log need not have said anew.
        event.stop()
        if self._told is not None:
            self.show(*self._told)


def next_region(screen: Screen[object], by: int = 1) -> None:
    """Moves the focus to the next part of the screen: from the prompt to what waits above it, then to all else."""
    regions = _regions(screen)
    if not regions:
        return
    at = _at(regions)
    regions[0 if at is None else (at + by) % len(regions)].focus()


def steps_to(region: Widget) -> int:
    """How often F6 is pressed to come there from where the focus is; 0: one is there, or it is not in sight."""
    regions = _regions(region.screen)
    at = _at(regions)
    return (regions.index(region) - (-1 if at is None else at)) % len(regions) if region in regions else 0


def _regions(screen: Screen[object]) -> list[Widget]:
    """As F6 goes through them."""
    return sorted((one for one in screen.query(".region") if _is_in_sight(one)), key=_nearness)


def _at(regions: Sequence[Widget]) -> int | None:
    return next((at for at, region in enumerate(regions) if region.has_focus_within), None)


def _nearness(widget: Widget) -> int:
    """What waits for an answer is one key away from where one writes; the same within keeps its reading order."""
    match widget:
        case RequestCard():
            return 0
        case PlanLine() | Strip():
            return 1
        case Prompt():
            return 3
        case _:
            return 2


def _is_in_sight(widget: Widget) -> bool:
    return widget.focusable and all(node.display for node in widget.ancestors_with_self if isinstance(node, Widget))
