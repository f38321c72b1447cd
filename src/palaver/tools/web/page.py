"""An HTML page as text that can be read: a program of its own, run by the tool `fetch`.

A page is anybody's text, and a parser keeps the interpreter to itself; as a child it can be ended. It reads HTML on stdin
and writes text on stdout: headings, lists, tables and links kept, everything that is not for reading left out. The first
argument is the page's address, which its links are relative to.

It imports nothing of Palaver: whatever it imports, every page waits for.
"""

import re
import resource
import sys
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

LINK_CHARS = 500
"""A longer address is data, not a place to go to."""
LIST_LEVELS = 10
"""Deeper lists are not indented further: a page of nothing but lists would become many times as long."""
MEMORY_BYTES = 1 << 30
"""Of the whole program."""
_UNREAD = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "math", "select"})
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "dialog", "div", "dl", "dt"}
    | {"fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "main", "nav", "ol", "p", "section"}
    | {"summary", "table", "tbody", "tfoot", "thead", "title", "ul"}
)
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_BLANKS = re.compile(r"[ \t\r\n\f\v\u00a0]+")
_EMPTY_LINES = re.compile(r"\n{3,}")


class Page(HTMLParser):
    """Collects what a page says. Broken nesting is a page's ordinary state: no end tag is relied on."""

    def __init__(self, address: str) -> None:
        super().__init__(convert_charrefs=True)
        self._address = address
        self._said: list[str] = []
        self._unread: list[str] = []
        self._preformatted = 0
        self._lists: list[int | None] = []
        self._link: tuple[str, int] | None = None
        self._at_line_start = True

    def text(self) -> str:
        whole = "".join(self._said)
        lines = (line.rstrip() for line in whole.split("\n"))
        return _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip("\n") + "\n"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNREAD:
            self._unread.append(tag)
        if self._unread:
            return
        named = dict(attrs)
        if tag in _HEADINGS:
            self._say(f"\n\n{_HEADINGS[tag]} ")
        elif tag == "pre":
            self._preformatted += 1
            self._say("\n\n")
        elif tag in ("ul", "ol"):
            self._say("" if self._lists else "\n\n")
            self._lists.append(1 if tag == "ol" else None)
        elif tag == "li":
            self._say(f"\n{'  ' * max(0, min(len(self._lists), LIST_LEVELS) - 1)}{self._bullet()} ")
        elif tag in ("br", "tr"):
            self._say("\n")
        elif tag in ("td", "th"):
            self._say("" if self._at_line_start else " | ")
        elif tag == "img":
            self._words(f"[{named['alt']}]" if named.get("alt") else "")
        elif tag == "a":
            self._close_link()
            self._link = (named.get("href") or "", len(self._said))
        elif tag in _BLOCKS:
            self._say("\n\n")

    def handle_endtag(self, tag: str) -> None:
        if self._unread:
            if tag in self._unread:
                del self._unread[self._unread.index(tag) :]
            return
        if tag == "pre":
            self._preformatted = max(0, self._preformatted - 1)
            self._say("\n\n")
        elif tag in ("ul", "ol"):
            if self._lists:
                self._lists.pop()
            self._say("" if self._lists else "\n\n")
        elif tag == "a":
            self._close_link()
        elif tag in _HEADINGS or tag in _BLOCKS:
            self._say("\n\n")

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self._words(data)

    def _bullet(self) -> str:
        if not self._lists or (number := self._lists[-1]) is None:
            return "-"
        self._lists[-1] = number + 1
        return f"{number}."

    def _close_link(self) -> None:
        """Behind a link's words, where it leads, unless that is this page or says nothing more."""
        if self._link is None:
            return
        (href, begin), self._link = self._link, None
        words = "".join(self._said[begin:]).strip()
        try:
            target = urljoin(self._address, href.strip())
            leads = urlsplit(target).scheme in ("http", "https") and not href.startswith("#")
        except ValueError:
            return
        if leads and words and target != words and len(target) <= LINK_CHARS:
            self._say(f" ({target})")

    def _words(self, text: str) -> None:
        if not self._preformatted:
            text = _BLANKS.sub(" ", text)
            if self._at_line_start or (self._said and self._said[-1].endswith(" ")):
                text = text.lstrip(" ")
        self._say(text)

    def _say(self, text: str) -> None:
        if text:
            self._said.append(text)
            self._at_line_start = text.endswith("\n")


def main() -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    page = Page(sys.argv[1] if len(sys.argv) > 1 else "")
    page.feed(sys.stdin.buffer.read().decode(errors="replace"))
    page.close()
    sys.stdout.buffer.write(page.text().encode(errors="replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
