"""Anthropic Messages: the stream of an answer, and the rules a request is held to."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from tests.provider.script import Answer, Call, Gate, Pause, Redacted, Say, Stop, Think, pieces, signature_of
from tests.provider.wire import Asked, Json, Refused, Step, need, only, sse

TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
TOOL_ID = re.compile(r"^[a-zA-Z0-9_-]+$")

BODY = {
    "model",
    "messages",
    "max_tokens",
    "system",
    "stream",
    "temperature",
    "top_k",
    "top_p",
    "stop_sequences",
    "tools",
    "tool_choice",
    "thinking",
    "metadata",
    "service_tier",
    "cache_control",
    "context_management",
    "output_config",
}
BLOCKS = {
    "text": {"type", "text", "cache_control", "citations"},
    "image": {"type", "source", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "tool_use": {"type", "id", "name", "input", "cache_control"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
}
ALLOWED_IN = {
    "user": {"text", "image", "tool_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
}
STOP_REASONS: dict[Stop, str] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "refusal": "refusal",
}
THOUGHTS = ("thinking", "redacted_thinking")
CACHE_MARKS = 4
ADAPTIVE_ONLY = re.compile(r"claude-(fable|mythos|sonnet|opus|haiku)-(5|4-[7-9])(?!\d)")
IMAGE_TYPES = {"image/png", "image/jpeg", "image/gif", "image/webp"}


class AnthropicWire:
    # -- what is sent

    def frames(self, answer: Answer, body: Json, number: int) -> Iterator[Step]:
        usage = {
            "input_tokens": answer.input_tokens - answer.cached_tokens,
            "cache_read_input_tokens": answer.cached_tokens,
            "cache_creation_input_tokens": 0,
            "output_tokens": 1,
        }
        yield sse(
            {
                "type": "message_start",
                "message": {
                    "id": f"msg_{number}",
                    "type": "message",
                    "role": "assistant",
                    "model": body["model"],
                    "content": [],
                    "stop_reason": None,
                    "stop_sequence": None,
                    "usage": usage,
                },
            },
            "message_start",
        )
        yield sse({"type": "ping"}, "ping")
        index = 0
        for block in answer.blocks:
            if isinstance(block, Gate | Pause):
                yield block
                continue
            start, deltas = _block(block, index, number, answer.chunk_chars)
            yield sse({"type": "content_block_start", "index": index, "content_block": start}, "content_block_start")
            for delta in deltas:
                yield sse({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
            yield sse({"type": "content_block_stop", "index": index}, "content_block_stop")
            index += 1
        stop = {"stop_reason": STOP_REASONS[answer.stop_word], "stop_sequence": None}
        spent = {"output_tokens": answer.output_tokens}
        yield sse({"type": "message_delta", "delta": stop, "usage": spent}, "message_delta")
        yield sse({"type": "message_stop"}, "message_stop")

    def whole(self, answer: Answer, body: Json, number: int) -> Json:
        content: list[Json] = []
        for index, block in enumerate(answer.blocks):
            match block:
                case Say():
                    content.append({"type": "text", "text": block.text})
                case Think():
                    signature = block.signature or signature_of(block.text)
                    content.append({"type": "thinking", "thinking": block.text, "signature": signature})
                case Redacted():
                    content.append({"type": "redacted_thinking", "data": block.data})
                case Call():
                    call = block.id or f"toolu_{number}_{index}"
                    content.append({"type": "tool_use", "id": call, "name": block.name, "input": block.input})
                case Gate() | Pause():
                    pass
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": STOP_REASONS[answer.stop_word],
            "stop_sequence": None,
            "usage": {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens},
        }

    def error(self, kind: str | None, message: str, status: int) -> Json:
        kinds = {
            400: "invalid_request_error",
            401: "authentication_error",
            403: "permission_error",
            404: "not_found_error",
            413: "request_too_large",
            429: "rate_limit_error",
            529: "overloaded_error",
        }
        named = kind or kinds.get(status, "api_error")
        return {"type": "error", "error": {"type": named, "message": message}, "request_id": "req_scripted"}

    def error_frame(self, kind: str, message: str) -> bytes:
        return sse({"type": "error", "error": {"type": kind, "message": message}}, "error")

    def issued(self, answer: Answer, body: Json, number: int) -> dict[str, list[Json]]:
        content = self.whole(answer, body, number)["content"]
        thoughts = [block for block in content if block["type"] in THOUGHTS]
        return {block["id"]: thoughts for block in content if block["type"] == "tool_use"}

    def check_kept(self, body: Json, issued: dict[str, list[Json]]) -> None:
        """With thinking on, the latest answer of a tool loop keeps all its thoughts as they were."""
        if body.get("thinking", {}).get("type") not in ("enabled", "adaptive"):
            return
        answers = [message for message in body["messages"] if message["role"] == "assistant"]
        blocks = _content(answers[-1]["content"]) if answers else []
        calls = [block["id"] for block in blocks if block["type"] == "tool_use" and block["id"] in issued]
        results = [block for block in _content(body["messages"][-1]["content"]) if block["type"] == "tool_result"]
        if calls and results:
            need(
                [block for block in blocks if block["type"] in THOUGHTS] == issued[calls[-1]],
                f"messages.{len(body['messages']) - 2}: `thinking` or `redacted_thinking` blocks in the latest assistant "
                "message cannot be modified. These blocks must remain as they were in the original response.",
            )

    # -- what is received

    def asked(self, body: Json) -> Asked:
        text, results, steps = "", list[str](), 0
        for message in body["messages"]:
            if message["role"] == "assistant":
                steps += 1
                continue
            blocks = _content(message["content"])
            texts = [block["text"] for block in blocks if block["type"] == "text"]
            if texts:
                text, results, steps = texts[-1], [], 0
            results.extend(_result_text(block) for block in blocks if block["type"] == "tool_result" and not texts)
        return Asked(
            text=text,
            results=tuple(results),
            steps=steps,
            tools=tuple(tool["name"] for tool in body.get("tools", ())),
        )

    def check(self, body: Json) -> None:
        only(body, BODY, "body")
        need(isinstance(body.get("model"), str), "model: Field required")
        need(isinstance(body.get("max_tokens"), int), "max_tokens: Field required")
        need(body["max_tokens"] >= 1, "max_tokens: must be at least 1")
        for tool in body.get("tools", ()):
            only(tool, {"type", "name", "description", "input_schema", "cache_control"}, "tools.0")
            need(TOOL_NAME.match(tool["name"]), f"tools.0.name: '{tool['name']}' does not match the pattern")
            need(tool["input_schema"].get("type") == "object", "tools.0.input_schema.type: must be 'object'")
        names = [tool["name"] for tool in body.get("tools", ())]
        need(len(set(names)) == len(names), "tools: Tool names must be unique.")
        for block in _content(body.get("system", [])):
            _check_block(block, "system", {"text"})
        _check_thinking_setting(body)
        _check_marks(body)
        _check_messages(body)


def _block(block: Say | Think | Redacted | Call, index: int, number: int, chars: int) -> tuple[Json, list[Json]]:
    match block:
        case Say():
            deltas: list[Json] = [{"type": "text_delta", "text": piece} for piece in pieces(block.text, chars)]
            return {"type": "text", "text": ""}, deltas
        case Think():
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block.text, chars)]
            deltas.append({"type": "signature_delta", "signature": block.signature or signature_of(block.text)})
            return {"type": "thinking", "thinking": "", "signature": ""}, deltas
        case Redacted():
            return {"type": "redacted_thinking", "data": block.data}, []
        case Call():
            text = msgspec.json.encode(block.input).decode() if block.raw is None else block.raw
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces(text, chars))]
            call = block.id or f"toolu_{number}_{index}"
            return {"type": "tool_use", "id": call, "name": block.name, "input": {}}, deltas


def _content(content: Any) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _result_text(block: Json) -> str:
    content = block.get("content", "")
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _check_marks(body: Json) -> None:
    marked = [*_content(body.get("system", [])), *body.get("tools", ())]
    marked += [block for message in body.get("messages", ()) for block in _content(message["content"])]
    count = sum("cache_control" in block for block in marked)
    need(count <= CACHE_MARKS, f"A maximum of {CACHE_MARKS} blocks with cache_control may be provided. Found {count}.")


def _check_thinking_setting(body: Json) -> None:
    thinking = body.get("thinking")
    if ADAPTIVE_ONLY.match(body["model"]):
        for name in ("temperature", "top_p", "top_k"):
            need(name not in body, f"`{name}` is deprecated for this model.")
        need((thinking or {}).get("type") != "enabled", '"thinking.type.enabled" is not supported for this model.')
    elif body["model"].startswith("claude"):
        need("temperature" not in body or "top_p" not in body, "`temperature` and `top_p` cannot both be specified.")
    if thinking is None or thinking["type"] == "disabled":
        return
    need(thinking["type"] in ("enabled", "adaptive"), "thinking.type: unknown")
    if thinking["type"] == "enabled":
        only(thinking, {"type", "budget_tokens", "display"}, "thinking")
        need(thinking["budget_tokens"] >= 1024, "thinking.enabled.budget_tokens: must be at least 1024")
        need(thinking["budget_tokens"] < body["max_tokens"], "`max_tokens` must be greater than `budget_tokens`")
    else:
        only(thinking, {"type", "display"}, "thinking")
    need(body.get("temperature", 1) == 1, "`temperature` may only be set to 1 when thinking is enabled")


def _check_messages(body: Json) -> None:
    messages: list[Json] = body.get("messages", [])
    need(messages, "messages: at least one message is required")
    need(messages[0]["role"] == "user", "messages: first message must use the user role")
    need(messages[-1]["role"] == "user", "messages: this model does not support assistant message prefill")
    known: set[str] = set()
    waiting: list[str] = []
    for at, message in enumerate(messages):
        where = f"messages.{at}"
        only(message, {"role", "content"}, where)
        role = message["role"]
        need(role in ALLOWED_IN, f"{where}.role: unexpected '{role}'")
        need(at == 0 or role != messages[at - 1]["role"], f"{where}: roles must alternate")
        blocks = _content(message["content"])
        need(blocks, f"{where}.content: all messages must have non-empty content")
        for block in blocks:
            _check_block(block, where, ALLOWED_IN[role])
        if role == "user":
            _check_results(blocks, waiting, where)
            waiting = []
        else:
            waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
            for call in waiting:
                need(call not in known, f"{where}: `tool_use` ids must be unique")
                known.add(call)
            need(
                blocks[-1]["type"] not in ("thinking", "redacted_thinking"),
                f"{where}: The final block in an assistant message cannot be `thinking`.",
            )
    _check_thinking_leads(body)


def _check_results(blocks: list[Json], waiting: list[str], where: str) -> None:
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    for call in waiting:
        need(results.count(call) == 1, f"{where}: `tool_use` ids were found without `tool_result` blocks after: {call}")
    for call in results:
        need(call in waiting, f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {call}")
    kinds = [block["type"] == "tool_result" for block in blocks]
    need(kinds == sorted(kinds, reverse=True), f"{where}: `tool_result` blocks must come first")


def _check_block(block: Json, where: str, allowed: set[str]) -> None:
    kind = block["type"]
    need(kind in allowed, f"{where}: unexpected block of type '{kind}'")
    only(block, BLOCKS[kind], where)
    match kind:
        case "text":
            need(block["text"].strip(), f"{where}: text content blocks must contain non-whitespace text")
        case "thinking":
            need(block.get("signature"), f"{where}.thinking.signature: Field required")
            made = signature_of(block["thinking"])
            need(block["signature"] in (made, _scripted(block)), f"{where}: Invalid `signature` in `thinking` block")
        case "tool_use":
            need(TOOL_ID.match(block["id"]), f"{where}.tool_use.id: does not match the pattern")
            need(TOOL_NAME.match(block["name"]), f"{where}.tool_use.name: does not match the pattern")
            need(isinstance(block["input"], dict), f"{where}.tool_use.input: must be an object")
        case "image":
            source = block["source"]
            need(source["type"] == "base64" and source["media_type"] in IMAGE_TYPES, f"{where}.image.source: not taken")
            need(source["data"], f"{where}.image.source.data: empty")
        case _:
            pass


def _scripted(block: Json) -> str | None:
    """A signature chosen by a script begins with its name for it."""
    signature: str = block["signature"]
    return signature if signature.startswith("scripted-") else None


def _check_thinking_leads(body: Json) -> None:
    """With thinking on, the answers of a tool loop under way must begin with their thinking."""
    if body.get("thinking", {}).get("type") != "enabled":
        return
    for message in reversed(body["messages"]):
        blocks = _content(message["content"])
        if message["role"] == "user":
            if not any(block["type"] == "tool_result" for block in blocks):
                return
        elif blocks[0]["type"] not in ("thinking", "redacted_thinking"):
            raise Refused(
                f"Expected `thinking` or `redacted_thinking`, but found `{blocks[0]['type']}`. When `thinking` is "
                "enabled, a final `assistant` message must start with a thinking block."
            )
        else:
            return
