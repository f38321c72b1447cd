"""Records that are not events: agents, and what an agent is made of."""

from typing import Any

from palaver.schema.base import Id, Wire


class AgentRecord(Wire):
    """An agent a person can talk to. `backend` names what runs it; unset fields take the backend's defaults."""

    id: Id
    name: str
    description: str = ""
    backend: str = "api"
    model: str | None = None
    system_prompt: str = ""
    allowed_tools: tuple[str, ...] = ()
    mode: str | None = None
    params: dict[str, Any] = {}
