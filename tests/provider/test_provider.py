"""The scripted provider itself: what it says, what it refuses, how it misbehaves. Others build on it."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.provider import (
    Answer,
    Call,
    Cut,
    ErrorFrame,
    Gate,
    Hang,
    Say,
    ScriptedProvider,
    Status,
    Think,
    scripted_provider,
)
from tests.provider.anthropic import AnthropicWire
from tests.provider.google import GoogleWire
from tests.provider.obedient import obey
from tests.provider.openai import OpenAiWire
from tests.provider.responses import ResponsesWire, encrypted_of
from tests.provider.script import signature_of
from tests.provider.wire import Asked, Json, Refused

HELLO: list[Json] = [{"role": "user", "content": "hello"}]


def messages(*more: Json, **fields: Any) -> Json:
    return {"model": "scripted-1", "max_tokens": 4096, "messages": [*HELLO, *more], **fields}


def completion(*more: Json, **fields: Any) -> Json:
    return {"model": "scripted-1", "messages": [*HELLO, *more], **fields}


def called(call: str = "toolu_1", name: str = "read") -> Json:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": call, "name": name, "input": {}}]}


def resulted(call: str = "toolu_1") -> Json:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": "ok"}]}


def completion_called(call: str = "call_1", arguments: str = "{}", name: str = "read") -> Json:
    calls = [{"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def completion_resulted(call: str = "call_1") -> Json:
    return {"role": "tool", "tool_call_id": call, "content": "ok"}


THOUGHT: Json = {"type": "thinking", "thinking": "hm", "signature": signature_of("hm")}
MARKED: Json = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
THINKING: Json = {"type": "enabled", "budget_tokens": 1024}


@pytest.mark.parametrize(
    "body",
    [
        messages(),
        messages(called(), resulted()),
        messages({"role": "assistant", "content": [THOUGHT, *called()["content"]]}, resulted(), thinking=THINKING),
        messages(system=[{"type": "text", "text": "Be short.", "cache_control": {"type": "ephemeral"}}]),
    ],
)
def test_anthropic_wire_takes_what_the_service_takes(body: Json) -> None:
    AnthropicWire().check(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"model": "m", "messages": HELLO}, "max_tokens"),
        (messages(called()), "prefill"),
        (messages(called(), {"role": "user", "content": "and?"}), "without `tool_result`"),
        (messages(called(), {"role": "user", "content": resulted()["content"] * 2}), "without `tool_result`"),
        (messages({"role": "assistant", "content": "yes"}, resulted()), "unexpected `tool_use_id`"),
        (messages(called(), resulted(), called(), resulted()), "unique"),
        (messages({"role": "user", "content": "again"}), "alternate"),
        (messages({"role": "assistant", "content": "yes"}, {"role": "user", "content": " "}), "non-whitespace"),
        (messages(called(name="read file"), resulted()), "pattern"),
        (messages(tools=[{"name": "a b", "input_schema": {"type": "object"}}]), "pattern"),
        (messages(frequency_penalty=1), "Extra inputs"),
        (messages(called(), resulted(), thinking=THINKING), "must start with a thinking block"),
        (messages(thinking=THINKING, temperature=0), "temperature"),
        (messages({"role": "system", "content": "be good"}, HELLO[0]), "role"),
        (
            messages(called(), {"role": "user", "content": [{"type": "text", "text": "so"}, *resulted()["content"]]}),
            "first",
        ),
        ({**messages(temperature=0.5), "model": "claude-opus-5"}, "deprecated"),
        ({**messages(thinking=THINKING), "model": "claude-opus-4-7"}, "not supported"),
        ({**messages(temperature=0.5, top_p=0.5), "model": "claude-sonnet-4-5"}, "both"),
        (messages({"role": "assistant", "content": "yes"}, {"role": "user", "content": [MARKED] * 5}), "maximum of 4"),
        (
            messages({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}, HELLO[0]),
            "signature: Field required",
        ),
        (
            messages({"role": "assistant", "content": [{**THOUGHT, "signature": "other"}]}, HELLO[0]),
            "Invalid `signature`",
        ),
        (messages({"role": "assistant", "content": [THOUGHT]}, HELLO[0]), "final block"),
    ],
)
def test_anthropic_wire_refuses_what_the_service_refuses(body: Json, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        AnthropicWire().check(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (completion(completion_called()), "did not have response"),
        (completion(completion_called(), HELLO[0]), "did not have response"),
        (completion(completion_resulted()), "must be a response"),
        (completion(completion_called(), completion_resulted(), completion_resulted()), "must be a response"),
        (
            completion(completion_called(), completion_resulted(), completion_called(), completion_resulted()),
            "Duplicate",
        ),
        (completion(completion_called(arguments="{"), completion_resulted()), "not a JSON object"),
        (completion(completion_called(name="a.b"), completion_resulted()), "pattern"),
        (completion(thinking=THINKING), "Extra inputs"),
        (completion({"role": "user", "content": [{"type": "text", "text": ""}]}), "empty text"),
        (completion(tools=[]), "empty array"),
        (completion({"role": "robot", "content": "hi"}), "robot"),
        ({**completion(temperature=0.5), "model": "gpt-5.4"}, "Unsupported parameter"),
        (completion(stream_options={"include_usage": True}), "only allowed when stream"),
    ],
)
def test_openai_wire_refuses_what_the_service_refuses(body: Json, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        OpenAiWire().check(body)


def test_openai_wire_takes_calls_with_their_results() -> None:
    OpenAiWire().check(completion(completion_called(), completion_resulted(), HELLO[0]))


def response(*items: Json, **fields: Any) -> Json:
    return {"model": "scripted-1", "input": [HELLO[0], *items], **fields}


def response_called(call: str = "call_1", arguments: str = "{}", name: str = "read") -> Json:
    return {"type": "function_call", "call_id": call, "name": name, "arguments": arguments}


def response_resulted(call: str = "call_1") -> Json:
    return {"type": "function_call_output", "call_id": call, "output": "ok"}


REASONED: Json = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": encrypted_of("rs_1", "hm"),
}


@pytest.mark.parametrize(
    "body",
    [
        response(),
        response(response_called(), response_resulted()),
        response(
            REASONED, response_called(), response_called("call_2"), response_resulted("call_2"), response_resulted()
        ),
        response({"role": "assistant", "content": "yes"}, HELLO[0], instructions="Be brief."),
    ],
)
def test_responses_wire_takes_what_the_service_takes(body: Json) -> None:
    ResponsesWire().check(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"model": "m"}, "input"),
        (response(response_called()), "No tool output found"),
        (response(response_called(), HELLO[0]), "No tool output found"),
        (response(response_resulted()), "No tool call found"),
        (response(response_called(), response_resulted(), response_resulted()), "Duplicate"),
        (response(response_called(), response_resulted(), response_called(), response_resulted()), "Duplicate"),
        (response(response_called(arguments="{"), response_resulted()), "not a JSON object"),
        (response(response_called(name="a b"), response_resulted()), "pattern"),
        (response(REASONED), "required following item"),
        (response(REASONED, HELLO[0]), "required following item"),
        (response({**REASONED, "encrypted_content": "other"}, response_called(), response_resulted()), "verified"),
        (response({**REASONED, "summary": []}, response_called(), response_resulted()), "verified"),
        (response({"role": "robot", "content": "hi"}), "robot"),
        (response({"role": "user", "content": [{"type": "input_text", "text": ""}]}), "empty text"),
        (response({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}, HELLO[0]), "Invalid value"),
        (response({"type": "tool", "content": "x"}), "Invalid value"),
        (response(messages=[]), "Extra inputs"),
        ({**response(temperature=0.5), "model": "gpt-5.4"}, "Unsupported parameter"),
    ],
)
def test_responses_wire_refuses_what_the_service_refuses(body: Json, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        ResponsesWire().check(body)


def test_google_wire_refuses_calls_without_results_or_signatures() -> None:
    said = {"role": "user", "parts": [{"text": "hi"}]}
    call: Json = {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]}
    with pytest.raises(Refused, match="thought_signature"):
        GoogleWire().check({"contents": [said, call, said]})
    call["parts"][0]["thoughtSignature"] = "changed"
    with pytest.raises(Refused, match="Corrupted"):
        GoogleWire().check({"contents": [said, call, said]})
    with pytest.raises(Refused, match="number of function response"):
        GoogleWire().check({"contents": [said, {"role": "user", "parts": [{"functionResponse": {}}]}]})


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
        yield session


async def ask(session: aiohttp.ClientSession, provider: ScriptedProvider, text: str = "hello") -> str:
    body = {**messages(), "messages": [{"role": "user", "content": text}], "stream": True}
    async with session.post(f"{provider.url}/v1/messages", json=body) as response:
        return await response.text()


async def test_provider_answers_in_the_order_of_the_script_and_keeps_requests(session: aiohttp.ClientSession) -> None:
    async with scripted_provider(Answer.of("one"), Answer.of("two", when="second")) as provider:
        assert '"one"' in await ask(session, provider)
        assert "used up" in await ask(session, provider)
        assert '"two"' in await ask(session, provider, "the second")
        assert [body["messages"][0]["content"] for body in provider.bodies] == ["hello", "hello", "the second"]


async def test_provider_holds_an_answer_at_a_gate(session: aiohttp.ClientSession) -> None:
    answer = Answer.of("before", Gate(name="middle"), "after")
    async with scripted_provider(answer) as provider, asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(ask(session, provider))
        await provider.gates.reached("middle")
        assert not asked.done()
        provider.gates.open("middle")
        assert '"after"' in await asked


async def test_provider_cuts_at_the_byte_it_was_told(session: aiohttp.ClientSession) -> None:
    async with scripted_provider(
        Answer.of("hello", fault=Cut(after_bytes=40, clean=True)), Answer.of("hello", fault=Cut(after_bytes=40))
    ) as provider:
        assert len(await ask(session, provider)) == 40
        with pytest.raises(aiohttp.ClientPayloadError):
            await ask(session, provider)


async def test_provider_sees_a_client_leave(session: aiohttp.ClientSession) -> None:
    async with scripted_provider(Answer.of("hello", fault=Hang(after_bytes=30))) as provider:
        body = {**messages(), "stream": True}
        async with session.post(f"{provider.url}/v1/messages", json=body) as response:
            assert len(await response.content.readexactly(30)) == 30
            response.close()
        await provider.requests[0].end()
        assert provider.requests[0].closed_by_client


async def test_provider_sends_the_failures_of_the_script(session: aiohttp.ClientSession) -> None:
    script = (Answer.of(fault=Status(status=429, retry_after="7")), Answer.of("x", fault=ErrorFrame(after_frames=1)))
    async with scripted_provider(*script) as provider:
        async with session.post(f"{provider.url}/v1/messages", json=messages(stream=True)) as response:
            assert (response.status, response.headers["retry-after"]) == (429, "7")
        assert "overloaded_error" in await ask(session, provider)


async def test_provider_wants_its_key_when_it_has_one(session: aiohttp.ClientSession) -> None:
    async with scripted_provider(obedient=True, api_key="right") as provider:
        assert "authentication_error" in await ask(session, provider)


def asked(text: str, *results: str, steps: int = 0) -> Asked:
    return Asked(text=text, results=results, steps=steps, tools=("shell",))


def test_obedient_model_calls_what_it_is_told_and_reports() -> None:
    order = "please\n!think first\n!shell sleep 1000\n!edit a.py old => new\\nline\n---\n!say done"
    first = obey(asked(order))
    assert first.blocks == (
        Think(text="first"),
        Call(name="shell", input={"command": "sleep 1000"}),
        Call(name="edit", input={"path": "a.py", "old": "old", "new": "new\nline"}),
    )
    assert obey(asked(order, "r1", "r2", steps=1)).blocks == (Say(text="done"),)
    assert obey(asked("!shell ls", "a\nb", steps=1)).blocks == (Say(text="Results: a\nb"),)
    assert obey(asked("hi")).blocks == (Say(text="You said: hi"),)


async def test_provider_runs_as_a_program(session: aiohttp.ClientSession) -> None:
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.provider", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert program.stdout
        async with asyncio.timeout(20):
            line = (await program.stdout.readline()).decode()
        url = line.removeprefix("listening on ").strip()
        script = [{"blocks": [{"type": "gate", "name": "g"}, {"type": "text", "text": "scripted"}]}]
        async with session.post(f"{url}/control/script", json=script) as response:
            assert response.status == 200
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(session.post(f"{url}/v1/messages", json=messages(stream=True)))
            async with session.get(f"{url}/control/gates/g/reached") as response:
                assert response.status == 200
            async with session.post(f"{url}/control/gates/g/open") as response:
                assert response.status == 200
            async with await asking as answer:
                assert '"scripted"' in await answer.text()
    finally:
        os.kill(program.pid, signal.SIGTERM)
        async with asyncio.timeout(20):
            assert await program.wait() == 0
