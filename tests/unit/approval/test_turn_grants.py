"""What a person allowed to stand, as a turn sees it."""

from pathlib import Path

from palaver.approval.policy import Rule
from palaver.approval.standing_grants import StandingGrants
from palaver.approval.turn_grants import Grants
from palaver.schema.base import Scope
from palaver.schema.events import GrantAdded, GrantRemoved
from palaver.schema.records import AgentRecord
from tests.provider.turn import MemoryTurn

MAKE = GrantAdded(tool="shell", scope="conversation", match="make")
ALLOWED = Rule("shell", "allow", "make", "conversation")


def kept(scope: Scope) -> GrantAdded:
    return GrantAdded(tool="shell", scope=scope, match="make", request="r")


async def test_conversations_own_grants_are_those_of_its_view() -> None:
    turn, grants = MemoryTurn("hi"), Grants()
    assert grants.of(turn) == ()
    turn.accept(MAKE)
    await turn.committed()
    assert grants.of(turn) == (ALLOWED,)
    turn.accept(GrantRemoved(tool="shell", match="make"))
    await turn.committed()
    assert grants.of(turn) == ()


async def test_grant_of_a_wider_scope_counts_by_the_file_and_not_by_the_view(tmp_path: Path) -> None:
    turn, standing = MemoryTurn("hi", project=tmp_path), StandingGrants(tmp_path / "grants.json")
    grants = Grants(standing)
    turn.accept(await grants.keep(turn, kept("project")))
    await turn.committed()
    assert [rule.source for rule in grants.of(turn)] == ["project"]
    await standing.remove(standing.all()[0].id)
    assert grants.of(turn) == ()


async def test_grants_of_agent_and_project_hold_for_others_of_the_same_alone(tmp_path: Path) -> None:
    grants = Grants(StandingGrants(tmp_path / "grants.json"))
    for name in ("a/b", "c"):
        (tmp_path / name).mkdir(parents=True)
    ada = AgentRecord(id="ada", name="Ada")
    turn = MemoryTurn("hi", project=tmp_path / "a", agent=ada)
    await grants.keep(turn, kept("agent"))
    await grants.keep(turn, kept("project"))

    def sources(agent: str, project: str) -> list[str]:
        other = MemoryTurn("hi", project=tmp_path / project, agent=AgentRecord(id=agent, name=agent))
        return [rule.source for rule in grants.of(other)]

    assert sources("ada", "a") == ["agent", "project"]
    assert sources("ada", "c") == ["agent"]
    assert sources("bob", "a/b") == ["project"]
    assert sources("bob", "c") == []


async def test_grant_that_cannot_be_written_down_holds_for_its_conversation(tmp_path: Path) -> None:
    (tmp_path / "blocked").write_text("a file where a folder should be")
    turn, grants = MemoryTurn("hi"), Grants(StandingGrants(tmp_path / "blocked" / "grants.json"))
    assert (await grants.keep(turn, kept("agent"))).scope == "conversation"


async def test_tools_of_the_record_count_as_the_record_is_now(tmp_path: Path) -> None:
    """Not as it was when the turn began; and without the book, as the turn has it."""
    turn = MemoryTurn("hi", project=tmp_path, agent=AgentRecord(id="ada", name="Ada", allowed_tools=("write",)))
    standing = StandingGrants(tmp_path / "grants.json")
    for grants in (Grants(), Grants(standing)):
        assert [(rule.tool, rule.agent) for rule in grants.of(turn)] == [("write", "ada")]
    now = ["shell"]
    standing.records = lambda agent, _: now
    assert [(rule.tool, rule.agent) for rule in Grants(standing).of(turn)] == [("shell", "ada")]
    now.clear()
    assert Grants(standing).of(turn) == ()


async def test_what_was_allowed_for_an_agent_is_forgotten_with_it(tmp_path: Path) -> None:
    standing = StandingGrants(tmp_path / "grants.json")
    turns = [MemoryTurn("hi", project=tmp_path, agent=AgentRecord(id=name, name=name)) for name in ("ada", "bea")]
    for turn in turns:
        await Grants(standing).keep(turn, kept("agent"))
    await Grants(standing).keep(turns[0], kept("project"))
    await standing.forget("ada")
    assert [(grant.scope, grant.agent) for grant in standing.all()] == [("agent", "bea"), ("project", "ada")]
