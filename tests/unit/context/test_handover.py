"""What another program is told of a conversation: only what it has not seen, with results, plan and files."""

from palaver.context.handover import CLOSING, OPENING, TRANSCRIPT_CHARS, handover, mark
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
    told = handover(_talk(_message(2, "user", "Hi"), _message(3, "assistant", "Hello", by="claude")), "claude", "t45")
    assert (told.session, told.record, told.lost) == ("session-of-claude", "", ())


def test_program_that_took_no_part_is_told_all_of_it() -> None:
    told = handover(_talk(_message(2, "user", "Hi"), _message(3, "assistant", "Hello", by="claude")), "codex", "t45")
    assert told.session is None
    assert told.record == f"{OPENING}\n\nPerson: Hi\n\nclaude: Hello\n\n{CLOSING}"


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
    )
    assert told.session == "session-of-claude"
    assert "Hello" not in told.record
    assert "Person: Go on\n\ncodex: Gone on" in told.record


def test_tool_results_the_plan_and_files_are_part_of_the_record() -> None:
    blocks: Blocks = (
        ToolBlock(index=0, call="a", name="shell", status="ok", input={"command": "ls"}, output="x" * 5_000),
        ToolBlock(index=1, call="b", name="read", status="error", input={}, error=ToolError(code="e", message="gone")),
        TextBlock(index=2, text="half", status="interrupted"),
    )
    state = _talk(_message(3, "assistant", blocks=blocks))
    plan = Plan(summary="Dig", items=(PlanItem(title="deep", status="done"),), status="executing")
    state = State(messages=state.messages, plan=plan, files=(FileChange(path="beds.md", kind="modified"),))
    record = handover(state, "pi", "t45").record
    assert '[tool shell {"command":"ls"} → ok]' in record
    assert "3,000 characters left out" in record
    assert "[tool read {} → error]\ngone" in record
    assert "half\n[interrupted]" in record
    assert "- [done] deep" in record
    assert "beds.md" in record


def test_what_cannot_be_handed_over_is_said() -> None:
    long = [_message(number, "user", "y" * 50_000) for number in range(2, 12)]
    picture = _message(12, "user", blocks=(ImageBlock(index=0, url="/api/blobs/x"),))
    told = handover(_talk(*long, picture), "pi", "t45")
    assert len(told.lost) == 2
    assert len(told.record) < TRANSCRIPT_CHARS + 60_000
    assert "oldest messages" in told.record
