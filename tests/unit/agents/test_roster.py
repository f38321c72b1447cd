"""Who is told of to a model: those that can work, without looking for their programs at every call."""

from msgspec.structs import replace

from palaver.agents.roster import LOOK_S, READY, Roster, Source
from palaver.backends.base import Readiness
from palaver.backends.script.backend import ScriptedBackend
from palaver.clock import ManualClock
from palaver.schema.records import AgentRecord

RECORD = AgentRecord(id="worker", name="Worker", backend="program")


class Program:
    """A program that can be installed, and counts how often somebody looked for it."""

    def __init__(self) -> None:
        self.installed = True
        self.looks = 0

    def readiness(self, record: AgentRecord) -> Readiness:
        self.looks += 1
        return READY if self.installed else Readiness(False, "not installed")


def roster_of(program: Program, clock: ManualClock, *records: AgentRecord) -> Roster:
    return Roster(records, {"program": Source(lambda: ScriptedBackend([]), program.readiness)}, clock=clock)


def able(roster: Roster) -> list[str]:
    return [record.id for record in roster.able()]


async def test_able_looks_for_a_program_once_in_a_while() -> None:
    program, clock = Program(), ManualClock()
    roster = roster_of(program, clock, RECORD)
    first = [able(roster), able(roster)]
    program.installed = False
    still = able(roster)
    looks = program.looks
    await clock.advance(LOOK_S)

    assert first == [["worker"], ["worker"]]
    assert (still, looks) == (["worker"], 1)
    assert able(roster) == []


def test_able_looks_again_at_an_agent_that_was_changed() -> None:
    program, clock = Program(), ManualClock()
    roster = roster_of(program, clock, RECORD, replace(RECORD, id="other"))
    before = able(roster)
    roster.book.built_in["worker"] = replace(RECORD, model="another")
    program.installed = False

    assert before == ["worker", "other"]
    assert able(roster) == ["other"]
    assert roster.entries()[1].ready is False


def test_what_an_agent_lacks_reads_as_sentences_whatever_is_to_be_done() -> None:
    lacking = {
        Readiness(False, "Nobody is logged in.", "codex login").in_words,
        Readiness(False, "Nobody is logged in.", "Set A_KEY.").in_words,
        Readiness(False, "It is broken.").in_words,
    }
    assert lacking == {"Nobody is logged in. Run `codex login`.", "Nobody is logged in. Set A_KEY.", "It is broken."}
