"""The web server under the faces: uvicorn with our limits, stopped in the order that suits long streams.

Run by `palaver serve` and by the tests that talk to a real server. It leaves signals to whoever runs it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socket import socket
from typing import Any

import uvicorn
from litestar.types import ASGIApp

from palaver.config import Config
from palaver.faces.framed import FramedSockets
from palaver.faces.streams import Streams

SOCKET_FRAME_BYTES = 1 << 20
KEEP_ALIVE_S = 75
"""Longer than browsers and proxies keep an idle connection, so that they close it, never we in the middle of a request."""


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
                http="httptools",
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

    def stop(self) -> None:
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn would raise the signal again when it is done, before the conversations have settled."""
        yield

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._started is not None:
            self._started()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        # Streams never end by themselves; waiting for them would take all of the grace.
        self._streams.close()
        await super().shutdown(sockets)
