"""The documentation says nothing that is not there: links, anchors, pictures and commands."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from palaver.cli.commands import COMMANDS, LazyCommand

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELLS = ("sh", "shell", "bash", "console")

_MARKDOWN = MarkdownIt("gfm-like", {"linkify": False})
_HTML_SOURCE = re.compile(r"""<(?:img|source|a)\b[^>]*?\b(?:src|srcset|href)="([^"]+)\"""")
_CALL = re.compile(r"(?<![\w./@'-])(?:\S*/bin/)?palaver ([a-z][^|;&#)`$\n]*)")
"""`palaver` as a command with words after it, up to where the shell would end the command."""


def tokens(page: Path) -> Iterator[Token]:
    for token in _MARKDOWN.parse(page.read_text()):
        yield token
        yield from token.children or ()


def links(page: Path) -> Iterator[str]:
    """Whatever a page points to, in Markdown or in HTML."""
    for token in tokens(page):
        if token.type in ("html_block", "html_inline"):
            yield from _HTML_SOURCE.findall(token.content)
        target = token.attrGet("href") or token.attrGet("src")
        if token.type in ("link_open", "image") and target:
            yield str(target)


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, made as code forges make them."""
    found: set[str] = set()
    parsed = _MARKDOWN.parse(page.read_text())
    for opening, inline in pairwise(parsed):
        if opening.type != "heading_open":
            continue
        said = "".join(part.content for part in inline.children or () if part.type in ("text", "code_inline"))
        name = re.sub(r"[^\w\- ]", "", said.lower()).replace(" ", "-")
        again = sum(1 for known in found if known == name or re.fullmatch(rf"{re.escape(name)}-\d+", known))
        found.add(f"{name}-{again}" if again else name)
    return found


def broken(page: Path) -> Iterator[str]:
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or ROOT not in (target, *target.parents):
            yield f"{link}: there is no such file"
        elif anchor and anchor not in anchors(target):
            yield f"{link}: {target.name} has no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_points_only_to_what_exists(page: Path) -> None:
    assert not list(broken(page))


def said_commands(page: Path) -> Iterator[list[str]]:
    """The words of each call of `palaver`, in blocks of shell lines and in code within sentences."""
    for token in tokens(page):
        in_block = token.type == "fence" and token.info.split(" ")[0] in ("", *SHELLS)
        if in_block or token.type == "code_inline":
            lines = token.content.replace("\\\n", " ")
            yield from (match[1].split() for match in _CALL.finditer(lines))


def wrong(words: list[str]) -> str | None:
    """What is wrong with a call: an unknown command, subcommand or option."""
    if words[0] not in COMMANDS:
        return f"palaver {words[0]}: no such command"
    command = LazyCommand(words[0], COMMANDS[words[0]]).load()
    below = getattr(command, "commands", {})
    called = words[:1]
    if below and len(words) > 1 and words[1].islower() and words[1].isalpha():
        if words[1] not in below:
            return f"palaver {words[0]} {words[1]}: no such command"
        command, called = below[words[1]], words[:2]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    options = [
        option
        for word in words
        if (option := word.partition("=")[0].strip("[]…")).startswith("-") and option[1:2].strip("0123456789")
    ]
    unknown = [option for option in options if option not in known | {"--help"}]
    return f"palaver {' '.join(called)}: no option {', '.join(unknown)}" if unknown else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_names_only_commands_and_options_that_exist(page: Path) -> None:
    assert [found for words in said_commands(page) if (found := wrong(words))] == []


def test_check_of_commands_sees_what_is_wrong() -> None:
    assert wrong(["serve", "--port", "1"]) is None
    assert wrong(["token", "create", "--role", "human"]) is None
    assert wrong(["serv"])
    assert wrong(["serve", "--pot", "1"])
    assert wrong(["token", "make"])


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs/README.md"
    listed = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    decisions = ROOT / "docs/decisions"
    missing = [page for page in (ROOT / "docs").rglob("*.md") if page not in listed and decisions not in page.parents]
    assert missing in ([], [index])


def test_every_picture_is_shown_somewhere() -> None:
    shown = {(page.parent / unquote(link)).resolve() for page in PAGES for link in links(page)}
    pictures = [path for path in (ROOT / "docs/pictures").rglob("*") if path.is_file()]
    assert [path.name for path in pictures if path.resolve() not in shown] == []


def threat_rows() -> list[list[str]]:
    """The cells of each row of the threat model: attacker, attack, defence, tests."""
    model = (ROOT / "docs/security.md").read_text().partition("## Threat model")[2]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in model.splitlines() if line[:1] == "|"]
    return rows[2:]


def test_every_row_of_the_threat_model_has_a_defence_and_a_test_that_exists() -> None:
    there = {path.stem for path in (ROOT / "tests").rglob("test_*.py") if "node_modules" not in path.parts}
    for row in threat_rows():
        assert len(row) == 4, row
        assert row[1], row
        assert row[2], row
        tests = re.findall(r"`(test_\w+)`", row[3])
        assert tests, row
        assert set(tests) <= there, row


def test_threat_model_names_every_file_of_attacks() -> None:
    named = {test for row in threat_rows() for test in re.findall(r"`(test_\w+)`", row[3])}
    assert {path.stem for path in (ROOT / "tests/attacks").glob("test_*.py")} <= named
