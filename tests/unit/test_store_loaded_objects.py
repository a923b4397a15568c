"""Objects of another cluster in a store."""

from phalanx.store.memory import MemoryStore
from phalanx.testing import build


def test_objects_that_are_made_later_do_not_get_the_uid_of_one_that_was_loaded() -> None:
    """Who follows pods by uid, as kubelets do, would take one for the other."""
    there = MemoryStore(lambda: 0.0)
    pods = [there.create(build.pod(f"p-{number}")) for number in range(3)]
    here = MemoryStore(lambda: 0.0)
    for pod in pods:
        here.load(pod)
    made = [here.create(build.pod(f"q-{number}")) for number in range(3)]
    assert len({pod["metadata"]["uid"] for pod in (*pods, *made)}) == 6
