"""Program lookup on a PATH without what an agent can put there.

Used for every program that the server starts by its name: agent programs, MCP servers, espeak-ng, git, bubblewrap, the commands
that run unasked. An entry of a PATH that is relative, or lies in a folder that agents write to, names whatever they put there;
so does a link into such a folder. A path in an agent's record is a person's own choice and is taken as it is.

Whatever starts a program asks a `ProgramLookup`, which knows every folder that agents work in: what an agent plants in one
project must not be found by a turn in another. It starts nothing.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path

from palaver.errors import Exited, NotInstalled
from palaver.installation import is_installed

FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"
LINK_LIMIT = 40
"""Links one path may lead through, as many as Linux itself follows."""


class ProgramLookup:
    """Lookup of programs outside every project folder, and the empty folder in which some of them start.

    Its methods block for the time of some looks at the file system.
    """

    def __init__(self, project_folders: Callable[[], Sequence[Path]], empty: Path) -> None:
        """`project_folders` are asked for at each lookup: more are chosen while the server runs. `empty` lies in none of
        them, at any depth; it is made when it is first needed."""
        self._project_folders = project_folders
        self._empty = empty

    def project_folders(self) -> Sequence[Path]:
        return self._project_folders()

    def find(self, name: str, environment: Mapping[str, str]) -> str | None:
        return find_program(name, environment, self._project_folders())

    def can_be_planted(self, name: str, environment: Mapping[str, str]) -> bool:
        """Whether a command line of an agent may find a program of its own under a name: on the way to the one that is
        found, the PATH leads through a folder that agents write to."""
        writable = _resolved([*self._project_folders(), *_TEMPORARY_FOLDERS])
        entries = environment.get("PATH", FALLBACK_PATH).split(os.pathsep)
        trusted = set(_trusted_entries(environment, writable))
        for entry in entries:
            if entry not in trusted:
                return True
            if (found := shutil.which(name, path=entry)) is not None:
                return _lies_in(Path(found), writable)
        return True

    def prepare(
        self, command: Sequence[str], environment: Mapping[str, str], how_to_install: str = ""
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """Command and environment of a program that runs outside every sandbox, with nothing of the project folders:
        neither the program itself, nor an interpreter or a helper that it finds on its PATH. Raises NotInstalled."""
        folders = self._project_folders()
        argv = resolve_command(command, environment, folders, how_to_install)
        return argv, {**environment, "PATH": trusted_path(environment, folders)}

    def trusted_path(self, environment: Mapping[str, str]) -> str:
        return trusted_path(environment, self._project_folders())

    def empty_folder(self) -> Path:
        """For programs that run code of the folder they start in, or of one above it: npx, uvx, `python -m`."""
        try:
            self._empty.mkdir(mode=0o500, parents=True, exist_ok=True)
            for entry in self._empty.iterdir():
                # Left by one of root's programs: the mode keeps nobody else's from writing here.
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()
        except OSError as failure:
            raise Exited(
                f"{self._empty}, where programs start, is not usable: {failure.strerror or failure}."
            ) from failure
        return self._empty


_TEMPORARY_FOLDERS = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))  # noqa: S108 - they are looked for, not used
"""Commands write there, in every sandbox or in none."""
_PACKAGE_RUNNERS = frozenset({"npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "uv", "uvx", "pipx"})
"""Take a program from the packages, and their settings from the configuration, of the folder they start in."""


def runs_packages(command: Sequence[str]) -> bool:
    """Whether a command takes the code that it runs from the folder it starts in: npx and the like, `python -m`."""
    return Path(command[0]).stem in _PACKAGE_RUNNERS or (len(command) > 1 and command[1] == "-m")


def trusted_path(environment: Mapping[str, str], writable: Sequence[Path]) -> str:
    """The PATH without relative entries and without those in a writable folder, by whatever links they lead there."""
    return os.pathsep.join(_trusted_entries(environment, _resolved(writable)))


def find_program(name: str, environment: Mapping[str, str], writable: Sequence[Path] = ()) -> str | None:
    """The absolute path of a program that lies in none of the writable folders; None where there is none."""
    folders = _resolved(writable)
    if os.sep in name:
        is_outside = Path(name).is_absolute() and not _lies_in(Path(name), folders)
        return shutil.which(name) if is_outside else None
    for entry in _trusted_entries(environment, folders):
        found = shutil.which(name, path=entry)
        # The link itself is run, not its target: some programs are many in one and go by the name they are called.
        if found is not None and not _lies_in(Path(found), folders):
            return found
    return None


def resolve_command(
    command: Sequence[str], environment: Mapping[str, str], writable: Sequence[Path], how_to_install: str = ""
) -> tuple[str, ...]:
    """A command with its program as an absolute path, unless it names a path already. Raises NotInstalled."""
    name = command[0]
    if os.sep in name:
        return tuple(command)
    if found := find_program(name, environment, writable):
        return (found, *command[1:])
    if inside := find_program(name, environment, ()):
        raise NotInstalled(
            f"{name} was found only in a project folder ({inside}), where agents can write, so it was not started. Install "
            "it outside, or choose another project folder.",
            program=name,
        )
    raise NotInstalled(
        f"{name} was not found. {how_to_install or 'Install it, or put its folder on the PATH.'}", program=name
    )


def lies_in(program: str, folders: Sequence[Path]) -> bool:
    """Whether a program lies in one of these folders, or is reached through one."""
    return _lies_in(Path(program), _resolved(folders))


def _resolved(folders: Sequence[Path]) -> Set[Path]:
    return {folder.resolve() for folder in folders}


def _trusted_entries(environment: Mapping[str, str], folders: Set[Path]) -> Iterator[str]:
    for entry in environment.get("PATH", FALLBACK_PATH).split(os.pathsep):
        if Path(entry).is_absolute() and not _lies_in(Path(entry), folders):
            yield entry


def _lies_in(path: Path, folders: Set[Path]) -> bool:
    """At its end or on the way there: a link in between that an agent can write leads wherever the agent wants. The server's own
    installation is no part of the project that it lies in: nobody writes there for an agent."""
    if is_installed(path):
        path = path.resolve()
        if is_installed(path):
            return False
    # The way passes every folder from the root down, so whatever lies in one of these has passed it.
    return any(place in folders for place in _places_on_the_way(path))


def _places_on_the_way(path: Path) -> Iterator[Path]:
    """Every folder, link and file through which the kernel reaches an absolute path, free of links before it."""
    waiting = list(reversed(path.parts[1:]))
    place, links = Path("/"), 0
    yield place
    while waiting:
        name = waiting.pop()
        place = place.parent if name == ".." else place / name
        yield place
        # Not the method of Path: that raises where a folder on the way may not be read.
        if os.path.islink(place) and links < LINK_LIMIT:  # noqa: PTH114
            links += 1
            target = place.readlink()
            place = Path("/") if target.is_absolute() else place.parent
            waiting += [part for part in reversed(target.parts) if part != "/"]
