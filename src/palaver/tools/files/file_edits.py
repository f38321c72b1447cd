"""What the tools that change files share: `edit`, `write` and `patch` each say what would become of which files.

Used by those three, over `paths.Root`. A change is worked out in full before anything is written, once for the proposal
and once more to be carried out. Either every file of a call is changed or none: what was written before a failure is put
back as it was.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palaver.errors import CallerError, Invalid
from palaver.journal import Journal
from palaver.schema.view import FileChange
from palaver.tools.arguments import failure_of
from palaver.tools.base import Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.files.paths import Root
from palaver.tools.proposal import Change, fingerprint, shorten, visible
from palaver.tools.thread_pool import finish_in_pool

logger = Journal(__name__)

_STAND_IN = re.compile(rb"\[redacted [^\]\r\n]{1,80}\]")
"""What a model is shown in place of a secret."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a call would do to files."""

    title: str
    done: Callable[[Sequence[FileChange]], str]
    """What the model is told of the changes once they are made."""
    files: tuple[Change, ...]
    names: Mapping[str, str]
    """The files' paths as they were asked for: a name on disk need not be UTF-8, and the paths of `files` are."""

    def contents(self) -> dict[str, bytes | None]:
        """What stands now at every place that would be touched."""
        found: dict[str, bytes | None] = {}
        for change in self.files:
            if change.moved_from is not None:
                found[change.moved_from] = change.before
            found[change.path] = None if change.moved_from is not None else change.before
        return found


Plan = Callable[[Mapping[str, Any], Root], Changes]
"""Works out a call. Reads, and writes nothing; raises CallerError for what cannot be done."""


class FileTool:
    """A tool that changes files beneath the root and does nothing else."""

    def __init__(self, spec: ToolSpec, plan: Plan) -> None:
        self._spec = spec
        self._plan = plan

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            changes = self._work_out(arguments, Root(root))
        except CallerError as error:
            return failure_of(error)
        contents = changes.contents()
        return Proposal(
            title=visible(changes.title),
            hash=fingerprint(self._spec.name, arguments, root, contents),
            preview=shorten("".join(change.preview() for change in changes.files)),
            writes=tuple(contents),
            match="\n".join(contents),
        )

    def _work_out(self, arguments: Mapping[str, Any], root: Root) -> Changes:
        """Raises Invalid where a secret would be replaced by the words that a model is shown for it."""
        changes = self._plan(arguments, root)
        for change in changes.files:
            more = Counter(_STAND_IN.findall(change.after or b"")) - Counter(_STAND_IN.findall(change.before or b""))
            if more:
                shown = next(iter(more)).decode(errors="replace")
                raise Invalid(
                    f"{change.path} would hold “{shown}”, which stands for a secret that you were not shown; nothing was "
                    "written. Change the other lines with edit, or ask the person to put the secret in."
                )
        return changes

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            # Not cut short: files are either changed and said to be, or left alone.
            return await finish_in_pool(self._apply, arguments, Root(place.root))
        except CallerError as error:
            return failure_of(error)

    def _apply(self, arguments: Mapping[str, Any], root: Root) -> ToolResult:
        changes = self._work_out(arguments, root)
        there = (path for path, content in changes.contents().items() if content is not None)
        modes = {path: root.mode_of(changes.names[path]) for path in there}
        done: list[Change] = []
        try:
            for change in changes.files:
                _carry_out(change, changes.names, modes, root)
                done.append(change)
        except BaseException:
            _put_back(done, changes.names, modes, root)
            raise
        made = tuple(change.file_change() for change in changes.files)
        return ToolResult(ok=True, output=changes.done(made), changes=made)


def _carry_out(change: Change, names: Mapping[str, str], modes: Mapping[str, int], root: Root) -> None:
    if change.after is None:
        root.remove(names[change.path])
        return
    root.replace(names[change.path], change.after, modes[change.moved_from] if change.moved_from else None)
    if change.moved_from is not None:
        try:
            root.remove(names[change.moved_from])
        except BaseException:
            root.remove(names[change.path])
            raise


def _put_back(done: Sequence[Change], names: Mapping[str, str], modes: Mapping[str, int], root: Root) -> None:
    for change in reversed(done):
        stood = change.moved_from or change.path
        try:
            if change.before is not None:
                root.replace(names[stood], change.before, modes[stood])
            if change.before is None or change.moved_from is not None:
                root.remove(names[change.path])
        except CallerError as error:
            logger.warning("a file could not be put back as it was", path=change.path, error=error.message)
