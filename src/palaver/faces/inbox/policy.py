"""Whether an agent's call of an inbox tool is let through: the same rules as for every other tool of an agent.

Called by the assistant's server before each call. A denial is told in MCP's own way, as an error with a code.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from palaver.approval.policy import Policy, Rule, Verdict, as_mode, rules_of
from palaver.faces.inbox.approvals import ask_person, folder_of, origin_of_agent
from palaver.faces.inbox.caller import Visit
from palaver.faces.inbox.default import begin
from palaver.faces.inbox.tools import InboxTool, as_key, rule_name
from palaver.faces.server import ServerParts
from palaver.schema.commands import Interrupt
from palaver.schema.events import RequestResolved
from palaver.schema.view import State
from palaver.tools.base import Proposal, ToolSpec
from palaver.tools.proposal import fingerprint

ABORT = -32950
CONTINUE = -32951
FAILED = -32953


class Denied(Exception):
    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


async def judge(server: ServerParts, visit: Visit, tool: InboxTool, arguments: Mapping[str, Any]) -> None:
    """Returns when the call may run; raises Denied."""
    # The default inbox may not have begun: the server's rules count for it already.
    known = await server.directory.state(visit.conversation) if visit.begun else None
    state = known or State(conversation=visit.conversation)
    project = folder_of(server, state)
    # Speaking is no effect on the world: without a rule it is let through like reading.
    spec = ToolSpec(rule_name(tool), tool.description, {}, reads_only=True)
    match = str(arguments.get("content", "")) if tool.act == "post" else None
    proposal = Proposal(
        title=tool.name, hash=fingerprint(spec.name, arguments, project, {}), reads_only=True, match=match
    )
    verdict = verdict_of(server, state, project, spec, proposal)
    if verdict.failed:
        raise Denied(FAILED, verdict.why)
    match verdict.decision:
        case "allow":
            return
        case "deny_abort":
            await _abort(server, visit, state)
            raise Denied(ABORT, verdict.why)
        case "deny_continue":
            raise Denied(CONTINUE, verdict.why)
        case "ask":
            if not visit.begun:
                await begin(server.directory, visit.conversation, origin_of_agent(visit))
            answer = await ask_person(server, visit, state, spec.name, arguments, proposal)
            if answer.status == "answered" and answer.verdict == "deny" and answer.then == "stop":
                await _abort(server, visit, await server.directory.state(visit.conversation, tail=0))
            _check(answer)


async def _abort(server: ServerParts, visit: Visit, state: State) -> None:
    """A denial that ends the turn ends it here too, if one runs: whatever was pending in it gets a result."""
    if state.turn is not None:
        order = Interrupt(turn=state.turn.id)
        await server.directory.command(visit.conversation, order, origin_of_agent(visit))


def _check(answer: RequestResolved) -> None:
    if answer.status == "answered" and answer.verdict == "allow":
        return
    said = f" They said: {answer.text}" if answer.text else ""
    match answer.status:
        case "answered":
            code = ABORT if answer.then == "stop" else CONTINUE
            raise Denied(code, f"A person denied this call.{said}")
        case "expired":
            raise Denied(CONTINUE, "Nobody answered in time; it was not run.")
        case _:
            raise Denied(ABORT, "It was stopped before anybody had answered; it was not run.")


def verdict_of(server: ServerParts, state: State, project: Path, spec: ToolSpec, proposal: Proposal) -> Verdict:
    record = server.agents.agent(state.agent, str(project))
    of_agent = rules_of(record.policy, "agent") if record else ()
    policy = Policy(rules=_by_canonical_name(server.rules)).at(project.resolve(), _by_canonical_name(of_agent))
    of_conversation = _by_canonical_name(rules_of(state.params.get("policy"), "conversation"))
    grants = tuple(Rule(known.tool, known.decision, known.match, "conversation") for known in state.grants)
    mode = as_mode(state.params.get("mode") or (record.mode if record else None))
    return policy.verdict(spec, proposal, mode, _by_canonical_name(grants), of_conversation)


def _by_canonical_name(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Rules may name a tool in either spelling."""
    return tuple(replace(rule, tool=as_key(rule.tool)) for rule in rules)
