"""Whether a reading git command, run in a folder, can run anything else.

Called by the shell tool before it lets `git status` and its like pass unasked. A repository's own configuration may name
programs (fsmonitor, filters, textconv, external diffs), and a repository may come from anywhere. So: the configuration may
hold only keys of a short list, and `QUIET_GIT` switches off what needs no configuration. What a person has in the global
configuration is theirs, and is trusted.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from palaver.errors import CallerError
from palaver.tools.paths import Root

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
_SETTING = re.compile(r"([A-Za-z]+)(?:\s*=[^\"\\]*)?")

_SETTINGS = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    # Submodules are repositories with a configuration of their own; git would run itself in each.
    ("diff.ignoreSubmodules", "all"),
    ("status.submoduleSummary", "false"),
)
QUIET_GIT: Mapping[str, str] = {
    # A status that writes the index back would run a hook.
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
    **{f"GIT_CONFIG_KEY_{index}": name for index, (name, _) in enumerate(_SETTINGS)},
    **{f"GIT_CONFIG_VALUE_{index}": value for index, (_, value) in enumerate(_SETTINGS)},
}


def reading_git_is_harmless(root: Path) -> bool:
    """True only for a plain repository directly in `root`. Anything we do not know is not."""
    project = Root(root)
    try:
        if project.locate(".git/config") != ".git/config":
            return False
        # A submodule's own word on itself would beat ours in QUIET_GIT.
        if project.read_if_there(".gitmodules") is not None:
            return False
        configuration = project.read(".git/config").decode()
    except (CallerError, UnicodeDecodeError):
        return False
    return _holds_only_harmless(configuration)


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
