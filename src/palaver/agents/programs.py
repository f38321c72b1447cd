"""The agent programs that Palaver can drive: Claude Code, Codex, Pi, and any that speaks ACP.

Called by the composition root. Each is listed whether or not it is installed: what is missing is said, with what to do
about it. Whether it is ready is known by its `installation`, which takes no time to import; its backend is imported when
somebody wants it, and its library only with its first turn.
"""

from collections.abc import Mapping

from palaver.agents.default_agents import NO_ACP_AGENT
from palaver.agents.roster import Source
from palaver.backends.base import Backend, Readiness
from palaver.backends.project_settings import SettingsTrust
from palaver.clock import Clock
from palaver.schema.records import AgentRecord
from palaver.tools.agents.agents_message import NAME as AGENTS_MESSAGE
from palaver.tools.agents.ask_user import SPEC as ASK_SPEC
from palaver.tools.agents.knowledge import SEARCH_SPEC
from palaver.tools.agents.task import NAME as TASK
from palaver.tools.toolbox import Toolbox

OTHERS = (TASK, AGENTS_MESSAGE)
"""The tools by which an agent reaches the others."""


def program_sources(
    environment: Mapping[str, str], clock: Clock, toolbox: Toolbox, trust: SettingsTrust | None = None
) -> dict[str, Source]:
    """`trust` says in which folders the programs may read a project's settings."""
    policy, standing = toolbox.policy, toolbox.standing
    others = toolbox.only(OTHERS)
    offered = toolbox.only((*OTHERS, SEARCH_SPEC.name))
    # Codex has a question of its own; Claude Code is given ours with its turn.
    asking = toolbox.only((*OTHERS, SEARCH_SPEC.name, ASK_SPEC.name))

    def claude() -> Backend:
        from palaver.backends.claude.backend import ClaudeBackend

        return ClaudeBackend(environment, clock, policy=policy, standing=standing, others=others, trust=trust)

    def claude_readiness(_: AgentRecord) -> Readiness:
        from palaver.backends.claude.installation import readiness

        return readiness(environment)

    def codex() -> Backend:
        from palaver.backends.codex.backend import CodexBackend

        return CodexBackend(clock, environment, policy=policy, standing=standing, others=offered, trust=trust)

    def codex_readiness(_: AgentRecord) -> Readiness:
        from palaver.backends.codex.installation import readiness

        return readiness(environment)

    def pi() -> Backend:
        from palaver.backends.pi.backend import PiBackend

        return PiBackend(clock, environment, policy=policy, standing=standing, others=asking, trust=trust)

    def pi_readiness(record: AgentRecord) -> Readiness:
        from palaver.backends.pi.installation import readiness

        return readiness(environment, record.command)

    def acp() -> Backend:
        from palaver.backends.acp.backend import AcpBackend

        return AcpBackend(clock, environment, policy=policy, standing=standing, others=asking, trust=trust)

    def acp_readiness(record: AgentRecord) -> Readiness:
        from palaver.backends.acp.installation import readiness

        # Without any such agent: how it is with the protocol itself.
        return readiness(environment, None if record == NO_ACP_AGENT else record)

    return {
        "claude": Source(claude, claude_readiness, modules=("palaver.backends.claude.backend",)),
        "codex": Source(codex, codex_readiness, modules=("palaver.backends.codex.backend",)),
        "pi": Source(pi, pi_readiness, modules=("palaver.backends.pi.backend",)),
        "acp": Source(acp, acp_readiness, modules=("palaver.backends.acp.backend",)),
    }
