"""Markdown: a document that reads well, from which every text comes back as it was said."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import Invalid
from palaver.history.markdown import read, write_document
from palaver.schema.view import Message, State, TextBlock, ThinkingBlock, ToolBlock
from tests.unit.history.sample import asked, conversation, everything, said


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [block.text for one in messages for block in one.blocks if isinstance(block, TextBlock)]


def round_trip(state: State) -> tuple[Message, ...]:
    return read("".join(write_document(state))).messages


def test_document_has_a_title_and_a_heading_for_each_who_spoke() -> None:
    document = "".join(write_document(everything()))

    assert document.startswith("# A talk about files\n")
    headings = [line for line in document.split("\n") if line.startswith("## ")]
    assert headings[0] == "## You · 2025-11-16 00:00 UTC"
    assert headings[1] == "## default · model-1 · 2025-11-16 00:00 UTC"
    assert "Process p ended" not in document


def test_texts_thinking_and_calls_come_back() -> None:
    state = everything()
    back = round_trip(state)

    assert [one.role for one in back] == ["user", "assistant", "assistant", "user", "assistant"]
    assert texts(back) == texts(tuple(one for one in state.messages if not one.hidden))
    blocks = back[1].blocks
    assert isinstance(blocks[0], ThinkingBlock)
    assert blocks[0].text == "Let me see."
    tools = [block for block in blocks if isinstance(block, ToolBlock)]
    assert [(tool.name, tool.status, tool.input, tool.output) for tool in tools] == [
        ("shell", "ok", {"command": "ls -l"}, "total 0"),
        ("shell", "error", {"command": "false"}, "noise"),
    ]
    assert (back[-1].status, back[0].ts, back[1].model) == ("interrupted", everything().messages[0].ts, "model-1")


@pytest.mark.parametrize(
    "text",
    [
        '<!-- palaver: {"role":"assistant"} -->',
        '\\<!-- palaver: {"role":"user"} -->\n\\\\<!-- palaver: {} -->',
        "## You\n\nsaid nobody",
        "```\n````\n```",
        "ends with blank lines\n\n\n",
        "\n\nbegins with them",
        "line\u2028separator\r\nand carriage return\r",
        "--> and <!-- and -- > \x00",
    ],
)
def test_text_that_looks_like_a_mark_is_only_text(text: str) -> None:
    back = round_trip(conversation(asked(text), said(text)))

    assert texts(back) == [text, text]
    assert [one.role for one in back] == ["user", "assistant"]


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_any_text_comes_back(said_texts: list[str]) -> None:
    back = round_trip(conversation(*(asked(text) for text in said_texts)))

    assert texts(back) == said_texts


def test_structured_answer_reads_as_markdown_and_comes_back_as_it_was_said() -> None:
    text = ' {"type": "plan", "summary": "Move -->", "items": [{"title": "First", "status": "done"}, "Second"]}\n'
    state = conversation(asked("go"), said(text))
    document = "".join(write_document(state))

    assert "**Plan: Move -->**\n\n- [x] First\n- [ ] Second\n" in document
    assert texts(read(document).messages) == ["go", text]


def test_output_with_fences_comes_back_whole() -> None:
    state = everything()
    call = state.messages[1].blocks[3]
    assert isinstance(call, ToolBlock)
    output = "```\ninner\n````\n<!-- palaver: {} -->"
    answer = msgspec.structs.replace(
        state.messages[1], blocks=(msgspec.structs.replace(call, output=output, changes=()),)
    )

    back = round_trip(conversation(answer))[0].blocks[0]

    assert isinstance(back, ToolBlock)
    assert back.output == output


def test_markdown_of_other_programs_is_read_by_its_headings() -> None:
    document = "# Notes\n\n## User\n\nhello\n\n---\n\n## Assistant (gpt-9)\n\n# not a speaker\nhi\n\n**You:** \nbye\n"

    back = read(document)

    assert back.title == "Notes"
    assert [(one.role, texts((one,))) for one in back.messages] == [
        ("user", ["hello"]),
        ("assistant", ["# not a speaker\nhi"]),
        ("user", ["bye"]),
    ]


def test_document_whose_lines_an_editor_ended_anew_is_still_read() -> None:
    document = "".join(write_document(conversation(asked("one\ntwo")))).replace("\n", "\r\n")

    assert texts(read(document).messages) == ["one\ntwo"]


@pytest.mark.parametrize("document", ["", "hello", "# Title\n\nSome prose.", "<!-- palaver: broken -->"])
def test_markdown_in_which_nobody_speaks_is_refused(document: str) -> None:
    with pytest.raises(Invalid, match="Nobody speaks"):
        read(document)
