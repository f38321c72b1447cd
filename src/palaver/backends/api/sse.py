"""Server-sent events from bytes, however the network sliced them.

Used by the endpoint, one parser a response. Only the data of events is given: both wire formats say in their data what an
event is. Lines may be of any length up to the bound on an unfinished event, and may end in LF, CR or CRLF.
"""

from palaver.errors import ProtocolBroken

UNFINISHED_LIMIT_BYTES = 16 << 20
"""An event larger than any provider's longest answer is a fault, and must not eat the memory."""

LINE_BYTES = 16
"""What keeping a line takes beside its bytes."""

_BOM = b"\xef\xbb\xbf"


class SseParser:
    def __init__(self, limit_bytes: int = UNFINISHED_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._line_bytes = 0
        self._data_bytes = 0
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of every event that is complete with this chunk."""
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]  # The second half of a CRLF that the network split.
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        if self._line_bytes + self._data_bytes + len(chunk) > self._limit_bytes:
            raise ProtocolBroken(f"The provider sent an event of more than {self._limit_bytes:,} bytes.")
        # For bytes, only the three line ends of the format end a line here.
        lines = chunk.splitlines()
        rest = b"" if chunk.endswith((b"\n", b"\r")) else lines.pop()
        found: list[bytes] = []
        if lines and self._line:
            lines[0] = b"".join((*self._line, lines[0]))
            self._line.clear()
            self._line_bytes = 0
        for line in lines:
            self._take(line, found)
        if rest:
            self._line.append(rest)
            self._line_bytes += len(rest)
        return found

    def _take(self, line: bytes, found: list[bytes]) -> None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        if line.startswith(b"data:"):
            self._keep(line[6:] if line.startswith(b"data: ") else line[5:])
        elif not line and self._data:
            found.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
            self._data.clear()
            self._data_bytes = 0
        elif line == b"data":
            self._keep(b"")

    def _keep(self, data: bytes) -> None:
        self._data.append(data)
        # An empty line takes room too.
        self._data_bytes += len(data) + LINE_BYTES
