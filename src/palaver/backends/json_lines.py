"""Lines of JSON that agent programs write, decoded within bounds. Used by the backends that drive one."""

from typing import Any

from palaver.core.json_bounds import BeyondBounds, decode_json
from palaver.errors import ProtocolBroken


def decode_line(line: bytes, program: str) -> Any:
    """Raises msgspec.DecodeError for a line that is no JSON, which programs write too, and ProtocolBroken for one beyond the
    bounds: to pass over it would be to wait for what it said."""
    try:
        return decode_json(line)
    except BeyondBounds as problem:
        raise ProtocolBroken(
            f"{program} wrote a line that {problem}. Start the turn again, or update the program."
        ) from None
