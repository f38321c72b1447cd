"""The pictures of the documentation: every shot of the gallery is played and taken. `make pictures` runs this, and names the
file: it is no test of the suite, the states themselves have theirs.
"""

import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.browser.gallery import film
from tests.browser.gallery.album import ALBUM
from tests.browser.gallery.harbour import Harbour, harbour_serving, make_agents, make_past, make_projects
from tests.browser.gallery.terminal import TERMINAL_SHOTS, photographed, terminal
from tests.browser.looks import picture
from tests.browser.visitor import PHONE, Visitors
from tests.provider.server import ScriptedProvider, serving

HARBOUR = Path(tempfile.gettempdir()) / "harbour"
"""Always the same: it is in the pictures."""


MODEL_PORT = 8123
"""Where the model listens is in the pictures too."""


@pytest.fixture(scope="module")
async def past(tmp_path_factory: pytest.TempPathFactory, chromium: object) -> AsyncIterator[Path]:
    """A data directory with a week in it, for every shot to begin with."""
    data = tmp_path_factory.mktemp("past") / "data"
    make_agents(data)
    make_projects(HARBOUR)
    async with serving(ScriptedProvider(obedient=False), MODEL_PORT) as provider:
        nobody = Visitors(chromium)  # type: ignore[arg-type]
        async with harbour_serving(HARBOUR, data, provider, nobody) as harbour:
            await make_past(harbour)
    yield data
    shutil.rmtree(HARBOUR, ignore_errors=True)


@pytest.fixture
async def harbour(past: Path, tmp_path: Path, visitors: Visitors) -> AsyncIterator[Harbour]:
    make_projects(HARBOUR)
    shutil.copytree(past, tmp_path / "data")
    async with (
        serving(ScriptedProvider(obedient=False), MODEL_PORT) as provider,
        harbour_serving(HARBOUR, tmp_path / "data", provider, visitors) as harbour,
    ):
        yield harbour
        await visitors.close()


@pytest.mark.parametrize("name", ALBUM)
async def test_shot_is_taken(harbour: Harbour, name: str) -> None:
    shot = ALBUM[name]
    harbour.pixels = shot.pixels
    visitor = await shot.play(harbour)
    await visitor.page.evaluate("document.fonts.ready")
    for look in shot.looks:
        if look == "phone":
            await visitor.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
            if shot.on_phone is not None:
                await shot.on_phone(visitor)
        await picture(visitor.page, f"{name}-{look}", "dark" if look == "dark" else "light")


@pytest.mark.parametrize("name", TERMINAL_SHOTS)
async def test_terminal_is_taken(harbour: Harbour, name: str) -> None:
    shot = TERMINAL_SHOTS[name]
    async with terminal(harbour, shot) as opened:
        await shot.play(harbour, opened)
        await opened.steady()
        await photographed(harbour, opened.svg, name)


async def test_film_is_taken(harbour: Harbour) -> None:
    await film.played(harbour)
