"""Secrets out of text: the values of environment variables that look secret by name, wherever they appear.

Called on everything a tool says (`output.py`) and on every preview (`toolbox.py`), before it can reach the log. Pure. A
stream is redacted as it comes, and the way it is cut into pieces never changes the result.
"""

import re
from collections.abc import Mapping

MIN_SECRET_CHARS = 8
"""Shorter values ("1", "true", "dev") are no secrets, and striking them would ruin ordinary text."""

_LOOKS_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)S?(_|\d|$)", re.IGNORECASE)


class Redactor:
    def __init__(self, environment: Mapping[str, str]) -> None:
        secrets = {
            value: name
            for name, value in environment.items()
            if len(value) >= MIN_SECRET_CHARS and _LOOKS_SECRET.search(name)
        }
        self._names = secrets
        # The longest first: where one secret begins another, the whole of it goes.
        self._secrets = sorted(secrets, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._secrets))) if secrets else None

    def redact(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self._stand_in(found[0]), text)

    def stream(self) -> "RedactedStream":
        return RedactedStream(self)

    def settle(self, text: str) -> tuple[str, str]:
        """What can be said of the beginning of a text, redacted, and the rest that may turn out to begin a secret."""
        if self._pattern is None:
            return text, ""
        said: list[str] = []
        begin = 0
        while True:
            held = self._may_begin_secret(text, begin)
            found = self._pattern.search(text, begin)
            if found is None or found.start() >= held:
                said.append(text[begin:held])
                return "".join(said), text[held:]
            said += text[begin : found.start()], self._stand_in(found[0])
            begin = found.end()

    def _may_begin_secret(self, text: str, begin: int) -> int:
        """The first place from where the text, to its end, is the beginning of some secret and not all of it."""
        longest = len(self._secrets[0])
        for place in range(max(begin, len(text) - longest + 1), len(text)):
            rest = text[place:]
            if any(len(secret) > len(rest) and secret.startswith(rest) for secret in self._secrets):
                return place
        return len(text)

    def _stand_in(self, secret: str) -> str:
        return f"[redacted {self._names[secret]}]"


class RedactedStream:
    """One stream on its way out. Only the possible beginning of a secret is held back."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, text: str) -> str:
        said, self._held = self._redactor.settle(self._held + text)
        return said

    def finish(self) -> str:
        said, self._held = self._redactor.redact(self._held), ""
        return said
