"""Every built-in tool in every mode: what runs without asking anybody is what `tools/effects.py` says, and no more."""

import pytest

from palaver.approval.policy import Policy, as_mode
from palaver.core.params import MODES
from palaver.errors import ConfigurationError
from palaver.tools.base import Proposal, ToolSpec
from palaver.tools.effects import EFFECTS, UNASKED, check_effects
from palaver.tools.shell.background import Processes
from palaver.tools.shell.sandbox import unsandboxed
from palaver.tools.toolbox import built_in_tools

SPECS = {
    tool.spec.name: tool.spec
    for tool in built_in_tools(unsandboxed(), Processes(lambda: "id"), lambda: "id", lambda _: [])
}


def test_table_has_exactly_the_built_in_tools() -> None:
    assert set(SPECS) == set(EFFECTS)


@pytest.mark.parametrize("full_enabled", [True, False])
@pytest.mark.parametrize("sandboxed", [True, False])
@pytest.mark.parametrize("word", MODES)
@pytest.mark.parametrize("name", sorted(EFFECTS))
def test_mode_alone_lets_run_what_the_table_says(name: str, word: str, sandboxed: bool, full_enabled: bool) -> None:
    spec, mode, effect = SPECS[name], as_mode(word), EFFECTS[name]
    # A call that does what its tool may do at most; one that only reads says so itself.
    proposal = Proposal(title=name, hash="hash", reads_only=spec.reads_only)
    verdict = Policy(sandboxed=sandboxed, full_enabled=full_enabled).verdict(spec, proposal, mode)
    counts = mode
    if mode == "auto" and not sandboxed:
        counts = "accept_edits"
    elif mode == "full" and not full_enabled:
        counts = "ask"
    if counts in UNASKED[effect]:
        assert verdict.decision == "allow"
    else:
        assert verdict.decision == ("deny_continue" if mode == "plan" else "ask")


@pytest.mark.parametrize("grown", [{"outside": True}, {}, {"edits_only": True}])
def test_tool_that_says_more_of_itself_keeps_the_server_from_starting(grown: dict[str, bool]) -> None:
    with pytest.raises(ConfigurationError, match="read"):
        check_effects([ToolSpec("read", "", {}, **grown)])
    with pytest.raises(ConfigurationError, match="unheard_of"):
        check_effects([ToolSpec("unheard_of", "", {}, **grown)])
