"""The programs that are tested, by name. A program whose backend is not there yet is simply not in it."""

import importlib
from pathlib import Path

from tests.cli.rig import Subject

SUBJECTS: list[Subject] = [
    importlib.import_module(f"tests.cli.subjects.{path.stem}").SUBJECT
    for path in sorted(Path(__file__).parent.glob("*.py"))
    if path.stem != "__init__"
]
BY_NAME = {subject.name: subject for subject in SUBJECTS}
CLAUDE, CODEX, PI, OPENCODE, GEMINI = (BY_NAME[name] for name in ("claude", "codex", "pi", "opencode", "gemini"))
