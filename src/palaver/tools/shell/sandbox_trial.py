"""Escape trial: a program that tries to leave the sandbox it runs in, and prints the name of everything it was able to do.

Started by the sandbox's probe as `python -I -S -E sandbox_trial.py FOLDER SERVER_PID TERMINAL`, in FOLDER/root, once as a
command that may write there and once as one that only reads. It imports nothing of Palaver. A last line `done` proves that it
came to its end.

It may run as root where nothing holds it, so no attempt may change the machine: it unmounts and remounts only what a sandbox
put there, and stops at the first sign that there is none.
"""

# ruff: noqa: PTH101, PTH123, PTH208, T201

import contextlib
import ctypes
import os
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MS_RDONLY, MS_REMOUNT, MS_BIND, MNT_DETACH = 1, 32, 4096, 2
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
ST_RDONLY = 1
HELD_BY_NOTHING = ("write_outside", "read_hidden")

_libc = ctypes.CDLL(None, use_errno=True)


def attempts(folder: str, server: int, terminal: str) -> "dict[str, Callable[[], bool]]":
    """Each raises or is false where it is refused."""
    root, outside, hidden = (f"{folder}/{name}" for name in ("root", "outside", "root/hidden"))
    return {
        "write_outside": lambda: write(f"{outside}/file"),
        "read_hidden": lambda: read_anyhow(f"{hidden}/secret"),
        "write_root": lambda: write(f"{root}/work/draft"),
        "remount": lambda: remount("/"),
        "unmount": lambda: unmount(hidden) and read_anyhow(f"{hidden}/secret"),
        "namespace": lambda: run_in_namespace(lambda: unmount(hidden) or remount("/")),
        "socket": lambda: any(attempt(f"{outside}/{name}") for name, attempt in SOCKETS),
        "abstract_socket": lambda: connect(f"\0{folder}"),
        "terminal": lambda: open_terminal(terminal),
        "signal": lambda: send_signal(server),
        "processes": lambda: bool(os.listdir(f"/proc/{server}")),
        "mode": lambda: change_mode(f"{outside}/file"),
    }


def write(path: str) -> bool:
    with open(path, "a") as file:
        file.write("x")
    return True


def read_anyhow(path: str) -> bool:
    """Directly, and through the root of every process that can be seen."""
    ways = [path, *(f"/proc/{process}/root{path}" for process in os.listdir("/proc") if process.isdigit())]
    for way in ways:
        with contextlib.suppress(OSError), open(way) as file:
            if file.read():
                return True
    return False


def remount(path: str) -> bool:
    """Whether it can be made writable that was not."""
    if not os.statvfs(path).f_flag & ST_RDONLY:
        return False
    # This mount alone, never the file system behind it: that would be the machine's own.
    _libc.mount(None, path.encode(), None, ctypes.c_ulong(MS_REMOUNT | MS_BIND), None)
    return not os.statvfs(path).f_flag & ST_RDONLY


def unmount(path: str) -> bool:
    return bool(_libc.umount2(path.encode(), MNT_DETACH) == 0)


def run_in_namespace(attempt: "Callable[[], bool]") -> bool:
    """In namespaces of its own, where a process has every capability over what was made there."""
    child = os.fork()
    if child == 0:
        done = False
        with contextlib.suppress(OSError):
            done = _libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 and attempt()
        os._exit(0 if done else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def connect(address: str) -> bool:
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(address)
    return True


def connect_anyhow(address: str) -> bool:
    with contextlib.suppress(OSError):
        return connect(address)
    # By a name that is not its own, and through a folder that was entered.
    with contextlib.suppress(OSError):
        return connect(os.path.relpath(address))
    return False


def send(address: str) -> bool:
    """A datagram needs no connection, and a pair of sockets that are no streams can be turned elsewhere."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        return one.sendto(b"x", address) == 1
    with contextlib.suppress(OSError):
        for one in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM):
            with one:
                one.connect(address)
                return True
    return False


SOCKETS = (("socket", connect_anyhow), ("renamed", connect_anyhow), ("datagram", send))


def open_terminal(name: str) -> bool:
    os.close(os.open(name, os.O_RDWR | os.O_NOCTTY))
    return True


def send_signal(process: int) -> bool:
    os.kill(process, 0)
    return True


def change_mode(path: str) -> bool:
    os.chmod(path, 0o600)
    return True


def main() -> None:
    folder, server, terminal = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    for name, attempt in attempts(folder, server, terminal).items():
        with contextlib.suppress(OSError):
            if attempt():
                print(name)
                if name in HELD_BY_NOTHING:
                    # Outside of any sandbox the others would change the machine itself.
                    break
    print("done")


if __name__ == "__main__":
    main()
