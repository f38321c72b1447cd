"""Names in paths and queries that try to lead elsewhere: no route that takes one reads or writes outside its place."""

import asyncio
import re
from pathlib import Path

import pytest

from palaver.faces.rights import ROUTES
from tests.attacks.test_rights_table import Table, shared_server
from tests.flows.served import WAIT_S

pytestmark = pytest.mark.anyio

NAMED = sorted(operation for operation in ROUTES if "{" in operation or operation.startswith("ASGI"))
STEPS = (
    "..%2f",
    "%2e%2e%2f",
    "%2e%2e/",
    "..%5c",
    "%252e%252e%252f",
    "....%2f%2f",
    "..%00%2f",
    "..;%2f",
    "%c0%ae%c0%ae%2f",
)
TARGETS = ("token", "data%2ftoken", "outside", "outside.txt", "outside.json", "etc%2fpasswd")
CORPUS = (
    *(f"{step * depth}{target}" for step in STEPS for depth in (1, 4) for target in TARGETS[:3]),
    *(f"%2f{target}" for target in TARGETS),
    *(
        "..",
        "%2e%2e",
        ".",
        "%00",
        "~",
        "~root",
        "file:%2f%2f%2fetc%2fpasswd",
        "%ff%fe",
        "a" * 5_000,
        "CON",
        "-rf",
        "%0a",
    ),
)
CANARY = "canary-outside"
QUERIES = ("project", "project_root", "path", "id", "session_id", "trajectory", "q", "name")


def state_of(folder: Path) -> dict[str, str]:
    """All files around the data directory and the folder of conversations without a project."""
    return {
        str(path): path.read_text(errors="replace")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.relative_to(folder).parts[0].startswith("data")
    }


def lay_out(folder: Path) -> None:
    (folder / "outside").write_text(CANARY)
    (folder / "outside.txt").write_text(CANARY)
    (folder / "outside.json").write_text(
        f'{{"id": "outside", "messages": [{{"role": "user", "content": "{CANARY}"}}]}}'
    )
    (folder / "outside.md").write_text(f"---\nname: {CANARY}\n---\n{CANARY}")


async def test_no_name_in_a_path_leads_elsewhere(tmp_path: Path) -> None:
    lay_out(tmp_path)
    async with shared_server(tmp_path, agents_folder=tmp_path / "agents") as table:
        around = state_of(tmp_path)
        wrong: list[str] = []
        for operation in NAMED:
            method, _, template = operation.partition(" ")
            for name in CORPUS:
                path = re.sub(r"\{\w+\}", name, template)
                path = f"{path}/{name}" if method == "ASGI" else path
                status, text = await ask(table, "GET" if method == "ASGI" else method, path)
                if leaks(table, status, text):
                    wrong.append(f"{operation} {name}: {status} {text[:200]}")
        after = state_of(tmp_path)
        assert (await table.server.http.get("/api/agents")).status_code == 200
    assert wrong == []
    assert after == around


async def test_no_name_in_a_query_leads_elsewhere(tmp_path: Path) -> None:
    lay_out(tmp_path)
    reading = [
        operation.partition(" ")[2] for operation in ROUTES if operation.startswith("GET ") and "{" not in operation
    ]
    async with shared_server(tmp_path) as table:
        around = state_of(tmp_path)
        wrong: list[str] = []
        for path in reading:
            for name in CORPUS[:: len(STEPS)]:
                for query in QUERIES:
                    status, text = await ask(table, "GET", f"{path}?{query}={name}")
                    if leaks(table, status, text):
                        wrong.append(f"{path} {query}={name}: {status} {text[:200]}")
        after = state_of(tmp_path)
    assert wrong == []
    assert after == around


def leaks(table: Table, status: int, text: str) -> bool:
    return status >= 500 or CANARY in text or table.server.token in text or "root:x:" in text


async def ask(table: Table, method: str, path: str) -> tuple[int, str]:
    """As the owner. Of an answer that may never end, the head alone."""
    body = b"{}" if method in ("POST", "PUT", "PATCH") else None
    http = table.server.http
    async with asyncio.timeout(WAIT_S), http.stream(method, path, content=body) as answer:
        endless = answer.headers.get("content-type", "").startswith("text/event-stream")
        return answer.status_code, "" if endless else (await answer.aread()).decode(errors="replace")
