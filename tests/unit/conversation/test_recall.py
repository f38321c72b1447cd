"""A turn looks into earlier conversations of its project."""

from collections.abc import AsyncIterator

import pytest

from palaver.backends.base import Turn
from palaver.schema.commands import CreateConversation, SendMessage
from palaver.schema.events import KnownEvent, TurnFinished
from palaver.tools.base import Passage
from tests.unit.conversation.house import open_house

pytestmark = pytest.mark.anyio


async def test_a_turn_finds_what_was_said_in_its_project_and_not_here() -> None:
    found: list[Passage] = []

    async def looks(turn: Turn) -> AsyncIterator[KnownEvent]:
        found.extend(await turn.search("tomatoes in the greenhouse", 5))
        yield TurnFinished(outcome="completed")

    async with open_house() as house:
        names: list[str] = []
        for project in ("/usr/share", "/usr/lib", "/usr/share"):
            created = await house.directory.create(CreateConversation(project=project, title="Beds"), None)
            names.append(created.conversation)
        for name in names[:2]:
            await house.do(name, SendMessage(content="Tomatoes grow in the greenhouse."))
            await house.at_rest(name)
        house.puppet.scripts.append(looks)
        await house.do(names[2], SendMessage(content="And the tomatoes in the greenhouse?"))
        await house.at_rest(names[2])
    assert [(passage.conversation, passage.text) for passage in found] == [
        (names[0], "Tomatoes grow in the greenhouse.")
    ]
    assert found[0].ts > 0
