"""The first visit loads MCP's package, which takes a second of work: none of it on the loop that serves everybody else."""

import asyncio
import json
import os
import sys
from pathlib import Path

from tests.flows.served import WAIT_S

ROOT = Path(__file__).parents[2]
VISIT = """
import asyncio, importlib.abc, json, sys, threading
from pathlib import Path
from tests.flows.served import serving

BEGIN = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tester", "version": "1"}}
ACCEPT = {"accept": "application/json, text/event-stream"}
found = {True: [], False: []}

class Watching(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        found[threading.current_thread() is threading.main_thread()].append(name)

async def main():
    async with serving(Path(sys.argv[1])) as served:
        conversation = await served.create()
        sys.meta_path.insert(0, Watching())
        for number, (method, params) in enumerate((("initialize", BEGIN), ("tools/list", {}))):
            body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            answer = await served.http.post(f"/mcp/human/{conversation}", json=body, headers=ACCEPT)
            assert answer.status_code == 200, answer.text
            if session := answer.headers.get("mcp-session-id"):
                ACCEPT["mcp-session-id"] = session

asyncio.run(main())
print(json.dumps({"on the loop": found[True], "aside": found[False]}))
"""


async def test_first_visit_loads_nothing_on_the_loop(tmp_path: Path) -> None:
    # A process of its own: in this one the package is loaded.
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", VISIT, str(tmp_path)),
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(3 * WAIT_S):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    imported = json.loads(out.decode().splitlines()[-1])
    assert "mcp" in imported["aside"]
    assert imported["on the loop"] == []
