"""The mirror of an API server's objects."""

from typing import Any

import pytest

from phalanx.model.kinds import NODE, POD, kind_at
from phalanx.model.watch_event import ADDED, DELETED, MODIFIED
from phalanx.store.kube import mirror as module
from phalanx.store.kube.mirror import Mirror

METRICS = kind_at("metrics.k8s.io", "nodes")


def pod(name: str, version: int, *, uid: str = "", namespace: str = "default", owners: tuple[str, ...] = ()) -> dict[str, Any]:
    meta: dict[str, Any] = {"namespace": namespace, "name": name, "uid": uid or name, "resourceVersion": str(version)}
    if owners:
        meta["ownerReferences"] = [{"uid": owner} for owner in owners]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta}


class Heard:
    """A mirror and what it tells."""

    def __init__(self) -> None:
        self.mirror = Mirror(lambda: 17.0)
        self.news: list[tuple[str, str, int]] = []
        self.mirror.listen(lambda event: self.news.append((event.type, event.object["metadata"]["name"], event.version)))

    def version(self, name: str) -> str | None:
        found = self.mirror.find(POD, "default", name)
        return None if found is None else str(found["metadata"]["resourceVersion"])


def names(found: list[Any]) -> list[str]:
    return [item["metadata"]["name"] for item in found]


def test_changes_are_entered_and_told() -> None:
    heard = Heard()
    heard.mirror.put(POD, pod("a", 1))
    heard.mirror.put(POD, pod("a", 2))
    heard.mirror.remove(POD, pod("a", 3))
    assert heard.news == [(ADDED, "a", 1), (MODIFIED, "a", 2), (DELETED, "a", 3)]
    assert (heard.version("a"), heard.mirror.count(POD), heard.mirror.now) == (None, 0, 17.0)


def test_what_was_there_before_is_told_too() -> None:
    heard, earlier = Heard(), []
    heard.mirror.listen(lambda event: earlier.append(event.before and event.before["metadata"]["resourceVersion"]))
    for version in (1, 2):
        heard.mirror.put(POD, pod("a", version))
    heard.mirror.remove(POD, pod("a", 3))
    assert earlier == [None, "1", "2"]


def test_whoever_is_older_loses() -> None:
    heard = Heard()
    heard.mirror.put(POD, pod("a", 10))
    heard.mirror.put(POD, pod("a", 9))
    heard.mirror.put(POD, pod("a", 10))
    assert (heard.version("a"), heard.news) == ("10", [(ADDED, "a", 10)])


def test_an_answer_that_comes_after_the_end_brings_nothing_back() -> None:
    heard = Heard()
    heard.mirror.put(POD, pod("a", 1))
    heard.mirror.remove(POD, pod("a", 3))
    heard.mirror.put(POD, pod("a", 2))
    assert heard.version("a") is None
    heard.mirror.put(POD, pod("a", 4, uid="the next one"))
    assert heard.version("a") == "4"


def test_only_so_many_ends_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_GONE", 2)
    heard = Heard()
    for name in "abc":
        heard.mirror.put(POD, pod(name, 1))
        heard.mirror.remove(POD, pod(name, 3))
    for name in "abc":
        heard.mirror.put(POD, pod(name, 2))
    assert names(heard.mirror.within(POD)) == ["a"]


def test_the_end_of_an_earlier_one_is_not_the_end_of_the_next() -> None:
    heard = Heard()
    heard.mirror.put(POD, pod("a", 5, uid="new"))
    heard.mirror.remove(POD, pod("a", 4, uid="old"))
    assert heard.version("a") == "5"


def test_another_one_of_the_same_name_comes_after_the_end_of_the_first() -> None:
    heard = Heard()
    heard.mirror.put(POD, pod("a", 1, uid="old", owners=("job",)))
    heard.mirror.put(POD, pod("a", 7, uid="new"))
    assert heard.news == [(ADDED, "a", 1), (DELETED, "a", 1), (ADDED, "a", 7)]
    assert heard.mirror.owned("job", POD) == []


def test_a_new_list_takes_away_what_is_not_in_it() -> None:
    heard = Heard()
    for name in "abc":
        heard.mirror.put(POD, pod(name, 1))
    heard.mirror.put(NODE, {"metadata": {"name": "n", "uid": "n", "resourceVersion": "1"}})
    heard.mirror.replace(POD, [pod("b", 1), pod("c", 4), pod("d", 5)], version="6")
    assert heard.news[4:] == [(MODIFIED, "c", 4), (ADDED, "d", 5), (DELETED, "a", 1)]
    assert (names(heard.mirror.within(POD)), heard.mirror.count(NODE)) == (["b", "c", "d"], 1)


def test_a_list_knows_nothing_of_what_was_made_after_it() -> None:
    heard = Heard()
    heard.mirror.put(POD, pod("made by us", 8))
    heard.mirror.replace(POD, [], version="7")
    assert heard.version("made by us") == "8"


def test_of_measurements_without_versions_and_uids_the_last_list_counts() -> None:
    mirror = Mirror(lambda: 0.0)
    for usage in ("1", "2"):
        documents = [{"metadata": {"name": name}, "usage": {"cpu": usage}} for name in ("n0", "n1")]
        mirror.replace(METRICS, documents[: 3 - int(usage)])
    assert [(item["metadata"]["name"], item["usage"]["cpu"]) for item in mirror.within(METRICS)] == [("n0", "2")]


def test_objects_are_found_in_the_order_of_their_keys() -> None:
    mirror = Mirror(lambda: 0.0)
    for namespace, name in (("b", "y"), ("a", "z"), ("b", "x")):
        mirror.put(POD, pod(name, 1, uid=namespace + name, namespace=namespace))
    assert names(mirror.within(POD)) == ["z", "x", "y"]
    assert names(mirror.within(POD, "b")) == ["x", "y"]
    assert (mirror.within(POD, "c"), mirror.within(NODE)) == ([], [])
    assert len(list(mirror.everything())) == 3


def test_owners_are_followed_when_they_change() -> None:
    heard = Heard()
    heard.mirror.put(POD, pod("b", 1, owners=("job", "job")))
    heard.mirror.put(POD, pod("a", 1, owners=("job",)))
    assert names(heard.mirror.owned("job", POD)) == ["a", "b"]
    heard.mirror.put(POD, pod("a", 2, owners=("other",)))
    assert (names(heard.mirror.owned("job", POD)), names(heard.mirror.owned("other", POD))) == (["b"], ["a"])
    heard.mirror.remove(POD, pod("b", 3))
    assert heard.mirror.owned("job", POD) == []


def test_who_managed_which_field_is_not_kept() -> None:
    heard = Heard()
    document = pod("a", 1)
    document["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    heard.mirror.put(POD, document)
    found = heard.mirror.find(POD, "default", "a")
    assert found is not None
    assert "managedFields" not in found["metadata"]


def test_what_a_list_names_is_there_also_if_it_was_gone_before() -> None:
    heard = Heard()
    for name in "ab":
        heard.mirror.put(POD, pod(name, 1))
    heard.mirror.replace(POD, [])  # the kind is served no more
    heard.mirror.replace(POD, [pod("a", 1)], version="7")  # and now it is again
    heard.mirror.put(POD, pod("b", 2))  # an answer that was under way
    assert names(heard.mirror.within(POD)) == ["a"]
    assert heard.news[-1] == (ADDED, "a", 1)


def test_a_list_of_a_server_that_was_set_back_replaces_what_is_newer() -> None:
    heard = Heard()
    for document in (pod("a", 10), pod("b", 11), pod("c", 12)):
        heard.mirror.put(POD, document)
    heard.mirror.replace(POD, [pod("a", 5), pod("b", 11)], version="6", was_set_back=True)
    assert (heard.version("a"), heard.version("b"), heard.version("c")) == ("5", "11", None)
    assert heard.news[3:] == [(MODIFIED, "a", 5), (DELETED, "c", 12)]


def test_what_was_made_while_such_a_list_was_on_its_way_is_brought_again_by_the_watch() -> None:
    heard = Heard()
    heard.mirror.put(POD, pod("ours", 7))
    heard.mirror.replace(POD, [], version="6", was_set_back=True)
    heard.mirror.put(POD, pod("ours", 7))
    assert heard.version("ours") == "7"


def test_another_object_with_the_version_that_we_know_is_of_a_server_that_was_set_back() -> None:
    """Versions are counted anew after that, and may come to be the same."""
    heard = Heard()
    heard.mirror.put(POD, pod("a", 10, uid="first"))
    heard.mirror.put(POD, pod("a", 10, uid="second"))
    assert heard.news == [(ADDED, "a", 10), (DELETED, "a", 10), (ADDED, "a", 10)]
    assert heard.mirror.replace(POD, [pod("a", 10, uid="third")], version="12")
    assert [item["metadata"]["uid"] for item in heard.mirror.within(POD)] == ["third"]
    assert not heard.mirror.replace(POD, [pod("a", 11, uid="fourth")], version="12")
