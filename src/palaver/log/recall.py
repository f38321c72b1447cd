"""What recalling means in every store: the words that are looked for, and the order of what they find.

Unlike a search, any telling word of a text counts, the rarer the more; of two that fit alike the newer comes first. A store
looks only at the newest messages that hold each word, so its work is bounded whatever there is.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from palaver.core.keywords import telling_words, words_of
from palaver.log.base import Recalled

LOOKED_FOR = 16
"""Words of a text that are looked for; each is a walk through the index."""
NEWEST = 1_000
"""Messages, the newest first, that are looked at for each word."""
WEIGHED = 60
"""The most promising ones, which are read and weighed."""
HALF_LIFE_MS = 60 * 86_400_000
"""A message this much older than the newest one that fits counts half of what its age can take from it."""
AGE_WEIGHT = 0.4
"""What age can take from a message: old knowledge may be the only one."""

# Okapi BM25 with its usual constants.
_SATURATION = 1.2
_LENGTH_WEIGHT = 0.75


def search_words(text: str) -> list[str]:
    # Text that no index can hold (half a surrogate pair, a NUL) becomes text that none holds.
    return telling_words(text.encode("utf-8", "replace").decode().replace("\0", " "), LOOKED_FOR)


def rarity(holding: float, all_messages: float) -> float:
    """What holding a word is worth, by how many messages hold it."""
    return math.log(1 + (max(all_messages, holding) - holding + 0.5) / (holding + 0.5))


@dataclass(frozen=True, slots=True)
class Possible:
    """A message that holds some of the words."""

    document: int
    recalled: Recalled


def best(possible: Sequence[Possible], rarities: Mapping[str, float], limit: int) -> list[Recalled]:
    """The most fitting first; of equals the newest."""
    if not possible:
        return []
    counted = [(one, Counter(words_of(one.recalled.text))) for one in possible]
    average = sum(words.total() for _, words in counted) / len(counted) or 1.0
    newest = max(one.recalled.ts for one in possible)

    def merit(one: Possible, words: Counter[str]) -> float:
        damping = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * words.total() / average)
        fit = sum(worth * words[word] / (words[word] + damping) for word, worth in rarities.items() if words[word])
        age = max(0, newest - one.recalled.ts) / HALF_LIFE_MS
        return fit * (1 - AGE_WEIGHT * (1 - math.pow(0.5, age)))

    ranked = sorted(counted, key=lambda pair: (-merit(*pair), -pair[0].document))
    return [one.recalled for one, words in ranked[: max(0, limit)] if any(words[word] for word in rarities)]
