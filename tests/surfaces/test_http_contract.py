"""The API is what its OpenAPI document says: generated requests, right and wrong ones, find no server error and no
answer of another status, type or shape."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from tests.conftest import SEED
from tests.surfaces.serving import BASE, OWNER, Served

load_all_checks()
# What fits its schema may still name a note that does not exist, which is refused; and what is wrong about a generated
# request may be its token, for which a right one is sent.
EXCLUDED = CHECKS.get_by_names(["positive_data_acceptance", "negative_data_rejection"])
EXAMPLES = 5


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_every_generated_request_is_answered_as_documented(server: Served, mode: GenerationMode) -> None:
    headers = {**server.bearer(OWNER), "Host": "127.0.0.1:8765"}
    app: Any = server.client.app
    document: Any = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers={"Host": "127.0.0.1"})
    operations = [each.ok() for each in document.get_all_operations()]
    assert len(operations) >= 15
    for operation in operations:
        # What has no parameters has no wrong ones.
        if mode is GenerationMode.POSITIVE or bool(operation.body) or any(operation.iter_parameters()):
            assert tried(operation, mode, headers), operation.label


def tried(operation: Any, mode: GenerationMode, headers: dict[str, str]) -> int:
    """How many requests were tried, all of which were answered as the document says."""
    count = 0

    @seed(SEED)
    @settings(max_examples=EXAMPLES, database=None, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=mode))
    def answers_as_documented(case: Any) -> None:
        nonlocal count
        count += 1
        case.call_and_validate(base_url=BASE, headers=headers, excluded_checks=EXCLUDED)

    answers_as_documented()
    return count
