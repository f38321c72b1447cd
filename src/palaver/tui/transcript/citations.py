"""What an answer cites, as its provider tells it, made into sources to be listed: each once, in the order they are first cited.

Called by `renderer.py`; the page's `model/citations.ts`. Pure. Every provider has its own fields, and an imported history may
hold any: what has no name is left out.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Source:
    title: str
    url: str | None
    """None: nothing to open, such as a page of a document that was sent along."""
    quotes: tuple[str, ...]
    """The words that were cited."""


def sources_of(citations: Iterable[Any]) -> list[Source]:
    found: dict[str, Source] = {}
    for citation in citations:
        if (source := _source_of(citation)) is not None:
            known = found.setdefault(source.url or source.title, source)
            quotes = tuple(dict.fromkeys((*known.quotes, *source.quotes)))
            found[source.url or source.title] = replace(known, quotes=quotes)
    return list(found.values())


def _source_of(citation: Any) -> Source | None:
    if not isinstance(citation, dict):
        return None
    # The OpenAI shape keeps it one level further down.
    inner = citation.get("url_citation")
    fields = inner if isinstance(inner, dict) else citation
    address = _words_in(fields, "url", "source")
    title = _words_in(fields, "title", "document_title") or address
    if title is None:
        return None
    quote = _words_in(fields, "cited_text")
    is_linked = address is not None and re.match(r"https?://", address, re.IGNORECASE)
    return Source(title, address if is_linked else None, (quote.strip(),) if quote else ())


def _words_in(fields: dict[Any, Any], *names: str) -> str | None:
    given = (fields.get(name) for name in names)
    return next((value for value in given if isinstance(value, str) and value.strip()), None)
