"""Sessions in virtual time with a binder that may refuse.

    world = Refusals(cluster, {"train": {"node-0"}})
    world.run(seconds=60)
    assert world.tries["default/train"] == [0.0, 1.0, 3.0, 7.0, …]

A gang that is refused on one node is bound on none: what was bound of it is taken back. A failure is left behind the way it is in
a live cluster: as a failed BindRequest that the next session has deleted, or at once as the annotation of the pod.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from phalanx.dialects.bind_requests import FAILED_BINDS
from phalanx.model.bind_request import remember
from phalanx.model.moment import moment_of, moment_text
from phalanx.model.task import FailedBind
from phalanx.testing.build import Cluster, Cycle, Document

START = 1_767_268_800.0


class Refusals:
    """A cluster whose nodes refuse some gangs; gangs are named by their keys."""

    def __init__(self, cluster: Cluster, nodes_by_gang: Mapping[str, Collection[str]]) -> None:
        """Start at noon."""
        self.cluster, self._refused, self.now = cluster, nodes_by_gang, 0.0
        self.tries: dict[str, list[float]] = {}
        """When each gang was given nodes, in seconds since the start."""
        self.places: dict[str, dict[str, str]] = {}
        """The nodes of the pods of gangs that started."""

    def run(self, *, seconds: int) -> "Refusals":
        """Decide a session each second and carry it out."""
        for _ in range(seconds):
            cycle = self.cluster.run_cycle(now=START + self.now)
            self._tidy(cycle)
            self._bind(cycle)
            self.now += 1.0
        return self

    def _tidy(self, cycle: Cycle) -> None:
        """Delete requests that failed and write what they knew on their pods."""
        for key in cycle.answer.get("deleteBindRequests", {}):
            self.cluster.remove("BindRequest", key)
        for key, task in cycle.answer["tasks"].items():
            if "failedBinds" in task:
                self._annotate(key, task["failedBinds"])

    def _annotate(self, key: str, failures: list[dict[str, Any]]) -> None:
        pod = self.cluster.document("Pod", key)
        annotations = {**pod["metadata"]["annotations"], FAILED_BINDS: json.dumps(failures)}
        self.cluster.submit({**pod, "metadata": {**pod["metadata"], "annotations": annotations}})

    def _bind(self, cycle: Cycle) -> None:
        by_gang: dict[str, dict[str, str]] = {}
        for key, node in cycle.answer["binds"].items():
            by_gang.setdefault(cycle.answer["tasks"][key]["group"], {})[key] = node
        requests = {_key(document): document for document in cycle.answer.get("bindRequests", ())}
        for gang, places in by_gang.items():
            self.tries.setdefault(gang, []).append(self.now)
            refused = {key: node for key, node in places.items() if node in self._refused.get(gang, ())}
            for key, node in refused.items():
                self._fail(key, node, requests.get(key))
            if not refused:
                self._start(gang, places)

    def _fail(self, key: str, node: str, request: Document | None) -> None:
        moment = START + self.now
        if request is not None:
            status = {"phase": "Failed", "failedAttempts": 1}
            times = [{"time": moment_text(moment)}]
            self.cluster.submit({**request, "metadata": {**request["metadata"], "managedFields": times}, "status": status})
            return
        known = json.loads(self.cluster.document("Pod", key)["metadata"]["annotations"].get(FAILED_BINDS, "[]"))
        before = [FailedBind(each["node"], each["attempts"], moment_of(each["latest"]) or 0.0) for each in known]
        after = remember(before, FailedBind(node, 1, moment))
        self._annotate(key, [{"node": each.node, "attempts": each.attempts, "latest": moment_text(each.latest)} for each in after])

    def _start(self, gang: str, places: dict[str, str]) -> None:
        for key, node in places.items():
            pod = self.cluster.document("Pod", key)
            self.cluster.submit({**pod, "spec": {**pod["spec"], "nodeName": node}, "status": {"phase": "Running"}})
        self.places.setdefault(gang, {}).update(places)


def _key(document: Document) -> str:
    return f"{document['metadata']['namespace']}/{document['metadata']['name']}"
