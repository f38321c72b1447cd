"""What is said aloud of a text that comes in pieces."""

import asyncio

import pytest

from palaver.errors import NotInstalled
from palaver.faces.socket.speech import LONGEST_CHARS, Sentences
from palaver.faces.socket.voices import Espeak, SpeechFailed, SpeechService, speaker_of


def spoken(*pieces: str) -> tuple[list[str], list[str]]:
    sentences = Sentences()
    return [one for piece in pieces for one in sentences.add(piece)], sentences.end()


def test_sentence_is_said_when_it_has_ended_and_the_rest_at_the_end() -> None:
    assert spoken("Hello the", "re. How are", " you? I am", " fine") == (
        ["Hello there.", "How are you?"],
        ["I am fine"],
    )


def test_number_and_name_with_a_point_are_not_torn() -> None:
    assert spoken("Version 3.11 of a.txt is out. ") == (["Version 3.11 of a.txt is out."], [])


def test_markup_and_code_are_not_said() -> None:
    text = "# A heading\n**Bold** words.\n```python\nprint('no')\n```\nAfter it.\n"
    assert spoken(*text) == (["A heading", "Bold words.", "After it."], [])


def test_sentence_without_an_end_is_cut_at_a_space() -> None:
    said, rest = spoken("word " * 200)
    assert all(len(one) <= LONGEST_CHARS for one in said)
    assert " ".join([*said, *rest]).split() == ["word"] * 200


@pytest.mark.parametrize("text", ["", "   ", "---", "***\n"])
def test_nothing_is_said_of_nothing(text: str) -> None:
    assert spoken(text) == ([], [])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("to", ["other", "same", "/audio/elsewhere"])
async def test_service_that_redirects_is_not_followed(status: int, to: str) -> None:
    heard: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        heard.append(head.split(" ")[1])
        port = writer.get_extra_info("sockname")[1]
        if heard == ["/audio/speech"]:
            place = {"other": f"http://127.0.0.1:{other_port}/secret", "same": f"http://127.0.0.1:{port}/secret"}.get(
                to, to
            )
            writer.write(f"HTTP/1.1 {status} Moved\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode())
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nsecret")
        await writer.drain()
        writer.close()

    async with (
        await asyncio.start_server(answer, "127.0.0.1", 0) as one,
        await asyncio.start_server(answer, "127.0.0.1", 0) as other,
    ):
        port, other_port = (server.sockets[0].getsockname()[1] for server in (one, other))
        service = SpeechService(url=f"http://127.0.0.1:{port}", api_key="key-that-stays")
        with pytest.raises(SpeechFailed, match=str(status)):
            await service.speak("Hello.")
    assert heard == ["/audio/speech"]


def test_service_that_is_named_is_used_before_what_is_installed(tmp_path: object) -> None:
    def prepare(program: str) -> tuple[tuple[str, ...], dict[str, str]]:
        raise NotInstalled(f"{program} was not found.")

    assert speaker_of({"PATH": ""}, prepare) is None
    named = speaker_of(
        {"PATH": "", "PALAVER_SPEECH_URL": "http://127.0.0.1:1/v1/", "PALAVER_SPEECH_VOICE": "nova"}, prepare
    )
    assert isinstance(named, SpeechService)
    assert (named.url, named.voice, named.model) == ("http://127.0.0.1:1/v1", "nova", "tts-1")
    assert Espeak(prepare).voice is None
