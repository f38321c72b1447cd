"""What another program is told of a conversation: only what it has not seen, with results, plan and files."""

from palaver.context.handover import OPENING, TRANSCRIPT_CHARS, handover, mark
from palaver.schema.view import (
    FileChange,
    ImageBlock,
    Message,
    Plan,
    PlanItem,
    State,
    TextBlock,
    ToolBlock,
    ToolError,
)
from tests.provider.quotes import QUOTING, read_prompt

Blocks = tuple[TextBlock | ToolBlock | ImageBlock, ...]


def _message(number: int, role: str, text: str = "", *, by: str | None = None, blocks: Blocks = ()) -> Message:
    return Message(
        id=f"m{number}",
        role=role,  # type: ignore[arg-type]
        seq=number,
        updated_seq=number,
        ts=number,
        turn=f"t{number // 2}",
        agent=by,
        blocks=blocks or (TextBlock(index=0, text=text),),
        data=mark(by, f"session-of-{by}") if by else None,
    )


def _talk(*messages: Message) -> State:
    return State(messages=(*messages, _message(90, "user", "And now?")))


def test_program_that_wrote_the_last_part_resumes_and_is_told_nothing() -> None:
    told = handover(
        _talk(_message(2, "user", "Hi"), _message(3, "assistant", "Hello", by="claude")), "claude", "t45", QUOTING
    )
    assert (told.session, told.record, told.lost) == ("session-of-claude", "", ())


def test_program_that_took_no_part_is_told_all_of_it() -> None:
    told = handover(
        _talk(_message(2, "user", "Hi"), _message(3, "assistant", "Hello", by="claude")), "codex", "t45", QUOTING
    )
    assert told.session is None
    record = read_prompt(told.record)
    assert record.outside.strip() == OPENING
    assert record.quotes == (("the person, earlier", "Hi"), ("agent claude", "Hello"))


def test_program_that_comes_back_is_told_what_the_others_did() -> None:
    told = handover(
        _talk(
            _message(2, "user", "Hi"),
            _message(3, "assistant", "Hello", by="claude"),
            _message(4, "user", "Go on"),
            _message(5, "assistant", "Gone on", by="codex"),
        ),
        "claude",
        "t45",
        QUOTING,
    )
    assert told.session == "session-of-claude"
    assert "Hello" not in told.record
    assert read_prompt(told.record).quotes == (("the person, earlier", "Go on"), ("agent codex", "Gone on"))


def test_tool_results_the_plan_and_files_are_part_of_the_record() -> None:
    blocks: Blocks = (
        ToolBlock(index=0, call="a", name="shell", status="ok", input={"command": "ls"}, output="x" * 5_000),
        ToolBlock(index=1, call="b", name="read", status="error", input={}, error=ToolError(code="e", message="gone")),
        TextBlock(index=2, text="half", status="interrupted"),
    )
    state = _talk(_message(3, "assistant", blocks=blocks))
    plan = Plan(summary="Dig", items=(PlanItem(title="deep", status="done"),), status="executing")
    state = State(messages=state.messages, plan=plan, files=(FileChange(path="beds.md", kind="modified"),))
    record = read_prompt(handover(state, "pi", "t45", QUOTING).record)
    assert record.said_by("agent unnamed, to tool shell") == '{"command":"ls"}'
    assert "3,000 characters left out" in record.said_by("tool shell, ok")
    assert record.said_by("tool read, error") == "gone"
    assert record.said_by("agent unnamed, interrupted") == "half"
    assert record.said_by("the plan, executing") == "Dig\n- [done] deep"
    assert record.said_by("Palaver, the files changed so far") == "beds.md"


def test_what_cannot_be_handed_over_is_said() -> None:
    long = [_message(number, "user", "y" * 50_000) for number in range(2, 12)]
    picture = _message(12, "user", blocks=(ImageBlock(index=0, url="/api/blobs/x"),))
    told = handover(_talk(*long, picture), "pi", "t45", QUOTING)
    assert len(told.lost) == 2
    assert len(told.record) < TRANSCRIPT_CHARS + 60_000
    assert "oldest messages" in told.record
