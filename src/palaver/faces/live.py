"""The live projections of a server, one a face: made with the application, shared by its routes.

Routes ask for it by name (`live`). A face that projects conversations is made here once, so that all its readers share it.
"""

from dataclasses import dataclass

from litestar.di import NamedDependency

from palaver.faces.bus.pump import Bus
from palaver.faces.chats.rooms import Rooms
from palaver.faces.projection import Projected
from palaver.faces.server import ServerParts
from palaver.faces.socket.live import SocketFace
from palaver.faces.stream.projection import StreamProjector
from palaver.schema.view import State


@dataclass(frozen=True, slots=True, eq=False)
class LiveFaces:
    stream: Projected
    chats: Rooms
    bus: Bus
    socket: SocketFace


Live = NamedDependency[LiveFaces]


def live_faces(server: ServerParts) -> LiveFaces:
    def stream(state: State) -> StreamProjector:
        record = server.agents.agent(state.agent, state.project)
        return StreamProjector([known.name for known in record.mcp_servers] if record else [])

    live = LiveFaces(
        stream=Projected(server.feed, server.directory.state, stream),
        chats=Rooms(server.feed, server.directory.whole, server.log.blobs),
        bus=Bus(server.log, server.feed, server.clock),
        socket=SocketFace(server),
    )
    server.streams.keeping.update(
        stream=lambda: live.stream.kept_bytes,
        chats=lambda: live.chats.kept_bytes,
        bus=lambda: live.bus.kept_bytes,
        socket=lambda: live.socket.live.kept_bytes,
    )
    return live
