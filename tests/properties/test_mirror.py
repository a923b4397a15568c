"""The mirror beside a plain dictionary: whatever comes, in whatever order, both say the same."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from phalanx.model.kinds import POD
from phalanx.model.watch_event import ADDED, DELETED, WatchEvent
from phalanx.store.kube.mirror import Mirror

OWNERS = ("job-0", "job-1")
Place = tuple[str, str]


class Cluster:
    """Objects as a server has them, each change with the next version; old states are kept, to be told late."""

    def __init__(self) -> None:
        self.version = 0
        self.objects: dict[Place, dict[str, Any]] = {}
        self.told: list[dict[str, Any]] = []

    def write(self, place: Place, owners: list[str]) -> dict[str, Any]:
        self.version += 1
        old = self.objects.get(place)
        uid = old["metadata"]["uid"] if old else f"uid-{self.version}"
        references = [{"uid": owner} for owner in owners]
        meta = {"namespace": place[0], "name": place[1], "uid": uid, "ownerReferences": references}
        self.objects[place] = {"kind": "Pod", "metadata": {**meta, "resourceVersion": str(self.version)}}
        self.told.append(self.objects[place])
        return self.objects[place]

    def delete(self, place: Place) -> dict[str, Any] | None:
        old = self.objects.pop(place, None)
        if old is None:
            return None
        self.version += 1
        return {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}


def copied(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "metadata": dict(document["metadata"])}


def agree(mirror: Mirror, objects: dict[Place, dict[str, Any]]) -> None:
    assert list(mirror.within(POD)) == [objects[place] for place in sorted(objects)]
    for namespace in "ab":
        assert list(mirror.within(POD, namespace)) == [objects[place] for place in sorted(objects) if place[0] == namespace]
    for owner in OWNERS:
        mine = [place for place in sorted(objects) if {"uid": owner} in objects[place]["metadata"]["ownerReferences"]]
        assert list(mirror.owned(owner, POD)) == [objects[place] for place in mine]


PLACES = st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"))
WORDS = ("write", "delete", "late answer", "blind")
STEPS = st.tuples(st.sampled_from(WORDS), PLACES, st.sampled_from([[], ["job-0"], ["job-1"], ["job-0", "job-1"]]))


@given(st.lists(STEPS, max_size=30))
def test_a_mirror_says_what_the_server_has(steps: list[tuple[str, Place, list[str]]]) -> None:
    cluster, mirror, followed = Cluster(), Mirror(lambda: 0.0), dict[str, str]()

    def follow(event: WatchEvent) -> None:
        """Whoever only listens never hears of a beginning twice, or of an end without one."""
        uid = event.object["metadata"]["uid"]
        assert (event.type == ADDED) == (uid not in followed)
        followed[uid] = event.object["metadata"]["resourceVersion"]
        if event.type == DELETED:
            del followed[uid]

    mirror.listen(follow)
    for number, (word, place, owners) in enumerate(steps):
        if word == "write":
            mirror.put(POD, copied(cluster.write(place, owners)))
        elif word == "delete" and (last := cluster.delete(place)) is not None:
            mirror.remove(POD, last)
        elif word == "late answer" and cluster.told:
            mirror.put(POD, copied(cluster.told[number % len(cluster.told)]))
        elif word == "blind":  # while nobody watches
            cluster.delete(place)
            cluster.write(place, owners)
            mirror.replace(POD, map(copied, cluster.objects.values()), version=str(cluster.version))
        agree(mirror, cluster.objects)
    assert followed == {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in cluster.objects.values()}
