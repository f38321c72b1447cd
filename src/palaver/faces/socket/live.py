"""The live half of this face: one projection a conversation, one voice, and one bulletin, shared by all its sockets.

Made once with the application.
"""

from palaver.faces.projection import Projected
from palaver.faces.server import ServerParts
from palaver.faces.socket.bulletin import Bulletin
from palaver.faces.socket.memory import Memory, begins_within_turn, memory_of
from palaver.faces.socket.projection import SocketProjector
from palaver.faces.socket.replay import TAILS, memory_at
from palaver.faces.socket.speech import Speech
from palaver.schema.view import State


class SocketFace:
    def __init__(self, server: ServerParts) -> None:
        self._server = server
        self._memories: dict[tuple[str, int], Memory] = {}
        """Of views on their way to a projector, which takes its own in the same breath."""
        self.live = Projected(
            server.feed,
            self._view,
            lambda state: SocketProjector(self._memory_of(state), self._memory_of),
        )
        self.speech = Speech(server.speaker, self.live)
        self.bulletin = Bulletin(server.log, server.feed, server.clock)

    async def _view(self, conversation: str) -> State:
        state = await self._server.directory.state(conversation)
        for tail in TAILS:
            if begins_within_turn(state):
                state = await self._server.directory.state(conversation, tail)
        # Made here and not by the projector, which cannot wait: what the view does not hold is read from the log.
        self._memories[conversation, state.seq] = await memory_at(self._server.log, state)
        return state

    def _memory_of(self, state: State) -> Memory:
        return self._memories.pop((state.conversation, state.seq), None) or memory_of(state)
