"""OpenAI Responses: the stream of an answer, and the rules a request is held to."""

import hashlib
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from tests.provider.openai import TOOL_NAME, check_sampling
from tests.provider.script import Answer, Call, Gate, Pause, Redacted, Say, Think, pieces
from tests.provider.wire import Asked, Json, Refused, Step, need, only, sse

CALL_ID = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")

BODY = {
    "model",
    "input",
    "instructions",
    "stream",
    "store",
    "include",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "max_output_tokens",
    "reasoning",
    "text",
    "truncation",
    "metadata",
    "prompt_cache_key",
    "service_tier",
    "safety_identifier",
    "previous_response_id",
}
ITEMS = {
    "message": {"type", "role", "content", "id", "status", "phase"},
    "function_call": {"type", "call_id", "name", "arguments", "id", "status"},
    "function_call_output": {"type", "call_id", "output", "id", "status"},
    "custom_tool_call": {"type", "call_id", "name", "input", "id", "status"},
    "custom_tool_call_output": {"type", "call_id", "output", "id", "status"},
    "reasoning": {"type", "id", "summary", "encrypted_content", "content", "status"},
}
PARTS = {
    "input_text": {"type", "text"},
    "input_image": {"type", "image_url", "detail", "file_id"},
    "output_text": {"type", "text", "annotations", "logprobs"},
    "refusal": {"type", "refusal"},
}
INCOMPLETE = {"length": "max_output_tokens", "refusal": "content_filter"}


class ResponsesWire:
    # -- what is sent

    def frames(self, answer: Answer, body: Json, number: int) -> Iterator[Step]:
        sequence = 0

        def event(kind: str, **fields: Any) -> bytes:
            nonlocal sequence
            sequence += 1
            return sse({"type": kind, "sequence_number": sequence, **fields}, kind)

        yield event("response.created", response=_response(body, number, "in_progress"))
        yield event("response.in_progress", response=_response(body, number, "in_progress"))
        at = 0
        output: list[Json] = []
        for block in answer.blocks:
            if isinstance(block, Gate | Pause):
                yield block
                continue
            item = _item(block, at, number)
            yield event("response.output_item.added", output_index=at, item=_empty(item))
            where = {"item_id": item["id"], "output_index": at}
            for kind, fields in _deltas(block, item, answer.chunk_chars):
                yield event(kind, **where, **fields)
            yield event("response.output_item.done", output_index=at, item=item)
            output.append(item)
            at += 1
        ended = "incomplete" if answer.stop_word in INCOMPLETE else "completed"
        response = {**_response(body, number, ended, answer), "output": output}
        yield event(f"response.{ended}", response=response)

    def whole(self, answer: Answer, body: Json, number: int) -> Json:
        blocks = [block for block in answer.blocks if not isinstance(block, Gate | Pause)]
        output = [_item(block, at, number) for at, block in enumerate(blocks)]
        ended = "incomplete" if answer.stop_word in INCOMPLETE else "completed"
        return {**_response(body, number, ended, answer), "output": output}

    def error(self, kind: str | None, message: str, status: int) -> Json:
        kinds = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
        code = kind or kinds.get(status)
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}

    def error_frame(self, kind: str, message: str) -> bytes:
        return sse({"type": "error", "code": kind, "message": message, "param": None, "sequence_number": 1}, "error")

    def issued(self, answer: Answer, body: Json, number: int) -> dict[str, list[Json]]:
        return {}

    def check_kept(self, body: Json, issued: dict[str, list[Json]]) -> None:
        """What was changed shows in the encrypted half itself."""

    # -- what is received

    def asked(self, body: Json) -> Asked:
        text, results, steps, answering = "", list[str](), 0, False
        for item in body["input"]:
            kind = _kind(item)
            if kind == "message" and item["role"] == "user":
                text, results, steps, answering = _text(item["content"]), [], 0, False
            elif kind in ("function_call_output", "custom_tool_call_output"):
                results.append(_result(item["output"]))
                answering = False
            elif kind != "reasoning" and item.get("role", "assistant") == "assistant":
                # Neighbouring items are one answer.
                steps += not answering
                answering = True
        # Built-in tools of the service have a type and no name.
        tools = tuple(tool.get("name", tool["type"]) for tool in body.get("tools", ()))
        return Asked(text=text, results=tuple(results), steps=steps, tools=tools)

    def check(self, body: Json) -> None:
        only(body, BODY, "body")
        need(isinstance(body.get("model"), str), "Missing required parameter: 'model'.")
        need(body.get("max_output_tokens", 16) >= 16, "Invalid 'max_output_tokens': Expected a value >= 16.")
        check_sampling(body)
        for at, tool in enumerate(body.get("tools", ())):
            only(tool, {"type", "name", "description", "parameters", "strict"}, f"tools[{at}]")
            need(TOOL_NAME.match(tool["name"]), f"Invalid 'tools[{at}].name': string does not match pattern.")
        only(body.get("reasoning") or {}, {"effort", "summary", "context", "mode"}, "reasoning")
        need(body.get("input"), "Missing required parameter: 'input'.")
        _check_items(body["input"])


def encrypted_of(item: str, words: str) -> str:
    """What this provider hides its reasoning in. Has the letters that base64 has."""
    return f"enc+/{hashlib.sha256(f'{item}:{words}'.encode()).hexdigest()}=="


def _response(body: Json, number: int, status: str, answer: Answer | None = None) -> Json:
    response: Json = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_760_000_000,
        "status": status,
        "model": body["model"],
        "output": [],
        "error": None,
        "incomplete_details": None,
        "usage": None,
    }
    if answer is not None:
        if status == "incomplete":
            response["incomplete_details"] = {"reason": INCOMPLETE[answer.stop_word]}
        response["usage"] = {
            "input_tokens": answer.input_tokens,
            "input_tokens_details": {"cached_tokens": answer.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": answer.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": answer.input_tokens + answer.output_tokens,
        }
    return response


def _item(block: Say | Think | Redacted | Call, at: int, number: int) -> Json:
    match block:
        case Say():
            part = {"type": "output_text", "text": block.text, "annotations": [], "logprobs": []}
            return {
                "id": f"msg_{number}_{at}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        case Think():
            name = f"rs_{number}_{at}"
            summary = [{"type": "summary_text", "text": block.text}] if block.text else []
            secret = block.signature or encrypted_of(name, block.text)
            return {"id": name, "type": "reasoning", "summary": summary, "encrypted_content": secret}
        case Redacted():
            return {"id": f"rs_{number}_{at}", "type": "reasoning", "summary": [], "encrypted_content": block.data}
        case Call() if isinstance(block.input, str):
            # Free-form: the whole input is one text.
            return {
                "id": f"ctc_{number}_{at}",
                "type": "custom_tool_call",
                "status": "completed",
                "call_id": block.id or f"call_{number}_{at}",
                "name": block.name,
                "input": block.input,
            }
        case Call():
            return {
                "id": f"fc_{number}_{at}",
                "type": "function_call",
                "status": "completed",
                "call_id": block.id or f"call_{number}_{at}",
                "name": block.name,
                "arguments": msgspec.json.encode(block.input).decode() if block.raw is None else block.raw,
            }


def _empty(item: Json) -> Json:
    match item["type"]:
        case "message":
            return {**item, "status": "in_progress", "content": []}
        case "function_call":
            return {**item, "status": "in_progress", "arguments": ""}
        case "custom_tool_call":
            return {**item, "status": "in_progress", "input": ""}
        case _:
            return {**item, "summary": [], "encrypted_content": "not whole yet"}


def _deltas(block: Say | Think | Redacted | Call, item: Json, chars: int) -> Iterator[tuple[str, Json]]:
    match block:
        case Say():
            part = {"type": "output_text", "text": "", "annotations": []}
            yield "response.content_part.added", {"content_index": 0, "part": part}
            for piece in pieces(block.text, chars):
                yield "response.output_text.delta", {"content_index": 0, "delta": piece, "logprobs": []}
            yield "response.output_text.done", {"content_index": 0, "text": block.text, "logprobs": []}
            yield "response.content_part.done", {"content_index": 0, "part": {**part, "text": block.text}}
        case Think() if block.text:
            empty = {"type": "summary_text", "text": ""}
            yield "response.reasoning_summary_part.added", {"summary_index": 0, "part": empty}
            for piece in pieces(block.text, chars):
                yield "response.reasoning_summary_text.delta", {"summary_index": 0, "delta": piece}
            yield "response.reasoning_summary_text.done", {"summary_index": 0, "text": block.text}
        case Call() if isinstance(block.input, str):
            for piece in pieces(block.input, chars):
                yield "response.custom_tool_call_input.delta", {"delta": piece}
            yield "response.custom_tool_call_input.done", {"input": block.input}
        case Call():
            for piece in pieces(item["arguments"], chars):
                yield "response.function_call_arguments.delta", {"delta": piece}
            yield "response.function_call_arguments.done", {"arguments": item["arguments"]}
        case _:
            pass


def _kind(item: Json) -> str:
    return str(item.get("type") or "message")


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [part["text"] for part in content if part["type"] in ("input_text", "output_text")]
    return texts[-1] if texts else ""


def _result(output: Any) -> str:
    return output if isinstance(output, str) else "".join(str(part.get("text", "")) for part in output)


def _check_items(items: list[Json]) -> None:
    called: list[str] = []
    answered: set[str] = set()
    for at, item in enumerate(items):
        where = f"input[{at}]"
        kind = _kind(item)
        need(kind in ITEMS, f"Invalid value: '{kind}'. Supported values are: {', '.join(ITEMS)}. ({where}.type)")
        only(item, ITEMS[kind], where)
        match kind:
            case "message":
                _check_message(item, where)
            case "function_call":
                _check_call(item, called, where)
                called.append(item["call_id"])
            case "function_call_output":
                call = item["call_id"]
                need(call in called, f"No tool call found for function call output with call_id {call}.")
                need(call not in answered, f"Duplicate function call output with call_id {call}.")
                need(isinstance(item["output"], str | list), f"{where}.output: expected a string")
                answered.add(call)
            case _:
                _check_reasoning(item, where)
                need(
                    at + 1 < len(items) and not _is_users(items[at + 1]),
                    f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.",
                )
    for call in called:
        need(call in answered, f"No tool output found for function call {call}.")
    need(_is_users(items[-1]), "The input must end with something to answer.")


def _is_users(item: Json) -> bool:
    kind = _kind(item)
    return kind == "function_call_output" or (kind == "message" and item["role"] != "assistant")


def _check_message(item: Json, where: str) -> None:
    role = item.get("role")
    need(role in ("user", "assistant", "system", "developer"), f"Invalid value: '{role}' at {where}.role")
    content = item["content"]
    if isinstance(content, str):
        need(content, f"{where}.content: empty text")
        return
    need(content, f"{where}.content: empty array")
    for part in content:
        kind = part["type"]
        taken = ("output_text", "refusal") if role == "assistant" else ("input_text", "input_image")
        need(kind in taken, f"Invalid value: '{kind}'. Supported values are: {taken}. ({where}.content)")
        only(part, PARTS[kind], where)
        need(kind != "input_text" or part["text"], f"{where}.content: empty text")


def _check_call(item: Json, called: list[str], where: str) -> None:
    need(CALL_ID.match(item["call_id"]), f"Invalid '{where}.call_id': string does not match pattern.")
    need(item["call_id"] not in called, f"{where}: Duplicate call_id {item['call_id']}.")
    need(TOOL_NAME.match(item["name"]), f"Invalid '{where}.name': string does not match pattern.")
    try:
        arguments = msgspec.json.decode(item["arguments"])
    except msgspec.DecodeError:
        arguments = None
    need(isinstance(arguments, dict), f"{where}.arguments: not a JSON object")


def _check_reasoning(item: Json, where: str) -> None:
    need(str(item.get("id", "")).startswith("rs_"), f"Invalid '{where}.id': Expected an ID that begins with 'rs'.")
    secret = item.get("encrypted_content") or ""
    words = "".join(part["text"] for part in item["summary"])
    if secret != encrypted_of(item["id"], words) and not secret.startswith("scripted-"):
        raise Refused(f"The encrypted content for item {item['id']} could not be verified.")
