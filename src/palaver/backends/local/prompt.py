"""A turn as a very small model can take it in: recent text, a short system prompt, nothing else.

`backend.py` hands one to the API loop in place of the real turn; everything but the agent and the history passes through.
It must never change what was said: messages are left out whole, and one that alone is too long is refused in words.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from palaver.backends.base import Turn
from palaver.backends.program_lookup import ProgramLookup
from palaver.context.quotes import Quoting
from palaver.errors import ProviderRefused
from palaver.schema.base import BlobRef
from palaver.schema.events import RequestOpened, RequestResolved
from palaver.schema.records import AgentRecord
from palaver.schema.view import Block, ImageBlock, Message, State, TextBlock
from palaver.tools.base import Letter, Passage, Reply, Report

HISTORY_TOKENS = 1400
"""As estimated; in English half as many. One thread reads about 100 a second, and seven seconds are long enough to wait."""
MESSAGE_TOKENS = 2800
"""A single message may be longer than that, as long as the window holds it, the system prompt and an answer."""
SYSTEM_CHARS = 600
"""A longer system prompt is not followed by a model this small, only read at every start."""
SYSTEM_PROMPT = "You are a helpful assistant. Answer briefly."

_PLAIN = re.compile(r"[A-Za-z ]")
_SPOKEN = frozenset({"user", "assistant", "summary"})


class SmallTurn:
    """Wraps a turn for as long as it runs."""

    def __init__(self, turn: Turn, *, model: str) -> None:
        self._turn = turn
        prompt = turn.agent.system_prompt.strip()[:SYSTEM_CHARS] or SYSTEM_PROMPT
        self._agent = replace(turn.agent, model=model, system_prompt=prompt, tools=(), knowledge=False)
        self._whole = turn.state
        self._cut = cut_state(self._whole)

    @property
    def id(self) -> str:
        return self._turn.id

    @property
    def conversation(self) -> str:
        return self._turn.conversation

    @property
    def agent(self) -> AgentRecord:
        return self._agent

    @property
    def project(self) -> Path:
        return self._turn.project

    @property
    def params(self) -> Mapping[str, Any]:
        return self._turn.params

    @property
    def state(self) -> State:
        if self._whole is not self._turn.state:
            self._whole = self._turn.state
            self._cut = cut_state(self._whole)
        return self._cut

    @property
    def history(self) -> Sequence[Message]:
        return self.state.messages

    @property
    def programs(self) -> ProgramLookup:
        return self._turn.programs

    @property
    def quoting(self) -> Quoting:
        return self._turn.quoting

    def new_id(self) -> str:
        return self._turn.new_id()

    def now_ms(self) -> int:
        return self._turn.now_ms()

    async def sleep(self, seconds: float) -> None:
        await self._turn.sleep(seconds)

    async def committed(self) -> None:
        await self._turn.committed()

    async def deliveries(self) -> Sequence[Message]:
        return await self._turn.deliveries()

    async def request(self, request: RequestOpened) -> RequestResolved:
        return await self._turn.request(request)

    async def store_blob(self, data: bytes, mime: str) -> BlobRef:
        return await self._turn.store_blob(data, mime)

    async def load_blob(self, blob: str) -> bytes | None:
        return await self._turn.load_blob(blob)

    async def result_of(self, call: str) -> None:
        await self._turn.result_of(call)

    async def search(self, query: str, limit: int) -> Sequence[Passage]:
        return await self._turn.search(query, limit)

    async def process_ended(self, process: str, exit_code: int | None, text: str) -> None:
        await self._turn.process_ended(process, exit_code, text)

    async def delegate(self, agent: str | None, prompt: str, call: str) -> Report:
        return await self._turn.delegate(agent, prompt, call)

    async def write_to(self, letter: Letter, call: str) -> Reply:
        return await self._turn.write_to(letter, call)


def estimate_tokens(text: str) -> int:
    """Rather too many than too few: of plain letters two make a token (in English four), of anything else each byte may."""
    plain = len(_PLAIN.findall(text))
    return plain // 2 + len(text.encode()) - plain


def cut_state(state: State) -> State:
    messages = cut_history(state.messages)
    return replace(state, messages=messages, offset=state.offset + len(state.messages) - len(messages))


def cut_history(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The recent text of a conversation, beginning with something a person said.

    When it outgrows its budget it is cut to half of that, not message by message: as long as its beginning stays the same
    the model need not read again what it has read.
    """
    spoken = [text_only(message) for message in messages if message.role in _SPOKEN and not message.hidden]
    spoken = [message for message in spoken if message.blocks]
    costs = [_cost(message) for message in spoken]
    start, held_tokens = 0, 0
    for at, cost in enumerate(costs):
        held_tokens += cost
        if held_tokens > HISTORY_TOKENS:
            while start < at and held_tokens > HISTORY_TOKENS // 2:
                held_tokens -= costs[start]
                start += 1
    while start < len(spoken) - 1 and spoken[start].role != "user":
        start += 1
    _refuse_too_long(spoken)
    return tuple(spoken[start:])


def text_only(message: Message) -> Message:
    """Calls and thoughts mean nothing to a model without tools; an image is at least mentioned."""
    blocks: list[Block] = []
    for block in message.blocks:
        match block:
            case TextBlock() if block.text.strip():
                blocks.append(block)
            case ImageBlock():
                blocks.append(TextBlock(index=block.index, text="[An image, which you cannot see.]"))
            case _:
                pass
    return replace(message, blocks=tuple(blocks))


def _cost(message: Message) -> int:
    """With eight tokens for the marks around each message. What went to a blob counts whole."""
    texts = [block for block in message.blocks if isinstance(block, TextBlock)]
    return 8 + sum(block.blob.size if block.blob else estimate_tokens(block.text) for block in texts)


def _refuse_too_long(spoken: Sequence[Message]) -> None:
    asked = next((message for message in reversed(spoken) if message.role == "user"), None)
    if asked is not None and _cost(asked) > MESSAGE_TOKENS:
        raise ProviderRefused(
            f"This message is too long for the small local model, which takes in about {MESSAGE_TOKENS // 3:,} words. "
            "Send a shorter one, or choose another agent."
        )
