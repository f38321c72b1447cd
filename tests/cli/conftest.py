"""One start of a program serves all the scenarios of a file, one after another, as turns of one conversation.

Starting a program is what costs: opencode takes three seconds of a core for it and a twentieth of one for a turn. So a scenario
takes the stand as the one before it left it. After a failure the next one begins a conversation with a program of its own, so
that one defect fails one test.
"""

from collections.abc import AsyncIterator, Generator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.programs import Setting
from tests.cli.rig import FAILED, Stand, failed, needed, stand


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture(scope="module")
async def program(
    request: pytest.FixtureRequest, anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Setting]:
    setting = request.param
    assert isinstance(setting, Setting)
    needed(setting.subject)
    if setting.alone:
        yield setting
        return
    async with stand(setting.subject, tmp_path_factory.mktemp(setting.subject.name), goes_on=True) as shared:
        yield replace(setting, shared=shared)


@pytest.fixture
async def at_work(request: pytest.FixtureRequest, program: Setting, tmp_path: Path) -> AsyncIterator[Stand]:
    """The program that `every_program` and its like name, in the state in which a scenario may have it."""
    if program.shared is None:
        async with stand(program.subject, tmp_path) as own:
            yield own
        return
    shared = program.shared
    yield shared
    shared.place.service.script.clear()
    if failed(request):
        shared.forget()
        await shared.restart()
    elif shared.is_set_otherwise:
        shared.forget()
