"""Whatever happens to a conversation, the frames of a chat lead to what a snapshot shows, and numbers never skip."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from palaver.core.fold.evolve import evolve
from palaver.faces.chats.projection import ChatsProjector
from palaver.faces.chats.snapshot import CHATS_STRIDE, snapshot_frame
from palaver.schema.view import State
from tests.rigs.core.machine import CoreMachine
from tests.unit.faces.chats.client import ChatsClient, frames_of

QUICK = settings(
    max_examples=25,
    stateful_step_count=40,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)

pytestmark = pytest.mark.timeout(300)


class ChatsMachine(CoreMachine):
    """Follows the conversation that the core's rig drives, event by event, as a client of this face."""

    def __init__(self) -> None:
        super().__init__()
        self.followed = State()
        self.projector = ChatsProjector(self.followed)
        self.client = ChatsClient()
        self.client.apply(frames_of(snapshot_frame(self.followed, self.projector.seq))[0])

    @invariant()
    def frames_lead_to_what_a_snapshot_shows(self) -> None:
        for event in self.owner.log[self.followed.seq :]:
            before, self.followed = self.followed, evolve(self.followed, event)
            if before.seq == 0:
                # A chat is followed once it is there; its projector is made from what it is then.
                self.projector = ChatsProjector(self.followed)
                self.client.apply(frames_of(snapshot_frame(self.followed, self.projector.seq))[0])
                continue
            for told in (*self.projector.project(event, before, self.followed), *self.projector.gathered()):
                for frame in frames_of(told.body):
                    self.client.apply(frame)
            (now,) = frames_of(snapshot_frame(self.followed, 0))
            assert self.client.seq <= CHATS_STRIDE * self.followed.seq
            assert self.client.messages == now["messages"], event
            assert self.client.thread == {name: value for name, value in now["thread"].items() if value is not None}
            if self.followed.turn is None:
                assert self.client.runtime == now["runtime"], event


def test_frames_lead_to_what_a_snapshot_shows_whatever_happens() -> None:
    run_state_machine_as_test(ChatsMachine, settings=QUICK)
