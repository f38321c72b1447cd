"""How Codex is let work in each of our modes: what it asks about, and the box its commands run in. Pure.

| mode | Codex asks | its sandbox |
|---|---|---|
| plan | never: nothing it does can change a file | read only |
| ask | before every command and every patch | the project may be written, no network |
| accept_edits | before every command; patches inside the project are answered by the mode | the same |
| auto | when it wants out of its sandbox | the same |
| full | never | none |

Where rules deny or ask for some calls it asks before every command and every patch in each mode, and the policy answers.
"""

from dataclasses import dataclass
from typing import Any, Literal

from palaver.approval.policy import Mode
from palaver.approval.program_calls import mode_of
from palaver.backends.base import Turn
from palaver.schema.records import McpServer

Policy = Literal["untrusted", "on-request", "never"]
Sandbox = Literal["read-only", "workspace-write", "danger-full-access"]

_CONDUCT: dict[Mode, tuple[Policy, Sandbox]] = {
    "plan": ("never", "read-only"),
    "ask": ("untrusted", "workspace-write"),
    "accept_edits": ("untrusted", "workspace-write"),
    "auto": ("on-request", "workspace-write"),
    "full": ("never", "danger-full-access"),
}
_POLICY_NAMES: dict[Sandbox, str] = {
    "read-only": "readOnly",
    "workspace-write": "workspaceWrite",
    "danger-full-access": "dangerFullAccess",
}
_EFFORTS = frozenset({"minimal", "low", "medium", "high", "xhigh"})


@dataclass(frozen=True, slots=True)
class Conduct:
    mode: Mode
    policy: Policy
    sandbox: Sandbox
    cwd: str
    model: str | None = None
    effort: str | None = None
    instructions: str | None = None
    servers: tuple[McpServer, ...] = ()
    trusted: tuple[str, ...] = ()
    """Folders that Codex may read settings from: a person has trusted exactly these files."""
    untrusted: tuple[str, ...] = ()
    """Folders that it may not, whatever its own settings say of them."""

    @property
    def grant(self) -> str:
        """What a call runs under that nobody was asked about."""
        return f"mode:{self.mode}"

    @property
    def planning(self) -> bool:
        return self.mode == "plan"

    @property
    def box(self) -> str:
        """For the person who decides. What was allowed and the sandbox forbids at once, Codex tries again outside of it,
        without asking (seen with 0.163)."""
        return f"Codex's own ({self.sandbox}); it may leave it for what you allow"

    def of_thread(self) -> dict[str, Any]:
        """For starting, resuming and forking. A resumed thread would otherwise fall back to reading only."""
        given = {"model": self.model, "developerInstructions": self.instructions}
        return {
            "cwd": self.cwd,
            "approvalPolicy": self.policy,
            "sandbox": self.sandbox,
            **{name: value for name, value in given.items() if value},
            "config": {
                # Said of each thread: of a folder that it knows nothing of, Codex writes into its own config.toml that it is
                # trusted, and starts what the folder's settings name (seen with 0.163).
                "projects": {
                    **{folder: {"trust_level": "untrusted"} for folder in (self.cwd, *self.untrusted)},
                    **{folder: {"trust_level": "trusted"} for folder in self.trusted},
                },
                **({"mcp_servers": dict(map(_server, self.servers))} if self.servers else {}),
            },
        }

    def of_turn(self, before: object, model: str | None) -> dict[str, Any]:
        """What changed since the thread's last turn; the rest stays as its own configuration has it."""
        given: dict[str, Any] = {"summary": "auto"}
        planned = isinstance(before, Conduct) and before.planning
        if (self.planning or planned) and (self.model or model):
            # Only in its own plan mode does Codex ask questions and propose a plan.
            settings = {"model": self.model or model, "reasoning_effort": self.effort, "developer_instructions": None}
            given["collaborationMode"] = {"mode": "plan" if self.planning else "default", "settings": settings}
        if self.effort:
            given["effort"] = self.effort
        if before != self:
            given["approvalPolicy"] = self.policy
            given["sandboxPolicy"] = {"type": _POLICY_NAMES[self.sandbox]}
            given["cwd"] = self.cwd
            if self.model:
                given["model"] = self.model
        return given


def conduct_of(turn: Turn, full_enabled: bool, restricted: bool = False) -> Conduct:
    """`full_enabled`: this server allows that mode; where it does not, it asks. `restricted`: by rules of ours."""
    agent = turn.agent
    params = {**agent.params, **turn.params}
    wished = mode_of(turn)
    mode: Mode = "ask" if wished == "full" and not full_enabled else wished
    policy, sandbox = _CONDUCT[mode]
    policy = "untrusted" if restricted else policy
    effort = _word(params.get("reasoning_effort"))
    return Conduct(
        mode=mode,
        policy=policy,
        sandbox=sandbox,
        cwd=str(turn.project),
        model=_word(params.get("model")) or agent.model,
        effort=effort if effort in _EFFORTS else None,
        instructions=agent.system_prompt or None,
        servers=agent.mcp_servers,
    )


def _server(server: McpServer) -> tuple[str, dict[str, Any]]:
    """In the words of Codex's own settings."""
    if server.url:
        return server.name, {"url": server.url, "http_headers": server.headers}
    program, *arguments = server.command or ("",)
    return server.name, {"command": program, "args": arguments, "env": server.environment}


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
