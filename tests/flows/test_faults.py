"""When the store or the server itself fails, clients are told so in words, nothing is half done, and work resumes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palaver.errors import LogUnavailable, StorageFull
from palaver.log.base import Append, Appended
from palaver.log.memory import MemoryLog
from palaver.schema.view import Listing
from tests.flows.served import Served, serving

pytestmark = pytest.mark.anyio


class FailingLog(MemoryLog):
    """A log whose disk fails when told to."""

    failure: Exception | None = None

    async def append(self, append: Append) -> Appended:
        if self.failure is not None:
            raise self.failure
        return await super().append(append)

    async def listing(self, conversation: str) -> Listing | None:
        if self.failure is not None:
            raise self.failure
        return await super().listing(conversation)


@pytest.fixture
def log() -> FailingLog:
    return FailingLog()


@pytest.fixture
async def failing(tmp_path: Path, log: FailingLog) -> AsyncIterator[Served]:
    async with serving(tmp_path, log=log) as server:
        yield server


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (StorageFull("The disk is full."), 507, "storage_full"),
        (LogUnavailable("The disk does not answer."), 503, "unavailable"),
    ],
    ids=["full", "unavailable"],
)
async def test_failing_disk_is_said_and_work_resumes_without_a_restart(
    failing: Served, log: FailingLog, failure: Exception, status: int, code: str
) -> None:
    conversation = await failing.create()

    log.failure = failure
    refused = await failing.command(conversation, type="send_message", content="hello", client_request_id="one")
    readable = await failing.state(conversation)
    log.failure = None
    await failing.send(conversation, "hello", client_request_id="one")
    events = await failing.settled(conversation)

    assert (refused.status_code, refused.json()["code"], refused.json()["retryable"]) == (status, code, True)
    assert int(refused.headers["retry-after"]) > 0
    assert readable["messages"] == []
    assert events[-1]["type"] == "turn.finished"


async def test_bug_is_answered_with_an_incident_number_that_the_log_has_too(
    failing: Served, log: FailingLog, caplog: pytest.LogCaptureFixture
) -> None:
    conversation = await failing.create()
    log.failure = RuntimeError("a secret detail")

    answer = await failing.http.get(f"/api/conversations/{conversation}")
    log.failure = None

    incident = answer.json()["details"]["incident"]
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert incident in answer.json()["message"]
    assert "secret" not in answer.text
    entry = next(entry for entry in caplog.records if vars(entry).get("facts", {}).get("incident") == incident)
    assert entry.exc_info is not None
    assert (await failing.http.get(f"/api/conversations/{conversation}")).status_code == 200
