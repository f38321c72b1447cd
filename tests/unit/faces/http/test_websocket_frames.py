"""Messages framed once: the bytes that any WebSocket client reads, and back."""

import pytest
from websockets.frames import Frame, Opcode
from websockets.protocol import CLIENT, OPEN, Protocol

from palaver.faces.http.websocket_frames import frame_text, payloads

SIZES = [0, 1, 125, 126, 127, 65_535, 65_536, 200_000]


@pytest.mark.parametrize("size", SIZES)
def test_frame_is_read_by_a_client_as_the_text_it_was(size: int) -> None:
    client = Protocol(CLIENT, state=OPEN, max_size=None)
    client.receive_data(frame_text(b"x" * size))
    (frame,) = client.events_received()
    assert isinstance(frame, Frame)
    assert (frame.opcode, frame.fin, bytes(frame.data)) == (Opcode.TEXT, True, b"x" * size)


def test_joined_frames_come_apart_again() -> None:
    texts = [b"y" * size for size in SIZES]
    assert list(payloads(b"".join(map(frame_text, texts)))) == texts
    assert list(payloads(b"")) == []
