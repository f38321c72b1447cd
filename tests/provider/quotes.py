"""A strict reader of the quotes in a prompt: what a model that follows the rule of quotes takes for whose words."""

import re
from dataclasses import dataclass

from palaver.context.quotes import KEY_BYTES, Quoting

QUOTING = Quoting(b"k" * KEY_BYTES)
"""For tests that make a prompt themselves."""

_OPENING = re.compile(r"^\[quote ([0-9a-f]{32}) from ([^\]\n]*)\]$", re.MULTILINE)


@dataclass(frozen=True)
class Prompt:
    outside: str
    """What is in no quote."""
    quotes: tuple[tuple[str, str], ...]
    """Sources and their texts."""

    def said_by(self, source: str) -> str:
        return "\n".join(text for known, text in self.quotes if known == source)


def read_prompt(text: str) -> Prompt:
    """Raises ValueError for a quote that never ends: somebody cut its border away."""
    outside: list[str] = []
    quotes: list[tuple[str, str]] = []
    place = 0
    while opening := _OPENING.search(text, place):
        outside.append(text[place : opening.start()])
        end = re.compile(rf"^\[end of quote {opening[1]}\]$", re.MULTILINE).search(text, opening.end())
        if end is None:
            raise ValueError(f"the quote {opening[1]} has no end")
        switch = re.compile(rf"^\[quote {opening[1]} from ([^\]\n]*)\]\n", re.MULTILINE)
        _, *pieces = switch.split(text[opening.start() : end.start()])
        quotes += [(source, said.removesuffix("\n")) for source, said in zip(pieces[::2], pieces[1::2], strict=True)]
        place = end.end()
    outside.append(text[place:])
    return Prompt("".join(outside), tuple(quotes))
