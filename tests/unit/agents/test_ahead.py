"""What the first turn imports, imported ahead of it."""

import sys
from pathlib import Path

import pytest

from palaver.agents.roster import Roster, Source
from palaver.backends.script.backend import ScriptedBackend
from palaver.schema.records import AgentRecord

DEFAULT, OTHER = (AgentRecord(id=name, name=name, backend=name) for name in ("default", "other"))


def imported(roster: Roster) -> set[str]:
    roster.import_default()
    return {"palaver_default", "palaver_later", "palaver_other"} & sys.modules.keys()


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Source]:
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("palaver_default", "palaver_later", "palaver_other"):
        (tmp_path / f"{name}.py").touch()
        # Known to the patch, so that it is forgotten with it.
        monkeypatch.setitem(sys.modules, name, sys)
        del sys.modules[name]
    return {
        "default": Source(lambda: ScriptedBackend([]), modules=("palaver_default", "no_such_module", "palaver_later")),
        "other": Source(lambda: ScriptedBackend([]), modules=("palaver_other",)),
    }


def test_only_what_the_default_agent_runs_on_is_imported_as_far_as_it_is_installed(sources: dict[str, Source]) -> None:
    assert imported(Roster([DEFAULT, OTHER], sources)) == {"palaver_default"}


def test_server_without_a_default_agent_imports_nothing_ahead(sources: dict[str, Source]) -> None:
    assert imported(Roster([OTHER], sources)) == set()
