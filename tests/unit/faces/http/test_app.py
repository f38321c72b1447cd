"""Which application answers an address: the native face what is only its own, the whole everything else."""

import re
from typing import Any

import pytest

from palaver.agents.changes import RESERVED
from palaver.faces import native
from palaver.faces.all_faces import ROUTES
from palaver.faces.http.app import addresses_of
from palaver.faces.http.route_app import build_routes
from palaver.faces.inbox.endpoints import ASSISTANT, HUMAN


async def _nothing(_: Any) -> None: ...


NATIVE = addresses_of(build_routes(native.ROUTES, {"server": None}, _nothing))


def paths_of(routes: list[Any]) -> set[str]:
    return {path for route in routes for path in route.paths}


def example(path: str) -> str:
    return re.sub(r"\{[^/]+\}", "0193", path)


@pytest.mark.parametrize("path", sorted(paths_of(native.ROUTES)))
def test_native_address_needs_no_other_face(path: str) -> None:
    assert NATIVE.fullmatch(example(path))


@pytest.mark.parametrize("path", [*sorted(paths_of(ROUTES) - paths_of(native.ROUTES)), HUMAN + "/1", ASSISTANT + "/1"])
def test_address_of_another_face_is_never_taken_for_a_native_one(path: str) -> None:
    assert not NATIVE.fullmatch(example(path))


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_word_is_no_agent_but_may_begin_its_name(word: str) -> None:
    assert NATIVE.fullmatch(f"/api/agents/{word}-2")
    assert bool(NATIVE.fullmatch(f"/api/agents/{word}")) == (f"/api/agents/{word}" in paths_of(native.ROUTES))


@pytest.mark.parametrize("path", ["/", "/api", "/api/schema", "/api/session/", "/api/runs/a/b", "/api/sessions"])
def test_what_is_not_surely_native_is_left_to_the_whole(path: str) -> None:
    assert not NATIVE.fullmatch(path)
