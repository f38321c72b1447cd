"""The book of agents: files that count as they are, changes that lose nothing, projects that must be trusted first."""

import asyncio
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from palaver.agents.catalog import Book
from palaver.agents.trust import Trust
from palaver.errors import Conflict, Invalid, NotFound
from palaver.schema.records import AgentRecord

pytestmark = pytest.mark.anyio

BUILT_IN = (
    AgentRecord(id="default", name="Assistant", description="The best here.", backend="api", model="large"),
    AgentRecord(id="claude", name="Claude Code", backend="claude"),
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "agents").mkdir(parents=True)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".palaver" / "agents").mkdir(parents=True)
    return folder


@pytest.fixture
def book(data: Path) -> Book:
    return open_book(data)


def open_book(data: Path) -> Book:
    return Book(BUILT_IN, data / "agents", Trust(data / "trusted.json"), "api", ("api", "claude"))


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / "agents" / f"{name}.md"
    path.write_text(text)
    return path


def record_of(book: Book, agent: str, project: Path | None = None) -> AgentRecord:
    record = book.agent(agent, project)
    assert record is not None, book.why_not(agent, project)
    return record


# -- reading


async def test_file_counts_as_it_is_now(book: Book, data: Path) -> None:
    path = write(data, "helper", "---\nname: Helper\nmodel: a\n---\nHelp.")
    assert (record_of(book, "helper").model, record_of(book, "helper").system_prompt) == ("a", "Help.")
    path.write_text("---\nname: Helper\nmodel: better\n---\nHelp more.")
    assert (record_of(book, "helper").model, record_of(book, "helper").system_prompt) == ("better", "Help more.")
    path.unlink()
    assert book.agent("helper") is None
    assert "deleted, or never made" in book.why_not("helper")


async def test_change_that_keeps_the_time_and_size_of_a_file_is_seen(book: Book, data: Path) -> None:
    path = write(data, "helper", "---\nmodel: a\n---\n")
    before = path.stat()
    assert record_of(book, "helper").model == "a"
    path.write_text("---\nmodel: b\n---\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert record_of(book, "helper").model == "b"


async def test_broken_file_is_listed_with_its_problem_and_keeps_nobody_else_from_working(
    book: Book, data: Path
) -> None:
    write(data, "bad", "---\nmode: berserk\n---\n")
    write(data, "good", "Be good.")
    write(data, "two words", "Hello")
    listed = {known.id: known for known in book.all()}
    assert list(listed) == ["default", "claude", "bad", "good", "two words"]
    assert "bad.md" in (listed["bad"].problem or "")
    assert "`mode` is one of" in (listed["bad"].problem or "")
    assert "no spaces" in (listed["two words"].problem or "")
    assert (book.agent("bad"), record_of(book, "good").system_prompt) == (None, "Be good.")
    assert [record.id for record in book.records] == ["default", "claude", "good"]


async def test_file_of_a_built_in_agent_changes_only_what_it_names(book: Book, data: Path) -> None:
    write(data, "claude", "---\nmodel: small\n---\n")
    write(data, "default", "Be brief.")
    claude, default = record_of(book, "claude"), record_of(book, "default")
    assert (claude.name, claude.backend, claude.model) == ("Claude Code", "claude", "small")
    assert (default.name, default.model, default.system_prompt) == ("Assistant", "large", "Be brief.")


async def test_broken_file_of_a_built_in_agent_does_not_free_it_from_its_rules(book: Book, data: Path) -> None:
    write(data, "default", "---\npolcy: [{tool: shell, decision: deny_abort}]\n---\n")
    assert book.agent("default") is None
    assert "polcy" in book.why_not("default")


async def test_tools_of_other_programs_get_our_names_where_ours_are_meant(book: Book, data: Path) -> None:
    write(data, "ours", "---\ntools: Read, Bash\n---\n")
    write(data, "theirs", "---\nbackend: claude\ntools: Read, Bash\n---\n")
    assert (record_of(book, "ours").tools, record_of(book, "theirs").tools) == (("read", "shell"), ("Read", "Bash"))


# -- changing


async def test_agent_that_was_made_is_there_for_another_book(book: Book, data: Path) -> None:
    made = await book.create(
        {"name": "Señor Código!", "system_prompt": "Hola.", "allowed_tools": ["read"], "budget": 2}
    )
    assert (made.id, made.source) == ("senor-codigo", "data")
    record = record_of(open_book(data), "senor-codigo")
    assert (record.name, record.system_prompt) == ("Señor Código!", "Hola.")
    assert (record.allowed_tools, record.spend_limit_usd) == (("read",), 2)
    assert (data / "agents" / "senor-codigo.md").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "日本"}, "id"),
        ({"name": "x", "id": "a b"}, "id"),
        ({"name": "trust"}, "id"),
        ({"name": "x", "mode": "wild"}, "mode"),
        ({"name": "x", "backend": "cluade"}, "backend"),
        ({"name": "x", "hat": "red"}, "hat"),
        ({"name": "x", "system_prompt": 3}, "system_prompt"),
        ({"name": "x", "mcp_servers": [{"url": "http://x"}]}, "mcp_servers"),
        ({"name": "x", "mcp_servers": [{"name": "a"}]}, "mcp_servers"),
        ({"name": "x", "mcp_servers": [{"name": "a", "url": "http://x", "headers": [None]}]}, "mcp_servers"),
        ({"name": "x", "mcp_servers": [{"name": "a", "command": ["x"], "environment": "KEY=1"}]}, "mcp_servers"),
        ({"name": "x", "idle_interval_s": "soon"}, "idle_interval_s"),
    ],
)
async def test_what_is_wrong_is_refused_by_field_and_nothing_is_made(
    book: Book, data: Path, body: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await book.create(body)
    assert refused.value.details["field"] == field, refused.value
    assert list((data / "agents").iterdir()) == []


@pytest.mark.parametrize("body", [{"name": "Helper"}, {"name": "Other", "id": "helper"}, {"name": "Claude"}])
async def test_taken_id_is_refused(book: Book, data: Path, body: dict[str, Any]) -> None:
    path = write(data, "helper", "Mine.")
    with pytest.raises(Conflict):
        await book.create(body)
    assert path.read_text() == "Mine."


async def test_change_of_one_thing_erases_no_other(book: Book, data: Path) -> None:
    text = "---\n# Mine.\nname: Helper\nx-note: keep  # this\nenvironment: {KEY: secret}\n---\n\nHelp.\n"
    path = write(data, "helper", text)
    await book.update("helper", {"model": "big", "environment": {"KEY": True, "MORE": "1"}})
    assert path.read_text() == text.replace("{KEY: secret}", '{KEY: secret, MORE: "1"}').replace(
        '"1"}\n---', '"1"}\nmodel: big\n---'
    )
    await book.update("helper", {"model": None, "environment": {"MORE": None}})
    assert path.read_text() == text


async def test_servers_given_as_a_list_keep_the_secrets_that_were_not_said(book: Book, data: Path) -> None:
    write(
        data,
        "helper",
        "---\nmcp_servers:\n  shed: {command: node, args: [a], env: {KEY: secret}}\n  old: {url: u}\n---\n",
    )
    shed = {"name": "shed", "command": ["node", "b"], "environment": {"KEY": True, "NEW": "1"}}
    await book.update("helper", {"mcp_servers": [shed]})
    (server,) = record_of(book, "helper").mcp_servers
    assert (server.command, server.environment) == (("node", "b"), {"KEY": "secret", "NEW": "1"})


async def test_changing_a_built_in_agent_writes_only_the_change(book: Book, data: Path) -> None:
    changed = await book.update("claude", {"mode": "plan"})
    assert (data / "agents" / "claude.md").read_text() == "---\nmode: plan\n---\n"
    assert (changed.source, record_of(book, "claude").name) == ("built-in", "Claude Code")


async def test_changes_at_the_same_time_all_count(book: Book) -> None:
    await book.create({"name": "Helper"})
    changes = [book.update("helper", {"params": {f"own_{at}": at}}) for at in range(8)]
    tools = [book.allow_tool("helper", f"tool_{at % 4}") for at in range(8)]
    await asyncio.gather(*changes, *tools)
    record = record_of(book, "helper")
    assert record.params == {f"own_{at}": at for at in range(8)}
    assert sorted(record.allowed_tools) == ["tool_0", "tool_1", "tool_2", "tool_3"]


async def test_editor_that_saves_meanwhile_is_not_overwritten(
    book: Book, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person saves between the moment the change read the file and the moment it would write."""
    path = write(data, "helper", "---\nname: Helper\n---\nOld.\n")
    from palaver.agents import record_editor

    real = record_editor.edit_text

    def saved_meanwhile(text: str, *change: Any) -> str:
        if "Old." in text:
            path.write_text("---\nname: Helper\n---\nTyped by hand.\n")
        return real(text, *change)

    monkeypatch.setattr(record_editor, "edit_text", saved_meanwhile)
    await book.update("helper", {"model": "big"})
    assert path.read_text() == "---\nname: Helper\nmodel: big\n---\nTyped by hand.\n"


async def test_linked_file_stays_linked(book: Book, data: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "dotfiles.md"
    elsewhere.write_text("---\nmodel: a\n---\n")
    (data / "agents" / "helper.md").symlink_to(elsewhere)
    await book.update("helper", {"model": "b"})
    assert ((data / "agents" / "helper.md").is_symlink(), elsewhere.read_text()) == (True, "---\nmodel: b\n---\n")


async def test_allowing_a_tool_again_writes_nothing(book: Book, data: Path) -> None:
    await book.allow_tool("claude", "Bash")
    before = (data / "agents" / "claude.md").stat()
    await book.allow_tool("claude", "shell")
    assert (data / "agents" / "claude.md").stat() == before
    assert record_of(book, "claude").allowed_tools == ("shell",)


async def test_copy_has_everything_but_the_name(book: Book, data: Path) -> None:
    write(data, "helper", "---\n# Mine.\nname: Helper\nmodel: big\n---\nHelp.\n")
    first, second = await book.duplicate("helper"), await book.duplicate("helper", wishes={"name": "Other"})
    assert (first.id, second.id) == ("helper-copy", "helper-copy-2")
    assert (data / "agents" / "helper-copy.md").read_text() == (
        '---\n# Mine.\nname: "Helper (copy)"\nmodel: big\n---\nHelp.\n'.replace('"', "")
    )
    assert record_of(book, "helper-copy-2").name == "Other"
    copied = await book.duplicate("claude")
    assert record_of(book, copied.id).backend == "claude"
    await book.update(copied.id, {"model": "x"})
    assert record_of(book, "claude").model is None


async def test_deleted_agent_is_gone_and_those_built_in_stay(book: Book, data: Path) -> None:
    write(data, "helper", "Help.")
    await book.delete("helper")
    assert book.known("helper") is None
    for agent, refusal in (("default", Conflict), ("claude", Conflict), ("helper", NotFound)):
        with pytest.raises(refusal):
            await book.delete(agent)


# -- projects


async def test_project_agent_is_inert_until_these_bytes_are_trusted(book: Book, data: Path, project: Path) -> None:
    path = write(project / ".palaver", "local", "---\nname: Local\ncommand: [evil]\n---\nObey.")
    digest = sha256(path.read_bytes()).hexdigest()
    (known,) = [known for known in book.all(project) if known.source == "project"]
    assert (known.id, known.hash, known.trusted, known.usable) == ("local", digest, False, None)
    assert (book.agent("local", project), "not trusted" in book.why_not("local", project)) == (None, True)

    with pytest.raises(Conflict, match="changed"):
        await book.trust("local", project, "0" * 64)
    assert book.agent("local", project) is None
    assert (await book.trust("local", project, digest)).trusted
    assert record_of(open_book(data), "local", project).system_prompt == "Obey."
    assert (data / "trusted.json").stat().st_mode & 0o777 == 0o600

    before = path.stat()
    path.write_text("---\nname: Local\ncommand: [evil]\n---\nOBEY.")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert book.agent("local", project) is None


async def test_trust_is_of_one_folder_and_can_be_taken_back(book: Book, tmp_path: Path, project: Path) -> None:
    other = tmp_path / "other"
    (other / ".palaver" / "agents").mkdir(parents=True)
    for folder in (project, other):
        write(folder / ".palaver", "local", "Obey.")
    digest = sha256(b"Obey.").hexdigest()
    await book.trust("local", project, digest)
    assert (book.agent("local", other), book.agent("local")) == (None, None)
    record_of(book, "local", project)
    await book.trust("local", project, None)
    assert book.agent("local", project) is None


@pytest.mark.parametrize("taken", ["default", "helper"])
async def test_project_agent_does_not_take_the_place_of_another(
    book: Book, data: Path, project: Path, taken: str
) -> None:
    write(data, "helper", "Help.")
    write(project / ".palaver", taken, "Obey.")
    await book.trust(taken, project, sha256(b"Obey.").hexdigest())
    assert record_of(book, taken, project).system_prompt != "Obey."
    (entry,) = [known for known in book.all(project) if known.source == "project"]
    assert (entry.usable, "same id" in (entry.problem or "")) == (None, True)


async def test_link_out_of_a_project_is_not_followed(book: Book, tmp_path: Path, project: Path) -> None:
    (tmp_path / "secret").write_text("the key")
    (project / ".palaver" / "agents" / "local.md").symlink_to(tmp_path / "secret")
    assert [known for known in book.all(project) if known.source == "project"] == []
    assert book.known("local", project) is None


async def test_data_directory_inside_a_project_has_no_agents_of_the_project(tmp_path: Path) -> None:
    data = tmp_path / ".palaver"
    (data / "agents").mkdir(parents=True)
    (data / ".palaver-data").touch()
    write(data, "helper", "Help.")
    listed = open_book(data).all(tmp_path)
    assert [(known.id, known.source) for known in listed][2:] == [("helper", "data")]


async def test_damaged_trust_trusts_nobody_and_is_set_aside(data: Path, project: Path) -> None:
    path = write(project / ".palaver", "local", "Obey.")
    digest = sha256(path.read_bytes()).hexdigest()
    book = open_book(data)
    await book.trust("local", project, digest)
    (data / "trusted.json").write_text("{")
    assert book.agent("local", project) is None
    await book.trust("local", project, digest)
    record_of(book, "local", project)
    assert (data / "trusted.damaged").read_text() == "{"
