"""Laws of the store: a list and the watch from it on give the list of later; parts make the whole; trials leave no trace."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from phalanx.errors import ClusterError
from phalanx.model.kinds import POD
from phalanx.model.watch_event import DELETED
from phalanx.store.memory import MemoryStore
from phalanx.store.selection import EVERYTHING, Selection, selection

Step = Callable[[MemoryStore], object]
SELECTIONS = [EVERYTHING, selection(labels="colour=red"), selection(labels="colour!=red"), selection(fields="spec.nodeName=")]
names = st.sampled_from(["a", "b", "c", "d"])
colours = st.sampled_from(["red", "blue"])


def create(name: str, colour: str) -> Step:
    meta = {"name": name, "labels": {"colour": colour}}
    return lambda store: store.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {}})


def paint(name: str, colour: str) -> Step:
    return lambda store: store.patch(POD, "default", name, {"metadata": {"labels": {"colour": colour}}})


def bind(name: str) -> Step:
    return lambda store: store.bind("default", name, "node-1")


def delete(name: str, grace: int) -> Step:
    return lambda store: store.delete(POD, "default", name, grace=grace)


steps = st.lists(
    st.one_of(
        st.builds(create, names, colours), st.builds(paint, names, colours), st.builds(bind, names),
        st.builds(delete, names, st.sampled_from([0, 30])),
    ),
    max_size=30,
)  # fmt: skip


def go(store: MemoryStore, todo: list[Step]) -> None:
    for step in todo:
        with suppress(ClusterError):
            step(store)


def by_name(items: Any) -> dict[str, Any]:
    return {item["metadata"]["name"]: item for item in items}


@given(before=steps, after=steps, chosen=st.sampled_from(SELECTIONS))
def test_a_list_and_what_a_watch_tells_since_make_the_list_of_now(before: list[Step], after: list[Step], chosen: Selection) -> None:
    store = MemoryStore(lambda: 0.0)
    go(store, before)
    page = store.page(POD, chosen)
    known = by_name(page.items)
    go(store, after)
    for event in store.watch(POD, chosen, since=page.version).take():
        name = event.object["metadata"]["name"]
        assert (name in known) == (event.type != "ADDED")
        if event.type == DELETED:
            del known[name]
        else:
            known[name] = event.object
    assert known == by_name(store.items(POD, chosen))


@given(before=steps, between=st.lists(steps, min_size=4, max_size=4), limit=st.integers(1, 4), chosen=st.sampled_from(SELECTIONS))
def test_the_parts_of_a_list_make_the_list_that_was_there_at_first(
    before: list[Step], between: list[list[Step]], limit: int, chosen: Selection
) -> None:
    store = MemoryStore(lambda: 0.0)
    go(store, before)
    whole = store.items(POD, chosen)
    page = store.page(POD, chosen, limit=limit)
    found = list(page.items)
    for todo in between:
        go(store, todo)
        if page.continue_token:
            page = store.page(POD, chosen, limit=limit, continue_token=page.continue_token)
            found += page.items
    assert found == whole


@given(before=steps, tried=steps)
def test_a_trial_leaves_no_trace(before: list[Step], tried: list[Step]) -> None:
    store = MemoryStore(lambda: 0.0)
    go(store, before)
    objects, version = list(store.everything()), store.history.version
    go(store.trial(), tried)
    assert (list(store.everything()), store.history.version) == (objects, version)


@given(before=steps, after=steps)
def test_a_store_that_was_restored_goes_on_like_the_one_that_was_saved(before: list[Step], after: list[Step]) -> None:
    store, other = MemoryStore(lambda: 0.0), MemoryStore(lambda: 0.0)
    go(store, before)
    other.restore(list(store.everything()), version=store.history.version, numbers=store.numbers)
    for one in (store, other):
        go(one, after)

    def bare(item: Any) -> Any:
        return {**item, "metadata": {key: value for key, value in item["metadata"].items() if key != "resourceVersion"}}

    assert [bare(item) for item in other.items(POD)] == [bare(item) for item in store.items(POD)]
