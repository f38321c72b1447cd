"""`palaver serve`: runs a server in the foreground until it is told to stop.

Reads the configuration, takes the port, composes the app and gives it to uvicorn. Whatever can go wrong at a start is one
sentence and exit code 1; a stop settles every turn and ends every process before the program does.
"""

import asyncio
import errno
import functools
import gc
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from palaver.cli.support import options
from palaver.cli.support.connection import fail
from palaver.cli.support.link_file import remove_redirects, write_redirect
from palaver.cli.support.settings import Flags, is_set, process_environment, read_config
from palaver.cli.support.terminal import guard_streams
from palaver.config import Config, held_addresses
from palaver.errors import ConfigurationError, PalaverError
from palaver.journal import Journal, write_journal
from palaver.nonblocking_output import unblocked_output

if TYPE_CHECKING:
    from palaver.app import App

logger = Journal(__name__)

EXAMPLES = (
    "palaver serve",
    "palaver serve --port 9000 --data ./data --no-open",
    "palaver serve --host 0.0.0.0 --allow-remote --behind-proxy --public-host palaver.example",
)

GRACE_S = 3
"""How long requests in flight may take to end after a stop. Streams are ended at once."""
BACKLOG = 1024
QUIET_S = 1.0
"""After the start: the page has asked for all it shows at first, and nobody has written a message yet."""
STUCK_MS = 60_000
"""Unacknowledged for a minute: the reader is gone or will never read. The kernel then frees the connection."""


def serve(
    host: Annotated[str | None, typer.Option(help="The address to listen on. [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="The port. [default: 8420]", min=1, max=65_535)] = None,
    data: Annotated[
        Path | None, typer.Option(help="Where everything is kept. [default: ~/.palaver]", file_okay=False)
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the page in a browser.")] = False,
    public_host: Annotated[
        list[str] | None, typer.Option(help="A name browsers reach the server under, beside its address.")
    ] = None,
    allow_remote: Annotated[bool, typer.Option("--allow-remote", help="Listen beyond this machine.")] = False,
    behind_proxy: Annotated[bool, typer.Option("--behind-proxy", help="A proxy in front of it does TLS.")] = False,
    tls_certificate: Annotated[Path | None, typer.Option(help="A certificate chain, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key, PEM.")] = None,
    json: options.Json = False,
) -> None:
    """Start the server and open its page.

    PALAVER_HOST, PALAVER_PORT, PALAVER_DATA and PALAVER_NO_OPEN stand for the flags; `palaver.toml` in the data
    directory holds the rest.
    """
    environment = process_environment()
    flags = Flags(
        host=host,
        port=port,
        data=data,
        public_hosts=tuple(public_host or ()),
        allow_remote=allow_remote,
        behind_proxy=behind_proxy,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
    )
    write_journal()
    # Nothing that a start makes is garbage, and looking for some would take a sixth of it. `_greet` begins to look.
    gc.disable()
    try:
        config = read_config(flags, environment, Path.cwd())
        with listening(config) as listener, unblocked_output():
            guard_streams()
            opens = not (no_open or is_set(environment, "PALAVER_NO_OPEN"))
            run(config, listener, open_page=opens, as_json=json)
    except PalaverError as failure:
        raise fail(failure) from None
    finally:
        gc.enable()


@contextmanager
def listening(config: Config) -> Iterator[socket.socket]:
    """The port, taken before anything else is done. Who connects early waits until the server is ready."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    # Named as TCP: asyncio's own loop has answers wait 40 ms for an acknowledgement unless it knows.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(AttributeError, OSError):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STUCK_MS)
        try:
            if config.host == "::":
                # Whatever the system's default: nobody else may have 127.0.0.1, under which the page is opened too.
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listener.bind((config.host, config.port))
            # Binding alone does not keep another server out; listening does.
            listener.listen(BACKLOG)
        except OSError as failure:
            raise ConfigurationError(_why_not(config, failure)) from failure
        yield listener


def _why_not(config: Config, failure: OSError) -> str:
    if failure.errno == errno.EADDRINUSE:
        return (
            f"Port {config.port} on {config.host} is in use, perhaps by another Palaver. "
            "Stop that program, or choose another port with --port."
        )
    return f"Cannot listen on {config.host}, port {config.port}: {failure.strerror or failure}."


def run(config: Config, listener: socket.socket, *, open_page: bool, as_json: bool = False) -> None:
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with suppress(ImportError):
        import uvloop

        loop_factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(_serve(config, listener, open_page, as_json))


async def _serve(config: Config, listener: socket.socket, open_page: bool, as_json: bool) -> None:
    from palaver.app import open_app
    from palaver.faces.http.listener import Listener

    async with open_app(config) as app:
        greet = functools.partial(_greet, app, open_page, as_json)
        server = Listener(app.asgi, app.streams, config, grace_s=GRACE_S, started=greet)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, server.stop)
        try:
            await server.serve(sockets=[listener])
        finally:
            with suppress(OSError):
                (config.data / "server.json").unlink()
            remove_redirects(config.data)
            # From here on a second signal ends the program the hard way.
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


def _greet(app: "App", open_page: bool, as_json: bool) -> None:
    # What is there now stays: it is never looked through again.
    gc.freeze()
    gc.enable()
    config = app.config
    address = address_of(config)
    from palaver.tools.files.atomic_file import replace_file

    # Where the command line looks for the server. It holds no secret.
    try:
        replace_file(config.data / "server.json", msgspec.json.encode({"url": address}))
    except OSError as failure:
        logger.warning("the address for the command line could not be written", reason=str(failure))
    link = f"{page_address_of(config)}/#code={app.keys.new_code()}"
    token = config.data / "token"
    if as_json:
        ready = {"url": address, "link": link, "data": str(config.data), "token_file": str(token)}
        print(msgspec.json.encode(ready).decode(), flush=True)
    else:
        print(f"Palaver is ready. Open this link within a minute to sign in; it works once:\n\n  {link}\n")
        if app.directory.folders.needs_workspace:
            print(
                f"This folder holds Palaver's own data, so conversations without a project work in {app.directory.home}."
            )
        print(f"Later, sign in with the token in {token}. Ctrl-C stops the server.", flush=True)
    loop = asyncio.get_running_loop()
    # The first turn need not wait for it, and neither did the start.
    loop.call_later(QUIET_S, loop.run_in_executor, None, app.roster.import_default)
    if open_page:
        _open_in_browser(config.data, link)


def _open_in_browser(data: Path, link: str) -> None:
    from palaver.people.authentication import CODE_LIFE_S

    remove_redirects(data)
    try:
        address = write_redirect(data, link).as_uri()
    except OSError as failure:
        logger.warning("the page could not be opened; use the printed link", reason=failure.strerror)
        return
    asyncio.get_running_loop().call_later(CODE_LIFE_S, remove_redirects, data)
    # In a thread of its own, which nobody waits for: some browsers never return.
    threading.Thread(target=webbrowser.open, args=(address,), name="open the page", daemon=True).start()


def address_of(config: Config) -> str:
    # Only a name that is no address is held by nobody; whoever binds to one declares it as a public host.
    host = next(iter(held_addresses(config.host)), config.host)
    return f"{'https' if config.tls_certificate else 'http'}://{host}:{config.port}"


def page_address_of(config: Config) -> str:
    """Where a browser finds the page: under the first public name, where something makes the server public."""
    name = next(iter(config.public_hosts), None)
    if name is None or (config.is_loopback and not config.behind_proxy):
        return address_of(config)
    if config.behind_proxy:
        # The proxy's own port, not ours; a name may say another.
        return f"https://{name}"
    _, _, port = name.rpartition("]")[2].partition(":")
    return f"{'https' if config.tls_certificate else 'http'}://{name}{'' if port else f':{config.port}'}"
