"""Watches: from a version on, in order, with bookmarks; and what is too old to be told."""

from typing import Any

from tests.support.store_contract import Api


def told(events: Any) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events if event["type"] != "BOOKMARK"]


def version(api: Api) -> str:
    return str(api.read("pods").body["metadata"]["resourceVersion"])


def test_a_watch_tells_what_happened_since_a_list(api: Api) -> None:
    api.pod("before")
    since = version(api)
    api.pod("a")
    api.patch("pods/a", {"metadata": {"labels": {"x": "y"}}})
    api.bind("a")
    events = list(api.watch("pods", resourceVersion=since, seconds=1))
    assert told(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("MODIFIED", "a")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))


def test_a_watch_tells_that_a_pod_leaves_before_it_is_gone(api: Api) -> None:
    since = version(api)
    api.pod("a")
    api.remove("pods/a")
    events = list(api.watch("pods", resourceVersion=since, seconds=1))
    assert told(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert [event["object"]["metadata"].get("deletionGracePeriodSeconds") for event in events] == [None, 0, 0]


def test_a_watch_tells_that_other_objects_are_gone_at_once(api: Api) -> None:
    since = version(api)
    api.settings("a")
    api.remove("configmaps/a")
    events = list(api.watch("configmaps", resourceVersion=since, seconds=1, fieldSelector="metadata.name=a"))
    assert told(events) == [("ADDED", "a"), ("DELETED", "a")]


def test_a_watch_tells_what_happens_while_it_is_open(api: Api) -> None:
    events = api.watch("pods", resourceVersion=version(api), seconds=20)
    api.pod("a")
    assert told([next(events)]) == [("ADDED", "a")]
    api.bind("a")
    event = next(events)
    assert (event["type"], event["object"]["spec"]["nodeName"]) == ("MODIFIED", "nowhere-1")


def test_a_watch_without_a_version_begins_with_what_is_there(api: Api) -> None:
    api.pod("b")
    api.pod("a")
    assert sorted(told(api.watch("pods", seconds=1))) == [("ADDED", "a"), ("ADDED", "b")]


def test_a_watch_goes_on_where_another_ended(api: Api) -> None:
    since = version(api)
    api.pod("a")
    seen = next(api.watch("pods", resourceVersion=since, seconds=20))["object"]["metadata"]["resourceVersion"]
    api.pod("b")
    assert told([next(api.watch("pods", resourceVersion=seen, seconds=20))]) == [("ADDED", "b")]


def test_what_comes_to_be_chosen_is_added_and_what_no_longer_is_was_deleted(api: Api) -> None:
    since = version(api)
    api.pod("a", labels={"colour": "red"})
    api.pod("b", labels={"colour": "blue"})
    for name, colour in (("a", "blue"), ("b", "red")):
        api.patch(f"pods/{name}", {"metadata": {"labels": {"colour": colour}}})
    events = api.watch("pods", resourceVersion=since, seconds=1, labelSelector="colour=red")
    assert told(events) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b")]


def test_a_watch_of_fields_follows_a_pod_to_its_node(api: Api) -> None:
    since = version(api)
    api.pod("a")
    api.bind("a")
    assert told(api.watch("pods", resourceVersion=since, seconds=1, fieldSelector="spec.nodeName=")) == [
        ("ADDED", "a"),
        ("DELETED", "a"),
    ]


def test_bookmarks_say_how_far_a_quiet_watch_has_come(api: Api) -> None:
    since = version(api)
    api.pod("a")
    quiet = {"resourceVersion": since, "labelSelector": "colour=red", "allowWatchBookmarks": "true"}
    events = list(api.watch("pods", seconds=4, **quiet))
    marks = [event["object"] for event in events if event["type"] == "BOOKMARK"]
    assert marks
    assert (marks[-1]["kind"], marks[-1]["apiVersion"]) == ("Pod", "v1")
    assert int(marks[-1]["metadata"]["resourceVersion"]) > int(since)


def test_no_bookmarks_come_unasked(api: Api) -> None:
    assert list(api.watch("pods", resourceVersion=version(api), seconds=3)) == []


def test_a_watch_from_a_version_that_is_forgotten_ends_with_gone(api: Api) -> None:
    (event,) = api.watch("pods", resourceVersion="1", seconds=3)
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"].startswith("too old resource version: 1 (")
