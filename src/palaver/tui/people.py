"""Who is who, so that "you" and "elsewhere" are true: agents by their names, the user who reads, and this very terminal. And
what that user may do: who may only read is offered nothing that would be refused.

Both sides last (the origin in the log, and what the server and this terminal remember), so opening a conversation again
changes no words. The page's `view/me.ts`. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from palaver.schema.base import Origin
from palaver.tui.text import words
from palaver.tui.text.safe import visible


@dataclass(frozen=True, slots=True)
class People:
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of agents, by their ids."""
    me: str | None = None
    """The user who reads here."""
    client: str | None = None
    """This terminal, by the name it gives itself with every command."""
    may_write: bool = True
    may_decide: bool = True
    """Answer what agents ask for. Unless the server says otherwise nothing is forbidden: it decides."""
    may_trust: bool = False
    """Trust the settings of a folder: the owner alone."""

    def is_here(self, origin: Origin) -> bool:
        """Done in this very terminal."""
        return self.client is not None and origin.client == self.client and not self.is_anothers(origin)

    def is_anothers(self, origin: Origin) -> bool:
        """Done by another person."""
        return origin.user is not None and self.me is not None and origin.user != self.me


def face_of(origin: Origin | None) -> str | None:
    """The face a thing came through, in words; None when it is a client like this one."""
    face = origin.face if origin else "native"
    return None if face in ("native", "web", "agents") else words.FACES.get(face, visible(face))
