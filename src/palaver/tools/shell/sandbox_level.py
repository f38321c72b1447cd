"""Sandbox levels in order of strength: the setting `sandbox` names the strongest to use, the probe what was found.

A module of its own because the configuration reads it, and must not import what starts programs.
"""

from typing import Final, Literal

Level = Literal["bubblewrap", "landlock", "none"]

LEVELS: Final[tuple[Level, ...]] = ("bubblewrap", "landlock", "none")
"""The strongest first."""


def levels_from(strongest: Level) -> tuple[Level, ...]:
    """The levels that may be used where nothing stronger than this one may."""
    return LEVELS[LEVELS.index(strongest) :]
