"""Every operation of the described API, called with whatever fits its description and with what does not.

Deterministic: the same calls in the same order, in each run.
"""

from collections.abc import Callable, Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import BaseSchema, Response
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.core.transport import is_event_stream, response_content_type
from schemathesis.generation.hypothesis.builder import HypothesisTestConfig, HypothesisTestMode, create_test
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.flows.described import ANSWER_S, CONVERSATION, AnyCase, Site, described_site

# The whole API in one test each.
pytestmark = pytest.mark.timeout(600)

few_or_many = pytest.mark.parametrize("examples", [2, pytest.param(20, marks=pytest.mark.long)])
"""Generated calls of an operation, beside the limits of every field, which are always tried."""

OPEN = {("GET", "/api/health"), ("POST", "/api/session")}
"""What needs no token."""

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]

EVERY_TIME_THE_SAME = settings(
    derandomize=True,
    database=None,
    deadline=None,
    # Not shrunk: each call changes the server, so a smaller one would be another story.
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with described_site(tmp_path_factory.mktemp("described")) as site:
        yield site


@pytest.fixture(scope="module")
def description(site: Site) -> BaseSchema:
    description = schemathesis.openapi.from_dict(site.described())
    # Tokens are the tests' own affair: made up ones are wrong ones, and after ten a minute the answer is 429.
    description.config.generation.with_security_parameters = False
    return description


def called(
    description: BaseSchema,
    subtests: pytest.Subtests,
    check: Callable[[AnyCase], None],
    examples: int,
    *modes: HypothesisTestMode,
) -> list[str]:
    """Calls every operation, and says which there are."""
    bounded = settings(EVERY_TIME_THE_SAME, max_examples=examples)
    config = HypothesisTestConfig(project=description.config, modes=list(modes), settings=bounded)
    operations = [described.ok() for described in description.get_all_operations() if isinstance(described, Ok)]
    assert len(operations) == description.statistic.operations.total
    for operation in operations:
        with subtests.test(operation=operation.label):
            create_test(operation=operation, test_func=check, config=config)()
    return [operation.label for operation in operations]


def valid(case: AnyCase, answer: Response) -> None:
    # A stream of events is described as text, which the check takes for the description of each event.
    left_out = [response_schema_conformance] if is_event_stream(response_content_type(answer)) else []
    case.validate_response(answer, checks=CHECKS, excluded_checks=left_out)


@few_or_many
def test_every_answer_is_a_described_one(
    site: Site, description: BaseSchema, subtests: pytest.Subtests, examples: int
) -> None:
    def check(case: AnyCase) -> None:
        valid(case, site.call(case, site.signed_in))

    modes = (HypothesisTestMode.COVERAGE, HypothesisTestMode.FUZZING)
    operations = called(description, subtests, check, examples, *modes)

    # Else nothing but refusals was seen.
    never = sorted(set(operations) - site.answered)
    assert len(never) < len(operations) / 5, never


@few_or_many
def test_without_a_token_nothing_is_answered(
    site: Site, description: BaseSchema, subtests: pytest.Subtests, examples: int
) -> None:
    def check(case: AnyCase) -> None:
        answer = site.call(case, {})
        if (case.method, case.operation.path) not in OPEN:
            assert answer.status_code == 401, answer.text
        valid(case, answer)

    # What is sent makes no difference here, so the limits of every field are left out.
    called(description, subtests, check, examples, HypothesisTestMode.FUZZING)


def test_description_says_what_needs_no_token(site: Site) -> None:
    paths = site.ask("GET", "/api/schema/openapi.json")["paths"]

    open_ones = {
        (method.upper(), path)
        for path, item in paths.items()
        for method, operation in item.items()
        if operation.get("security") == []
    }

    assert open_ones == OPEN


@pytest.mark.parametrize(
    ("format", "media_type"),
    [
        ("markdown", "text/markdown"),
        ("jsonl", "application/jsonl"),
        ("trajectory", "application/json"),
        ("html", "text/html"),
    ],
)
def test_export_says_which_of_the_described_formats_it_is(site: Site, format: str, media_type: str) -> None:
    site.stock(format)

    path = f"{site.served.url}/api/conversations/{site.known[CONVERSATION]}/export?format={format}"
    answer = site.session.get(path, headers=site.signed_in, timeout=ANSWER_S)

    assert answer.headers["content-type"].partition(";")[0] == media_type
