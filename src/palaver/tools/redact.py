"""Secret redaction: values of environment variables with telling names, and tokens that are known by their shape.

Called on everything a tool says (`output.py`), before it can reach the log or a model. Previews of what a person approves
lose only values of the environment (`redact_values`): a shape could hide a part of the command. Pure, but for a look at
whether a value is the path of something. A stream is redacted as it comes, and the way it is cut into pieces never changes
the result.

Two stages, one after the other: values, also in their hexadecimal, base64, percent-encoded and JSON forms (`_Values`), then
shapes (`secret_shapes.py`). Each takes time linear in the text.
"""

import base64
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Protocol
from urllib.parse import quote, quote_plus

from palaver.tools.secret_names import is_telling, names_a_file
from palaver.tools.secret_shapes import open_from, strike_shapes

MIN_SECRET_CHARS = 8
"""Shorter values ("1", "true", "dev") are no secrets, and striking them would ruin ordinary text."""
MIN_LINE_CHARS = 24
"""Of a line of a secret that has several, such as a private key, to be a secret by itself."""
ENCODED_CHARS = 4_096
"""Of a value whose encoded forms are struck too. A longer one is a document."""
DEPTH = 8
"""Of a document whose own secrets are looked for."""

_PASSWORD = re.compile(r"[a-z][a-z0-9+.-]{0,31}://[^/\s:@]*:([^/\s]+)@", re.IGNORECASE)
_USER_TOKEN = re.compile(
    r"https?://((?=[^/\s:@?#]*[A-Za-z])(?=[^/\s:@?#]*\d[^/\s:@?#]*\d)[^/\s:@?#]{12,})@", re.IGNORECASE
)
"""In place of a user and a password. Names of users are shorter, or words."""
_PARAMETER = re.compile(r"[?&]([^=&#\s]{1,64})=([^&#\s]{8,})")
_FIELD = re.compile(
    r"(?:^|[;,\n])[ \t]*+([A-Za-z][\w .-]{0,63}?)[ \t]*[=:][ \t]*((?:(?:bearer|basic|token)[ \t]+)?)([^;,\n]{8,})",
    re.IGNORECASE,
)
"""Of a connection string or a list of headers."""
_PATH = re.compile(r"(/[^/\0]*)+|unix:.*")


class Redactor:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._values = _values_of(tuple(_secrets(environment)))

    def redact(self, text: str) -> str:
        return strike_shapes(self._values.strike(text))

    def redact_values(self, text: str) -> str:
        """Without shapes: for what a person must see whole."""
        return self._values.strike(text)

    def stream(self) -> "RedactedStream":
        return RedactedStream(_ValueStage(self._values), _ShapeStage())


class _Stage(Protocol):
    def feed(self, text: str) -> str: ...

    def finish(self) -> str: ...


class RedactedStream:
    """One stream on its way out. Only the possible beginning of a secret is held back."""

    def __init__(self, *stages: _Stage) -> None:
        self._stages = stages

    def feed(self, text: str) -> str:
        for stage in self._stages:
            text = stage.feed(text)
        return text

    def finish(self) -> str:
        text = ""
        for stage in self._stages:
            text = stage.feed(text) + stage.finish()
        return text


class _ValueStage:
    def __init__(self, values: "_Values") -> None:
        self._values = values
        self._held = ""

    def feed(self, text: str) -> str:
        said, self._held = self._values.settle(self._held + text)
        return said

    def finish(self) -> str:
        said, self._held = self._values.strike(self._held), ""
        return said


class _ShapeStage:
    def __init__(self) -> None:
        self._held = ""
        self._before = ""
        """The last character that was let out: a token does not begin in the middle of a word."""

    def feed(self, text: str) -> str:
        text = self._held + text
        open_at = open_from(text)
        said = self._let_out(text[:open_at])
        self._held = text[open_at:]
        return said

    def finish(self) -> str:
        held, self._held = self._held, ""
        return self._let_out(held)

    def _let_out(self, text: str) -> str:
        said = strike_shapes(self._before + text)[len(self._before) :]
        self._before = text[-1:] or self._before
        return said


# -- values of the environment


def _secrets(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each secret text with the name that stands in for it."""
    for name, value in environment.items():
        if len(value) < MIN_SECRET_CHARS:
            continue
        if is_telling(name) and not _is_path(name, value):
            yield value, name
            yield from ((inner, name) for inner in _fields_of(value))
        yield from ((inner, name) for inner in _address_secrets(value) if len(inner) >= MIN_SECRET_CHARS)


def _is_path(name: str, value: str) -> bool:
    """A secret in base64 begins with a slash as often as with any other of 64 characters."""
    if not _PATH.fullmatch(value):
        return False
    return value.startswith("unix:") or names_a_file(name) or os.path.lexists(value)


def _address_secrets(value: str) -> Iterator[str]:
    if "://" not in value:
        return
    yield from (found[1] for found in _PASSWORD.finditer(value))
    yield from (found[1] for found in _USER_TOKEN.finditer(value))
    yield from (found[2] for found in _PARAMETER.finditer(value) if is_telling(found[1]))


def _fields_of(value: str) -> Iterator[str]:
    """Secrets by themselves within a secret that is a document: a connection string, headers, a service account."""
    if value.lstrip().startswith("{") and len(value) <= ENCODED_CHARS * 4:
        try:
            yield from _telling_texts(json.loads(value), 0)
        except (ValueError, RecursionError):
            return
    elif len(value) <= ENCODED_CHARS:
        yield from (found[3] for found in _FIELD.finditer(value) if is_telling(found[1].strip()))


def _telling_texts(value: Any, depth: int, *, telling: bool = False) -> Iterator[str]:
    if isinstance(value, str) and telling and len(value) >= MIN_SECRET_CHARS:
        yield value
    elif isinstance(value, dict) and depth < DEPTH:
        for name, inner in value.items():
            yield from _telling_texts(inner, depth + 1, telling=is_telling(name))
    elif isinstance(value, list) and depth < DEPTH:
        for inner in value:
            yield from _telling_texts(inner, depth + 1, telling=telling)


@lru_cache(maxsize=32)
def _values_of(secrets: tuple[tuple[str, str], ...]) -> "_Values":
    return _Values({form: name for secret, name in secrets for form in _forms(secret)})


def _forms(secret: str) -> Iterator[str]:
    """Encoded forms first: where one is as long as the secret itself, the plain one gives the name."""
    if len(secret) <= ENCODED_CHARS:
        data = secret.encode(errors="surrogatepass")
        yield data.hex()
        yield data.hex().upper()
        for offset in range(3):
            # Within a longer text (`user:password`) it begins at any of three bits; what its neighbours share is left out.
            encoded = base64.b64encode(bytes(offset) + data).decode().rstrip("=")
            inner = encoded[
                -(-offset * 8 // 6) if offset else 0 : len(encoded) - (1 if (offset + len(data)) % 3 else 0)
            ]
            if len(inner) >= MIN_SECRET_CHARS:
                yield inner
                yield inner.replace("+", "-").replace("/", "_")
        yield from (quote(secret, safe="", errors="replace"), quote(secret, errors="replace"))
        yield from (quote_plus(secret, errors="replace"), json.dumps(secret)[1:-1])
        yield json.dumps(secret, ensure_ascii=False)[1:-1]
    lines = secret.splitlines()
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= MIN_LINE_CHARS and " " not in line.strip())
    yield secret


class _Values:
    """Texts that are struck wherever they appear."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        # The longest first: where one secret begins another, the whole of it goes.
        self._texts = sorted(names, key=len, reverse=True)
        self._by_first: defaultdict[str, list[str]] = defaultdict(list)
        for text in self._texts:
            self._by_first[text[0]].append(text)

    def strike(self, text: str) -> str:
        pattern = self._pattern_for(text)
        return pattern.sub(lambda found: self._stand_in(found[0]), text) if pattern else text

    def settle(self, text: str) -> tuple[str, str]:
        """What can be said of the beginning of a text, redacted, and the rest that may turn out to begin a secret."""
        pattern = self._pattern_for(text)
        said: list[str] = []
        begin = 0
        held = self._may_begin_secret(text, begin)
        while True:
            found = pattern.search(text, begin) if pattern else None
            if found is None or found.start() >= held:
                said.append(text[begin:held])
                return "".join(said), text[held:]
            said += text[begin : found.start()], self._stand_in(found[0])
            begin = found.end()
            if begin > held:
                held = self._may_begin_secret(text, begin)

    def _pattern_for(self, text: str) -> re.Pattern[str] | None:
        """Of those that the text holds. To find them one by one is far faster than an expression with all of them."""
        present = [secret for secret in self._texts if secret in text]
        return re.compile("|".join(map(re.escape, present))) if present else None

    def _may_begin_secret(self, text: str, begin: int) -> int:
        """The first place from where the text, to its end, is the beginning of some secret and not all of it."""
        longest = len(self._texts[0]) if self._texts else 0
        for place in range(max(begin, len(text) - longest + 1), len(text)):
            left = len(text) - place
            for secret in self._by_first.get(text[place], ()):
                if len(secret) > left and text.startswith(secret[:left], place):
                    return place
        return len(text)

    def _stand_in(self, secret: str) -> str:
        return f"[redacted {self._names[secret]}]"
