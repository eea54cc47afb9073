"""The API is what its OpenAPI document says: generated requests, right and wrong ones, find no server error and no
answer of another status, type or shape."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings

from tests.conftest import SEED
from tests.surfaces.serving import BASE, OWNER, Served

EXAMPLES = 3


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_every_generated_request_is_answered_as_documented(server: Served, mode: str) -> None:
    import schemathesis  # it takes a second to load, which only the process that needs it pays
    from schemathesis.checks import CHECKS, load_all_checks

    load_all_checks()
    # What fits its schema may still name a note that does not exist, which is refused; and what is wrong about a
    # generated request may be its token, for which a right one is sent.
    excluded = CHECKS.get_by_names(["positive_data_acceptance", "negative_data_rejection"])
    headers = {**server.bearer(OWNER), "Host": "127.0.0.1:8765"}
    app: Any = server.client.app
    document: Any = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers={"Host": "127.0.0.1"})
    operations = [each.ok() for each in document.get_all_operations()]
    assert len(operations) >= 15
    for operation in operations:
        requests = operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode))
        # What has no parameters has no wrong ones.
        if mode == "positive" or bool(operation.body) or any(operation.iter_parameters()):
            answered = tried(requests, base_url=BASE, headers=headers, excluded_checks=excluded)
            assert answered, operation.label


def tried(requests: Any, **options: Any) -> int:
    """How many requests were tried, all of which were answered as the document says."""
    count = 0

    @seed(SEED)
    @settings(max_examples=EXAMPLES, database=None, suppress_health_check=list(HealthCheck))
    @given(requests)
    def answers_as_documented(case: Any) -> None:
        nonlocal count
        count += 1
        case.call_and_validate(**options)

    answers_as_documented()
    return count
