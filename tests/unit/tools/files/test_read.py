"""The tool `read`."""

from pathlib import Path

import pytest

from palaver.tools.files.read import LINE_LIMIT_BYTES, Read
from tests.unit.tools.workshop import Workshop

pytestmark = pytest.mark.anyio


async def test_file_is_read_as_it_is(workshop: Workshop, root: Path) -> None:
    (root / "a.txt").write_text("one\n\ttwo  \nthree")
    result = await workshop.run(Read(), path="a.txt")
    assert (result.ok, result.output, result.truncated) == (True, "one\n\ttwo  \nthree", False)
    assert (result.total_lines, result.total_bytes) == (3, 16)


async def test_part_is_read_with_a_note_how_to_go_on(workshop: Workshop, root: Path) -> None:
    (root / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 11)))
    result = await workshop.run(Read(), path="a.txt", offset=3, limit=2)
    assert result.output == "line 3\nline 4\n[lines 3-4 of 10; read on with offset=5]\n"
    assert (result.truncated, result.total_lines) == (True, 10)
    rest = await workshop.run(Read(), path="a.txt", offset=9, limit=2)
    assert (rest.output, rest.truncated) == ("line 9\nline 10\n", False)


async def test_long_file_is_cut_at_a_whole_line_within_the_bound(workshop: Workshop, root: Path) -> None:
    (root / "a.txt").write_text("".join(f"{number:>99}\n" for number in range(1, 2001)))
    result = await workshop.run(Read(), path="a.txt")
    assert len(result.output) <= 64 * 1024
    *lines, note = result.output.splitlines()
    assert [int(line) for line in lines] == list(range(1, len(lines) + 1))
    assert note == f"[lines 1-{len(lines)} of 2000; read on with offset={len(lines) + 1}]"


async def test_very_long_line_is_cut_and_says_so(workshop: Workshop, root: Path) -> None:
    (root / "packed.js").write_text("x" * 1_000_000 + "\nend\n")
    result = await workshop.run(Read(), path="packed.js")
    left_out = 1_000_001 - LINE_LIMIT_BYTES
    assert result.output == f"{'x' * LINE_LIMIT_BYTES} [… {left_out:,} more bytes of this line …]\nend\n"


async def test_huge_file_is_read_in_part_without_counting_it(workshop: Workshop, root: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.write(b"first\n" + b"x" * 10_000 + b"\n")
        file.truncate(2**33)
    result = await workshop.run(Read(), path="huge", limit=1)
    assert result.output == "first\n[lines 1-1; read on with offset=2]\n"
    assert (result.total_lines, result.total_bytes) == (None, 2**33)


async def test_offset_behind_the_end_is_refused(workshop: Workshop, root: Path) -> None:
    (root / "a.txt").write_text("one\n")
    result = await workshop.run(Read(), path="a.txt", offset=2)
    assert (result.ok, result.error) == (False, "a.txt has only 1 lines.")


async def test_empty_file_says_so(workshop: Workshop, root: Path) -> None:
    (root / "a.txt").touch()
    result = await workshop.run(Read(), path="a.txt")
    assert (result.ok, result.output, result.total_lines) == (True, "[the file is empty]", 0)


async def test_binary_file_is_not_shown(workshop: Workshop, root: Path) -> None:
    (root / "a.png").write_bytes(b"\x89PNG\0\0")
    result = await workshop.run(Read(), path="a.png")
    assert (result.ok, result.error) == (False, "a.png is a binary file of 6 bytes; it is not shown.")


async def test_other_encodings_are_shown_as_well_as_possible(workshop: Workshop, root: Path) -> None:
    (root / "a.txt").write_bytes("café".encode("latin-1"))
    assert (await workshop.run(Read(), path="a.txt")).output == "caf\ufffd"


async def test_secret_in_a_file_is_redacted(workshop: Workshop, root: Path) -> None:
    (root / ".env").write_text("SERVICE_TOKEN=correct-horse-battery\n")
    assert (await workshop.run(Read(), path=".env")).output == "SERVICE_TOKEN=[redacted SERVICE_TOKEN]\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "invalid"),
        ({"path": 5}, "invalid"),
        ({"path": "a", "offset": 0}, "invalid"),
        ({"path": "a", "limit": "many"}, "invalid"),
        ({"path": "a\ud800"}, "invalid"),
        ({"path": "../outside/secret.txt"}, "forbidden"),
        ({"path": "gone"}, "not_found"),
        ({"path": "."}, "invalid"),
    ],
)
async def test_call_that_makes_no_sense_is_a_result(
    arguments: dict[str, object], code: str, workshop: Workshop
) -> None:
    result = await Read().run(arguments, workshop.place)
    assert (result.ok, result.error_code) == (False, code)
    assert result.error


async def test_unknown_argument_and_number_as_text_are_accepted(workshop: Workshop, root: Path) -> None:
    (root / "a.txt").write_text("1\n2\n")
    result = await workshop.run(Read(), path="a.txt", offset="2", reason="curious")
    assert result.output == "2\n"


def test_proposal_reads_only_and_names_the_real_path(workshop: Workshop, root: Path) -> None:
    (root / "link").symlink_to("a.txt")
    proposal = workshop.propose(Read(), path="./link")
    assert (proposal.title, proposal.reads_only, proposal.match) == ("Read a.txt", True, "a.txt")
    assert Read().spec.parameters["required"] == ["path"]
    assert set(Read().spec.parameters["properties"]) == {"path", "offset", "limit"}
