"""Restraints of an agent in a conversation: the rules and limits of the conversation and of the agent's record, together.

Called by decide, where a token may only choose an agent that is restrained as much; and where an agent begins a conversation
or writes to one, so that nobody gets more done through another agent than is allowed to themselves. Pure.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from palaver.core.params import restrictions
from palaver.schema.records import AgentRecord, PolicyRule

LIMITS: Mapping[str, bool] = {
    "spend_limit_usd": False,
    "tool_calls_per_minute": True,
    "request_timeout_s": True,
    "max_tokens": False,
    "thinking_budget": False,
    "context_tokens_cap": False,
}
"""Parameters that bound what an agent may use, and whether 0 means that there is no bound."""
INHERITED_LIMITS = ("request_timeout_s", "tool_calls_per_minute", "spend_limit_usd")
"""Those that go along to a conversation that an agent begins. The others fit the size of one model."""


def restraints_of(params: Mapping[str, Any], record: AgentRecord | None) -> list[Any]:
    """Every rule that forbids something or has it asked for, of a conversation and of its agent, each once."""
    of_agent = {"policy": msgspec.to_builtins(record.policy)} if record else {}
    found: list[Any] = []
    for rule in (*restrictions(params), *restrictions(of_agent)):
        if find_missing([rule], found):
            found.append(rule)
    return found


def find_missing(wanted: Iterable[Any], there: Iterable[Any]) -> list[Any]:
    """The rules that are not among others, however they are written down."""
    known = [_meaning(rule) for rule in there]
    return [rule for rule in wanted if _meaning(rule) not in known]


def inherit_params(params: Mapping[str, Any], record: AgentRecord | None, to: AgentRecord | None) -> dict[str, Any]:
    """The parameters of a conversation that the agent of another one begins with an agent (`to`): all that forbids, and of
    each limit the stricter one."""
    rules = restraints_of(params, record)
    own, others = limits_of(params, record), limits_of({}, to)
    limits = {
        name: own[name]
        if name not in others
        else min(own[name], others[name], key=lambda value: measure_limit(name, value))
        for name in INHERITED_LIMITS
        if name in own
    }
    return {**limits, "policy": rules} if rules else limits


def limits_of(params: Mapping[str, Any], record: AgentRecord | None) -> dict[str, Any]:
    """The limits of a conversation, else its agent's."""
    of_agent = dict(record.params) if record else {}
    if record and record.spend_limit_usd is not None:
        of_agent["spend_limit_usd"] = record.spend_limit_usd
    return {name: value for name, value in {**of_agent, **params}.items() if name in LIMITS}


def measure_limit(name: str, value: Any) -> float:
    """A limit as a number; infinite where there is none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    return float("inf") if not is_number or (LIMITS[name] and value == 0) else float(value)


def is_freer(agent: AgentRecord, than: AgentRecord) -> bool:
    """Whether an agent's record lets it do what another's does not: it lacks a rule or allows more, or has more tools."""
    allowing = [msgspec.to_builtins(rule) for rule in agent.policy if rule.decision == "allow"]
    allowed = [msgspec.to_builtins(rule) for rule in than.policy if rule.decision == "allow"]
    return bool(
        find_missing(restraints_of({}, than), restraints_of({}, agent))
        or find_missing(allowing, allowed)
        or set(agent.allowed_tools) - set(than.allowed_tools)
        or (than.tools and not (agent.tools and set(agent.tools) <= set(than.tools)))
    )


def _meaning(rule: Any) -> Any:
    try:
        return msgspec.convert(rule, PolicyRule)
    except msgspec.ValidationError:
        return rule
