"""The tool `shell`, over real processes."""

import asyncio
import os
import secrets
from pathlib import Path

import pytest

from palaver.tools.base import Stream, ToolResult, Workplace
from palaver.tools.output import INLINE_BYTES
from palaver.tools.shell.sandbox import Sandbox, unsandboxed
from palaver.tools.shell.shell import Shell, only_reads
from tests.provider.programs import programs_outside
from tests.unit.tools.workshop import Workshop, processes_with

pytestmark = pytest.mark.anyio

LIMIT_S = 20.0


async def test_command_runs_in_the_root_and_is_shown_live(workshop: Workshop, root: Path) -> None:
    result = await workshop.run(Shell(), command="pwd; echo oops >&2")
    assert (result.ok, result.exit_code, result.error) == (True, 0, None)
    assert sorted(result.output.splitlines()) == sorted([str(root), "oops"])
    assert sorted(workshop.said) == sorted([(f"{root}\n", "stdout"), ("oops\n", "stderr")])


async def test_exit_code_is_in_the_result_together_with_the_output(workshop: Workshop) -> None:
    result = await workshop.run(Shell(), command="echo broken; exit 3")
    assert (result.ok, result.exit_code, result.output) == (False, 3, "broken\n")
    assert (result.error_code, result.error) == ("exit_code", "The command ended with exit code 3.")


async def test_command_ended_by_a_signal_says_which(workshop: Workshop) -> None:
    result = await workshop.run(Shell(), command="kill -SEGV $$")
    assert (result.exit_code, result.error) == (-11, "The command was ended by SIGSEGV.")


async def test_environment_holds_no_secret_and_nothing_of_ours(workshop: Workshop) -> None:
    workshop.environment |= {"OPENAI_API_KEY": "sk-0123456789", "PALAVER_DATA": "/data", "LC_ALL": "C"}
    result = await workshop.run(Shell(), command="env | cut -d= -f1 | sort | grep -v ^PALAVER_RUN$")
    names = set(result.output.split())
    assert names == {
        "GIT_PAGER",
        "GIT_TERMINAL_PROMPT",
        "HOME",
        "LANG",
        "LC_ALL",
        "PAGER",
        "PATH",
        "PWD",
        "SHLVL",
        "TERM",
        "_",
    }


async def test_secret_printed_by_a_command_is_redacted(workshop: Workshop) -> None:
    result = await workshop.run(Shell(), command="printf correct-horse; sleep 0.05; printf -- -battery")
    assert result.output == "[redacted SERVICE_TOKEN]"
    assert "".join(text for text, _ in workshop.said) == result.output


async def test_command_reads_end_of_file(workshop: Workshop) -> None:
    assert (await workshop.run(Shell(), command="cat; echo done")).output == "done\n"


async def test_long_output_is_cut_and_spilled(workshop: Workshop) -> None:
    result = await workshop.run(Shell(), command="seq 100000")
    whole = "".join(f"{number}\n" for number in range(1, 100_001)).encode()
    assert (result.ok, result.truncated, result.total_lines, result.total_bytes) == (True, True, 100_000, len(whole))
    assert len(result.output.encode()) <= INLINE_BYTES
    assert result.output.startswith("1\n2\n")
    assert result.output.endswith("99999\n100000\n")
    assert workshop.blobs == [whole]


async def test_command_that_takes_too_long_is_stopped_with_all_it_started(workshop: Workshop) -> None:
    tag = f"86{secrets.randbelow(10**9)}"
    command = f"echo begun; (setsid sleep {tag} &) ; trap '' TERM INT; sleep {tag}; sleep {tag}"
    async with asyncio.timeout(LIMIT_S):
        result = await workshop.run(Shell(), command=command, timeout_s=0.3)
    assert (result.ok, result.error_code, result.output) == (False, "timed_out", "begun\n")
    assert "stopped after 0.3 s" in (result.error or "")
    assert processes_with(tag) == []


async def test_background_process_is_stopped_and_said_to_be(workshop: Workshop) -> None:
    tag = f"86{secrets.randbelow(10**9)}"
    async with asyncio.timeout(LIMIT_S):
        result = await workshop.run(Shell(), command=f"nohup sleep {tag} >/dev/null 2>&1 & echo started")
    assert result.output == "started\n\n[1 processes left in the background were stopped]\n"
    assert processes_with(tag) == []


async def test_cancelled_command_ends_with_everything_it_started(root: Path) -> None:
    tag = f"86{secrets.randbelow(10**9)}"
    begun = asyncio.Event()

    async def heard(text: str, stream: Stream) -> None:
        begun.set()

    async def never(data: bytes, mime: str) -> None:
        raise AssertionError("nothing to spill")

    environment = {"PATH": os.environ["PATH"]}
    place = Workplace(root, heard, never, programs_outside(root), environment=environment)  # type: ignore[arg-type]
    command = f"trap '' TERM INT; (setsid sleep {tag} &); echo begun; sleep {tag}"
    task = asyncio.create_task(Shell().run({"command": command}, place))
    async with asyncio.timeout(LIMIT_S):
        await begun.wait()
        assert processes_with(tag)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert processes_with(tag) == []


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"command": ""},
        {"command": "a\0b"},
        {"command": "x" * 200_000},
        {"command": "ls", "timeout_s": 0},
        {"command": "ls", "timeout_s": 4000},
        {"command": ["ls"]},
    ],
)
async def test_call_that_makes_no_sense_is_a_result(arguments: dict[str, object], workshop: Workshop) -> None:
    result = await Shell().run(arguments, workshop.place)
    assert (result.ok, result.error_code) == (False, "invalid")
    assert isinstance(Shell().propose(arguments, workshop.root), ToolResult)


async def test_missing_shell_says_so(workshop: Workshop) -> None:
    result = await workshop.run(Shell(program="/no/such/shell"), command="make")
    assert (result.ok, result.error_code) == (False, "not_installed")


def test_proposal_shows_the_command_with_nothing_hidden(workshop: Workshop) -> None:
    proposal = workshop.propose(Shell(), command="echo safe\u202e\x1b[2K\nrm -rf .")
    assert proposal.title == "Run echo safe⟨202E⟩␛[2K …"
    assert proposal.preview == "echo safe⟨202E⟩␛[2K\nrm -rf ."
    assert (proposal.match, proposal.reads_only) == ("echo safe\u202e\x1b[2K\nrm -rf .", False)


def test_proposal_is_bound_to_command_and_folder(workshop: Workshop, root: Path) -> None:
    first = workshop.propose(Shell(), command="make")
    assert workshop.propose(Shell(), command="make").hash == first.hash
    assert workshop.propose(Shell(), command="make ").hash != first.hash
    assert workshop.propose(Shell(), command="make", timeout_s=5).hash != first.hash
    elsewhere = Shell().propose({"command": "make"}, root.parent)
    assert not isinstance(elsewhere, ToolResult)
    assert elsewhere.hash != first.hash


def test_reading_command_says_so_in_its_proposal(workshop: Workshop) -> None:
    assert workshop.propose(Shell(), command="ls -la").reads_only
    assert not workshop.propose(Shell(), command="ls -la; make").reads_only


def test_reading_through_a_link_to_the_outside_is_asked_about(root: Path) -> None:
    (root / "out").symlink_to("../outside")
    (root / "in").mkdir()
    assert only_reads("ls in", root, unsandboxed())
    assert not only_reads("ls out", root, unsandboxed())
    assert not only_reads("cat out/secret.txt", root, unsandboxed())


def test_git_is_asked_about_where_its_configuration_may_run_something(root: Path) -> None:
    sandboxed = Sandbox("landlock")
    assert not only_reads("git status", root, sandboxed)
    (root / ".git").mkdir()
    (root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git/config").write_text("[core]\n\tbare = false\n")
    assert only_reads("git status", root, sandboxed)
    assert not only_reads("git status", root, unsandboxed())
    (root / ".git/config").write_text("[core]\n\tfsmonitor = ./run-me\n")
    assert not only_reads("git status", root, sandboxed)
    assert only_reads("ls", root, sandboxed)


async def test_reading_command_runs_no_program_from_the_project(workshop: Workshop, root: Path) -> None:
    (root / "bin").mkdir()
    (root / "bin/ls").write_text("#!/bin/sh\necho fooled\n")
    (root / "bin/ls").chmod(0o755)
    workshop.environment["PATH"] = f"{root}/bin:./bin:" + workshop.environment["PATH"]
    assert (await workshop.run(Shell(), command="ls")).output == "bin\n"
    assert (await workshop.run(Shell(), command="ls; true")).output == "fooled\n"


async def test_what_a_command_did_to_files_comes_with_its_result(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    shell = Shell()
    await shop.run(shell, command="git init -q && echo one > a.txt")

    changed = await shop.run(shell, command="echo two >> a.txt; rm -rf nothing")
    read = await shop.run(shell, command="cat a.txt")

    assert [(file.path, file.kind, file.additions) for file in changed.changes] == [("a.txt", "modified", 1)]
    assert read.changes == ()
