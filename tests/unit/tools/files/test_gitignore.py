"""The matcher of `.gitignore` patterns: the same verdicts as git's own, and a budget that ends it."""

import subprocess
from pathlib import Path

import pytest

from palaver.tools.files.gitignore import IGNORE_BYTES, RULE_LIMIT, Budget, IgnoreRules

RULES = [
    "*.log",
    "build/",
    "/top.txt",
    "docs/*.html",
    "a/**/z",
    "**/deep",
    "logs/**",
    "!keep.log",
    "*.log\n!keep.log",
    "!keep.log\n*.log",
    "f?o",
    "[abc].txt",
    "[!abc].txt",
    "[^abc].txt",
    "[a-c].txt",
    "[]].txt",
    "[]-].txt",
    "[[:digit:]]*",
    "[[:alpha:]][[:digit:]]",
    "[[:nonsense:]]",
    "[z-a].txt",
    "[a",
    "\\#hash",
    "#comment",
    "\\!bang",
    "trailing ",
    "trailing\\ ",
    "star\\*",
    "a*b*c",
    "*a*",
    "**",
    "*",
    "**/",
    "/**",
    "a**b",
    "foo/",
    "/foo/bar",
    "foo/bar",
    "foo//bar",
    "/",
    "",
    "   ",
    "\ufeff*.log",
    "*.log\r\n",
    "a/b/**/c/**/d",
    "**/**/z",
    "*/z",
    "docs\\",
    "x\\y",
    "*.t[xq]t",
    "{a,b}",
    ".*",
    "dir*/file",
]
PATHS = [
    *("a.log", "keep.log", "logs/keep.log", "build/", "src/build/", "build", "top.txt", "src/top.txt", "docs/a.html"),
    *("docs/b/a.html", "a/z", "a/b/z", "a/b/c/z", "deep", "x/deep", "x/y/deep/", "logs/", "logs/a", "logs/a/b"),
    *("foo", "fo", "fooo", "a.txt", "b.txt", "d.txt", "].txt", "-.txt", "1", "12a", "a1", "ab", "#hash", "#comment"),
    *(
        "!bang",
        "trailing",
        "trailing ",
        "star*",
        "starx",
        "abc",
        "axbxc",
        "acb",
        "foo/",
        "foo/bar",
        "x/foo/bar",
        "foo/bar/",
    ),
    *(
        "a/b/c/d",
        "a/b/x/c/y/d",
        "xy",
        "x\\y",
        "docs",
        "b.tqt",
        "{a,b}",
        ".hidden",
        "dir1/file",
        "dir/x/file",
        "ü.log",
        "[a",
    ),
]

SLASH_COUNTS = ("logs/**", "   ")
"""For these `check-ignore` takes the slash that it was given for a part of the name; git's own walk gives it none."""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(folder)], check=True, capture_output=True)
    return folder


def verdicts_of_git(repository: Path) -> dict[str, bool | None]:
    """Of the rule that decides about each path, if any does."""
    command = ["git", "-C", str(repository), "-c", "core.excludesFile=", "check-ignore", "-v", "-n", "--no-index", "-z"]
    asked = "\0".join(PATHS).encode()
    said = (
        subprocess.run([*command, "--stdin"], input=asked, capture_output=True, check=False).stdout.decode().split("\0")
    )
    rows = zip(said[0::4], said[2::4], said[3::4], strict=False)
    return {path: None if not source else not pattern.startswith("!") for source, pattern, path in rows}


@pytest.mark.parametrize("rules", RULES)
def test_verdicts_are_those_of_git(repository: Path, rules: str) -> None:
    (repository / ".gitignore").write_text(rules, encoding="utf-8", newline="")
    ours, verdicts = IgnoreRules(rules), verdicts_of_git(repository)
    assert len(verdicts) == len(PATHS)
    for path in PATHS:
        if rules in SLASH_COUNTS and path.endswith("/"):
            continue
        # What lies in an ignored folder is ignored with it, which git says at once and we are asked one by one.
        names = path.rstrip("/").split("/")
        above = ["/".join(names[:count]) + "/" for count in range(1, len(names))]
        found = next((True for folder in above if ours.verdict(folder)), None) or ours.verdict(path)
        assert found == verdicts[path], f"{rules!r} and {path!r}"


def test_spent_budget_ignores_nothing_more() -> None:
    budget = Budget(10_000)
    rules = IgnoreRules("*.log", budget)
    verdicts = [rules.verdict("a.log") for _ in range(100)]
    assert verdicts[0] is True
    assert verdicts[-1] is None


def test_file_beyond_the_bounds_has_no_rules_beyond_them() -> None:
    assert IgnoreRules("*.log\n" + "#" * IGNORE_BYTES).verdict("a.log") is None
    many = IgnoreRules("\n" * RULE_LIMIT + "*.log")
    assert many.verdict("a.log") is None


@pytest.mark.parametrize("pattern", ["a*" * 200 + "b", "*?" * 200 + "b", "**/a/" * 90 + "b", "*" + "a" * 250 + "b"])
def test_pattern_that_backtracks_elsewhere_takes_few_steps(pattern: str) -> None:
    budget = Budget(5_000_000)
    assert IgnoreRules(pattern, budget).verdict("a/" * 50 + "a" * 250) is None
    assert budget.spend(0), "It came to its end, not to that of its budget."
