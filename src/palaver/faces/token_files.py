"""Tokens on disk: the owner's in `token`, hashes of the others in `tokens.json`, signed-out cookies in `signed_out`.

Read by the composition root and whenever one of them changes; written by `palaver token`. Nobody but the owner of the data
directory may read them. Must never hold another's token in a form that could be used.
"""

import os
import secrets
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from palaver.errors import ConfigurationError
from palaver.faces.keys import KeyRecord, SignedOut
from palaver.tools.whole import Stamp, replace_file, stamp_of

TOKEN_BYTES = 32
OWNERS, OTHERS = "token", "tokens.json"


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
        token = (data / OWNERS).read_text().strip()
    except OSError as failure:
        raise ConfigurationError(f"The token in {data} cannot be read: {failure.strerror}.") from failure
    if len(token) < TOKEN_BYTES:
        raise ConfigurationError(
            f"The token in {data / OWNERS} is too short to be one. Remove the file and start again."
        )
    return token


def read_key_records(data: Path) -> list[KeyRecord]:
    """Tokens beside the owner's. Their file need not exist."""
    try:
        return msgspec.json.decode((data / OTHERS).read_bytes(), type=list[KeyRecord])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as failure:
        raise ConfigurationError(f"{data / OTHERS} cannot be read: {failure}.") from failure


def write_key_records(data: Path, records: Iterable[KeyRecord]) -> None:
    """Raises OSError."""
    replace_file(data / OTHERS, msgspec.json.format(msgspec.json.encode(list(records)), indent=2) + b"\n")


def token_stamps(data: Path) -> tuple[Stamp | None, ...]:
    """Changes whenever a token was made, taken back or rotated."""
    return tuple(stamp_of(data / name) for name in (OWNERS, OTHERS))


class SignedOutFile(SignedOut):
    """A line a cookie, in a file that rotating the token makes void."""

    def __init__(self, data: Path) -> None:
        super().__init__()
        self._path = data / "signed_out"
        with suppress(FileNotFoundError):
            self._hashes.update(self._path.read_text().split())

    def add(self, cookie_hash: str) -> None:
        super().add(cookie_hash)
        with self._path.open("a") as file:
            file.write(f"{cookie_hash}\n")
