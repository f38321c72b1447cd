"""`palaver export` and `palaver import` as a person uses them: the real program against a real server."""

from pathlib import Path

import msgspec

from tests.flows.served import Served, serving
from tests.flows.terminal import palaver


async def cli(server: Served, tmp_path: Path, *arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    return await palaver(tmp_path / "data", *arguments, "--url", server.url, stdin=stdin)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_export_writes_to_standard_output_or_a_file(server: Served, tmp_path: Path) -> None:
    conversation = await server.create(message="hello", title="Greeting")
    await server.settled(conversation)

    code, out, err = await cli(server, tmp_path, "export", conversation)
    assert (code, err) == (0, "")
    assert out.startswith("# Greeting\n")
    target = tmp_path / "talk.html"
    code, out, _ = await cli(server, tmp_path, "export", conversation, "--format", "html", "-o", str(target))
    assert (code, out) == (0, "")
    assert target.read_text().startswith("<!doctype html>")


async def test_list_is_one_object_a_line(server: Served, tmp_path: Path) -> None:
    made = [await server.create(title=f"Number {number}") for number in range(3)]

    code, out, _ = await cli(server, tmp_path, "export", "--list")

    assert code == 0
    assert [msgspec.json.decode(line)["id"] for line in out.splitlines()] == made[::-1]


async def test_list_is_written_for_programs_of_the_stream_face(server: Served, tmp_path: Path) -> None:
    await server.settled(await server.create(message="a talk"))
    file, where = tmp_path / "chat-sessions.jsonl", ("--url", server.url)
    assert (await palaver(tmp_path / "data", "export", "--format", "sessions", "-o", str(file), *where))[0] == 0
    (line,) = file.read_bytes().splitlines()
    (told,) = (await server.http.get("/api/chat/sessions/list")).json()["sessions"]
    assert msgspec.json.decode(line) == told
    assert (await palaver(tmp_path / "data", "export", "last", "-f", "sessions", *where))[0] == 2


async def test_everything_moves_to_another_server(server: Served, tmp_path: Path) -> None:
    for number in range(3):
        await server.settled(await server.create(message=f"hello {number}"))
    folder = tmp_path / "all"

    code, _, err = await cli(server, tmp_path, "export", "--all", str(folder), "--format", "jsonl")
    assert (code, "3 conversations" in err) == (0, True)
    assert len(names_in(folder)) == 4
    async with serving(tmp_path / "other" / "data") as other:
        code, out, err = await cli(other, tmp_path / "other", "import", "--dry-run", str(folder))
        assert (code, out, err.count("would become")) == (0, "", 3)
        code, out, _ = await cli(other, tmp_path / "other", "import", str(folder))
        listed = (await other.http.get("/api/conversations")).json()["items"]
    assert code == 0
    assert {row["id"] for row in listed} == set(out.split())
    assert {row["title"] for row in listed} == {"hello 0", "hello 1", "hello 2"}


async def test_import_goes_on_past_a_bad_file_and_says_so(server: Served, tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("## User\n\nhello\n\n## Assistant\n\nhi\n")
    (tmp_path / "bad.md").write_text("nothing here")

    code, out, err = await cli(
        server, tmp_path, "import", *(str(tmp_path / name) for name in ("bad.md", "missing.md", "good.md"))
    )

    assert code == 1
    assert "bad.md: Nobody speaks" in err
    assert "missing.md: No such file" in err
    assert [message["role"] for message in (await server.state(out.strip()))["messages"]] == ["user", "assistant"]


async def test_import_reads_standard_input(server: Served, tmp_path: Path) -> None:
    code, out, _ = await cli(server, tmp_path, "import", "-", "--title", "Piped", stdin="## You\n\nhello\n")

    assert code == 0
    assert (await server.state(out.strip()))["title"] == "Piped"


async def test_wrong_use_is_said_and_nothing_is_written(server: Served, tmp_path: Path) -> None:
    target = tmp_path / "x.md"

    assert (await cli(server, tmp_path, "export"))[0] == 2
    assert (await cli(server, tmp_path, "export", "x", "--list"))[0] == 2
    assert (await cli(server, tmp_path, "export", "x", "--format", "pdf"))[0] == 2
    code, _, err = await cli(server, tmp_path, "export", "nobody", "-o", str(target))
    assert (code, "No such conversation" in err) == (6, True)
    there = await server.create()
    before = names_in(tmp_path)
    code, _, err = await cli(server, tmp_path, "export", there, "-o", str(tmp_path / "no" / "folder.md"))
    assert (code, "No such file or directory" in err) == (1, True)
    assert names_in(tmp_path) == before
    assert not target.exists()
