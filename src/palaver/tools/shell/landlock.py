"""A tiny program that gives up rights and becomes another: files may be read, written and seen only where it says.

Started by the sandbox as `python -I -S -E landlock.py [--write PATH]… [--read PATH]… [--hide PATH]… [--keep PATH]… [--offline
yes] -- PROGRAM ARGUMENT…`, inside the run that the runner of processes holds. It imports nothing of Palaver and little else,
because every command waits for it. What it takes away (Linux's Landlock and capabilities, for this process and all it will
ever start) cannot be had back.

Read: everything but what is hidden, and what is named in it. Written: what lies beneath the given folders, and the devices
every program needs; no terminal is among them, for a rule cannot tell a command's own from a person's. Rules can only allow, so
a folder that holds something hidden or kept as it is is allowed entry by entry, and nothing new can be made in it.
It must never run the program with more than it was told: any failure ends it with 125 and a sentence.
"""

# pathlib would double the time to start.
# ruff: noqa: PTH114, PTH118, PTH208, S606

import ctypes
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION, PATH_BENEATH = 1, 1
PR_CAPBSET_READ, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, CLEAR_ALL = 23, 24, 38, 47, 4

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
ALL_OF_1 = (1 << 13) - 1
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
READING = EXECUTE | READ_FILE | READ_DIR
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
SCOPES = 3
"""No signal to, and no abstract socket of, anybody outside."""

OLDEST = 3
"""Before it (Linux 6.2) any file that can be named could be emptied."""
WITH_NETWORK, WITH_IOCTL, WITH_SCOPES = 4, 5, 6
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
"""Of /dev: a disk must not be read around the rules, nor another terminal. /dev/tty is the command's own, which it has not."""
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - semaphores and shared memory of every program
TCP = 3
"""Bind and connect."""
CAPABILITIES = range(64)
CAPABILITY_VERSION = 0x20080522
REFUSED = 125

_libc = ctypes.CDLL(None, use_errno=True)


class Ruleset(ctypes.Structure):
    _fields_ = [
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    ]


class PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


class CapabilityHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


def restrict(
    writable: list[str],
    hidden: list[str],
    readable: "Sequence[str]" = (),
    kept: "Sequence[str]" = (),
    offline: bool = False,
) -> None:
    """`kept` lies in writable folders and can only be read."""
    version = _libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(VERSION))
    if version < OLDEST:
        raise OSError(f"this kernel's Landlock is too old or switched off (version {version})")
    handled = ALL_OF_1 | REFER | TRUNCATE | (IOCTL_DEV if version >= WITH_IOCTL else 0)
    tcp = TCP if offline and version >= WITH_NETWORK else 0
    wanted = Ruleset(handled, tcp, SCOPES if version >= WITH_SCOPES else 0)
    size = 24 if version >= WITH_SCOPES else 16 if version >= WITH_NETWORK else 8
    ruleset = _called("create", CREATE_RULESET, ctypes.byref(wanted), ctypes.c_size_t(size), ctypes.c_uint32(0))
    for path in visible("/", [*hidden, "/dev"]):
        _allow(ruleset, path, READING & handled)
    for device in DEVICES:
        _allow(ruleset, f"/dev/{device}", handled)
    for folder in writable:
        # The project may be replaced by a link in this moment; without it the command would fail in ways that say nothing.
        os.close(_open(folder, os.O_DIRECTORY))
    for folders, rights, but in (
        ((*readable, *writable), READING & handled, ()),
        (writable, handled, kept),
    ):
        for folder in folders:
            # A folder within a hidden one is visible all the same: it is the one that is worked in.
            for path in visible(folder, [*(one for one in hidden if not _beneath(folder, one)), *but]):
                _allow(ruleset, path, rights)
    if writable:
        _allow(ruleset, SHARED_MEMORY, handled)
    if _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "privileges could not be given up")
    give_up_capabilities()
    _called("restrict", RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)


def give_up_capabilities() -> None:
    """Landlock has no word on what root may do beside files: other users' processes, raw sockets, mounts, modules, the clock."""
    for capability in CAPABILITIES:
        _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    if os.geteuid() == 0 and any(_libc.prctl(PR_CAPBSET_READ, one, 0, 0, 0) == 1 for one in CAPABILITIES):
        # What is left in this set, root has again in the next program.
        raise OSError("the capabilities of root could not be given up")
    _libc.prctl(PR_CAP_AMBIENT, CLEAR_ALL, 0, 0, 0)
    header = CapabilityHeader(CAPABILITY_VERSION, 0)
    if _libc.capset(ctypes.byref(header), (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "capabilities could not be given up")


def visible(path: str, hidden: list[str]) -> "Iterator[str]":
    """What covers a folder without what is hidden in it: the folder itself, or its entries."""
    if any(_beneath(path, one) for one in hidden):
        return
    if not any(_beneath(one, path) for one in hidden):
        yield path
        return
    try:
        entries = os.listdir(path)
    except OSError:
        return
    for entry in entries:
        within = os.path.join(path, entry)
        # What a link leads to is allowed in its own place, or not at all.
        if not os.path.islink(within):
            yield from visible(within, hidden)


def _beneath(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = _open(path)
    except OSError:
        return  # Gone meanwhile, or not there: then nothing is allowed either.
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= OF_FILES
        rule = PathBeneath(rights, place)
        _called("add a rule", ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(PATH_BENEATH), ctypes.byref(rule), 0)
    finally:
        os.close(place)


def _open(path: str, flags: int = 0) -> int:
    """A place without a link on the way to it: agents can rename folders, and a link would allow what it leads to."""
    place = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        names = [name for name in path.split("/") if name]
        for name in names:
            further = flags if name is names[-1] else os.O_DIRECTORY
            below = os.open(name, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW | further, dir_fd=place)
            os.close(place)
            place = below
    except BaseException:
        os.close(place)
        raise
    return place


def _called(what: str, number: int, *arguments: object) -> int:
    result: int = _libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock could not {what}: {os.strerror(ctypes.get_errno())}")
    return result


def main() -> None:
    words = sys.argv[1:]
    end = words.index("--")
    given: dict[str, list[str]] = {"--write": [], "--read": [], "--hide": [], "--keep": [], "--offline": []}
    for flag, path in zip(words[:end:2], words[1:end:2], strict=True):
        given[flag].append(path)
    argv = words[end + 1 :]
    try:
        restrict(given["--write"], given["--hide"], given["--read"], given["--keep"], bool(given["--offline"]))
        os.execvp(argv[0], argv)
    except OSError as failure:
        sys.stderr.write(f"{argv[0]} was not run: {failure}\n")
        os._exit(REFUSED)


if __name__ == "__main__":
    main()
