"""What a search means in every store: words, their order of merit, and the text around a hit.

Any string is a query: its words must all occur, the last one as the beginning of a word, so that a search may run while
it is typed. Hits are ranked among the newest candidates only; ranking all of a million messages would take seconds.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

CANDIDATES = 200
"""The newest hits that are ranked against each other."""
QUERY_CHARS = 256
QUERY_WORDS = 16
"""Each word is a walk through the index; nobody types more, and a pasted page must not cost a minute."""
AROUND_CHARS = 80
PREFIX_CHARS = 2
"""A single letter is matched whole: as a beginning it would match nearly everything."""

# Okapi BM25 with its usual constants. All candidates hold all words, so no word tells them apart by its rarity.
_SATURATION = 1.2
_LENGTH_WEIGHT = 0.75


WORD = re.compile(r"[^\W_]+")
"""Letters and digits, as the index cuts text."""


@dataclass(frozen=True, slots=True)
class Term:
    """What stood between two blanks: one word, or several that must follow each other as in `user.name`."""

    text: str
    beginning: bool = False
    """The last word may go on."""


def terms_of(query: str) -> list[Term]:
    # Text that no index can hold (half a surrogate pair, a NUL) becomes text that none holds.
    typed = query[:QUERY_CHARS].encode("utf-8", "replace").decode().replace("\0", " ").split()
    texts = [text for text in typed if WORD.search(text)][:QUERY_WORDS]
    terms = [Term(text) for text in texts]
    if texts and len(WORD.findall(texts[-1])[-1]) >= PREFIX_CHARS:
        terms[-1] = Term(texts[-1], beginning=True)
    return terms


@dataclass(frozen=True, slots=True)
class Candidate:
    document: int
    """Its number: newer ones have larger numbers."""
    length: int
    """In words."""
    counts: Sequence[int]
    """How often each term of the query occurs."""


def rank(candidates: Sequence[Candidate], limit: int) -> list[int]:
    """Documents, best first; among equals the newest."""
    average = sum(candidate.length for candidate in candidates) / max(1, len(candidates)) or 1.0

    def merit(candidate: Candidate) -> float:
        damping = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * candidate.length / average)
        return sum(count / (count + damping) for count in candidate.counts)

    best = sorted(candidates, key=lambda candidate: (-merit(candidate), -candidate.document))
    return [candidate.document for candidate in best[: max(0, limit)]]


@dataclass(frozen=True, slots=True)
class Excerpt:
    before: str
    match: str
    after: str


def excerpt(before: str, match: str, after: str) -> Excerpt:
    """The text around a hit, on one line and short enough for a list."""
    return Excerpt(_one_line(before[-AROUND_CHARS:]), _one_line(match), _one_line(after[:AROUND_CHARS]))


def _one_line(text: str) -> str:
    return "".join(" " if character.isspace() else character for character in text)
