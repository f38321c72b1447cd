"""`palaver` itself: quick to answer, helpful when mistyped. In processes of their own, where imports can be counted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("aiohttp", "asyncio", "litestar", "msgspec", "rich", "textual", "apsw")
COUNTED = f"""
import atexit, sys
atexit.register(lambda: print("LOADED", *[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr))
from palaver.cli.main import main
main()
"""


def palaver(tmp_path: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", COUNTED, *arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PALAVER_DATA": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )


def loaded(process: subprocess.CompletedProcess[str]) -> list[str]:
    return process.stderr.splitlines()[-1].split()[1:]


def test_help_names_every_command_and_loads_nothing_heavy(tmp_path: Path) -> None:
    shown = palaver(tmp_path, "--help")
    assert shown.returncode == 0
    for word in ("serve", "tui", "send", "requests", "completion"):
        assert f"  {word}" in shown.stdout
    assert loaded(shown) == []


def test_palaver_alone_where_nobody_sits_is_its_help(tmp_path: Path) -> None:
    assert palaver(tmp_path).stdout == palaver(tmp_path, "--help").stdout


@pytest.mark.parametrize(
    "command", ["send", "list", "show", "tail", "search", "branch", "requests", "backends", "export"]
)
def test_help_of_a_command_waits_for_no_client(tmp_path: Path, command: str) -> None:
    shown = palaver(tmp_path, command, "--help")
    assert (shown.returncode, "Examples:" in shown.stdout) == (0, True)
    assert set(loaded(shown)) <= {"msgspec"}


def test_mistyped_command_and_option_are_told_what_was_meant(tmp_path: Path) -> None:
    command, option = palaver(tmp_path, "serach"), palaver(tmp_path, "list", "--jsn")
    assert (command.returncode, option.returncode) == (2, 2)
    assert "Did you mean 'search'" in command.stderr
    assert "--json" in option.stderr


def test_version_is_told(tmp_path: Path) -> None:
    assert palaver(tmp_path, "--version").stdout.startswith("palaver 0.")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_printed_for_each_shell(tmp_path: Path, shell: str) -> None:
    shown = palaver(tmp_path, "completion", shell)
    assert shown.returncode == 0
    assert "_PALAVER_COMPLETE" in shown.stdout


def completed(tmp_path: Path, line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    words = line.split(" ")
    where = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_PALAVER_COMPLETE": "complete_bash"}
    return palaver(tmp_path, **where, **environment)


def test_commands_options_and_choices_are_completed_without_a_client(tmp_path: Path) -> None:
    commands, options = completed(tmp_path, "palaver se"), completed(tmp_path, "palaver send --no")
    choices = completed(tmp_path, "palaver export -f j")
    assert commands.stdout.split() == ["send", "search", "serve"]
    assert options.stdout.split() == ["--no-wait"]
    assert choices.stdout.split() == ["jsonl"]
    assert "aiohttp" not in loaded(commands) + loaded(options) + loaded(choices)


def test_completion_without_a_server_offers_nothing_and_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("x" * 43)
    nobody = completed(tmp_path, "palaver send --agent ", PALAVER_URL="http://127.0.0.1:9")
    stranger = completed(tmp_path / "nowhere", "palaver requests answer ")
    for found in (nobody, stranger):
        assert (found.returncode, found.stdout.strip()) == (0, "")
        assert found.stderr.startswith("LOADED")
