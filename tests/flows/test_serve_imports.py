"""What a server has imported when it is ready, and when it has answered what a page asks first.

A start is mostly imports. One more package is felt by everybody who starts a server, and is seen by nobody who writes the
line that imports it; here it is seen.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import msgspec
import pytest

from tests.browser.served import free_port

pytestmark = pytest.mark.anyio

PACKAGES = frozenset(
    {
        # The web server and the framework, and what importing them takes.
        *("uvicorn", "uvloop", "httptools", "websockets", "click", "h11"),
        *("litestar", "anyio", "sniffio", "annotated_types", "multidict", "multipart", "typing_extensions", "yaml"),
        # A file or two of each, where they are installed: Litestar looks whether it is used together with them.
        *("opentelemetry", "starlette"),
        # The log, and everything that is written or read.
        *("apsw", "msgspec"),
        # The command line.
        *("typer", "annotated_doc", "shellingham"),
        # One small file that says where the program is.
        "codex_cli_bin",
        # Made by compiled modules of the above for themselves.
        "cython_runtime",
    }
)
"""Packages of others that a server which is ready may have imported."""

HEAVY = {
    "aiohttp": "an HTTP client: only tools, model services and speech go anywhere",
    "pydantic": "no model of ours is made with it",
    "rich": "the server draws nothing",
    "pygments": "the server draws nothing",
    "textual": "the terminal UI is another program",
    "mcp": "imported with the first MCP server or inbox",
    "claude_agent_sdk": "imported with the first turn of Claude Code",
    "acp": "imported with the first turn of an agent that speaks it",
    "ruamel": "imported when an agent's file is changed",
    "markdown_it": "imported when a conversation is exported as a page",
    "genai_prices": "imported with the first turn that costs something",
    "asyncpg": "imported when the log is in PostgreSQL",
    "palaver.backends.claude.backend": "readiness is known by `installation`",
    "palaver.backends.codex.backend": "readiness is known by `installation`",
    "palaver.backends.pi.backend": "readiness is known by `installation`",
    "palaver.backends.acp.backend": "readiness is known by `installation`",
    "palaver.backends.api.loop": "imported for the first turn",
    "palaver.backends.demo.backend": "imported for the first turn",
    "palaver.faces.all_faces": "the other faces are built with the first request for one",
    "palaver.faces.live": "the other faces are built with the first request for one",
    "palaver.tui": "the terminal UI is another program",
}

WHAT_TO_DO = (
    "Import it inside the function that needs it, or move what needs it into a module that is imported only then. If every "
    "start really needs it, add it to PACKAGES and look at what `python -m bench start` says."
)

SERVER = """
import os, signal, sys
from palaver.cli import serve
from palaver.cli.main import main

def tell(*_):
    names = sorted(sys.modules)
    os.write(2, ("LOADED " + " ".join(names) + "\\n").encode())

signal.signal(signal.SIGUSR1, tell)
# The moment in which a server that runs on imports what the first turn needs.
serve.QUIET_S = 3600
main()
"""
START_S = 60.0


@asynccontextmanager
async def ready(folder: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str, str]]:
    """A server of its own, its address and its token."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SERVER, "serve", "--no-open", "--json"),
        *("--port", str(free_port()), "--data", str(folder / "data")),
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 20,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(START_S):
            told = msgspec.json.decode(await process.stdout.readline())
        token = await asyncio.to_thread(Path(told["token_file"]).read_text)
        yield process, told["url"], token.strip()
    finally:
        process.kill()
        await process.communicate()


async def imported(process: asyncio.subprocess.Process) -> set[str]:
    assert process.stderr is not None
    process.send_signal(signal.SIGUSR1)
    async with asyncio.timeout(START_S):
        while line := (await process.stderr.readline()).decode():
            if line.startswith("LOADED "):
                return set(line.split()[1:])
    raise AssertionError("the server ended")


def packages(modules: set[str]) -> set[str]:
    """The packages of others among them."""
    tops = {name.partition(".")[0] for name in modules}
    return {name for name in tops if name not in sys.stdlib_module_names and name not in ("palaver", "__main__")}


async def test_server_that_is_ready_has_imported_no_more_than_it_needs(tmp_path: Path) -> None:
    async with ready(tmp_path) as (process, _, _):
        modules = await imported(process)

    assert {name: HEAVY[name] for name in HEAVY if name in modules} == {}
    more = sorted(name for name in packages(modules) - PACKAGES if not name.startswith("_"))
    assert not more, f"A server imports {', '.join(more)} before it is ready. {WHAT_TO_DO}"


async def test_first_answers_import_nothing_that_the_start_left_out(tmp_path: Path) -> None:
    async with ready(tmp_path) as (process, url, token):
        before = await imported(process)
        async with httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=START_S
        ) as http:
            answers = [
                await http.get(path) for path in ("/", "/api/session", "/api/conversations", "/api/agents", "/api/runs")
            ]
        after = await imported(process)

    assert [answer.status_code for answer in answers] == [200] * 5
    new = sorted(name for name in after - before if not name.startswith("encodings"))
    assert not packages(set(new)), f"The first answers wait for the import of {', '.join(new)}. {WHAT_TO_DO}"
    assert not any(name.startswith("palaver.") for name in new), f"The first answers wait for {', '.join(new)}."


async def test_other_faces_answer_with_the_first_request_for_one(tmp_path: Path) -> None:
    async with ready(tmp_path) as (process, url, token):
        async with httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=START_S
        ) as http:
            paths = ("/api/agents/list", "/api/pending", "/v1/trajectories", "/api/schema/openapi.json")
            answers = await asyncio.gather(*(http.get(path) for path in paths))
        modules = await imported(process)

    assert [answer.status_code for answer in answers] == [200] * 4
    assert "palaver.faces.all_faces" in modules
