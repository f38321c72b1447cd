"""The other agents of a server, as a conversation sees them: whom to give a task to, whom to write to.

Implements `conversation.others.Others`. Conversations need it when they are made and it needs the directory of conversations,
so the composition root gives it two ways to its parts, which exist by the time anybody asks.
"""

from collections.abc import Callable

from palaver.agents.delegation import Delegation
from palaver.agents.exchange import Exchanges
from palaver.conversation.peers import Caller, Task
from palaver.schema.events import ExchangeReturned
from palaver.schema.view import Exchange
from palaver.tools.base import Letter, Reply, Report


class Colleagues:
    def __init__(self, delegation: Callable[[], Delegation], exchanges: Callable[[], Exchanges]) -> None:
        self._delegation = delegation
        self._exchanges = exchanges

    async def delegate(self, caller: Caller, task: Task) -> Report:
        return await self._delegation().delegate(caller, task)

    async def write(self, caller: Caller, letter: Letter, call: str) -> Reply:
        return await self._exchanges().write(caller, letter, call)

    def answered(self, conversation: str, exchange: Exchange, answer: ExchangeReturned) -> None:
        self._exchanges().answered(conversation, exchange, answer)
