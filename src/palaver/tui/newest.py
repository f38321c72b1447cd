"""Work in the background of a widget, of which only the newest counts: saving a draft, looking for files, reading a list."""

from collections.abc import Callable, Coroutine
from typing import Any

from textual.dom import DOMNode

Work = Callable[[], Coroutine[Any, Any, None]]


def run_newest(owner: DOMNode, work: Work, group: str) -> None:
    """Ends what runs in this group of the owner and begins this instead.

    Given as a function, not as a coroutine: one that is overtaken before it began would never be awaited.
    """
    owner.run_worker(work, group=group, exclusive=True)  # type: ignore[arg-type]  # Textual 8.2.8 knows no None result
