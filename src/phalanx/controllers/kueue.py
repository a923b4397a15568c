"""Lifts Kueue's admission gate where no Kueue does: a plain pod group is let through when all of it finds room.

Off unless the configuration says `flags: {liftsKueueGate: true}`: where Kueue runs, the gate is its own. A trial session decides,
on all objects as they would be without the gate and with the same policy that then decides in earnest; so a group is never let
through that would only wait. A crash half way leaves a group of which some pods are gated: it starts nothing, and the next trial
lets the rest through. Pods with other gates, such as Kueue's own for topology, are left to those who put them there.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from phalanx.controllers.controller import NOTHING, Key, Patch, RecordEvent, Result, View, Write
from phalanx.controllers.gang_pods import gang_key, waits
from phalanx.controllers.objects import key_of
from phalanx.dialects.cluster import IGNORED, ObjectCluster
from phalanx.dialects.kueue import ADMISSION_GATE
from phalanx.errors import SnapshotError
from phalanx.model.kinds import KINDS, NODE, POD, Document, Kind
from phalanx.session.cycle import Catalogue, run_cycle
from phalanx.session.decision import Decisions
from phalanx.session.policy import Policy
from phalanx.session.shards import seen_by

ALL_GROUPS = Key("", "all-groups")
ADMITTED = "Admitted"


class KueueGateController:
    """Removes the gate of pod groups that find room, all groups in one reconciliation."""

    name = "kueue-gate"
    watches: Sequence[Kind] = (POD, NODE)
    brings_back: Sequence[Kind] = ()

    def __init__(self, policy: Policy, catalogue: Catalogue) -> None:
        """Try groups with the policy that will place them."""
        self._policy, self._catalogue = policy, catalogue

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Reconcile all groups after any change of pods and nodes: there may be room now."""
        return [ALL_GROUPS]

    def reconcile(self, view: View, key: Key) -> Result:
        """Take the gate off every pod that would be placed without it."""
        gated = {_name(pod): pod for pod in view.within(POD) if _is_held(pod)}
        if not gated:
            return NOTHING
        decisions = self._tried(view, gated)
        placed = [pod for name, pod in gated.items() if name in decisions.binds or name in decisions.pipelined]
        return Result([write for pod in placed for write in _let_through(pod)])

    def _tried(self, view: View, gated: dict[str, Document]) -> Decisions:
        """Return what a session would decide without the gates."""
        cluster = ObjectCluster(attach=self._policy.attach_rules)
        for document in (item for kind in KINDS if kind.kind not in IGNORED for item in view.within(kind)):
            with suppress(SnapshotError):
                cluster.put(_ungated(document) if document["kind"] == "Pod" and _name(document) in gated else document)
        return run_cycle(seen_by(self._policy, cluster.snapshot(view.now)), self._policy, self._catalogue)


def _name(pod: Document) -> str:
    place = key_of(pod)
    return f"{place.namespace or 'default'}/{place.name}"


def _is_held(pod: Document) -> bool:
    """Tell whether a pod of a group waits for admission and for nothing else."""
    gates = [gate.get("name") for gate in pod["spec"].get("schedulingGates") or ()]
    return gates == [ADMISSION_GATE] and waits(pod) and gang_key(pod, "kueue") is not None


def _ungated(pod: Document) -> dict[str, Any]:
    return {**pod, "spec": {key: value for key, value in pod["spec"].items() if key != "schedulingGates"}}


def _let_through(pod: Document) -> Iterator[Write]:
    place = key_of(pod)
    yield Patch(POD, place.namespace, place.name, {"spec": {"schedulingGates": None}})
    yield RecordEvent(pod, ADMITTED, f"all of its pod group finds room; the gate {ADMISSION_GATE} was lifted")
