"""Server-side apply: who owns what, what goes with whom, and what is a conflict."""

from typing import Any

import pytest

from phalanx.web.request import APPLIED
from tests.support.http_api import Answer
from tests.support.store_contract import Api

SETTINGS = "configmaps/shared"
JOBS, GROUPS = "batch/v1:jobs", "scheduling.volcano.sh/v1beta1:podgroups"


def applied(api: Api, place: str, body: dict[str, Any], manager: str = "one", **query: Any) -> Answer:
    kind = {"configmaps": ("v1", "ConfigMap"), JOBS: ("batch/v1", "Job"), GROUPS: ("scheduling.volcano.sh/v1beta1", "PodGroup")}
    version, name = kind[place.rpartition("/")[0]]
    whole = {"apiVersion": version, "kind": name, **body}
    meta = {"name": place.rpartition("/")[2], **whole.get("metadata", {})}
    return api.patch(place, {**whole, "metadata": meta}, form=APPLIED, fieldManager=manager, **query)


def data(api: Api, **values: str) -> Answer:
    return applied(api, SETTINGS, {"data": values})


def managers(answer: Answer) -> dict[tuple[str, str], Any]:
    """Return what each manager owns, by its name and operation."""
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in answer.body["metadata"]["managedFields"]}


def test_what_is_not_there_is_created(api: Api) -> None:
    answer = data(api, colour="red")
    assert (answer.code, answer.body["data"]) == (201, {"colour": "red"})
    assert managers(answer) == {("one", "Apply"): {"f:data": {"f:colour": {}}}}


def test_the_same_applied_twice_changes_nothing(api: Api) -> None:
    first, second = data(api, colour="red"), data(api, colour="red")
    assert second.code == 200
    assert first.body["metadata"]["resourceVersion"] == second.body["metadata"]["resourceVersion"]


def test_what_is_not_in_the_manifest_any_more_goes(api: Api) -> None:
    data(api, colour="red", size="large")
    assert data(api, colour="blue").body["data"] == {"colour": "blue"}


def test_what_others_own_stays(api: Api) -> None:
    data(api, colour="red")
    applied(api, SETTINGS, {"data": {"size": "large"}}, "two")
    assert data(api, shape="round").body["data"] == {"shape": "round", "size": "large"}


def test_what_both_own_goes_with_the_last_of_them(api: Api) -> None:
    data(api, colour="red", size="large")
    applied(api, SETTINGS, {"data": {"colour": "red"}}, "two")
    assert data(api, size="large").body["data"] == {"colour": "red", "size": "large"}
    assert applied(api, SETTINGS, {"data": {"size": "large"}}, "two").body["data"] == {"size": "large"}


def test_another_value_is_a_conflict_with_whoever_applied_it(api: Api) -> None:
    data(api, colour="red")
    refused = applied(api, SETTINGS, {"data": {"colour": "blue"}}, "two")
    assert refused.refusal == (409, "Conflict", 'Apply failed with 1 conflict: conflict with "one": .data.colour')
    assert refused.body["details"]["causes"][0]["reason"] == "FieldManagerConflict"


def test_several_conflicts_are_all_named(api: Api) -> None:
    data(api, colour="red", size="large")
    refused = applied(api, SETTINGS, {"data": {"colour": "blue", "size": "small"}}, "two")
    assert refused.refusal[2] == 'Apply failed with 2 conflicts: conflicts with "one":\n- .data.colour\n- .data.size'


def test_a_conflict_can_be_forced_and_takes_the_field_from_its_owner(api: Api) -> None:
    data(api, colour="red", size="large")
    forced = applied(api, SETTINGS, {"data": {"colour": "blue"}}, "two", force="true")
    assert forced.body["data"] == {"colour": "blue", "size": "large"}
    assert managers(forced) == {("one", "Apply"): {"f:data": {"f:size": {}}}, ("two", "Apply"): {"f:data": {"f:colour": {}}}}


def test_another_value_is_a_conflict_with_whoever_created_the_object(api: Api) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"colour": "red"}}
    assert api.make("configmaps", body, fieldManager="maker").code == 201
    refused = data(api, colour="blue")
    assert refused.refusal[:2] == (409, "Conflict")
    assert refused.refusal[2].startswith('Apply failed with 1 conflict: conflict with "maker" using v1')
    assert data(api, colour="red").code == 200


def test_whoever_patches_owns_what_has_changed(api: Api) -> None:
    data(api, colour="red", size="large")
    patched = api.patch(SETTINGS, {"data": {"colour": "blue"}}, fieldManager="painter")
    assert managers(patched)["one", "Apply"] == {"f:data": {"f:size": {}}}
    assert managers(patched)["painter", "Update"] == {"f:data": {"f:colour": {}}}
    assert data(api, size="large").body["data"] == {"colour": "blue", "size": "large"}
    assert data(api, colour="red").refusal[1] == "Conflict"


def test_items_of_lists_are_told_apart_by_their_keys(api: Api) -> None:
    def template(*containers: dict[str, Any]) -> dict[str, Any]:
        spec = {"restartPolicy": "Never", "containers": list(containers)}
        return {"spec": {"suspend": True, "template": {"spec": spec}}}

    first = {"name": "a", "image": "train:1", "env": [{"name": "X", "value": "1"}]}
    assert applied(api, f"{JOBS}/work", template(first)).code == 201
    answer = applied(api, f"{JOBS}/work", {"metadata": {"labels": {"team": "blue"}}}, "two")
    containers = managers(answer)["one", "Apply"]["f:spec"]["f:template"]["f:spec"]["f:containers"]
    assert containers == {
        'k:{"name":"a"}': {
            ".": {}, "f:name": {}, "f:image": {}, "f:env": {'k:{"name":"X"}': {".": {}, "f:name": {}, "f:value": {}}},
        }
    }  # fmt: skip
    assert managers(answer)["two", "Apply"] == {"f:metadata": {"f:labels": {"f:team": {}}}}


def test_lists_of_custom_objects_are_one_value(api: Api) -> None:
    made = applied(api, f"{GROUPS}/gang", {"spec": {"minMember": 2, "minTaskMember": {"worker": 2}}})
    assert made.code == 201
    refused = applied(api, f"{GROUPS}/gang", {"spec": {"minTaskMember": {"worker": 3}}}, "two")
    assert refused.refusal[2] == 'Apply failed with 1 conflict: conflict with "one": .spec.minTaskMember.worker'
    assert applied(api, f"{GROUPS}/gang", {"spec": {"minMember": 2}}).body["spec"].get("minTaskMember") is None


def test_an_apply_names_its_manager(api: Api) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}}
    refused = api.patch(SETTINGS, body, form=APPLIED)
    text = 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
    assert refused.refusal == (422, "Invalid", text)


@pytest.mark.parametrize("field", ["managedFields", "resourceVersion"])
def test_nobody_owns_what_is_the_servers(api: Api, field: str) -> None:
    assert field not in str(managers(data(api, colour="red")))


def test_a_dry_run_changes_nothing(api: Api) -> None:
    data(api, colour="red")
    assert applied(api, SETTINGS, {"data": {"colour": "blue"}}, dryRun="All").body["data"] == {"colour": "blue"}
    assert api.read(SETTINGS).body["data"] == {"colour": "red"}
