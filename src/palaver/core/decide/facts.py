"""What the pure functions are told about the world: the time, fresh ids, who asks, and which agent would run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from palaver.schema.base import Origin
from palaver.schema.records import AgentRecord


@dataclass(frozen=True, slots=True)
class Runner:
    """The agent a turn would run with, resolved by the shell before anything is decided."""

    agent: str
    backend: str
    model: str | None = None
    resumable: bool = False
    """A turn cut by a restart can be taken up from the log alone, so its open requests stay answerable."""
    steerable: bool = False


@dataclass(frozen=True, slots=True)
class Terms:
    """What an agent works under where a conversation says nothing."""

    usual: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The agent's parameters, else the server's."""
    record: AgentRecord | None = None
    """None: it is no longer known."""


@dataclass(frozen=True, slots=True)
class Facts:
    now: int
    new_id: Callable[[], str]
    runner: Runner
    origin: Origin | None = None
    usual: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The parameters that count where the conversation says nothing: its agent's, else the server's."""
    record: AgentRecord | None = None
    """Of the conversation's agent."""
    chosen: Terms | None = None
    """Of the agent that a command names, if that is another."""
    remembers: bool = False
    """Whoever asks wants a repetition to be known as one even where there is nothing to do."""
