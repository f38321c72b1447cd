"""What an agent changes on disk is an event with diffs, told by the call that did it."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.flows.served import serving
from tests.provider import Answer, Call, scripted_provider

pytestmark = pytest.mark.anyio

PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+TWO\n*** Add File: c.txt\n+new\n*** End Patch\n"
CALLS = {
    "edit": ({"path": "a.txt", "old": "one", "new": "ONE"}, [("a.txt", "modified")]),
    "write": ({"path": "b.txt", "content": "hello\n"}, [("b.txt", "created")]),
    "patch": ({"patch": PATCH}, [("a.txt", "modified"), ("c.txt", "created")]),
    "shell": ({"command": "rm a.txt; echo x > d.txt"}, [("a.txt", "deleted"), ("d.txt", "created")]),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize("tool", CALLS)
async def test_change_is_told_with_its_call_and_diff(tool: str, project: Path, tmp_path: Path) -> None:
    arguments, expected = CALLS[tool]
    script = (Answer.of(Call(name=tool, input=arguments)), Answer.of("Done."))
    async with scripted_provider(*script, obedient=False) as provider:
        environment = {"PATH": os.environ["PATH"], "OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "k"}
        async with serving(tmp_path / "data", environment=environment, model="scripted-1") as server:
            conversation = await server.create(project=str(project))
            await server.send(conversation, "go")
            async with server.events(conversation, after=0) as stream:
                seen = [event async for event in stream.until(lambda event: event["type"] == "request.opened")]
            await server.command(conversation, type="resolve_request", request=seen[-1]["request"], verdict="allow")
            events = await server.settled(conversation)
            state = await server.state(conversation)

    (told,) = (event for event in events if event["type"] == "files.changed")
    called = next(event for event in events if event["type"] == "tool.called")
    assert told["call"] == called["call"]
    assert [(file["path"], file["kind"]) for file in told["files"]] == expected
    assert all(file["diff"].startswith(("--- ", "rename ")) for file in told["files"])
    assert [(file["path"], file["kind"]) for file in _tools(state)[0]["changes"]] == expected
    assert [file["path"] for file in state["files"]] == [path for path, _ in expected]


def _tools(state: dict[str, Any]) -> list[dict[str, Any]]:
    return [block for message in state["messages"] for block in message["blocks"] if block["type"] == "tool"]
