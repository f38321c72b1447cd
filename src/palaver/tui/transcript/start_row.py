"""The row above all others: the start of the conversation, or that there is more above and how loading it stands.

Held by the conversation screen. Pure but for what it remembers.
"""

from typing import Literal

from palaver.schema.view import State
from palaver.tui.transcript.rows import EdgeRow

Above = Literal["more", "loading", "failed"]


class Edge:
    def __init__(self) -> None:
        self._above: Above = "more"
        self._row: EdgeRow | None = None

    def forget(self) -> None:
        """Another conversation is shown."""
        self._above, self._row = "more", None

    def say(self, above: Above) -> None:
        """How loading what is above stands."""
        self._above = above

    def row(self, state: State) -> EdgeRow | None:
        """The same row as long as it says the same. Where the beginning is at hand, nothing is above."""
        if not state.seq:
            return None
        said = self._above if state.offset else "start"
        if self._row is None or self._row.state != said:
            self._row = EdgeRow(key="edge", seq=0, ts=0, state=said)
        return self._row
