"""Notes of a project: `.palaver/knowledge/*.md`, one subject a file, written by people or by `remember`.

Read when something is recalled. Found by the words they share with a text, the rarer among the notes the more. A link that
leads out of the project is left alone; a turn costs a look at the folder, and only what changed is read again.
"""

import os
from collections import Counter
from dataclasses import dataclass
from math import log
from pathlib import Path

from palaver.core.keywords import telling_words, words_of
from palaver.errors import CallerError
from palaver.tools.files.paths import Root

FOLDER = ".palaver/knowledge"
NOTES = 500
"""More are not looked at: such a project has a documentation, which tools can search."""
NOTE_BYTES = 16 * 1024
"""Of one note: its beginning says what it is about."""
LOOKED_FOR = 24
HALF_LIFE_MS = 180 * 86_400_000
"""Notes age slowly: they were written to be kept."""
AGE_WEIGHT = 0.3
REMEMBERED = 16
"""Projects whose notes are kept in memory."""

_SATURATION = 1.2


@dataclass(frozen=True, slots=True)
class Note:
    path: str
    """Beneath the project."""
    title: str
    text: str
    ts: int
    words: Counter[str]


@dataclass(frozen=True, slots=True)
class _Kept:
    mark: tuple[int, int]
    note: Note


class Notes:
    """Shared by all turns of a backend. Called in a thread."""

    def __init__(self) -> None:
        self._projects: dict[Path, dict[str, _Kept]] = {}

    @staticmethod
    def there_are(project: Path) -> bool:
        """One look, so that a project without notes costs no thread."""
        return (project / FOLDER).is_dir()

    def fitting(self, project: Path, text: str, now_ms: int, limit: int) -> list[Note]:
        """The notes that hold telling words of a text, the best first."""
        wanted = telling_words(text, LOOKED_FOR)
        notes = self._read(project) if wanted else []
        rarities = {word: log(1 + len(notes) / (1 + sum(word in note.words for note in notes))) for word in wanted}

        def merit(note: Note) -> float:
            fit = sum(
                worth * note.words[word] / (note.words[word] + _SATURATION)
                for word, worth in rarities.items()
                if note.words[word]
            )
            age = max(0, now_ms - note.ts) / HALF_LIFE_MS
            return float(fit * (1 - AGE_WEIGHT * (1 - 0.5**age)))

        ranked = sorted(((merit(note), note) for note in notes), key=lambda pair: (-pair[0], pair[1].path))
        return [note for worth, note in ranked[:limit] if worth > 0]

    def _read(self, project: Path) -> list[Note]:
        known = self._projects.get(project, {})
        found: dict[str, _Kept] = {}
        try:
            with Root(project).open_folder(FOLDER) as folder:
                with os.scandir(folder) as entries:
                    names = sorted(entry.name for entry in entries if entry.name.endswith(".md"))[:NOTES]
                for name in names:
                    info = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    mark = (info.st_mtime_ns, info.st_size)
                    kept = known.get(name)
                    if kept is None or kept.mark != mark:
                        note = _note(project, name, info.st_mtime_ns // 1_000_000)
                        kept = _Kept(mark, note) if note else None
                    if kept is not None:
                        found[name] = kept
        except (CallerError, OSError):
            return []
        if len(self._projects) >= REMEMBERED:
            self._projects.clear()
        self._projects[project] = found
        return [kept.note for kept in found.values()]


def _note(project: Path, name: str, ts: int) -> Note | None:
    path = f"{FOLDER}/{name}"
    try:
        with Root(project).open(path) as file:
            text = file.read(NOTE_BYTES).decode(errors="ignore").strip()
    except CallerError:
        return None
    title = text.partition("\n")[0].lstrip("# ").strip() or name.removesuffix(".md")
    return Note(path, title, text, ts, Counter(words_of(f"{name} {text}")))
