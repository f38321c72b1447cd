"""Git run on a repository that may come from anywhere, so that nothing of the repository runs with it.

A repository can name programs in many places: its configuration (fsmonitor, filters, textconv, external diffs, pagers,
aliases, gpg, ssh), files that lead to another configuration (`commondir`, worktrees, includes, `config.worktree`), hooks,
submodules, a folder that looks like a bare repository. What is read may be swapped at any moment after it was judged. So:

- Our own looks (`changes.py`) use `detached_repository`: a git folder of ours, with a configuration of ours, that takes
  nothing of the repository but its index and its objects. No file that could name a program is opened at all.
- A git command that an agent runs unasked gets `quiet_environment`, and runs only where a sandbox holds it, as a reading
  command (`Sandbox.wrap_reading`). `reading_git_is_harmless` only spares a person the question; what holds is the sandbox.
"""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from palaver.errors import CallerError, NotFound
from palaver.tools.files.paths import Root

_HARMLESS: Mapping[str, frozenset[str]] = {
    "core": frozenset(
        {
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
        }
        | {"autocrlf", "eol", "quotepath", "abbrev"}
    ),
    "remote": frozenset({"url", "pushurl", "fetch", "push"}),
    "branch": frozenset({"remote", "merge", "rebase", "description"}),
    "user": frozenset({"name", "email"}),
    "init": frozenset({"defaultbranch"}),
    "pull": frozenset({"rebase", "ff"}),
    "push": frozenset({"default", "autosetupremote"}),
}
# Anything cleverer (continued lines, quotes, a key behind its section) does not match, and so is not harmless.
_SECTION = re.compile(r'\[([A-Za-z]+)(?: "[^"\\]*")?\]')
_SETTING = re.compile(r"([A-Za-z]+)(?:\s*=\s*([^\"\\]*))?")

_LEADING_ELSEWHERE = (
    *(".gitmodules", ".git/modules", ".git/commondir", ".git/config.worktree"),
    *(".git/objects/info/alternates", ".git/objects/info/http-alternates"),
)
"""Other repositories, other configurations, objects of others: where one of them is, a person is asked."""
_OWN = (".git/HEAD", ".git/config", ".git/index", ".git/objects", ".git/refs", ".git/packed-refs", ".git/objects/pack")
"""What a plain repository has in itself, not behind a link."""

_FILE_SETTINGS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("filemode", "ignorecase", "precomposeunicode", "symlinks"), frozenset({"true", "false"})),
    "autocrlf": frozenset({"true", "false", "input"}),
    "eol": frozenset({"lf", "crlf", "native"}),
}
"""How a working tree is compared. Each with all the values that it may have."""
_QUIET_SETTINGS = (
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.attributesFile", "/dev/null"),
    ("log.showSignature", "false"),
    # Submodules are repositories with a configuration of their own; git would run itself in each.
    ("diff.ignoreSubmodules", "all"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("protocol.allow", "never"),
)
_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = re.compile(r"refs(?:/(?!\.)[^\x00-\x20/\\~^:?*\[\x7f]+)+")
SHA256_CHARS = 64
_UNBORN = "ref: refs/heads/unborn"


def quiet_environment(root: Path) -> dict[str, str]:
    """Variables with which git reads the plain repository in `root`, looks for no other, and starts nothing by itself."""
    repository = str(root / ".git")
    return {
        **_quiet(_QUIET_SETTINGS),
        # Said, not found: git would take a folder that looks like a bare repository, or one of the folders above.
        "GIT_DIR": repository,
        "GIT_COMMON_DIR": repository,
        "GIT_WORK_TREE": str(root),
    }


def reading_git_is_harmless(root: Path) -> bool:
    """True only for a plain repository directly in `root`. Anything we do not know is not."""
    project = Root(root)
    try:
        if any(_exists(project, path) for path in _LEADING_ELSEWHERE):
            return False
        if any(project.locate(path) != path for path in _OWN) or not _objects_are_its_own(project):
            return False
        project.read(".git/HEAD")
        configuration = project.read(".git/config").decode()
    except (CallerError, OSError, UnicodeDecodeError):
        return False
    return _holds_only_harmless(configuration)


@dataclass(frozen=True, slots=True)
class DetachedRepository:
    """A git folder of ours over another repository's index and objects."""

    folder: Path
    environment: Mapping[str, str]
    commit: str | None
    """Where the repository stands; None: nothing was committed yet."""


@contextmanager
def detached_repository(root: Path, within: Path) -> Iterator[DetachedRepository | None]:
    """A folder in `within`, gone afterwards; None where there is no plain repository in `root`. Raises OSError where none
    can be made."""
    try:
        standing = _standing(Root(root))
    except (CallerError, OSError, UnicodeDecodeError):
        standing = None
    if standing is None:
        yield None
        return
    commit, settings, excluded = standing
    with tempfile.TemporaryDirectory(dir=within, prefix="git-") as made:
        folder = Path(made).resolve()
        for name in ("objects", "refs", "info"):
            (folder / name).mkdir()
        (folder / "HEAD").write_text(f"{commit or _UNBORN}\n")
        (folder / "info" / "exclude").write_bytes(excluded)
        if commit and len(commit) == SHA256_CHARS:
            format_ = "\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n"
        else:
            format_ = "\trepositoryformatversion = 0\n"
        (folder / "config").write_text(f"[core]\n\tbare = false\n{format_}")
        repository = root / ".git"
        environment = {
            **_quiet((*_QUIET_SETTINGS, *((f"core.{name}", value) for name, value in settings.items()))),
            "GIT_DIR": str(folder),
            "GIT_COMMON_DIR": str(folder),
            "GIT_WORK_TREE": str(root),
            "GIT_INDEX_FILE": str(repository / "index"),
            "GIT_OBJECT_DIRECTORY": str(repository / "objects"),
        }
        yield DetachedRepository(folder, environment, commit)


def _quiet(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    return {
        # A status that writes the index back would run a hook.
        "GIT_OPTIONAL_LOCKS": "0",
        # Neither the machine's nor the person's: a repository's attributes could choose a program that is named there.
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "GIT_CONFIG_COUNT": str(len(settings)),
        **{f"GIT_CONFIG_KEY_{index}": name for index, (name, _) in enumerate(settings)},
        **{f"GIT_CONFIG_VALUE_{index}": value for index, (_, value) in enumerate(settings)},
    }


def _exists(project: Root, path: str) -> bool:
    """Whether something is there, a link that leads nowhere included."""
    try:
        with project.find(path) as found:
            os.stat(found.name, dir_fd=found.folder, follow_symlinks=False)
    except (NotFound, FileNotFoundError):
        return False
    return True


def _objects_are_its_own(project: Root) -> bool:
    """No link among the objects, which would read those of another repository."""
    for path in (".git/objects", ".git/objects/pack"):
        with suppress(NotFound), project.open_folder(path) as folder, os.scandir(folder) as entries:
            if any(entry.is_symlink() for entry in entries):
                return False
    return True


def _holds_only_harmless(configuration: str) -> bool:
    allowed: frozenset[str] = frozenset()
    for line in map(str.strip, configuration.split("\n")):
        if not line or line.startswith(("#", ";")):
            continue
        if section := _SECTION.fullmatch(line):
            allowed = _HARMLESS.get(section[1].lower(), frozenset())
        elif not (setting := _SETTING.fullmatch(line)) or setting[1].lower() not in allowed:
            return False
    return True


# -- what is taken of a repository for one of ours


def _standing(project: Root) -> tuple[str | None, dict[str, str], bytes] | None:
    """The commit, how files are compared, and what is ignored here; None: not a plain repository."""
    if project.locate(".git/HEAD") != ".git/HEAD" or _exists(project, ".git/commondir"):
        return None
    head = project.read(".git/HEAD").decode().strip()
    settings = _file_settings((project.read_if_there(".git/config") or b"").decode(errors="replace"))
    excluded = project.read_if_there(".git/info/exclude") or b""
    if _OID.fullmatch(head):
        return head, settings, excluded
    name = head.removeprefix("ref:").strip()
    if not head.startswith("ref:") or not _REF.fullmatch(name) or ".." in name:
        return None
    return _commit_of(project, name), settings, excluded


def _commit_of(project: Root, ref: str) -> str | None:
    loose = project.read_if_there(f".git/{ref}")
    if loose is not None:
        text = loose.decode().strip()
        return text if _OID.fullmatch(text) else None
    for line in (project.read_if_there(".git/packed-refs") or b"").decode(errors="replace").splitlines():
        oid, _, name = line.partition(" ")
        if name == ref and _OID.fullmatch(oid):
            return oid
    return None


def _file_settings(configuration: str) -> dict[str, str]:
    """Of a repository's configuration only these words, each with one of its few values: none can name anything."""
    found: dict[str, str] = {}
    section = ""
    for line in map(str.strip, configuration.split("\n")):
        if start := _SECTION.fullmatch(line):
            section = start[1].lower() if '"' not in line else ""
        elif section == "core" and (setting := _SETTING.fullmatch(line)):
            name, value = setting[1].lower(), (setting[2] or "true").strip().lower()
            if value in _FILE_SETTINGS.get(name, ()):
                found[name] = value
    return found
