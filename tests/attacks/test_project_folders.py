"""Attacks on the choice of a project: the server's own data, folders that no person chose, links that move afterwards.

The rule is `conversation/folders.py`: no project is, contains or lies in a data directory, and a token that may not decide
uses only what a person chose. Every face that can name a folder is tried, with an agent's token and with the owner's.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from palaver.log.base import Claim
from palaver.people.authentication import KeyRecord, Kind, token_hash
from palaver.schema.base import Origin
from palaver.schema.events import ConversationCreated, encode_event
from tests.flows.at_work import at_work, of
from tests.flows.served import Served, http_client, serving

pytestmark = pytest.mark.anyio

HOME = Path.home()
KINDS: tuple[Kind, ...] = ("human", "agent", "observer")


def with_tokens(data: Path) -> Path:
    data.mkdir(exist_ok=True)
    records = [KeyRecord(name=kind, kind=kind, hash=token_hash(f"{kind}-token")) for kind in KINDS]
    (data / "tokens.json").write_bytes(msgspec.json.encode(records))
    return data


@asynccontextmanager
async def attacked(folder: Path) -> AsyncIterator[tuple[Served, httpx.AsyncClient]]:
    """A server whose data is `folder/data`, and a client with an agent's token."""
    async with serving(with_tokens(folder / "data")) as server, token_of(server, "agent") as agent:
        yield server, agent


def token_of(server: Served, kind: Kind) -> httpx.AsyncClient:
    return http_client(server.url, {"Authorization": f"Bearer {kind}-token"})


# -- every way to name a folder

Way = Callable[[httpx.AsyncClient, str, Served], Any]

FILE = b"## User\n\nHello\n"


async def _branch(http: httpx.AsyncClient, folder: str, server: Served) -> httpx.Response:
    source = await server.create(message="hello")
    return await http.post("/api/conversations", json={"branch": {"conversation": source}, "project": folder})


FOREIGN = {"program": "claude", "session": "11111111-1111-4111-8111-111111111111", "created_at": 1, "updated_at": 2}

WAYS: dict[str, Way] = {
    "create": lambda http, folder, _: http.post("/api/conversations", json={"project": folder}),
    "create with a message": lambda http, folder, _: http.post(
        "/api/conversations", json={"project": folder, "message": "read token"}
    ),
    "branch": _branch,
    "import": lambda http, folder, _: http.post(
        "/api/conversations/import", params={"project": folder, "format": "markdown"}, content=FILE
    ),
    "socket": lambda http, folder, _: http.post(
        "/api/plugins/sessions/operations/create", json={"projectRoot": folder}
    ),
    "bus": lambda http, folder, _: http.post("/api/chat", json={"project_root": folder, "message": "hello"}),
    "bus session": lambda http, folder, _: http.post(
        "/api/chat", json={"project_root": folder, "message": "hello", "session_id": "of-mine"}
    ),
    "mission": lambda http, folder, _: http.put(
        "/api/projects/mission", params={"project": folder}, json={"text": "x"}
    ),
    "bus mission": lambda http, folder, _: http.post("/api/mission", json={"project_root": folder, "text": "x"}),
    "override": lambda http, folder, _: http.put(
        "/api/projects/override", params={"project": folder, "agent": "default"}, json={"idle_prompt": "x"}
    ),
}
READS: dict[str, Way] = {
    "tree": lambda http, folder, _: http.get("/api/projects/tree", params={"project": folder}),
    "bus tree": lambda http, folder, _: http.get("/api/workspace/tree", params={"project_root": folder}),
    "agents": lambda http, folder, _: http.get("/api/agents", params={"project": folder}),
    "mission": lambda http, folder, _: http.get("/api/projects/mission", params={"project": folder}),
    "missions": lambda http, folder, _: http.get("/api/projects/missions", params={"project": folder}),
    "bus mission": lambda http, folder, _: http.get("/api/mission", params={"project_root": folder}),
    "override": lambda http, folder, _: http.get(
        "/api/projects/override", params={"project": folder, "agent": "default"}
    ),
}


def forbidden_names(tmp_path: Path) -> dict[str, str]:
    """The data directory, what is in it and what contains it, in as many spellings as a file system has."""
    data, aside = tmp_path / "data", tmp_path / "aside"
    aside.mkdir()
    (aside / "link").symlink_to(data)
    (aside / "relative").symlink_to("../data")
    (aside / "chain").symlink_to(aside / "link")
    (aside / "above").symlink_to(tmp_path)
    (aside / "inside").symlink_to(data / "blobs")
    (data / "blobs").mkdir(exist_ok=True)
    names = {
        "itself": str(data),
        "with a slash": f"{data}/",
        "with dots": f"{aside}/../data",
        "with a dot": f"{tmp_path}/./data/.",
        "twice the slash": f"/{data}",
        "a link": str(aside / "link"),
        "a relative link": str(aside / "relative"),
        "links in a chain": str(aside / "chain"),
        "a link and dots": f"{aside}/link/blobs/..",
        "inside": str(data / "blobs"),
        "a link inside": str(aside / "inside"),
        "above": str(tmp_path),
        "a link above": str(aside / "above"),
        "through a link above": f"{aside}/above/data",
        "the root": "/",
        "the root's parent": "/..",
    }
    if Path("/proc/self/root").exists():
        names["through a process"] = f"/proc/self/root{data}"
    return names


@pytest.mark.parametrize("kind", ["owner", "agent"])
async def test_data_directory_is_no_project_on_any_face_by_any_name(tmp_path: Path, kind: str) -> None:
    async with attacked(tmp_path) as (server, agent):
        http = server.http if kind == "owner" else agent
        let_in: list[str] = []
        for name, folder in forbidden_names(tmp_path).items():
            for way, call in WAYS.items():
                answer = await call(http, folder, server)
                if answer.status_code not in (400, 403):
                    let_in.append(f"{name} by {way}: {answer.status_code}")
        rows = (await server.http.get("/api/conversations", params={"limit": 500, "archived": "all"})).json()["items"]
    assert let_in == []
    workspace = str(tmp_path / "data-workspace")
    assert {row["project"] for row in rows} <= {workspace}


@pytest.mark.parametrize("kind", ["owner", "human", "agent", "observer"])
async def test_nothing_is_read_from_the_data_directory_as_a_project(tmp_path: Path, kind: Kind) -> None:
    async with attacked(tmp_path) as (server, _), token_of(server, kind) as other:
        http = server.http if kind == "owner" else other
        answers = {
            f"{name} by {way}": (await call(http, folder, server)).status_code
            for name, folder in forbidden_names(tmp_path).items()
            for way, call in READS.items()
        }
    assert {name: status for name, status in answers.items() if status not in (400, 403)} == {}


async def test_refusal_says_why_and_what_to_choose(tmp_path: Path) -> None:
    async with attacked(tmp_path) as (server, agent):
        own = await server.http.post("/api/conversations", json={"project": str(tmp_path / "data")})
        above = await server.http.post("/api/conversations", json={"project": str(tmp_path)})
        strange = await agent.post("/api/conversations", json={"project": "/usr"})
    assert "token and its log" in own.json()["message"]
    assert "Choose another folder" in own.json()["message"]
    assert "contains" in above.json()["message"]
    assert "No person has chosen" in strange.json()["message"]


async def test_owners_token_cannot_be_read_by_an_agents_token_through_a_tool(tmp_path: Path) -> None:
    """The attack as it was run: a conversation in the data directory, and the reading tool, which asks nobody."""
    with_tokens(tmp_path / "data")
    async with at_work(tmp_path) as work, token_of(work.server, "agent") as agent:
        owners = (tmp_path / "data/token").read_text().strip()
        seen: list[str] = []
        for folder in (tmp_path / "data", tmp_path, Path("/")):
            body = {"project": str(folder), "message": f"!read {(tmp_path / 'data/token').relative_to(folder)}"}
            made = await agent.post("/api/conversations", json=body)
            if made.status_code == 201:
                seen += [str(event) for event in await work.events(made.json()["conversation"])]
    assert not any(owners in text for text in seen)


# -- what no person chose


@pytest.mark.parametrize("folder", ["/", "/etc", "/root", "/home", "/usr", "/tmp", "~", "/proc/self/cwd", "/no/such"])
async def test_agents_token_cannot_choose_a_folder(tmp_path: Path, folder: str) -> None:
    async with attacked(tmp_path) as (server, agent):
        named = folder.replace("~", str(HOME))
        wrong = {way: (await call(agent, named, server)).status_code for way, call in WAYS.items()}
        read = {way: (await call(agent, named, server)).status_code for way, call in READS.items()}
    # The same for what is there and what is not: nothing is told of other folders.
    assert set(wrong.values()) | set(read.values()) == {403}


async def test_agents_token_uses_what_a_person_chose_and_what_lies_beneath(tmp_path: Path) -> None:
    chosen, beside = tmp_path / "work" / "chosen", tmp_path / "work" / "chosen-not"
    (chosen / "below" / "deep").mkdir(parents=True)
    beside.mkdir()
    (chosen / "out").symlink_to(beside)
    (chosen / "up").symlink_to(tmp_path / "work")
    async with attacked(tmp_path) as (server, agent), token_of(server, "human") as person:

        async def tried(folder: str) -> int:
            return (await agent.post("/api/conversations", json={"project": folder})).status_code

        before = await tried(str(chosen))
        assert (await person.post("/api/conversations", json={"project": str(chosen)})).status_code == 201
        inside = [await tried(str(folder)) for folder in (chosen, chosen / "below", chosen / "below" / "deep")]
        outside = [
            await tried(name)
            for name in (
                *(str(folder) for folder in (beside, chosen.parent, chosen / "out", chosen / "up")),
                f"{chosen}/../chosen-not",
                f"{chosen}/below/../..",
            )
        ]
    assert before == 403
    assert inside == [201] * 3
    assert outside == [403] * 6


async def test_what_a_person_chose_counts_after_a_restart_and_what_an_agent_tried_does_not(tmp_path: Path) -> None:
    chosen, other = tmp_path / "chosen", tmp_path / "other"
    chosen.mkdir()
    other.mkdir()
    async with attacked(tmp_path) as (server, agent):
        await server.create(project=str(chosen))
        await agent.post("/api/conversations", json={"project": str(other)})
    async with attacked(tmp_path) as (_, agent):
        answers = [await agent.post("/api/conversations", json={"project": str(folder)}) for folder in (chosen, other)]
    assert [answer.status_code for answer in answers] == [201, 403]
    assert (tmp_path / "data/folders.json").stat().st_mode & 0o777 == 0o600


async def test_file_of_chosen_folders_that_is_damaged_opens_nothing_new(tmp_path: Path) -> None:
    chosen, other = tmp_path / "chosen", tmp_path / "other"
    chosen.mkdir()
    other.mkdir()
    async with attacked(tmp_path) as (server, _):
        conversation = await server.create(project=str(chosen))
    (tmp_path / "data/folders.json").write_text('{"folders": [{"path": "/"')
    async with attacked(tmp_path) as (server, agent):
        again = await agent.post("/api/conversations", json={"project": str(chosen)})
        strange = await agent.post("/api/conversations", json={"project": str(other)})
        await server.send(conversation, "go on")
        events = await server.settled(conversation)
    assert (again.status_code, strange.status_code) == (201, 403)
    assert of(events, "turn.finished")[-1]["outcome"] == "completed"


async def test_import_by_an_agents_token_chooses_no_folder(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    foreign = {
        **FOREIGN,
        "project": str(other),
        "messages": [{**MESSAGE, "blocks": [{"type": "text", "index": 0, "text": "hi"}]}],
    }
    async with attacked(tmp_path) as (server, agent):
        answer = await agent.post("/api/import/conversations", content=msgspec.json.encode(foreign))
        rows = (await server.http.get("/api/conversations", params={"archived": "all"})).json()["items"]
        after = await agent.post("/api/conversations", json={"project": str(other)})
    assert answer.status_code == 200, answer.text
    assert str(other) not in {row["project"] for row in rows}
    assert after.status_code == 403


MESSAGE: dict[str, Any] = {"id": "m", "role": "user", "seq": 1, "updated_seq": 1, "ts": 1}


# -- what file tools never write in a project, as a project of its own

CLOSED = (
    ".git",
    ".git/hooks",
    ".palaver",
    ".palaver/agents",
    ".GIT",
    "sub/.git",
    "sub/.palaver/agents",
    "link",
    "in/it",
)


def with_closed_folders(tmp_path: Path) -> Path:
    chosen = tmp_path / "chosen"
    for name in CLOSED[:-2]:
        (chosen / name).mkdir(parents=True, exist_ok=True)
    (chosen / "link").symlink_to(".git")
    (chosen / "in").mkdir()
    (chosen / "in" / "it").symlink_to(chosen / ".palaver")
    return chosen


async def test_agents_token_cannot_make_a_closed_folder_of_a_project_its_project(tmp_path: Path) -> None:
    chosen = with_closed_folders(tmp_path)
    async with attacked(tmp_path) as (server, agent):
        await server.create(project=str(chosen))
        let_in = {
            f"{name} by {way}": answer.status_code
            for name in CLOSED
            for way, call in (WAYS | READS).items()
            if (answer := await call(agent, str(chosen / name), server)).status_code != 403
        }
        beside = await agent.post("/api/conversations", json={"project": str(chosen / "sub")})
    assert let_in == {}
    assert beside.status_code == 201


@pytest.mark.parametrize("name", CLOSED)
async def test_closed_folder_that_a_person_chose_is_a_project(tmp_path: Path, name: str) -> None:
    """Also where the project around it was chosen before."""
    chosen = with_closed_folders(tmp_path)
    async with attacked(tmp_path) as (server, agent), token_of(server, "human") as person:
        await server.create(project=str(chosen))
        persons = await person.post("/api/conversations", json={"project": str(chosen / name)})
        agents = await agent.post("/api/conversations", json={"project": str(chosen / name)})
        await server.send(persons.json()["conversation"], "hello")
        (last,) = of(await server.settled(persons.json()["conversation"]), "turn.finished")
    assert (persons.status_code, agents.status_code, last["outcome"]) == (201, 201, "completed")


@pytest.mark.parametrize("name", [".git", ".git/hooks", ".palaver/agents"])
async def test_folder_that_was_replaced_by_a_link_to_a_closed_one_runs_nothing(tmp_path: Path, name: str) -> None:
    chosen = with_closed_folders(tmp_path)
    (chosen / "mine").mkdir()
    async with attacked(tmp_path) as (server, agent):
        await server.create(project=str(chosen))
        made = await agent.post("/api/conversations", json={"project": str(chosen / "mine")})
        (chosen / "mine").rmdir()
        (chosen / "mine").symlink_to(chosen / name)
        await server.send(made.json()["conversation"], "hello")
        (last,) = of(await server.settled(made.json()["conversation"]), "turn.finished")
    assert (last["outcome"], last["error"]["code"]) == ("failed", "forbidden")


# -- what was chosen and leads elsewhere by now, and logs of earlier releases


@pytest.mark.parametrize("target", ["data", "data/blobs", ".", "elsewhere"])
async def test_turn_in_a_link_that_was_repointed_runs_nothing(tmp_path: Path, target: str) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "project")
    async with attacked(tmp_path) as (server, agent):
        (tmp_path / "data/blobs").mkdir(exist_ok=True)
        conversation = await server.create(project=str(link))
        await server.send(conversation, "hello")
        (first,) = of(await server.settled(conversation), "turn.finished")
        link.unlink()
        link.symlink_to(tmp_path / target)
        sent = await agent.post(
            f"/api/conversations/{conversation}/commands", json={"type": "send_message", "content": "read token"}
        )
        events = await server.settled(conversation, after=first["seq"])
    assert (first["outcome"], sent.status_code) == ("completed", 202)
    (last,) = of(events, "turn.finished")
    assert (last["outcome"], last["error"]["code"]) == ("failed", "forbidden")
    assert not of(events, "text.delta")


@pytest.mark.parametrize("place", ["data", "data/blobs", "."])
async def test_conversation_of_an_earlier_release_in_the_data_directory_runs_nothing(
    tmp_path: Path, place: str
) -> None:
    async with attacked(tmp_path) as (server, _):
        (tmp_path / "data/blobs").mkdir(exist_ok=True)
        await begin_in_log(server, "old-one", str(tmp_path / place))
    async with attacked(tmp_path) as (server, _):
        await server.send("old-one", "read token")
        events = await server.settled("old-one")
        elsewhere = await server.http.post(
            "/api/conversations", json={"branch": {"conversation": "old-one"}, "project": str(safe(tmp_path))}
        )
        same = await server.http.post("/api/conversations", json={"branch": {"conversation": "old-one"}})
    (last,) = of(events, "turn.finished")
    assert (last["outcome"], last["error"]["code"]) == ("failed", "forbidden")
    assert not of(events, "text.delta")
    assert (elsewhere.status_code, same.status_code) == (201, 403)


async def test_root_in_a_log_of_an_earlier_release_opens_nothing_to_an_agent(tmp_path: Path) -> None:
    """Nobody knows who chose it then: its conversation goes on, if it may, and that is all."""
    ordinary = safe(tmp_path)
    async with attacked(tmp_path) as (server, _):
        for number, folder in enumerate(("/usr", "/home", str(HOME), str(ordinary))):
            await begin_in_log(server, f"old-{number}", folder)
    (tmp_path / "data/folders.json").unlink(missing_ok=True)
    async with attacked(tmp_path) as (_, agent):
        tried = {
            folder: (await agent.post("/api/conversations", json={"project": folder})).status_code
            for folder in ("/usr", "/usr/lib", "/home", str(HOME), "/", str(ordinary))
        }
    assert {folder for folder, status in tried.items() if status != 403} == {str(ordinary)}


def safe(tmp_path: Path) -> Path:
    folder = tmp_path / "ordinary"
    folder.mkdir(exist_ok=True)
    return folder


async def begin_in_log(server: Served, conversation: str, project: str) -> None:
    """As an earlier release wrote it: through the log alone."""
    from palaver.conversation.creation import beginning_of
    from palaver.schema.events import decode_event

    created = ConversationCreated(
        seq=1,
        id=f"{conversation}-1",
        ts=1,
        conversation=conversation,
        agent="default",
        project=project,
        origin=Origin(),
    )
    event = decode_event(encode_event(created))
    assert isinstance(event, ConversationCreated)
    await server.app.log.append(beginning_of([event]).append(Claim(conversation, "hash")))


# -- the server's own folder


async def test_server_started_around_its_data_gives_conversations_a_folder_of_their_own(tmp_path: Path) -> None:
    async with attacked(tmp_path) as (server, agent):
        owners, agents = await server.create(), await agent.post("/api/conversations", json={})
        state = await server.state(owners)
        await server.send(owners, "hello")
        events = await server.settled(owners)
    workspace = tmp_path / "data-workspace"
    assert agents.status_code == 201
    assert state["project"] == str(workspace)
    assert (workspace.is_dir(), workspace.stat().st_mode & 0o777) == (True, 0o700)
    assert of(events, "turn.finished")[-1]["outcome"] == "completed"


async def test_trajectory_of_the_data_directory_is_no_chats(tmp_path: Path) -> None:
    """What an agent's token could plant as `.palaver/trajectories` of a project that is the data directory."""
    async with attacked(tmp_path) as (server, agent):
        place = tmp_path / "data" / ".palaver" / "trajectories"
        place.mkdir(parents=True)
        (place / "planted.json").write_text('{"id": "planted", "messages": [{"role": "user", "content": "secret"}]}')
        await begin_in_log(server, "planted", str(tmp_path / "data"))
        answer = await agent.get("/v1/trajectories/planted")
        removed = await server.http.delete("/v1/trajectories/planted")
    assert "secret" not in answer.text
    assert removed.status_code == 200
    assert (place / "planted.json").exists()
