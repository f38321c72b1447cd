"""The web server under the faces: uvicorn with our limits, stopped in the order that suits long streams.

Run by `palaver serve` and by the tests that talk to a real server. It leaves signals to whoever runs it. Connections are
accepted here, not by the event loop: when descriptors run out, a loop's own server may close for good.
"""

import asyncio
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socket import socket
from typing import Any

import uvicorn
from litestar.types import ASGIApp

from palaver.config import Config
from palaver.faces.http.connections import Connection, Connections
from palaver.faces.http.http_bounds import HEAD_S, BoundedHttp
from palaver.faces.http.open_streams import Streams
from palaver.faces.http.websocket_frames import FramedSockets

SOCKET_FRAME_BYTES = 1 << 20
KEEP_ALIVE_S = 75
"""Longer than browsers and proxies keep an idle connection, so that they close it, never we in the middle of a request."""
DESCRIPTORS = 65_536
"""Enough for all streams that a machine can feed. Some programs go through all that they might have, and inherit this."""
ACCEPTS_AT_ONCE = 64
"""Then others have their turn."""
ACCEPT_PAUSE_S = 0.2
"""After the system refused a descriptor or memory: those who were let go need a moment to be gone."""


def raise_descriptor_limit() -> int:
    """As far as the system allows, within reason. How many the process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


class Listener(uvicorn.Server):
    def __init__(
        self,
        app: ASGIApp,
        streams: Streams,
        config: Config,
        *,
        grace_s: int,
        started: Callable[[], None] | None = None,
    ) -> None:
        app_for_uvicorn: Any = app
        super().__init__(
            uvicorn.Config(
                app_for_uvicorn,
                host=config.host,
                port=config.port,
                http=BoundedHttp,
                ws=FramedSockets,
                ws_max_size=SOCKET_FRAME_BYTES,
                # Compression costs more than it saves on lines this short, and holds memory for every socket.
                ws_per_message_deflate=False,
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=config.behind_proxy,
                forwarded_allow_ips="127.0.0.1,::1" if config.behind_proxy else None,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=grace_s,
                ssl_certfile=config.tls_certificate,
                ssl_keyfile=config.tls_key,
            )
        )
        self._streams = streams
        self._started = started
        self._connections = Connections(raise_descriptor_limit(), trusts_peers=config.behind_proxy)
        streams.add_connections(self._connections)
        self._acceptors: list[_Acceptor] = []

    def stop(self) -> None:
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn would raise the signal again when it is done, before the conversations have settled."""
        yield

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup([])
        for listening in sockets or []:
            acceptor = _Acceptor(listening, self._connections, self._protocol, self.config)
            acceptor.start()
            self._acceptors.append(acceptor)
        if self.started and self._started is not None:
            self._started()

    def _protocol(self, connection: Connection) -> asyncio.Protocol:
        return BoundedHttp(self.config, self.server_state, self.lifespan.state, connection=connection)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        for acceptor in self._acceptors:
            acceptor.stop()
        # Streams never end by themselves; waiting for them would take all of the grace.
        self._streams.close()
        await super().shutdown(sockets)


class _Acceptor:
    """Takes the connections of one listening socket, for as long as the server runs and whatever the system refuses."""

    def __init__(
        self,
        listening: socket,
        connections: Connections,
        protocol: Callable[[Connection], asyncio.Protocol],
        config: uvicorn.Config,
    ) -> None:
        self._listening = listening
        self._connections = connections
        self._protocol = protocol
        self._config = config
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._opening: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._listening.setblocking(False)
        self._listening.listen(self._config.backlog)
        self._loop.add_reader(self._listening.fileno(), self._accept)

    def stop(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listening.fileno())
        for task in self._opening:
            task.cancel()

    def _accept(self) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                accepted, address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError:
                self._rest()
                return
            accepted.setblocking(False)
            connection = self._connections.admit(_peer(address), accepted.close)
            task = self._loop.create_task(self._open(accepted, connection), name="open a connection")
            connection.close = task.cancel
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    def _rest(self) -> None:
        """No descriptor or no memory is left. The next try comes after a pause: the socket stays readable meanwhile."""
        self._loop.remove_reader(self._listening.fileno())
        self._connections.relieve()
        self._pause = self._loop.call_later(ACCEPT_PAUSE_S, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listening.fileno(), self._accept)

    async def _open(self, accepted: socket, connection: Connection) -> None:
        tls: Any = {"ssl": self._config.ssl, "ssl_handshake_timeout": HEAD_S} if self._config.ssl else {}
        try:
            await self._loop.connect_accepted_socket(lambda: self._protocol(connection), accepted, **tls)
        except BaseException as failure:
            # A handshake that failed, a peer that is gone, or the end of the server.
            connection.release()
            accepted.close()
            if not isinstance(failure, (OSError, TimeoutError)):
                raise


def _peer(address: Any) -> str:
    return str(address[0]) if isinstance(address, tuple) else "local"
