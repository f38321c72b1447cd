"""What the projection says before it is framed: the type of each frame and its fields. Shared by its parts."""

from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]
Said = Iterable[tuple[str, Json]]
"""Frames of one event, in order."""
