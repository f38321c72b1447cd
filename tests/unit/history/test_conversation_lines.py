"""Conversations as lines of a file, written and read one message at a time."""

import os
from pathlib import Path
from tempfile import TemporaryFile

import msgspec
import pytest

from palaver.errors import CallerError, Invalid, TooLarge
from palaver.history.conversation_lines import CONVERSATIONS_AT_ONCE, read_conversations, write_conversation
from palaver.history.programs.foreign import ForeignConversation
from palaver.schema.view import Message, TextBlock


def conversation(session: str, *texts: str) -> ForeignConversation:
    messages = [
        Message(id=f"m{seq}", role="user", seq=seq, updated_seq=seq, ts=seq, blocks=(TextBlock(index=0, text=text),))
        for seq, text in enumerate(texts, 1)
    ]
    return ForeignConversation(program="pi", session=session, messages=messages, title=session.title(), created_at=1)


def refused(tmp_path: Path, data: bytes) -> CallerError:
    path = tmp_path / "lines"
    path.write_bytes(data)
    with path.open("rb") as file, pytest.raises((Invalid, TooLarge)) as problem:
        read_conversations(file)
    return problem.value


def test_conversations_read_as_they_were_written() -> None:
    written = [conversation("one", "hello", "line\nbreak"), conversation("none"), conversation("two", "x" * 3_000_000)]
    with TemporaryFile() as file:
        for one in written:
            file.writelines(write_conversation(one))
            file.write(b"\n  \n")
        read = read_conversations(file)

        assert [msgspec.structs.replace(one, messages=list(one.messages)) for one in read] == written
        assert [len(one.messages) for one in read] == [2, 0, 1]


def test_line_may_say_its_messages_first_and_what_nobody_knows(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    whole = msgspec.to_builtins(conversation("one", "hello"))
    messages = whole.pop("messages")
    path.write_bytes(msgspec.json.encode({"messages": messages, "later": {"x": [1]}, **whole}))

    with path.open("rb") as file:
        (read,) = read_conversations(file)

        assert (read.title, read.messages[0].blocks[0]) == ("One", TextBlock(index=0, text="hello"))


def test_bad_message_in_the_middle_names_its_line(tmp_path: Path) -> None:
    good = b"".join(write_conversation(conversation("one", "a", "b", "c")))

    problem = refused(tmp_path, good + good.replace(b'"role":"user","seq":2', b'"role":"nobody","seq":2'))

    assert "Line 2 is no conversation" in problem.message


def test_line_that_is_torn_anywhere_is_refused(tmp_path: Path) -> None:
    good = b"".join(write_conversation(conversation("one", "a"))).strip()

    for end in range(1, len(good)):
        assert "Line 1 is no conversation" in refused(tmp_path, good[:end]).message


def test_too_many_lines_are_refused_before_any_is_read(tmp_path: Path) -> None:
    assert str(CONVERSATIONS_AT_ONCE) in refused(tmp_path, b"{}\n" * (CONVERSATIONS_AT_ONCE + 1)).message


def test_walk_does_not_depend_on_where_the_file_stands() -> None:
    with TemporaryFile() as file:
        file.writelines(write_conversation(conversation("one", *map(str, range(10)))))
        (read,) = read_conversations(file)
        walk = iter(read.messages)
        first = next(walk)
        file.seek(0, os.SEEK_END)

        assert [message.id for message in (first, *walk)] == [f"m{number}" for number in range(1, 11)]
