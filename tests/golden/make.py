"""Makes the golden logs and the states they fold to: `python -m tests.golden.make`, or `--check` to find drift.

For each scene two files, read by the Python and the TypeScript tests alike:

- `<name>.jsonl`: one event a line, as stored.
- `<name>.states.json`: `{"<seq>": state}`, the view after that event; the last one is always there. When the first
  line's number is not 1, the state just before it is there too and is where the fold begins (a snapshot).

A released log is never changed, only added to: a change of the schema or the fold that shows here as a difference in an old
state is a broken promise, not a reason to make the files anew.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from palaver.core.fold.evolve import fold
from palaver.schema.events import decode_event
from palaver.schema.view import State
from tests.golden.record import Record
from tests.golden.scenes.agents import delegated, delegating
from tests.golden.scenes.elsewhere import elsewhere
from tests.golden.scenes.engine import engine
from tests.golden.scenes.history import branched, paged, rewritten, withdrawn
from tests.golden.scenes.interrupted import interrupted, retried
from tests.golden.scenes.long import compacted_long, long
from tests.golden.scenes.queue import patient, paused, queue
from tests.golden.scenes.requests import many_requests, requests, restart
from tests.golden.scenes.strange import misplaced, unknown
from tests.golden.scenes.talk import talk
from tests.golden.scenes.tools import output, tools
from tests.golden.scenes.work import crowded, work

HERE = Path(__file__).parent

SCENES: tuple[Callable[[], Record], ...] = (
    talk,
    tools,
    output,
    requests,
    many_requests,
    restart,
    queue,
    paused,
    patient,
    interrupted,
    retried,
    rewritten,
    withdrawn,
    branched,
    paged,
    work,
    crowded,
    delegating,
    delegated,
    engine,
    elsewhere,
    unknown,
    misplaced,
    long,
    compacted_long,
)


def states_of(log: Record) -> dict[str, State]:
    state = log.start or State()
    wanted = {*log.checks, log.seq}
    states = {str(state.seq): state} if log.start else {}
    for line in log.lines:
        state = fold(state, (decode_event(line),))
        if state.seq in wanted:
            states[str(state.seq)] = state
    return states


def files_of(log: Record) -> dict[str, bytes]:
    """The files of a scene by name. One state a line, so that a difference is readable."""
    states = states_of(log)
    shown = b",\n".join(b'"%s": %s' % (seq.encode(), msgspec.json.encode(state)) for seq, state in states.items())
    return {
        f"{log.name}.jsonl": b"".join(line + b"\n" for line in log.lines),
        f"{log.name}.states.json": b"{\n" + shown + b"\n}\n",
    }


def drifted() -> list[str]:
    """Files that differ from what the scenes say now, are missing, or belong to no scene."""
    made = {name: body for scene in SCENES for name, body in files_of(scene()).items()}
    found = {path.name for path in HERE.iterdir() if path.suffix in (".json", ".jsonl")}
    differing = [name for name, body in made.items() if name not in found or (HERE / name).read_bytes() != body]
    return sorted({*differing, *(found - made.keys())})


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        names = drifted()
        if names:
            sys.stderr.write(f"Golden files have drifted: {', '.join(names)}. See tests/golden/make.py.\n")
        return 1 if names else 0
    for scene in SCENES:
        for name, body in files_of(scene()).items():
            (HERE / name).write_bytes(body)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
