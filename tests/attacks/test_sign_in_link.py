"""The one-time code of the printed link is in no process's arguments: every user of a machine may read those."""

import asyncio
import os
import re
import stat
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser.served import START_S, STOP_S, free_port
from tests.flows.served import http_client

pytestmark = pytest.mark.anyio

BROWSER = """#!{python}
import os, pathlib, sys
seen = pathlib.Path({seen!r})
address = sys.argv[-1]
draft = seen.with_suffix(".draft")
from urllib.parse import unquote, urlsplit
page = pathlib.Path(unquote(urlsplit(address).path)) if address.startswith("file:") else None
draft.write_text("\\n".join([
    " ".join(sys.argv), oct(page.stat().st_mode) if page else "", page.read_text() if page else "", repr(dict(os.environ)),
]))
draft.replace(seen)
"""


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def all_command_lines() -> list[bytes]:
    found: list[bytes] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_bytes())
    return found


async def test_code_is_in_no_argument_and_the_file_that_has_it_is_its_owners_and_goes(tmp_path: Path) -> None:
    seen, browser, data = tmp_path / "seen", tmp_path / "browser", tmp_path / "data"
    browser.write_text(BROWSER.format(python=sys.executable, seen=str(seen)))
    browser.chmod(0o755)
    data.mkdir(mode=0o755)
    (data / "open-0123456789abcdef.html").write_text("of a server that was killed")
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from palaver.cli.main import main; main()"),
        *("serve", "--port", str(port), "--data", str(data)),
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "BROWSER": str(browser),
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            said = ""
            while not (found := re.search(r"#code=(\S+)", said)):
                said += (await process.stdout.readline()).decode()
            while not seen.exists():  # noqa: ASYNC110 - the browser tells nobody
                await asyncio.sleep(0.05)
        arguments, mode, page, environment = seen.read_text().split("\n", 3)
        code = found.group(1)
        command_lines = all_command_lines()
        async with http_client(f"http://127.0.0.1:{port}") as http:
            (led_to, *_) = re.findall(r"#code=([\w-]+)", page)
            answer = await http.post("/api/session", json={"code": led_to})
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), STOP_S)

    assert code not in arguments
    assert code not in environment
    assert not any(code.encode() in line for line in command_lines)
    assert code in page, "the file leads on to the printed link"
    assert stat.S_IMODE(int(mode, 8)) == 0o600
    assert answer.status_code == 200
    assert urlsplit(arguments.split()[-1]).scheme == "file"
    assert list(data.glob("open-*")) == []
