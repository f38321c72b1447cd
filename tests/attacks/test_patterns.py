"""Regular expressions: none of the package needs more than a little more work for a text four times as long.

Every compiled pattern that a module holds is pumped with pieces that patterns repeat, each alone and with an end that does not
match. What counts is how the work grows from one text to one four times as long, measured in one go; a pattern that is quick
enough not to be measurable passes.
"""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from time import thread_time_ns
from typing import Any

import pytest

import palaver

SIZES = (16, 24, 32, 64, 256, 1_024, 4_096)
"""An exponential pattern shows itself at the first, a cubic one in the middle, a quadratic one at the last."""
MEASURABLE_NS = 4_000_000
GROWTH = 9.0
"""From one size to the next: linear work grows by 4, quadratic by 16."""
TRIES = 5

PIECES = (
    *(
        "a",
        "A",
        "0",
        "é",
        "*",
        "**",
        "_",
        "`",
        "``",
        "[",
        "](",
        "![",
        "[]",
        "(",
        ")",
        "<",
        ">",
        "-",
        "|",
        "#",
        "\\",
        ".",
        ":",
    ),
    *(
        "/",
        "://",
        "@",
        "=",
        "%",
        "{",
        "}",
        "+",
        "~",
        "$",
        "&",
        "'",
        '"',
        "!",
        "^",
        ",",
        ";",
        "a:",
        "a.",
        ".a",
        "a ",
        " a",
        "a-",
    ),
    *(
        " ",
        "\n",
        "\t",
        "\r",
        "\n ",
        " \n",
        "\n\n",
        "\n\t",
        "- ",
        "# ",
        "> ",
        "1. ",
        "\n- ",
        "a\n",
        "\n`",
        "`\n",
        "```\n",
    ),
    *(
        "-a",
        "0.",
        "a@",
        "a,",
        "0,",
        "x=",
        "A_",
        "A-",
        "a/",
        "*a ",
        "_a",
        "`a",
        "a`",
        "[a",
        "[a](",
        "~~~\n",
        "@a ",
        "/plan ",
    ),
    *("<!-- ", "<a", "</", "<meta ", "<|", "<s>", "[^", "]:", "&#", "\\u", '\\"', "\x1b[", "\x1b]", "\x1b[0", "\u200b"),
    *("<system-reminder>", "<command-name>", "<command-args>", "<html", "Wall time: \n", "Chunk ID: \nWall time: \n"),
    *(
        "sk-",
        "token",
        "password=",
        "secret",
        "api_key",
        "key: ",
        '"key": ',
        "Bearer ",
        "bearer  ",
        "eyJ",
        "eyJa.",
        "\ufe0f",
    ),
    *("-----BEGIN PRIVATE KEY-----", "@@ -1 +1 @@\n", "--- \n+++ ", "data:image/png;base64,", "https://", "http://a:"),
)
ENDS = ("", "!", "\n")
AT_THE_BEGINNING = {"tools.shell.command_line._ASSIGNMENT"}
"""Patterns that are only ever matched at the beginning of a word: they are not searched for."""


def patterns() -> Iterator[Any]:
    found: dict[tuple[object, int], Any] = {}
    for module in pkgutil.walk_packages(palaver.__path__, "palaver."):
        if module.name.endswith("__main__"):
            continue
        try:
            holder = importlib.import_module(module.name)
        except ImportError:
            continue  # What an extra needs is not installed.
        for name, value in vars(holder).items():
            for one in _patterns_in(value, 2):
                label = f"{module.name.removeprefix('palaver.')}.{name}"
                runs = (match_all,) if label in AT_THE_BEGINNING else (search_all, match_all)
                found.setdefault((one.pattern, one.flags), pytest.param(one, runs, id=label))
    assert len(found) > 150
    yield from found.values()


def _patterns_in(value: object, depth: int) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, (list, tuple, dict, set, frozenset)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _patterns_in(inner, depth - 1)
    elif depth and hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for name in value.__dataclass_fields__:
            yield from _patterns_in(getattr(value, name, None), depth - 1)


def work_ns(run: Callable[[], object], tries: int = 1) -> int:
    """The least of some measurements of this thread's own time."""
    found: list[int] = []
    for _ in range(tries):
        start = thread_time_ns()
        run()
        found.append(thread_time_ns() - start)
    return min(found)


def grows_too_fast(run: Callable[[str], object], piece: str, end: str) -> bool:
    texts = [piece * (size // len(piece) or 1) + end for size in SIZES]
    for shorter, longer in pairwise(texts):
        if work_ns(lambda text=longer: run(text)) > MEASURABLE_NS:  # type: ignore[misc]
            small = max(work_ns(lambda text=shorter: run(text), TRIES), 1)  # type: ignore[misc]
            large = work_ns(lambda text=longer: run(text), TRIES)  # type: ignore[misc]
            return large > MEASURABLE_NS and large / small > GROWTH * len(longer) / len(shorter) / 4
    return False


Run = Callable[[re.Pattern[Any], str], None]


def search_all(pattern: re.Pattern[Any], text: str) -> None:
    for _ in pattern.finditer(text if isinstance(pattern.pattern, str) else text.encode()):
        pass


def match_all(pattern: re.Pattern[Any], text: str) -> None:
    pattern.fullmatch(text if isinstance(pattern.pattern, str) else text.encode())


@pytest.mark.parametrize(("pattern", "runs"), list(patterns()))
def test_pattern_needs_little_more_work_for_a_longer_text(pattern: re.Pattern[Any], runs: Sequence[Run]) -> None:
    for piece in PIECES:
        for end in ENDS:
            for run in runs:
                found = grows_too_fast(lambda text, run=run: run(pattern, text), piece, end)  # type: ignore[misc]
                assert not found, f"{run.__name__} on {piece!r} again and again, then {end!r}"


@pytest.mark.parametrize(
    ("pattern", "piece", "end"),
    [(r"(a+)+$", "a", "!"), (r"^[ |:-]*-{3,}[ |:-]*$", "-", "!"), (r"\s*/plan", " ", ""), (r"(`+)(.+?)\1", "`", "!")],
)
def test_bad_pattern_is_found(pattern: str, piece: str, end: str) -> None:
    compiled = re.compile(pattern)
    assert grows_too_fast(lambda text: search_all(compiled, text), piece, end)
