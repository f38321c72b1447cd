"""What every conversation of a server shares. Made once by the composition root, given to the directory and each owner."""

from dataclasses import dataclass, field
from pathlib import Path

from palaver.backends.base import Background, NoBackground
from palaver.clock import Clock, Ids
from palaver.conversation.defaults import Defaults
from palaver.conversation.others import Alone, Others
from palaver.conversation.roster import Roster
from palaver.feed.feed import Feed
from palaver.log.base import EventLog
from palaver.schema.view import State


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every conversation of a server shares."""

    log: EventLog
    feed: Feed
    clock: Clock
    ids: Ids
    roster: Roster
    home: Path
    """The folder of a conversation without a project."""
    background: Background = field(default_factory=NoBackground)
    others: Others = field(default_factory=Alone)
    """The other conversations, for agents that work together."""
    defaults: Defaults = field(default_factory=Defaults)
    """What counts where neither a conversation nor its agent says otherwise."""

    def folder_of(self, state: State) -> str:
        """Where the agents of a conversation work."""
        return state.project or str(self.home)
