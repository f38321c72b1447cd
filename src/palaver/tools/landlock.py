"""A tiny program that gives up rights and becomes another: files may be read, written and seen only where it says.

Started by the sandbox as `python -I -S -E landlock.py [--write PATH]… [--hide PATH]… -- PROGRAM ARGUMENT…`, inside the run
that the runner of processes holds. It imports nothing of Palaver and little else, because every command waits for it. What
it takes away (Linux's Landlock, for this process and all it will ever start) cannot be had back.

Read: everything but what is hidden. Written: what lies beneath the given folders, and the devices every program needs.
Rules can only allow, so a folder that holds something hidden is allowed entry by entry, and nothing new can be made in it.
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
    from collections.abc import Iterator

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION, PATH_BENEATH = 1, 1
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38

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
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")
"""Of /dev: a disk must not be read around the rules."""
POWERS = (2, 16, 17, 19, 21, 22, 27, 34, 38, 39, 40)
"""What a root user must not keep, because Landlock has no word on it: files by handle (2), modules, raw devices, other
processes (19, 38, 40), administration, reboot, new devices, the kernel's own memory (34, 39)."""
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


def restrict(writable: list[str], hidden: list[str]) -> None:
    version = _libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(VERSION))
    if version < OLDEST:
        raise OSError(f"this kernel's Landlock is too old or switched off (version {version})")
    handled = ALL_OF_1 | REFER | TRUNCATE | (IOCTL_DEV if version >= WITH_IOCTL else 0)
    wanted = Ruleset(handled, 0, SCOPES if version >= WITH_SCOPES else 0)
    size = 24 if version >= WITH_SCOPES else 16 if version >= WITH_NETWORK else 8
    ruleset = _called("create", CREATE_RULESET, ctypes.byref(wanted), ctypes.c_size_t(size), ctypes.c_uint32(0))
    for path in visible("/", [*hidden, "/dev"]):
        _allow(ruleset, path, READING & handled)
    for device in DEVICES:
        _allow(ruleset, f"/dev/{device}", handled)
    for folder in writable:
        # A folder within a hidden one is visible all the same: it is the one that is worked in.
        for path in visible(folder, [one for one in hidden if not _beneath(folder, one)]):
            _allow(ruleset, path, handled)
    for power in POWERS:
        _libc.prctl(PR_CAPBSET_DROP, power, 0, 0, 0)  # Refused to whoever has none to give up.
    if _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "privileges could not be given up")
    _called("restrict", RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)


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
        place = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return  # Gone meanwhile, or not there: then nothing is allowed either.
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= OF_FILES
        rule = PathBeneath(rights, place)
        _called("add a rule", ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(PATH_BENEATH), ctypes.byref(rule), 0)
    finally:
        os.close(place)


def _called(what: str, number: int, *arguments: object) -> int:
    result: int = _libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock could not {what}: {os.strerror(ctypes.get_errno())}")
    return result


def main() -> None:
    words = sys.argv[1:]
    end = words.index("--")
    given = list(zip(words[:end:2], words[1:end:2], strict=True))
    argv = words[end + 1 :]
    try:
        restrict(
            [path for flag, path in given if flag == "--write"], [path for flag, path in given if flag == "--hide"]
        )
        os.execvp(argv[0], argv)
    except OSError as failure:
        sys.stderr.write(f"{argv[0]} was not run: {failure}\n")
        os._exit(REFUSED)


if __name__ == "__main__":
    main()
