"""Work in the background of the app, of a screen or of a widget. What fails there by a defect is said and takes nothing down."""

from collections.abc import Callable, Coroutine
from typing import Any

from textual.dom import DOMNode
from textual.worker import Worker, WorkerState

from palaver.tui.intents import Say
from palaver.tui.text import rows

Work = Callable[[], Coroutine[Any, Any, object]]


def begin(owner: DOMNode, work: Work, group: str, *, newest: bool = False) -> None:
    """`newest`: ends what runs in this group of the owner first. It ends with its owner.

    Given as a function, not as a coroutine: one that is overtaken before it began would never be awaited.
    """
    owner.run_worker(work, group=group, exclusive=newest, exit_on_error=False)  # type: ignore[arg-type]  # Textual 8.2.8


def defect_in(event: Worker.StateChanged) -> Say | None:
    """What to say when work failed by a defect."""
    if event.state is not WorkerState.ERROR or event.worker.error is None:
        return None
    return Say(rows.stumbled(type(event.worker.error).__name__), is_trouble=True)
