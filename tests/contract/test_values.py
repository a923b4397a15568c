"""Values that are refused, and fields that do not exist: the embedded store begins its messages like a real API server."""

from typing import Any

import pytest

from phalanx.store.warning_headers import warning_text
from tests.support.store_contract import Api, pod

NODES = "/api/v1/nodes"


def with_amounts(**amounts: dict[str, str]) -> dict[str, Any]:
    return pod("a", containers=[{"name": "main", "image": "busybox", "resources": amounts}])


def test_parts_of_an_extended_resource_are_refused(api: Api) -> None:
    half = {"nvidia.com/gpu": "500m"}
    code, reason, message = api.make("pods", with_amounts(requests=half, limits=half)).refusal
    assert (code, reason) == (422, "Invalid")
    assert message.partition("spec.")[0] in ('Pod "a" is invalid: ', 'Pod "a" is invalid: [')
    assert 'spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer' in message


SUPPORTED = 'Unsupported value: "Maybe": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'


def test_effects_that_do_not_exist_are_refused(api: Api) -> None:
    tainted = {"metadata": {"name": f"{api.namespace}-n"}, "spec": {"taints": [{"key": "a", "effect": "Maybe"}]}}
    code, _, message = api.make(NODES, tainted).refusal
    assert (code, message.partition("taints")[2]) == (422, f"[0].effect: {SUPPORTED}")
    tolerant = pod("a", tolerations=[{"key": "a", "operator": "Exists", "effect": "Maybe"}])
    code, _, message = api.make("pods", tolerant).refusal
    assert (code, message) == (422, f'Pod "a" is invalid: spec.tolerations[0].effect: {SUPPORTED}')


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (pod("a", nodeSelectr={"a": "b"}), "spec.nodeSelectr"),
        (with_amounts(request={"cpu": "1"}), "spec.containers[0].resources.request"),
        ({**pod("a"), "metadata": {"name": "a", "label": {}}}, "metadata.label"),
    ],
)
def test_a_field_that_does_not_exist_is_warned_of(api: Api, document: dict[str, Any], path: str) -> None:
    answer = api.make("pods", document)
    assert answer.code == 201
    assert [warning_text(item).partition(";")[0] for item in answer.warnings] == [f'unknown field "{path}"']
