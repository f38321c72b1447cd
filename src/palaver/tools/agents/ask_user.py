"""The tool `ask_user`: questions to the person, as one request. The answer is the call's result.

An `Asking` tool: nothing runs. A question that nobody answered is said to have no answer; nothing is assumed for anybody.
The result is JSON and repeats no question: the agent words the questions and the options, and could word them like answers.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from palaver.errors import CallerError, Invalid
from palaver.schema.commands import Answer
from palaver.schema.events import RequestOpened, RequestResolved
from palaver.schema.view import Question, QuestionOption
from palaver.tools.arguments import decode, failure_of, parameters_of
from palaver.tools.base import ToolResult, ToolSpec
from palaver.tools.proposal import visible

QUESTIONS_LIMIT = 4
OPTIONS_LIMIT = 4
TITLE_CHARS = 200
NO_ANSWER = "no answer"


class OptionArguments(msgspec.Struct, frozen=True):
    label: Annotated[str, Meta(min_length=1, max_length=200, description="A few words.")]
    description: Annotated[str, Meta(max_length=1000)] | None = None
    preview: Annotated[str, Meta(max_length=4000, description="What it would look like, as plain text.")] | None = None


class QuestionArguments(msgspec.Struct, frozen=True):
    question: Annotated[str, Meta(min_length=1, max_length=4000)]
    header: Annotated[str, Meta(max_length=60, description="One or two words above it.")] = ""
    options: Annotated[
        tuple[OptionArguments, ...],
        Meta(
            max_length=OPTIONS_LIMIT,
            description="Two to four answers to choose from, or none. A free answer is always possible.",
        ),
    ] = ()
    multi_select: Annotated[bool, Meta(description="Several options may be chosen.")] = False


class AskArguments(msgspec.Struct, frozen=True):
    questions: Annotated[tuple[QuestionArguments, ...], Meta(min_length=1, max_length=QUESTIONS_LIMIT)]


SPEC = ToolSpec(
    name="ask_user",
    description=(
        "Ask the person one to four questions and wait for the answers. Use it when what to do depends on something only"
        " they know; what you can find out yourself, find out. The result is JSON: by number what they chose or wrote."
    ),
    parameters=parameters_of(AskArguments),
    reads_only=True,
)


class AskUser:
    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def ask(self, arguments: Mapping[str, Any]) -> RequestOpened | ToolResult:
        try:
            asked = _sensible(arguments)
        except CallerError as error:
            return failure_of(error)
        questions = tuple(
            Question(
                question=question.question,
                header=question.header,
                options=tuple(
                    QuestionOption(label=one.label, description=one.description, preview=one.preview)
                    for one in question.options
                ),
                multi_select=question.multi_select,
            )
            for question in asked.questions
        )
        title = visible(asked.questions[0].question[:TITLE_CHARS])
        return RequestOpened(request="", kind="question", tool="ask_user", title=title, questions=questions)

    def answered(self, arguments: Mapping[str, Any], resolved: RequestResolved) -> ToolResult:
        try:
            # No more than decoded: an earlier version may have put what `ask` refuses today, and the answer counts.
            asked = decode(arguments, AskArguments)
        except CallerError as error:
            return failure_of(error)
        match resolved.status:
            case "expired":
                return _unanswered("Nobody answered in time", resolved, "interaction_timeout")
            case "cancelled" | "superseded":
                return _unanswered("The questions were withdrawn", resolved)
            case "open" | "answered" if resolved.verdict == "deny":
                return _unanswered("The person declined to answer", resolved)
            case "open" | "answered":
                return ToolResult(ok=True, output=_result(len(asked.questions), resolved))


def _sensible(arguments: Mapping[str, Any]) -> AskArguments:
    asked = decode(arguments, AskArguments)
    for number, question in enumerate(asked.questions, 1):
        labels = [option.label.strip() for option in question.options]
        if not question.question.strip() or not all(labels):
            raise Invalid(f"Question {number} or one of its options is blank.")
        if len(labels) == 1:
            raise Invalid(
                f"Question {number} has one option, which is no choice. Give two to four, or none for a free answer."
            )
        if len(set(labels)) < len(labels):
            raise Invalid(f"Question {number} has two options with the same label; nobody could tell which was meant.")
        if question.multi_select and not labels:
            raise Invalid(f"Question {number} lets several options be chosen, but has none.")
    return asked


def _result(questions: int, resolved: RequestResolved) -> str:
    # From a snapshot they come as plain data.
    given = msgspec.convert(resolved.answers, tuple[Answer, ...], from_attributes=True)
    answers = {answer.question_index: answer for answer in given}
    result: dict[str, Any] = {
        "answers": [_answer(number, answers.get(number - 1)) for number in range(1, questions + 1)]
    }
    if resolved.text and resolved.text.strip():
        result["note"] = resolved.text.strip()
    text = json.dumps(result, ensure_ascii=False)
    # Within a JSON string too, a separator of lines or a mark of direction could make a part look like another one.
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def _answer(number: int, answer: Answer | None) -> dict[str, Any]:
    own = (answer.custom_text or "").strip() if answer else ""
    said: dict[str, Any] = {"chosen": list(answer.selected)} if answer and answer.selected else {}
    if own:
        said["own_words"] = own
    return {"question": number, **(said or {"unanswered": True})}


def _unanswered(why: str, resolved: RequestResolved, code: str = "no_answer") -> ToolResult:
    said = f" They said: {resolved.text.strip()}" if resolved.text and resolved.text.strip() else ""
    error = f"{why}: {NO_ANSWER}. Assume none; go on with what does not depend on it, or say what you need.{said}"
    return ToolResult(ok=False, error_code=code, error=error)
