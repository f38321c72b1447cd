"""What counts where nobody said otherwise: settings of the whole server that a person may change while it runs.

Kept as one small file of the data directory. Asked by the directory when a conversation begins (agent, mode, model,
knowledge) and by the owner of a conversation when a request opens (how long it waits). Names that mean nothing here are
kept for the client they mean something to; nothing that looks like a secret is kept at all.
"""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from palaver.core import params
from palaver.core.decide.decision import Refusal
from palaver.errors import Invalid, StorageFull, TooLarge
from palaver.journal import Journal
from palaver.schema.records import AgentRecord
from palaver.tools.files.atomic_file import replace_file

logger = Journal(__name__)

SETTINGS_BYTES = 64 << 10
"""They are read whole and written whole."""

AS_PARAMS = {
    "default_mode": "mode",
    "default_model": "model",
    "request_timeout_s": "request_timeout_s",
    "tool_calls_per_minute": "tool_calls_per_minute",
    "knowledge": "knowledge",
}
"""Settings that are what a parameter of a conversation is where that has none."""
UNSAID: Mapping[str, Any] = {
    "default_agent": "default",
    "default_mode": "ask",
    "default_model": None,
    "request_timeout_s": 0,
    "tool_calls_per_minute": 0,
    "knowledge": True,
}
"""What counts where a setting says nothing either."""
LIMITS = frozenset({"request_timeout_s", "tool_calls_per_minute"})
"""Settings that are looked up when they are needed, so that a change counts for every conversation at once."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET = re.compile(
    r"(?:^|[_-])(?:(?:api|private|access|auth)[_-]?(?:keys?|tokens?)|key|token|secrets?"
    r"|passwords?|passwd|passphrases?|credentials?|authorization)$"
)
"""By the name's end. Keys and tokens in the plural need a word before them: clients count tokens and bind keys."""


class Defaults:
    def __init__(self, path: Path | None = None) -> None:
        """Without a `path` they are forgotten with the process."""
        self._path = path
        self._said: dict[str, Any] = _read(path) if path else {}
        self._writing = asyncio.Lock()

    @property
    def shown(self) -> dict[str, Any]:
        """All of them, with what counts where nothing was said."""
        return {**UNSAID, **self._said}

    @property
    def agent(self) -> str | None:
        return self._said.get("default_agent")

    @property
    def params(self) -> dict[str, Any]:
        """As parameters of a conversation, weaker than its own and its agent's."""
        return {param: self._said[name] for name, param in AS_PARAMS.items() if name in self._said}

    def params_for(self, record: AgentRecord | None) -> dict[str, Any]:
        """What a new conversation begins with: all but what its agent has a word of its own about."""
        own: set[str] = set(record.params) if record else set()
        own |= {"mode"} if record and record.mode else set()
        own |= {"model"} if record and record.model else set()
        return {name: value for name, value in self.params.items() if name not in own | LIMITS}

    @property
    def limits(self) -> dict[str, Any]:
        """As parameters that a turn runs under where neither its conversation nor its agent says otherwise."""
        return {name: value for name, value in self.params.items() if name in LIMITS}

    async def merge(self, patch: Mapping[str, Any]) -> list[str]:
        """Changes what is given; null clears. On disk when it returns; answers the names that were not kept."""
        ignored: list[str] = []
        fitted = _without_secrets(_check(patch), ignored)
        async with self._writing:
            merged = _merge(self._said, fitted)
            body = msgspec.json.format(msgspec.json.encode(merged, order="sorted"))
            if len(body) > SETTINGS_BYTES:
                raise TooLarge(f"Settings may hold {SETTINGS_BYTES >> 10} KiB.", limit=SETTINGS_BYTES)
            if self._path is not None:
                try:
                    await asyncio.to_thread(replace_file, self._path, body)
                except OSError as failure:
                    raise StorageFull(f"The settings could not be written: {failure.strerror}.") from failure
            self._said = merged
        return ignored


def _check(patch: Mapping[str, Any]) -> dict[str, Any]:
    fitted = dict(patch)
    agent = patch.get("default_agent")
    if agent is not None and not (isinstance(agent, str) and _ID.fullmatch(agent)):
        raise Invalid("`default_agent` must be the id of an agent.")
    for name, param in AS_PARAMS.items():
        if name in patch:
            one = params.check_patch({param: patch[name]})
            if isinstance(one, Refusal):
                raise Invalid(one.message.replace(f"`{param}`", f"`{name}`"))
            fitted[name] = one[param]
    return fitted


def _without_secrets(value: Mapping[str, Any], ignored: list[str], where: str = "") -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, one in value.items():
        if _SECRET.search(_HUMP.sub("_", name).lower()):
            ignored.append(f"{where}{name}")
        else:
            kept[name] = _clean(one, ignored, f"{where}{name}")
    return kept


def _clean(value: Any, ignored: list[str], where: str) -> Any:
    if isinstance(value, dict):
        return _without_secrets(value, ignored, f"{where}.")
    if isinstance(value, list):
        return [_clean(one, ignored, f"{where}[{place}]") for place, one in enumerate(value)]
    return value


def _merge(known: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(known)
    for name, value in patch.items():
        before = merged.get(name)
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            merged[name] = _merge(before if isinstance(before, dict) else {}, value)
        else:
            merged[name] = value
    return merged


def _read(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as failure:
        logger.warning("the settings cannot be read; none count until they are set anew", reason=str(failure))
        return {}
