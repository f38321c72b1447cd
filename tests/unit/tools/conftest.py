"""A project folder and a place to run tools in, which remembers what was said and spilled."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from palaver.schema.base import BlobRef
from palaver.tools.base import Proposal, Stream, Tool, ToolResult, Workplace

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "SERVICE_TOKEN": "correct-horse-battery"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


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


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The project folder, with a neighbour that no tool may touch."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    project = tmp_path / "project"
    project.mkdir()
    return project


@pytest.fixture
def workshop(root: Path) -> Workshop:
    return Workshop(root)


@pytest.fixture
def fill(root: Path) -> Callable[[dict[str, str]], None]:
    """Write files beneath the root."""

    def fill(files: dict[str, str]) -> None:
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)

    return fill
