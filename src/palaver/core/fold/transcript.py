"""The messages of a view while events are folded into them: found, changed, taken away.

Used by evolve alone. The list is copied once a batch. An event names its message or call; both are nearly always the latest,
so every search goes from the end.
"""

from collections.abc import Callable

from msgspec.structs import replace

from palaver.core.fold import blocks
from palaver.schema.events import AnswerFinished, MessageAdded
from palaver.schema.view import Block, Message, Progress, State, ToolBlock, TurnSummary


class Transcript:
    def __init__(self, state: State) -> None:
        self._messages = list(state.messages)
        self._touched = False

    def into(self, state: State) -> State:
        """The view with these messages."""
        return replace(state, messages=tuple(self._messages)) if self._touched else state

    def append(self, message: Message) -> None:
        self._messages.append(message)
        self._touched = True

    def remove(self, message: str) -> bool:
        place = self._place_of(message)
        if place is None:
            return False
        del self._messages[place]
        self._touched = True
        return True

    def truncate(self, place: int) -> None:
        del self._messages[place:]
        self._touched = True

    def change(self, message: str, seq: int, change: Callable[[Message], Message]) -> None:
        place = self._place_of(message)
        if place is None:
            return
        known = self._messages[place]
        changed = change(known)
        if changed is not known:
            self._messages[place] = replace(changed, updated_seq=seq)
            self._touched = True

    def change_block(self, message: str, seq: int, index: int, change: Callable[[Block | None], Block]) -> None:
        def in_message(known: Message) -> Message:
            changed = blocks.with_block(known.blocks, index, change)
            return known if changed is known.blocks else replace(known, blocks=changed)

        self.change(message, seq, in_message)

    def change_call(self, call: str, seq: int, change: Callable[[ToolBlock], ToolBlock]) -> None:
        for place in range(len(self._messages) - 1, -1, -1):
            message = self._messages[place]
            for at in range(len(message.blocks) - 1, -1, -1):
                block = message.blocks[at]
                if isinstance(block, ToolBlock) and block.call == call:
                    changed = change(block)
                    if changed is not block:
                        after = (*message.blocks[:at], changed, *message.blocks[at + 1 :])
                        self._messages[place] = replace(message, blocks=after, updated_seq=seq)
                        self._touched = True
                    return

    def mark_end(self, summary: TurnSummary, seq: int) -> None:
        """On the last message of a turn that ended otherwise than planned."""
        for place in range(len(self._messages) - 1, -1, -1):
            message = self._messages[place]
            if message.turn == summary.id and _is_shown(message):
                self._messages[place] = replace(message, ended=summary, updated_seq=seq)
                self._touched = True
                return

    def end_of(self, turn: str) -> str | None:
        """The last message of a turn; of one that left none, the last thing said before it, which it had to answer."""
        shown = [message for message in self._messages if _is_shown(message)]
        of_turn = (message.id for message in reversed(shown) if message.turn == turn)
        said = (message.id for message in reversed(shown) if message.role in ("user", "assistant"))
        return next(of_turn, None) or next(said, None)

    def has(self, message: str) -> bool:
        return self._place_of(message) is not None

    def _place_of(self, message: str) -> int | None:
        for place in range(len(self._messages) - 1, -1, -1):
            if self._messages[place].id == message:
                return place
        return None


# -- one message


def _is_shown(message: Message) -> bool:
    return not message.hidden and message.status != "superseded" and bool(message.blocks)


def message_of(event: MessageAdded) -> Message:
    return Message(
        id=event.message,
        role=event.role,
        seq=event.seq,
        updated_seq=event.seq,
        ts=event.ts,
        blocks=blocks.of_content(event.content) if event.blocks is None else event.blocks,
        turn=event.turn,
        origin=event.origin,
        agent=event.agent,
        model=event.model,
        hidden=event.hidden,
        event_kind=event.event_kind,
        client_request_id=event.client_request_id,
        exchange=event.exchange,
        data=event.data,
    )


def finish(message: Message, event: AnswerFinished) -> Message:
    return replace(
        message,
        status=_progress_at_end(message, event),
        finish_reason=event.finish_reason,
        usage=event.usage,
        model=event.model or message.model,
        data=message.data if event.provider is None else event.provider,
    )


def _progress_at_end(message: Message, event: AnswerFinished) -> Progress:
    if message.status == "superseded":
        return message.status
    return "interrupted" if event.interrupted else "done"


def superseded(message: Message) -> Message:
    return replace(message, status="superseded", blocks=tuple(blocks.supersede(block) for block in message.blocks))
