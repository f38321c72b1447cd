"""Google Gemini: the stream of an answer, and the rules a request is held to. Spoken to through the extra `[providers]`."""

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

from tests.provider.script import Answer, Call, Gate, Pause, Redacted, Say, Stop, Think, pieces
from tests.provider.wire import Asked, Json, Step, need, sse

FINISH_REASONS: dict[Stop, str] = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}


class GoogleWire:
    # -- what is sent

    def frames(self, answer: Answer, body: Json, number: int) -> Iterator[Step]:
        def chunk(parts: list[Json], finish: str | None = None) -> bytes:
            candidate: Json = {"index": 0, "content": {"role": "model", "parts": parts}}
            if finish:
                candidate["finishReason"] = finish
            usage = {
                "promptTokenCount": answer.input_tokens,
                "candidatesTokenCount": answer.output_tokens,
                "cachedContentTokenCount": answer.cached_tokens,
                "totalTokenCount": answer.input_tokens + answer.output_tokens,
            }
            return sse(
                {
                    "candidates": [candidate],
                    "usageMetadata": usage,
                    "modelVersion": body["model"],
                    "responseId": f"r{number}",
                }
            )

        for at, block in enumerate(answer.blocks):
            match block:
                case Gate() | Pause():
                    yield block
                case Say():
                    for piece in pieces(block.text, answer.chunk_chars):
                        yield chunk([{"text": piece}])
                case Think():
                    for piece in pieces(block.text, answer.chunk_chars):
                        yield chunk([{"text": piece, "thought": True}])
                case Redacted():
                    pass
                case Call():
                    yield chunk([_call(block, at, number)])
        yield chunk([{"text": ""}], FINISH_REASONS[answer.stop_word])

    def whole(self, answer: Answer, body: Json, number: int) -> Json:
        raise NotImplementedError("only streams are asked for")

    def issued(self, answer: Answer, body: Json, number: int) -> dict[str, list[Json]]:
        return {}

    def check_kept(self, body: Json, issued: dict[str, list[Json]]) -> None:
        """Signatures are made from what they sign."""

    def error(self, kind: str | None, message: str, status: int) -> Json:
        return {"error": {"code": status, "message": message, "status": kind or "INVALID_ARGUMENT"}}

    def error_frame(self, kind: str, message: str) -> bytes:
        return sse({"error": {"code": 503, "message": message, "status": "UNAVAILABLE"}})

    # -- what is received

    def asked(self, body: Json) -> Asked:
        text, results, steps = "", list[str](), 0
        for content in body["contents"]:
            if content["role"] == "model":
                steps += 1
                continue
            texts = [part["text"] for part in content["parts"] if "text" in part]
            if texts:
                text, results, steps = texts[-1], [], 0
            else:
                results += [str(part["functionResponse"]["response"]) for part in content["parts"]]
        tools = [tool for group in body.get("tools", ()) for tool in group.get("functionDeclarations", ())]
        return Asked(text=text, results=tuple(results), steps=steps, tools=tuple(tool["name"] for tool in tools))

    def check(self, body: Json) -> None:
        contents: list[Json] = body.get("contents", [])
        need(contents, "GenerateContentRequest.contents: contents is not specified")
        need(contents[-1]["role"] == "user", "Please ensure that the last content is of the user.")
        calls = 0
        for at, content in enumerate(contents):
            need(content["role"] in ("user", "model"), "Please use a valid role: user, model.")
            need(content.get("parts"), f"GenerateContentRequest.contents[{at}].parts: must not be empty")
            answers = sum("functionResponse" in part for part in content["parts"])
            need(
                answers == calls,
                "Please ensure that the number of function response parts is equal to the number of function call parts "
                "of the function call turn.",
            )
            calls = sum("functionCall" in part for part in content["parts"])
            _check_signature([part for part in content["parts"] if "functionCall" in part], at)
        need(calls == 0, "Please ensure that every function call is followed by its response.")


def signature_of(name: str) -> str:
    return base64.b64encode(hashlib.sha256(name.encode()).digest()).decode()


def _call(call: Call, at: int, number: int) -> Json:
    made = {"id": call.id or f"call-{number}-{at}", "name": call.name, "args": call.input}
    return {"functionCall": made, "thoughtSignature": signature_of(call.name)}


def _check_signature(parts: list[Json], at: int) -> None:
    """The first call of an answer carries what the model thought before it."""
    if not parts:
        return
    given: Any = parts[0].get("thoughtSignature")
    need(given, f"Function call is missing a thought_signature in functionCall parts. (contents[{at}])")
    need(
        given.rstrip("=") == _urlsafe(signature_of(parts[0]["functionCall"]["name"]), given),
        "Corrupted thought signature.",
    )


def _urlsafe(made: str, given: str) -> str:
    """Either alphabet of base64 is taken."""
    made = made.rstrip("=")
    return made.replace("+", "-").replace("/", "_") if "-" in given or "_" in given else made
