"""A project folder with a neighbour, and a place to run tools in it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.tools.workshop import Workshop


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


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
