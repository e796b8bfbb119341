"""Requests that schemathesis makes up from our OpenAPI description: none ends in a fault of ours."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

schemathesis = pytest.importorskip("schemathesis", reason="needs the schemathesis package (make install)")


@pytest.mark.filterwarnings("ignore")  # of the library itself
def test_no_made_up_request_ends_in_a_fault(address: str) -> None:
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert {operation.path for operation in operations} == {
        "/v1/predict", "/v1/explain", "/v1/model", "/healthz", "/v2/health/live", "/v2/health/ready",
        "/v2/models/{name}", "/v2/models/{name}/ready", "/v2/models/{name}/infer",
    }  # fmt: skip
    for operation in operations:
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            _try(operation, mode)


def _try(operation: Any, mode: Any) -> None:
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def ask(case: Any) -> None:
        answer = case.call(timeout=20)
        assert answer.status_code < 500, (case, answer.text)
        if answer.status_code >= 400 and "json" in answer.headers.get("content-type", ""):
            assert answer.json()["error"]

    try:
        ask()
    except Exception as error:
        if "Unsatisfiable" not in type(error).__name__:  # an operation without a body cannot be asked wrongly
            raise
