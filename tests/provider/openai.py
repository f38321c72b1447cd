"""OpenAI Chat Completions: the stream of an answer, and the rules a request is held to."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from tests.provider.script import Answer, Call, Gate, Pause, Redacted, Say, Stop, Think, pieces
from tests.provider.wire import Asked, Json, Step, need, only, sse

TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")

REASONING = re.compile(r"^(gpt-[5-9](?!.*-chat)|o[134])")

BODY = {
    "model",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "stop",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning_effort",
    "metadata",
    "service_tier",
    "prompt_cache_key",
    "seed",
    "user",
    "n",
    "presence_penalty",
    "frequency_penalty",
    "response_format",
}
FIELDS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    # The reasoning is not OpenAI's own field; servers that stream it take it back.
    "assistant": {"role", "content", "name", "tool_calls", "refusal", "reasoning_content", "reasoning_details"},
    "tool": {"role", "content", "tool_call_id"},
}
FINISH_REASONS: dict[Stop, str] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "refusal": "content_filter",
}


class OpenAiWire:
    # -- what is sent

    def frames(self, answer: Answer, body: Json, number: int) -> Iterator[Step]:
        def chunk(delta: Json, finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return sse({**_head(body, number, "chat.completion.chunk"), "choices": [choice]})

        yield chunk({"role": "assistant", "content": ""})
        calls = 0
        for block in answer.blocks:
            match block:
                case Gate() | Pause():
                    yield block
                case Say():
                    for piece in pieces(block.text, answer.chunk_chars):
                        yield chunk({"content": piece})
                case Think():
                    for piece in pieces(block.text, answer.chunk_chars):
                        yield chunk({"reasoning_content": piece})
                case Redacted():
                    pass
                case Call():
                    first = _call(block, calls, number)
                    arguments = first["function"].pop("arguments")
                    first["function"]["arguments"] = ""
                    yield chunk({"tool_calls": [first]})
                    for piece in pieces(arguments, answer.chunk_chars):
                        yield chunk({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]})
                    calls += 1
        if answer.extra:
            yield chunk(answer.extra)
        yield chunk({}, FINISH_REASONS[answer.stop_word])
        if (body.get("stream_options") or {}).get("include_usage"):
            yield sse({**_head(body, number, "chat.completion.chunk"), "choices": [], "usage": _usage(answer)})
        yield b"data: [DONE]\n\n"

    def whole(self, answer: Answer, body: Json, number: int) -> Json:
        says = "".join(block.text for block in answer.blocks if isinstance(block, Say))
        calls = [block for block in answer.blocks if isinstance(block, Call)]
        message: Json = {"role": "assistant", "content": says or None}
        if calls:
            message["tool_calls"] = [_call(call, at, number) for at, call in enumerate(calls)]
        choice = {"index": 0, "message": message, "finish_reason": FINISH_REASONS[answer.stop_word]}
        return {**_head(body, number, "chat.completion"), "choices": [choice], "usage": _usage(answer)}

    def error(self, kind: str | None, message: str, status: int) -> Json:
        kinds = {
            400: "invalid_request_error",
            401: "invalid_api_key",
            404: "model_not_found",
            429: "rate_limit_exceeded",
        }
        code = kind or kinds.get(status)
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}

    def error_frame(self, kind: str, message: str) -> bytes:
        return sse({"error": {"message": message, "type": kind, "code": kind}})

    def issued(self, answer: Answer, body: Json, number: int) -> dict[str, list[Json]]:
        return {}

    def check_kept(self, body: Json, issued: dict[str, list[Json]]) -> None:
        """The format has no signatures."""

    # -- what is received

    def asked(self, body: Json) -> Asked:
        text, results, steps = "", list[str](), 0
        for message in body["messages"]:
            match message["role"]:
                case "user":
                    text, results, steps = _text(message["content"]), [], 0
                case "assistant":
                    steps += 1
                case "tool":
                    results.append(_text(message["content"]))
                case _:
                    pass
        tools = tuple(tool["function"]["name"] for tool in body.get("tools", ()))
        return Asked(text=text, results=tuple(results), steps=steps, tools=tools)

    def check(self, body: Json) -> None:
        only(body, BODY, "body")
        need(isinstance(body.get("model"), str), "you must provide a model parameter")
        check_sampling(body)
        need("max_tokens" not in body or "max_completion_tokens" not in body, "max_tokens: set only one of the two")
        only(body.get("stream_options") or {}, {"include_usage", "include_obfuscation"}, "stream_options")
        need("stream_options" not in body or body.get("stream"), "stream_options: only allowed when stream is enabled")
        for tool in body.get("tools", ()):
            only(tool, {"type", "function"}, "tools[0]")
            only(tool["function"], {"name", "description", "parameters", "strict"}, "tools[0].function")
            need(TOOL_NAME.match(tool["function"]["name"]), "Invalid 'tools[0].function.name': does not match pattern")
        need(body.get("tools") != [], "Invalid 'tools': empty array.")
        _check_messages(body)


def check_sampling(body: Json) -> None:
    """Models that reason choose their words themselves."""
    if REASONING.match(body["model"]):
        for name in ("temperature", "top_p", "frequency_penalty", "presence_penalty"):
            need(name not in body, f"Unsupported parameter: '{name}' is not supported with this model.")


def _head(body: Json, number: int, kind: str) -> Json:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 1_760_000_000, "model": body["model"]}


def _usage(answer: Answer) -> Json:
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": answer.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _call(call: Call, index: int, number: int) -> Json:
    arguments = msgspec.json.encode(call.input).decode() if call.raw is None else call.raw
    return {
        "index": index,
        "id": call.id or f"call_{number}_{index}",
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [part["text"] for part in content or () if part["type"] == "text"]
    return texts[-1] if texts else ""


def _check_messages(body: Json) -> None:
    messages: list[Json] = body.get("messages", [])
    need(messages, "Invalid 'messages': empty array.")
    known: set[str] = set()
    waiting: list[str] = []
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        role = message.get("role", "")
        need(role in FIELDS, f"Invalid value: '{role}' at {where}.role")
        only(message, FIELDS[role], where)
        if role == "tool":
            need(
                message["tool_call_id"] in waiting,
                f"{where}: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
            )
            waiting.remove(message["tool_call_id"])
            need(isinstance(message["content"], str | list), f"{where}.content: expected a string")
            continue
        need(not waiting, f"{where}: tool_call_ids did not have response messages: {', '.join(waiting)}")
        _check_content(message, where)
        if role == "assistant":
            waiting = _check_calls(message, known, where)
    need(not waiting, f"tool_call_ids did not have response messages: {', '.join(waiting)}")


def _check_content(message: Json, where: str) -> None:
    content = message.get("content")
    if content is None:
        need(
            message["role"] == "assistant" and message.get("tool_calls"),
            f"{where}.content: expected a string, got null",
        )
    if not isinstance(content, list):
        return
    need(content, f"{where}.content: empty array")
    for part in content:
        need(part["type"] in ("text", "image_url"), f"{where}.content: unknown part")
        if part["type"] == "text":
            only(part, {"type", "text"}, where)
            need(part["text"], f"{where}.content: empty text part")
        else:
            only(part, {"type", "image_url"}, where)
            only(part["image_url"], {"url", "detail"}, where)
            need(message["role"] == "user", f"{where}: images are only taken from the user")


def _check_calls(message: Json, known: set[str], where: str) -> list[str]:
    if "tool_calls" not in message:
        return []
    calls: list[Json] = message["tool_calls"]
    need(calls, f"{where}.tool_calls: empty array")
    for call in calls:
        only(call, {"id", "type", "function", "extra_content"}, where)
        only(call["function"], {"name", "arguments"}, where)
        need(TOOL_NAME.match(call["function"]["name"]), f"{where}: tool call name does not match pattern")
        need(call["id"] not in known, f"{where}: Duplicate value for 'tool_call_id' of '{call['id']}'")
        known.add(call["id"])
        try:
            arguments = msgspec.json.decode(call["function"]["arguments"])
        except msgspec.DecodeError:
            arguments = None
        need(isinstance(arguments, dict), f"{where}: tool call arguments are not a JSON object")
    return [call["id"] for call in calls]
