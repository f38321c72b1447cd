import pytest

from tests.contract.backend_api.rig import WIRES


@pytest.fixture(params=list(WIRES))
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)
