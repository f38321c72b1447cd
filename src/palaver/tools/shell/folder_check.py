"""A tiny program that makes sure of the folder it was started in and becomes another: bubblewrap mounts folders by their names.

Started by the sandbox, inside of it, as `python -I -S -E folder_check.py DEVICE:INODE writing|reading -- PROGRAM ARGUMENT…`. A
name may lead elsewhere in the moment in which bubblewrap follows it; in here nobody outside can change what is mounted. The
project is a mount of its own here and nothing else of the machine can be written, so what is looked at is the mount itself: the
right folder, at the root of a mount, and writable where it should be.

It imports nothing but what the interpreter has at hand, because every command waits for it.
"""

# pathlib would double the time to start.
# ruff: noqa: PTH109, PTH116, PTH123, S606

import _signal  # type: ignore[import-not-found]  # `signal` brings enum along, which takes longer than all the rest
import os
import sys

REFUSED = 125
SIGPIPE, SIGXFSZ = 13, 25


def is_as_expected(identity: str, writing: bool) -> bool:
    here = os.stat(".")
    if f"{here.st_dev}:{here.st_ino}" != identity:
        return False
    return _is_mount(os.getcwd()) and not (writing and os.statvfs(".").f_flag & os.ST_RDONLY)


def _is_mount(place: str) -> bool:
    with open("/proc/self/mountinfo", "rb") as mounts:
        points = {line.split(b" ", 5)[4] for line in mounts}
    written = os.fsencode(place)
    for character in b"\\ \t\n":
        written = written.replace(bytes([character]), b"\\%03o" % character)
    return written in points


def main() -> None:
    identity, purpose, _, *argv = sys.argv[1:]
    try:
        if not is_as_expected(identity, purpose == "writing"):
            raise OSError("the project folder was replaced by another or by a link")
        # The interpreter ignores them, and what it becomes would too.
        for number in (SIGPIPE, SIGXFSZ):
            _signal.signal(number, _signal.SIG_DFL)
        os.execvp(argv[0], argv)
    except OSError as failure:
        sys.stderr.write(f"{argv[0]} was not run: {failure}\n")
        os._exit(REFUSED)


if __name__ == "__main__":
    main()
