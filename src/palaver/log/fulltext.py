"""Search as the SQLite store does it: FTS5 finds the newest candidates, `search.py` ranks them.

The library's own bm25 counts every hit of every word before its first answer (60 ms a common word in a million messages),
so only the counts within each candidate are taken from it.
"""

import json
from collections.abc import Sequence

import apsw

from palaver.log.base import Found
from palaver.log.database import one_view
from palaver.log.listings import decoded
from palaver.log.search import CANDIDATES, Candidate, Term, excerpt, ranked, terms_of

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
        best = ranked(_candidates(connection, match), limit)
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
    found = {document: _shown(*row) for document, *row in rows}
    return [found[document] for document in best if document in found]


def _shown(name: str, listing: bytes | None, message: str, seq: int, role: str, marked: str) -> Found:
    before, _, rest = marked.partition(_OPEN)
    hit, _, after = rest.partition(_CLOSE)
    around = excerpt(before, hit, after.replace(_OPEN, "").replace(_CLOSE, ""))
    title = decoded(listing).title if listing else ""
    return Found(name, message, seq, role, around.before, around.match, around.after, title)
