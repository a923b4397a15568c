"""Leaving: grace, finalizers, preconditions, and what becomes of those who depend."""

from typing import Any

import pytest

from tests.support.store_contract import Api, eventually

HOLD = "test.io/hold"


def owned_by(owner: dict[str, Any], **more: object) -> list[dict[str, object]]:
    return [{"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], **more}]


def is_gone(api: Api, place: str) -> bool:
    return api.read(place).code == 404


def test_a_pod_without_a_node_goes_at_once(api: Api) -> None:
    api.pod("a")
    assert api.remove("pods/a").code == 200
    assert is_gone(api, "pods/a")


def test_a_pod_on_a_node_has_time_to_leave(api: Api) -> None:
    api.bound_pod("a", terminationGracePeriodSeconds=45)
    meta = api.remove("pods/a").body["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 45
    assert api.read("pods/a").body["metadata"]["deletionTimestamp"] == meta["deletionTimestamp"]


def test_half_a_minute_unless_the_pod_says_otherwise(api: Api) -> None:
    api.bound_pod("a")
    assert api.remove("pods/a").body["metadata"]["deletionGracePeriodSeconds"] == 30


def test_the_time_to_leave_can_be_shortened_but_not_extended(api: Api) -> None:
    api.bound_pod("a")
    asked = [{"gracePeriodSeconds": seconds} for seconds in (20, 25, 10)]
    given = [api.remove("pods/a", options).body["metadata"]["deletionGracePeriodSeconds"] for options in asked]
    assert given == [20, 20, 10]


def test_no_grace_removes_a_pod_from_its_node_at_once(api: Api) -> None:
    api.bound_pod("a")
    assert api.remove("pods/a", {"gracePeriodSeconds": 0}).code == 200
    assert is_gone(api, "pods/a")


def test_a_pod_that_has_ended_goes_at_once(api: Api) -> None:
    api.bound_pod("a")
    api.patch("pods/a/status", {"status": {"phase": "Succeeded"}})
    api.remove("pods/a")
    assert is_gone(api, "pods/a")


def test_a_finalizer_keeps_an_object_until_it_is_removed(api: Api) -> None:
    api.settings("a", finalizers=[HOLD])
    api.remove("configmaps/a")
    assert "deletionTimestamp" in api.read("configmaps/a").body["metadata"]
    api.patch("configmaps/a", {"metadata": {"finalizers": None}})
    assert is_gone(api, "configmaps/a")


def test_a_finalizer_keeps_a_pod_that_its_kubelet_has_let_go(api: Api) -> None:
    api.bound_pod("a", finalizers=(HOLD,))
    api.remove("pods/a", {"gracePeriodSeconds": 0})
    assert api.read("pods/a").body["metadata"]["deletionGracePeriodSeconds"] == 0
    api.patch("pods/a", {"metadata": {"finalizers": None}})
    assert is_gone(api, "pods/a")


def test_a_finalizer_removed_in_time_leaves_a_pod_its_grace(api: Api) -> None:
    api.bound_pod("a", finalizers=(HOLD,))
    api.remove("pods/a")
    api.patch("pods/a", {"metadata": {"finalizers": None}})
    assert api.read("pods/a").code == 200


def test_leaving_is_a_new_generation(api: Api) -> None:
    before = api.bound_pod("a")["metadata"]["generation"]
    after = [api.remove("pods/a", {"gracePeriodSeconds": seconds}).body["metadata"]["generation"] for seconds in (20, 10)]
    assert after == [before + 1, before + 1]


def test_a_name_is_taken_until_its_owner_has_left(api: Api) -> None:
    api.settings("a", finalizers=[HOLD])
    api.remove("configmaps/a")
    refused = api.make("configmaps", {"metadata": {"name": "a"}})
    assert refused.refusal == (409, "AlreadyExists", 'object is being deleted: configmaps "a" already exists')
    api.patch("configmaps/a", {"metadata": {"finalizers": None}})


def test_another_uid_is_another_object(api: Api) -> None:
    uid = api.pod("a")["metadata"]["uid"]
    code, reason, message = api.remove("pods/a", {"preconditions": {"uid": "other"}}).refusal
    assert (code, reason) == (409, "Conflict")
    assert f"the UID in the precondition (other) does not match the UID in record ({uid})" in message
    assert api.remove("pods/a", {"preconditions": {"uid": uid}}).code == 200


def test_a_deletion_says_what_it_removed(api: Api) -> None:
    uid = api.settings("a")["metadata"]["uid"]
    found = api.remove("configmaps/a").body
    assert (found["kind"], found["status"]) == ("Status", "Success")
    assert found["details"] == {"name": "a", "kind": "configmaps", "uid": uid}
    api.pod("b")
    assert api.remove("pods/b").body["kind"] == "Pod"


# --- owners: controllers do this, so it takes a while on a real cluster --------------------------------------------------


def test_what_belongs_to_an_object_goes_after_it(api: Api) -> None:
    owner = api.settings("owner")
    api.settings("child", ownerReferences=owned_by(owner))
    api.settings("stranger")
    api.remove("configmaps/owner")
    assert is_gone(api, "configmaps/owner")
    assert eventually(lambda: is_gone(api, "configmaps/child"))
    assert api.read("configmaps/stranger").code == 200


def test_what_belongs_to_two_stays_with_the_other(api: Api) -> None:
    owners = [api.settings("one"), api.settings("two")]
    api.settings("child", ownerReferences=[reference for owner in owners for reference in owned_by(owner)])
    api.settings("only", ownerReferences=owned_by(owners[0]))
    api.remove("configmaps/one")
    assert eventually(lambda: is_gone(api, "configmaps/only"))
    assert api.read("configmaps/child").code == 200


def test_in_the_foreground_an_object_waits_for_what_belongs_to_it(api: Api) -> None:
    owner = api.settings("owner")
    api.settings("child", ownerReferences=owned_by(owner, blockOwnerDeletion=True), finalizers=[HOLD])
    api.remove("configmaps/owner", {"propagationPolicy": "Foreground"})
    assert "foregroundDeletion" in api.read("configmaps/owner").body["metadata"]["finalizers"]
    assert eventually(lambda: "deletionTimestamp" in api.read("configmaps/child").body["metadata"])
    assert api.read("configmaps/owner").code == 200
    api.patch("configmaps/child", {"metadata": {"finalizers": None}})
    assert eventually(lambda: is_gone(api, "configmaps/owner"))


@pytest.mark.parametrize("options", [{"propagationPolicy": "Orphan"}, {"orphanDependents": True}], ids=["policy", "old option"])
def test_an_orphan_stays_and_forgets_its_owner(api: Api, options: dict[str, object]) -> None:
    owner = api.settings("owner")
    api.settings("child", ownerReferences=owned_by(owner))
    api.remove("configmaps/owner", options)
    assert eventually(lambda: is_gone(api, "configmaps/owner"))
    assert eventually(lambda: not api.read("configmaps/child").body["metadata"].get("ownerReferences"))


def test_a_namespace_goes_with_everything_in_it(api: Api) -> None:
    inner = f"{api.namespace}-inner"
    api.make("/api/v1/namespaces", {"metadata": {"name": inner}})
    place = f"/api/v1/namespaces/{inner}"
    api.make(f"{place}/configmaps", {"metadata": {"name": "a", "finalizers": [HOLD]}})
    api.remove(place)
    assert eventually(lambda: "deletionTimestamp" in api.read(f"{place}/configmaps/a").body["metadata"])
    assert api.read(place).body["status"]["phase"] == "Terminating"
    code, reason, message = api.make(f"{place}/configmaps", {"metadata": {"name": "b"}}).refusal
    assert (code, reason) == (403, "Forbidden")
    assert f"unable to create new content in namespace {inner} because it is being terminated" in message
    api.patch(f"{place}/configmaps/a", {"metadata": {"finalizers": None}})
    assert eventually(lambda: is_gone(api, place))
