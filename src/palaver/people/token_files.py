"""Tokens on disk: the owner's in `token`, hashes of the others in `tokens.json`, signed-out sessions in `signed_out`.

Read by the composition root and whenever one of them changes; written by `palaver token`. Nobody but the owner of the data
directory may read them. Must never hold another's token in a form that could be used.
"""

import asyncio
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TypeVar

import msgspec

from palaver.clock import Clock
from palaver.errors import ConfigurationError
from palaver.journal import Journal
from palaver.people.authentication import KeyRecord, Keys, SignedOut
from palaver.regular_file import read_regular
from palaver.tools.files.atomic_file import Stamp, replace_file, stamp_of

logger = Journal(__name__)

T = TypeVar("T")

_LINE = re.compile(r"([0-9a-f]{16}) ([\w-]+|\*) ([0-9]{1,16})", re.ASCII)
"""Of the file `signed_out`."""

TOKEN_BYTES = 32
OWNERS, OTHERS = "token", "tokens.json"
LOOK_AT_KEYS_S = 2.0
"""How long a rotated token may stay valid: short for a person, nothing for a disk."""


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def ensure_token(data: Path) -> None:
    """Made at the first start. Raises OSError."""
    path = data / OWNERS
    if not path.exists():
        _make_token(path)
    path.chmod(0o600)


def _make_token(path: Path) -> None:
    """Whole or not at all, whenever the power fails; and of two servers that start at once both get the same one."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix="token.")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(new_token() + "\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            path.hardlink_to(temporary)
    finally:
        Path(temporary).unlink()


def rotate_token(data: Path) -> str:
    """A new one for the owner: the old one, and every cookie made with it, is void. Raises OSError."""
    token = new_token()
    replace_file(data / OWNERS, f"{token}\n".encode())
    return token


def read_token(data: Path) -> str:
    try:
        token = read_regular(data / OWNERS).decode().strip()
    except OSError as failure:
        raise ConfigurationError(f"The token in {data} cannot be read: {failure.strerror}.") from failure
    except UnicodeDecodeError:
        token = ""
    if len(token) < TOKEN_BYTES:
        raise ConfigurationError(
            f"The token in {data / OWNERS} is too short to be one. Remove the file and start again."
        )
    return token


def read_key_records(data: Path) -> list[KeyRecord]:
    """Tokens beside the owner's. Their file need not exist."""
    try:
        return msgspec.json.decode(read_regular(data / OTHERS), type=list[KeyRecord])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as failure:
        raise ConfigurationError(f"{data / OTHERS} cannot be read: {failure}.") from failure


def write_key_records(data: Path, records: Iterable[KeyRecord]) -> None:
    """Raises OSError."""
    replace_file(data / OTHERS, msgspec.json.format(msgspec.json.encode(list(records)), indent=2) + b"\n")


def token_stamps(data: Path) -> tuple[Stamp | None, ...]:
    """Changes whenever a token was made, taken back or rotated."""
    return tuple(stamp_of(data / name) for name in (OWNERS, OTHERS))


class TokenFiles:
    """The files of tokens, which another process may change: what is taken back there is refused here.

    A file that cannot be read vouches for nobody: its tokens are refused until it can be, for one of them may be what the
    change took back. The other file counts meanwhile. `drop_strangers` ends the streams of tokens that are gone.
    """

    def __init__(self, data: Path, keys: Keys, drop_strangers: Callable[[], None]) -> None:
        self._data, self._keys, self._drop_strangers = data, keys, drop_strangers
        self._known: tuple[Stamp | None, ...] | None = token_stamps(data)
        self._problems: list[str] = []

    def look(self) -> bool:
        """Whether they changed. Those that are new count from now on, and the streams of those that are gone end."""
        seen = token_stamps(self._data)
        if seen == self._known:
            return False
        # First what could fail, then the change as a whole, and last of all whatever is told about it.
        problems: list[str] = []
        token = _unless_unreadable(read_token, self._data, problems)
        others = _unless_unreadable(read_key_records, self._data, problems)
        self._keys.replace(token, others or ())
        self._drop_strangers()
        self._known = None if problems else seen
        if problems and problems != self._problems:
            logger.error("the tokens changed and cannot be read; they are refused", reasons=problems)
        elif not problems:
            logger.info("the tokens changed")
        self._problems = problems
        return True

    async def watch(self, clock: Clock) -> None:
        """Looks for as long as the server runs, whatever goes wrong at one time."""
        while True:
            await clock.sleep(LOOK_AT_KEYS_S)
            # Whatever fails: a watch that ended would let revoked tokens live on.
            try:
                self.look()
                # A browser's session may have expired without anybody changing anything.
                self._drop_strangers()
                await asyncio.to_thread(self._keys.save_signed_out)
            except Exception as failure:
                logger.error("the tokens could not be looked at", exc_info=failure)


def _unless_unreadable(read: Callable[[Path], T], data: Path, problems: list[str]) -> T | None:
    try:
        return read(data)
    except ConfigurationError as failure:
        problems.append(failure.message)
    except Exception as failure:  # noqa: BLE001 - the border: whatever a file holds, its tokens are refused
        problems.append(f"{type(failure).__name__} in {data}")
    return None


class SignedOutFile(SignedOut):
    """In the file `signed_out`: a line for each session (`key id expires_ms`) and each floor (`key * moment_ms`).

    Lines of another form are of releases whose cookies are void.
    """

    def __init__(self, data: Path) -> None:
        super().__init__()
        self._path = data / "signed_out"
        self._is_saved = True
        self._saving = Lock()
        with suppress(OSError):
            for line in read_regular(self._path).decode(errors="replace").splitlines():
                if (found := _LINE.fullmatch(line)) is None:
                    continue
                key, id, ms = found.groups()
                if id == "*":
                    self._floors[key] = int(ms)
                else:
                    self._sessions.setdefault(key, {})[id] = int(ms)

    def add(self, key: str, session_id: str, now_ms: int) -> None:
        super().add(key, session_id, now_ms)
        self._is_saved = False

    def save(self) -> None:
        """Tried again at the next call while the disk refuses; in this process they are signed out anyway."""
        with self._saving:
            if self._is_saved:
                return
            self._is_saved = True
            floors = [f"{key} * {floor_ms}\n" for key, floor_ms in self._floors.copy().items()]
            sessions = [
                f"{key} {id} {until_ms}\n"
                for key, known in self._sessions.copy().items()
                for id, until_ms in known.copy().items()
            ]
            try:
                replace_file(self._path, "".join(floors + sessions).encode())
            except OSError as failure:
                self._is_saved = False
                logger.warning("who signed out could not be written down", reason=failure.strerror)
