"""Attacks on a running server and its parts. Those on commands run once for each sandbox level that this machine has.

`level` is that level: a test says what it expects at each (`tests/levels.py` has a real sandbox for it; `serving` and
`at_work` take it as `sandbox=`). Without the fixture a test runs once, with the strongest level of the run. `make attacks`
runs the folder as root and as an ordinary user, with each level alone, and prints the table.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.levels import Level, levels_of_run, require


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=levels_of_run())
def level(request: pytest.FixtureRequest) -> Level:
    found: Level = request.param
    require(found)
    return found


@pytest.fixture
def outside_tmp() -> Iterator[Path]:
    """A folder that is in no temporary folder, which sandboxes replace by one of their own."""
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix=".palaver-test-") as folder:
        yield Path(folder)
