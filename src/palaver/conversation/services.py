"""What every conversation of a server shares. Made once by the composition root, given to the directory and each owner."""

import secrets
from dataclasses import dataclass, field
from typing import Any

from palaver.backends.base import Background, NoBackground
from palaver.clock import Clock, Ids
from palaver.context.quotes import KEY_BYTES, Quoting
from palaver.conversation.defaults import Defaults
from palaver.conversation.folders import ProjectFolders
from palaver.conversation.peers import Alone, Others
from palaver.conversation.roster import Roster
from palaver.feed.feed import Feed
from palaver.log.base import EventLog
from palaver.schema.records import AgentRecord
from palaver.schema.view import State


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every conversation of a server shares."""

    log: EventLog
    feed: Feed
    clock: Clock
    ids: Ids
    roster: Roster
    folders: ProjectFolders
    """Where conversations may work, and where those without a project do."""
    background: Background = field(default_factory=NoBackground)
    others: Others = field(default_factory=Alone)
    """The other conversations, for agents that work together."""
    defaults: Defaults = field(default_factory=Defaults)
    """What counts where neither a conversation nor its agent says otherwise."""
    quoting: Quoting = field(default_factory=lambda: Quoting(secrets.token_bytes(KEY_BYTES)))
    """How words that are not the person's enter a prompt."""

    def usual_params(self, record: AgentRecord | None) -> dict[str, Any]:
        """The limits and the mode of a conversation that says nothing of them: its agent's, else the server's."""
        own = dict(record.params) if record else {}
        if record and record.mode:
            own["mode"] = record.mode
        if record and record.spend_limit_usd is not None:
            own["spend_limit_usd"] = record.spend_limit_usd
        return {**self.defaults.limits, **own}

    def folder_of(self, state: State) -> str:
        """Where the agents of a conversation work."""
        return state.project or str(self.folders.home)
