"""Golden logs as the bus tells them."""

from pathlib import Path

from palaver.core.fold.evolve import evolve
from palaver.faces.bus.frames import Told
from palaver.faces.bus.projection import project
from palaver.schema.events import Event, LogCompacted, decode_event
from palaver.schema.view import State

GOLDEN = Path(__file__).parents[3] / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.jsonl"))


def told(name: str) -> list[tuple[Event, State, list[Told]]]:
    """Each event, the view after it and what is told of it."""
    state, found = State(), []
    for line in (GOLDEN / f"{name}.jsonl").read_bytes().splitlines():
        event = decode_event(line)
        before, state = state, evolve(state, event)
        found.append((event, state, [] if isinstance(event, LogCompacted) else project(event, before, state)))
    return found


def words(frames: list[Told]) -> list[str]:
    """Each as `kind`, `kind/phase` or `activity/phase status`."""
    names = [f"{one.kind}/{one.phase}" if one.phase else one.kind for one in frames]
    return [
        f"{name} {one.data['status']}" if one.kind == "activity" and one.data else name
        for name, one in zip(names, frames, strict=True)
    ]


def flat(name: str) -> list[Told]:
    return [one for _, _, frames in told(name) for one in frames]
