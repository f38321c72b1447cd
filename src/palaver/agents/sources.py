"""What can run agents here: model services with a key, the small local model, the scripted demo.

Called by the composition root once. Looks at the configuration alone and imports a backend only when it is first used, so a
server starts at once and says what is missing instead of failing.
"""

from palaver.agents.roster import Roster
from palaver.clock import Clock
from palaver.config import Config


def roster_for(config: Config, clock: Clock) -> Roster:
    return Roster((), {})
