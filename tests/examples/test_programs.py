"""What the terminal examples have in common: the end of their input is their end."""

import pytest

from tests.browser.served import Palaver
from tests.examples.running import running


@pytest.mark.parametrize(
    ("program", "answer"),
    [
        (["stream_client.py"], "You said: Good evening"),
        (["chats_client.py", "evening"], "You said: Good evening (stop)"),
        (["inbox_client.py", "human"], "assistant: You said: Good evening"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
async def test_program_ends_with_its_input(palaver: Palaver, program: list[str], answer: str) -> None:
    async with running(palaver, *program) as chat:
        await chat.type("Good evening")
        await chat.shows(answer)
        assert await chat.end() == 0
    assert "Traceback" not in chat.output
