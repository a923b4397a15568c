"""Changes of objects in a recording: only what differs is written, and whoever reads gets the whole again."""

from typing import Any

import pytest

from phalanx.recording.entries import ENCODER, Changed, Gone, Put
from phalanx.recording.object_changes import KnownObjects, entry_of
from phalanx.testing import build
from tests.support.recordings import as_read, kept

Document = dict[str, Any]
PLANTED = "hunter2"


def waiting() -> Document:
    _, pod = build.gang("train", tasks=1, gpus=1)
    return {**pod, "spec": {**pod["spec"], "schedulingGates": [{"name": "phalanx.dev/gang"}]}, "status": {"phase": "Pending"}}


def other(pod: Document, part: str, **fields: object) -> Document:
    """Return a pod with other fields in a part; without those that are None."""
    return {**pod, part: {key: value for key, value in {**pod[part], **fields}.items() if value is not None}}


CHANGES = {
    "bound": other(waiting(), "spec", nodeName="node-1"),
    "running": other(waiting(), "status", phase="Running", startTime="2026-01-01T00:00:00Z"),
    "leaves its gate": other(waiting(), "spec", schedulingGates=None),
    "relabelled": other(waiting(), "metadata", labels={"a": "b"}),
    "annotated": other(waiting(), "metadata", annotations={"volcano.sh/task-spec": "worker", "example.com/x": PLANTED}),
    "annotated by a text": other(waiting(), "metadata", annotations=PLANTED),
    "with another container": other(waiting(), "spec", containers=[{"name": "b", "command": [PLANTED], "resources": {}}]),
    "with a broken container": other(waiting(), "spec", containers=[PLANTED, {"name": "b", "resources": PLANTED}]),
    "nothing that is recorded": other(waiting(), "metadata", resourceVersion="7"),
    "without a status": {key: value for key, value in waiting().items() if key != "status"},
    "with a broken status": {**waiting(), "status": "fine"},
    "with a broken field": other(waiting(), "spec", tolerations="all"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whoever_reads_gets_what_is_kept_of_the_whole_object(name: str) -> None:
    objects, before, after = KnownObjects(), waiting(), CHANGES[name]
    for entry in (entry_of(None, before), entry_of(before, after)):
        assert entry is not None
        found = objects.whole(as_read(entry))
    assert found == Put(kept(after))


@pytest.mark.parametrize("name", ["bound", "running", "leaves its gate"])
def test_what_is_the_same_is_not_written_again(name: str) -> None:
    entry = entry_of(waiting(), CHANGES[name])
    assert isinstance(entry, Changed)
    assert len(ENCODER.encode(entry)) < len(ENCODER.encode(entry_of(None, waiting()))) / 2


def test_a_change_leaves_the_object_from_before_as_it_was() -> None:
    objects, before = KnownObjects(), waiting()
    first = as_read(entry_of(None, before))
    assert isinstance(first, Put)
    assert objects.whole(first) is first
    for after in (CHANGES["bound"], CHANGES["leaves its gate"]):
        change = entry_of(before, after)
        objects.whole(as_read(change))
    assert first == Put(kept(before))


def test_a_change_of_an_object_that_is_not_known_is_left_out() -> None:
    objects, change = KnownObjects(), entry_of(waiting(), CHANGES["bound"])
    assert isinstance(change, Changed)
    assert objects.whole(change) is None
    objects.whole(Put(waiting()))
    objects.whole(Gone("v1", "Pod", "default", "train-0"))
    assert objects.whole(change) is None


@pytest.mark.parametrize("name", CHANGES)
def test_no_secret_is_in_what_is_written_of_a_change(name: str) -> None:
    assert PLANTED.encode() not in ENCODER.encode(entry_of(waiting(), CHANGES[name]))


def test_no_secret_is_in_a_change() -> None:
    before = other(waiting(), "spec", containers=[{"name": "main"}], **{PLANTED: 1})
    secret = {"name": "main", "env": [{"name": "TOKEN", "value": PLANTED}], "command": [PLANTED]}
    after = other(waiting(), "spec", containers=[secret], other=PLANTED)
    after["metadata"] = {**after["metadata"], "annotations": {**after["metadata"].get("annotations", {}), "example.com/x": PLANTED}}
    change = entry_of(before, after)
    assert isinstance(change, Changed)
    assert PLANTED.encode() not in ENCODER.encode(change), "neither a value, nor the name of a field that is gone"
