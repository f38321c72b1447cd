"""Commands as clients write them: every kind is read, ids are checked, what is unknown is passed over."""

from typing import get_args

import msgspec
import pytest

from palaver.schema.commands import Command, CreateConversation, EditQueued, RemoveQueued, SendMessage
from palaver.schema.content import ImagePart, ImageUrl, TextPart, as_content, plain_text

_commands: "msgspec.json.Decoder[Command]" = msgspec.json.Decoder(Command)


def test_commands_have_imperative_names_of_their_own() -> None:
    tags = [kind.__struct_config__.tag for kind in get_args(Command)]
    assert len(set(tags)) == len(tags)
    assert {"send_message", "interrupt", "resolve_request"} <= set(tags)


def test_message_is_read_from_text_or_parts() -> None:
    assert _commands.decode(b'{"type":"send_message","content":"hi"}') == SendMessage(content="hi")
    parts = (
        b'{"type":"send_message","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"/x"}}]}'
    )
    assert _commands.decode(parts) == SendMessage(
        content=(TextPart(text="hi"), ImagePart(image_url=ImageUrl(url="/x")))
    )


def test_unknown_fields_of_a_command_are_passed_over() -> None:
    assert _commands.decode(b'{"type":"send_message","content":"hi","glitter":true}') == SendMessage(content="hi")


@pytest.mark.parametrize(
    "body",
    [
        b'{"type":"send_message"}',
        b'{"type":"send_message","content":7}',
        b'{"type":"send_message","content":[{"type":"smell"}]}',
        b'{"type":"send_message","content":"hi","delivery":"pigeon"}',
        b'{"type":"dance"}',
        b'{"type":"remove_queued","item":""}',
        b'{"type":"remove_queued","item":"../etc"}',
        b'{"type":"send_message","content":"hi","client_request_id":"a b"}',
        b'{"type":"send_message","content":"\\ud800"}',
    ],
)
def test_command_that_makes_no_sense_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        _commands.decode(body)


def test_id_may_hold_a_hundred_and_twenty_eight_signs() -> None:
    body = b'{"type":"remove_queued","item":"%s"}'
    assert _commands.decode(body % (b"x" * 128)) == RemoveQueued(item="x" * 128)
    with pytest.raises(msgspec.ValidationError):
        _commands.decode(body % (b"x" * 129))


def test_queued_edit_tells_no_move_from_a_move_to_the_end() -> None:
    assert _commands.decode(b'{"type":"edit_queued","item":"a","before":""}') == EditQueued(item="a", before="")
    assert _commands.decode(b'{"type":"edit_queued","item":"a"}') == EditQueued(item="a", before=None)


def test_conversation_can_be_created_from_nothing() -> None:
    assert msgspec.json.decode(b"{}", type=CreateConversation) == CreateConversation()


def test_plain_text_of_a_message_is_its_text_parts() -> None:
    content = (TextPart(text="a"), ImagePart(image_url=ImageUrl(url="/x")), TextPart(text="b"))
    assert plain_text(content) == "a\nb"
    assert as_content("a") == (TextPart(text="a"),)
    assert as_content(content) is content
