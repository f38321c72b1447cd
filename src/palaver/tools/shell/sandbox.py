"""Sandbox of commands: bubblewrap, else Landlock, else nothing but limits and the process tree's end.

`probe` is called once by the composition root and by doctor; the shell tool wraps each command with what was found, and
requests show the words to the person who approves. What works is found out by trying what must be refused
(`sandbox_trial.py`), and the words say what the trial could do all the same. It never claims more than was tried.

A command may write the project and a temporary folder of its conversation's own. A *reading* one (what runs unasked, and our
own looks at a working tree) may write nothing and reach no network: whatever a repository makes it run can do nothing.
"""

import asyncio
import os
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import assert_never

from palaver.backends.process import allowed_environment, spawn, whole_tree_is_stopped
from palaver.backends.program_lookup import ProgramLookup, find_program
from palaver.errors import AgentError
from palaver.installation import BARE_INTERPRETER, places_in
from palaver.tools.files.held_folder import identity_of, open_folder
from palaver.tools.shell.locked_folder import locked_folder, tidy
from palaver.tools.shell.mounts import other_names, read_mounts
from palaver.tools.shell.sandbox_level import Level, levels_from

SOCKET_FOLDER_CHARS = 60
"""Of a temporary folder in which a socket can still be named."""
_SHORT_FOLDER = Path("/tmp")  # noqa: S108 - a private folder is made in it
PROBE_LIMIT_S = 10.0
"""A sandbox starts in milliseconds; one that hangs does not work here. Long enough that a busy machine loses none."""
_LANDLOCK = Path(__file__).with_name("landlock.py")
_TRIAL = Path(__file__).with_name("sandbox_trial.py")
_FOLDER_CHECK = Path(__file__).with_name("folder_check.py")
_SOCKET_GUARD = Path(__file__).with_name("socket_guard.py")

TEMPORARY = Path("/tmp")  # noqa: S108 - where commands expect to find what an earlier one left
_SHARED = (TEMPORARY, Path("/var/tmp"))  # noqa: S108 - covered by a folder of the conversation's own
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - as both sandboxes have it
_SOCKET_PLACES = (Path("/run"), Path("/var/run"), Path("/mnt/wslg"))
"""Where the machine's services listen (D-Bus, Docker, the session of every user); through some everything can be run outside."""
_RESOLVER_FILES = (Path("/etc/resolv.conf"), Path("/etc/hosts"), Path("/etc/localtime"), Path("/etc/nsswitch.conf"))
"""May be links into /run; without them no name is found."""
_PROGRAM_PLACES = tuple(
    Path("/run") / name for name in ("current-system", "booted-system", "wrappers", "opengl-driver")
)
"""Of NixOS, where all programs are found through /run."""
SOCKET_VARIABLES = ("SSH_AUTH_SOCK", "DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR")
"""Where a person's session says that its sockets are."""

HOME_SECRETS = (
    *(".ssh", ".gnupg", ".password-store", ".netrc", ".git-credentials", ".pypirc", ".npmrc", ".Xauthority"),
    *(".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".local/share/keyrings"),
)
"""Where keys and passwords lie in a home folder. A command that needs them is run by its person, not by an agent."""

# Nothing inside is privileged, also where the server is root: no capability, a user namespace of its own, no new privileges
# (bubblewrap sets them always), no terminal, nobody else's processes.
_CONFINED = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    # Whoever is not root has none in there, and a bubblewrap that is setuid does not let them say so.
    *(("--cap-drop", "ALL") if os.geteuid() == 0 else ()),
    *("--new-session", "--die-with-parent"),
)

_WORK = "write_root"
"""What a trial must be able to do, unless it only reads."""
_TOLERATED: Mapping[Level, frozenset[str]] = {
    "bubblewrap": frozenset({"abstract_socket"}),
    "landlock": frozenset({"abstract_socket", "signal", "processes", "mode"}),
}
"""What a trial may be able to do in a level that is used all the same. It is said in the words."""
_NOT_HELD = {
    "abstract_socket": "abstract sockets",
    "signal": "signals to your other processes",
    "processes": "the list of your other processes",
    "mode": "permissions and times of your files",
}
"""What a trial was able to do, in words."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    level: Level = "none"
    words: str = ""
    """For the person who approves."""
    program: str = ""
    options: tuple[str, ...] = ()
    """Of the program, beside what every version of it knows."""
    hidden: tuple[Path, ...] = ()
    """What nobody in the sandbox should see: the server's own data, with the token that answers requests, and keys."""

    def wrap(self, argv: Sequence[str], root: Path, temporary: Path | None = None) -> list[str]:
        """The command line that runs `argv` inside: only the root and the temporary folder can be written. The root is free
        of links; raises Forbidden where it was replaced."""
        return self._wrap(argv, _Place(root, _identity(root), temporary))

    def wrap_reading(self, argv: Sequence[str], root: Path, readable: Sequence[Path] = ()) -> list[str]:
        """The command line that runs `argv` inside, where nothing can be written and no network reached. `readable` are
        folders in hidden or temporary places that it needs."""
        return self._wrap(argv, _Place(root, _identity(root), None, reading=True, readable=tuple(readable)))

    def _wrap(self, argv: Sequence[str], place: "_Place") -> list[str]:
        # Looked at each time: a key that was made meanwhile is hidden too, and what is not there cannot be.
        match self.level:
            case "none":
                return list(argv)
            case "bubblewrap":
                alone = [*_CONFINED, *self.options, *(["--unshare-net"] if place.reading else [])]
                mounts = _mounts(place, _existing(self.hidden))
                checked = [BARE_INTERPRETER, "-I", "-S", "-E", str(_FOLDER_CHECK), place.identity]
                checked.append("reading" if place.reading else "writing")
                guarded = _guarded(argv, place, _folders(_SHARED), _existing(self.hidden))
                return [self.program, *alone, *mounts, "--chdir", str(place.root), "--", *checked, "--", *guarded]
            case "landlock":
                hidden = _existing(self.hidden)
                guarded = _guarded(argv, place, [place.temporary] if place.temporary else [], hidden)
                return [self.program, "-I", "-S", "-E", str(_LANDLOCK), *_rules(place, hidden), "--", *guarded]
            case _:
                assert_never(self.level)

    def exposes(self, root: Path) -> bool:
        """Whether a command that only reads what is beneath the root might read what should be hidden."""
        if self.level != "none":
            return False
        return any(place.is_relative_to(root) for place in _existing(self.hidden))

    def environment(self, temporary: Path | None) -> Mapping[str, str]:
        """What a command inside must be told: where it can write besides the root."""
        match self.level:
            case "none":
                return {}
            case "bubblewrap":
                return {"TMPDIR": str(TEMPORARY)}
            case "landlock":
                return {"TMPDIR": str(temporary)} if temporary is not None else {}
            case _:
                assert_never(self.level)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a command runs, free of links."""

    root: Path
    identity: str
    temporary: Path | None
    reading: bool = False
    readable: tuple[Path, ...] = ()


# -- bubblewrap: mounts


def _mounts(place: _Place, hidden: Sequence[Path]) -> list[str]:
    """In this order, for what is mounted later covers what came before: the whole machine read-only; what lies around the
    root; the root; everything else that must not be seen as it is."""
    around: list[str] = []
    beside: list[str] = []

    def mount(at: Path, *words: str) -> None:
        (around if place.root.is_relative_to(at) else beside).extend((*words, str(at)))

    replaced = _replaced(place.temporary)
    for folder, words in replaced.items():
        mount(folder, *words)
    for secret in hidden:
        # Within a folder that is replaced there is nothing left to hide, unless the root brings it back.
        if secret.is_relative_to(place.root) or not _lies_in(secret, replaced):
            mount(secret, *_cover(secret))
    for one in (*_kept(), *place.readable):
        if _lies_in(one, replaced) and not one.is_relative_to(place.root):
            mount(one, "--ro-bind-try", str(one))
    root = ["--ro-bind" if place.reading else "--bind", str(place.root), str(place.root)]
    return ["--ro-bind", "/", "/", *around, *root, *_installed(place), *beside]


def _installed(place: _Place) -> Iterator[str]:
    """What the server itself runs can be read. The folders between it and the root are mounts too, for what is mounted cannot
    be renamed."""
    own = [] if place.reading else places_in(place.root)
    between = {folder for one in own for folder in one.parents if folder != place.root and place.root in folder.parents}
    for folder in sorted(between):
        yield from ("--bind", str(folder), str(folder))
    for one in own:
        yield from ("--ro-bind", str(one), str(one))


def _replaced(temporary: Path | None) -> dict[Path, list[str]]:
    """Folders of the machine that a command finds replaced by others, and how each is mounted."""
    own = ["--tmpfs"] if temporary is None else ["--bind", str(temporary)]
    return {
        Path("/dev"): ["--dev"],
        Path("/proc"): ["--proc"],
        **dict.fromkeys(_folders(_SHARED), own),
        **{folder: ["--tmpfs"] for folder in _folders(_SOCKET_PLACES)},
    }


def _cover(place: Path) -> list[str]:
    return ["--tmpfs"] if place.is_dir() else ["--ro-bind", "/dev/null"]


# -- Landlock: rules


def _rules(place: _Place, hidden: Sequence[Path]) -> list[str]:
    closed = [*hidden, *_folders((*_SHARED, *_SOCKET_PLACES))]
    writable = [] if place.reading else [place.root, *([place.temporary] if place.temporary else [])]
    readable = [*_kept(), *place.readable, *([place.root] if place.reading else [])]
    told = [word for folder in writable for word in ("--write", str(folder))]
    told += [word for one in readable for word in ("--read", str(one))]
    told += [word for one in closed for word in ("--hide", str(one))]
    told += [word for folder in writable for one in places_in(folder) for word in ("--keep", str(one))]
    return told + (["--offline", "yes"] if place.reading else [])


# -- what both need


def _guarded(argv: Sequence[str], place: _Place, temporary: Sequence[Path], hidden: Sequence[Path]) -> list[str]:
    """With the decision on Unix sockets: reached are those in folders that the command may write, and none by one that reads."""
    reached = [] if place.reading else [place.root, *temporary, _SHARED_MEMORY]
    told = [word for folder in reached for word in ("--reach", str(folder))]
    # A folder that holds a key and a socket (that of an agent for keys, say) may lie in the project.
    told += [word for one in hidden if reached for word in ("--hide", str(one))]
    return [BARE_INTERPRETER, "-I", "-S", "-E", str(_SOCKET_GUARD), *told, "--", *argv]


def _identity(root: Path) -> str:
    """For the program that looks at it from inside."""
    with open_folder(root) as folder:
        device, inode = identity_of(folder)
        return f"{device}:{inode}"


def _existing(places: Sequence[Path]) -> list[Path]:
    """Those that are there, each under all of its names: what is mounted elsewhere too is hidden there too."""
    mounts = read_mounts()
    # Not the method of Path: that raises for what lies in a folder that may not be read.
    there = [place.resolve() for place in places if os.path.exists(place)]  # noqa: PTH110
    return list(dict.fromkeys(name for place in there for name in (place, *other_names(place, mounts))))


def _folders(places: Sequence[Path]) -> list[Path]:
    """Those that are there, each once: /var/run is mostly /run."""
    return list(dict.fromkeys(place.resolve() for place in places if os.path.isdir(place)))  # noqa: PTH112


def _lies_in(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _kept() -> Iterator[Path]:
    """What stays readable in folders that are closed: the way to names, and the programs themselves."""
    own = (Path(sys.prefix), Path(sys.base_prefix), _LANDLOCK.parent)
    for place in (*_RESOLVER_FILES, *_PROGRAM_PLACES, *own):
        if os.path.exists(place):  # noqa: PTH110 - as above
            yield place if place in _PROGRAM_PLACES else place.resolve()


# -- probe

Works = Callable[[Sandbox], Awaitable[frozenset[str] | None]]
"""What a trial was able to do in a sandbox; None where it does not hold, or does not work at all."""


def unsandboxed() -> Sandbox:
    ended = "process tree" if whole_tree_is_stopped() else "process group (what leaves it stays)"
    return Sandbox(
        words=f"none: runs as you, with a time limit, {ended} killed on stop. Not held: your files and keys, Palaver's data,"
        " the network, sockets, terminals and other processes (a program that kills Palaver's own lives on)"
    )


async def probe(
    environment: Mapping[str, str],
    hidden: Sequence[Path] = (),
    works: Works | None = None,
    strongest: Level = "bubblewrap",
    programs: ProgramLookup | None = None,
) -> Sandbox:
    """The strongest that works here and may be used. `works` tries one; tests give another."""

    async def tried(sandbox: Sandbox) -> frozenset[str] | None:
        return await _try(sandbox, environment)

    # Once a start: what a killed server left in the temporary folder goes.
    await asyncio.to_thread(tidy)
    secret = (*hidden, *_secrets(environment))
    for sandbox in _ladder(environment, secret, programs):
        if sandbox.level in levels_from(strongest) and (found := await (works or tried)(sandbox)) is not None:
            return replace(sandbox, words=_words(sandbox.level, found))
    return replace(unsandboxed(), hidden=secret)


def _ladder(
    environment: Mapping[str, str], hidden: tuple[Path, ...], programs: ProgramLookup | None
) -> Iterator[Sandbox]:
    find = programs.find if programs is not None else find_program
    if program := find("bwrap", environment):
        # Before version 0.8 it cannot keep a command from making user namespaces, which hold all the same.
        yield Sandbox("bubblewrap", program=program, hidden=hidden, options=("--disable-userns",))
        yield Sandbox("bubblewrap", program=program, hidden=hidden)
    if sys.platform == "linux":
        yield Sandbox("landlock", program=BARE_INTERPRETER, hidden=hidden)


def _words(level: Level, found: frozenset[str]) -> str:
    left = ", ".join(["the network", *(words for name, words in _NOT_HELD.items() if name in found)])
    match level:
        case "bubblewrap":
            held = (
                "bubblewrap: writes only in the project folder and a /tmp of its own, cannot read Palaver's data or the"
            )
            held += " keys in your home, nor reach your terminals, processes and sockets that have a path"
        case "landlock":
            held = (
                "Landlock: writes only in the project folder, a temporary folder of its own and /dev/shm, cannot read"
            )
            held += " Palaver's data, the keys in your home, /tmp, /run or your terminals, nor reach sockets that have a path"
        case "none":
            return unsandboxed().words
        case _:
            assert_never(level)
    return f"{held}. Not held: {left}"


def _secrets(environment: Mapping[str, str]) -> tuple[Path, ...]:
    home = environment.get("HOME")
    found = [Path(home) / name for name in HOME_SECRETS] if home else []
    for name in SOCKET_VARIABLES:
        # `unix:path=/run/…,guid=…` and `unix:///run/…` too.
        path = environment.get(name, "").removeprefix("unix:").removeprefix("path=").partition(",")[0]
        if path.startswith("/") and Path(path) != Path("/"):
            found.append(Path(path))
    return tuple(found)


async def _try(sandbox: Sandbox, environment: Mapping[str, str]) -> frozenset[str] | None:
    """What a trial inside was able to do that it should not; None where it does not work, or does not hold."""
    try:
        return await _run_trial(sandbox, environment)
    except OSError:
        return None  # No folder, socket or terminal can be had here: what cannot be tried is not relied on.


async def _run_trial(sandbox: Sandbox, environment: Mapping[str, str]) -> frozenset[str] | None:
    with _trial_folder() as (folder, terminal):
        root = folder / "root"
        trial = replace(sandbox, hidden=(root / "hidden",))
        argv = [BARE_INTERPRETER, "-I", "-S", "-E", str(_TRIAL), str(folder), str(os.getpid()), terminal]
        working, reading = await asyncio.gather(
            _able(trial.wrap(argv, root), root, environment),
            _able(trial.wrap_reading(argv, root), root, environment),
        )
    if working is None or reading is None or _WORK not in working:
        return None
    found = (working - {_WORK}) | reading
    return found if found <= _TOLERATED[sandbox.level] else None


async def _able(argv: Sequence[str], root: Path, environment: Mapping[str, str]) -> frozenset[str] | None:
    """What the trial says that it did, once it came to its end."""
    try:
        async with (
            asyncio.timeout(PROBE_LIMIT_S),
            spawn(argv, cwd=root, environment=allowed_environment(environment)) as child,
        ):
            said = [line.decode(errors="replace") async for line in child.lines()]
            code = (await child.ended()).code
    except (TimeoutError, AgentError):
        return None
    return frozenset(said[:-1]) if code == 0 and said[-1:] == ["done"] else None


@contextmanager
def _trial_folder() -> Iterator[tuple[Path, str]]:
    """A folder with everything that a trial must not reach, and the name of a terminal."""
    with ExitStack() as stack:
        # The name of a socket has at most a hundred characters or so.
        parent = _SHORT_FOLDER if len(tempfile.gettempdir()) > SOCKET_FOLDER_CHARS else None
        folder = stack.enter_context(locked_folder(parent)).resolve()
        for within in ("root", "root/hidden", "root/work", "outside"):
            (folder / within).mkdir()
        (folder / "root" / "hidden" / "secret").write_text("secret")
        (folder / "outside" / "file").write_text("as it was")
        for address in (str(folder / "outside" / "socket"), str(folder / "outside" / "first"), f"\0{folder}"):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen(8)
        # No list of sockets names it by its place any more.
        (folder / "outside" / "first").rename(folder / "outside" / "renamed")
        stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)).bind(str(folder / "outside" / "datagram"))
        terminals = os.openpty()
        for descriptor in terminals:
            stack.callback(os.close, descriptor)
        yield folder, os.ttyname(terminals[1])
