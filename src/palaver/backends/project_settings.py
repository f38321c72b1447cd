"""Project settings of agent programs: what each reads from a folder that can run code, and how that is switched off.

The one table of it is `PROGRAMS`. A repository, or an agent that writes into one, can put MCP servers, hooks, plugins and
environment files where these programs look, and they would run outside every sandbox of ours. So they are off until a person
has trusted the folder for the program, bound to a hash of exactly these files. Instruction files (AGENTS.md and the like)
are text for a model and stay.

Called by the backends that drive programs, before each turn. It reads the file system and starts nothing. Whether a hash is
trusted is asked of `SettingsTrust`; `agents/trust.py` keeps that.
"""

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Protocol

import msgspec

from palaver.backends.base import Turn
from palaver.core.state import NOTICE
from palaver.errors import NotTrusted
from palaver.schema.content import as_content
from palaver.schema.events import KnownEvent, MessageAdded
from palaver.schema.records import AgentRecord
from palaver.schema.view import TextBlock

FILES_LIMIT = 10_000
"""Of one program in one folder: opencode keeps the packages of its plugins there."""
BYTES_LIMIT = 64 * 1024 * 1024
"""Read before each turn in a trusted folder: a fraction of a second. More cannot be trusted."""
DEPTH_LIMIT = 24
CHUNK_BYTES = 1024 * 1024
TEXT_BYTES = 1024 * 1024
"""Of all files together that a person is shown as text; beyond it a file is named with its size and its hash."""
OPENCODE_CONFIG = "OPENCODE_CONFIG_CONTENT"
NAMES_SHOWN = 6
"""Of the files in a notice."""


@dataclass(frozen=True, slots=True)
class ProgramSettings:
    """What one program reads from a folder."""

    id: str
    name: str
    reads: tuple[str, ...]
    """Paths in the folder, and in each folder above it, that can run code or change what is asked. A folder counts with all
    that lies in it."""
    switched_off: str
    """How, for the documentation."""
    texts: tuple[str, ...] = ()
    """Instructions that it reads as text, trusted or not."""
    cannot_switch_off: tuple[str, ...] = ()
    """Those of `reads` that the program has no switch for: where one is there, it is not started."""
    commands: frozenset[str] = frozenset()
    """Names by which an ACP agent's command is recognised: of a program, or of its npm package."""
    off: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment of an ACP agent in a folder that is not trusted."""
    on: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment of an ACP agent in a trusted folder."""


CLAUDE = ProgramSettings(
    id="claude",
    name="Claude Code",
    reads=(
        *(".mcp.json", ".lsp.json"),
        *(f".claude/{name}" for name in ("settings.json", "settings.local.json", "hooks", "plugins", "skills")),
        *(f".claude/{name}" for name in ("agents", "commands", "output-styles", "rules", "workflows")),
    ),
    switched_off="`--setting-sources=user`",
)
CODEX = ProgramSettings(
    id="codex",
    name="Codex",
    reads=(".codex",),
    switched_off='`projects."FOLDER".trust_level = "untrusted"` for the thread; its own calls of git see no repository',
    texts=("AGENTS.md", "AGENTS.override.md", ".agents/skills"),
)
PI = ProgramSettings(
    id="pi",
    name="Pi",
    reads=(
        *(f".pi/{name}" for name in ("settings.json", "extensions", "skills", "prompts", "themes", "npm", "git")),
        *(".pi/SYSTEM.md", ".pi/APPEND_SYSTEM.md", ".agents/skills"),
    ),
    switched_off="`--no-approve`; `--session-dir` of your own; no code from a cache in the temporary folder",
    texts=("AGENTS.md", "AGENTS.override.md", "CLAUDE.md"),
)
OPENCODE = ProgramSettings(
    id="opencode",
    name="opencode",
    reads=(
        *("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
        *(f".opencode/{name}" for name in ("plugin", "plugins", "tool", "tools", "command", "commands", "agent")),
        *(f".opencode/{name}" for name in ("agents", "mode", "modes", "package.json", "node_modules")),
    ),
    # Version 1.18 has two readers of its configuration, and the newer one knows no switch: it imports plugins.
    cannot_switch_off=(
        *("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
        *(".opencode/plugin", ".opencode/plugins"),
    ),
    switched_off=(
        "`OPENCODE_DISABLE_PROJECT_CONFIG=1`; formatters and language servers by `OPENCODE_CONFIG_CONTENT`; where a "
        "configuration or plugins are there, which 1.18 has no switch for, it is not started"
    ),
    texts=(".claude/skills", ".agents/skills"),
    commands=frozenset({"opencode", "opencode-ai"}),
    # The servers and formatters that it knows by itself are taken from the project's node_modules.
    off={"OPENCODE_DISABLE_PROJECT_CONFIG": "1", OPENCODE_CONFIG: '{"lsp":false,"formatter":false}'},
)
GEMINI = ProgramSettings(
    id="gemini",
    name="Gemini CLI",
    reads=(".gemini", ".env"),
    switched_off=(
        "`GEMINI_RESTRICTED_MODE=true` where such a file is there, its own safe mode: no MCP servers then, ours and the "
        "agent's own included"
    ),
    texts=("GEMINI.md",),
    commands=frozenset({"gemini", "@google/gemini-cli"}),
    off={"GEMINI_RESTRICTED_MODE": "true"},
    on={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
)
_KNOWN = (CLAUDE, CODEX, PI, OPENCODE, GEMINI)
OTHER = ProgramSettings(
    id="acp",
    name="another ACP agent",
    reads=tuple(dict.fromkeys(path for one in _KNOWN for path in one.reads)),
    cannot_switch_off=tuple(dict.fromkeys(path for one in _KNOWN for path in one.reads)),
    switched_off="unknown to Palaver: where a file is there that any of the programs above would read, it is not started",
)
PROGRAMS: Mapping[str, ProgramSettings] = {one.id: one for one in (*_KNOWN, OTHER)}


_LAUNCHERS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("npx", "bunx", "pnpx", "node", "uvx", "python", "python3"), frozenset[str]()),
    "npm": frozenset({"exec", "x"}),
    "pnpm": frozenset({"dlx", "exec"}),
    "yarn": frozenset({"dlx"}),
    "bun": frozenset({"x"}),
    "uv": frozenset({"run"}),
    "pipx": frozenset({"run"}),
}
"""Programs that run the package or script named right after them, and the word that some need before it."""
_PLAIN_OPTIONS = frozenset({"-y", "--yes", "-q", "--quiet", "-I", "--"})
"""Options of these that take no value, so that a package may follow."""


def acp_program(command: Sequence[str]) -> ProgramSettings:
    """Which program an ACP agent's command starts: `gemini --acp`, `npx @google/gemini-cli`, `node …/gemini.js`.

    Told by the program that is started, or by the package or script right after one that only starts others. Other words of
    a command (`--provider gemini`) say nothing; a command that is not understood is another agent's.
    """
    name = _named_program(command)
    return next((known for known in PROGRAMS.values() if name in known.commands), OTHER)


def _named_program(command: Sequence[str]) -> str | None:
    """The name of the program, or of the package, that a command runs; None: it cannot be told."""
    program, *words = command
    name = PurePath(program).stem
    if name not in _LAUNCHERS:
        return name
    if tuple(words[:2]) == ("tool", "run"):
        words = words[2:]
    elif words and words[0] in _LAUNCHERS[name]:
        words = words[1:]
    elif _LAUNCHERS[name]:
        return None
    while words and words[0] in _PLAIN_OPTIONS:
        words = words[1:]
    if not words or words[0].startswith("-"):
        return None
    package = re.fullmatch(r"(@[^@/]+/[^@/]+|[^@/.]+)(@[^/]*)?", words[0])
    return package[1] if package else PurePath(words[0]).stem


def program_of(agent: AgentRecord) -> ProgramSettings | None:
    """The program that runs an agent's turns; None: no program, so no settings of a folder count."""
    return acp_program(agent.command) if agent.backend == "acp" else PROGRAMS.get(agent.backend)


class SettingsTrust(Protocol):
    """Which files of which folder a person has trusted for a program."""

    def program_hash(self, project: Path, program: str) -> str | None:
        """The hash that was trusted of a folder free of links; None: none was."""
        ...


class NoTrust:
    """For a backend that nobody can trust a folder with."""

    def program_hash(self, project: Path, program: str) -> str | None:
        return None


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """One file of a program's settings, with the bytes that were hashed."""

    path: str
    size_bytes: int
    sha256: str
    text: str | None
    """None: no text, or more than a person is shown."""
    link: str | None = None
    """Where it leads, when it is a link itself."""


@dataclass(frozen=True, slots=True)
class Found:
    """What of a program's settings is in a folder. `paths` are named as seen from the folder."""

    paths: tuple[str, ...]
    hash: str | None
    """None: it was not asked for, or there is too much to be read."""
    files: tuple[SettingsFile, ...] = ()
    """Everything that the hash covers, where it was asked for."""


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """Whether a program may read a folder's settings now."""

    program: ProgramSettings
    paths: tuple[str, ...] = ()
    trusted: bool = False

    def environment(self, given: Mapping[str, str], home: str | None) -> dict[str, str]:
        """Of an ACP agent whose record gives `given`. Blocking."""
        if self.trusted:
            return {**given, **self.program.on}
        if self.program is GEMINI:
            # Its safe mode takes our tools from it too, so it is kept for folders that have something to hide.
            return {**_gemini_login(home), **given, **self.program.off} if self.paths else dict(given)
        if (own := given.get(OPENCODE_CONFIG)) and (off := self.program.off.get(OPENCODE_CONFIG)):
            return {**given, **self.program.off, OPENCODE_CONFIG: _merged(own, off)}
        return {**given, **self.program.off}

    def check_startable(self, project: Path) -> None:
        """Raises NotTrusted where the only way to keep a program from these files is not to start it."""
        left = () if self.trusted else tuple(path for path in self.paths if self._cannot_switch_off(path))
        if left:
            raise NotTrusted(
                f"{self.program.name} was not started: it would run what {_listed(left)} say, and has no switch against "
                f"that. Look at them, then {_how_to_trust(project, self.program)}",
                project=str(project),
                program=self.program.id,
                paths=list(left),
            )

    def _cannot_switch_off(self, path: str) -> bool:
        inside = path.removeprefix("../" * path.count("../"))
        return inside in self.program.cannot_switch_off

    def notice(self, turn: Turn) -> Sequence[KnownEvent]:
        """Says once in a conversation which settings are left off."""
        if self.trusted or not self.paths:
            return ()
        text = (
            f"{self.program.name} works without this folder's settings for it ({_listed(self.paths)}), because they can "
            f"run programs. To use them, look at them, then {_how_to_trust(turn.project, self.program)}"
        )
        said = (
            block.text
            for message in turn.history
            if message.event_kind == NOTICE
            for block in message.blocks
            if isinstance(block, TextBlock)
        )
        if text in said:
            return ()
        return (MessageAdded(message=turn.new_id(), role="event", event_kind=NOTICE, content=as_content(text)),)


async def settings_of(
    program: ProgramSettings, project: Path, home: str | None, trust: SettingsTrust
) -> FolderSettings:
    """What is there now, and whether exactly that was trusted."""
    real = Path(await asyncio.to_thread(os.path.realpath, project))
    trusted = trust.program_hash(real, program.id)
    found = await asyncio.to_thread(find_settings, program, project, home, hashed=trusted is not None)
    return FolderSettings(program, found.paths, trusted is not None and found.hash == trusted)


def find_settings(program: ProgramSettings, project: Path, home: str | None, *, hashed: bool) -> Found:
    """Looks in the folder and in all above it, but for the person's home, where the files are the person's own.

    Blocking. `hashed`: what the files hold is read too, through links, as the program would.
    """
    paths: list[str] = []
    digest = _Digest()
    for prefix, folder in _upward(project, home):
        for name in program.reads:
            at = folder / name
            if _holds_something(at):
                paths.append(prefix + name)
                if hashed:
                    digest.add(prefix + name, at)
    return Found(tuple(paths), digest.value() if hashed else None, tuple(digest.files))


def _holds_something(at: Path) -> bool:
    """Whether a file is there, or a folder that is not empty. What cannot be looked at counts."""
    if not os.path.lexists(at):
        return False
    try:
        with os.scandir(at) as inside:
            return next(inside, None) is not None
    except OSError:
        return True


def folders_upward(project: Path, home: str | None) -> list[Path]:
    """The folders whose settings a hash covers: the project and all that it lies in, up to the person's home. Blocking."""
    return [folder for _, folder in _upward(project, home)]


def _upward(project: Path, home: str | None) -> Iterator[tuple[str, Path]]:
    real = Path(os.path.realpath(project))
    own = Path(os.path.realpath(home)) if home else None
    for above, folder in enumerate((real, *real.parents)):
        if above and folder == own:
            return
        yield "../" * above, folder


class _Digest:
    """Hash of a tree of files: names, kinds and contents, within bounds."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256(b"palaver project settings 1\n")
        self.files: list[SettingsFile] = []
        self._files = 0
        self._bytes = 0
        self._text_bytes = 0
        self._unreadable = False

    def value(self) -> str | None:
        return None if self._unreadable else self._hash.hexdigest()

    def add(self, name: str, at: Path, depth: int = 0) -> None:
        self._files += 1
        self._unreadable = self._unreadable or self._files > FILES_LIMIT or depth > DEPTH_LIMIT
        if self._unreadable:
            return
        encoded = name.encode(errors="surrogateescape")
        link: str | None = None
        try:
            if at.is_symlink():
                link = str(at.readlink())
                self._part(b"link", encoded)
                self._part(b"to", os.fsencode(link))
            # Not blocking: a pipe in the place of a file would wait for its writer for ever.
            opened = os.open(at, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as failure:
            self._part(b"unreadable", b"%s %d" % (encoded, failure.errno or 0))
            self.files.append(SettingsFile(_readable_name(name), 0, "", None, link and _readable_name(link)))
            return
        try:
            kind = os.fstat(opened).st_mode
            if stat.S_ISDIR(kind):
                self._part(b"folder", encoded)
                for inside in sorted(path.name for path in at.iterdir()):
                    self.add(f"{name}/{inside}", at / inside, depth + 1)
            elif stat.S_ISREG(kind):
                self._part(b"file", encoded)
                self._part(b"content", self._content(opened, name, link))
            else:
                self._part(b"special", encoded)
                self.files.append(SettingsFile(_readable_name(name), 0, "", None, link and _readable_name(link)))
        except OSError:
            # It changes while it is read, or cannot be: nobody can have looked at this.
            self._unreadable = True
        finally:
            os.close(opened)

    def _content(self, opened: int, name: str, link: str | None) -> bytes:
        content, size, kept = hashlib.sha256(), 0, bytearray()
        while not self._unreadable and (chunk := os.read(opened, CHUNK_BYTES)):
            size += len(chunk)
            self._bytes += len(chunk)
            self._unreadable = self._bytes > BYTES_LIMIT
            content.update(chunk)
            if self._text_bytes + size <= TEXT_BYTES:
                kept += chunk
        text = _text_of(kept) if len(kept) == size else None
        self._text_bytes += size if text is not None else 0
        self.files.append(
            SettingsFile(_readable_name(name), size, content.hexdigest(), text, link and _readable_name(link))
        )
        return content.digest()

    def _part(self, kind: bytes, value: bytes) -> None:
        # With its length: no two different trees are written as the same bytes.
        self._hash.update(b"%s %d " % (kind, len(value)) + value)


def _text_of(content: bytes | bytearray) -> str | None:
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None


def _readable_name(name: str) -> str:
    """Names of files are bytes; what is no UTF-8 in them is shown as such."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _merged(own: str, off: str) -> str:
    """A person's configuration of opencode with ours over it; ours alone where theirs is none."""
    try:
        told = msgspec.json.decode(own, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeEncodeError):
        told = {}
    return msgspec.json.encode({**told, **msgspec.json.decode(off)}).decode()


def _gemini_login(home: str | None) -> dict[str, str]:
    """The person's own `~/.gemini/.env`, which Gemini CLI leaves out in its safe mode. In that it still takes its login from
    the folder's `.env`, but nothing that is set already."""
    login = dict.fromkeys(("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"), "")
    try:
        text = Path(home or "/nowhere", ".gemini", ".env").read_text(errors="replace")
    except OSError:
        return login
    for line in text.splitlines():
        if told := re.fullmatch(
            r"""\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^#]*?))\s*(?:#.*)?""", line
        ):
            login[told[1]] = told[2] or told[3] or told[4] or ""
    return login


def _listed(paths: Sequence[str]) -> str:
    shown = ", ".join(paths[:NAMES_SHOWN])
    return f"{shown} and {len(paths) - NAMES_SHOWN} more" if len(paths) > NAMES_SHOWN else shown


def _how_to_trust(project: Path, program: ProgramSettings) -> str:
    return (
        f"trust them here (Review on the page, /trust in the terminal) or with `palaver projects trust {project} --program "
        f"{program.id}`. Any change of them takes the trust back."
    )
