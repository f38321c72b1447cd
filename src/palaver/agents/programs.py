"""The agent programs that Palaver can drive: Claude Code, Codex, Pi, and any that speaks ACP.

Called by the composition root. Each is listed whether or not it is installed: what is missing is said, with what to do
about it. A program's module is imported when somebody asks for it, and its library only with its first turn.
"""

from collections.abc import Mapping

from palaver.agents.roster import Source
from palaver.backends.base import Backend, Readiness
from palaver.clock import Clock
from palaver.schema.records import AgentRecord
from palaver.tools.agents_message import NAME as AGENTS_MESSAGE
from palaver.tools.ask_user import SPEC as ASK_SPEC
from palaver.tools.knowledge import SEARCH_SPEC
from palaver.tools.task import NAME as TASK
from palaver.tools.toolbox import Toolbox

PROGRAMS = (
    AgentRecord(id="claude", name="Claude Code", description="Anthropic's coding agent", backend="claude"),
    AgentRecord(id="codex", name="Codex", description="OpenAI's coding agent", backend="codex"),
    AgentRecord(id="pi", name="Pi", description="A small coding agent for any model", backend="pi"),
)
"""In the order in which `default` takes one that is ready."""
OTHERS = (TASK, AGENTS_MESSAGE)
"""The tools by which an agent reaches the others."""
NO_ACP_AGENT = AgentRecord(id="acp", name="Agents that speak ACP", backend="acp")
"""Stands for those that nobody has set up."""


def program_sources(environment: Mapping[str, str], clock: Clock, toolbox: Toolbox) -> dict[str, Source]:
    policy, standing = toolbox.policy, toolbox.standing
    others = toolbox.only(OTHERS)
    offered = toolbox.only((*OTHERS, SEARCH_SPEC.name))
    # Codex has a question of its own; Claude Code is given ours with its turn.
    asking = toolbox.only((*OTHERS, SEARCH_SPEC.name, ASK_SPEC.name))

    def claude() -> Backend:
        from palaver.backends.claude import ClaudeBackend

        return ClaudeBackend(environment, clock, policy=policy, standing=standing, others=others)

    def claude_readiness(_: AgentRecord) -> Readiness:
        from palaver.backends.claude import readiness

        return readiness(environment)

    def codex() -> Backend:
        from palaver.backends.codex import CodexBackend

        return CodexBackend(clock, environment, policy=policy, standing=standing, others=offered)

    def codex_readiness(_: AgentRecord) -> Readiness:
        from palaver.backends.codex import readiness

        return readiness(environment)

    def pi() -> Backend:
        from palaver.backends.pi import PiBackend

        return PiBackend(clock, environment, policy=policy, standing=standing, others=asking)

    def pi_readiness(record: AgentRecord) -> Readiness:
        from palaver.backends.pi import readiness

        return readiness(environment, record.command)

    def acp() -> Backend:
        from palaver.backends.acp import AcpBackend

        return AcpBackend(clock, environment, policy=policy, standing=standing, others=asking)

    def acp_readiness(record: AgentRecord) -> Readiness:
        from palaver.backends.acp import readiness

        # Without any such agent: how it is with the protocol itself.
        return readiness(environment, None if record == NO_ACP_AGENT else record)

    return {
        "claude": Source(claude, claude_readiness),
        "codex": Source(codex, codex_readiness),
        "pi": Source(pi, pi_readiness),
        "acp": Source(acp, acp_readiness),
    }
