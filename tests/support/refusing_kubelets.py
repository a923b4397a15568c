"""Kubelets that reject what does not fit, as real ones do: kwok's start every pod that is bound to their nodes."""

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Self

from phalanx.model.kinds import Document
from phalanx.model.task_status import ENDED
from phalanx.testing.storm.invariants import excess
from tests.support.http_api import Connection

Pods = dict[str, Document]
REJECTED = {"phase": "Failed", "reason": "OutOfcpu", "message": "Pod was rejected: Node didn't have enough resource: cpu"}
LOOK_SECONDS = 0.05


class RefusingKubelets:
    """Rejects, of each node of a namespace's pods, those that were bound last and no longer fit."""

    def __init__(self, connection: Connection, namespace: str, *, also: Callable[[Document], bool] = lambda pod: False) -> None:
        """Look at the nodes as they are now; `also` names pods that are rejected although they fit."""
        self._connection, self._pods, self._also = connection, f"/api/v1/namespaces/{namespace}/pods", also
        nodes = connection.ask("GET", "/api/v1/nodes").body["items"]
        self._nodes = {node["metadata"]["name"]: node for node in nodes}
        self.rejected: dict[str, str] = {}
        """The pods that were rejected: by uid, the scheduler that bound them."""
        self._order: dict[str, int] = {}
        """In which order the pods of nodes were seen there."""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        """End."""
        self._is_over.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._is_over.wait(LOOK_SECONDS):
            self.look()

    def look(self) -> None:
        """Reject what does not fit now."""
        for name, pods in self.held().items():
            fitting: list[Document] = []
            for pod in sorted(pods, key=self._turn):
                if any(excess(self._nodes[name], [*fitting, pod])) or self._also(pod):
                    self._reject(pod)
                else:
                    fitting.append(pod)

    def held(self) -> dict[str, list[Document]]:
        """Return the pods that each node holds and that have not ended."""
        found: dict[str, list[Document]] = defaultdict(list)
        for pod in self._connection.ask("GET", self._pods).body["items"]:
            if pod["spec"].get("nodeName") in self._nodes and pod["status"]["phase"] not in ENDED:
                found[pod["spec"]["nodeName"]].append(pod)
        return found

    def over_committed(self) -> list[str]:
        """Return the nodes that hold more than they offer."""
        return [name for name, pods in self.held().items() if any(excess(self._nodes[name], pods))]

    def _turn(self, pod: Document) -> int:
        return self._order.setdefault(pod["metadata"]["uid"], len(self._order))

    def _reject(self, pod: Document) -> None:
        meta: dict[str, Any] = pod["metadata"]
        path, body = f"{self._pods}/{meta['name']}/status", {"metadata": {"uid": meta["uid"]}, "status": REJECTED}
        if self._connection.ask("PATCH", path, body, form="application/merge-patch+json").code == 200:
            self.rejected[meta["uid"]] = pod["spec"]["schedulerName"]
