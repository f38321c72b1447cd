"""Search and recall without an index: every message is looked at, and ranked as the SQLite store ranks them.

Called by the store in memory. Pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from palaver.core.keywords import plain, words_of
from palaver.log.base import Document, Found, Recalled
from palaver.log.recall import WEIGHED, Possible, best, rarity, search_words
from palaver.log.search import CANDIDATES, WORD, Candidate, Term, excerpt, rank, terms_of
from palaver.schema.view import Listing


class Said(NamedTuple):
    """A message that can be found."""

    number: int
    """In the order of all there are."""
    conversation: str
    listing: Listing | None
    document: Document

    @property
    def is_deleted(self) -> bool:
        return self.listing is not None and self.listing.deleted


def search(said: Iterable[Said], query: str, limit: int) -> Sequence[Found]:
    terms = [_Pattern(term) for term in terms_of(query)]
    hits = {
        one.number: one
        for one in said
        if terms and not one.is_deleted and all(term.count(one.document.text) for term in terms)
    }
    newest = [hits[number] for number in sorted(hits, reverse=True)[:CANDIDATES]]
    return [_found(hits[number], terms) for number in rank([_candidate(one, terms) for one in newest], limit)]


def recall(said: Iterable[Said], text: str, project: str | None, limit: int, but: str | None) -> Sequence[Recalled]:
    wanted = search_words(text)
    every = [(one, set(words_of(one.document.text))) for one in said]
    rarities = {word: rarity(sum(word in words for _, words in every), len(every)) for word in wanted}
    fitting = [
        (sum(rarities[word] for word in wanted if word in words), one)
        for one, words in every
        if one.listing
        and one.listing.project == project
        and not one.is_deleted
        and (but is None or but not in (one.conversation, one.listing.root))
    ]
    promising = sorted((pair for pair in fitting if pair[0]), key=lambda pair: (-pair[0], -pair[1].number))[:WEIGHED]
    return best([Possible(one.number, _as_recalled(one)) for _, one in promising], rarities, limit)


class _Pattern:
    """A term as it is looked for: whole words in a row, without case and accents, the last perhaps going on."""

    def __init__(self, term: Term) -> None:
        self._words = [plain(word) for word in WORD.findall(term.text)]
        self._beginning = term.beginning

    def count(self, text: str) -> int:
        return sum(1 for _ in self.places(text))

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        words = list(WORD.finditer(text))
        compared = [plain(word.group()) for word in words]
        for at in range(len(compared) - len(self._words) + 1):
            if self._fits(compared[at : at + len(self._words)]):
                yield words[at].start(), words[at + len(self._words) - 1].end()

    def _fits(self, words: Sequence[str]) -> bool:
        *exact, last = self._words
        return list(words[:-1]) == exact and (words[-1].startswith(last) if self._beginning else words[-1] == last)


def _candidate(said: Said, terms: Sequence[_Pattern]) -> Candidate:
    text = said.document.text
    return Candidate(said.number, len(WORD.findall(text)), [term.count(text) for term in terms])


def _found(said: Said, terms: Sequence[_Pattern]) -> Found:
    document, text = said.document, said.document.text
    start, end = min(place for term in terms for place in term.places(text))
    around = excerpt(text[:start], text[start:end], text[end:])
    title = said.listing.title if said.listing else ""
    return Found(
        said.conversation,
        document.message,
        document.seq,
        document.role,
        around.before,
        around.match,
        around.after,
        title,
    )


def _as_recalled(said: Said) -> Recalled:
    document, listing = said.document, said.listing
    return Recalled(
        said.conversation,
        document.message,
        document.seq,
        document.ts or (listing.updated_at if listing else 0),
        document.role,
        document.text,
        listing.title if listing else "",
    )
