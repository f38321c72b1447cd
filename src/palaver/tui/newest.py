"""Work in the background of a widget, of which only the newest counts: saving a draft, looking for files, reading a list."""

from collections.abc import Callable, Coroutine
from typing import Any

from textual.dom import DOMNode
from textual.worker import Worker, WorkerState

from palaver.tui import row_words
from palaver.tui.intents import Say

Work = Callable[[], Coroutine[Any, Any, None]]


def run_newest(owner: DOMNode, work: Work, group: str) -> None:
    """Ends what runs in this group of the owner and begins this instead.

    Given as a function, not as a coroutine: one that is overtaken before it began would never be awaited.
    """
    owner.run_worker(work, group=group, exclusive=True, exit_on_error=False)  # type: ignore[arg-type]  # Textual 8.2.8


def defect_in(event: Worker.StateChanged) -> Say | None:
    """What to say when work of a widget failed by a defect: it is said, and takes nothing down."""
    if event.state is not WorkerState.ERROR or event.worker.error is None:
        return None
    return Say(row_words.stumbled(type(event.worker.error).__name__), is_trouble=True)
