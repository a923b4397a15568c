"""Objects: created, read, listed in parts, replaced and patched."""

import pytest

from phalanx.store.patches import JSON, MERGE, STRATEGIC
from tests.support.store_contract import Api, pod

UNKNOWN_POD = (404, "NotFound", 'pods "nobody" not found')


def names(items: list[dict[str, dict[str, str]]]) -> list[str]:
    return [item["metadata"]["name"] for item in items]


# --- created and read ----------------------------------------------------------------------------------------------------


def test_what_is_created_has_a_uid_a_time_and_a_version(api: Api) -> None:
    meta = api.settings("a")["metadata"]
    assert meta["namespace"] == api.namespace
    assert meta["uid"]
    assert meta["creationTimestamp"].endswith("Z")
    assert int(meta["resourceVersion"]) > 0


def test_what_was_created_can_be_read(api: Api) -> None:
    made = api.settings("a")
    assert api.read("configmaps/a").body == made


def test_every_change_has_a_higher_version(api: Api) -> None:
    first = api.settings("a")["metadata"]["resourceVersion"]
    second = api.patch("configmaps/a", {"data": {"colour": "blue"}}).body["metadata"]["resourceVersion"]
    assert int(second) > int(first)


def test_a_change_that_changes_nothing_keeps_the_version(api: Api) -> None:
    first = api.settings("a")["metadata"]["resourceVersion"]
    assert api.patch("configmaps/a", {"data": {"colour": "red"}}).body["metadata"]["resourceVersion"] == first


def test_a_name_is_generated_from_a_beginning(api: Api) -> None:
    made = [api.make("configmaps", {"metadata": {"generateName": "made-"}}).body["metadata"]["name"] for _ in range(2)]
    assert all(name.startswith("made-") and len(name) == len("made-") + 5 for name in made)
    assert made[0] != made[1]


def test_an_object_without_a_name_is_refused(api: Api) -> None:
    code, reason, message = api.make("configmaps", {"metadata": {}}).refusal
    assert (code, reason) == (422, "Invalid")
    assert "name or generateName is required" in message


def test_a_name_that_is_taken_is_refused(api: Api) -> None:
    api.settings("a")
    refused = api.make("configmaps", {"metadata": {"name": "a"}})
    assert refused.refusal == (409, "AlreadyExists", 'configmaps "a" already exists')
    assert refused.body["details"] == {"name": "a", "kind": "configmaps"}


def test_a_group_is_part_of_the_resource_in_a_message(api: Api) -> None:
    api.budget("b", needs=1, labels={})
    again = api.make("policy/v1:poddisruptionbudgets", {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}})
    assert again.refusal == (409, "AlreadyExists", 'poddisruptionbudgets.policy "b" already exists')


@pytest.mark.parametrize("method", ["read", "remove"])
def test_an_object_that_is_not_there_is_not_found(api: Api, method: str) -> None:
    assert getattr(api, method)("pods/nobody").refusal == UNKNOWN_POD


def test_an_object_that_is_not_there_is_neither_patched_nor_bound_nor_evicted(api: Api) -> None:
    assert api.patch("pods/nobody", {"metadata": {"labels": {"a": "b"}}}).refusal == UNKNOWN_POD
    assert api.bind("nobody").refusal == UNKNOWN_POD
    assert api.evict("nobody").refusal == UNKNOWN_POD


def test_nothing_is_created_in_a_namespace_that_is_not_there(api: Api) -> None:
    refused = api.make("/api/v1/namespaces/nowhere/configmaps", {"metadata": {"name": "a"}})
    assert refused.refusal == (404, "NotFound", 'namespaces "nowhere" not found')


def test_a_namespace_that_is_not_there_comes_before_what_policies_say(api: Api) -> None:
    place = "/apis/scheduling.volcano.sh/v1beta1/namespaces/nowhere/podgroups"
    body = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "a"}}
    assert api.make(place, body).refusal == (404, "NotFound", 'namespaces "nowhere" not found')


def test_an_object_of_another_namespace_is_refused(api: Api) -> None:
    refused = api.make("configmaps", {"metadata": {"name": "a", "namespace": "default"}})
    assert refused.refusal == (
        400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request",
    )  # fmt: skip


def test_a_kind_that_is_not_served_is_not_found(api: Api) -> None:
    assert api.read("unicorns").code == 404
    assert api.read("unheard.of/v1:things").code == 404


GROUPS = "scheduling.volcano.sh/v1beta1:podgroups"
STRICT = {"fieldValidation": "Strict"}


def group(**spec: int) -> dict[str, object]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"},
        "spec": {"minMember": 1, **spec},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("place", "body", "message"),
    [
        (
            "pods",
            pod("a", nodeSelectr={}, colour="red"),
            'Pod in version "v1" cannot be handled as a Pod: strict decoding error:'
            ' unknown field "spec.nodeSelectr", unknown field "spec.colour"',
        ),
        (
            GROUPS,
            group(minMembr=2),
            'PodGroup in version "v1beta1" cannot be handled as a PodGroup: strict decoding error: unknown field "spec.minMembr"',
        ),
    ],
)
def test_unknown_fields_are_refused_where_validation_is_strict(api: Api, place: str, body: dict[str, object], message: str) -> None:
    code, reason, text = api.make(place, body, **STRICT).refusal
    assert (code, reason, sorted(text.split(", "))) == (400, "BadRequest", sorted(message.split(", ")))
    assert api.make(place, body, **STRICT, dryRun="All").code == 400
    assert api.read(place).body["items"] == []
    assert api.make(place, body).code == 201


def test_unknown_fields_are_refused_in_a_replacement(api: Api) -> None:
    made = api.pod("a")
    assert api.put("pods/a", {**made, "spec": {**made["spec"], "colour": "red"}}, **STRICT).refusal == (
        400, "BadRequest", 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.colour"',
    )  # fmt: skip


@pytest.mark.parametrize("form", [MERGE, STRATEGIC])
def test_unknown_fields_are_refused_in_a_patch(api: Api, form: str) -> None:
    api.pod("a")
    patch = {"metadata": {"labels": {"b": "c"}}, "spec": {"colour": "red"}}
    code, reason, text = api.patch("pods/a", patch, form, **STRICT).refusal
    assert (code, reason) == (422, "Invalid")
    assert 'unknown field "spec.colour"' in text
    assert "b" not in api.read("pods/a").body["metadata"].get("labels", {})


def test_validation_is_one_of_three(api: Api) -> None:
    code, reason, text = api.make("configmaps", {"metadata": {"name": "a"}}, fieldValidation="Lax").refusal
    assert (code, reason) == (422, "Invalid")
    assert 'fieldValidation: Unsupported value: "Lax": supported values: "", "Ignore", "Strict", "Warn"' in text


def test_a_trial_answers_and_changes_nothing(api: Api) -> None:
    assert api.make("configmaps", {"metadata": {"name": "a"}}, dryRun="All").code == 201
    assert api.read("configmaps/a").code == 404
    api.settings("b")
    assert api.patch("configmaps/b", {"data": {"colour": "blue"}}, dryRun="All").body["data"] == {"colour": "blue"}
    assert api.remove("configmaps/b", dryRun="All").code == 200
    assert api.read("configmaps/b").body["data"] == {"colour": "red"}


# --- listed --------------------------------------------------------------------------------------------------------------


def test_a_list_has_a_version_and_every_object_in_order(api: Api) -> None:
    made = [api.settings(name)["metadata"]["resourceVersion"] for name in ("c", "a", "b")]
    found = api.read("configmaps").body
    assert found["kind"] == "ConfigMapList"
    assert [name for name in names(found["items"]) if len(name) == 1] == ["a", "b", "c"]
    assert int(found["metadata"]["resourceVersion"]) >= max(map(int, made))


def test_a_list_of_all_namespaces_has_those_of_this_one(api: Api) -> None:
    api.settings("a")
    found = api.read("/api/v1/configmaps").body["items"]
    assert (api.namespace, "a") in [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in found]


def test_a_list_in_parts_shows_one_moment(api: Api) -> None:
    for name in ("a", "b", "c"):
        api.pod(name)
    first = api.read("pods", limit=2).body
    api.remove("pods/c")
    api.pod("d")
    second = api.read("pods", limit=2, **{"continue": first["metadata"]["continue"]}).body
    assert (names(first["items"]), names(second["items"])) == (["a", "b"], ["c"])
    assert first["metadata"]["remainingItemCount"] == 1
    assert "continue" not in second["metadata"]
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


def test_a_key_to_go_on_that_nobody_gave_is_refused(api: Api) -> None:
    assert api.read("pods", limit=2, **{"continue": "nonsense"}).refusal[:2] == (400, "BadRequest")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("tier=front", ["a"]),
        ("tier!=front", ["b", "c"]),
        ("tier in (front, back)", ["a", "b"]),
        ("tier notin (back)", ["a", "c"]),
        ("tier", ["a", "b"]),
        ("!tier", ["c"]),
        ("tier=back,size==2", ["b"]),
        ("tier=front,size=2", []),
    ],
)
def test_objects_are_chosen_by_label(api: Api, labels: str, expected: list[str]) -> None:
    api.pod("a", labels={"tier": "front", "size": "1"})
    api.pod("b", labels={"tier": "back", "size": "2"})
    api.pod("c")
    assert names(api.read("pods", labelSelector=labels).body["items"]) == expected


def test_pods_are_chosen_by_field(api: Api) -> None:
    api.pod("a")
    api.bound_pod("b")
    assert names(api.read("pods", fieldSelector="spec.nodeName=").body["items"]) == ["a"]
    assert names(api.read("pods", fieldSelector="spec.nodeName=nowhere-1,status.phase!=Failed").body["items"]) == ["b"]
    assert names(api.read("pods", fieldSelector="metadata.name=a").body["items"]) == ["a"]


def test_a_field_that_nobody_chooses_by_is_refused(api: Api) -> None:
    code, reason, message = api.read("pods", fieldSelector="spec.colour=red").refusal
    assert (code, reason) == (400, "BadRequest")
    assert "field label not supported: spec.colour" in message


# --- replaced ------------------------------------------------------------------------------------------------------------


def test_an_object_is_replaced_by_one_of_the_same_version(api: Api) -> None:
    made = api.settings("a")
    assert api.put("configmaps/a", {**made, "data": {"colour": "blue"}}).body["data"] == {"colour": "blue"}


def test_an_object_is_not_replaced_by_one_of_an_old_version(api: Api) -> None:
    made = api.settings("a")
    api.patch("configmaps/a", {"data": {"colour": "blue"}})
    text = "the object has been modified; please apply your changes to the latest version and try again"
    refused = api.put("configmaps/a", {**made, "data": {"colour": "green"}})
    assert refused.refusal == (409, "Conflict", f'Operation cannot be fulfilled on configmaps "a": {text}')


def test_a_patch_with_an_old_version_is_refused(api: Api) -> None:
    old = api.settings("a")["metadata"]["resourceVersion"]
    api.patch("configmaps/a", {"data": {"colour": "blue"}})
    assert api.patch("configmaps/a", {"metadata": {"resourceVersion": old}, "data": {}}).refusal[:2] == (409, "Conflict")


def test_the_name_in_the_object_is_the_name_in_the_path(api: Api) -> None:
    made = api.settings("a")
    renamed = {**made, "metadata": {**made["metadata"], "name": "b"}}
    text = "the name of the object (b) does not match the name on the URL (a)"
    assert api.put("configmaps/a", renamed).refusal == (400, "BadRequest", text)


# --- patched -------------------------------------------------------------------------------------------------------------


def test_a_merge_patch_sets_and_removes(api: Api) -> None:
    api.settings("a", labels={"one": "1", "two": "2"})
    found = api.patch("configmaps/a", {"metadata": {"labels": {"one": None, "three": "3"}}, "data": {"size": "L"}}, MERGE).body
    assert found["metadata"]["labels"] == {"two": "2", "three": "3"}
    assert found["data"] == {"colour": "red", "size": "L"}


def test_a_merge_patch_replaces_lists(api: Api) -> None:
    api.pod("a")
    for kind in ("One", "Two"):
        api.patch("pods/a/status", {"status": {"conditions": [{"type": kind, "status": "True"}]}}, MERGE)
    assert [item["type"] for item in api.read("pods/a").body["status"]["conditions"]] == ["Two"]


def test_a_strategic_patch_merges_conditions_by_their_type(api: Api) -> None:
    api.pod("a")
    for kind, status in (("One", "True"), ("Two", "True"), ("One", "False")):
        patch = {"status": {"conditions": [{"type": kind, "status": status, "reason": kind}]}}
        assert api.patch("pods/a/status", patch, STRATEGIC).code == 200
    conditions = api.read("pods/a").body["status"]["conditions"]
    assert {item["type"]: item["status"] for item in conditions} == {"One": "False", "Two": "True"}


def test_a_strategic_patch_follows_directives(api: Api) -> None:
    api.pod("a", finalizers=("test.io/one", "test.io/two"))
    api.patch(
        "pods/a", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["test.io/one"], "finalizers": ["test.io/three"]}}, STRATEGIC
    )
    assert sorted(api.read("pods/a").body["metadata"]["finalizers"]) == ["test.io/three", "test.io/two"]
    api.patch("pods/a/status", {"status": {"conditions": [{"type": "One", "status": "True"}]}}, STRATEGIC)
    api.patch("pods/a/status", {"status": {"conditions": [{"type": "One", "$patch": "delete"}]}}, STRATEGIC)
    assert not api.read("pods/a").body["status"].get("conditions")
    api.patch("pods/a", {"metadata": {"finalizers": None}}, MERGE)


def test_a_json_patch_goes_step_by_step(api: Api) -> None:
    api.settings("a", annotations={"test.io/old": "1"})
    steps = [
        {"op": "test", "path": "/data/colour", "value": "red"},
        {"op": "add", "path": "/data/size", "value": "L"},
        {"op": "replace", "path": "/data/size", "value": "XL"},
        {"op": "replace", "path": "/data/not-there", "value": "all the same"},
        {"op": "remove", "path": "/data/colour"},
        {"op": "move", "from": "/metadata/annotations/test.io~1old", "path": "/metadata/annotations/test.io~1new"},
    ]
    found = api.patch("configmaps/a", steps, JSON).body
    assert found["data"] == {"size": "XL", "not-there": "all the same"}
    assert found["metadata"]["annotations"] == {"test.io/new": "1"}


@pytest.mark.parametrize(
    "step",
    [{"op": "test", "path": "/data/colour", "value": "blue"}, {"op": "remove", "path": "/data/size"}],
    ids=lambda step: step["op"],
)
def test_a_json_patch_that_does_not_apply_is_refused_whole(api: Api, step: dict[str, str]) -> None:
    api.settings("a")
    assert api.patch("configmaps/a", [{"op": "add", "path": "/data/new", "value": "1"}, step], JSON).refusal[:2] == (422, "Invalid")
    assert api.read("configmaps/a").body["data"] == {"colour": "red"}


def test_a_patch_of_an_unknown_form_is_refused(api: Api) -> None:
    api.settings("a")
    assert api.patch("configmaps/a", {"data": {}}, "application/json").refusal[:2] == (415, "UnsupportedMediaType")


@pytest.mark.parametrize("place", ["pods/a", "pods/a/status"])
def test_a_uid_in_a_patch_must_be_that_of_the_object(api: Api, place: str) -> None:
    api.pod("a")
    code, reason, message = api.patch(place, {"metadata": {"uid": "other"}}, STRATEGIC).refusal
    assert (code, reason) == (422, "Invalid")
    assert 'metadata.uid: Invalid value: "other": field is immutable' in message


# --- status and generation -----------------------------------------------------------------------------------------------


def test_a_status_is_not_written_with_the_object(api: Api) -> None:
    made = api.make("pods", {**pod("a"), "status": {"phase": "Running"}}).body
    assert made["status"]["phase"] == "Pending"
    assert api.patch("pods/a", {"status": {"phase": "Running"}}).body["status"]["phase"] == "Pending"
    assert api.put("pods/a", {**made, "status": {"phase": "Running"}}).body["status"]["phase"] == "Pending"


def test_an_object_is_not_written_with_its_status(api: Api) -> None:
    made = api.pod("a")
    both = {"spec": {"schedulerName": "other"}, "status": {"phase": "Running"}}
    found = api.patch("pods/a/status", both).body
    assert (found["spec"]["schedulerName"], found["status"]["phase"]) == ("nobody", "Running")
    found = api.put("pods/a/status", {**made, "metadata": {"name": "a"}, "status": {"phase": "Failed"}}).body
    assert (found["spec"]["schedulerName"], found["status"]["phase"]) == ("nobody", "Failed")


def test_the_generation_counts_changes_of_the_spec_alone(api: Api) -> None:
    place = "policy/v1:poddisruptionbudgets/b"
    assert api.budget("b", needs=1, labels={"app": "none"})["metadata"]["generation"] == 1
    assert api.patch(place, {"metadata": {"labels": {"a": "b"}}}).body["metadata"]["generation"] == 1
    assert api.patch(f"{place}/status", {"status": {"expectedPods": 3}}).body["metadata"]["generation"] == 1
    assert api.patch(place, {"spec": {"minAvailable": 2}}).body["metadata"]["generation"] == 2
