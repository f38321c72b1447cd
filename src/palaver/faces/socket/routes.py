"""All routes of this face: the socket itself and the operations beside it."""

import asyncio

from litestar import websocket

from palaver.errors import Busy
from palaver.faces.http.errors import refuse
from palaver.faces.http.open_streams import StreamEnded
from palaver.faces.live import Live
from palaver.faces.server import Server
from palaver.faces.socket import operations
from palaver.faces.socket.connection import SEND_S, Connection, Socket

SIGNED_OUT = 4401
RESTARTING = 1012


@websocket("/ws")
async def socket(socket: Socket, server: Server, live: Live) -> None:
    """Follow sessions and talk in them."""
    try:
        async with server.streams.open(socket.auth) as stream:
            await socket.accept()
            await Connection(socket, server, live.socket, stream).run()
    except Busy as refusal:
        await refuse(socket.scope, socket.receive, socket.send, refusal)
    except StreamEnded as ended:
        async with asyncio.timeout(SEND_S):
            await socket.close(code=SIGNED_OUT if ended.reason == "signed_out" else RESTARTING)


ROUTES = [socket, *operations.ROUTES]
