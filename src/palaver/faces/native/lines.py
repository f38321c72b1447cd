"""The lines that go out beside events, on the socket and in the stream of server-sent events alike.

Events themselves are forwarded as the log stored them; nothing here touches them.
"""

from palaver.feed.feed import Reason, Snapshot


def snapshot_line(conversation: str, epoch: str, snapshot: Snapshot, reason: Reason | None = None) -> bytes:
    """The state is JSON already and goes in as it is. Ids and epochs hold nothing that JSON would escape."""
    return b'{"type":"snapshot","conversation":"%s","seq":%d,"reason":"%s","epoch":"%s","state":%s}' % (
        conversation.encode(),
        snapshot.seq,
        (reason or snapshot.reason).encode(),
        epoch.encode(),
        snapshot.state,
    )
