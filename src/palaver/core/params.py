"""The parameters of a conversation that mean something to Palaver: what each may hold.

Called by decide. Numbers are brought into their range, a wrong type is refused by name, null clears, and a name nobody
here knows is kept for whoever does.
"""

from collections.abc import Callable, Mapping
from typing import Any

from palaver.core.decide.decision import Refusal

MODES = ("plan", "ask", "accept_edits", "auto", "full")
MODE_WORDS = {"agent": "ask", "accept edits": "accept_edits", "accept-edits": "accept_edits"}
"""Other spellings that clients use."""
IDE_TOOLS = 64
"""Tools an editor may declare: each is part of every model call."""


def check_patch(patch: Mapping[str, Any]) -> dict[str, Any] | Refusal:
    """The patch as it is recorded, or what is wrong with it."""
    fitted: dict[str, Any] = {}
    for name, value in patch.items():
        check = _CHECKS.get(name)
        if value is None or check is None:
            fitted[name] = value
            continue
        try:
            fitted[name] = check(value)
        except _Wrong as wrong:
            return Refusal("invalid", f"`{name}` {wrong}.", {"param": name})
    return fitted


def restrictions(params: Mapping[str, Any]) -> list[Any]:
    """The rules of a conversation that forbid something or have it asked for: they go along with what comes of it. What
    allows something was allowed there alone."""
    rules = params.get("policy")
    known = rules if isinstance(rules, list | tuple) else ()
    return [rule for rule in known if not (isinstance(rule, dict) and rule.get("decision") == "allow")]


class _Wrong(Exception):
    """Why a value does not fit, to follow the parameter's name."""


def _number(low: float, high: float) -> Callable[[Any], float]:
    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            raise _Wrong(f"must be a number between {low:g} and {high:g}")
        return min(max(value, low), high)

    return check


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            raise _Wrong(f"must be a whole number between {low} and {high:,}")
        fitted = min(max(value, low), high)
        if fitted != int(fitted):
            raise _Wrong(f"must be a whole number between {low} and {high:,}")
        return int(fitted)

    return check


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Wrong("must be a text that is not empty")
    return value.strip()


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Wrong("must be true or false")
    return value


def _mode(value: Any) -> str:
    word = MODE_WORDS.get(value, value) if isinstance(value, str) else value
    if word not in MODES:
        raise _Wrong(f"must be one of {', '.join(MODES)}")
    return str(word)


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) and item.strip() for item in value):
        raise _Wrong("must be a list of texts")
    return [item.strip() for item in value]


def _ide_tools(value: Any) -> list[Any]:
    """Tools that the client itself executes: `{name, description, parameters}` each."""
    if not isinstance(value, list | tuple) or len(value) > IDE_TOOLS:
        raise _Wrong(f"must be a list of at most {IDE_TOOLS} tools")
    for tool in value:
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str) or not tool["name"]:
            raise _Wrong("must hold tools with a `name`, a `description` and `parameters`")
        if not isinstance(tool.get("parameters", {}), dict):
            raise _Wrong(f"has a tool “{tool['name']}” whose `parameters` are no JSON Schema object")
    return list(value)


def _rules(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise _Wrong("must be a list of rules")
    for rule in value:
        words = ("allow", "ask", "deny_continue", "deny_abort")
        if not isinstance(rule, dict) or not isinstance(rule.get("tool"), str) or rule.get("decision") not in words:
            raise _Wrong(f"must hold rules with a `tool` and a `decision` (one of {', '.join(words)})")
    return list(value)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "frequency_penalty": _number(-2, 2),
    "presence_penalty": _number(-2, 2),
    "max_tokens": _whole(1, 1_000_000),
    "thinking_budget": _whole(0, 1_000_000),
    "context_tokens_cap": _whole(1_000, 10_000_000),
    "request_timeout_s": _number(0, 30 * 86_400),
    "spend_limit_usd": _number(0, 1_000_000),
    "tool_calls_per_minute": _whole(0, 100_000),
    "model": _text,
    "reasoning_effort": _text,
    "fallbacks": _texts,
    "mode": _mode,
    "knowledge": _switch,
    "ide_tools": _ide_tools,
    "policy": _rules,
}
