"""Values that are refused, and fields that do not exist: the embedded store begins its messages like a real API server."""

from typing import Any

import pytest

from phalanx.store.metadata_rules import LABEL_RULE, SUBDOMAIN_RULE, VALUE_RULE, WORD_RULE
from phalanx.store.warning_headers import warning_text
from tests.support.http_api import Answer
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


# --- what is said of objects that are refused -----------------------------------------------------------------------------

TOO_LONG = "must be no more than 63 bytes"


def causes(answer: Answer) -> list[tuple[str, str, str]]:
    """Return why an object was refused, as kubectl shows it: reasons, fields and messages."""
    assert answer.code == 422, answer
    return [(cause["reason"], cause["field"], cause["message"]) for cause in answer.body["details"]["causes"]]


def invalid(field: str, value: str, rule: str) -> tuple[str, str, str]:
    return "FieldValueInvalid", field, f'Invalid value: "{value}": {rule}'


@pytest.mark.parametrize(
    ("meta", "field", "value", "rule"),
    [
        ({"name": "Bad_Name"}, "name", "Bad_Name", SUBDOMAIN_RULE),
        ({"labels": {"bad key": "b"}}, "labels", "bad key", WORD_RULE),
        ({"labels": {"k": "b c"}}, "labels", "b c", VALUE_RULE),
        ({"labels": {"Example.com/k": "b"}}, "labels", "Example.com/k", f"prefix part {SUBDOMAIN_RULE}"),
        ({"labels": {"k": "v" * 64}}, "labels", "v" * 64, TOO_LONG),
        ({"annotations": {"k" * 64: "b"}}, "annotations", "k" * 64, f"name part {TOO_LONG}"),
    ],
)
def test_names_labels_and_annotations_that_are_none_are_refused(
    api: Api, meta: dict[str, Any], field: str, value: str, rule: str
) -> None:
    answer = api.make("configmaps", {"metadata": {"name": "a", **meta}})
    assert causes(answer) == [invalid(f"metadata.{field}", value, rule)]


def test_the_name_of_a_namespace_is_a_part_of_a_name_in_dns(api: Api) -> None:
    assert causes(api.make("/api/v1/namespaces", {"metadata": {"name": "A"}})) == [invalid("metadata.name", "A", LABEL_RULE)]
    assert api.make("/api/v1/namespaces", {"metadata": {"name": "a.b"}}).code == 422


def test_labels_are_looked_at_when_they_change(api: Api) -> None:
    assert api.make("configmaps", {"metadata": {"name": "a"}}).code == 201
    answer = api.patch("configmaps/a", {"metadata": {"labels": {"bad key": "b"}}})
    assert set(causes(answer)) == {invalid("metadata.labels", "bad key", WORD_RULE)}


def test_a_pod_with_containers_that_cannot_be_is_refused_with_all_that_is_wrong(api: Api) -> None:
    containers = [
        {"name": "Main", "image": "busybox"},
        {"name": "b", "image": "busybox", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
        {"name": "b", "image": "busybox"},
    ]
    assert sorted(causes(api.make("pods", pod("a", containers=containers)))) == [
        ("FieldValueDuplicate", "spec.containers[2].name", 'Duplicate value: "b"'),
        invalid("spec.containers[0].name", "Main", LABEL_RULE),
        invalid("spec.containers[1].resources.requests", "2", "must be less than or equal to cpu limit of 1"),
    ]


def test_a_field_of_a_pod_that_may_not_change_is_named(api: Api) -> None:
    api.pod("a")
    ((reason, field, text),) = causes(api.patch("pods/a", {"spec": {"schedulerName": "other"}}))
    assert (reason, field) == ("FieldValueForbidden", "spec")
    assert text.startswith("Forbidden: pod updates may not change fields other than ")


def test_an_object_gets_no_other_name_by_a_patch(api: Api) -> None:
    api.pod("a")
    code, _, message = api.patch("pods/a", {"metadata": {"name": "b"}}).refusal
    assert (code, message) == (400, "the name of the object (b) does not match the name on the URL (a)")


def test_a_selector_that_cannot_be_understood_is_refused(api: Api) -> None:
    for text in ("app in (a", "app in a", "a b", "app=a b"):
        assert api.read("pods", labelSelector=text).code == 400, text


def test_what_is_not_there_has_details_for_those_who_look_at_them(api: Api) -> None:
    api.pod("a")
    assert api.patch("pods/a/nothing", {}).body.get("details") == {}


def test_a_pod_without_a_node_has_an_empty_log_and_runs_no_command(api: Api) -> None:
    api.pod("a")
    assert api.read("pods/a/log").code == 204
    code, _, message = api.make("pods/a/exec", {}, command="ls", stdout="true").refusal
    assert (code, message) == (400, "pod a does not have a host assigned")
