"""Search as the SQLite store does it: FTS5 finds the newest candidates, `log/search.py` and `log/recall.py` rank them.

The library's own bm25 counts every hit of every word before its first answer (60 ms a common word in a million messages),
so only the counts within each candidate are taken from it.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import apsw

from palaver.log.base import Found, Recalled
from palaver.log.listings import decode_listing
from palaver.log.recall import NEWEST, WEIGHED, Possible, best, rarity, search_words
from palaver.log.search import CANDIDATES, Candidate, Term, excerpt, rank, terms_of
from palaver.log.sqlite.database import one_view

# Noncharacters, set aside by Unicode for a program's own use: they mark the match in a snippet.
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
_SNIPPET_TOKENS = 40
"""More than two times 80 characters hold, in most languages."""


def prepare(connection: apsw.Connection) -> None:
    connection.register_fts5_function("occurrences", _occurrences)


def _occurrences(api: apsw.FTS5ExtensionApi, *_: object) -> str:
    """The length of a document and how often each term occurs in it, as numbers with blanks between them."""
    in_text = (len(api.phrase_locations(phrase)[_TEXT]) for phrase in range(len(api.phrases)))
    return " ".join(map(str, (api.column_size(_TEXT), *in_text)))


_TEXT = 1
"""The column of `words` that holds the text."""


def search(connection: apsw.Connection, query: str, limit: int, conversation: str | None) -> Sequence[Found]:
    terms = terms_of(query)
    if not terms:
        return ()
    match = _match(terms)
    with one_view(connection):  # A document must not vanish between being found and being shown.
        if conversation is not None:
            row = connection.execute("SELECT number FROM conversations WHERE name = ?", (conversation,)).fetchone()
            if row is None:
                return ()
            match = f"conversation : {row[0]} AND {match}"
        best = rank(_candidates(connection, match), limit)
        return _found(connection, match, best) if best else ()


def _match(terms: Sequence[Term]) -> str:
    """Each term quoted, so that nothing a person types is an operator."""
    quoted = ('"' + term.text.replace('"', '""') + '"' + (" *" if term.beginning else "") for term in terms)
    return f"text : ({' AND '.join(quoted)})"


def _candidates(connection: apsw.Connection, match: str) -> list[Candidate]:
    rows = connection.execute(
        "SELECT words.rowid, occurrences(words) FROM words CROSS JOIN documents d ON d.number = words.rowid "
        "LEFT JOIN listings l ON l.conversation = d.conversation "
        "WHERE words MATCH ? AND coalesce(l.deleted, 0) = 0 ORDER BY words.rowid DESC LIMIT ?",
        (match, CANDIDATES),
    )
    return [_candidate(number, counted) for number, counted in rows]


def _candidate(number: int, counted: str) -> Candidate:
    length, *counts = map(int, counted.split())
    return Candidate(number, length, counts)


def _found(connection: apsw.Connection, match: str, best: Sequence[int]) -> list[Found]:
    """The best, in their order. One question for all: each would pay for finding every hit of a common beginning again."""
    rows = connection.execute(
        "SELECT words.rowid, c.name, l.body, d.message, d.seq, d.role, snippet(words, ?, ?, ?, '', ?) "
        "FROM words CROSS JOIN documents d ON d.number = words.rowid JOIN conversations c ON c.number = d.conversation "
        "LEFT JOIN listings l ON l.conversation = d.conversation "
        # The plus keeps the list from becoming one look-up a document.
        "WHERE words MATCH ? AND words.rowid BETWEEN ? AND ? AND +words.rowid IN (SELECT value FROM json_each(?))",
        (_TEXT, _OPEN, _CLOSE, _SNIPPET_TOKENS, match, min(best), max(best), json.dumps(best)),
    )
    found = {document: _found_of(*row) for document, *row in rows}
    return [found[document] for document in best if document in found]


def _found_of(name: str, listing: bytes | None, message: str, seq: int, role: str, marked: str) -> Found:
    before, _, rest = marked.partition(_OPEN)
    hit, _, after = rest.partition(_CLOSE)
    around = excerpt(before, hit, after.replace(_OPEN, "").replace(_CLOSE, ""))
    title = decode_listing(listing).title if listing else ""
    return Found(name, message, seq, role, around.before, around.match, around.after, title)


# -- recalling

_AT_ONCE = 200
"""Promising messages that are looked up together: in most projects the first lot is enough."""
_LOTS = 10
"""Then it is given up: in a crowd of other projects, what is this hard to find fits badly."""


def recall(
    connection: apsw.Connection, text: str, project: str | None, limit: int, but: str | None
) -> Sequence[Recalled]:
    wanted = search_words(text)
    if not wanted:
        return ()
    with one_view(connection):
        holding = {word: _newest_holding(connection, word) for word in wanted}
        all_messages = connection.execute("SELECT coalesce(max(number), 0) FROM documents").get
        rarities = {word: rarity(_how_many(rows, all_messages), all_messages) for word, rows in holding.items() if rows}
        possible = islice(_of_project(connection, _promising(holding, rarities), project, but), WEIGHED)
        return best(list(possible), rarities, limit)


def _newest_holding(connection: apsw.Connection, word: str) -> list[int]:
    """Never all of them: a common word may stand in every message there is."""
    rows = connection.execute(
        "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?", (f'text : "{word}"', NEWEST)
    )
    return [number for (number,) in rows]


def _how_many(newest: Sequence[int], all_messages: int) -> float:
    """How many messages hold a word, judged by how close together the newest ones stand."""
    if len(newest) < NEWEST:
        return len(newest)
    return len(newest) * all_messages / max(1, all_messages - newest[-1] + 1)


def _promising(holding: Mapping[str, Sequence[int]], rarities: Mapping[str, float]) -> list[int]:
    """Messages by what the words that they are known to hold are worth."""
    worth: defaultdict[int, float] = defaultdict(float)
    for word, rarity_of_word in rarities.items():
        for number in holding[word]:
            worth[number] += rarity_of_word
    return sorted(worth, key=lambda number: (-worth[number], -number))


def _of_project(
    connection: apsw.Connection, numbers: Sequence[int], project: str | None, but: str | None
) -> Iterator[Possible]:
    """Those of them that may be shown, in their order."""
    for begin in range(0, min(len(numbers), _AT_ONCE * _LOTS), _AT_ONCE):
        rows = connection.execute(
            # The list leads, in its order; the rest is looked up by number.
            "SELECT d.number, c.name, d.message, d.seq, coalesce(nullif(d.ts, 0), l.updated_at), d.role, d.text, l.body "
            "FROM json_each(?1) wanted CROSS JOIN documents d ON d.number = wanted.value "
            "CROSS JOIN listings l ON l.conversation = d.conversation "
            "CROSS JOIN conversations c ON c.number = d.conversation "
            "WHERE l.deleted = 0 AND l.project IS ?2 AND c.name IS NOT ?3 AND (?3 IS NULL OR l.root IS NOT ?3) "
            "ORDER BY wanted.key",
            (json.dumps(numbers[begin : begin + _AT_ONCE]), project, but),
        )
        for number, name, message, seq, ts, role, text, listing in rows:
            yield Possible(number, Recalled(name, message, seq, ts, role, text, decode_listing(listing).title))
