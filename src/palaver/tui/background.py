"""Work in the background of the app. What fails there by a defect is said by the app and takes nothing down."""

from collections.abc import Callable, Coroutine
from typing import Any

from textual.app import App

Work = Callable[[], Coroutine[Any, Any, object]]


def begin(app: App[Any], work: Work, group: str, *, newest: bool = False) -> None:
    """`newest`: ends what runs in this group first.

    Given as a function, not as a coroutine: one that is overtaken before it began would never be awaited.
    """
    app.run_worker(work, group=group, exclusive=newest, exit_on_error=False)  # type: ignore[arg-type]  # Textual 8.2.8
