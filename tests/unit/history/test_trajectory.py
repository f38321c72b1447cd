"""Trajectories: what a conversation becomes as a document of OpenAI-shaped messages, and what comes back from one."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from palaver.errors import Invalid
from palaver.history.trajectory import document_of, keep_message_keys, messages_of, trajectory_of, unknown_keys
from palaver.schema.view import ImageBlock, Parent, TextBlock, ThinkingBlock, ToolBlock
from tests.unit.history.sample import SIGNATURE, asked, conversation, everything, said, tool


def through_json(document: dict[str, Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(document))


def test_document_has_the_frame_of_the_contract() -> None:
    parent = Parent(conversation="before", kind="branch", root="first")
    document = document_of(replace(everything(), parent=parent, draft="half a th"))

    assert (document["id"], document["title"], document["model"]) == ("talk", "A talk about files", "model-1")
    assert (document["mode"], document["tool_use"], document["temperature"]) == ("plan", "agent", 0.5)
    assert (document["parent_id"], document["link_type"], document["root_chat_id"]) == ("before", "branch", "first")
    assert document["draft"] == "half a th"
    assert document["created_at"] == "2025-11-16T00:00:00.000Z"


def test_results_are_messages_of_their_own_behind_the_answer_that_called() -> None:
    messages = document_of(everything())["messages"]

    assert [one["role"] for one in messages] == [
        *("user", "assistant", "tool", "tool", "event", "assistant", "user", "assistant", "tool")
    ]
    answer, ok, failed = messages[1:4]
    call = answer["tool_calls"][0]
    assert call["function"] == {"name": "shell", "arguments": '{"command":"ls -l"}'}
    assert (call["id"], call["type"], ok["tool_call_id"]) == ("c1", "function", "c1")
    assert (ok["content"], ok["tool_failed"], failed["tool_failed"]) == ("total 0", False, True)
    assert failed["content"] == "It exited with 1.\nnoise"
    assert answer["usage"]["prompt_tokens"] == 10
    assert (answer["finish_reason"], answer["reasoning_content"]) == ("tool_calls", "Let me see.")
    assert messages[4]["event_kind"] == "process_completed"


def test_everything_comes_back_as_it_was() -> None:
    state = everything()

    read = trajectory_of(through_json(document_of(state)))

    assert read.params == state.params
    assert (read.title, read.agent, read.created_at) == (state.title, state.agent, state.created_at)
    for before, after in zip(state.messages, read.messages, strict=True):
        assert replace(after, id=before.id, seq=1, updated_seq=1) == before


def test_second_document_equals_the_first() -> None:
    first = through_json(document_of(everything()))
    read = trajectory_of(first)

    again = document_of(replace(everything(), messages=read.messages, params=read.params))

    assert through_json(again) == first


def test_signatures_and_redacted_thinking_keep_every_byte() -> None:
    shown = through_json(document_of(everything()))["messages"][1]["thinking_blocks"]
    blocks = messages_of(through_json(document_of(everything()))["messages"])[1].blocks

    assert shown[0]["signature"] == SIGNATURE
    assert shown[1] == {
        "type": "redacted_thinking",
        "data": "b64/+==",
        "provider": {"by": "anthropic@host", "data": "b64/+=="},
    }
    assert isinstance(blocks[0], ThinkingBlock)
    assert blocks[0].signature == SIGNATURE


def test_call_ids_that_repeat_get_the_result_that_follows_them() -> None:
    state = conversation(
        said("", "a1"),
        replace(said("one", "a1"), blocks=(tool("same", 0, output="first"),)),
        replace(said("two", "a2"), blocks=(tool("same", 0, output="second"),)),
    )

    read = messages_of(through_json(document_of(state))["messages"])

    outputs = [block.output for one in read for block in one.blocks if isinstance(block, ToolBlock)]
    assert outputs == ["first", "second"]


def test_call_without_a_result_is_said_to_have_none() -> None:
    call = {"id": "x", "type": "function", "function": {"name": "shell", "arguments": "not json"}}
    read = messages_of([{"role": "assistant", "content": None, "tool_calls": [call]}])

    block = read[0].blocks[0]
    assert isinstance(block, ToolBlock)
    assert (block.status, block.input) == ("interrupted", "not json")


def test_message_that_was_taken_back_is_left_out() -> None:
    state = conversation(asked("hello"), said("cut", status="superseded"), said("whole", "a2"))

    assert [one["content"] for one in document_of(state)["messages"]] == ["hello", "whole"]


def test_another_programs_document_is_read() -> None:
    document = {
        "id": "0b1c",
        "title": "From elsewhere",
        "model": "gpt-9",
        "mode": "AGENT",
        "tool_use": "agent",
        "created_at": "2025-01-01T00:00:00Z",
        "include_project_info": True,
        "messages": [
            {"role": "system", "content": "You are helpful."},
            {"role": "context_file", "content": [{"file_name": "a.py", "file_content": "print()", "line1": 1}]},
            {
                "role": "user",
                "content": [{"m_type": "text", "m_content": "see"}, {"m_type": "image/png", "m_content": "aGk="}],
            },
            {
                "role": "assistant",
                "content": "ok",
                "thinking_blocks": [{"type": "thinking", "thinking": "hm"}],
                "odd": 7,
            },
            {"role": "tool", "tool_call_id": "nobody", "content": "lost"},
            {"role": "cd_instruction", "content": "mind this"},
        ],
    }

    read = trajectory_of(document)

    assert read.params == {"include_project_info": True}
    assert read.created_at == 1_735_689_600_000
    assert [one.role for one in read.messages] == ["system", "event", "user", "assistant", "event", "system"]
    context = read.messages[1]
    assert (context.event_kind, context.hidden) == ("context_file", True)
    assert context.blocks == (TextBlock(index=0, text="a.py\nprint()"),)
    assert read.messages[2].blocks[1] == ImageBlock(index=1, url="data:image/png;base64,aGk=")
    assert document_of(conversation(*read.messages))["messages"][3]["odd"] == 7


def test_keys_that_somebody_else_wrote_are_kept_and_our_own_are_not() -> None:
    before = document_of(everything()) | {"pinned": True}
    before["messages"][0]["starred"] = 5
    state = replace(everything(), params={"mode": "plan"})

    document = document_of(state, unknown_keys(before))
    keep_message_keys(document, before)

    assert document["pinned"] is True
    assert document["messages"][0]["starred"] == 5
    assert "temperature" not in document


def test_layout_that_no_longer_fits_an_edited_text_is_given_up() -> None:
    document = through_json(document_of(everything()))
    document["messages"][-2]["content"] = "shorter"

    blocks = messages_of(document["messages"])[-1].blocks

    assert [block.text for block in blocks if isinstance(block, TextBlock)] == ["shorter"]
    assert sum(isinstance(block, ToolBlock) for block in blocks) == 1


@pytest.mark.parametrize(
    "document",
    [None, 5, [], {}, {"messages": 3}, {"messages": ["hello"]}, {"messages": [{"content": "x"}]}],
)
def test_what_is_no_trajectory_is_refused_in_words(document: Any) -> None:
    with pytest.raises(Invalid, match="trajectory"):
        trajectory_of(document)
