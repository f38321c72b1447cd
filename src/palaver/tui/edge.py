"""The row above all others: the start of the conversation, or that there is more above and how loading it stands.

Held by the conversation screen. Pure but for what it remembers.
"""

from palaver.schema.view import State
from palaver.tui.rows import EdgeRow


class Edge:
    def __init__(self) -> None:
        self._row: EdgeRow | None = None

    def forget(self) -> None:
        self._row = None

    def failed(self) -> None:
        """Older messages could not be loaded."""
        self._row = EdgeRow(key="edge", seq=0, ts=0, state="failed")

    def row(self, state: State) -> EdgeRow | None:
        """The same row as long as it says the same; a failure is said until the beginning is reached, or it is forgotten."""
        if not state.seq:
            return None
        known = self._row
        if known is None or (known.state == "start") != (state.offset == 0):
            self._row = EdgeRow(key="edge", seq=0, ts=0, state="more" if state.offset else "start")
        return self._row
