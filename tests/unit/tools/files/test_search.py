"""The tools `grep` and `glob`, over the real searching program."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from palaver.tools.base import ToolResult
from palaver.tools.files import grep as grep_tool
from palaver.tools.files.glob import Glob
from palaver.tools.files.grep import Grep
from palaver.tools.files.search import FOUND_LIMIT, alternatives, matches
from tests.unit.tools.workshop import Workshop

pytestmark = pytest.mark.anyio
Fill = Callable[[dict[str, str]], None]


async def test_grep_answers_path_line_and_text(workshop: Workshop, fill: Fill) -> None:
    fill({"src/a.py": "import os\n\ndef main():\n    pass\n", "b.md": "no\n", "src/z.py": "def other(): ...\r\n"})
    result = await workshop.run(Grep(), pattern=r"^def \w+")
    assert (result.ok, result.output) == (True, "src/a.py:3:def main():\nsrc/z.py:1:def other(): ...\n")
    assert result.total_lines == 2


async def test_grep_searches_one_file_or_folder(workshop: Workshop, fill: Fill) -> None:
    fill({"a/x": "needle\n", "b/x": "needle\n", "b/c/y": "needle\n"})
    assert (await workshop.run(Grep(), pattern="needle", path="b")).output == "b/c/y:1:needle\nb/x:1:needle\n"
    assert (await workshop.run(Grep(), pattern="needle", path="a/x")).output == "a/x:1:needle\n"


async def test_grep_without_a_match_says_so(workshop: Workshop) -> None:
    assert (await workshop.run(Grep(), pattern="needle")).output == "[nothing found]"


async def test_ignored_and_binary_files_are_skipped(workshop: Workshop, fill: Fill, root: Path) -> None:
    fill(
        {
            ".gitignore": "*.log\nbuild/\n/top.txt\n",
            "a.txt": "needle",
            "a.log": "needle",
            "top.txt": "needle",
            "sub/top.txt": "needle",
            "sub/.gitignore": "!kept.log\nprivate\n",
            "sub/kept.log": "needle",
            "sub/private": "needle",
            "build/out.txt": "needle",
            ".git/config": "needle",
            "node_modules/m/index.js": "needle",
            "sub/node_modules/m/index.js": "needle",
        }
    )
    (root / "binary").write_bytes(b"needle\0")
    result = await workshop.run(Grep(), pattern="needle$")
    assert result.output == "a.txt:1:needle\nsub/kept.log:1:needle\nsub/top.txt:1:needle\n"


async def test_ignored_folder_is_searched_when_asked_for_by_name(workshop: Workshop, fill: Fill) -> None:
    fill({".gitignore": "build/\n*.log\n", "build/a.log": "needle", "node_modules/m/a.js": "needle"})
    assert (await workshop.run(Grep(), pattern="needle", path="build")).output == "build/a.log:1:needle\n"
    assert (
        await workshop.run(Grep(), pattern="needle", path="node_modules")
    ).output == "node_modules/m/a.js:1:needle\n"


async def test_links_and_pipes_are_not_followed(workshop: Workshop, fill: Fill, root: Path) -> None:
    fill({"a/x.txt": "needle"})
    (root / "out").symlink_to("../outside")
    (root / "file").symlink_to("../outside/secret.txt")
    (root / "circle").symlink_to(".")
    os.mkfifo(root / "pipe")
    assert (await workshop.run(Grep(), pattern="needle|secret")).output == "a/x.txt:1:needle\n"
    assert (await workshop.run(Glob(), pattern="**/*.txt")).output == "a/x.txt\n"
    assert (await workshop.run(Grep(), pattern="secret", path="out")).error_code == "forbidden"
    assert (await workshop.run(Glob(), pattern="out/*")).error_code == "forbidden"


async def test_pattern_that_never_ends_is_stopped(
    workshop: Workshop, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill({"a.txt": "a" * 5000 + "!"})
    monkeypatch.setattr(grep_tool, "SEARCH_LIMIT_S", 1.0)
    result = await workshop.run(Grep(), pattern="(a+)+$")
    assert (result.ok, result.error_code) == (False, "timed_out")


async def test_pattern_that_is_none_is_explained(workshop: Workshop) -> None:
    result = await workshop.run(Grep(), pattern="(")
    assert (result.ok, result.error_code) == (False, "invalid")
    assert "The pattern is no regular expression: missing )" in (result.error or "")


async def test_missing_path_is_explained(workshop: Workshop) -> None:
    result = await workshop.run(Grep(), pattern="a", path="gone")
    assert (result.ok, result.error) == (False, "gone does not exist. Use list to see what is there.")


async def test_very_many_matches_are_cut(workshop: Workshop, fill: Fill) -> None:
    fill({"a.txt": "needle\n" * (FOUND_LIMIT + 1), "packed.js": "x" * 5000 + "needle"})
    result = await workshop.run(Grep(), pattern="needle")
    *lines, note = result.output.splitlines()
    assert (len(lines), note) == (FOUND_LIMIT, "[… more than 1,000 found; ask more narrowly …]")
    long_line = await workshop.run(Grep(), pattern="needle", path="packed.js")
    assert long_line.output == f"packed.js:1:{'x' * 500} [… line cut …]\n"


async def test_secret_in_a_match_is_redacted(workshop: Workshop, fill: Fill) -> None:
    fill({".env": "TOKEN=correct-horse-battery\n"})
    assert (await workshop.run(Grep(), pattern="TOKEN")).output == ".env:1:TOKEN=[redacted SERVICE_TOKEN]\n"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", "setup.py\n"),
        ("**/*.py", "setup.py\nsrc/a.py\nsrc/deep/er/b.py\n"),
        ("src/**", "src/a.py\nsrc/a.ts\nsrc/deep/er/b.py\n"),
        ("src/*.{py,ts}", "src/a.py\nsrc/a.ts\n"),
        ("src/**/er/*", "src/deep/er/b.py\n"),
        ("./src/?.py", "src/a.py\n"),
        ("src/[a-c].py", "src/a.py\n"),
        ("setup.py", "setup.py\n"),
        ("{root}/src/*.py", "src/a.py\n"),
        ("**/.hidden", ".hidden\n"),
        ("*.rs", "[nothing found]"),
    ],
)
async def test_glob_finds_files_by_the_shape_of_their_path(
    pattern: str, found: str, workshop: Workshop, fill: Fill, root: Path
) -> None:
    fill({"setup.py": "", "src/a.py": "", "src/a.ts": "", "src/deep/er/b.py": "", ".hidden": "", ".git/x.py": ""})
    result = await workshop.run(Glob(), pattern=pattern.replace("{root}", str(root)))
    assert (result.ok, result.output) == (True, found)


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "/*", "a/../../*"])
async def test_glob_outside_the_root_is_refused(pattern: str, workshop: Workshop, root: Path) -> None:
    (root / "a").mkdir()
    assert (await workshop.run(Glob(), pattern=pattern)).error_code == "forbidden"
    refused = Glob().propose({"pattern": pattern}, root)
    assert isinstance(refused, ToolResult)


@pytest.mark.parametrize(
    ("names", "wanted", "matched"),
    [
        ("a/b", "**", True),
        ("a/b", "**/**", True),
        ("a", "**/a", True),
        ("a/b/c", "a/**/c", True),
        ("a/c", "a/**/c", True),
        ("a/b/c", "a/*/c", True),
        ("a/b/b/c", "a/*/c", False),
        ("b/c", "a/**", False),
        ("a", "a/b", False),
    ],
)
def test_two_stars_stand_for_any_number_of_folders(names: str, wanted: str, matched: bool) -> None:
    assert matches(names.split("/"), wanted.split("/")) is matched


def test_braces_are_spelled_out_and_bounded() -> None:
    assert sorted(alternatives("{a,b}/{c,d}.{e}")) == ["a/c.{e}", "a/d.{e}", "b/c.{e}", "b/d.{e}"]
    assert len(alternatives("{a,b}" * 30)) <= 64


def test_proposals_only_read(workshop: Workshop) -> None:
    grep = workshop.propose(Grep(), pattern="a\u202eb", path="./")
    assert (grep.title, grep.reads_only, grep.match) == ("Search . for a⟨202E⟩b", True, ".")
    assert workshop.propose(Glob(), pattern="src/**/*.py").title == "Find src/**/*.py"
