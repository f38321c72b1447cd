"""Reading an inbox over MCP: the resource and the tool agree, ids only grow, paging is exact."""

from pathlib import Path

import pytest

from palaver.backends.script import Say, Tool, turns
from palaver.clock import ManualClock
from tests.flows.faces.inbox.client import ERAS, INBOX, Era, inbox
from tests.flows.served import serving


async def test_empty_inbox_has_no_last_id(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation) as human:
            assert await human.read() == {"last_id": None, "messages": []}
            assert await human.since() == {"last_id": None, "messages": []}


@pytest.mark.parametrize("era", ERAS)
async def test_posted_message_is_in_the_resource_with_its_id_time_and_kind_of_text(tmp_path: Path, era: Era) -> None:
    async with serving(tmp_path, [Say("Hello there.")]) as served:
        conversation = await served.create()
        async with inbox(served, "human", conversation, era=era) as human:
            sent = await human.say("**Deploy** now?", mime="text/plain")
            user, answer = await human.until("**Deploy** now?", "Hello there.")
            assert user == {**sent, "author": "user", "mime": "text/plain", "content": "**Deploy** now?"}
            assert answer["author"] == "assistant"
            assert answer["mime"] == "text/markdown"
            assert set(answer) == {"id", "ts", "author", "mime", "content"}
            resources = (await human.client.list_resources()).resources
            assert [(known.uri, known.mime_type) for known in resources] == [(INBOX, "application/json")]
