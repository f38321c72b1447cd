"""Programs for tests: those of this machine, outside the folders of a test."""

import tempfile
from pathlib import Path

from palaver.backends.program_lookup import ProgramLookup


def programs_outside(*projects: Path) -> ProgramLookup:
    return ProgramLookup(lambda: projects, Path(tempfile.gettempdir(), "palaver-test-empty"))
