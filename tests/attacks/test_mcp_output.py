"""MCP servers that talk without end, in every way they have: the journal gets little of it, and none of their keys.

The rule is `tools/mcp/error_output.py`: what a server makes us log goes through one limit, redacted.
"""

import asyncio
import logging
import sys
from pathlib import Path

import pytest

from palaver.clock import ManualClock
from palaver.schema.records import AgentRecord, McpServer
from palaver.tools.mcp.error_output import LINES_A_MINUTE
from palaver.tools.mcp.servers import McpServers
from tests.provider.programs import programs_outside

pytestmark = pytest.mark.anyio

WAIT_S = 60.0
SECRET = "canary-0123456789abcdef"
FLOOD = 3000
OTHER_LINES = 10
"""Of ours, about a server."""

PROGRAM = """
import json, os, sys
key, kind, count = os.environ["SEA_API_KEY"], sys.argv[1], int(sys.argv[2])
def out(value):
    sys.stdout.write((value if isinstance(value, str) else json.dumps({"jsonrpc": "2.0", **value})) + "\\n")
def flood(number):
    text = f"{number} {key} " + "y" * 300
    match kind:
        case "text": out(text)
        case "no object": out(json.dumps([text]))
        case "unknown notification": out({"method": f"notifications/{text}", "params": {"x": text}})
        case "malformed notification": out({"method": "notifications/progress", "params": {"progress": text}})
        case "log notification": out({"method": "notifications/message", "params": {"level": "error", "data": text}})
        case "answer to nothing": out({"id": text, "result": {"x": text}})
        case "error to nothing": out({"id": 10**6 + number, "error": {"code": -1, "message": text}})
        case "request": out({"id": text, "method": f"unknown/{text}", "params": {}})
        case "malformed request": out({"id": number, "method": "roots/list", "params": {"_meta": text}})
        case "bad bytes": sys.stdout.flush(); sys.stdout.buffer.write(b"\\xff\\xfe" + text.encode() + b"\\n")
        case "stderr": sys.stderr.write(text + "\\n")
        case "both": out(text); sys.stderr.write(text + "\\n")
        case "changed": out({"method": "notifications/tools/list_changed"})
for line in sys.stdin:
    told = json.loads(line)
    if told.get("method") == "initialize":
        out({"id": told["id"], "result": {"protocolVersion": told["params"]["protocolVersion"],
             "capabilities": {"tools": {"listChanged": True}, "logging": {}}, "serverInfo": {"name": "x", "version": "1"}}})
        for number in range(count): flood(number)
    elif told.get("method") == "tools/list":
        for number in range(count): flood(number)
        out({"id": told["id"], "result": {"tools": []}})
    elif "id" in told and "method" in told:
        out({"id": told["id"], "error": {"code": -32601, "message": f"no {key}"}})
    sys.stdout.flush()
    sys.stderr.flush()
"""
KINDS = (
    *("text", "no object", "unknown notification", "malformed notification", "log notification", "answer to nothing"),
    *("error to nothing", "request", "malformed request", "bad bytes", "stderr", "both", "changed"),
)


@pytest.mark.parametrize("kind", KINDS)
async def test_flood_of_a_server_takes_a_bounded_share_of_the_journal(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    command = (sys.executable, "-I", "-c", PROGRAM, kind, str(FLOOD))
    record = McpServer(name="sea", command=command, environment={"SEA_API_KEY": SECRET})
    agent = AgentRecord(id="a", name="A", mcp_servers=(record,))
    servers = McpServers({"PATH": "/usr/bin:/bin"}, ManualClock())
    try:
        async with asyncio.timeout(WAIT_S):
            await servers.tools_of(agent, tmp_path, programs_outside(tmp_path))
    finally:
        await servers.close()
    lines = [f"{line.getMessage()} {vars(line)}" for line in caplog.records]
    assert len(lines) <= LINES_A_MINUTE + OTHER_LINES, lines[-3:]
    assert SECRET not in "".join(lines)


@pytest.mark.parametrize("method", ["initialize", "tools/list"])
async def test_key_in_a_servers_error_is_in_no_line_and_no_problem(
    method: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    program = PROGRAM.replace(f'told.get("method") == "{method}"', "False")
    command = (sys.executable, "-I", "-c", program, "none", "0")
    record = McpServer(name="sea", command=command, environment={"SEA_API_KEY": SECRET})
    agent = AgentRecord(id="a", name="A", mcp_servers=(record,))
    servers = McpServers({"PATH": "/usr/bin:/bin"}, ManualClock())
    try:
        async with asyncio.timeout(WAIT_S):
            assert await servers.tools_of(agent, tmp_path, programs_outside(tmp_path)) == ()
        (problem,) = servers.problems(agent, tmp_path)
    finally:
        await servers.close()
    assert "no [redacted" in problem
    assert SECRET not in problem
    assert SECRET not in "".join(f"{line.getMessage()} {vars(line)}" for line in caplog.records)
