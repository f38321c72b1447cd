"""`palaver serve` as a person runs it: a real process, its link, its refusals in sentences, its stop."""

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.browser.served import free_port
from tests.flows.served import PageKey

pytestmark = pytest.mark.anyio

PALAVER = Path(sys.executable).with_name("palaver")
START_S = 60.0
"""A start takes a second; a busy machine may need many."""


def environment(**more: str) -> dict[str, str]:
    """Nothing of the surroundings but what a program needs to run."""
    return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "PALAVER_NO_OPEN": "1", **more}


@asynccontextmanager
async def started(*arguments: str, **variables: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(str(PALAVER), "serve", *arguments),
        env=environment(**variables),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def read_link(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(START_S):
        while line := (await process.stdout.readline()).decode():
            if found := re.search(r"http://\S+", line):
                return found[0]
    raise AssertionError("the server ended without a link")


async def complaint(*arguments: str, **variables: str) -> tuple[int | None, str]:
    """How a server that cannot start says so."""
    async with started(*arguments, **variables) as process:
        async with asyncio.timeout(START_S):
            _, said = await process.communicate()
        return process.returncode, said.decode()


async def test_printed_link_signs_in_and_the_token_file_is_private(tmp_path: Path) -> None:
    port = free_port()
    async with started("--port", str(port), "--data", str(tmp_path / "data")) as process:
        link = await read_link(process)
        address, _, code = link.partition("/#code=")
        async with httpx.AsyncClient(base_url=address, timeout=START_S) as http:
            signed_in = await http.post("/api/session", json={"code": code})
            who = await http.get("/api/session", auth=PageKey(signed_in.json()["key"]))
            token = (tmp_path / "data/token").read_text().strip()
            by_token = await http.get("/api/agents", headers={"Authorization": f"Bearer {token}"})

    assert address == f"http://127.0.0.1:{port}"
    assert (signed_in.status_code, who.json()["user"]) == (200, "owner")
    assert [agent["id"] for agent in by_token.json()["items"]] == ["default", "claude", "codex", "pi", "demo"]
    assert (tmp_path / "data/token").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_stops_it_cleanly_with_a_stream_open(tmp_path: Path, number: signal.Signals) -> None:
    async with started(PALAVER_PORT=str(free_port()), PALAVER_DATA=str(tmp_path)) as process:
        address = (await read_link(process)).partition("/#")[0]
        headers = {"Authorization": f"Bearer {(tmp_path / 'token').read_text().strip()}"}
        async with httpx.AsyncClient(base_url=address, headers=headers, timeout=START_S) as http:
            made = (await http.post("/api/conversations", json={})).json()["conversation"]
            async with http.stream("GET", f"/api/conversations/{made}/events") as stream:
                chunks = stream.aiter_raw()
                await anext(chunks)
                process.send_signal(number)
                async with asyncio.timeout(START_S):
                    rest = [chunk async for chunk in chunks]
        async with asyncio.timeout(START_S):
            _, said = await process.communicate()

    assert process.returncode == 0
    assert rest == []
    assert "Traceback" not in said.decode()
    assert not (tmp_path / "server.json").exists()


async def test_secrets_are_not_logged(tmp_path: Path) -> None:
    port = free_port()
    async with started("--port", str(port), "--data", str(tmp_path), ANTHROPIC_API_KEY="sk-very-secret") as process:
        link = await read_link(process)
        token = (tmp_path / "token").read_text().strip()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=START_S) as http:
            await http.get("/api/agents", headers={"Authorization": f"Bearer {token}"})
            await http.get("/api/agents", headers={"Authorization": "Bearer sk-wrong-guess"})
        process.terminate()
        async with asyncio.timeout(START_S):
            out, err = await process.communicate()

    said = (out + err).decode()
    assert not any(secret in said for secret in (token, "sk-very-secret", "sk-wrong-guess"))
    assert link.rpartition("=")[2] not in err.decode()


async def test_port_in_use_is_said_in_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, said = await complaint("--port", str(taken.getsockname()[1]), "--data", str(tmp_path))

    assert code == 1
    assert said.count("\n") == 1
    assert "is in use" in said


async def test_second_server_on_a_data_directory_is_refused_in_a_sentence(tmp_path: Path) -> None:
    async with started("--port", str(free_port()), "--data", str(tmp_path)) as first:
        await read_link(first)
        code, said = await complaint("--port", str(free_port()), "--data", str(tmp_path))

    assert code == 1
    assert said.startswith(f"palaver: The data directory {tmp_path} is in use")
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--host", "0.0.0.0"], "--allow-remote"),
        (["--host", "0.0.0.0", "--allow-remote"], "--behind-proxy"),
        (["--tls-key", "key.pem"], "--tls-certificate"),
    ],
    ids=["remote", "unencrypted", "half of TLS"],
)
async def test_exposed_server_is_refused_in_a_sentence(tmp_path: Path, arguments: list[str], part: str) -> None:
    code, said = await complaint(*arguments, "--port", str(free_port()), "--data", str(tmp_path))

    assert code == 1
    assert part in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("prot = 1", "prot"),
        ("port = 'x'", "port"),
        ("[[policy]]\ntool = 'shell'\ndecision = 'maybe'", "maybe"),
        ("[[policy]]\ntool = 'shell'\ndecision = 'ask'\nproject = 'here'", "whole path"),
        ("=", "line 1"),
    ],
    ids=["unknown name", "wrong type", "unknown decision", "half a path", "not TOML"],
)
async def test_wrong_settings_file_is_said_in_a_sentence(tmp_path: Path, file: str, part: str) -> None:
    (tmp_path / "palaver.toml").write_text(file)

    code, said = await complaint("--port", str(free_port()), "--data", str(tmp_path))

    assert code == 1
    assert "palaver.toml" in said
    assert part in said


async def test_help_names_the_flags() -> None:
    async with started("--help", COLUMNS="200") as process:
        async with asyncio.timeout(START_S):
            out, _ = await process.communicate()

    assert all(flag in out.decode() for flag in ("--host", "--port", "--data", "--no-open", "PALAVER_PORT"))
