"""Standard output and standard error of a server that neither block nor raise, whoever reads them or has stopped to.

`palaver serve` runs inside `unblocked_output`: what the server, its libraries and the interpreter itself write there is put
into a bounded queue, and a thread of its own writes it out. A reader that is gone, a full pipe or a full disk costs lines,
never a request. How many were lost is said once there is room again.
"""

import io
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO, cast

QUEUE_BYTES = 1 << 20
"""What may wait for a reader: an hour of an ordinary server, and far more than a burst."""
PIECE_BYTES = 4096
"""What a pipe takes as a whole or not at all: lines of several processes are not cut by each other."""
DRAIN_S = 1.0
"""How long an end waits for a reader that reads."""


class UnblockedStream(io.TextIOBase):
    """A text stream over a descriptor, written by a thread. Never raises, and never waits for the descriptor."""

    def __init__(self, descriptor: int, *, encoding: str = "utf-8", is_terminal: bool = False) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._encoding = encoding
        self._is_terminal = is_terminal
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._lost = 0
        self._is_writing = False
        self._changed = threading.Condition()
        self._writer: threading.Thread | None = None

    # -- a text stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "backslashreplace"

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._is_terminal

    def fileno(self) -> int:
        return self._descriptor

    def flush(self) -> None:
        """Nothing is kept back; and nobody waits for what is on its way."""

    def close(self) -> None:
        """The descriptor is not ours."""

    def write(self, text: str) -> int:
        try:
            data = text.encode(self._encoding, "backslashreplace")
        except (LookupError, UnicodeError):
            data = text.encode("ascii", "backslashreplace")
        with self._changed:
            if self._waiting_bytes + len(data) > QUEUE_BYTES:
                self._lost += 1
            elif data:
                self._waiting.append(data)
                self._waiting_bytes += len(data)
                self._start()
                self._changed.notify_all()
        return len(text)

    def drain(self, timeout_s: float) -> None:
        """Waits until all is written, but no longer than that."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._is_writing, timeout_s)

    # -- the writer

    def _start(self) -> None:
        if self._writer is None:
            # Nobody waits for it at the end: a write that hangs must not keep the program.
            writer = threading.Thread(target=self._write_all, name=f"write to {self._descriptor}", daemon=True)
            try:
                writer.start()
            except RuntimeError:
                return  # No thread can be had, or the interpreter ends. The next write tries again.
            self._writer = writer

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting)
                data = self._take()
                self._is_writing = True
            self._write(data)

    def _take(self) -> bytes:
        """All that waits, and a word about what did not fit in."""
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._waiting_bytes = 0
        if self._lost:
            data += f"({self._lost} more were lost: nobody read them in time)\n".encode()
            self._lost = 0
        return data

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._descriptor, view[:PIECE_BYTES]) :]
            except BlockingIOError:
                # Whoever shares the descriptor made it non-blocking.
                threading.Event().wait(0.05)
            except OSError:
                return  # Nobody reads it any more, or the disk is full. What comes later is tried again.


def claim_standard_streams() -> None:
    """Opens those of 0, 1 and 2 that are closed: else a file or a socket would get the number, and what is written there."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest that is free, which is this one.
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


@contextmanager
def unblocked_output() -> Iterator[None]:
    """Standard output and error as `UnblockedStream`s, where they are real descriptors."""
    before = sys.stdout, sys.stderr
    unblocked = [_unblocked(stream) for stream in before]
    sys.stdout, sys.stderr = (cast(TextIO, new or old) for new, old in zip(unblocked, before, strict=True))
    try:
        yield
    finally:
        for stream in unblocked:
            if stream is not None:
                stream.drain(DRAIN_S)
        sys.stdout, sys.stderr = before


def _unblocked(stream: TextIO) -> UnblockedStream | None:
    try:
        descriptor, is_terminal = stream.fileno(), stream.isatty()
    except (OSError, ValueError):
        return None
    return UnblockedStream(descriptor, encoding=stream.encoding, is_terminal=is_terminal)
