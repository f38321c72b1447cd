"""Every screen: nothing axe would object to in either colour scheme, and no pushing sideways on a phone."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tests.browser.looks import SCHEMES, axe_findings, fits, picture
from tests.browser.screens import SCREENS, Stage
from tests.browser.served import Palaver
from tests.browser.visitor import DESKTOP, PHONE, Visitors


@pytest.fixture
async def stage(visitors: Visitors, palaver: Palaver) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        yield Stage(visitors, palaver, stack, DESKTOP)


@pytest.mark.parametrize("name", SCREENS)
async def test_screen_is_clean_for_axe_in_both_colour_schemes(stage: Stage, name: str) -> None:
    visitor = await SCREENS[name](stage)
    for scheme in SCHEMES:
        findings = await axe_findings(visitor.page, scheme)
        await picture(visitor.page, f"screens/{name}-{scheme}", scheme)
        assert not findings, f"{name}, {scheme}:\n" + "\n".join(findings)


@pytest.mark.parametrize("name", SCREENS)
async def test_screen_fits_a_phone(stage: Stage, name: str) -> None:
    stage.size = PHONE
    visitor = await SCREENS[name](stage)
    await picture(visitor.page, f"screens/{name}-phone")
    await fits(visitor.page)
    findings = await axe_findings(visitor.page, "light")
    assert not findings, f"{name}, on a phone:\n" + "\n".join(findings)
