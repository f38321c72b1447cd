"""A server whose described API is called by property-based tests: what is there to be named, and how a call is made.

The server is a throw-away in a folder of its own: its home is empty, no program is on its path, the only agent that can be
run plays a script, and a call that names a folder elsewhere is not made.
"""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
from anyio.from_thread import start_blocking_portal
from hypothesis import reject
from schemathesis import Case, Response
from schemathesis.core import NotSet

from palaver.backends.script.script import Prompt, Say, Step, Tool
from tests.flows.served import Served, serving

Json = dict[str, Any]
AnyCase = Case[Any]

CONVERSATION, WAITING, RUN, REQUEST = "known_conversation", "known_waiting", "known_run", "known_request"
"""Words of the described API for what is there at the moment of a call: operations delete, so there is always more."""

ANSWER_S = 60.0
"""Far more than any answer takes: describing the API for the first time keeps a busy machine occupied for seconds."""

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def script(prompt: Prompt) -> list[Step]:
    return [Tool("shell", {"command": "true"}, asks=True)] if prompt.text == "ask" else [Say("Hello there.")]


@dataclass
class Site:
    served: Served
    folder: Path
    blob: str = ""
    operation: str = ""
    known: dict[str, str] = field(default_factory=dict[str, str])
    session: requests.Session = field(default_factory=requests.Session)
    answered: set[str] = field(default_factory=set[str])
    """Operations that were answered well at least once."""

    @property
    def signed_in(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.served.token}"}

    @property
    def project(self) -> Path:
        return self.folder / "project"

    def ask(self, method: str, path: str, **more: Any) -> Any:
        answer = self.session.request(method, self.served.url + path, headers=self.signed_in, timeout=ANSWER_S, **more)
        assert answer.ok, answer.text
        return answer.json()

    def prepare(self) -> None:
        self.blob = self.ask("POST", "/api/uploads", files={"file": ("dot.png", PNG)})["id"]
        self.ask("POST", "/api/agents", json={"id": "made", "name": "Made"})
        self.ask("PUT", "/api/projects/mission", params={"project": str(self.project)}, json={"text": "Go on."})

    def stock(self, operation: str) -> None:
        """A conversation that was answered and one that waits for a person, anew for each operation."""
        if self.operation == operation:
            return
        self.operation = operation
        answered = self._begun("hello", "turn.finished")
        waiting, request = self._asking()
        self.known = {
            CONVERSATION: answered["conversation"],
            WAITING: waiting,
            RUN: answered["turn"],
            REQUEST: request,
        }

    def _begun(self, text: str, last: str) -> Any:
        """Read to the end of the turn, or to its request: the stream tells when it is there."""
        made = self.ask("POST", "/api/conversations", json={"project": str(self.project), "message": text})
        self._until(made["conversation"], last)
        return made

    def _asking(self) -> tuple[str, str]:
        """A conversation that waits for a person."""
        conversation = self._begun("ask", "request.opened")["conversation"]
        [request] = self.ask("GET", f"/api/conversations/{conversation}/snapshot")["requests"]
        return conversation, request["id"]

    def _until(self, conversation: str, last: str) -> None:
        path = f"{self.served.url}/api/conversations/{conversation}/events?after=0"
        with self.session.get(path, headers=self.signed_in, stream=True, timeout=ANSWER_S) as events:
            assert any(f'"{last}"'.encode() in line for line in events.iter_lines()), last

    def call(self, case: AnyCase, headers: dict[str, str]) -> Response:
        """The answer, with its whole body; of a stream only the beginning, for it may never end."""
        self.stock(case.operation.label)
        case.path_parameters = self._filled(case.path_parameters)
        case.query = self._filled(case.query)
        if not isinstance(case.body, NotSet):
            case.body = self._filled(case.body)
        wanted = case.as_transport_kwargs(base_url=self.served.url, headers=headers)
        with self.session.request(**wanted, stream=True, timeout=ANSWER_S, allow_redirects=False) as answer:
            kind = answer.headers.get("Content-Type", "")
            if kind.startswith("text/event-stream"):
                answer._content = next(answer.iter_content(None), b"")
            self.session.cookies.clear()
            if answer.ok and case.method.lower() == case.operation.method.lower():
                self.answered.add(case.operation.label)
            return Response.from_requests(answer, verify=True)

    def _filled(self, value: Any) -> Any:
        match value:
            case str():
                self._check(value)
                return self.known.get(value, value)
            case dict():
                return {name: self._filled(one) for name, one in value.items()}
            case list() | tuple():
                return [self._filled(one) for one in value]
            case _:
                return value

    def _check(self, text: str) -> None:
        """Rejects a text that is a folder of this machine outside our own."""
        try:
            elsewhere = text.startswith(("/", "~")) and Path(text).expanduser().resolve().is_dir()
        except (OSError, ValueError, RuntimeError):
            return
        if elsewhere and not Path(text).expanduser().resolve().is_relative_to(self.folder):
            reject()

    # -- the description, with what is known here

    def described(self) -> Json:
        """The API's own description, in which whatever is sent may name what is there. What is answered is as described."""
        schema: Json = self.ask("GET", "/api/schema/openapi.json")
        shapes: Json = schema["components"]["schemas"]
        for item in schema["paths"].values():
            for operation in item.values():
                if body := BODIES.get(operation["operationId"]):
                    operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
                for parameter in operation.get("parameters", ()):
                    parameter["schema"] = self._named(parameter["name"], parameter["schema"])
                for content in operation.get("requestBody", {}).get("content", {}).values():
                    content["schema"] = self._sent(content["schema"])
        shapes.update({f"{name}{SENT}": self._sent(shape) for name, shape in list(shapes.items())})
        return schema

    def _sent(self, shape: Any) -> Any:
        """A shape and all it refers to, as a client sends it."""
        match shape:
            case {"$ref": str() as where}:
                return {"$ref": f"{where}{SENT}"}
            case {"properties": dict() as properties}:
                named = {name: self._named(name, self._sent(kind)) for name, kind in properties.items()}
                return {**{key: self._sent(part) for key, part in shape.items()}, "properties": named}
            case dict():
                return {key: self._sent(part) for key, part in shape.items()}
            case list():
                return [self._sent(part) for part in shape]
            case _:
                return shape

    def _named(self, name: str, kind: Json) -> Json:
        """What stands for a thing names one that is there, or nobody; what is said is a word, or anything."""
        if "const" in kind or "properties" in kind:
            return kind
        if names := self._names.get(name):
            return {"type": "string", "enum": [*names, "nobody"]}
        return {"anyOf": [{"type": "string", "enum": ["hello"]}, kind]} if name in WORDS else kind

    @property
    def _names(self) -> dict[str, list[str]]:
        conversations = [CONVERSATION, WAITING]
        named = {
            "conversation chat_id trajectory root session_id sessionId": conversations,
            "agent agentId agent_id": ["default", "other", "made"],
            "project project_root projectRoot": [str(self.project)],
            "id": [*conversations, "made"],
            "name": [f"{self.blob}.png", "made"],
            "blob": [self.blob],
            "run run_id": [RUN],
            "request request_id permissionId question_id": [REQUEST],
            "program": ["claude", "codex", "pi", "refact"],
            "backend": ["scripted"],
        }
        return {name: values for names, values in named.items() for name in names.split()}


SENT = "-sent"
WORDS = ("content", "message", "text", "title", "query", "q")

_TEXT = {"type": "string"}
_AGENT = {"$ref": "#/components/schemas/AgentFields"}

BODIES: dict[str, Json] = {
    "chat": {
        "type": "object",
        "properties": {"message": _TEXT, "sessionId": _TEXT, "agentId": _TEXT, "project_root": _TEXT},
    },
    "stream_create_agent": _AGENT,
    "stream_update_agent": _AGENT,
    "command_chat": {
        "type": "object",
        "properties": {
            "client_request_id": {"type": "string", "pattern": "^[a-z]{8}$"},
            "type": {"enum": ["user_message", "abort", "set_params", "retry_from_index", "tool_decision"]},
            "content": _TEXT,
            "priority": {"type": "boolean"},
            "patch": {"type": "object"},
            "index": {"type": "integer"},
            "tool_call_id": _TEXT,
            "accepted": {"type": "boolean"},
        },
        "required": ["client_request_id", "type"],
    },
    "put_trajectory": {
        "type": "object",
        "properties": {
            "id": _TEXT,
            "title": _TEXT,
            "model": _TEXT,
            "messages": {
                "type": "array",
                "maxItems": 3,
                "items": {
                    "type": "object",
                    "properties": {"role": {"enum": ["user", "assistant", "tool", "system"]}, "content": _TEXT},
                    "required": ["role", "content"],
                },
            },
        },
        "required": ["messages"],
    },
}
"""Of operations that describe their body as any object or not at all: something they understand."""


@contextmanager
def described_site(folder: Path) -> Iterator[Site]:
    """The server runs in a thread of its own, because the calls are not asynchronous."""
    for name in ("project", "home", "programs", "agents"):
        (folder / name).mkdir()
    with pytest.MonkeyPatch.context() as environment, start_blocking_portal() as portal:
        environment.setenv("HOME", str(folder / "home"))
        environment.setenv("PATH", str(folder / "programs"))
        server = serving(folder / "data", script, agents_folder=folder / "agents")
        with portal.wrap_async_context_manager(server) as served:
            site = Site(served, folder)
            with site.session:
                site.prepare()
                yield site
