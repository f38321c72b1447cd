"""The pure core under everything that may happen: no promise breaks, and the rig notices when one would."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.rigs.core.machine import CoreMachine
from tests.rigs.core.mutations import MUTATIONS, Mutation

THOROUGH = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)

pytestmark = pytest.mark.timeout(300)
"""Twenty seconds of work, on a machine that may be busy with other things."""

UNTIL_IT_FAILS = settings(THOROUGH, max_examples=400, phases=(Phase.generate,), report_multiple_bugs=False)
"""Nearly always a handful of runs; never shrunk, since only the fact matters."""


def test_core_keeps_its_promises_whatever_happens() -> None:
    run_state_machine_as_test(CoreMachine, settings=THOROUGH)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name.replace(" ", "-"))
def test_core_machine_notices_that(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    real = getattr(mutation.where, mutation.attribute)
    monkeypatch.setattr(mutation.where, mutation.attribute, mutation.broken(real))
    with pytest.raises(AssertionError, match=f"^({mutation.breaks})"):
        run_state_machine_as_test(CoreMachine, settings=UNTIL_IT_FAILS)
