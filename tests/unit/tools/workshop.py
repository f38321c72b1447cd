"""A place to run tools in, which remembers what was said and spilled."""

import contextlib
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palaver.schema.base import BlobRef
from palaver.tools.base import Proposal, Stream, Tool, ToolResult, Workplace

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "SERVICE_TOKEN": "correct-horse-battery"}


@dataclass
class Workshop:
    """A place to run tools in, and what came of it."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: dict(ENVIRONMENT))
    said: list[tuple[str, Stream]] = field(default_factory=list[tuple[str, Stream]])
    blobs: list[bytes] = field(default_factory=list[bytes])

    @property
    def place(self) -> Workplace:
        return Workplace(root=self.root, output=self._output, spill=self._spill, environment=self.environment)

    async def run(self, tool: Tool, **arguments: Any) -> ToolResult:
        return await tool.run(arguments, self.place)

    def propose(self, tool: Tool, **arguments: Any) -> Proposal:
        proposal = tool.propose(arguments, self.root)
        assert isinstance(proposal, Proposal), proposal
        return proposal

    async def _output(self, text: str, stream: Stream) -> None:
        self.said.append((text, stream))

    async def _spill(self, data: bytes, mime: str) -> BlobRef:
        self.blobs.append(data)
        return BlobRef(id=hashlib.sha256(data).hexdigest(), size=len(data), mime=mime)


def processes_with(tag: str) -> list[str]:
    """The command lines of living processes that hold a tag."""
    found: list[str] = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            line = (process / "cmdline").read_bytes().decode(errors="replace")
            if tag in line:
                found.append(line)
    return found
