"""Projects over a real server: the folders that are worked in, and their file trees."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from palaver.client import Client
from palaver.people.authentication import KeyRecord, token_hash
from palaver.tools.files.tree import ENTRY_LIMIT
from tests.flows.served import Served, serving

pytestmark = pytest.mark.anyio

OBSERVER = "observer-observer-observer-observer-observer"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with something of everything."""
    root = tmp_path.resolve() / "project"
    for folder in (".git/info", "src/deep/deeper", "build", "docs", "logs"):
        (root / folder).mkdir(parents=True)
    files = {
        ".gitignore": "build/\n*.log\n!keep.log\n",
        ".git/config": "",
        ".git/info/exclude": "private.txt\n",
        "README.md": "hello",
        "private.txt": "x",
        "noise.log": "x",
        "keep.log": "x",
        "build/out.bin": "x",
        "src/main.py": "print()",
        "src/.gitignore": "generated.py\n",
        "src/generated.py": "x",
        "src/deep/deeper/end.txt": "x",
        "docs/guide.md": "x",
    }
    for name, text in files.items():
        (root / name).write_text(text)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (root / "out").symlink_to(outside)
    (root / "up").symlink_to("../outside/secret.txt")
    (root / "in").symlink_to("src/deep")
    (root / "broken").symlink_to("nowhere.txt")
    os.mkfifo(root / "pipe")
    return root


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    data = tmp_path / "data"
    data.mkdir()
    record = KeyRecord(name="watcher", kind="observer", hash=token_hash(OBSERVER))
    (data / "tokens.json").write_bytes(msgspec.json.encode([record]))
    async with serving(data) as served:
        yield served


async def tree(server: Served, root: Path, **query: Any) -> httpx.Response:
    return await server.http.get("/api/projects/tree", params={"project": str(root), **query})


async def entries(server: Served, root: Path, **query: Any) -> dict[str, dict[str, Any]]:
    answer = await tree(server, root, **query)
    assert answer.status_code == 200, answer.text
    return {entry["name"]: entry for entry in answer.json()["entries"]}


async def test_tree_shows_a_folder_without_what_git_ignores_and_links_with_where_they_lead(
    server: Served, root: Path
) -> None:
    found = await entries(server, root)

    assert list(found) == [
        "docs",
        "logs",
        "src",
        ".gitignore",
        "README.md",
        "broken",
        "in",
        "keep.log",
        "out",
        "pipe",
        "up",
    ]
    assert (found["README.md"]["kind"], found["README.md"]["size_bytes"]) == ("file", 5)
    assert (found["src"]["kind"], found["src"]["entries"]) == ("folder", None)
    assert {name: found[name]["leads"] for name in ("out", "up", "in", "broken")} == {
        "out": "outside",
        "up": "outside",
        "in": "folder",
        "broken": "nowhere",
    }
    assert all(found[name]["kind"] == "link" and found[name]["entries"] is None for name in ("out", "in"))
    assert found["pipe"]["kind"] == "other"


async def test_tree_goes_as_deep_as_asked_and_knows_the_ignore_files_of_every_level(server: Served, root: Path) -> None:
    shallow = await entries(server, root, depth=2)
    deep = await entries(server, root, depth=4)
    below = await tree(server, root, path="src")
    hidden = await tree(server, root, path="build")
    own = await tree(server, root, path=".git")
    through = await tree(server, root, path="in")

    assert [entry["name"] for entry in shallow["src"]["entries"]] == ["deep", ".gitignore", "main.py"]
    assert shallow["src"]["entries"][0]["entries"] is None
    assert deep["src"]["entries"][0]["entries"][0]["entries"][0]["path"] == "src/deep/deeper/end.txt"
    assert deep["out"]["entries"] is None
    assert [entry["name"] for entry in below.json()["entries"]] == ["deep", ".gitignore", "main.py"]
    assert (hidden.json()["entries"], own.json()["entries"]) == ([], [])
    # A link that stays inside may be asked for by name.
    assert (through.json()["path"], [entry["name"] for entry in through.json()["entries"]]) == ("src/deep", ["deeper"])


async def test_tree_of_a_folder_in_a_repository_knows_what_the_repository_ignores(server: Served, root: Path) -> None:
    (root / "src" / "noise.log").write_text("x")
    (root / "src" / "private.txt").write_text("x")
    found = await entries(server, root / "src")

    assert list(found) == ["deep", ".gitignore", "main.py"]


async def test_tree_never_leaves_the_root(server: Served, root: Path) -> None:
    for path in ("..", "../outside", "out", "src/../..", "/etc", str(root.parent / "outside"), "up"):
        answer = await tree(server, root, path=path)
        assert answer.status_code == 403, (path, answer.text)
        assert "secret" not in answer.text.replace("secret.txt", "")
    missing = await tree(server, root, path="nothing")
    file = await tree(server, root, path="README.md")
    empty = await tree(server, root, path="")

    assert (missing.status_code, file.status_code, empty.status_code) == (404, 400, 400)


async def test_tree_is_bounded_and_says_when_there_is_more(server: Served, root: Path) -> None:
    many = root / "logs"
    for number in range(ENTRY_LIMIT + 5):
        (many / f"{number:05}.txt").touch()
    answer = (await tree(server, root, path="logs")).json()
    wide = (await tree(server, root, depth=3)).json()
    too_deep = await tree(server, root, depth=9)

    assert (len(answer["entries"]), answer["truncated"]) == (ENTRY_LIMIT, True)
    assert wide["truncated"] is True
    # What is nearest is complete.
    assert len(wide["entries"]) == 11
    assert too_deep.status_code == 400


async def test_tree_shows_nothing_of_the_servers_own_data(server: Served, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "data")
    refused = [
        await tree(server, folder)
        for folder in (tmp_path / "data", tmp_path / "data" / "blobs", tmp_path, tmp_path / "link", Path("/"))
    ]

    assert [answer.status_code for answer in refused] == [403] * 5


async def test_projects_are_the_folders_of_conversations_and_missions_with_their_counts(
    server: Served, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(root)
    other = root.parent / "other"
    other.mkdir()
    first = await server.create(project=str(root), message="hello")
    await server.settled(first)
    await server.create(project=str(tmp_path / "link"))
    gone = await server.create(project=str(other))
    await server.http.delete(f"/api/conversations/{gone}")
    await server.http.put("/api/projects/mission", params={"project": str(other)}, json={"text": "Tidy up"})
    items = (await server.http.get("/api/projects")).json()["items"]
    async with Client.connect(server.url, server.token) as client:
        same = await client.projects()
        files = await client.tree(str(root), "docs")

    found = {item["project"]: item for item in items}
    assert set(found) == {str(root), str(other)}
    assert (found[str(root)]["conversations"], found[str(root)]["name"]) == (2, "project")
    assert (found[str(root)]["mission"], found[str(root)]["exists"], found[str(root)]["home"]) == (None, True, False)
    assert (found[str(other)]["conversations"], found[str(other)]["mission"]) == (0, "Tidy up")
    assert [one.project for one in same] == [item["project"] for item in items]
    assert [entry.name for entry in files.entries] == ["guide.md"]


async def test_mission_of_a_folder_that_is_gone_can_still_be_seen_and_cleared(server: Served, tmp_path: Path) -> None:
    folder = tmp_path / "short-lived"
    folder.mkdir()
    query = {"project": str(folder)}
    await server.http.put("/api/projects/mission", params=query, json={"text": "Tidy up"})
    folder.rmdir()
    seen = (await server.http.get("/api/projects/mission", params=query)).json()
    (listed,) = (await server.http.get("/api/projects")).json()["items"]
    cleared = (await server.http.delete("/api/projects/mission", params=query)).json()

    assert (seen["active"], seen["text"]) == (True, "Tidy up")
    assert listed["exists"] is False
    assert cleared["active"] is False


async def test_who_may_only_read_sees_missions_but_no_files_and_changes_nothing(server: Served, root: Path) -> None:
    headers = {"Authorization": f"Bearer {OBSERVER}"}
    query = {"project": str(root)}
    async with httpx.AsyncClient(base_url=server.url, headers=headers) as watcher:
        strange = await watcher.get("/api/projects/tree", params=query)
        await server.create(project=str(root))
        known = await watcher.get("/api/projects/tree", params=query)
        refused = [
            await watcher.put("/api/projects/mission", params=query, json={"text": "Tidy up"}),
            await watcher.delete("/api/projects/mission", params=query),
            await watcher.put("/api/projects/override", params={**query, "agent": "default"}, json={}),
        ]
        looked = await watcher.get("/api/projects/mission", params=query)

    assert (strange.status_code, known.status_code, looked.status_code) == (403, 403, 200)
    assert [answer.status_code for answer in refused] == [403, 403, 403]
