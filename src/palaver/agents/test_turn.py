"""A test turn: whether an agent answers, tried for real in a conversation of its own that is gone afterwards.

Called by the native face and by `palaver doctor`. The agent gets one short message in mode `ask`; whatever it asks for
ends the test. Must never leave the conversation or its program behind, however the test ends.
"""

from contextlib import aclosing, suppress

from palaver.agents.backends import Backends
from palaver.backends.process import to_the_end
from palaver.clock import Clock
from palaver.conversation.directory import Directory
from palaver.errors import CallerError, Gone
from palaver.feed.feed import Feed
from palaver.feed.frames import Frame
from palaver.schema.base import Origin, Shown
from palaver.schema.commands import CreateConversation, DeleteConversation
from palaver.schema.events import RequestOpened, TurnFinished, TurnInterrupted, decode_event
from palaver.schema.records import AgentRecord
from palaver.schema.view import State, TextBlock
from palaver.tasks import TaskOwner, wait_first

ASKED = "Reply with the one word: ready"
LIMIT_S = 60.0
"""A program starts in a few seconds, and one word takes a few more; what takes a minute is stuck."""
TEXT_CHARS = 2_000
"""Of an answer that is more than a word."""

End = TurnFinished | TurnInterrupted | RequestOpened


class TrialError(Shown):
    code: str
    message: str


class Tried(Shown):
    """How a test turn went. `text` is what the agent said."""

    ok: bool
    text: str
    duration_ms: int
    error: TrialError | None


class Trials:
    def __init__(self, directory: Directory, feed: Feed, backends: Backends, clock: Clock) -> None:
        self._directory = directory
        self._feed = feed
        self._backends = backends
        self._clock = clock

    async def of(self, agent: AgentRecord, origin: Origin | None = None) -> Tried:
        began_s = self._clock.monotonic_s()
        body = CreateConversation(agent=agent.id, title=f"Test of {agent.name}", params={"mode": "ask"}, message=ASKED)
        made = await self._directory.create(body, origin)
        try:
            end = await self._in_time(made.conversation)
            text = await self._answer_in(made.conversation)
        finally:
            await to_the_end(self._clear(made.conversation, origin))
        error = _error(end, text)
        spent_ms = int((self._clock.monotonic_s() - began_s) * 1000)
        return Tried(ok=error is None, text=text, duration_ms=spent_ms, error=error)

    async def _in_time(self, conversation: str) -> End | None:
        """How it ended. None: not in time."""
        async with TaskOwner() as tasks:
            ending = tasks.start(self._end_of(conversation), f"test turn {conversation}")
            await wait_first(ending, tasks.start(self._clock.sleep(LIMIT_S), f"limit of {conversation}"))
            return ending.result() if ending.done() else None

    async def _end_of(self, conversation: str) -> End:
        async with aclosing(self._feed.subscribe(conversation, 0)) as items:
            async for item in items:
                for line in item.body.splitlines() if isinstance(item, Frame) else ():
                    event = decode_event(line)
                    if isinstance(event, TurnFinished | TurnInterrupted | RequestOpened):
                        return event
        raise AssertionError("a feed has no end")

    async def _answer_in(self, conversation: str) -> str:
        try:
            return _answer_of(await self._directory.state(conversation))
        except Gone:
            return ""  # Somebody else deleted it meanwhile.

    async def _clear(self, conversation: str, origin: Origin | None) -> None:
        with suppress(CallerError):
            await self._directory.command(conversation, DeleteConversation(), origin)
        await self._backends.forget(conversation)


def _answer_of(state: State) -> str:
    texts = (
        block.text
        for message in state.messages
        if message.role == "assistant" and message.status != "superseded"
        for block in message.blocks
        if isinstance(block, TextBlock)
    )
    return "\n".join(texts).strip()[:TEXT_CHARS]


def _error(end: End | None, text: str) -> TrialError | None:
    match end:
        case None:
            return TrialError(code="timed_out", message=f"It did not answer within {LIMIT_S:.0f} s.")
        case RequestOpened():
            what = end.title or end.tool or "something"
            return TrialError(code="asked", message=f"It asked for leave instead of answering: {what}")
        case TurnInterrupted():
            return TrialError(code="interrupted", message="The test was stopped.")
        case TurnFinished(error=None) if not text:
            return TrialError(code="protocol_broken", message="It ended its turn without a word.")
        case TurnFinished(error=None):
            return None
        case TurnFinished():
            assert end.error is not None
            return TrialError(code=end.error.code, message=end.error.message)
