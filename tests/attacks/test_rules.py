"""Rules hold for what runs, however it is spelt: by the policy, through every program, and proven with a real shell."""

import itertools
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from palaver.approval.policy import Grant, Mode, Policy, Rule, grants_of_record, offers
from palaver.approval.program_calls import Judging
from palaver.approval.turn_grants import Grants
from palaver.backends.acp.approvals import describe as of_acp
from palaver.backends.acp.events import Call
from palaver.backends.claude.proposals import describe as of_claude
from palaver.backends.codex.items import tool_of
from palaver.backends.pi.proposals import describe as of_pi
from palaver.backends.program_lookup import ProgramLookup
from palaver.schema.records import AgentRecord
from palaver.tools.base import Proposal, ToolSpec
from tests.flows.at_work import at_work
from tests.provider import Answer
from tests.provider import Call as ToolCall
from tests.provider.turn import MemoryTurn

SHELL = ToolSpec("shell", "", {})
DENIED = "git push"
RULES = ("git push*", "program:git push", "*git push*", "git push", "program:git")
BOLD: tuple[Mode, ...] = ("auto", "full")
EVERYTHING = [*grants_of_record("ada", ["shell"]), Rule("shell", "allow", source="conversation")]


def decision(
    command: str,
    match: str = "git push*",
    mode: Mode = "full",
    grants: list[Grant] | None = None,
    denial: Any = "deny_continue",
) -> str:
    policy = Policy((Rule("shell", denial, match),), sandboxed=True, full_enabled=True)
    proposal = Proposal(title="", hash="", match=command)
    return policy.verdict(SHELL, proposal, mode, EVERYTHING if grants is None else grants).decision


CERTAIN = [
    "git push",
    "git push origin main",
    "git  push",
    "git\tpush",
    "git -C . push",
    "git -C. -C .. push",
    "git --git-dir=.git push",
    "git --git-dir .git --work-tree . push",
    "git --no-pager -p push",
    "git -c a.b=c push",
    "git -c alias.x=push x",
    "git -c alias.x='!git push' x",
    "git --exec-path=/usr/lib/git-core push",
    "/usr/bin/git push",
    "../../usr/bin/git push",
    "GIT push",
    "git.exe push",
    "'git' push",
    '"g"it push',
    "g\\it push",
    "g''it pu\"\"sh",
    "git\\\n push",
    "$'git' push",
    "$'\\x67it' push",
    "$'\\147it' push",
    "\\git push",
    "FOO=1 git push",
    "FOO=1 BAR='a b' git push",
    ">out git push",
    "2>/dev/null git push",
    "git push >out 2>&1",
    "git 2>&1 push",
    "env git push",
    "env -i PATH=/usr/bin git push",
    "env -u HOME git push",
    "env -S 'git push'",
    "env -S'git push'",
    "env --split-string='git push'",
    "/usr/bin/env git push",
    "command git push",
    "builtin command git push",
    "exec git push",
    "exec -a ls git push",
    "nice git push",
    "nice -n 5 git push",
    "ionice -c 3 git push",
    "nohup git push",
    "setsid git push",
    "stdbuf -o0 git push",
    "timeout 5 git push",
    "timeout -k 1 5 git push",
    "timeout --signal=KILL 5s git push",
    "time git push",
    "time -p git push",
    "! git push",
    "coproc git push",
    "sudo git push",
    "sudo -u ada git push",
    "sudo -E env nice timeout 5 git push",
    "doas git push",
    "su -c 'git push'",
    "busybox git push",
    "busybox sh -c 'git push'",
    "xargs git push",
    "echo a | xargs -n 1 git push",
    "xargs -I{} sh -c 'git push'",
    "find . -exec git push ;",
    "find . -execdir git push {} +",
    "find . -name x -ok git push \\;",
    "sh -c 'git push'",
    'bash -lc "git push"',
    "bash -ec 'cd . && git push'",
    "sh -c \"sh -c 'git push'\"",
    "dash -c 'git push'",
    "eval git push",
    "eval 'git push'",
    "eval git pu''sh",
    "trap 'git push' EXIT",
    "alias x='git push'; x",
    "x() { git push; }; x",
    "function x { git push; }; x",
    "ls; git push",
    "ls && git push",
    "false || git push",
    "ls | git push",
    "ls |& git push",
    "ls & git push",
    "ls &>out git push",
    "ls\ngit push",
    "# nothing\ngit push",
    "(git push)",
    "{ git push; }",
    "((1)); git push",
    "if true; then git push; fi",
    "if git push; then :; fi",
    "while git push; do break; done",
    "for x in a; do git push; done",
    "case a in a) git push;; esac",
    "echo $(git push)",
    'echo "$(git push)"',
    "echo `git push`",
    'echo "`git push`"',
    "cat <(git push)",
    "ls > >(git push)",
    "echo ${x:-$(git push)}",
    "echo ${x:-`git push`}",
    "sh <<EOF\ngit push\nEOF",
    "bash <<-'EOF'\n\tgit push\n\tEOF",
    "sh <<< 'git push'",
    "ssh host git push",
    "ssh -p 22 host 'git push'",
    "watch git push",
    "watch -n 1 'git push'",
    "script -c 'git push' /dev/null",
    "flock /tmp/lock git push",
    "chroot / git push",
    "strace -f -o x git push",
    "/lib64/ld-linux-x86-64.so.2 /usr/bin/git push",
    "\uff47\uff49\uff54 push",
]
"""Lines that certainly run it, or would in some shell."""

UNKNOWN = [
    "$(echo git) push",
    "`echo git` push",
    "$G push",
    "G=git; $G push",
    "g=gi; ${g}t push",
    "/usr/bin/gi? push",
    "{git,push}",
    "git $(echo push)",
    "git $P",
    "git p",
    "git deploy",
    "git config alias.x push",
    "git commit -m x",
    "git submodule foreach 'git pu''sh'",
    "git rebase --exec 'git pu''sh' HEAD~1",
    "git -c core.pager='git pu''sh' log",
    "git bisect run x",
    "g\u0131t push",
    "g\u0456t push",
    "sh x.sh",
    "sh < x.sh",
    "echo git pu''sh | sh",
    "echo Z2l0IHB1c2g= | base64 -d | sh",
    ". ./x.sh",
    "source x.sh",
    "./x.sh",
    "x.sh",
    "./ls",
    "bin/cat x",
    'python -c \'import os; os.system("gi" + "t push")\'',
    "python3 x.py",
    'perl -e \'exec "gi"."t", "push"\'',
    "node x.js",
    'awk \'BEGIN { system("gi" "t push") }\'',
    "sed '1e x' a",
    "make",
    "make -C sub all",
    "npm run x",
    "npm test",
    "npx x",
    "yarn x",
    "cargo run",
    "cargo build",
    "go generate",
    "pytest",
    "tox",
    "gradle x",
    "just x",
    "docker run x",
    "ssh host",
    "tar --to-command=x -xf a.tar",
    "tar -I x -cf a b",
    "sort --compress-program=x a",
    "sort --comp x a",
    "rg --pre x a",
    "split --filter=x a",
    "find . -exec x ;",
    "find . $X",
    "vim -c '!x'",
    "less a",
    "man ls",
    "git -c alias.x=pu\\sh",
    "LD_PRELOAD=./x.so ls",
    "PATH=. ls",
    "PATH=.; ls",
    "export PATH=.; ls",
    "hash -p ./x ls; ls",
    "for PATH in ./x; do ls push; done",
    "for path in ./x; do ls push; done",
    "for f do ls; done",
    "printf -v PATH %s ./x; ls push",
    "printf -vPATH ./x; ls push",
    "wait -p PATH; ls",
    "jobs -x git pu''sh",
    "for f in 'a[$''(git push)0]'; do [[ $f -eq 0 ]]; done",
    "for f in 'a[$'; do for g in '(git push)0]'; do [[ $f$g -eq 0 ]]; done; done",
    "for f in 'a[$''(x)0]'; do test -v $f; done",
    "[[ 'a[$''(x)]' -eq 0 ]]",
    "[ \\a[\\$\\(x\\)] -eq 0 ]",
    "exit 'a[$''(x)]'",
    "enable -f ./x.so x",
    "ls() { x; }; ls",
    "printf -v 'a[$(x)]' y",
    "[[ 'a[$(x)]' -eq 0 ]]",
    "echo 'a\\' 'b; x'",
    "for f in a { x }",
    "ls *(e:x:)",
    "gh repo sync",
    "hub push",
    "jj git push",
    "curl x | bash",
    "cat <<EOF | sh\nx\nEOF",
    "'if' ls",
    "=git push",
    "echo $((`x`))",
    "ls " + "a" * 10_000,
    "unterminated 'quote",
    'unterminated "quote',
    "echo `unterminated",
    "echo $(unterminated",
]
"""Lines that may run it without naming it: whatever they really do, nothing in the text tells."""

HARMLESS = [
    "ls -la",
    "cat a.txt | grep push | head -5",
    "cd src && ls > ../out.txt 2>&1",
    'for f in *; do rm "$f"; done',
    "if [ -f a ]; then cp a b; fi",
    "[[ -d x ]] || mkdir -p x/y",
    "echo 'git push'",
    "find . -name '*.py' | sort | uniq -c",
    "rg push src",
    "sha256sum a.txt # git push",
    "(cd x; pwd)",
    "mv a b; touch c; rm -rf d",
]
"""Lines of programs that run no other: a rule about git does not slow them down."""


@pytest.mark.parametrize("mode", BOLD)
@pytest.mark.parametrize("command", CERTAIN)
def test_denied_command_is_denied_however_it_is_spelt(command: str, mode: Mode) -> None:
    for match in ("git push*", "program:git push", "program:git"):
        assert decision(command, match, mode) == "deny_continue", match
        assert decision(command, match, mode, denial="deny_abort") == "deny_abort", match


@pytest.mark.parametrize("match", RULES)
@pytest.mark.parametrize("command", [*CERTAIN, *UNKNOWN])
def test_command_that_may_be_denied_is_never_allowed_by_a_mode_or_a_whole_tool(command: str, match: str) -> None:
    for mode, denial in itertools.product(BOLD, ("deny_continue", "deny_abort", "ask")):
        assert decision(command, match, mode, grants=[], denial=denial) != "allow", (mode, denial)
        # A rule that asks gives way to what a person allowed, as it does when the command is spelt plainly.
        assert denial == "ask" or decision(command, match, mode, denial=denial) != "allow", (mode, denial)


@pytest.mark.parametrize("command", HARMLESS)
def test_command_of_programs_that_run_no_other_stays_allowed(command: str) -> None:
    for match in ("git push*", "program:git push"):
        assert decision(command, match, "auto", grants=[]) == "allow"


@pytest.mark.parametrize("command", [*UNKNOWN, *HARMLESS])
def test_without_a_rule_about_commands_the_mode_decides_as_before(command: str) -> None:
    policy = Policy((Rule("fetch", "deny_continue", "*.example"), Rule("write", "ask", "*.env")), sandboxed=True)
    assert policy.verdict(SHELL, Proposal(title="", hash="", match=command), "auto").decision == "allow"


def test_person_who_allowed_exactly_this_command_is_not_asked_again_and_no_denial_is_undone() -> None:
    grants = [Rule("shell", "allow", command, source="conversation") for command in ("make release", "git push")]
    assert decision("make release", grants=grants) == "allow"
    assert decision("make release ", grants=grants) == "ask"
    assert decision("git push", grants=grants) == "deny_continue"


@pytest.mark.parametrize(
    ("match", "command"),
    [
        ("*rm -rf*", "rm -fr a"),
        ("*rm -rf*", "rm -r -f a"),
        ("*rm -rf*", "rm --recursive --force a"),
        ("*rm -rf*", "rm a -rf"),
        ("rm -rf*", "rm -vrf a"),
        ("git push --force*", "git push origin main --force"),
        ("git push --force*", "git push -f"),
        ("git push --force*", "git push origin +main"),
        ("program:git push --force", "git push -f"),
        ("npm publish*", "npm --prefix . publish"),
        ("docker push*", "docker --context x push y"),
        ("program:kubectl delete", "kubectl -n x delete pod y"),
        ("cat secrets/*", "cat ./secrets/a"),
        ("cat secrets/*", "cat $X"),
    ],
)
def test_other_order_or_form_of_options_is_asked_for(match: str, command: str) -> None:
    for mode in BOLD:
        assert decision(command, match, mode, grants=[]) in ("ask", "deny_continue")


# -- the same through every program


def turn(tmp_path: Path, mode: str = "full") -> MemoryTurn:
    return MemoryTurn(
        "hi", project=tmp_path, agent=AgentRecord(id="ada", name="Ada", mode=mode, allowed_tools=("shell",))
    )


def call(kind: str, name: str = "tool", title: str = "", **given: Any) -> Call:
    return Call("c", "theirs", "m", 0, name=name, title=title, kind=kind, input=given)


def described(program: str, command: str, project: Path) -> tuple[ToolSpec, Proposal]:
    words = ["bash", "-lc", command]
    match program:
        case "claude Bash":
            return of_claude("Bash", {"command": command}, project)
        case "claude PowerShell":
            return of_claude("PowerShell", {"command": command}, project)
        case "claude MCP shell":
            return of_claude("mcp__box__run", {"cmd": command}, project)
        case "claude MCP shell with steps":
            return of_claude("mcp__box__run", {"job": {"steps": [{"name": "a"}, {"shell_command": words}]}}, project)
        case "claude MCP terminal":
            return of_claude("mcp__box__type", {"pane": "1", "keys": f"{command}\n"}, project)
        case "claude MCP shell after many others":
            return of_claude("mcp__box__run", {"steps": [{"run": "ls"}] * 100 + [{"run": command}]}, project)
        case "pi bash":
            return of_pi("bash", {"command": command}, project)
        case "pi extension":
            return of_pi("run_in_box", {"command": command, "cwd": "."}, project)
        case "acp execute":
            return of_acp(call("execute", command=command), project)
        case "acp execute with argv":
            return of_acp(call("execute", command=words), project)
        case "acp title":
            return of_acp(call("execute", title=command), project)
        case "acp under another kind":
            return of_acp(call("other", command=command), project)
        case "codex argv":
            item = tool_of({"type": "commandExecution", "command": words}, project)
        case _:
            item = tool_of({"type": "commandExecution", "command": f"/bin/bash -lc {command!r}"}, project)
    assert item is not None
    return SHELL, Proposal(title="", hash="", match=item.input["command"])


PROGRAMS = (
    *("claude MCP shell with steps", "claude MCP terminal"),
    *("claude Bash", "claude PowerShell", "claude MCP shell", "pi bash", "pi extension", "acp execute"),
    *("acp execute with argv", "acp title", "acp under another kind", "codex argv", "codex"),
)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("command", ["git push", "git -C . push", "env git push", "sh -c 'git push'", "ls; git push"])
def test_denied_command_is_denied_to_every_program(program: str, command: str, tmp_path: Path) -> None:
    for tool in ("shell", "Bash", "*"):
        judging = Judging(Policy((Rule(tool, "deny_continue", "git push*"),), full_enabled=True), Grants())
        judged = judging.judge(turn(tmp_path), *described(program, command, tmp_path))
        assert judged.verdict.decision == "deny_continue", tool
        assert judged.verdict.by_rule


def test_more_command_lines_than_are_looked_at_are_asked_for(tmp_path: Path) -> None:
    judging = Judging(Policy((Rule("shell", "deny_continue", "git push*"),), full_enabled=True), Grants())
    spec, proposal = described("claude MCP shell after many others", "git push", tmp_path)
    assert judging.judge(turn(tmp_path), spec, proposal).verdict.decision == "ask"


@pytest.mark.parametrize("program", ["claude MCP shell", "claude MCP terminal", "pi extension"])
def test_tool_that_is_given_commands_is_asked_for_where_every_command_is_restricted(
    program: str, tmp_path: Path
) -> None:
    judging = Judging(Policy((Rule("shell", "deny_continue"),), full_enabled=True), Grants())
    assert judging.judge(turn(tmp_path), *described(program, "ls", tmp_path)).verdict.decision == "ask"


@pytest.mark.parametrize("program", ["pi bash", "acp execute", "claude Bash"])
def test_mode_auto_runs_no_command_of_a_program_that_no_sandbox_of_ours_holds(program: str, tmp_path: Path) -> None:
    record = AgentRecord(id="ada", name="Ada", mode="auto")
    asking = MemoryTurn("hi", project=tmp_path, agent=record)
    judging = Judging(Policy(sandboxed=True), Grants())
    assert judging.judge(asking, *described(program, "make", tmp_path)).verdict.decision == "ask"


# -- paths


@pytest.fixture
def garden(tmp_path: Path) -> Path:
    project = tmp_path / "garden"
    (project / "secrets").mkdir(parents=True)
    (project / "src").mkdir()
    (project / "secrets" / "key.env").write_text("x")
    (project / "link").symlink_to("secrets")
    (project / "plain.txt").symlink_to("secrets/key.env")
    (tmp_path / "alias").symlink_to(project)
    return project


SPELLINGS = (
    *(
        "secrets/key.env",
        "./secrets/key.env",
        "src/../secrets/key.env",
        "secrets//key.env",
        "link/key.env",
        "plain.txt",
    ),
    *("link/../secrets/key.env", "{root}/secrets/key.env", "{root}/src/../link/key.env", "{alias}/link/key.env"),
)


@pytest.mark.parametrize("path", SPELLINGS)
@pytest.mark.parametrize("match", ["secrets/*", "./secrets/*", "{root}/secrets/*", "*.env"])
@pytest.mark.parametrize(
    ("tool", "program"),
    [("write", "claude"), ("edit", "claude"), ("write", "pi"), ("edit", "acp"), ("read", "claude"), ("*", "claude")],
)
def test_path_that_is_denied_is_denied_under_every_name(
    tool: str, program: str, path: str, match: str, garden: Path
) -> None:
    given = path.format(root=garden, alias=garden.parent / "alias")
    theirs = {"write": "Write", "edit": "Edit", "read": "Read", "*": "Edit"}[tool]
    spec, proposal = (
        of_claude(theirs, {"file_path": given}, garden)
        if program == "claude"
        else of_pi(tool, {"path": given}, garden)
        if program == "pi"
        else of_acp(call("edit", path=given), garden)
    )
    policy = Policy((Rule(tool, "deny_continue", match.format(root=garden)),), full_enabled=True)
    assert policy.verdict(spec, proposal, "full").decision == "deny_continue"


def test_every_file_of_an_acp_edit_is_looked_at(garden: Path) -> None:
    several = Call("c", "t", "m", 0, name="tool", title="", kind="edit", input={}, paths=("src/a", "link/key.env"))
    policy = Policy((Rule("edit", "deny_continue", "secrets/*"),), full_enabled=True)
    assert policy.verdict(*of_acp(several, garden), "full").decision == "deny_continue"


@pytest.mark.parametrize(
    "command", ["echo x > secrets/a; true", "ls; cat ./secrets/../secrets/a", "tee src/../secrets/a", "cp a secrets//b"]
)
def test_path_that_is_denied_to_every_tool_is_found_among_the_words_of_a_command(command: str) -> None:
    policy = Policy((Rule("*", "deny_continue", "secrets/*"),), sandboxed=True)
    assert policy.verdict(SHELL, Proposal(title="", hash="", match=command), "auto").decision == "deny_continue"


# -- "always, with any arguments"

NEVER_WITH_ANY_ARGUMENTS = (
    "bash sh zsh fish dash python python3 python3.12 pypy perl ruby node deno bun php lua R julia java awk gawk sed env sudo"
    " doas su xargs parallel find nohup nice timeout time watch ssh scp rsync make cmake ninja just rake gradle mvn ant npm"
    " npx pnpm yarn cargo go dotnet pip pip3 pipx uv uvx poetry tox nox pytest unittest jest vitest mocha tsc ruff eslint"
    " prettier docker podman kubectl helm terraform ansible systemctl crontab at batch git gh hub vim vi nano emacs less more"
    " man tar zip unzip gdb strace ltrace busybox toybox tee cp mv rm dd ln install chmod chown curl wget nc socat openssl"
    " gpg tmux screen expect script sqlite3 psql mysql redis-cli jupyter bundle gem brew apt apt-get dnf yum apk snap flatpak"
)


@pytest.mark.parametrize("program", NEVER_WITH_ANY_ARGUMENTS.split())
def test_program_that_runs_or_writes_is_not_offered_with_any_arguments_and_older_grants_count_no_more(
    program: str,
) -> None:
    for command in (program, f"{program} x", f"{program} run build"):
        proposal = Proposal(title="", hash="", match=command)
        assert [offer.match for offer in offers(SHELL, proposal)] == [command]
        for words in (program, f"{program} run"):
            older = Rule("shell", "allow", f"program:{words}", source="agent")
            assert Policy().verdict(SHELL, proposal, "ask", [older]).decision == "ask"


@pytest.mark.parametrize(
    "sub", ["push", "commit", "config", "rebase", "submodule", "clone", "checkout", "difftool", "x"]
)
def test_git_is_offered_only_where_it_reads_or_stages(sub: str) -> None:
    proposal = Proposal(title="", hash="", match=f"git {sub} a")
    assert [offer.match for offer in offers(SHELL, proposal)] == [f"git {sub} a"]


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("git log", "git log --output=/home/ada/.bashrc"),
        ("git log", "git log --outp=x"),
        ("git diff", "git diff --output x"),
        ("git diff", "git diff --ext-diff"),
        ("git show", "git show --textconv HEAD"),
        ("rg", "rg --pre x a"),
        ("rg", "rg --pre=x a"),
        ("ls", "ls; x"),
        ("ls", "ls $(x)"),
        ("ls", "./ls"),
        ("cat", "cat a > b"),
    ],
)
def test_grant_of_a_program_covers_no_argument_that_runs_or_writes(program: str, command: str) -> None:
    grant = Rule("shell", "allow", f"program:{program}", source="agent")
    proposal = Proposal(title="", hash="", match=command)
    assert Policy().verdict(SHELL, proposal, "ask", [grant]).decision == "ask"
    assert not [offer for offer in offers(SHELL, proposal) if (offer.match or "").startswith("program:")]


# -- generated spellings, each run by a real shell to prove that it is one

QUOTINGS = st.sampled_from(["{0}", "'{0}'", '"{0}"', "\\{0}", "''{0}", '{0}""', "$'{0}'"])


@st.composite
def word(draw: st.DrawFn, text: str) -> str:
    cut = draw(st.integers(0, len(text) - 1))
    tail = draw(QUOTINGS).format(text[cut:])
    return (text[:cut] if draw(st.booleans()) else "".join(f"\\{char}" for char in text[:cut])) + tail


@st.composite
def denied_words(draw: st.DrawFn) -> str:
    program = draw(st.sampled_from(["git", "{bin}/git", "{bin}/../bin/git"]))
    folder, slash, name = program.rpartition("/")
    globals_ = draw(
        st.lists(st.sampled_from(["-C .", "--no-pager", "-c a.b=c", "--git-dir=x", "--work-tree ."]), max_size=2)
    )
    return " ".join([folder + slash + draw(word(name)), *globals_, draw(word("push"))])


LAUNCHERS = (
    *(
        "env ",
        "env A=1 ",
        "env -u A ",
        "command ",
        "nice ",
        "nice -n 1 ",
        "nohup ",
        "timeout 5 ",
        "timeout -k 1 5 ",
        "exec ",
    ),
    *("A=1 ", "A=1 B='x y' ", "time ", "! ", "setsid -w ", "stdbuf -o0 ", ">out ", "2>err ", "\\command ", "'env' "),
)
SHAPES = (
    *(
        "{0}",
        "ls; {0}",
        "true && {0}",
        "false || {0}",
        "({0})",
        "{{ {0}; }}",
        "if true; then {0}; fi",
        "ls | {0}",
        "\n{0}\n",
    ),
    *(
        "for x in 1; do {0}; done",
        "case a in a) {0};; esac",
        "f() {{ {0}; }}; f",
        "echo $({0})",
        'echo "$({0})"',
        ": <({0})",
    ),
    *("echo ${{x:-$({0})}}", "eval {q}", "sh -c {q}", "bash -c {q}", "bash -ec {q}", "env sh -c {q}", "trap {q} EXIT"),
    *(
        "bash <<'E'\n{0}\nE\n",
        "bash <<< {q}",
        "while {0}; do break; done",
        "{0} & wait",
        "echo a | xargs sh -c {q}",
        "true # x\n{0}",
    ),
    *(
        "find . -maxdepth 0 -exec sh -c {q} \\;",
        "coproc {0}; wait",
        "nohup bash -c {q}",
        "time {0}",
        "env -S 'bash -c' {q}",
    ),
)


@st.composite
def spellings(draw: st.DrawFn) -> str:
    command = draw(denied_words())
    for _ in range(draw(st.integers(0, 2))):
        command = draw(st.sampled_from(LAUNCHERS)) + command
    for _ in range(draw(st.integers(0, 2))):
        quoted = "'" + command.replace("'", "'\\''") + "'"
        command = draw(st.sampled_from(SHAPES)).format(command, q=quoted)
    return command


@given(spellings(), st.sampled_from(RULES), st.sampled_from(BOLD))
@settings(max_examples=400, deadline=None)
def test_no_spelling_of_a_denied_command_is_allowed(command: str, match: str, mode: Mode) -> None:
    shown = command.replace("{bin}", "/opt/stubs/bin")
    assert decision(shown, match, mode) != "allow", shown
    assert decision(shown, match, mode, grants=[]) != "allow", shown


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    folder = tmp_path_factory.mktemp("stubs") / "bin"
    folder.mkdir()
    stub = folder / "git"
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$*" >> "$RECORD"\n')
    stub.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}", "RECORD": str(folder.parent / "record"), "BIN": str(folder)}


def runs_git_push(command: str, stubs: Mapping[str, str], place: Path, shell: str = "bash") -> bool:
    record = Path(stubs["RECORD"])
    record.unlink(missing_ok=True)
    subprocess.run(
        [f"/bin/{shell}", "-c", command],
        cwd=place,
        env=dict(stubs),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    return record.exists() and "push" in record.read_text()


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="the spellings are bash's")
@pytest.mark.parametrize("shell", ["bash", "sh"])
@pytest.mark.parametrize("examples", [40, pytest.param(400, marks=pytest.mark.long)])
def test_generated_spellings_truly_run_the_denied_command(
    examples: int, shell: str, stubs: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("place")
    ran = 0

    @given(spellings())
    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def check(command: str) -> None:
        nonlocal ran
        shown = command.replace("{bin}", stubs["BIN"])
        # Some compositions are no valid line; those prove nothing, and must be rare.
        assume(runs_git_push(shown, stubs, place, shell))
        ran += 1
        assert decision(shown, "program:git push", "full") != "allow", shown
        assert decision(shown, "git push*", "auto", grants=[]) != "allow", shown

    check()
    # Some quotings and shapes are bash's own.
    assert ran >= examples // (2 if shell == "bash" else 4)


PIECES = (
    *(
        "git",
        "push",
        "git push",
        "ls",
        "echo",
        "cat",
        "true",
        "test",
        "printf",
        "jobs",
        "cd",
        "a",
        "0",
        "E",
        "PATH",
        "./x",
    ),
    *(
        "if",
        "then",
        "fi",
        "for f in",
        "do",
        "done",
        "while",
        "case",
        "esac",
        "else",
        "time",
        "-v",
        "-x",
        "-eq",
        "%s",
        "$f",
    ),
    *(
        "'",
        '"',
        "\\",
        "$",
        "(",
        ")",
        "{ ",
        " }",
        "[",
        "]",
        "[[",
        "]]",
        "`",
        "((",
        "))",
        "$(",
        "${",
        "$'",
        "$''(",
        "<(",
        "a[",
    ),
    *(
        ";",
        "&",
        "|",
        "\n",
        " ",
        " ",
        "\t",
        "\r",
        "\\\n",
        "<",
        ">",
        "<<",
        "<<<",
        ">&",
        "2>",
        "&>",
        "#",
        "!",
        "=",
        "*",
    ),
    *("&&", "||", ";;", "; do ", "; done"),
)


@pytest.fixture(scope="module")
def bare_stubs(stubs: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Nothing on the PATH but stubs: what random text runs can only record itself."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "bin").mkdir()
    (folder / "place" / "x").mkdir(parents=True)
    shutil.copy(Path(stubs["BIN"]) / "git", folder / "bin" / "git")
    for name in ("ls", "git"):
        shutil.copy(Path(stubs["BIN"]) / "git", folder / "place" / "x" / name)
    for name in ("ls", "cat"):
        (folder / "bin" / name).write_text("#!/bin/sh\n")
        (folder / "bin" / name).chmod(0o755)
    return {"PATH": str(folder / "bin"), "RECORD": str(folder / "record"), "PLACE": str(folder / "place")}


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="the pieces are bash's")
@pytest.mark.parametrize("examples", [500, pytest.param(4_000, marks=pytest.mark.long)])
def test_random_line_that_is_allowed_runs_nothing_that_is_denied(examples: int, bare_stubs: Mapping[str, str]) -> None:
    @given(st.lists(st.sampled_from(PIECES), min_size=2, max_size=14).map("".join))
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    def check(command: str) -> None:
        if decision(command, "git push*", "full", grants=[]) == "allow":
            for shell in ("bash", "sh"):
                assert not runs_git_push(command, bare_stubs, Path(bare_stubs["PLACE"]), shell), command

    check()


@pytest.mark.skipif(not shutil.which("bash"), reason="the spellings are bash's")
def test_harmless_lines_run_no_program_that_is_denied(stubs: Mapping[str, str], tmp_path: Path) -> None:
    assert not any(runs_git_push(command, stubs, tmp_path) for command in HARMLESS)


# -- programs that are not what their names say


@pytest.mark.parametrize("match", ["git push*", "program:git push", "program:git"])
@pytest.mark.parametrize("command", HARMLESS)
def test_harmless_name_that_may_mean_a_planted_program_is_asked_for(command: str, match: str) -> None:
    policy = Policy((Rule("shell", "deny_continue", match),), sandboxed=True, can_be_planted=lambda _: True)
    verdict = policy.verdict(SHELL, Proposal(title="", hash="", match=command), "auto")
    # The shell runs its builtins itself, whatever the PATH holds.
    assert verdict.decision == ("allow" if command in ("echo 'git push'", "(cd x; pwd)") else "ask")


@pytest.mark.parametrize(
    ("command", "planted", "expected"),
    [
        ("tree push x", "tree", "ask"),
        ("ls; tree push x", "tree", "ask"),
        ("sh -c 'tree push x'", "tree", "ask"),
        ("ls | wc -l", "tree", "allow"),
        ("/usr/bin/tree push x", "tree", "allow"),
        ("cd x && pwd", "cd", "allow"),
        ("find . -name x", "find", "ask"),
        ("if [ -f a ]; then rm a; fi", "rm", "ask"),
    ],
)
def test_only_the_names_that_can_be_planted_are_doubted(command: str, planted: str, expected: str) -> None:
    policy = Policy(
        (Rule("shell", "deny_continue", "git push*"),), sandboxed=True, can_be_planted=lambda name: name == planted
    )
    assert policy.verdict(SHELL, Proposal(title="", hash="", match=command), "auto").decision == expected
    assert (
        replace(policy, rules=()).verdict(SHELL, Proposal(title="", hash="", match=command), "auto").decision == "allow"
    )


# -- a rule about some commands of a program


@pytest.mark.parametrize(
    ("command", "reads"),
    [
        ("git commit -m x", False),
        ("git commit -m 'fix the push button'", False),
        ("git -C . add a", False),
        ("git --no-pager -c a.b=c stash", False),
        ("git log -5", True),
        ("git status", True),
        ("git -C . status", True),
        ("git diff push", True),
        ("npm run push", False),
        ("make git push", False),
        ("python3 x.py git", False),
    ],
)
def test_other_commands_of_a_program_are_not_denied_by_a_rule_about_one_of_them(command: str, reads: bool) -> None:
    proposal = Proposal(title="", hash="", match=command, reads_only=reads)
    for match, mode in itertools.product(("program:git push", "git push*"), BOLD):
        policy = Policy((Rule("shell", "deny_continue", match),), sandboxed=True, full_enabled=True)
        found = policy.verdict(SHELL, proposal, mode).decision
        # A program that may run others is asked about, unless it is known to read only.
        assert found == ("allow" if reads and "push" not in command else "ask"), match
        exactly = Rule("shell", "allow", command, source="conversation")
        assert policy.verdict(SHELL, proposal, mode, [exactly]).decision == "allow", match


# -- commands among the arguments of tools that are not ours

SPELT_ARGUMENTS = (
    *("command", "bash_command", "run_command", "terminal_command", "command_to_run", "commandString", "cmd_string"),
    *("shell_script", "bash-script", "userCommand", "executable_path", "command_args", "exec_command", "ps_script"),
    *("powershellCommand", "shellCommandLine", "stdin_text", "sourceCode", "scriptToRun", "SHELL_COMMAND"),
)
OTHER_ARGUMENTS = (
    *("input", "text", "body", "query", "js", "statement", "entrypoint", "file", "argument", "parameters", "prog"),
    *("binary", "python_code", "steps", "line", "lines", "write", "content", "x", ""),
)


@pytest.mark.parametrize("match", ["git push*", "program:git push", "program:git"])
@pytest.mark.parametrize("argument", SPELT_ARGUMENTS)
def test_command_is_found_under_every_name_that_says_so(argument: str, match: str, tmp_path: Path) -> None:
    judging = Judging(Policy((Rule("shell", "deny_continue", match),), full_enabled=True), Grants())
    for value in ("git -C . push", ["git", "push"]):
        spec, proposal = of_claude("mcp__box__do", {argument: value}, tmp_path)
        assert judging.judge(turn(tmp_path), spec, proposal).verdict.decision == "deny_continue", value


@pytest.mark.parametrize("match", ["git push*", "program:git push", "*git push*", "GIT push*"])
@pytest.mark.parametrize("argument", OTHER_ARGUMENTS)
def test_text_that_names_a_restricted_program_is_asked_for_under_any_name(
    argument: str, match: str, tmp_path: Path
) -> None:
    policy = Policy((Rule("shell", "deny_continue", match),), full_enabled=True)
    whole = [Rule("mcp__box__do", "allow", source="agent")]
    for value in (
        "git push",
        "x; /usr/bin/git push",
        ["a", {"b": "git.exe push"}],
        "subprocess.run(['git'])",
        "\uff47it push",
    ):
        described_so = (
            of_claude("mcp__box__do", {argument: value}, tmp_path),
            of_pi("do", {argument: value}, tmp_path),
        )
        for spec, proposal in described_so:
            assert policy.verdict(spec, proposal, "full").decision == "ask", value
            assert policy.verdict(spec, proposal, "ask", whole).decision == "ask", value


@pytest.mark.parametrize("value", ["digit push", "legitimate", "gitignore", "push", "a text", 7, None, ["x", {"y": 1}]])
def test_text_that_names_no_restricted_program_is_left_alone(value: Any, tmp_path: Path) -> None:
    policy = Policy((Rule("shell", "deny_continue", "git push*"),), full_enabled=True)
    spec, proposal = of_claude("mcp__box__do", {"text": value}, tmp_path)
    assert policy.verdict(spec, proposal, "full").decision == "allow"


def test_contents_of_a_file_that_our_own_tools_write_are_no_command(tmp_path: Path) -> None:
    policy = Policy((Rule("shell", "deny_continue", "git push*"),), full_enabled=True)
    given = {"file_path": "notes.md", "content": "Never git push."}
    assert policy.verdict(*of_claude("Write", given, tmp_path), "accept_edits").decision == "allow"


def test_tool_that_a_trusted_server_declares_read_only_may_be_told_of_any_program(tmp_path: Path) -> None:
    policy = Policy((Rule("shell", "deny_continue", "git push*"),))
    spec, proposal = of_claude("mcp__docs__search", {"query": "git push"}, tmp_path)
    assert policy.verdict(replace(spec, reads_only=True), proposal, "ask").decision == "allow"


def test_text_that_is_nested_deeply_is_found(tmp_path: Path) -> None:
    value: Any = "git push"
    for _ in range(100):
        value = [value]
    policy = Policy((Rule("shell", "deny_continue", "git push*"),), full_enabled=True)
    assert policy.verdict(*of_claude("mcp__box__do", {"x": value}, tmp_path), "full").decision == "ask"


@pytest.fixture
def planted(tmp_path: Path) -> Mapping[str, Path]:
    """A project with a folder for programs, and a folder outside of it; `ls` and `tree` are in both."""
    folders = {name: tmp_path / name for name in ("project/bin", "outside", "empty")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    for folder in (folders["project/bin"], folders["outside"]):
        for name in ("ls", "tree"):
            (folder / name).symlink_to("/bin/ls")
    (tmp_path / "link").symlink_to(folders["project/bin"])
    return {**folders, "link": tmp_path / "link"}


@pytest.mark.parametrize(
    ("path", "name", "can_be"),
    [
        ("outside:project/bin", "ls", False),
        ("empty:outside:project/bin", "ls", False),
        ("project/bin:outside", "ls", True),
        ("link:outside", "ls", True),
        ("empty:project/bin:outside", "tree", True),
        ("outside:project/bin", "cat", True),
        ("outside", "cat", True),
        (".:outside", "ls", True),
        (":outside", "ls", True),
        ("bin:outside", "ls", True),
        ("/tmp:outside", "ls", True),
        ("/dev/shm/bin:outside", "ls", True),
    ],
)
def test_name_can_be_planted_where_the_path_leads_through_a_folder_that_agents_write_to(
    path: str, name: str, can_be: bool, planted: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The folders of this test lie beneath the temporary one, which commands write to.
    monkeypatch.setattr("palaver.backends.program_lookup._TEMPORARY_FOLDERS", (Path("/tmp/x"), Path("/dev/shm")))
    entries = [str(planted.get(entry, "/tmp/x/bin" if entry == "/tmp" else entry)) for entry in path.split(":")]
    lookup = ProgramLookup(lambda: [planted["project/bin"].parent], planted["empty"])
    assert lookup.can_be_planted(name, {"PATH": os.pathsep.join(entries)}) is can_be


@pytest.mark.parametrize("where", ["this project", "another project"])
@pytest.mark.anyio
async def test_denied_program_does_not_run_under_a_name_that_was_planted(
    tmp_path: Path, outside_tmp: Path, where: str
) -> None:
    """The whole way: a folder of a project is on the PATH, and there git is linked under a harmless name."""
    rules = [{"tool": "shell", "decision": "deny_continue", "match": "git init*"}]
    project, other = tmp_path / "project", outside_tmp / "other"
    folder = (project if where == "this project" else other) / "bin"
    folder.mkdir(parents=True)
    (folder / "tree").symlink_to(shutil.which("git") or "/usr/bin/git")
    path = f"{folder}:/usr/bin:/bin"
    script = Answer.of(ToolCall(name="shell", input={"command": "tree init x"}))
    async with at_work(tmp_path, script, environment={"PATH": path}) as work:
        await work.server.create(project=str(other if other.exists() else project))
        conversation = await work.begin("go", policy=rules, mode="auto")
        (request,) = await work.opened(conversation)
        await work.server.command(conversation, type="interrupt")
    assert request["input"]["command"] == "tree init x"
    assert not (project / "x").exists()
