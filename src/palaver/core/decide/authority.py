"""Authority of an agent's token over what people said and decided: one rule, asked before a command has any effect.

A command says by its origin whether a token gave it that may not decide (`Origin.agent_token`). Such a token may change and
take back its own messages and the answers to them, and lower a limit. It may not touch what somebody else said, is about to
say (the queue, the draft), or decided (limits, mode, rules), nor choose an agent that is held to less. Whether the token may
send such a command at all is the faces' table of rights; this is about what the command would do to the conversation as it is.

Called by decide, by `history.rewrite` (a command that waited is looked at again when it is carried out) and by the
conversation station for what makes or rewrites a conversation as a whole. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from palaver.core.decide.decision import Refusal
from palaver.core.decide.facts import Facts, Terms
from palaver.core.params import MODES
from palaver.core.restraints import LIMITS, is_freer, measure_limit
from palaver.schema import commands
from palaver.schema.base import Origin
from palaver.schema.commands import Order
from palaver.schema.view import Message, QueueItem, State

INTERNAL_FACES = ("agents", "mission")
"""Through which the server itself speaks to a conversation; no client comes through them."""
USUAL_MODE = "ask"
"""Where neither the conversation nor its agent says another."""


def overreach(state: State, command: Order, facts: Facts) -> Refusal | None:
    """Why an agent's token may not do this, if it may not. What rewrites history is looked at by `rewrites_others`."""
    who = facts.origin
    if who is None or not who.agent_token:
        return None
    match command:
        case commands.EditQueued() | commands.RemoveQueued() | commands.Interrupt():
            return _queue(state, command, who)
        case commands.SendMessage():
            given = {} if command.mode is None else {"mode": command.mode}
            return _queue(state, command, who) or _terms(state, given, facts)
        case commands.UpdateConversation():
            return _terms(state, {}, facts)
        case commands.Fill():
            # What the conversation says counts more than what it is filled with.
            added = command.params.keys() - state.params.keys() - {"policy"}
            return _terms(state, {name: command.params[name] for name in added}, facts)
        case commands.SetParams():
            return lifts({**facts.usual, **state.params}, command.patch, facts.usual)
        case commands.SetDraft() | commands.ClearDraft():
            return _refused("The draft is what a person is about to say")
        case commands.DeleteConversation():
            waiting = any(not _is_fair(item.origin, who) for item in state.queue)
            return NOT_YOURS if waiting else rewrites_others(state.messages, 0, who)
        case _:
            return None


def rewrites_others(
    messages: Sequence[Message], start: int, who: Origin | None, end: int | None = None
) -> Refusal | None:
    """Why a stretch of the whole history may not be changed: it holds what others said, or what they were answered."""
    if who is None or not who.agent_token:
        return None
    answers_own = False
    for place, message in enumerate(messages[:end]):
        if message.role == "user":
            answers_own = _is_fair(message.origin, who)
        if place >= start and not answers_own and not _is_own(message.origin, who):
            return NOT_YOURS
    return None


def lifts(before: Mapping[str, Any], patch: Mapping[str, Any], usual: Mapping[str, Any]) -> Refusal | None:
    """Why parameters may not be changed so. `usual` counts again where the patch clears one."""
    if "policy" in patch:
        return _refused("Rules are a person's to set")
    after = {**before, **{name: usual.get(name) if value is None else value for name, value in patch.items()}}
    for name in LIMITS:
        if name in patch and measure_limit(name, after.get(name)) > measure_limit(name, before.get(name)):
            return _refused(f"`{name}` is a limit, which may be lowered")
    if "mode" in patch and _boldness(after.get("mode")) > _boldness(before.get("mode")):
        return _refused("The mode may only be made more cautious")
    return None


def frees(before: Terms, after: Terms, params: Mapping[str, Any], given: Mapping[str, Any]) -> Refusal | None:
    """Why another agent may not take a conversation over: it would be held to less there. `params` are the conversation's,
    `given` those that count from then on."""
    if before.record is None or after.record is None or is_freer(after.record, than=before.record):
        return FREER
    now = {**after.usual, **given}
    terms = {name: now.get(name) for name in (*LIMITS, "mode")}
    return FREER if lifts({**before.usual, **params}, terms, after.usual) else None


def _refused(rule: str) -> Refusal:
    return Refusal("forbidden", f"{rule}; this token may do no more. A person can do it, with a token of their own.")


NOT_YOURS = Refusal(
    "forbidden",
    "This token may change only its own messages and the answers to them, and this is somebody else's. A person can do it, "
    "with a token of their own.",
)
FREER = Refusal(
    "forbidden",
    "This token may choose only an agent whose mode, limits, rules and tools allow no more than those of the conversation's "
    "agent, and this one is held to less. Begin a conversation with it instead, or let a person choose it.",
)
OVERTAKES = Refusal(
    "forbidden", "Others wait in the queue, and this token may not put itself before them. Send it without priority."
)


def _queue(
    state: State,
    command: commands.EditQueued | commands.RemoveQueued | commands.Interrupt | commands.SendMessage,
    who: Origin,
) -> Refusal | None:
    others = [item for item in state.queue if not _is_own(item.origin, who)]
    match command:
        case commands.SendMessage():
            return OVERTAKES if command.priority and others else None
        case commands.Interrupt():
            return NOT_YOURS if command.hold_queue and others else None
        case commands.RemoveQueued():
            return _item(others, command.item)
        case commands.EditQueued(item=None):
            return NOT_YOURS if others else None
        case commands.EditQueued():
            moves = command.priority or command.before
            return _item(others, command.item) or (OVERTAKES if moves and others else None)


def _item(others: Sequence[QueueItem], item: str | None) -> Refusal | None:
    return NOT_YOURS if any(known.id == item for known in others) else None


def _terms(state: State, given: Mapping[str, Any], facts: Facts) -> Refusal | None:
    """Of a command that may name another agent (`facts.chosen`), and parameters that count for it."""
    if refusal := lifts({**facts.usual, **state.params}, given, facts.usual):
        return refusal
    if facts.chosen is None:
        return None
    return frees(Terms(facts.usual, facts.record), facts.chosen, state.params, {**state.params, **given})


def _is_own(said: Origin | None, who: Origin) -> bool:
    return said is not None and said.agent_token and said.user == who.user


def _is_fair(said: Origin | None, who: Origin) -> bool:
    """Its own, or what agents of this server were told in the course of it: tasks, answers, idle prompts."""
    return _is_own(said, who) or (said is not None and said.face in INTERNAL_FACES)


def _boldness(mode: Any) -> int:
    """A word that nobody knows is as bold as can be."""
    word = USUAL_MODE if mode is None else mode
    return MODES.index(word) if word in MODES else len(MODES)
