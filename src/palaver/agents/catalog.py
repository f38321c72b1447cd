"""The book of agents: those that come with Palaver, those in the data directory's files, and those of trusted projects.

Held by the roster, read for every turn and every list, changed by faces. A file counts as it is now: whoever edits one with
an editor has changed the agent from its next turn on, and one that cannot be used says so and keeps no other from working.
A project's agents are inert until a person has trusted exactly these bytes. A change is made on the file as it is at that
moment, one at a time, and replaces it as a whole; it must never erase what it is not about.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from palaver.agents.changes import changes_of, check_id, fields_of_copy, new_id
from palaver.agents.records import BEST, RECORD_BYTES, Wrong, as_id, fields_of, impossible, record_of
from palaver.agents.trust import Trust
from palaver.approval.policy import OUR_TOOLS
from palaver.errors import CallerError, Conflict, Invalid, LogUnavailable, NotFound, TooLarge
from palaver.journal import Journal
from palaver.regular_file import read_regular
from palaver.schema.records import AgentRecord
from palaver.tools.files.atomic_file import Stamp, keep_names, replace_file, stamp_of
from palaver.tools.files.paths import Root

logger = Journal(__name__)

PROJECT_FOLDER = ".palaver/agents"
FILES_READ = 500
"""Of one folder: more agents than anybody chooses from, and few enough to look at each time somebody lists them."""
PROJECT_FILES_READ = 100
"""Of a project: its files are read anew at every use, and anybody may have written them."""
NAMES_READ = 5_000
"""Of one folder, to find those files among: a repository may hold any number."""
PARSED_RECORDS = 128
"""Parsed files of projects that are remembered, by their bytes."""

SAVED_MEANWHILE = 5
"""How often a change is made anew because an editor saved the file just then."""

Source = Literal["built-in", "data", "project"]


@dataclass(frozen=True, slots=True)
class Known:
    """An agent as its file has it. Without a `record` it cannot be used; `problem` says why, by name and field."""

    id: str
    source: Source
    record: AgentRecord | None
    path: Path | None = None
    project: Path | None = None
    hash: str | None = None
    trusted: bool = True
    problem: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the file itself says, beside the prompt."""
    text: str = ""
    """The file as it was read."""

    @property
    def usable(self) -> AgentRecord | None:
        return self.record if self.trusted and self.problem is None else None


class Book:
    def __init__(
        self,
        built_in: Iterable[AgentRecord] = (),
        folder: Path | None = None,
        trust: Trust | None = None,
        best: str = "api",
        backends: Collection[str] = (),
    ) -> None:
        """`best` of the `backends` runs the agents that name none. Without a `folder` there are those built in alone."""
        self.built_in = {record.id: record for record in built_in}
        self.folder = folder
        self._trust = trust
        self._best = best
        self._backends = backends
        self._writing = asyncio.Lock()
        self._files: dict[Path, tuple[Stamp, Known]] = {}
        self._projects: dict[tuple[Path, bytes], Known] = {}

    # -- one agent

    def agent(self, agent: str, project: Path | None = None) -> AgentRecord | None:
        """As it is now, if it can be used. A project's own work only there."""
        known = self.known(agent, project, trusted_only=True)
        return known.usable if known else None

    def known(self, agent: str, project: Path | None = None, *, trusted_only: bool = False) -> Known | None:
        """Whose id it is: the data directory's, else a built-in one, else the project's."""
        if not _is_id(agent):
            return None
        if found := self._in_data(agent):
            return found
        if agent in self.built_in:
            return self._ours(agent)
        return self._in_project(project, agent, trusted_only=trusted_only) if project is not None else None

    def why_not(self, agent: str, project: Path | None = None) -> str:
        known = self.known(agent, project)
        if known is None:
            return f"No agent is called “{agent}”: it was deleted, or never made. Choose another."
        return f"The agent “{agent}” cannot be used. {known.problem}"

    def allowed_tools(self, agent: AgentRecord, project: Path) -> tuple[str, ...]:
        """What runs without asking at this moment, whatever the record said when the turn began."""
        now = self.agent(agent.id, project)
        return now.allowed_tools if now else ()

    # -- all of them

    @property
    def records(self) -> tuple[AgentRecord, ...]:
        """Those that can be used everywhere."""
        return tuple(record for known in self.all() if (record := known.usable))

    def all(self, project: Path | None = None, *, trusted_only: bool = False) -> list[Known]:
        """In the order in which they are offered. With a project, its own last: also those that cannot be used there.

        Call it beside the loop unless `trusted_only`: files that no person has trusted are parsed for what they say.
        """
        files = {path.stem: path for path in _files_in(self.folder)} if self.folder else {}
        for gone in self._files.keys() - set(files.values()):
            self._files.pop(gone, None)
        built_in = [(self._in_data(agent) if agent in files else None) or self._ours(agent) for agent in self.built_in]
        others = [known for stem in files if stem not in self.built_in and (known := self._in_data(stem))]
        return [*built_in, *others, *(self._all_in_project(project, trusted_only) if project is not None else ())]

    def _ours(self, agent: str) -> Known:
        return Known(agent, "built-in", self._resolve(self.built_in[agent]))

    # -- the data directory

    def _in_data(self, agent: str) -> Known | None:
        if self.folder is None:
            return None
        path = self.folder / f"{agent}.md"
        stamp = stamp_of(path)
        if stamp is None:
            self._files.pop(path, None)
            return None
        kept = self._files.get(path)
        if kept is None or kept[0] != stamp:
            self._files[path] = kept = (stamp, self._read(path))
        return kept[1]

    def _read(self, path: Path) -> Known:
        try:
            if path.stat().st_size > RECORD_BYTES or not path.is_file():
                raise Wrong(None, f"it is no file of at most {RECORD_BYTES >> 10} KiB")
            data = read_regular(path, RECORD_BYTES)
        except OSError as failure:
            found = Known(path.stem, "data", None, path, problem=f"{path} cannot be read: {failure.strerror}.")
        except Wrong as wrong:
            found = Known(path.stem, "data", None, path, problem=f"{path} cannot be used: {wrong}.")
        else:
            found = self._parse(path.stem, data, path, str(path), self.built_in.get(path.stem))
        if found.problem:
            logger.warning("an agent's file cannot be used", reason=found.problem)
        return found

    def _parse(self, agent: str, data: bytes, path: Path, shown: str, base: AgentRecord | None) -> Known:
        digest = sha256(data).hexdigest()
        source: Source = "built-in" if base else "data"
        try:
            base = base or AgentRecord(id=as_id(agent), name=agent, backend=BEST)
            fields, prompt = fields_of(text := data.decode())
        except (Wrong, UnicodeDecodeError) as wrong:
            return Known(agent, source, None, path, hash=digest, problem=f"{shown} cannot be used: {wrong}.")
        record = self._resolve(record_of(base, fields, prompt))
        wrong_for_it = impossible(record)
        problem = f"{shown} cannot be used: {wrong_for_it}." if wrong_for_it else None
        return Known(agent, source, record, path, hash=digest, problem=problem, given=fields, text=text)

    def _resolve(self, record: AgentRecord) -> AgentRecord:
        """On the backend that runs it. Our own knows tools by our names only."""
        backend = self._best if record.backend == BEST else record.backend
        tools = tuple(OUR_TOOLS.get(tool, tool) for tool in record.tools) if backend == "api" else record.tools
        return replace(record, backend=backend, tools=tools)

    # -- projects

    def _all_in_project(self, project: Path, trusted_only: bool) -> Iterator[Known]:
        for path in _files_in(project / PROJECT_FOLDER, PROJECT_FILES_READ):
            if not _is_id(path.stem):
                continue
            found = self._in_project(project, path.stem, trusted_only=trusted_only)
            if found is not None:
                yield found

    def _in_project(self, project: Path, agent: str, *, trusted_only: bool = False) -> Known | None:
        """`trusted_only`: bytes that no person has trusted are not even parsed."""
        if self._trust is None or not (project / PROJECT_FOLDER).is_dir():
            return None
        shown = f"{PROJECT_FOLDER}/{agent}.md"
        try:
            # Read at every use, never remembered by its times: it lies where agents work, and what counts are its bytes.
            data = Root(project.resolve()).read(shown, RECORD_BYTES)
        except CallerError:
            # Nothing there, a link to somewhere else, or the data directory itself, whose agents are no project's.
            return None
        real = project.resolve()
        if trusted_only and not self._trust.covers(real, agent, sha256(data).hexdigest()):
            return None
        return self._judge(self._parse_once(agent, data, project / shown, shown), real)

    def _parse_once(self, agent: str, data: bytes, path: Path, shown: str) -> Known:
        """Of the same bytes the same agent comes, so they are parsed once and not at every use."""
        key = (path, sha256(data).digest())
        found = self._projects.pop(key, None) or self._parse(agent, data, path, shown, None)
        self._projects[key] = found
        if len(self._projects) > PARSED_RECORDS:
            self._projects.pop(next(iter(self._projects)), None)
        return found

    def _judge(self, found: Known, project: Path) -> Known:
        problem, trusted = found.problem, False
        if found.id in self.built_in or self._in_data(found.id):
            whose = "built in" if found.id in self.built_in else "in the data directory"
            problem = f"Another agent of the same id is {whose} and counts. Rename {PROJECT_FOLDER}/{found.id}.md."
        elif self._trust is not None and found.hash is not None:
            trusted = self._trust.covers(project, found.id, found.hash)
            if not trusted and problem is None:
                problem = f"Its file {PROJECT_FOLDER}/{found.id}.md is not trusted, or has changed since it was."
        return dataclasses.replace(found, source="project", project=project, trusted=trusted, problem=problem)

    async def trust(self, agent: str, project: Path, hash: str | None) -> Known:
        """These bytes of a project's agent may be used from now on; None: no longer. Raises when they are not those."""
        known = self._in_project(project, agent) if _is_id(agent) else None
        if known is None or self._trust is None:
            raise NotFound(f"There is no {PROJECT_FOLDER}/{agent}.md in {project}.", agent=agent)
        folder = known.project or project
        if hash is None:
            await self._trust.take(folder, agent)
        elif hash != known.hash:
            raise Conflict("This file has changed meanwhile. Look at it again before you trust it.", hash=known.hash)
        elif known.record is None:
            raise Conflict(f"{known.problem}", agent=agent)
        else:
            await self._trust.give(folder, agent, hash)
        return self._in_project(project, agent) or known

    # -- changes

    async def create(self, body: Mapping[str, Any]) -> Known:
        """A file of its own in the data directory. Raises Invalid by field, and Conflict where the id is taken."""
        agent = _usable_id(body)
        async with self._writing:
            if self.known(agent) is not None:
                raise Conflict(f"An agent “{agent}” exists already. Choose another name, or give an `id`.", agent=agent)
            await self._rewrite(agent, lambda _, record: changes_of(body, record))
        return self._keep_last(agent)

    async def update(self, agent: str, body: Mapping[str, Any]) -> Known:
        """Only what is given; null clears. Of a built-in one a file is made that holds what differs."""
        async with self._writing:
            self._editable(agent)
            await self._rewrite(agent, lambda _, record: changes_of(body, record))
        return self._keep_last(agent)

    async def allow_tool(self, agent: str, tool: str) -> bool:
        """From its next call on, also in turns that run, this agent uses the tool without asking. False: it did before."""
        return await self._change_allowed(agent, lambda known: known if tool in known else (*known, tool))

    async def disallow_tool(self, agent: str, tool: str) -> bool:
        """Its next call is asked for again, also in turns that run. False: it was before."""
        return await self._change_allowed(agent, lambda known: tuple(name for name in known if name != tool))

    async def _change_allowed(self, agent: str, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> bool:
        is_changed = False

        def changed(_: str, record: AgentRecord) -> tuple[dict[str, Any], str | None]:
            nonlocal is_changed
            tools = change(record.allowed_tools)
            is_changed = tools != record.allowed_tools
            return ({"allowed_tools": list(tools)} if is_changed else {}), None

        async with self._writing:
            self._editable(agent)
            await self._rewrite(agent, changed)
        return is_changed

    async def duplicate(
        self, agent: str, project: Path | None = None, wishes: Mapping[str, Any] | None = None
    ) -> Known:
        """Another with the same file, comments and all. Of a project's agent: one that works everywhere."""
        known = self.known(agent, project)
        if known is None or known.record is None or not known.trusted:
            raise (NotFound if known is None else Conflict)(self.why_not(agent, project), agent=agent)
        record = known.record
        async with self._writing:
            copy = _usable_id({"id": (wishes or {}).get("id") or new_id(f"{agent}-copy", self._is_taken)})
            if self._is_taken(copy):
                raise Conflict(f"An agent “{copy}” exists already. Choose another `id`.", agent=copy)
            name = (wishes or {}).get("name") or f"{record.name} (copy)"
            base = fields_of_copy(self.built_in[agent]) if agent in self.built_in else {}
            fields = {"name": name, **{field: base[field] for field in base if field not in known.given}}
            await self._rewrite(copy, lambda _, __: (fields, None), known.text)
        return self._keep_last(copy)

    async def delete(self, agent: str) -> None:
        async with self._writing:
            known = self._editable(agent)
            if agent in self.built_in or known.path is None:
                raise Conflict(f"“{agent}” comes with Palaver and cannot be deleted, only changed.", agent=agent)
            try:
                known.path.unlink(missing_ok=True)
                await asyncio.to_thread(keep_names, known.path.parent)
            except OSError as failure:
                raise LogUnavailable(f"{known.path} cannot be removed: {failure.strerror}.") from failure

    def _editable(self, agent: str) -> Known:
        known = self.known(agent)
        if known is None:
            raise NotFound(self.why_not(agent), agent=agent)
        if self.folder is None:
            raise Conflict("The agents of this server cannot be changed.", agent=agent)
        return known

    def _is_taken(self, agent: str) -> bool:
        return self.known(agent) is not None

    def _keep_last(self, agent: str) -> Known:
        known = self.known(agent)
        if known is None:
            raise NotFound(self.why_not(agent), agent=agent)
        return known

    async def _rewrite(self, agent: str, change: "Change", text: str | None = None) -> None:
        """Under the lock. `text` is what a file that is not there yet begins with."""
        if self.folder is None:
            raise Conflict("The agents of this server cannot be changed.", agent=agent)
        try:
            await asyncio.to_thread(self._rewritten, self.folder / f"{agent}.md", change, text or "")
        except Wrong as wrong:
            raise Invalid(f"{wrong}.", field=wrong.field) from wrong
        except OSError as failure:
            raise LogUnavailable(
                f"The file of “{agent}” cannot be written: {failure.strerror or failure}."
            ) from failure

    def _rewritten(self, path: Path, change: "Change", first: str) -> None:
        from palaver.agents.record_editor import edit_text

        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A person may keep the file elsewhere and only link to it.
        path = path.resolve()
        for _ in range(SAVED_MEANWHILE):
            stamp = stamp_of(path)
            before = first if stamp is None else read_regular(path, RECORD_BYTES).decode()
            base = self.built_in.get(path.stem) or AgentRecord(id=path.stem, name=path.stem, backend=BEST)
            after = edit_text(before, *change(before, _as_it_is(base, before)))
            self._check(base, after)
            if stamp == stamp_of(path):
                if stamp is None or after != before:
                    replace_file(path, after.encode(), 0o600 if stamp is None else path.stat().st_mode & 0o777)
                return
        raise Conflict("The file is being changed by somebody else. Try again.", agent=path.stem)

    def _check(self, base: AgentRecord, text: str) -> None:
        record = record_of(base, *fields_of(text))
        if len(text.encode()) > RECORD_BYTES:
            raise TooLarge(f"An agent's file holds at most {RECORD_BYTES >> 10} KiB.", limit=RECORD_BYTES)
        if self._backends and record.backend not in (BEST, *self._backends):
            raise Wrong("backend", f"`backend` is one of {', '.join((BEST, *self._backends))}, not “{record.backend}”")
        if problem := impossible(self._resolve(record)):
            raise Wrong("strict_inbox", problem)


Change = Callable[[str, AgentRecord], tuple[dict[str, Any], str | None]]
"""From a file's text and its agent to the fields that change, and the prompt if it does."""


def _as_it_is(base: AgentRecord, text: str) -> AgentRecord:
    """What a change starts from. A file with a mistake in it starts from nothing: the change may mend it."""
    try:
        return record_of(base, *fields_of(text))
    except Wrong:
        return base


def _usable_id(body: Mapping[str, Any]) -> str:
    try:
        given = body.get("id")
        if given is not None:
            return check_id(str(given))
        return check_id(new_id(str(body.get("name") or ""), lambda _: False))
    except Wrong as wrong:
        raise Invalid(f"{wrong}.", field=wrong.field) from wrong


def _is_id(text: str) -> bool:
    try:
        return bool(as_id(text))
    except Wrong:
        return False


def _files_in(folder: Path, limit: int = FILES_READ) -> list[Path]:
    try:
        return sorted(path for path in islice(folder.iterdir(), NAMES_READ) if path.suffix == ".md")[:limit]
    except OSError:
        return []
