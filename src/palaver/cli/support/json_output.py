"""What `--json` prints, command by command: the names that programs rely on. None is ever renamed; new ones may come.

Read by `reference`, which writes them into `docs/cli.md`, and by the tests that hold each command to its row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Literal

import msgspec

from palaver.cli.doctor import Finding
from palaver.client.agents import AgentDetails, AgentInfo, BackendInfo
from palaver.client.conversations import Hit, Imported, TakenOver, WaitingRequest
from palaver.client.projects import MissionInfo, PastMission, ProgramFolderInfo
from palaver.conversation.recovery.salvage import Cut, Salvaged
from palaver.log.base import Damage, Verified
from palaver.schema.commands import Accepted
from palaver.schema.view import Listing, State

Form = Literal["document", "list", "lines"]
"""`document`: one object. `list`: one array. `lines`: an object a line, each whole as soon as it is there."""


@dataclass(frozen=True, slots=True)
class Printed:
    form: Form
    names: tuple[str, ...] = ()
    says: str = ""


def names_of(kind: type) -> tuple[str, ...]:
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    return tuple(field.encode_name for field in msgspec.structs.fields(kind))


def _of(form: Form, kind: type, says: str = "", more: Sequence[str] = ()) -> Printed:
    return Printed(form, (*more, *names_of(kind)), says)


_EVENTS = "as they are stored; [`schema.json`](protocol/schema.json) has every type and field"
_ACCEPTED = "`applied`, `queued` and what is empty are left out where they have their usual value"
_MODEL = Printed("document", ("model", "installed", "engine", "weights", "size_bytes"))

PRINTED: dict[str, Printed] = {
    "send": Printed(
        "lines",
        ("type", "seq", "id", "ts", "conversation", "turn"),
        f"the events of the turn, {_EVENTS}. With --no-wait one document: `{'`, `'.join(names_of(Accepted))}`",
    ),
    "tail": Printed(
        "lines",
        ("type", "seq", "id", "ts", "conversation", "turn"),
        f"events {_EVENTS}. A line of the type `snapshot` stands for events that are gone",
    ),
    "requests": _of("lines", WaitingRequest, "`request` holds what is asked: `Request` in the schema"),
    "requests list": _of("lines", WaitingRequest, "`request` holds what is asked: `Request` in the schema"),
    "requests answer": _of("document", Accepted, _ACCEPTED),
    "list": _of("lines", Listing),
    "show": _of("document", State, "the whole view: `State` in the schema, with as many messages as were asked for"),
    "search": _of("lines", Hit),
    "branch": _of("document", Accepted, _ACCEPTED),
    "export": Printed(
        "lines",
        ("conversation", "format", "file", "size_bytes"),
        "a line a file; where the file is standard output, the events themselves (format jsonl). With --list, as `list`",
    ),
    "import": _of(
        "lines",
        Imported,
        f"a line a file. Of a program's history: `file`, `{'`, `'.join(names_of(TakenOver))}`",
        ("file",),
    ),
    "agents list": _of("lines", AgentInfo),
    "agents show": _of("document", AgentDetails),
    "backends": _of(
        "lines",
        BackendInfo,
        "with --test also `test`: `ok`, `text`, `duration_ms`, `error`, or null where none was made",
    ),
    "missions list": _of("lines", PastMission),
    "missions set": _of("document", MissionInfo),
    "missions clear": _of("document", MissionInfo),
    "projects settings": _of("lines", ProgramFolderInfo),
    "projects trust": _of("document", ProgramFolderInfo),
    "projects distrust": _of("document", ProgramFolderInfo),
    "model install": _MODEL,
    "model status": _MODEL,
    "model remove": _MODEL,
    "serve": Printed("document", ("url", "link", "data", "token_file"), "once, when it is ready"),
    "doctor": _of("list", Finding, "`state` is `ok`, `note` or `wrong`"),
    "token create": Printed("document", ("name", "role", "token")),
    "token list": Printed("list", ("name", "role")),
    "token revoke": Printed("document", ("name", "revoked")),
    "token rotate": Printed("document", ("token",)),
    "verify": _of("document", Verified, f"each of `damages`: `{'`, `'.join(names_of(Damage))}`"),
    "backup": Printed("document", ("source", "target", "size_bytes", "without_secrets", "fields", "left_out")),
    "salvage": _of("document", Salvaged, f"each of `damaged`: `{'`, `'.join(names_of(Cut))}`"),
}

WITHOUT = {
    "tui": "a screen, not a text",
    "mcp": "it speaks JSON already",
    "completion": "a script for a shell",
}
"""Commands that have no `--json`, and why."""
